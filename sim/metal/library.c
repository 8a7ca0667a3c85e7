// SPDX-License-Identifier: Apache-2.0
#include "metal/library.h"

#include "metal/argument.h"
#include "metal/foundation.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INTERNAL = 2, COMPILE_FAILURE = 3, COMPILE_WARNING = 4 }; // of MTLLibraryError
enum { KERNEL = 3 };                                             // of MTLFunctionType

static library_t *library_new(const char *source, bool fast, void **error)
{
    char *log = NULL;
    code_t *code = msl_compile(source, fast, &log);
    library_t *library = NULL;
    if (code) {
        library = object_new(&MTLLibrary);
        library->code = code;
    } else if (error) {
        const char *text = log ? log : "the compiler gave no reason";
        *error = object_autorelease(error_new("MTLLibraryErrorDomain", COMPILE_FAILURE, text));
    }
    if (library && error && settings()->warns)
        *error = object_autorelease(
            error_new("MTLLibraryErrorDomain", COMPILE_WARNING, "warning: unused variable"));
    free(log);
    return library;
}

static void *refuse(void **error, unsigned code, const char *text)
{
    if (error) *error = object_autorelease(error_new("MTLLibraryErrorDomain", code, text));
    return NULL;
}

// Apple's compiler is a process of its own, which may go.
static bool compiler_goes(void)
{
    static atomic_uint_fast64_t asked;
    return rule_means(&settings()->xpc, atomic_fetch_add(&asked, 1) + 1);
}

static const char gone[] =
    "Compiler encountered an internal error: XPC_ERROR_CONNECTION_INTERRUPTED";

library_t *library_compile(const char *source, bool fast, void **error)
{
    return compiler_goes() ? refuse(error, INTERNAL, gone) : library_new(source, fast, error);
}

static void *options_new(class_t *self, sel_t cmd)
{
    options_t *options = object_new(&MTLCompileOptions);
    options->fast = true;
    return options;
}

static void options_set_fast(options_t *self, sel_t cmd, bool fast)
{
    self->fast = fast;
}

static method_t options_methods[] = {METHOD("setFastMathEnabled:", options_set_fast), METHODS_END};
class_t MTLCompileOptions = {
    .name = "MTLCompileOptions", .size = sizeof(options_t), .methods = options_methods};

static method_t options_meta_methods[] = {METHOD("new", options_new), METHODS_END};
static class_t options_meta = {.name = "MTLCompileOptions", .methods = options_meta_methods};

static void *descriptor_new(class_t *self, sel_t cmd)
{
    return object_new(&MTLComputePipelineDescriptor);
}

static void descriptor_dealloc(void *self)
{
    object_release(((pipeline_descriptor_t *)self)->function);
}

static void descriptor_set_function(pipeline_descriptor_t *self, sel_t cmd, function_t *function)
{
    object_check(self, cmd, function, &MTLFunction);
    object_release(self->function);
    self->function = object_retain(function);
}

static void descriptor_set_indirect(pipeline_descriptor_t *self, sel_t cmd, bool indirect)
{
    self->indirect = indirect;
}

static method_t descriptor_methods[] = {
    METHOD("setComputeFunction:", descriptor_set_function),
    METHOD("setSupportIndirectCommandBuffers:", descriptor_set_indirect), METHODS_END};
class_t MTLComputePipelineDescriptor = {.name = "MTLComputePipelineDescriptor",
                                        .size = sizeof(pipeline_descriptor_t),
                                        .dealloc = descriptor_dealloc,
                                        .methods = descriptor_methods};

static method_t descriptor_meta_methods[] = {METHOD("new", descriptor_new), METHODS_END};
static class_t descriptor_meta = {.name = "MTLComputePipelineDescriptor",
                                  .methods = descriptor_meta_methods};

void library_add(void)
{
    class_add_meta(&MTLCompileOptions, &options_meta);
    class_add_meta(&MTLComputePipelineDescriptor, &descriptor_meta);
}

static void library_dealloc(void *self)
{
    msl_free(((library_t *)self)->code);
}

static void *library_function(library_t *self, sel_t cmd, string_t *name)
{
    object_check(self, cmd, name, &NSString);
    const entry_t *entry = self->code->entries;
    while (entry && strcmp(entry->name, name->text) != 0) entry = entry->next;
    if (!entry) return NULL;
    function_t *function = object_new(&MTLFunction);
    function->library = object_retain(self);
    function->entry = entry;
    return function;
}

static void *library_names(library_t *self, sel_t cmd)
{
    unsigned long count = 0;
    for (const entry_t *entry = self->code->entries; entry; entry = entry->next) count++;
    void **names = make((count + 1) * sizeof *names);
    count = 0;
    for (const entry_t *entry = self->code->entries; entry; entry = entry->next)
        names[count++] = string_new(entry->name);
    void *array = array_new(names, count);
    while (count) object_release(names[--count]);
    free(names);
    return object_autorelease(array);
}

static method_t library_methods[] = {METHOD_MAY_FAIL("newFunctionWithName:", library_function),
                                     METHOD("functionNames", library_names), METHODS_END};
class_t MTLLibrary = {.name = "MTLLibrary",
                      .size = sizeof(library_t),
                      .dealloc = library_dealloc,
                      .methods = library_methods};

static void function_dealloc(void *self)
{
    object_release(((function_t *)self)->library);
}

static void *function_name(function_t *self, sel_t cmd)
{
    return object_autorelease(string_new(self->entry->name));
}

static unsigned long function_type(function_t *self, sel_t cmd)
{
    return KERNEL;
}

static void *function_encoder(function_t *self, sel_t cmd, unsigned long index)
{
    return argument_encoder_new(self, cmd, self, index);
}

static method_t function_methods[] = {
    METHOD("name", function_name), METHOD("functionType", function_type),
    METHOD_MAY_FAIL("newArgumentEncoderWithBufferIndex:", function_encoder), METHODS_END};
class_t MTLFunction = {.name = "MTLFunction",
                       .size = sizeof(function_t),
                       .dealloc = function_dealloc,
                       .methods = function_methods};

pipeline_t *pipeline_new(function_t *function, void **error)
{
    unsigned long bytes = function->entry->group_bytes;
    char text[128];
    if (compiler_goes()) return refuse(error, INTERNAL, gone);
    snprintf(text, sizeof text,
             "Threadgroup memory size (%lu) exceeds the maximum threadgroup memory allowed (%d)",
             bytes, GROUP_MEMORY);
    if (bytes > GROUP_MEMORY) return refuse(error, COMPILE_FAILURE, text);
    pipeline_t *pipeline = object_new(&MTLComputePipelineState);
    pipeline->function = object_retain(function);
    return pipeline;
}

static void pipeline_dealloc(void *self)
{
    object_release(((pipeline_t *)self)->function);
}

static bool pipeline_indirect(pipeline_t *self, sel_t cmd)
{
    return self->indirect;
}

unsigned long pipeline_threads(const pipeline_t *pipeline)
{
    unsigned long most = pipeline->function->entry->threads;
    unsigned long indirect = settings()->indirect_threads;
    return pipeline->indirect && indirect < most ? indirect : most;
}

static unsigned long pipeline_max_threads(pipeline_t *self, sel_t cmd)
{
    return pipeline_threads(self);
}

static unsigned long pipeline_bytes(pipeline_t *self, sel_t cmd)
{
    return self->function->entry->group_bytes;
}

static unsigned long pipeline_width(pipeline_t *self, sel_t cmd)
{
    return LANES;
}

static method_t pipeline_methods[] = {METHOD("maxTotalThreadsPerThreadgroup", pipeline_max_threads),
                                      METHOD("threadExecutionWidth", pipeline_width),
                                      METHOD("staticThreadgroupMemoryLength", pipeline_bytes),
                                      METHOD("supportIndirectCommandBuffers", pipeline_indirect),
                                      METHODS_END};
class_t MTLComputePipelineState = {.name = "MTLComputePipelineState",
                                   .size = sizeof(pipeline_t),
                                   .dealloc = pipeline_dealloc,
                                   .methods = pipeline_methods};
