// SPDX-License-Identifier: Apache-2.0
// Metal from plain C: Objective-C's runtime and Metal are opened when they are first asked for, and
// each row of selectors.def is a function that sends that message.
//
//     id buffer = mtl_new_buffer(api, device, length, METAL_SHARED);
//     ...
//     mtl_release(api, buffer);
//
// Messages whose name begins with "new" return an object that is the caller's. All others return
// one that belongs to the innermost pool of the thread (metal_enter): the caller retains what it
// keeps. A message to nil does nothing and answers 0.
#ifndef KEEL_SRC_DRIVERS_METAL_BASE_MESSAGES_H_
#define KEEL_SRC_DRIVERS_METAL_BASE_MESSAGES_H_

#include <keel/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct objc_object *id;
typedef struct objc_selector *SEL;

typedef struct metal_size_t {
    unsigned long width, height, depth;
} metal_size_t;

typedef struct metal_range_t {
    unsigned long location, length;
} metal_range_t;

// Numbers of Metal's enumerations.
enum {
    METAL_SHARED = 0 << 4,    // MTLResourceStorageModeShared
    METAL_MANAGED = 1 << 4,   // and Managed
    METAL_PRIVATE = 2 << 4,   // and Private
    METAL_UNTRACKED = 1 << 8, // MTLResourceHazardTrackingModeUntracked
    METAL_SERIAL = 0,         // MTLDispatchTypeSerial
    METAL_CONCURRENT = 1,     // and Concurrent
    METAL_APPLE_1 = 1001,     // MTLGPUFamilyApple1, which all of Apple's GPUs have
    METAL_SCOPE_BUFFERS = 1,  // MTLBarrierScopeBuffers
    METAL_READ = 1,
    METAL_WRITE = 2,               // MTLResourceUsage
    METAL_COMMAND_BUFFER_ERROR = 5 // MTLCommandBufferStatusError
};

// A block of the program's, which carries one pointer. Metal copies it. Its shape tells what it
// takes, as listeners want it.
typedef struct metal_block_t {
    void *isa;
    int flags, reserved;
    void (*invoke)(void); // takes the block, and then what the shape says
    const void *shape;
    void *user;
} metal_block_t;

typedef struct metal_api_t {
    void (*objc_msgSend)(void);
    void (*objc_msgSend_stret)(void); // on x86-64
    SEL (*sel_registerName)(const char *name);
    id (*objc_getClass)(const char *name);
    void *(*objc_autoreleasePoolPush)(void);
    void (*objc_autoreleasePoolPop)(void *pool);
    id (*MTLCopyAllDevices)(void); // NULL: iOS before 18
    id (*MTLCreateSystemDefaultDevice)(void);
    // What libraries are made of; NULL where the system has none, as the next.
    id (*dispatch_data_create)(const void *bytes, size_t size, void *queue, void *destructor);
    void (*dispatch_release)(id object);
    void *stack_block;              // _NSConcreteStackBlock
    id string_class, options_class; // NSString, MTLCompileOptions
    struct {
#define X(result, name, receiver, selector, parameters, arguments) SEL name;
#define LARGE                                                      X
#include "drivers/metal/base/selectors.def"
#undef LARGE
#undef X
    } selectors;
} metal_api_t;

// The library at `path`, or where the system keeps Metal (NULL). KEEL_NOT_FOUND if there is none.
keel_status_t metal_open(const char *path, const metal_api_t **api) KEEL_MUST_USE;

// Around all messages of a call: what was autoreleased goes. Every thread needs one.
static inline void *metal_enter(const metal_api_t *api)
{
    return api->objc_autoreleasePoolPush();
}

static inline void metal_leave(const metal_api_t *api, void *pool)
{
    api->objc_autoreleasePoolPop(pool);
}

// A block that calls `invoke` with a command buffer, for as long as the caller's scope lasts.
metal_block_t metal_block(const metal_api_t *api, void (*invoke)(metal_block_t *, id), void *user);
// The same, with memory that Metal needs no more, and its length.
metal_block_t metal_block_freeing(const metal_api_t *api,
                                  void (*invoke)(metal_block_t *, void *, unsigned long),
                                  void *user);

// The same, with an event and its value. The runtime calls `keep` for each copy of the block that
// it makes, and `drop` before it frees one.
typedef struct metal_noting_t {
    unsigned long reserved, size;
    void (*keep)(metal_block_t *to, const metal_block_t *from);
    void (*drop)(metal_block_t *block);
    const char *signature;
} metal_noting_t;
#define METAL_NOTING(keep, drop) {0, sizeof(metal_block_t), keep, drop, "v24@?0@8Q16"}
metal_block_t metal_block_noting(const metal_api_t *api,
                                 void (*invoke)(metal_block_t *, id, uint64_t),
                                 const metal_noting_t *shape, void *user);

// What an NSError says, in the words of its author. Within a pool, whose memory it is.
const char *metal_text(const metal_api_t *api, id error);

#define METAL_UNWRAP(...) __VA_ARGS__
#define METAL_SEND(function, result, name, parameters, arguments)                                  \
    static inline result mtl_##name(const metal_api_t *api, id self METAL_UNWRAP parameters)       \
    {                                                                                              \
        return ((result(*)(id, SEL METAL_UNWRAP parameters))api->function)(                        \
            self, api->selectors.name METAL_UNWRAP arguments);                                     \
    }
#define X(result, name, receiver, selector, parameters, arguments)                                 \
    METAL_SEND(objc_msgSend, result, name, parameters, arguments)
#if defined(__x86_64__)
#define LARGE(result, name, receiver, selector, parameters, arguments)                             \
    METAL_SEND(objc_msgSend_stret, result, name, parameters, arguments)
#else
#define LARGE X
#endif
#include "drivers/metal/base/selectors.def"
#undef LARGE
#undef X

#endif
