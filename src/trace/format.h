// SPDX-License-Identifier: Apache-2.0
// The file that a traced process writes. docs/trace.md tells why it is so.
//
//     header, 4096 bytes
//     chunk 0, chunk 1, ...: TRACE_SLOTS records each, of 64 bytes
//
// A chunk belongs to one thread at a time, which fills it from the front. A record of kind 0 is
// none: its thread has not written it, or ended while it did. All numbers are those of the machine.
#ifndef KEEL_SRC_TRACE_FORMAT_H_
#define KEEL_SRC_TRACE_FORMAT_H_

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_MAGIC "keeltrc"

enum {
    TRACE_VERSION = 2,
    TRACE_SLOTS = 4096, // of a chunk
    TRACE_HEADER_SIZE = 4096,
    TRACE_PART = 56,       // bytes of a name in one record
    TRACE_NAMES = 1 << 19, // the largest number of a name
};

// What `start` and `end` of host records count.
typedef enum trace_clock_t {
    TRACE_CLOCK_TICKS,     // the processor's counter: clock_ticks
    TRACE_CLOCK_MONOTONIC, // ns: keel_now_ns
} trace_clock_t;

typedef struct trace_header_t {
    char magic[8]; // written last, so that a file without it was never begun
    uint32_t version, slots;
    uint32_t clock; // trace_clock_t
    uint32_t pid, parent;
    // Of the file that has the names made before a fork; 0: this one has all.
    uint32_t names_pid, names_number;
    uint32_t number; // of this file among those of the process
    // Written while the process runs.
    _Atomic uint32_t chunks; // taken, or tried to be taken
    _Atomic uint32_t ended;  // the process came to its end in good order
    _Atomic uint64_t lost;   // records for which there was no room
    char command[1024];      // the arguments, with a blank between them
    char rank[32];           // what the variable that --rank-from names has; "": none
    char boot[40];           // the machine's start, as the system names it; "": not known
} trace_header_t;
_Static_assert(sizeof(trace_header_t) <= TRACE_HEADER_SIZE, "room for the header");

// What a record says. The fields that are not named are 0.
typedef enum trace_kind_t {
    TRACE_NONE,
    TRACE_THREAD, // who writes the records that follow in this chunk: id the thread, text its name
    TRACE_CLOCKS, // clocks at one moment: start ticks, a CLOCK_MONOTONIC, CLOCK_BOOTTIME and
                  // CLOCK_REALTIME in ns; end: how many ticks reading them took; id: ticks in a
                  // second, about
    TRACE_NAME,   // a part of the name `name`; trace_name_part_t
    TRACE_QUEUE, // at start: name: of queue number id; a: the name of its device, and the number of
                 // its timeline, 0: none
    TRACE_PAIR,  // a device's clock and the host's at one moment: id: the clock's number; start:
                 // what it says, in ns; a: CLOCK_MONOTONIC in ns, and how wrong that may be
    TRACE_SUBMIT, // a call that submits: name 0; id: queue; submission; a: commands, waits, signals
    TRACE_READY,  // at start: all that a submission waited for has come
    TRACE_OP,     // a part of an operation on a processor: name; id: queue; submission; a: the
                  // command's offset, the first unit and how many, of copies in bytes; flags:
                  // trace_flags
    TRACE_END,    // at start: a submission has ended; flags: the status code
    TRACE_WAIT,   // the host waited: a: points, and the status code it got
    TRACE_CALL,   // a call into a runtime: name; id: its number, of one process, 0: none; flags:
                  // trace_memory_t; a: what it returned; the names of its arguments as text and of
                  // its runtime, 0: none. If it is about memory: what it returned (the lower half)
                  // and the name of its runtime; the address, 0: none; how many bytes
    TRACE_GPU,    // an operation on a GPU: name; id: queue; submission: the number of the call that
                  // made it, 0: none; flags: trace_flags; a: trace_shape_t, or bytes of a copy and
                  // trace_copy_t
    TRACE_SPAN,   // a span of the application's: name
    TRACE_MARK,  // at start: a moment of the application's, or the GPU's: name; flags: trace_flags,
                 // for the clock
    TRACE_COUNT, // from start on, a counter has another value: name; a[0]: the bits of a double;
                 // flags: trace_flags, for the clock
    TRACE_NEED,  // at start: a submission waits for a point: id: queue; submission; name: of the
                 // semaphore; a: the semaphore's number, which others may have had, and the value
    TRACE_NODE,  // the GPU operation whose record this thread writes next comes from a graph: id:
                 // its node; submission: the graph
    TRACE_LAUNCHES, // from start on, this thread has launched a kernel: name; a[0]: so many times,
                    // which the thread counts on as long as it runs
    TRACE_KINDS,
} trace_kind_t;

typedef enum trace_op_t {
    TRACE_OP_OTHER,
    TRACE_OP_DISPATCH,
    TRACE_OP_COPY, // and all that moves bytes
    TRACE_OP_HOST, // a call of the application's
    TRACE_OP_WAIT, // nothing runs: an allocation waits for memory
    TRACE_OPS,
} trace_op_t;

// What a call does with memory of a GPU.
typedef enum trace_memory_t {
    TRACE_MEMORY_NONE,
    TRACE_MEMORY_TAKEN,
    TRACE_MEMORY_GIVEN_BACK,
} trace_memory_t;

typedef enum trace_copy_t {
    TRACE_COPY_OTHER,
    TRACE_COPY_TO_DEVICE,
    TRACE_COPY_TO_HOST,
    TRACE_COPY_WITHIN, // one device
    TRACE_COPY_ACROSS, // devices
    TRACE_COPY_HOST,   // host to host
    TRACE_COPY_SET,    // bytes are set
    TRACE_COPIES,
} trace_copy_t;

// What `start` and `end` of an operation count.
typedef enum trace_device_clock_t {
    TRACE_HOST,         // as host records
    TRACE_MONOTONIC_NS, // CLOCK_MONOTONIC
    TRACE_BOOT_NS,      // CLOCK_BOOTTIME
    TRACE_DEVICE_NS,    // and the number of a device's clock, from 1
    TRACE_CLOCK_MOST = 0xff,
} trace_device_clock_t;

static inline uint16_t trace_flags(trace_op_t op, uint32_t clock)
{
    return (uint16_t)((uint32_t)op | clock << 8);
}

// How many work-items a kernel has, packed into a[0], a[1] and a[2].
typedef struct trace_shape_t {
    uint32_t grid[3]; // in work-items
    uint32_t group_x;
    uint16_t group_y, group_z;
    uint32_t group_bytes; // of memory that a workgroup shares
} trace_shape_t;

typedef struct trace_record_t {
    _Atomic uint16_t kind; // written last
    uint16_t flags;
    uint32_t name; // its number; 0: none
    uint64_t start, end;
    uint64_t id;
    uint64_t submission;
    union {
        uint64_t a[3];
        char text[24]; // ends in a 0
        trace_shape_t shape;
    };
} trace_record_t;
_Static_assert(sizeof(trace_record_t) == 64, "a record is a cache line");

// The name of the runtime of a call, and what it returned.
static inline uint32_t trace_call_domain(const trace_record_t *call)
{
    return (uint32_t)(call->flags ? call->a[0] >> 32 : call->a[2]);
}

static inline uint64_t trace_call_result(const trace_record_t *call)
{
    return call->flags ? (uint32_t)call->a[0] : call->a[0];
}

// A name longer than one part continues in the next, which need not follow directly. The last part
// has a 0. A part may be there twice, if there was no room for all of them at first.
typedef struct trace_name_part_t {
    _Atomic uint16_t kind;
    uint16_t part;
    uint32_t name;
    char text[TRACE_PART];
} trace_name_part_t;
_Static_assert(sizeof(trace_name_part_t) == sizeof(trace_record_t), "a part is a record");

enum { TRACE_CHUNK = TRACE_SLOTS * (int)sizeof(trace_record_t) }; // bytes

#endif
