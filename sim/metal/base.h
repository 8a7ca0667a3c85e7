// SPDX-License-Identifier: Apache-2.0
// What the software GPU needs of its host: settings, a log, a clock. Any thread may call any of it.
#ifndef SIM_METAL_BASE_H_
#define SIM_METAL_BASE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Of each thread one, in memory that a thread has from its begin: what the loader allocates later
// ThreadSanitizer takes for a race when the thread ends.
#define PER_THREAD __attribute__((tls_model("initial-exec"))) _Thread_local

// A message that is to answer nil, or a command buffer that is to die.
typedef struct rule_t {
    char selector[80]; // empty: any
    uint64_t number;   // which one, from 1; 0: no such rule
    bool onwards;      // that one and all after it
    unsigned code;     // of MTLCommandBufferError
    uint64_t works;    // that are done before
} rule_t;

enum { RULES_MAX = 16 };

// Of one selector.
typedef struct tally_t {
    char name[56];
    uint64_t sent;
} tally_t;

// In a file of the user's: messages that may answer nil.
typedef struct counters_t {
    uint64_t sent;
    uint64_t hit;      // a failure was injected
    tally_t tallies[]; // in the order of first messages, as far as the file has room
} counters_t;

// What KEEL_SIM_METAL says; docs/sim.md describes it.
typedef struct settings_t {
    enum { SAMPLES_GOOD, SAMPLES_NONE, SAMPLES_ZERO } samples; // times at the bounds of encoders
    unsigned devices;
    uint64_t page;    // of memory that is wrapped without a copy
    bool leaks;       // say at exit which objects are still alive
    bool residency;   // the GPU sees what was made resident, and nothing else
    uint64_t seed;    // groups and threads run in an order of their own; 0: one after the other
    uint64_t late;    // microseconds that handlers and listeners are called late, at most
    bool discrete;    // the GPU has memory of its own
    bool hazards;     // accesses that nothing orders are looked for
    uint64_t family;  // of Apple's GPUs, from 1 on
    uint64_t tier;    // of argument buffers: 1 takes none but what an encoder has written
    bool lost_notes;  // a host's write to an event's value wakes no listener
    bool virtual_gpu; // the one of a virtual machine
    bool victims;     // with a command buffer that `kill` has die, die those of other queues
    bool warns;       // libraries come with an error that is a warning
    uint64_t slow;    // microseconds that each work takes more
    uint64_t crowd;   // microseconds in which a queue takes no second thread; 0: it always does
    rule_t fail[RULES_MAX];
    unsigned fail_count;
    char lacks[RULES_MAX][80]; // selectors and classes that are not there, as on an older system
    unsigned lack_count;
    rule_t kill;          // counted over committed command buffers
    rule_t lose;          // with that message all devices go
    rule_t xpc;           // counted over texts and pipelines: the compiler's process goes
    counters_t *counters; // NULL: they are not asked for
    size_t tally_room;
    uint64_t indirect_threads; // of a group of a pipeline for indirect commands, at most
    char cache[256];           // a folder that keeps compiled MSL; empty: none
} settings_t;

const settings_t *settings(void);

// Which system the library is of: that of ios/ios.c, or of macos/macos.c.
extern const bool on_ios;

// Whether a rule means the one of this number, from 1.
bool rule_means(const rule_t *rule, uint64_t number);

// One line to standard error, in one write, that begins with `sim: metal:`.
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The same, and then the process ends, as it does where Metal asserts.
_Noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Zeroed memory. The process ends if there is none.
void *make(size_t size);

uint64_t clock_ns(void);

uint64_t draw(void); // a number, by the seed

#endif
