// SPDX-License-Identifier: Apache-2.0
// Tests: how they are written down, what they need, how they end.
//
//     TEST(transfer, fill_one_byte, .needs = KEEL_CAP_EXECUTES)
//     {
//         keel_buffer_t *x = new_buffer(64);
//         reach(submit(keel_op_fill(keel_whole(x), 7, 1)));
//         check_filled(x, 0, 64, 7);
//     }
//
// A test registers itself; there is no list. Each runs in a process of its own, in which nothing of
// Keel was used before.
#ifndef SUITE_TEST_H_
#define SUITE_TEST_H_

#include <keel/keel.h>

// What a test may need besides capabilities. Written by name in expect/*.txt, like these.
enum {
    NEED_NODES = 1 << 0,                // a logical device of two or more
    NEED_WORKERS = 1 << 1,              // work runs on other threads than the one that submits it
    NEED_FORK = 1 << 2,                 // the child of a fork can open a device of its own
    NEED_LISTED = 1 << 3,               // keel_device_list knows the device
    NEED_MAPPABLE_FD = 1 << 4,          // the host can map what is exported
    NEED_TRANSFER_QUEUES = 1 << 5,      // there are queues for transfers alone
    NEED_MANAGED = 1 << 6,              // memory of the device that the host can map
    NEED_BOUNDED_RECORDINGS = 1 << 7,   // a recording that is full fits into memory
    NEED_EXACT_USAGE = 1 << 8,          // buffers serve for no more than they were made for
    NEED_OVERLAP = 1 << 9,              // work runs beside other work, and no call waits for each
    NEED_PARALLEL_RECORDINGS = 1 << 10, // so does, in a recording, what no barrier orders
    NEED_OTHER_SIDE = 1 << 11, // an API is at hand that makes semaphores to import (other.h)
    NEED_PROCESS = 1 << 12,    // a process beside the test can have threads (child_start)
    NEED_KERNELS =
        1 << 13,         // the device takes the suite's kernels; found out when a test loads them
    NEED_LOSS = 1 << 14, // a kernel that goes astray loses the device, and not the process
    NEED_POINT_OBJECTS = 1 << 15, // the vendor has an object behind a point (native.h)
    NEED_DESCRIPTORS = 1 << 16,   // semaphores are imported by descriptors, not by objects
    NEED_READ_ONLY_HOST = 1 << 17 // memory of the host that may not be written can be imported
};

typedef struct test_t {
    const char *area;
    const char *name;
    const char *file;
    int line;
    void (*body)(void);
    uint32_t needs;      // of keel_cap_t; skipped where one is missing
    uint32_t also;       // of the NEED_ bits above
    const char *driver;  // runs on this driver only, or on these: "cuda hip"; NULL: on all
    unsigned seconds;    // time limit; 0: the default
    bool heavy;          // long or hungry: torture takes a sample of its allocations
    bool alone;          // measures time: no other test runs beside it
    bool loses;          // the device is lost, for everybody in the process
    bool lists;          // asks every driver for its devices, and so wakes every vendor's library
    bool opens;          // every device on the list of the driver
    struct test_t *next; // the registry's
} test_t;

#define TEST(area_, name_, ...)                                                                    \
    static void test_##area_##_##name_(void);                                                      \
    __attribute__((constructor)) static void test_##area_##_##name_##_register(void)               \
    {                                                                                              \
        static test_t test = {.area = #area_,                                                      \
                              .name = #name_,                                                      \
                              .file = __FILE__,                                                    \
                              .line = __LINE__,                                                    \
                              .body = test_##area_##_##name_,                                      \
                              __VA_ARGS__};                                                        \
        test_register(&test);                                                                      \
    }                                                                                              \
    static void test_##area_##_##name_(void)

// Called before main; the test must live for ever.
void test_register(test_t *test);

// All tests, sorted by file and line. The array belongs to the registry.
test_t **test_all(size_t *count);

// Whether a device's URI has this option: uri_has("cuda://0?serial=1", "serial=1"); "serial=" is
// one of any value.
bool uri_has(const char *uri, const char *option);
// The path of the library that a URI names, lib=PATH. False: it names none, or `path` is too small.
bool uri_library(const char *uri, char *path, size_t size);

// "area.name"; returns `text`.
const char *test_name(const test_t *test, char *text, size_t size);

// The name of the lowest bit of `caps`, or of `also` if `caps` is 0; "" for none.
const char *need_name(uint32_t caps, uint32_t also);

typedef enum outcome_t {
    OUTCOME_CRASHED, // the zero a process leaves behind that ends before it can say more
    OUTCOME_PASSED,
    OUTCOME_FAILED,
    OUTCOME_SKIPPED,
    OUTCOME_STARVED,   // ended early with an error after something was made to fail
    OUTCOME_TIMED_OUT, //
} outcome_t;

#endif
