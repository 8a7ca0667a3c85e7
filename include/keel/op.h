// SPDX-License-Identifier: Apache-2.0
// Operations are data: plain records that are submitted to a queue (queue.h) or kept in a recording
// (recording.h).
//
// Operations of one list may run in any order and at the same time, until a barrier: what follows a
// keel_op_barrier starts when all before it has ended and sees what that wrote. All pointers in a
// record are borrowed for the call it is passed to: constants, update data, bindings and names are
// copied, objects retained.
//
// Where each may be used:
//     submissions and recordings   fill update copy dispatch timestamp barrier group
//     submissions                  alloca dealloca read write execute host_call
//     recordings                   event_set event_wait if else while switch case end
#ifndef KEEL_OP_H_
#define KEEL_OP_H_

#include <keel/executable.h>
#include <keel/file.h>
#include <keel/semaphore.h>

typedef struct keel_recording_t keel_recording_t;
typedef struct keel_host_call_t keel_host_call_t;

// A range of a buffer. In a recording, `buffer` may be NULL; then it is the buffer in slot `slot`
// of the binding table that the recording is executed with, and `offset` counts from where the
// table's entry begins.
typedef struct keel_ref_t {
    keel_buffer_t *buffer;
    uint64_t offset;
    uint64_t length; // KEEL_WHOLE: all that follows offset
    uint32_t slot;
} keel_ref_t;

typedef struct keel_refs_t {
    const keel_ref_t *refs;
    size_t count;
} keel_refs_t;

// Numbers of workgroups, or of work-items in one.
typedef struct keel_groups_t {
    uint32_t x, y, z;
} keel_groups_t;

typedef enum keel_op_kind_t {
    KEEL_OP_BARRIER,
    KEEL_OP_FILL,
    KEEL_OP_UPDATE,
    KEEL_OP_COPY,
    KEEL_OP_DISPATCH,
    KEEL_OP_TIMESTAMP,
    KEEL_OP_GROUP_BEGIN,
    KEEL_OP_GROUP_END,
    KEEL_OP_ALLOCA,
    KEEL_OP_DEALLOCA,
    KEEL_OP_READ,
    KEEL_OP_WRITE,
    KEEL_OP_EXECUTE,
    KEEL_OP_HOST_CALL,
    KEEL_OP_EVENT_SET,
    KEEL_OP_EVENT_WAIT,
    KEEL_OP_IF,
    KEEL_OP_ELSE,
    KEEL_OP_WHILE,
    KEEL_OP_SWITCH,
    KEEL_OP_CASE,
    KEEL_OP_END,
} keel_op_kind_t;

// Writes a pattern of 1, 2 or 4 bytes (the low ones of `pattern`) over the target. The length must
// be a multiple of the pattern's size; the offset may be anything.
typedef struct keel_fill_t {
    keel_ref_t target;
    uint32_t pattern;
    uint32_t pattern_size;
} keel_fill_t;

// Writes `data`, taken when the record is submitted or recorded, over the target.
typedef struct keel_update_t {
    keel_ref_t target;
    const void *data;
} keel_update_t;

// Ranges of equal length that do not overlap.
typedef struct keel_copy_t {
    keel_ref_t source;
    keel_ref_t target;
} keel_copy_t;

typedef enum keel_counts_t {
    KEEL_COUNTS_DIRECT,  // `groups`
    KEEL_COUNTS_STATIC,  // three uint32_t at `counts`, final once the submission's waits are
                         // satisfied
    KEEL_COUNTS_DYNAMIC, // the same, written by earlier commands of the same list, before a barrier
} keel_counts_t;

// Into a raw argument block: the device address of `ref`, 8 bytes at `offset`.
typedef struct keel_patch_t {
    uint32_t offset;
    keel_ref_t ref;
} keel_patch_t;

// Runs an entry point over a grid of workgroups; a grid with a zero in it does nothing.
//
// Arguments are constants and bindings, as many bytes and as many bindings as the entry point
// declares. Kernels made elsewhere take `raw` instead (keel_entry_info_t says so): the `constants`
// are the whole argument block, and `patches` say where addresses go.
typedef struct keel_dispatch_t {
    keel_entry_t entry;
    keel_groups_t groups;
    keel_counts_t counts_kind;
    keel_ref_t counts;
    keel_groups_t group_size; // 0: the entry point's own (else KEEL_CAP_GROUP_SIZE)
    uint32_t local_memory;    // bytes of workgroup memory on top of the entry point's
    const void *constants;
    uint32_t constant_size;
    bool raw;
    keel_refs_t bindings;
    const keel_patch_t *patches;
    size_t patch_count;
} keel_dispatch_t;

// Writes the device's clock (uint64_t, ns) once all before the last barrier has ended.
typedef struct keel_timestamp_t {
    keel_ref_t target; // 8 bytes, aligned to 8
} keel_timestamp_t;

// Gives memory to a reserved buffer, or takes it.
typedef struct keel_alloca_t {
    keel_buffer_t *buffer;
} keel_alloca_t;

// Between a file and a buffer. Reading beyond the end of a file fails.
typedef struct keel_transfer_t {
    keel_file_t *file;
    uint64_t file_offset;
    keel_ref_t ref;
} keel_transfer_t;

// Runs a recording. `bindings` is its binding table.
typedef struct keel_execute_t {
    keel_recording_t *recording;
    keel_refs_t bindings;
} keel_execute_t;

// Calls into the application from a thread of the library. The operation ends when `fn` returns,
// and fails if it returns an error; unless `fn` called keel_call_defer, which puts the end off
// until keel_call_complete. It may use all of Keel but must not block for long: it holds a worker,
// or the other calls of its queue, so it must not wait for these.
typedef keel_status_t (*keel_host_fn)(void *user, keel_host_call_t *call);

typedef struct keel_call_t {
    keel_host_fn fn;
    void *user;
    bool detached; // the operation does not wait for `fn`, which gets NULL for its call; an error
                   // is only logged
} keel_call_t;

// Names what follows, up to the matching end, in errors and traces. Groups nest and do not order.
typedef struct keel_group_t {
    const char *name;
} keel_group_t;

// A split barrier: what follows the wait of an event starts after all that came before its set.
// Each event is set once and before it is waited for; both lie in the same block.
typedef struct keel_event_t {
    uint32_t event;
} keel_event_t;

// Control flow on a uint32_t in a buffer, read when the device gets there. Blocks nest, and their
// beginning, their end and each else and case are barriers.
//     if value ... [else ...] end
//     while value ... end
//     switch value case 0 ... case 1 ... end
typedef struct keel_branch_t {
    keel_ref_t value;        // 4 bytes, aligned to 4
    uint32_t match;          // case: the value it is for
    uint32_t max_iterations; // while: fail with KEEL_RESOURCE_EXHAUSTED beyond; 0: none
} keel_branch_t;

typedef struct keel_op_t {
    keel_op_kind_t kind;
    union {
        keel_fill_t fill;
        keel_update_t update;
        keel_copy_t copy;
        keel_dispatch_t dispatch;
        keel_timestamp_t timestamp;
        keel_alloca_t alloca_;
        keel_transfer_t transfer;
        keel_execute_t execute;
        keel_call_t call;
        keel_group_t group;
        keel_event_t event;
        keel_branch_t branch;
    } as;
} keel_op_t;

KEEL_EXTERN_C_BEGIN

// In a host call: the operation ends later, by keel_call_complete. Call at most once, before `fn`
// returns; `fn` then returns NULL.
KEEL_API void keel_call_defer(keel_host_call_t *call);
// Ends a deferred call, from any thread: exactly once. `status` is consumed; an error fails the
// operation.
KEEL_API void keel_call_complete(keel_host_call_t *call, keel_status_t status);

KEEL_EXTERN_C_END

static inline keel_ref_t keel_span(keel_buffer_t *buffer, uint64_t offset, uint64_t length)
{
    keel_ref_t ref = {buffer, offset, length, 0};
    return ref;
}

static inline keel_ref_t keel_whole(keel_buffer_t *buffer)
{
    return keel_span(buffer, 0, KEEL_WHOLE);
}

static inline keel_ref_t keel_slot(uint32_t slot, uint64_t offset, uint64_t length)
{
    keel_ref_t ref = {NULL, offset, length, slot};
    return ref;
}

static inline keel_refs_t keel_refs(const keel_ref_t *refs, size_t count)
{
    keel_refs_t list = {refs, count};
    return list;
}

static inline keel_groups_t keel_groups(uint32_t x, uint32_t y, uint32_t z)
{
    keel_groups_t groups = {x, y, z};
    return groups;
}

#define KEEL_NO_BINDINGS keel_refs(NULL, 0)

#ifndef __cplusplus
static inline keel_ref_t keel_ref_same(keel_ref_t ref)
{
    return ref;
}

// A buffer or a range as a range.
#define KEEL_REF(x) _Generic((x), keel_buffer_t *: keel_whole, keel_ref_t: keel_ref_same)(x)

// Up to eight bindings written in place, buffers and ranges mixed: KEEL_BIND(x, keel_span(y, 0,
// 64), keel_slot(1, 0, KEEL_WHOLE)).
#define KEEL_BIND(...)                                                                             \
    keel_refs(                                                                                     \
        (const keel_ref_t[]){KEEL_BIND_N_(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1)(__VA_ARGS__)},      \
        sizeof((const keel_ref_t[]){                                                               \
            KEEL_BIND_N_(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1)(__VA_ARGS__)}) /                     \
            sizeof(keel_ref_t))
#define KEEL_BIND_N_(a, b, c, d, e, f, g, h, n, ...) KEEL_BIND_##n##_
#define KEEL_BIND_1_(a)                              KEEL_REF(a)
#define KEEL_BIND_2_(a, ...)                         KEEL_REF(a), KEEL_BIND_1_(__VA_ARGS__)
#define KEEL_BIND_3_(a, ...)                         KEEL_REF(a), KEEL_BIND_2_(__VA_ARGS__)
#define KEEL_BIND_4_(a, ...)                         KEEL_REF(a), KEEL_BIND_3_(__VA_ARGS__)
#define KEEL_BIND_5_(a, ...)                         KEEL_REF(a), KEEL_BIND_4_(__VA_ARGS__)
#define KEEL_BIND_6_(a, ...)                         KEEL_REF(a), KEEL_BIND_5_(__VA_ARGS__)
#define KEEL_BIND_7_(a, ...)                         KEEL_REF(a), KEEL_BIND_6_(__VA_ARGS__)
#define KEEL_BIND_8_(a, ...)                         KEEL_REF(a), KEEL_BIND_7_(__VA_ARGS__)
#endif

// Leaves all but the kind to the caller, who writes only what belongs to it: records are large, and
// most of their fields are another kind's.
static inline keel_op_t keel_op_(keel_op_kind_t kind)
{
    keel_op_t op;
    op.kind = kind;
    return op;
}

static inline keel_op_t keel_op_barrier(void)
{
    return keel_op_(KEEL_OP_BARRIER);
}

static inline keel_op_t keel_op_fill(keel_ref_t target, uint32_t pattern, uint32_t pattern_size)
{
    keel_op_t op = keel_op_(KEEL_OP_FILL);
    op.as.fill.target = target;
    op.as.fill.pattern = pattern;
    op.as.fill.pattern_size = pattern_size;
    return op;
}

static inline keel_op_t keel_op_update(keel_buffer_t *target, uint64_t offset, const void *data,
                                       uint64_t length)
{
    keel_op_t op = keel_op_(KEEL_OP_UPDATE);
    op.as.update.target = keel_span(target, offset, length);
    op.as.update.data = data;
    return op;
}

static inline keel_op_t keel_op_copy(keel_ref_t source, keel_ref_t target)
{
    keel_op_t op = keel_op_(KEEL_OP_COPY);
    op.as.copy.source = source;
    op.as.copy.target = target;
    return op;
}

static inline keel_op_t keel_op_dispatch(keel_entry_t entry, keel_groups_t groups,
                                         const void *constants, size_t constant_size,
                                         keel_refs_t bindings)
{
    keel_op_t op;
    keel_dispatch_t *d = &op.as.dispatch; // in place: copying it costs as much as recording it
    op.kind = KEEL_OP_DISPATCH;
    d->entry = entry;
    d->groups = groups;
    d->counts_kind = KEEL_COUNTS_DIRECT;
    d->counts = keel_span(NULL, 0, 0);
    d->group_size = keel_groups(0, 0, 0);
    d->local_memory = 0;
    d->constants = constants;
    d->constant_size = (uint32_t)constant_size;
    d->raw = false;
    d->bindings = bindings;
    d->patches = NULL;
    d->patch_count = 0;
    return op;
}

// As above, the grid's size being read from `counts`.
static inline keel_op_t keel_op_indirect(keel_op_t dispatch, keel_counts_t kind, keel_ref_t counts)
{
    dispatch.as.dispatch.counts_kind = kind;
    dispatch.as.dispatch.counts = counts;
    return dispatch;
}

static inline keel_op_t keel_op_timestamp(keel_buffer_t *target, uint64_t offset)
{
    keel_op_t op = keel_op_(KEEL_OP_TIMESTAMP);
    op.as.timestamp.target = keel_span(target, offset, 8);
    return op;
}

static inline keel_op_t keel_op_group_begin(const char *name)
{
    keel_op_t op = keel_op_(KEEL_OP_GROUP_BEGIN);
    op.as.group.name = name;
    return op;
}

static inline keel_op_t keel_op_group_end(void)
{
    return keel_op_(KEEL_OP_GROUP_END);
}

static inline keel_op_t keel_op_alloca(keel_buffer_t *buffer)
{
    keel_op_t op = keel_op_(KEEL_OP_ALLOCA);
    op.as.alloca_.buffer = buffer;
    return op;
}

static inline keel_op_t keel_op_dealloca(keel_buffer_t *buffer)
{
    keel_op_t op = keel_op_(KEEL_OP_DEALLOCA);
    op.as.alloca_.buffer = buffer;
    return op;
}

static inline keel_op_t keel_op_read(keel_file_t *file, uint64_t file_offset, keel_ref_t target)
{
    keel_op_t op = keel_op_(KEEL_OP_READ);
    op.as.transfer.file = file;
    op.as.transfer.file_offset = file_offset;
    op.as.transfer.ref = target;
    return op;
}

static inline keel_op_t keel_op_write(keel_ref_t source, keel_file_t *file, uint64_t file_offset)
{
    keel_op_t op = keel_op_read(file, file_offset, source);
    op.kind = KEEL_OP_WRITE;
    return op;
}

static inline keel_op_t keel_op_execute(keel_recording_t *recording, keel_refs_t bindings)
{
    keel_op_t op = keel_op_(KEEL_OP_EXECUTE);
    op.as.execute.recording = recording;
    op.as.execute.bindings = bindings;
    return op;
}

static inline keel_op_t keel_op_host_call(keel_host_fn fn, void *user)
{
    keel_op_t op = keel_op_(KEEL_OP_HOST_CALL);
    keel_call_t call = {fn, user, false};
    op.as.call = call;
    return op;
}

static inline keel_op_t keel_op_event_(keel_op_kind_t kind, uint32_t event)
{
    keel_op_t op = keel_op_(kind);
    op.as.event.event = event;
    return op;
}

static inline keel_op_t keel_op_event_set(uint32_t event)
{
    return keel_op_event_(KEEL_OP_EVENT_SET, event);
}

static inline keel_op_t keel_op_event_wait(uint32_t event)
{
    return keel_op_event_(KEEL_OP_EVENT_WAIT, event);
}

static inline keel_op_t keel_op_branch_(keel_op_kind_t kind, keel_ref_t value, uint32_t match)
{
    keel_op_t op = keel_op_(kind);
    keel_branch_t branch = {value, match, 0};
    op.as.branch = branch;
    return op;
}

static inline keel_op_t keel_op_if(keel_ref_t value)
{
    return keel_op_branch_(KEEL_OP_IF, value, 0);
}

static inline keel_op_t keel_op_else(void)
{
    return keel_op_(KEEL_OP_ELSE);
}

static inline keel_op_t keel_op_while(keel_ref_t value)
{
    return keel_op_branch_(KEEL_OP_WHILE, value, 0);
}

static inline keel_op_t keel_op_switch(keel_ref_t value)
{
    return keel_op_branch_(KEEL_OP_SWITCH, value, 0);
}

static inline keel_op_t keel_op_case(uint32_t match)
{
    return keel_op_branch_(KEEL_OP_CASE, keel_slot(0, 0, 4), match);
}

static inline keel_op_t keel_op_end(void)
{
    return keel_op_(KEEL_OP_END);
}

#endif
