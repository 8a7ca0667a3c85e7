// SPDX-License-Identifier: Apache-2.0
#include "drivers/metal/base/messages.h"

#include <dlfcn.h>
#include <stddef.h>

#include "kit/library.h"

enum { HAS_HELPERS = 1 << 25, HAS_SIGNATURE = 1 << 30 };

// Metal on a Mac depends on the others, but need not for ever.
static const char *const others[] = {
    "/usr/lib/libobjc.A.dylib",
    "/System/Library/Frameworks/Foundation.framework/Foundation",
};

static void *find(void *handle, const char *name)
{
    void *symbol = dlsym(handle, name);
    for (size_t i = 0; !symbol && i < sizeof others / sizeof *others; i++) {
        void *other = dlopen(others[i], RTLD_NOW | RTLD_GLOBAL);
        if (other) symbol = dlsym(other, name);
    }
    return symbol;
}

static keel_status_t fill(void *handle, void *table)
{
    metal_api_t *api = table;
    const struct {
        const char *name;
        void **at;
    } symbols[] = {
        {"objc_msgSend", (void **)&api->objc_msgSend},
#if defined(__x86_64__)
        {"objc_msgSend_stret", (void **)&api->objc_msgSend_stret},
#endif
        {"sel_registerName", (void **)&api->sel_registerName},
        {"objc_getClass", (void **)&api->objc_getClass},
        {"objc_autoreleasePoolPush", (void **)&api->objc_autoreleasePoolPush},
        {"objc_autoreleasePoolPop", (void **)&api->objc_autoreleasePoolPop},
        {"MTLCreateSystemDefaultDevice", (void **)&api->MTLCreateSystemDefaultDevice},
        {"_NSConcreteStackBlock", &api->stack_block},
    };
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        *symbols[i].at = find(handle, symbols[i].name);
        if (!*symbols[i].at)
            return KEEL_ERROR(KEEL_UNSUPPORTED, "Metal has no %s: it is not one for plain C",
                              symbols[i].name);
    }
    *(void **)&api->MTLCopyAllDevices = find(handle, "MTLCopyAllDevices");
    *(void **)&api->dispatch_data_create = find(handle, "dispatch_data_create");
    *(void **)&api->dispatch_release = find(handle, "dispatch_release");
    api->string_class = api->objc_getClass("NSString");
    api->options_class = api->objc_getClass("MTLCompileOptions");
    if (!api->options_class)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "there is no class MTLCompileOptions");
    if (!api->string_class)
        return KEEL_ERROR(KEEL_UNSUPPORTED, "there is no class NSString: Foundation is not loaded");
#define X(result, name, receiver, selector, parameters, arguments)                                 \
    api->selectors.name = api->sel_registerName(selector);
#define LARGE X
#include "drivers/metal/base/selectors.def"
#undef LARGE
#undef X
    return NULL;
}

static library_kind_t kind = {
    .name = "Metal",
    .files = {"/System/Library/Frameworks/Metal.framework/Metal"},
    .size = sizeof(metal_api_t),
    .fill = fill,
};

keel_status_t metal_open(const char *path, const metal_api_t **api)
{
    const void *table;
    KEEL_TRY(library_open(&kind, path, &table));
    *api = table;
    return NULL;
}

// What the runtime of blocks wants to know.
typedef struct shape_t {
    unsigned long reserved, size;
    const char *signature;
} shape_t;

metal_block_t metal_block(const metal_api_t *api, void (*invoke)(metal_block_t *, id), void *user)
{
    static const shape_t shape = {0, sizeof(metal_block_t), "v16@?0@8"};
    return (metal_block_t){api->stack_block,       HAS_SIGNATURE, 0,
                           (void (*)(void))invoke, &shape,        user};
}

metal_block_t metal_block_freeing(const metal_api_t *api,
                                  void (*invoke)(metal_block_t *, void *, unsigned long),
                                  void *user)
{
    static const shape_t shape = {0, sizeof(metal_block_t), "v24@?0^v8Q16"};
    return (metal_block_t){api->stack_block,       HAS_SIGNATURE, 0,
                           (void (*)(void))invoke, &shape,        user};
}

metal_block_t metal_block_noting(const metal_api_t *api,
                                 void (*invoke)(metal_block_t *, id, uint64_t),
                                 const metal_noting_t *shape, void *user)
{
    return (metal_block_t){
        api->stack_block, HAS_HELPERS | HAS_SIGNATURE, 0, (void (*)(void))invoke, shape, user};
}

const char *metal_text(const metal_api_t *api, id error)
{
    const char *text = mtl_utf8(api, mtl_description(api, error));
    return text ? text : "Metal gives no reason";
}
