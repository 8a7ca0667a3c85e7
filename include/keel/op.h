// SPDX-License-Identifier: Apache-2.0
// Operations are data: plain records that are submitted to a queue (queue.h) or kept in a recording
// (recording.h). The functions keel_op_... below make them; their comments are the contract.
//
// Order. Operations of one list may run in any order and at the same time, up to a barrier. What
// follows a keel_op_barrier starts when all before it has ended, and sees what that wrote.
//
// Ownership. The pointers in a record are borrowed until the call that takes the record returns
// (keel_queue_submit, keel_recording_add). That call copies constants, update data, lists and
// names, and retains objects.
//
// Checks. That call also checks the record. What can be known then is an error of that call; what
// shows only when the work runs fails the submission. Unless an operation says otherwise,
//     KEEL_INVALID_ARGUMENT   a buffer is NULL, or an object belongs to another device (copies may
//                             have one side there)
//     KEEL_OUT_OF_RANGE       a range does not lie within its buffer
//     KEEL_PERMISSION_DENIED  a buffer lacks the usage or the access that the operation needs
// and, when the work runs,
//     KEEL_FAILED_PRECONDITION  a buffer has no memory: its alloca has not run, or its dealloca has
//
// Where each operation may be used; elsewhere it is KEEL_INVALID_ARGUMENT:
//     submissions and recordings   fill update copy dispatch timestamp barrier group
//     submissions                  alloca dealloca read write execute host_call
//     recordings                   event_set event_wait if else while switch case end
// A transfer queue takes neither dispatch nor execute (KEEL_UNSUPPORTED).
//
// The functions of this header only fill in records: any thread may call them, they never fail and
// allocate nothing.
//
//     keel_op_t ops[] = {
//         keel_op_update(keel_span(x, 0, n * 4), host_x), // these two may run at the same time
//         keel_op_fill(keel_whole(y), 0, 4),
//         keel_op_barrier(),
//         keel_op_dispatch(saxpy, keel_groups(n / 64, 1, 1), &k, sizeof k, KEEL_BIND(x, y)),
//         keel_op_barrier(),
//         keel_op_copy(keel_whole(y), keel_whole(host_y)),
//     };
//     KEEL_TRY(keel_queue_submit(queue, KEEL_AFTER(ready), ops, 6, KEEL_NO_SIGNALS, &done));
#ifndef KEEL_OP_H_
#define KEEL_OP_H_

#include <keel/executable.h>
#include <keel/file.h>
#include <keel/semaphore.h>

typedef struct keel_recording_t keel_recording_t;
typedef struct keel_host_call_t keel_host_call_t;

// A range of a buffer, which is borrowed. In a recording `buffer` may be NULL. Then the range is
// one of the buffer in slot `slot` of the binding table that the recording is executed with, and
// `offset` counts from where the table's entry begins. Or, with KEEL_PARAMETERS as the slot, it is
// a range of the parameters of the execution (keel_parameter).
typedef struct keel_ref_t {
    keel_buffer_t *buffer; // NULL: a slot
    uint64_t offset;       // bytes
    uint64_t length;       // bytes; KEEL_WHOLE: everything from `offset` to the end
    uint32_t slot;         // counts if `buffer` is NULL
} keel_ref_t;

// The slot of a range of parameters.
#define KEEL_PARAMETERS UINT32_MAX

// A list of ranges: the bindings of a dispatch, or the binding table of an execution. Borrowed
// until the call that takes the record returns.
typedef struct keel_refs_t {
    const keel_ref_t *refs; // may be NULL if count is 0
    size_t count;
} keel_refs_t;

// A number of workgroups in each dimension, or of work-items in a workgroup.
typedef struct keel_groups_t {
    uint32_t x, y, z;
} keel_groups_t;

// Which operation a record is, and so which member of keel_op_t.as counts.
typedef enum keel_op_kind_t {
    KEEL_OP_BARRIER,     // none
    KEEL_OP_FILL,        // fill
    KEEL_OP_UPDATE,      // update
    KEEL_OP_COPY,        // copy
    KEEL_OP_DISPATCH,    // dispatch
    KEEL_OP_TIMESTAMP,   // timestamp
    KEEL_OP_GROUP_BEGIN, // group
    KEEL_OP_GROUP_END,   // none
    KEEL_OP_ALLOCA,      // alloca_
    KEEL_OP_DEALLOCA,    // alloca_
    KEEL_OP_READ,        // transfer
    KEEL_OP_WRITE,       // transfer
    KEEL_OP_EXECUTE,     // execute
    KEEL_OP_HOST_CALL,   // call
    KEEL_OP_EVENT_SET,   // event
    KEEL_OP_EVENT_WAIT,  // event
    KEEL_OP_IF,          // branch
    KEEL_OP_ELSE,        // none
    KEEL_OP_WHILE,       // branch
    KEEL_OP_SWITCH,      // branch
    KEEL_OP_CASE,        // branch
    KEEL_OP_END,         // none
} keel_op_kind_t;

// The record of keel_op_fill.
typedef struct keel_fill_t {
    keel_ref_t target;
    uint32_t pattern;      // the low pattern_size bytes count
    uint32_t pattern_size; // 1, 2 or 4
    keel_ref_t parameter;  // in place of `pattern`, so many bytes of parameters; length 0: none
} keel_fill_t;

// The record of keel_op_update.
typedef struct keel_update_t {
    keel_ref_t target; // may be a slot, with its length given
    const void *data;  // as many bytes as the target has
} keel_update_t;

// The record of keel_op_copy.
typedef struct keel_copy_t {
    keel_ref_t source; // may be parameters
    keel_ref_t target;
} keel_copy_t;

// Where the number of workgroups of a dispatch comes from.
typedef enum keel_counts_t {
    KEEL_COUNTS_DIRECT,  // from keel_dispatch_t.groups
    KEEL_COUNTS_STATIC,  // from memory: final once the waits of the submission are satisfied; or
                         // from parameters
    KEEL_COUNTS_DYNAMIC, // from memory: earlier operations of the same list, before a barrier, may
                         // write them; needs KEEL_CAP_DYNAMIC_COUNTS
} keel_counts_t;

// What is written into the constants of a dispatch before the kernel starts: parameters of the
// execution, or, into a raw argument block, the address of a range of a buffer.
typedef struct keel_patch_t {
    uint32_t offset; // where it goes in the constants
    keel_ref_t ref;  // parameters: their bytes; else: 8 bytes, the address; needs
                     // KEEL_USAGE_DISPATCH
} keel_patch_t;

// The record of keel_op_dispatch. The function sets entry, groups, constants and bindings. The
// other fields have defaults, which the application may change.
//
// Kernels made elsewhere (keel_entry_info_t.raw) take `raw` arguments: `constants` is the whole
// argument block, `patches` say where addresses go, and there are no bindings. For a kernel
// f(float *x, int n):
//     struct { uint64_t x; int32_t n; } block = {0, n};
//     keel_patch_t patch = {offsetof(__typeof__(block), x), keel_whole(x)};
//     keel_op_t op = keel_op_dispatch(f, grid, &block, sizeof block, KEEL_NO_BINDINGS);
//     op.as.dispatch.raw = true;
//     op = keel_op_patched(op, &patch, 1);
typedef struct keel_dispatch_t {
    keel_entry_t entry;
    keel_groups_t groups;        // for KEEL_COUNTS_DIRECT
    keel_counts_t counts_kind;   // where the counts come from
    keel_ref_t counts;           // else: three uint32_t at a multiple of 4; may be parameters
    keel_groups_t group_size;    // 0: the entry point's own; else needs KEEL_CAP_GROUP_SIZE
    uint32_t local_memory;       // bytes of workgroup memory on top of the entry point's
    const void *constants;       // constants, or the raw argument block; with patches NULL is zeros
    uint32_t constant_size;      // bytes
    bool raw;                    // needs KEEL_CAP_RAW_ARGUMENTS
    keel_refs_t bindings;        // one per binding of the entry point
    const keel_patch_t *patches; // of addresses only with `raw`
    size_t patch_count;          // at most keel_caps_t.max_bindings
} keel_dispatch_t;

// The record of keel_op_timestamp. The target may be a slot.
typedef struct keel_timestamp_t {
    keel_ref_t target; // 8 bytes at a multiple of 8
} keel_timestamp_t;

// The record of keel_op_alloca and keel_op_dealloca.
typedef struct keel_alloca_t {
    keel_buffer_t *buffer; // from keel_buffer_reserve
    keel_ref_t memory;     // alloca: where its memory is; no buffer: the pool gives some
} keel_alloca_t;

// The record of keel_op_read and keel_op_write.
typedef struct keel_transfer_t {
    keel_file_t *file;
    uint64_t file_offset; // bytes
    keel_ref_t ref;       // where to read to, or to write from
} keel_transfer_t;

// The record of keel_op_execute.
typedef struct keel_execute_t {
    keel_recording_t *recording;
    keel_refs_t bindings;   // the binding table, one entry per slot
    const void *parameters; // what keel_parameter counts from; copied
    size_t parameter_size;  // bytes; at least as many as the recording needs
} keel_execute_t;

// A function of the application that a queue calls (keel_op_host_call). `call` names this call for
// keel_call_defer; in a detached call it is NULL. It returns NULL, or an error that fails the
// operation (one reference, which Keel takes).
//
// A thread of the library calls it, on cpu://inline the thread that runs the work. It may use all
// of Keel. It must not block for long: meanwhile a worker, or the other host calls of its queue,
// cannot run. It must not wait for work that needs these; use keel_call_defer instead:
//     static keel_status_t ask(void *user, keel_host_call_t *call)
//     {
//         keel_call_defer(call);
//         server_ask(user, call); // a thread of the server calls keel_call_complete later
//         return NULL;
//     }
typedef keel_status_t (*keel_host_fn)(void *user, keel_host_call_t *call);

// Called in place of a host call that will never be made: its submission failed, was cancelled, or
// its device was closed or lost. `cause` says why; the function owns the reference. The thread that
// ends the submission calls it, before the submission's points fail. It may use all of Keel and
// must not block.
typedef void (*keel_abandoned_fn)(void *user, keel_status_t cause);

// The record of keel_op_host_call. Of each call that was submitted, either `fn` or `abandoned` is
// called, exactly once. If keel_queue_submit fails, neither is.
typedef struct keel_call_t {
    keel_host_fn fn;
    void *user;    // first argument of `fn`; borrowed until the call has ended or is abandoned
    bool detached; // the operation does not wait for `fn`; an error of `fn` is only logged
    keel_abandoned_fn abandoned; // may be NULL
} keel_call_t;

// The record of keel_op_group_begin.
typedef struct keel_group_t {
    const char *name;
} keel_group_t;

// The record of keel_op_event_set and keel_op_event_wait.
typedef struct keel_event_t {
    uint32_t event; // below 65536
} keel_event_t;

// The record of keel_op_if, keel_op_while, keel_op_switch and keel_op_case.
//
// Blocks are control flow on a uint32_t in a buffer, which the device reads when it gets there, or
// on one that comes with the execution:
//     if value ... [else ...] end
//     while value ... end
//     switch value case 0 ... case 1 ... end
// Blocks nest. The beginning and the end of a block, else and case are barriers. A loop that runs
// `step` until the device has set the first number of `more` to 0, at most 1000 times:
//     keel_op_t ops[] = {
//         keel_op_while(keel_span(more, 0, 4)),
//         keel_op_dispatch(step, grid, NULL, 0, KEEL_BIND(x, more)),
//         keel_op_end(),
//     };
//     ops[0].as.branch.max_iterations = 1000;
//     KEEL_TRY(keel_recording_add(recording, ops, 3));
typedef struct keel_branch_t {
    keel_ref_t value;        // 4 bytes at a multiple of 4; needs KEEL_USAGE_COUNTS; or parameters
    uint32_t match;          // case: the value it is for
    uint32_t max_iterations; // while: one more fails with KEEL_RESOURCE_EXHAUSTED; 0: no limit
} keel_branch_t;

// An operation. Make it with the functions below; fields may be changed afterwards.
typedef struct keel_op_t {
    keel_op_kind_t kind;
    union {
        keel_fill_t fill;
        keel_update_t update;
        keel_copy_t copy;
        keel_dispatch_t dispatch;
        keel_timestamp_t timestamp;
        keel_alloca_t alloca_;    // alloca, dealloca
        keel_transfer_t transfer; // read, write
        keel_execute_t execute;
        keel_call_t call;     // host call
        keel_group_t group;   // group begin
        keel_event_t event;   // event set, event wait
        keel_branch_t branch; // if, while, switch, case
    } as;
} keel_op_t;

KEEL_EXTERN_C_BEGIN

// Inside a host call: its operation ends later, when keel_call_complete is called, not when the
// function returns. Call it on the thread of the host call, before the function returns; elsewhere,
// and in a detached call, it is logged and has no effect. If the function returns an error after
// all, that ends the call, and it is not to be completed. Never fails.
KEEL_API void keel_call_defer(keel_host_call_t *call);

// Ends a deferred host call, from any thread, also before the function has returned. An error fails
// the operation; the reference to `status` is consumed. The first end counts: completing a call
// that has ended, or that was not deferred, is logged and has no effect. `call` is a name, never
// that of another call later. May start work that waited for the operation on the calling thread.
// Never fails.
KEEL_API void keel_call_complete(keel_host_call_t *call, keel_status_t status);

KEEL_EXTERN_C_END

// Returns the range of `length` bytes from `offset` on. `length` may be KEEL_WHOLE.
static inline keel_ref_t keel_span(keel_buffer_t *buffer, uint64_t offset, uint64_t length)
{
    keel_ref_t ref = {buffer, offset, length, 0};
    return ref;
}

// Returns the range that is all of `buffer`. In a binding table it stands for the whole buffer, so
// that offsets of slots count from the buffer's beginning.
static inline keel_ref_t keel_whole(keel_buffer_t *buffer)
{
    return keel_span(buffer, 0, KEEL_WHOLE);
}

// Returns a range of slot `slot` of the binding table: `length` bytes from `offset` on, counted
// within the entry of the table. For recordings only. Each execution checks that the entry is as
// long as the operations of the recording need. `length` may be KEEL_WHOLE: the rest of the entry,
// however long it is.
static inline keel_ref_t keel_slot(uint32_t slot, uint64_t offset, uint64_t length)
{
    keel_ref_t ref = {NULL, offset, length, slot};
    return ref;
}

// Returns a range of the parameters: bytes that come with each execution (keel_op_execute_with),
// `size` of them from `offset` on. For recordings only, and there for the constants of a dispatch
// (keel_op_patched), its counts (keel_op_indirect), the pattern of a fill (keel_op_fill_with), the
// source of a copy and the value of a block. Each execution checks that it brings as many bytes as
// the operations of the recording need. Executions in flight at the same time have their own.
//     typedef struct step_t { uint32_t position, count; } step_t;
//     keel_parameter(offsetof(step_t, position), 4)
//
// KEEL_OUT_OF_RANGE for a range that reaches beyond 2^31 - 1 bytes, and in any other place.
static inline keel_ref_t keel_parameter(uint64_t offset, uint64_t size)
{
    keel_ref_t ref = {NULL, offset, size, KEEL_PARAMETERS};
    return ref;
}

// Returns a list of the `count` ranges at `refs`, which must live as long as the list is used.
static inline keel_refs_t keel_refs(const keel_ref_t *refs, size_t count)
{
    keel_refs_t list = {refs, count};
    return list;
}

// Returns the size of a grid or of a workgroup. Write 1 for dimensions that are not used: a 0 makes
// the grid empty.
//     keel_groups((n + 63) / 64, 1, 1) // for n work-items in workgroups of 64
static inline keel_groups_t keel_groups(uint32_t x, uint32_t y, uint32_t z)
{
    keel_groups_t groups = {x, y, z};
    return groups;
}

// For a dispatch without bindings, or a recording without slots.
#define KEEL_NO_BINDINGS keel_refs(NULL, 0)

// An array of ranges as a list, for records that live longer than a block, or that have many
// bindings. The array must live as long as records use the list, and must be an array, not a
// pointer to its first element:
//     struct layer_t {
//         keel_ref_t refs[3];
//         keel_op_t op;
//     };
//     layer->refs[0] = keel_whole(weights); // and so on
//     layer->op = keel_op_dispatch(matmul, grid, NULL, 0, KEEL_REFS_OF(layer->refs));
#define KEEL_REFS_OF(array) keel_refs(array, KEEL_LENGTH(array))

#ifdef __cplusplus
extern "C++" {
// Bindings in C++, buffers and ranges mixed. Keep them by name while records use them; a list that
// nothing keeps does not compile:
//     auto xy = keel_bind(x, keel_span(y, 0, 64));
//     keel_op_t op = keel_op_dispatch(saxpy, grid, &a, sizeof a, xy);
template <size_t count> struct keel_bindings_t {
    keel_ref_t refs[count];

    // Returns the list, which lives as long as this object.
    operator keel_refs_t() const & { return keel_refs(refs, count); }

    // Refused: the object would be gone before a record could use the list.
    operator keel_refs_t() const && = delete;
};

// Internal, for keel_bind: returns the range that is all of `buffer`.
static inline keel_ref_t keel_bind_(keel_buffer_t *buffer)
{
    return keel_whole(buffer);
}

// Internal, for keel_bind: returns `ref`.
static inline keel_ref_t keel_bind_(keel_ref_t ref)
{
    return ref;
}

// Returns bindings of the buffers and ranges `what`, in this order. A buffer stands for all of it;
// what a smart pointer holds is passed as x.get(). Allocates nothing and retains nothing: the
// buffers must live until the call that takes the record.
template <typename... types> keel_bindings_t<sizeof...(types)> keel_bind(types... what)
{
    return {{keel_bind_(what)...}};
}
}
#else
// Returns `ref`. KEEL_REF needs it.
static inline keel_ref_t keel_ref_same(keel_ref_t ref)
{
    return ref;
}

// Turns a buffer into the range that is all of it, and leaves a range as it is. C only.
#define KEEL_REF(x) _Generic((x), keel_buffer_t *: keel_whole, keel_ref_t: keel_ref_same)(x)

// One to eight bindings written in place, buffers and ranges mixed:
//     KEEL_BIND(x, keel_span(y, 0, 64), keel_slot(1, 0, KEEL_WHOLE))
// The list lives until the end of the enclosing block. C only. For a record that lives longer, or
// for more bindings, keep an array and pass KEEL_REFS_OF(array).
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

// Internal: a record with only its kind set. Each function below writes the fields of its kind and
// no others, because records are large and most of their fields belong to other kinds.
static inline keel_op_t keel_op_(keel_op_kind_t kind)
{
    keel_op_t op;
    op.kind = kind;
    return op;
}

// Barrier: everything after it starts when everything before it in the list has ended, and sees
// what that wrote. The beginning and the end of a submission are barriers by themselves. A barrier
// orders the operations of its own list only; points order submissions.
static inline keel_op_t keel_op_barrier(void)
{
    return keel_op_(KEEL_OP_BARRIER);
}

// Fill: repeats the low `pattern_size` bytes of `pattern` over `target`. They are stored in the
// byte order of the host. The offset needs no alignment.
//
// Needs KEEL_USAGE_TRANSFER and KEEL_ACCESS_WRITE. KEEL_INVALID_ARGUMENT if `pattern_size` is not
// 1, 2 or 4, or the length is no multiple of it. The latter fails the submission if the length is
// KEEL_WHOLE of a slot.
static inline keel_op_t keel_op_fill(keel_ref_t target, uint32_t pattern, uint32_t pattern_size)
{
    keel_op_t op = keel_op_(KEEL_OP_FILL);
    op.as.fill.target = target;
    op.as.fill.pattern = pattern;
    op.as.fill.pattern_size = pattern_size;
    op.as.fill.parameter.length = 0;
    return op;
}

// Fill with a pattern that comes with the execution: a `parameter` of 1, 2 or 4 bytes
// (keel_parameter). For recordings only.
//
// Needs and fails as keel_op_fill.
static inline keel_op_t keel_op_fill_with(keel_ref_t target, keel_ref_t parameter)
{
    keel_op_t op = keel_op_fill(target, 0, (uint32_t)parameter.length);
    op.as.fill.parameter = parameter;
    return op;
}

// Update: writes as many bytes at `data` as `target` has to it. The call that takes the record
// copies the data. Use it for small data: a copy from a host visible buffer is better for
// megabytes. The length of a slot must be given.
//
// Needs KEEL_USAGE_TRANSFER and KEEL_ACCESS_WRITE. KEEL_OUT_OF_RANGE for 2^31 - 1 bytes or more.
static inline keel_op_t keel_op_update(keel_ref_t target, const void *data)
{
    keel_op_t op = keel_op_(KEEL_OP_UPDATE);
    op.as.update.target = target;
    op.as.update.data = data;
    return op;
}

// Copy: copies `source` to `target`. Both have the same length and do not overlap. Offsets need no
// alignment. If one of them is KEEL_WHOLE of a slot, it takes the other's length. A source that is
// keel_parameter() is an update whose bytes come with the execution.
//
// Needs KEEL_USAGE_TRANSFER on both, KEEL_ACCESS_READ on the source and KEEL_ACCESS_WRITE on the
// target. KEEL_INVALID_ARGUMENT if the lengths differ or the ranges overlap. For slots that fails
// the submission.
//
// Across devices. In a submission one of the two may lie on another device (KEEL_CAP_COPY_ACROSS).
// The queue may be one of either device. Keel takes the best way that the two buffers have:
//     peer     both are memory of one vendor's devices: the vendor copies
//     host     one is memory that the host can map (KEEL_MEMORY_HOST_VISIBLE, HOST_COHERENT): the
//              other device copies it directly. For that a GPU page-locks it, once: the first copy
//              takes longer, and the memory stays locked until its buffer is released or the GPU's
//              device is closed
//     staged   else, and for memory of the host that cannot be page-locked (memory of pools): in
//              pieces through memory of the host, several of which are under way at a time
// If the device of the queue cannot copy by itself, the queue that the other buffer's node started
// with (keel_device_queue) takes part, and its timeline has points for that. Both devices must stay
// open: if the other one is closed or lost before the copy has begun, the submission fails with
// that cause; closing waits for copies that use the device's memory at that moment.
// KEEL_INVALID_ARGUMENT in a recording, or if the queue is of a third device. KEEL_UNSUPPORTED
// without KEEL_CAP_COPY_ACROSS. KEEL_FAILED_PRECONDITION if the other device is closed.
static inline keel_op_t keel_op_copy(keel_ref_t source, keel_ref_t target)
{
    keel_op_t op = keel_op_(KEEL_OP_COPY);
    op.as.copy.source = source;
    op.as.copy.target = target;
    return op;
}

// Dispatch: runs a kernel over a grid of workgroups. A grid with a zero in it does nothing. The
// kernel gets `constant_size` bytes of constants and the ranges `bindings`, exactly as many of both
// as the entry point declares (keel_entry_info_t). For a group size, counts in memory or raw
// arguments, change the fields of op.as.dispatch.
//
// Bindings may overlap where the kernel only reads. If a kernel of <keel/kernel.h> writes through
// one binding what another binding covers, the results there are undefined: its pointers are
// `restrict`. A kernel that works in place has one binding, KEEL_INOUT. The call does not look for
// this, because kernels made in other ways may be written to be bound so.
//
// Bindings need KEEL_USAGE_DISPATCH and the access that the kernel declares for them; offsets need
// no alignment. KEEL_INVALID_ARGUMENT if the constants or the bindings do not fit the entry point.
// KEEL_OUT_OF_RANGE for more workgroups than keel_caps_t.max_groups (for raw entry points also
// max_group_counts), or too much workgroup memory. KEEL_UNSUPPORTED if the device lacks a
// capability that the record needs, or the entry point has a fixed size and the record another.
// KEEL_ABORTED fails the submission if a kernel of host_kernel.h returns a number other than 0.
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

// Returns `dispatch` with patches of its constants: parameters of the execution, and, if it is raw,
// addresses. The patches are borrowed until the call that takes the record returns. Constants of
// NULL are zeros, where nothing is patched. A dispatch whose constants all come with the execution:
//     keel_patch_t position = {0, keel_parameter(0, 4)};
//     keel_op_patched(keel_op_dispatch(f, grid, NULL, 4, KEEL_BIND(x)), &position, 1)
//
// KEEL_OUT_OF_RANGE for a patch that does not lie within the constants, or for more of them than
// keel_caps_t.max_bindings. KEEL_INVALID_ARGUMENT for an address in constants that are not raw.
static inline keel_op_t keel_op_patched(keel_op_t dispatch, const keel_patch_t *patches,
                                        size_t count)
{
    dispatch.as.dispatch.patches = patches;
    dispatch.as.dispatch.patch_count = count;
    return dispatch;
}

// Indirect dispatch: returns `dispatch` changed so that the device reads the number of workgroups
// from `counts`, three uint32_t at a multiple of 4. `kind` is KEEL_COUNTS_STATIC or
// KEEL_COUNTS_DYNAMIC; counts that are keel_parameter(offset, 12) are static.
//     keel_op_indirect(keel_op_dispatch(f, keel_groups(0, 0, 0), &k, sizeof k, KEEL_BIND(x)),
//                      KEEL_COUNTS_STATIC, keel_span(counts, 0, 12))
//
// Needs KEEL_USAGE_COUNTS and KEEL_ACCESS_READ. KEEL_OUT_OF_RANGE for less than 12 bytes;
// KEEL_INVALID_ARGUMENT for another alignment. Too many workgroups fail the submission with
// KEEL_OUT_OF_RANGE; those of parameters are refused by the call that submits the execution.
static inline keel_op_t keel_op_indirect(keel_op_t dispatch, keel_counts_t kind, keel_ref_t counts)
{
    dispatch.as.dispatch.counts_kind = kind;
    dispatch.as.dispatch.counts = counts;
    return dispatch;
}

// Timestamp: writes the device's clock, a uint64_t of nanoseconds, to the 8 bytes `target`, once
// everything before the last barrier has ended. keel_device_clock relates it to the host's clock.
// To measure an operation, put a barrier and a timestamp on both sides of it.
//
// Needs KEEL_CAP_TIMESTAMPS, KEEL_USAGE_TRANSFER and KEEL_ACCESS_WRITE. KEEL_INVALID_ARGUMENT if
// `target` has another length than 8, or its offset is no multiple of 8.
static inline keel_op_t keel_op_timestamp(keel_ref_t target)
{
    keel_op_t op = keel_op_(KEEL_OP_TIMESTAMP);
    op.as.timestamp.target = target;
    return op;
}

// Group: names the operations up to the matching keel_op_group_end, for error paths and traces.
// Groups nest, order nothing and cost nothing on the device. The name is copied.
//
// KEEL_OUT_OF_RANGE for a name of 4096 characters or more. KEEL_FAILED_PRECONDITION, from
// keel_recording_end or keel_queue_submit, if a group is not ended in its list.
static inline keel_op_t keel_op_group_begin(const char *name)
{
    keel_op_t op = keel_op_(KEEL_OP_GROUP_BEGIN);
    op.as.group.name = name;
    return op;
}

// Group end: ends the innermost group. A group ends in the block in which it began: groups and
// blocks do not overlap.
//
// KEEL_FAILED_PRECONDITION if no group is open in this block.
static inline keel_op_t keel_op_group_end(void)
{
    return keel_op_(KEEL_OP_GROUP_END);
}

// Alloca: gives memory of its pool to a buffer of keel_buffer_reserve. Its contents are undefined.
// If the pool has no room, the operation waits for some on the queue, or fails: pool.h says which,
// and what such waits can lead to. The submitting thread never waits.
//
// KEEL_INVALID_ARGUMENT for a subspan; KEEL_FAILED_PRECONDITION for a buffer that was not reserved.
// The submission fails with KEEL_RESOURCE_EXHAUSTED if there is no memory and the alloca does not
// wait, and with KEEL_FAILED_PRECONDITION if the buffer has memory already.
static inline keel_op_t keel_op_alloca(keel_buffer_t *buffer)
{
    keel_op_t op = keel_op_(KEEL_OP_ALLOCA);
    op.as.alloca_.buffer = buffer;
    op.as.alloca_.memory.buffer = NULL;
    return op;
}

// Alloca at a place: gives a buffer of keel_buffer_reserve the first bytes of `memory`, a range of
// another buffer, instead of memory of its pool. Programs that plan an arena themselves use it:
// several buffers may have the same range, one after another or at the same time, and the program
// orders what they do there. The contents stay as they are. The pool counts nothing. Until its
// dealloca, or its last release, the buffer keeps a reference to the other one.
//
// Besides the errors of keel_op_alloca: KEEL_INVALID_ARGUMENT if `memory` is of the buffer itself,
// of another device or another node; KEEL_OUT_OF_RANGE if it is shorter than the buffer;
// KEEL_PERMISSION_DENIED if the other buffer lacks a memory, usage or access bit that this one has.
// The submission fails with KEEL_FAILED_PRECONDITION if the other buffer has no memory then, and
// with KEEL_INVALID_ARGUMENT if the place is not aligned as the buffer asks for; the call itself
// does where that is known already.
static inline keel_op_t keel_op_alloca_at(keel_buffer_t *buffer, keel_ref_t memory)
{
    keel_op_t op = keel_op_alloca(buffer);
    op.as.alloca_.memory = memory;
    return op;
}

// Dealloca: takes the memory of a reserved buffer and gives it back to the pool, if it came from
// there. The buffer stays, and may get memory again. Work that uses the memory must have ended:
// order it by points or barriers. Scratch memory of one submission:
//     keel_op_t ops[] = {
//         keel_op_alloca(scratch), keel_op_barrier(),
//         keel_op_dispatch(f, grid, NULL, 0, KEEL_BIND(x, scratch)), keel_op_barrier(),
//         keel_op_dealloca(scratch),
//     };
//
// KEEL_INVALID_ARGUMENT and KEEL_FAILED_PRECONDITION as keel_op_alloca. The submission fails with
// KEEL_FAILED_PRECONDITION if the buffer has no memory, or if other buffers have a part of it
// (keel_op_alloca_at). If the submission fails before the dealloca ran, the buffer keeps its memory
// until it is released.
static inline keel_op_t keel_op_dealloca(keel_buffer_t *buffer)
{
    keel_op_t op = keel_op_alloca(buffer);
    op.kind = KEEL_OP_DEALLOCA;
    return op;
}

// Read: reads bytes of `file`, from `file_offset` on, into all of `target`. The length is that of
// the target. No thread of the application waits for the disk:
//     KEEL_TRY(keel_queue_run(q, KEEL_NO_WAITS, keel_op_read(file, 0, keel_whole(x)), &loaded));
//
// Needs KEEL_CAP_FILES, KEEL_USAGE_TRANSFER, KEEL_ACCESS_WRITE and KEEL_FILE_READ. The submission
// fails with KEEL_OUT_OF_RANGE if the file ends too soon. For an error of the system, which the
// message names, it fails with KEEL_IO, or with the code that keel_file_open has for that error.
static inline keel_op_t keel_op_read(keel_file_t *file, uint64_t file_offset, keel_ref_t target)
{
    keel_op_t op = keel_op_(KEEL_OP_READ);
    op.as.transfer.file = file;
    op.as.transfer.file_offset = file_offset;
    op.as.transfer.ref = target;
    return op;
}

// Write: writes all of `source` to `file`, from `file_offset` on. A regular file grows if need be.
// When the operation has ended the system has the data; it may not be on the disk yet.
//
// Needs KEEL_CAP_FILES, KEEL_USAGE_TRANSFER, KEEL_ACCESS_READ and KEEL_FILE_WRITE. The submission
// fails with KEEL_RESOURCE_EXHAUSTED if the disk is full, or the file would exceed a limit of the
// user or the process. Other errors of the system give codes as for keel_op_read.
static inline keel_op_t keel_op_write(keel_ref_t source, keel_file_t *file, uint64_t file_offset)
{
    keel_op_t op = keel_op_read(file, file_offset, source);
    op.kind = KEEL_OP_WRITE;
    return op;
}

// Execute: runs an ended recording. `bindings` is its binding table: one range for each slot, in
// order. A slot that no operation uses may have a NULL buffer.
//
// An execution is one operation of its submission. Nothing orders it with the operations beside it
// but barriers. The same recording may be executed several times in one list and at the same time:
//     keel_op_t ops[] = {
//         keel_op_execute(layer, KEEL_BIND(x, weights[0])),
//         keel_op_barrier(),
//         keel_op_execute(layer, KEEL_BIND(x, weights[1])),
//     };
//
// KEEL_FAILED_PRECONDITION if the recording is open, or is one-shot and was executed before.
// KEEL_INVALID_ARGUMENT for another number of bindings. KEEL_OUT_OF_RANGE for an entry that is
// shorter than the recording needs, KEEL_PERMISSION_DENIED for one that lacks usage or access.
static inline keel_op_t keel_op_execute(keel_recording_t *recording, keel_refs_t bindings)
{
    keel_op_t op = keel_op_(KEEL_OP_EXECUTE);
    op.as.execute.recording = recording;
    op.as.execute.bindings = bindings;
    op.as.execute.parameters = NULL;
    op.as.execute.parameter_size = 0;
    return op;
}

// Execute with parameters: as keel_op_execute, for a recording with operations that name
// keel_parameter(). `size` bytes at `parameters` are copied by the call that takes the record; they
// may be more than the recording needs. The next step of a loop, without recording it anew:
//     step_t step = {.position = i, .count = 1};
//     keel_op_execute_with(decode, KEEL_BIND(cache), &step, sizeof step)
//
// Besides the errors of keel_op_execute: KEEL_OUT_OF_RANGE for fewer bytes than the recording
// needs, which names the command that needs more, and for counts beyond what the device takes.
static inline keel_op_t keel_op_execute_with(keel_recording_t *recording, keel_refs_t bindings,
                                             const void *parameters, size_t size)
{
    keel_op_t op = keel_op_execute(recording, bindings);
    op.as.execute.parameters = parameters;
    op.as.execute.parameter_size = size;
    return op;
}

// Host call: calls `fn` with `user` from a thread of the library when the queue gets there. The
// operation ends when `fn` returns, or, after keel_call_defer, with keel_call_complete. It fails
// with the error that `fn` or keel_call_complete gives. keel_host_fn says what `fn` may do. Set
// op.as.call.detached for a call that the submission does not wait for, op.as.call.abandoned for a
// function that is called if `fn` never will be, to free `user` for example.
//
// Needs KEEL_CAP_HOST_CALLS. KEEL_INVALID_ARGUMENT if `fn` is NULL.
static inline keel_op_t keel_op_host_call(keel_host_fn fn, void *user)
{
    keel_op_t op = keel_op_(KEEL_OP_HOST_CALL);
    keel_call_t call = {fn, user, false, NULL};
    op.as.call = call;
    return op;
}

// Internal: the record of an event operation.
static inline keel_op_t keel_op_event_(keel_op_kind_t kind, uint32_t event)
{
    keel_op_t op = keel_op_(kind);
    op.as.event.event = event;
    return op;
}

// Event set: the first half of a split barrier. Operations after a keel_op_event_wait of this event
// start when all operations before the set have ended. What stands between the two may run beside
// both:
//     keel_op_fill(keel_whole(x), 0, 4),
//     keel_op_event_set(0),
//     keel_op_dispatch(f, grid, NULL, 0, KEEL_BIND(y)), // need not wait for the fill
//     keel_op_event_wait(0),
//     keel_op_dispatch(g, grid, NULL, 0, KEEL_BIND(x)), // sees the fill; need not wait for f
//
// Needs KEEL_CAP_EVENTS. KEEL_OUT_OF_RANGE for an event of 65536 or more. KEEL_FAILED_PRECONDITION
// if the recording has set this event before.
static inline keel_op_t keel_op_event_set(uint32_t event)
{
    return keel_op_event_(KEEL_OP_EVENT_SET, event);
}

// Event wait: the second half of a split barrier. Operations after it start when everything before
// the keel_op_event_set of the event has ended, and see what that wrote. An event may be waited for
// any number of times, or never.
//
// Needs KEEL_CAP_EVENTS. KEEL_FAILED_PRECONDITION if the event was not set earlier in the same
// block.
static inline keel_op_t keel_op_event_wait(uint32_t event)
{
    return keel_op_event_(KEEL_OP_EVENT_WAIT, event);
}

// Internal: the record of a block operation.
static inline keel_op_t keel_op_branch_(keel_op_kind_t kind, keel_ref_t value, uint32_t match)
{
    keel_op_t op = keel_op_(kind);
    keel_branch_t branch = {value, match, 0};
    op.as.branch = branch;
    return op;
}

// If: runs the operations up to the matching else or end if the uint32_t at `value` is not 0, and
// those between else and end if it is 0.
//
// Needs KEEL_CAP_BRANCHES, KEEL_USAGE_COUNTS and KEEL_ACCESS_READ. KEEL_INVALID_ARGUMENT if `value`
// has less than 4 bytes or its offset is no multiple of 4. KEEL_OUT_OF_RANGE beyond
// keel_caps_t.max_depth blocks, or 16.
static inline keel_op_t keel_op_if(keel_ref_t value)
{
    return keel_op_branch_(KEEL_OP_IF, value, 0);
}

// Else: begins the second half of an if, which runs if the value was 0 when the device read it at
// the if. Writes of the first half do not change the decision.
//
// KEEL_FAILED_PRECONDITION if the innermost block is no if, has an else already, or has an open
// group.
static inline keel_op_t keel_op_else(void)
{
    return keel_op_(KEEL_OP_ELSE);
}

// While: runs the operations up to the matching end as long as the uint32_t at `value` is not 0. It
// is read before each iteration. Set op.as.branch.max_iterations to bound the loop: one iteration
// more fails the submission with KEEL_RESOURCE_EXHAUSTED.
//
// Needs and fails as keel_op_if.
static inline keel_op_t keel_op_while(keel_ref_t value)
{
    return keel_op_branch_(KEEL_OP_WHILE, value, 0);
}

// Switch: runs the case that matches the uint32_t at `value`, up to the next case or the end. There
// is no falling through. If no case matches, nothing runs. The first operation in it is a case.
//
// Needs and fails as keel_op_if. KEEL_FAILED_PRECONDITION for an operation before the first case.
static inline keel_op_t keel_op_switch(keel_ref_t value)
{
    return keel_op_branch_(KEEL_OP_SWITCH, value, 0);
}

// Case: begins what a switch runs for the value `match`, up to the next case or the end. Cases may
// stand in any order; each value has at most one.
//
// KEEL_FAILED_PRECONDITION if the innermost block is no switch or has an open group.
// KEEL_INVALID_ARGUMENT if the switch has this case already.
static inline keel_op_t keel_op_case(uint32_t match)
{
    return keel_op_branch_(KEEL_OP_CASE, keel_slot(0, 0, 4), match);
}

// End: ends the innermost if, while or switch. What follows starts when the operations of the block
// that ran have ended.
//
// KEEL_FAILED_PRECONDITION if no block is open, or a group is open in it.
static inline keel_op_t keel_op_end(void)
{
    return keel_op_(KEEL_OP_END);
}

#endif
