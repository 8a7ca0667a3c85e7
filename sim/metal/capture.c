// SPDX-License-Identifier: Apache-2.0
// MTLCaptureManager and MTLCaptureScope: where a debugger may begin and end to record. Nothing is.
#include "metal/classes.h"
#include "metal/queue.h"

typedef struct scope_t {
    object_t object;
    queue_t *queue; // retained
    void *label;    // retained
    atomic_bool open;
} scope_t;

static class_t MTLCaptureManager, MTLCaptureScope;

static void *manager_shared(class_t *self, sel_t cmd)
{
    static object_t manager = {.isa = &MTLCaptureManager, .count = 1, .holds = 1};
    return &manager;
}

static void *manager_scope(void *self, sel_t cmd, void *queue)
{
    object_check(self, cmd, queue, &MTLCommandQueue);
    scope_t *scope = object_new(&MTLCaptureScope);
    scope->queue = object_retain(queue);
    return scope;
}

static void scope_dealloc(void *self)
{
    scope_t *scope = self;
    if (scope->open) die("a capture scope was released before endScope");
    object_release(scope->queue);
    object_release(scope->label);
}

static void scope_label(scope_t *self, sel_t cmd, void *label)
{
    object_check(self, cmd, label, &NSString);
    object_release(self->label);
    self->label = object_retain(label);
}

static void scope_begin(scope_t *self, sel_t cmd)
{
    if (atomic_exchange(&self->open, true)) misuse(self, cmd, "the scope has begun already");
}

static void scope_end(scope_t *self, sel_t cmd)
{
    if (!atomic_exchange(&self->open, false)) misuse(self, cmd, "the scope has not begun");
}

static class_t MTLCaptureManager = {
    .name = "MTLCaptureManager",
    .size = sizeof(object_t),
    .methods = (method_t[]){METHOD_MAY_FAIL("newCaptureScopeWithCommandQueue:", manager_scope),
                            METHODS_END}};
static class_t manager_meta = {
    .name = "MTLCaptureManager",
    .methods = (method_t[]){METHOD("sharedCaptureManager", manager_shared), METHODS_END}};
static class_t MTLCaptureScope = {
    .name = "MTLCaptureScope",
    .size = sizeof(scope_t),
    .dealloc = scope_dealloc,
    .methods = (method_t[]){METHOD("setLabel:", scope_label), METHOD("beginScope", scope_begin),
                            METHOD("endScope", scope_end), METHODS_END}};

void capture_add(void)
{
    class_add_meta(&MTLCaptureManager, &manager_meta);
    class_add(&MTLCaptureScope);
}
