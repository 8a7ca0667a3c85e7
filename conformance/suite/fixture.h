// SPDX-License-Identifier: Apache-2.0
// What tests work with: the device under test, things made from it, threads, gates.
//
// Whatever these functions return is owned by the test and released after it: threads are joined
// first, then objects released, the newest first, and memory last.
// Each leaves the test when it fails, so results need no check.
#ifndef SUITE_FIXTURE_H_
#define SUITE_FIXTURE_H_

#include "suite/check.h"

typedef enum owned_kind_t {
    OWNED_DEVICE,
    OWNED_QUEUE,
    OWNED_SEMAPHORE,
    OWNED_BUFFER,
    OWNED_POOL,
    OWNED_EXECUTABLE,
    OWNED_RECORDING,
    OWNED_FILE,
    OWNED_COMPLETION,
    OWNED_STATUS,
    OWNED_MEMORY,
    OWNED_DESCRIPTOR,
    OWNED_THREAD,
    OWNED_CHILD,
    OWNED_GATE,
    OWNED_CLEANUP,
} owned_kind_t;

// Gives an object to the test; NULL is fine. Any thread.
#define OWN(object)                                                                                \
    own(_Generic((object),                                                                         \
            keel_device_t *: OWNED_DEVICE,                                                         \
            keel_queue_t *: OWNED_QUEUE,                                                           \
            keel_semaphore_t *: OWNED_SEMAPHORE,                                                   \
            keel_buffer_t *: OWNED_BUFFER,                                                         \
            keel_pool_t *: OWNED_POOL,                                                             \
            keel_executable_t *: OWNED_EXECUTABLE,                                                 \
            keel_recording_t *: OWNED_RECORDING,                                                   \
            keel_file_t *: OWNED_FILE,                                                             \
            keel_completion_t *: OWNED_COMPLETION,                                                 \
            keel_status_t: OWNED_STATUS),                                                          \
        (object))
void own(owned_kind_t kind, void *object);
// Calls `fn(user)` after the test.
void own_cleanup(void (*fn)(void *user), void *user);
// Closes a file descriptor after the test, when its threads have ended.
void own_descriptor(int fd);

// Releases something the test owns now; disown takes it back without releasing it.
void drop(void *object);
void disown(void *object);

// Memory of the test, zeroed; and with bytes in it that look like no other part of it.
void *scratch(size_t size);
uint8_t *numbered(size_t size);

// The URI under test and its driver's name; the device it opens (the first time) and its queue 0.
const char *the_uri(void);
// The URI of another device of its kind, which may be the same.
const char *the_partner(void);
const char *the_driver(void);
keel_device_t *the_device(void);
keel_queue_t *the_queue(void);
const keel_caps_t *the_caps(void);

// Another device.
keel_device_t *open_device(const char *uri);
// The device under test if it has several nodes, or one of its kind that has; else the test is
// skipped.
keel_device_t *open_nodes(void);
// The test is skipped if the device gave the buffer these uses without being asked. For tests
// that need EXACT_USAGE.
void need_no_usage(keel_buffer_t *buffer, uint32_t usage);
// The URI under test with a further option, if it has not got it yet: with_option("threads=1").
const char *with_option(const char *option);

keel_queue_t *new_queue(int32_t priority);
keel_semaphore_t *new_semaphore(uint64_t initial);
keel_pool_t *new_pool(uint64_t limit, uint64_t block_size);
keel_pool_t *new_failing_pool(uint64_t limit, uint64_t block_size); // KEEL_POOL_FAILS
keel_recording_t *new_recording(uint32_t slots, const keel_op_t *ops, size_t count);
#define RECORD(slots, ...)                                                                         \
    new_recording((slots), (const keel_op_t[]){__VA_ARGS__},                                       \
                  sizeof((const keel_op_t[]){__VA_ARGS__}) / sizeof(keel_op_t))

// Buffers. Made of zeros, of one byte throughout, of given bytes, from a pool without memory yet.
keel_buffer_t *new_buffer(uint64_t size);
keel_buffer_t *new_buffer_filled(uint64_t size, uint8_t byte);
keel_buffer_t *new_buffer_of(const void *data, uint64_t size);
keel_buffer_t *new_buffer_on(keel_device_t *device, uint64_t size);
keel_buffer_t *new_host_buffer(uint64_t size); // that the host can map; contents undefined
keel_buffer_t *new_host_buffer_on(keel_device_t *device, uint64_t size);
keel_buffer_t *new_subspan(keel_buffer_t *buffer, uint64_t offset, uint64_t length);
keel_buffer_t *new_reserved(keel_pool_t *pool, uint64_t size);

// The host's way into and out of any buffer, host visible or not; nothing may be using it.
void buffer_put(keel_buffer_t *buffer, uint64_t offset, const void *data, uint64_t length);
void buffer_get(keel_buffer_t *buffer, uint64_t offset, void *data, uint64_t length);
void buffer_get_on(keel_device_t *device, keel_buffer_t *buffer, void *data, uint64_t length);
uint32_t buffer_u32(keel_buffer_t *buffer, uint64_t index);
uint64_t buffer_u64(keel_buffer_t *buffer, uint64_t index);

// Contents.
#define check_bytes(buffer, offset, expected, length)                                              \
    check_bytes_(HERE, (buffer), (offset), (expected), (length))
#define check_filled(buffer, offset, length, byte)                                                 \
    check_filled_(HERE, (buffer), (offset), (length), (byte))
void check_bytes_(const char *file, int line, keel_buffer_t *buffer, uint64_t offset,
                  const void *expected, uint64_t length);
void check_filled_(const char *file, int line, keel_buffer_t *buffer, uint64_t offset,
                   uint64_t length, uint8_t byte);

// A dispatch of a kernel of conformance/kernels, over a row of groups. What it points to is the
// test's: it may be kept and returned.
keel_op_t op_kernel(const char *name, uint32_t groups, const void *constants, size_t constant_size,
                    keel_refs_t bindings);

// Kernels of conformance/kernels, by their names; those of host.c need KEEL_CAP_KERNEL_STATUS.
// Where the device takes no image of theirs, which is KEEL_UNSUPPORTED, the test is skipped.
keel_executable_t *kernels(void);
keel_executable_t *kernels_on(keel_device_t *device);
keel_executable_t *kernels_load(keel_device_t *device, const keel_executable_options_t *options);
void kernels_image(const void **data, size_t *size);      // a container
void host_kernels_image(const void **data, size_t *size); // a shared object
keel_entry_t kernel(const char *name);
keel_entry_t kernel_on(keel_device_t *device, const char *name);

// Submission to queue 0 of the device under test, and waiting with the test's time limit in mind.
keel_point_t submit(keel_op_t op);
keel_point_t submit_after(keel_points_t waits, keel_op_t op);
keel_point_t submit_all(keel_points_t waits, const keel_op_t *ops, size_t count);
#define SUBMIT(waits, ...)                                                                         \
    submit_all((waits), (const keel_op_t[]){__VA_ARGS__},                                          \
               sizeof((const keel_op_t[]){__VA_ARGS__}) / sizeof(keel_op_t))
#define reach(point)              reach_(HERE, (point))
#define reach_value(semaphore, v) reach_(HERE, keel_point((semaphore), (v)))
void reach_(const char *file, int line, keel_point_t point);
// By polls, each with a timeout of 0. None of them sleeps, so none asks the device for a wake-up.
#define reach_polling(points, mode) reach_polling_(HERE, (points), (mode))
void reach_polling_(const char *file, int line, keel_points_t points, keel_wait_mode_t mode);
// The point must fail with this code.
#define reach_failure(point, code) reach_failure_(HERE, (point), (code), NULL)
// ... and an error that contains `part`.
#define reach_failure_saying(point, code, part) reach_failure_(HERE, (point), (code), (part))
void reach_failure_(const char *file, int line, keel_point_t point, keel_code_t code,
                    const char *part);
// True if the point has been reached or has failed.
bool ended(keel_point_t point);
// True if it has not; or if the device may be lost, with which everything ends (faulted).
bool pending(keel_point_t point);
uint64_t value_of(keel_semaphore_t *semaphore);
// How long one may wait for what must happen, in ns.
uint64_t patience(void);
void sleep_ms(unsigned ms);

// Threads. One whose check fails ends, and the test fails when it has ended itself.
typedef struct thread_t thread_t;
thread_t *thread_start(void (*fn)(void *user), void *user);
void thread_join(thread_t *thread);
// Waits until it sleeps, or has ended; the second is about the test's own thread. Where the system
// does not tell, they return at once.
void thread_asleep(thread_t *thread);
void test_asleep(void);

// Runs `fn` in the child of a fork, where checks may be used, and waits for it.
void in_child(void (*fn)(void *user), void *user);

// The same beside the test: the other side of something, where no allocation is made to fail and
// the test's devices are lost. Its end is that of a process that did not release anything. One that
// was not joined is killed after the test; so is one whose parent ends. For tests with
// NEED_PROCESS.
typedef struct child_t child_t;
child_t *child_start(void (*fn)(void *user), void *user);
void child_join(child_t *child);
void child_kill(child_t *child);

// Something to wait for that is not Keel's. Opened by the runner when the test has failed, so that
// no thread stays behind one.
typedef struct gate_t gate_t;
gate_t *new_gate(void);
void gate_open(gate_t *gate);
bool gate_is_open(gate_t *gate);
void gate_wait(gate_t *gate);
// False if it stayed shut for that long.
bool gate_wait_ms(gate_t *gate, unsigned ms);

// A kernel that keeps a queue busy until the third of four words is set, so long at most.
keel_point_t queue_hold(keel_queue_t *queue, keel_buffer_t *words, uint32_t ms);

// Waits until a counter has come to a value, which must not be far away.
#define come_to(counter, value) come_to_(HERE, (counter), (value))
void come_to_(const char *file, int line, _Atomic int *counter, int value);

// A host call that opens `entered` on its way in and waits at `gate`.
typedef struct hold_t {
    gate_t *entered;
    gate_t *gate;
} hold_t;
hold_t *new_hold(void);
keel_op_t op_hold(hold_t *hold);
// Waits until the call is inside; leaves the test if its submission, `done`, ended without it.
void hold_entered(hold_t *hold, keel_point_t done);

#endif
