// SPDX-License-Identifier: Apache-2.0
// Objects, classes, selectors and messages: as much of Objective-C's runtime as plain C calls need.
//
// An object has two counts. `count` is what retain and release change: at zero the object is dead,
// and gives up what it owns. `holds` are ours: at zero the memory goes. So a message to a dead
// object, and a command buffer that uses one, are noticed and named.
#ifndef SIM_METAL_RUNTIME_H_
#define SIM_METAL_RUNTIME_H_

#include "metal/base.h"

#include <stdatomic.h>

#define EXPORT __attribute__((visibility("default")))

typedef const struct selector_t *sel_t;
typedef void (*imp_t)(void);
typedef struct class_t class_t;
typedef struct object_t object_t;

// nil is an answer that the caller must expect: `fail=` makes it.
enum { METHOD_NIL = 1 };

typedef struct method_t {
    const char *name;
    imp_t imp; // takes the receiver, the selector and what the selector says
    unsigned flags;
    sel_t selector; // set when the class is made known
} method_t;

struct object_t {
    class_t *isa;
    atomic_uint count;
    atomic_uint holds;
};

// An object itself, which never dies. Its own methods (alloc, stringWith...) are those of `isa`.
struct class_t {
    object_t object;
    const char *name;
    size_t size;                 // of an instance
    void (*dealloc)(void *self); // gives up what the object owns; may be NULL
    method_t *methods;           // ends with a name of NULL
    atomic_uint live;
    class_t *next;
};

#define METHOD(text, function)          {text, (imp_t)(function), 0, NULL}
#define METHOD_MAY_FAIL(text, function) {text, (imp_t)(function), METHOD_NIL, NULL}
#define METHODS_END                     {NULL, NULL, 0, NULL}

// Makes a class known, and its methods' selectors; once for each class.
void class_add(class_t *class);
// What class methods are in: a class whose only instance is `class`.
void class_add_meta(class_t *class, class_t *meta);

// A new object, count 1. Fields after object_t are zero.
void *object_new(class_t *class);
void *object_retain(void *object); // NULL is fine, here and below
void object_release(void *object);
void *
object_autorelease(void *object); // to the innermost pool of this thread; dies if there is none
void object_hold(void *object);   // keeps the memory, not the life
void object_drop(void *object);
bool object_is_dead(const void *object);
// Ends the process unless the argument of a message is a live object of this class.
void object_check(const void *self, sel_t cmd, const void *argument, const class_t *class);

// Ends the process: the message was sent when it must not be, or with what it must not have.
_Noreturn void misuse(const void *self, sel_t cmd, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// How many messages were sent, and how many objects live. For tests.
EXPORT uint64_t simMetalMessages(void);
EXPORT uint64_t simMetalSent(const char *selector); // of that one
// Calls this once, on the thread that sends this message next, before anything comes of it.
EXPORT void simMetalWhen(const char *selector, void (*call)(void));
// Whether instances of the class of that name have the method, or the class itself has.
EXPORT bool simMetalUnderstands(const char *class, const char *selector);
EXPORT unsigned simMetalObjects(const char *class); // NULL: of all classes

// What programs open by name.
EXPORT void objc_msgSend(void);
#if defined(__x86_64__)
EXPORT void objc_msgSend_stret(void);
#endif
EXPORT sel_t sel_registerName(const char *name);
EXPORT const char *sel_getName(sel_t selector);
EXPORT void *objc_getClass(const char *name);
EXPORT void *objc_autoreleasePoolPush(void);
EXPORT void objc_autoreleasePoolPop(void *pool);

// Whether all devices are lost.
bool runtime_lost(void);

#endif
