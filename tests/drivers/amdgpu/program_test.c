// SPDX-License-Identifier: Apache-2.0
// Recordings as programs of the GPU: long ones, loops and counts in memory run without the host.
// Run on the software GPU (keel sim). With arguments it does what flat.sh and issue.sh count the
// instructions of, on the host and on the GPU.
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "drivers/amdgpu/device/program.h"
#include "drivers/amdgpu/host/program/program.h"
#include "drivers/amdgpu/host/scheduler/scheduler.h"
#include "drivers/amdgpu/setup.h"

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_TOGGLE_COLLECT
#endif

static const char *uri = "amdgpu://0";

static const scheduler_t *shared_of(const setup_t *s)
{
    return amdgpu_device(s->device)->scheduler->controls[0].shared;
}

// Runs it when the semaphore has the value, and signals the next one.
static void submit(const setup_t *s, keel_refs_t table, uint64_t value)
{
    const keel_point_t wait = keel_point(s->semaphore, value),
                       signal = keel_point(s->semaphore, value + 1);
    const keel_op_t op = keel_op_execute(s->recording, table);
    OK(keel_queue_submit(s->queue, KEEL_POINTS(wait), &op, 1, KEEL_POINTS(signal), NULL));
}

// Lets `count` submissions go, that wait for each other, and says how often the host was told.
static uint64_t go(const setup_t *s, uint64_t count)
{
    uint64_t told = shared_of(s)->told;
    const keel_point_t last = keel_point(s->semaphore, count + 1);
    OK(keel_semaphore_signal(s->semaphore, 1));
    OK(keel_wait(KEEL_POINTS(last), KEEL_ALL, KEEL_FOREVER));
    return shared_of(s)->told - told;
}

// More packets than a segment has, and than the ring has room for.
static void test_a_long_recording_goes_on_by_itself(void **state)
{
    (void)state;
    setup_t s;
    setup_open(&s, uri, 1);
    for (uint32_t i = 0; i < WORDS; i++) {
        keel_ref_t target = i % 2 ? keel_slot(0, i * sizeof i, sizeof i) : word(&s, i);
        add(&s, keel_op_fill(target, i + 1, sizeof i));
        if (i % 100 == 0) add(&s, keel_op_barrier());
    }
    OK(keel_recording_end(s.recording));
    const amdgpu_program_t *program = amdgpu_program_of(s.recording, 0);
    assert_non_null(program);
    assert_true(program->room <= PROGRAM_SEGMENT + 2);
    submit(&s, KEEL_BIND(s.buffer), 1);
    assert_in_range(go(&s, 1), 0, 1);
    const uint32_t *words = map(&s);
    for (uint32_t i = 0; i < WORDS; i++) assert_int_equal(words[i], i + 1);
    keel_buffer_unmap(s.buffer);
    setup_close(&s);
}

// while words[0] { words[0]--; words[1]++; if words[0] words[2] = 5 else words[3] = 6 }, several
// times behind each other; the value of the first comes from before.
static void test_loops_need_no_host(void **state)
{
    enum { ROUNDS = 12, RUNS = 3 };
    (void)state;
    setup_t s;
    setup_open(&s, uri, 0);
    add(&s, keel_op_fill(word(&s, 0), ROUNDS, 4));
    add(&s, keel_op_while(word(&s, 0)));
    add(&s, kernel(&s, "count_down", KEEL_BIND(s.buffer)));
    add(&s, keel_op_if(word(&s, 0)));
    add(&s, keel_op_fill(word(&s, 2), 5, 4));
    add(&s, keel_op_else());
    add(&s, keel_op_fill(word(&s, 3), 6, 4));
    add(&s, keel_op_end());
    add(&s, keel_op_end());
    OK(keel_recording_end(s.recording));
    for (uint64_t i = 1; i <= RUNS; i++) submit(&s, (keel_refs_t){0}, i);
    uint64_t handlers = atomic_load(&amdgpu_device(s.device)->runs.handlers);
    assert_in_range(go(&s, RUNS), 0, 1);
    assert_int_equal(handlers, 0); // no packets of the host's are under way
    const uint32_t *words = map(&s);
    assert_int_equal(words[0], 0);
    assert_int_equal(words[1], RUNS * ROUNDS);
    assert_int_equal(words[2], 5);
    assert_int_equal(words[3], 6);
    keel_buffer_unmap(s.buffer);
    setup_close(&s);
}

// words[4..6] are counts, written by a command before.
static void test_counts_need_no_host(void **state)
{
    enum { GROUPS = 7 };
    (void)state;
    setup_t s;
    setup_open(&s, uri, 0);
    const keel_ref_t counts = keel_span(s.buffer, 16, 12);
    const keel_op_t tally = kernel(&s, "tally", KEEL_BIND(s.buffer));
    add(&s, keel_op_indirect(tally, KEEL_COUNTS_STATIC, counts)); // none yet
    add(&s, keel_op_barrier());
    add(&s, keel_op_update(counts, (uint32_t[]){GROUPS, 2, 1}));
    add(&s, keel_op_barrier());
    add(&s, keel_op_indirect(tally, KEEL_COUNTS_DYNAMIC, counts));
    OK(keel_recording_end(s.recording));
    submit(&s, (keel_refs_t){0}, 1);
    assert_in_range(go(&s, 1), 0, 1);
    assert_int_equal(map(&s)[0], 2 * GROUPS);
    keel_buffer_unmap(s.buffer);
    setup_close(&s);
}

// A recording whose first command fails when it is issued; what is behind a barrier has not run.
static void fault_check(keel_op_t wrong, const setup_t *s, keel_refs_t table)
{
    add(s, keel_op_fill(word(s, 8), 1, 4));
    add(s, wrong);
    add(s, keel_op_barrier());
    add(s, keel_op_fill(word(s, 9), 2, 4));
    OK(keel_recording_end(s->recording));
    assert_non_null(amdgpu_program_of(s->recording, 0));
    submit(s, table, 1);
    const keel_point_t last = keel_point(s->semaphore, 2);
    OK(keel_semaphore_signal(s->semaphore, 1));
    keel_status_t status = keel_wait(KEEL_POINTS(last), KEEL_ALL, KEEL_FOREVER);
    assert_non_null(status);
    keel_status_release(status);
    OK(keel_device_wait_idle(s->device, KEEL_FOREVER));
    assert_int_equal(map(s)[8], 1);
    assert_int_equal(map(s)[9], 0);
    keel_buffer_unmap(s->buffer);
    keel_buffer_unmap(s->buffer);
}

static void test_nothing_runs_behind_a_fault(void **state)
{
    (void)state;
    const uint32_t many[3] = {UINT32_MAX, UINT32_MAX, 1};
    setup_t s;
    setup_open(&s, uri, 1); // six bytes are no multiple of four
    fault_check(keel_op_fill(keel_slot(0, 0, KEEL_WHOLE), 1, 4), &s,
                KEEL_BIND(keel_span(s.buffer, 0, 6)));
    setup_close(&s);
    setup_open(&s, uri, 2); // the two ranges overlap
    fault_check(keel_op_copy(keel_slot(0, 0, 8), keel_slot(1, 4, 8)), &s,
                KEEL_BIND(s.buffer, s.buffer));
    setup_close(&s);
    for (int dynamic = 0; dynamic < 2; dynamic++) {
        setup_open(&s, uri, 0); // too many groups
        memcpy(map(&s) + 16, many, sizeof many);
        keel_buffer_unmap(s.buffer);
        fault_check(keel_op_indirect(kernel(&s, "tally", KEEL_BIND(s.buffer)),
                                     dynamic ? KEEL_COUNTS_DYNAMIC : KEEL_COUNTS_STATIC,
                                     keel_span(s.buffer, 64, 12)),
                    &s, (keel_refs_t){0});
        setup_close(&s);
    }
}

// The first cache line of a record; what is behind that cannot be read.
static record_t *line_make(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(pages, MAP_FAILED);
    assert_int_equal(mprotect(pages, page, PROT_READ | PROT_WRITE), 0);
    return (record_t *)(void *)(pages + page - PROTOCOL_LINE);
}

// The GPU asks the host for the end of a submission by a cache line, which has all that the host
// must know: also why it failed.
static void test_a_request_is_a_cache_line(void **state)
{
    (void)state;
    setup_t s;
    keel_point_t done;
    setup_open(&s, uri, 0);
    add(&s, kernel(&s, "tally", KEEL_BIND(s.buffer)));
    OK(keel_recording_end(s.recording));
    const keel_point_t open = keel_point(s.semaphore, 1);
    const keel_op_t op = keel_op_execute(s.recording, (keel_refs_t){0});
    OK(keel_queue_submit(s.queue, KEEL_POINTS(open), &op, 1, KEEL_NO_SIGNALS, &done));
    amdgpu_run_t *run = amdgpu_device(s.device)->scheduler->runs;
    assert_int_equal((uintptr_t)run->record % PROTOCOL_LINE, 0);
    assert_int_equal((uintptr_t)shared_of(&s) % PROTOCOL_LINE, 0);
    run->record = line_make(); // the GPU has the record, and the host sees nothing but this of it
    run->record->fault = (uint64_t)FAULT_COUNTS << 32;
    memset(run->record->fault_counts, 0xff, sizeof run->record->fault_counts);
    OK(keel_semaphore_signal(s.semaphore, 1));
    keel_status_t status = keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER);
    assert_non_null(strstr(keel_status_message(status), "4294967295"));
    keel_status_release(status);
    setup_close(&s);
}

// The host does not see it there.
static void test_programs_lie_with_the_gpu(void **state)
{
    (void)state;
    setup_t s;
    setup_open(&s, uri, 0);
    const amdgpu_device_t *device = amdgpu_device(s.device);
    uint64_t taken = atomic_load(&device->nodes[0].taken);
    hsa_amd_pointer_info_t info = {.size = sizeof info};
    add(&s, keel_op_fill(word(&s, 0), 1, 4));
    OK(keel_recording_end(s.recording));
    const amdgpu_program_t *program = amdgpu_program_of(s.recording, 0);
    assert_int_equal(device->hsa->hsa_amd_pointer_info((void *)(uintptr_t)program->address, &info,
                                                       NULL, NULL, NULL),
                     HSA_STATUS_SUCCESS);
    assert_int_equal(info.agentOwner.handle, device->agent.handle);
    assert_int_equal(atomic_load(&device->nodes[0].taken), taken + program->uploaded);
    keel_recording_release(s.recording);
    assert_int_equal(atomic_load(&device->nodes[0].taken), taken);
    s.recording = NULL;
    setup_close(&s);
}

// What is copied of the arguments for an execution is what the kernel declares, and nothing else.
static void test_arguments_are_what_kernels_declare(void **state)
{
    (void)state;
    setup_t s;
    setup_open(&s, uri, 1);
    add(&s, kernel(&s, "tally", KEEL_BIND(keel_slot(0, 0, KEEL_WHOLE))));
    OK(keel_recording_end(s.recording));
    const amdgpu_program_t *program = amdgpu_program_of(s.recording, 0);
    assert_int_equal(program->arguments, 16 + 8 + 8); // the grid; an address; a length
    setup_close(&s);
}

// For flat.sh: submits a recording of so many commands, which never run.
static void submit_many(uint32_t count)
{
    enum { SUBMISSIONS = 10 };
    setup_t s;
    setup_open(&s, uri, 1);
    for (uint32_t i = 0; i < count; i++) add(&s, keel_op_fill(word(&s, i % WORDS), i, 4));
    OK(keel_recording_end(s.recording));
    OK(keel_recording_prepare(s.recording, s.queue));
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_TOGGLE_COLLECT;
    for (uint64_t i = 1; i <= SUBMISSIONS; i++) submit(&s, KEEL_BIND(s.buffer), i);
    CALLGRIND_TOGGLE_COLLECT;
    OK(keel_semaphore_fail(s.semaphore, KEEL_ERROR(KEEL_ABORTED, "enough")));
    OK(keel_device_wait_idle(s.device, KEEL_FOREVER));
    setup_close(&s);
}

// For issue.sh: runs a recording of so many dispatches, to whose arguments an execution adds.
static void issue_many(uint32_t count)
{
    setup_t s;
    setup_open(&s, uri, 1);
    for (uint32_t i = 0; i < count; i++)
        add(&s, kernel(&s, "tally", KEEL_BIND(keel_slot(0, 0, KEEL_WHOLE))));
    OK(keel_recording_end(s.recording));
    submit(&s, KEEL_BIND(s.buffer), 1);
    const keel_point_t last = keel_point(s.semaphore, 2);
    OK(keel_semaphore_signal(s.semaphore, 1));
    OK(keel_wait(KEEL_POINTS(last), KEEL_ALL, KEEL_FOREVER));
    assert_int_equal(map(&s)[0], count);
    keel_buffer_unmap(s.buffer);
    setup_close(&s);
}

// For issue.sh: so many ticks with nothing to do.
static void tick_many(uint32_t count)
{
    setup_t s;
    setup_open(&s, uri, 1);
    for (uint64_t i = 1; i <= count; i++) {
        amdgpu_scheduler_ask(amdgpu_control_of(s.queue));
        while (__atomic_load_n(&shared_of(&s)->ticks, __ATOMIC_ACQUIRE) < i) sched_yield();
    }
    setup_close(&s);
}

// MODE COUNT [URI]
static int do_many(char **argv)
{
    uint32_t count = (uint32_t)atoi(argv[2]);
    if (argv[3]) uri = argv[3];
    if (!strcmp(argv[1], "submit"))
        submit_many(count);
    else if (!strcmp(argv[1], "issue"))
        issue_many(count);
    else
        tick_many(count);
    return 0;
}

int main(int argc, char **argv)
{
    if (!getenv("KEEL_SIM_GPUS")) return 77; // to be run by keel sim
    if (argc > 2) return do_many(argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_long_recording_goes_on_by_itself),
        cmocka_unit_test(test_loops_need_no_host),
        cmocka_unit_test(test_counts_need_no_host),
        cmocka_unit_test(test_nothing_runs_behind_a_fault),
        cmocka_unit_test(test_a_request_is_a_cache_line),
        cmocka_unit_test(test_programs_lie_with_the_gpu),
        cmocka_unit_test(test_arguments_are_what_kernels_declare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
