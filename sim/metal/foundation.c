// SPDX-License-Identifier: Apache-2.0
#include "metal/foundation.h"

#include <stdlib.h>
#include <string.h>

string_t *string_new(const char *text)
{
    string_t *string = object_new(&NSString);
    string->text = strdup(text);
    return string;
}

static void string_dealloc(void *self)
{
    free(((string_t *)self)->text);
}

static const char *string_utf8(string_t *self, sel_t cmd)
{
    return self->text;
}

static void *string_with_utf8(class_t *self, sel_t cmd, const char *text)
{
    if (!text) misuse(self, cmd, "NULL where a text must be");
    return object_autorelease(string_new(text));
}

static method_t string_methods[] = {METHOD("UTF8String", string_utf8), METHODS_END};
class_t NSString = {.name = "NSString",
                    .size = sizeof(string_t),
                    .dealloc = string_dealloc,
                    .methods = string_methods};

static method_t string_meta_methods[] = {METHOD("stringWithUTF8String:", string_with_utf8),
                                         METHODS_END};
static class_t string_meta = {.name = "NSString", .methods = string_meta_methods};

typedef struct error_t {
    object_t object;
    string_t *domain, *text; // retained
    long code;
} error_t;

void *error_new(const char *domain, long code, const char *text)
{
    error_t *error = object_new(&NSError);
    error->domain = string_new(domain);
    error->text = string_new(text);
    error->code = code;
    return error;
}

static void error_dealloc(void *self)
{
    error_t *error = self;
    object_release(error->domain);
    object_release(error->text);
}

static long error_code(error_t *self, sel_t cmd)
{
    return self->code;
}

static void *error_domain(error_t *self, sel_t cmd)
{
    return object_autorelease(object_retain(self->domain));
}

static void *error_text(error_t *self, sel_t cmd)
{
    return object_autorelease(object_retain(self->text));
}

static method_t error_methods[] = {METHOD("code", error_code), METHOD("domain", error_domain),
                                   METHOD("localizedDescription", error_text), METHODS_END};
class_t NSError = {
    .name = "NSError", .size = sizeof(error_t), .dealloc = error_dealloc, .methods = error_methods};

typedef struct array_t {
    object_t object;
    void **objects; // owned; each retained
    unsigned long count;
} array_t;

void *array_new(void *const *objects, unsigned long count)
{
    array_t *array = object_new(&NSArray);
    array->objects = make((count + 1) * sizeof(void *));
    array->count = count;
    for (unsigned long i = 0; i < count; i++) array->objects[i] = object_retain(objects[i]);
    return array;
}

static void array_dealloc(void *self)
{
    array_t *array = self;
    for (unsigned long i = 0; i < array->count; i++) object_release(array->objects[i]);
    free(array->objects);
}

static unsigned long array_count(array_t *self, sel_t cmd)
{
    return self->count;
}

static void *array_at(array_t *self, sel_t cmd, unsigned long index)
{
    if (index >= self->count)
        misuse(self, cmd, "index %lu beyond bounds: it has %lu", index, self->count);
    return self->objects[index];
}

static method_t array_methods[] = {METHOD("count", array_count), METHOD("objectAtIndex:", array_at),
                                   METHODS_END};
class_t NSArray = {
    .name = "NSArray", .size = sizeof(array_t), .dealloc = array_dealloc, .methods = array_methods};

void foundation_add(void)
{
    class_add(&NSObject);
    class_add_meta(&NSString, &string_meta);
    class_add(&NSError);
    class_add(&NSArray);
}
