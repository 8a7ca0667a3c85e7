// SPDX-License-Identifier: Apache-2.0
// A submission graph as plain data: what threads do with queues, semaphores and memory.
//
// Actions are numbered in an order in which one after the other could do them (the logical order,
// which the model follows). `turn` gives the order in which threads begin them, which may be quite
// another: a submission may come long before what it waits for. An action that was left out keeps
// its number with the kind ACTION_NONE, so that numbers stay what they were while a graph shrinks.
#ifndef GRAPHS_GRAPH_H_
#define GRAPHS_GRAPH_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MAX_DEVICES = 8,
    MAX_QUEUES = 4, // of a device
    MAX_THREADS = 8,
    MAX_SPACES = 32,
    SPACE_SIZE = 256, // bytes, at most
    GIVEN_SIZE = 64,  // bytes of an update that comes with an execution, at most
    MAX_SEMAPHORES = 8,
    MAX_RECORDINGS = 8,
    MAX_COMMANDS = 40, // of a recording
    MAX_ACTIONS = 64,  // sets of them are bits of a uint64_t
    MAX_OPS = 16,      // of a submission
    MAX_WAITS = 12,
    MAX_SIGNALS = 6,
    MAX_EXECUTES = 3,      // of these
    MAX_SPANS = 4,         // of an operation, binding tables included
    FIRST_NUMBER = 770000, // an injected failure of action N carries FIRST_NUMBER + N
};

// One line per operation: constant, name, how it uses its spans (r reads, w writes, m modifies),
// how many numbers it takes, what it is.
#define GRAPH_OPS(X)                                                                               \
    X(OP_BARRIER, "barrier", "", 0, 0)                                                             \
    X(OP_GROUP, "group", "", 0, 0)                                                                 \
    X(OP_UNGROUP, "ungroup", "", 0, 0)                                                             \
    X(OP_FILL, "fill", "w", 2, 0)     /* pattern, size */                                          \
    X(OP_UPDATE, "update", "w", 2, 0) /* seed, modulus of each word (0: none) */                   \
    X(OP_COPY, "copy", "rw", 0, 0)                                                                 \
    X(OP_SCALE, "scale", "m", 1, TRAIT_KERNEL)                                                     \
    X(OP_MOVE, "move", "rw", 1, TRAIT_KERNEL)                                                      \
    X(OP_MIX, "mix", "rrm", 1, TRAIT_KERNEL)                                                       \
    X(OP_MODULO, "modulo", "rw", 2, TRAIT_KERNEL)                                                  \
    X(OP_DECREMENT, "decrement", "m", 0, TRAIT_KERNEL)                                             \
    X(OP_ABORT, "abort", "m", 1, TRAIT_KERNEL) /* the group that fails */                          \
    X(OP_ALLOCA, "alloca", "w", 0, TRAIT_SUBMISSION)                                               \
    X(OP_DEALLOCA, "dealloca", "w", 0, TRAIT_SUBMISSION)                                           \
    X(OP_READ, "read", "rw", 0, TRAIT_SUBMISSION)             /* from a file */                    \
    X(OP_WRITE, "write", "rw", 0, TRAIT_SUBMISSION)           /* to a file */                      \
    X(OP_CALL, "call", "m", 2, TRAIT_SUBMISSION)              /* constant, call_mode_t */          \
    X(OP_CALL_SIGNAL, "call_signal", "", 2, TRAIT_SUBMISSION) /* a host call: semaphore, value */  \
    X(OP_EXECUTE, "execute", "", 2, TRAIT_SUBMISSION)         /* recording, what it adds to what   \
                                                                 is given; spans are the table */  \
    X(OP_EVENT_SET, "event_set", "", 1, TRAIT_RECORDING)                                           \
    X(OP_EVENT_WAIT, "event_wait", "", 1, TRAIT_RECORDING)                                         \
    X(OP_IF, "if", "r", 0, TRAIT_RECORDING | TRAIT_BLOCK)                                          \
    X(OP_ELSE, "else", "", 0, TRAIT_RECORDING | TRAIT_BLOCK)                                       \
    X(OP_WHILE, "while", "r", 1, TRAIT_RECORDING | TRAIT_BLOCK) /* most iterations */              \
    X(OP_SWITCH, "switch", "r", 0, TRAIT_RECORDING | TRAIT_BLOCK)                                  \
    X(OP_CASE, "case", "", 1, TRAIT_RECORDING | TRAIT_BLOCK)                                       \
    X(OP_END, "end", "", 0, TRAIT_RECORDING | TRAIT_BLOCK)                                         \
    X(OP_PEEK, "peek", "r", 0, TRAIT_HOST)                                                         \
    X(OP_POKE, "poke", "w", 1, TRAIT_HOST) /* seed */

typedef enum op_kind_t {
#define GRAPH_OP_(kind, name, spans, numbers, traits) kind,
    GRAPH_OPS(GRAPH_OP_)
#undef GRAPH_OP_
        OP_KINDS,
} op_kind_t;

typedef enum op_trait_t {
    TRAIT_KERNEL = 1,     // a dispatch
    TRAIT_SUBMISSION = 2, // not in recordings
    TRAIT_RECORDING = 4,  // only there
    TRAIT_BLOCK = 8,      // begins, divides or ends a block: a barrier too
    TRAIT_HOST = 16,      // by a thread, not in a submission
} op_trait_t;

typedef struct op_info_t {
    const char *name;
    const char *spans;
    uint8_t numbers;
    uint8_t traits;
} op_info_t;
extern const op_info_t op_infos[OP_KINDS];

typedef enum call_mode_t { CALL_NOW, CALL_LATER, CALL_FAIL, CALL_FAIL_LATER } call_mode_t;
typedef enum counts_t { COUNTS_DIRECT, COUNTS_STATIC, COUNTS_DYNAMIC } counts_t;

// A range of a space, or of what is bound to a slot.
typedef struct span_t {
    bool slot;
    uint8_t id;
    uint16_t offset, length;
} span_t;

typedef struct op_t {
    uint8_t kind;       // op_kind_t
    uint8_t counts;     // counts_t; if indirect, the last span holds three words
    uint8_t groups[3];  // direct
    uint8_t span_count; // of an execute: slots of the table; else as op_infos says
    span_t spans[MAX_SPANS];
    uint32_t numbers[2];
    bool given; // in a recording: the first number and direct groups come with the execution
} op_t;

typedef enum space_kind_t {
    SPACE_BUFFER, // of one device
    SPACE_SHARED, // memory of the application, imported by every device
    SPACE_POOL,   // of one device, has memory between alloca and dealloca
    SPACE_FILE,   // one file, opened on every device
} space_kind_t;

typedef struct space_t {
    uint8_t kind; // space_kind_t
    uint8_t device;
    uint8_t node;
    uint8_t pool; // 0: the device's, else one that the test made; see TIGHT_POOL
    uint16_t size;
} space_t;

typedef struct semaphore_t {
    uint8_t device;
    uint32_t initial;
} semaphore_t;

typedef struct recording_t {
    bool used;
    bool one_shot; // recorded by the thread that submits it
    bool prepare;
    uint8_t device;
    uint8_t slot_count;
    uint8_t count;
    op_t commands[MAX_COMMANDS];
} recording_t;

// Of a semaphore, or the own point of a submission.
typedef struct point_t {
    bool own;
    bool ended; // of a wait: a failure will do as well (keel_ended)
    bool up_to; // of a wait, own: and all before it on its queue (keel_up_to)
    uint8_t id;
    uint32_t value;
} point_t;

typedef enum action_kind_t {
    ACTION_NONE,
    ACTION_SUBMIT,
    ACTION_SIGNAL,     // by the host: signals[0]
    ACTION_FAIL,       // by the host: signals[0]'s semaphore
    ACTION_WAIT,       // on the host, for all of `waits`
    ACTION_ANY,        // for one of them
    ACTION_COMPLETION, // for all, by the descriptor of a completion queue
    ACTION_PEEK,       // reads memory and keeps what it saw
    ACTION_POKE,       // writes memory
    ACTION_KINDS,
} action_kind_t;

typedef struct action_t {
    uint8_t kind; // action_kind_t
    uint8_t thread;
    uint8_t turn;   // in the order of all threads together
    uint8_t device; // submit: where
    uint8_t queue;
    uint8_t op_count, wait_count, signal_count;
    uint16_t delay_us; // the thread idles before
    uint64_t after;    // actions that must have been begun (by a host action: done) before
    point_t waits[MAX_WAITS];
    point_t signals[MAX_SIGNALS];
    op_t ops[MAX_OPS];
} action_t;

typedef struct graph_t {
    uint64_t seed;
    bool failures; // something in it may fail: then only weaker conclusions hold (order.h)
    uint8_t device_count, space_count, semaphore_count, recording_count, action_count;
    char uris[MAX_DEVICES][96];
    space_t spaces[MAX_SPACES];
    semaphore_t semaphores[MAX_SEMAPHORES];
    recording_t recordings[MAX_RECORDINGS];
    action_t actions[MAX_ACTIONS];
} graph_t;

// The queue of each device that takes no dispatches and recordings.
enum { TRANSFER_QUEUE = 2 };
// The pool of each device that holds one buffer: an alloca, which comes after that of the buffer
// before, waits there for its dealloca, which must have been submitted. Only where nothing fails.
enum { TIGHT_POOL = 3, POOLS };

static inline uint64_t action_bit(size_t action)
{
    return (uint64_t)1 << action;
}

// A host action is over when its call returns.
static inline bool action_on_host(const action_t *action)
{
    return action->kind != ACTION_NONE && action->kind != ACTION_SUBMIT;
}

// Whether two submissions go to one queue.
static inline bool action_beside(const action_t *a, const action_t *b)
{
    return a->kind == ACTION_SUBMIT && b->kind == ACTION_SUBMIT && a->device == b->device &&
           a->queue == b->queue;
}

static inline bool action_waits(const action_t *action)
{
    return action->kind == ACTION_SUBMIT || action->kind == ACTION_WAIT ||
           action->kind == ACTION_ANY || action->kind == ACTION_COMPLETION;
}

// How an operation touches memory.
typedef struct access_t {
    uint8_t space;
    bool write;
    uint16_t begin, end;
} access_t;

enum { MAX_ACCESSES = 512 };

typedef struct accesses_t {
    size_t count;
    access_t list[MAX_ACCESSES];
} accesses_t;

// Whether an operation of a recording can be given what it needs.
bool op_can_be_given(const op_t *op);
// What it is in an execution that adds so much to what is given.
op_t op_given(const op_t *op, uint32_t added);

// The span with its slot looked up in `table` (may be NULL if there is none).
span_t span_resolve(span_t span, const span_t *table);

// Appends what `op` may touch, in any branch; `table` as above.
void op_accesses(const graph_t *graph, const op_t *op, const span_t *table, accesses_t *out);
void action_accesses(const graph_t *graph, const action_t *action, accesses_t *out);
bool accesses_conflict(const access_t *a, size_t a_count, const access_t *b, size_t b_count);

// Data that updates, pokes and the beginning put into memory: byte `index` of the stream `seed`.
uint8_t data_byte(uint32_t seed, uint32_t index);
void update_data(const op_t *op, uint8_t *data);
// What a host call makes of a byte.
static inline uint8_t call_byte(uint8_t byte, uint32_t constant)
{
    return (uint8_t)(byte * 5u + constant);
}

#endif
