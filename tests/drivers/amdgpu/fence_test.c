// SPDX-License-Identifier: Apache-2.0
// What one GPU of a device writes, another one reads, again and again in the same places, in turn
// by semaphores: so packets must acquire and release at system scope where a submission begins and
// ends. Run on two software GPUs with weak memory (keel sim --weak), whose L2 caches keep what no
// packet writes back or drops.
#include <keel/keel.h>

#include "ok.h"
#include "unit.h"

// Lines of the second GPU's memory are not where those of the first one's are: they would push each
// other out of the caches.
enum { ROUNDS = 24, LINE = 64, LINES = 4, AWAY = 16, WORD = 4 };

typedef struct setup_t {
    keel_device_t *device;
    keel_queue_t *queues[2];
    keel_buffer_t *near; // LINES lines of the first GPU's memory
    keel_buffer_t *far;  // of the second one's, behind AWAY others
    keel_buffer_t *seen; // LINES lines for each round, in memory of the host
    keel_semaphore_t *semaphore;
} setup_t;

static keel_buffer_t *buffer_new(const setup_t *s, uint32_t node, uint64_t size, uint32_t memory)
{
    const keel_buffer_options_t options = {.size = size, .node = node, .memory = memory};
    keel_buffer_t *buffer = NULL;
    OK(keel_buffer_create(s->device, &options, &buffer));
    return buffer;
}

static void setup_open(setup_t *s, const char *uri)
{
    OK(keel_device_open(uri, NULL, &s->device));
    for (uint32_t i = 0; i < 2; i++) s->queues[i] = keel_device_queue(s->device, i);
    s->near = buffer_new(s, 0, LINES * LINE, KEEL_MEMORY_DEVICE_LOCAL);
    s->far = buffer_new(s, 1, (AWAY + LINES) * LINE, KEEL_MEMORY_DEVICE_LOCAL);
    s->seen = buffer_new(s, 0, ROUNDS * LINES * LINE, KEEL_MEMORY_HOST_VISIBLE);
    OK(keel_semaphore_create(s->device, NULL, &s->semaphore));
}

static void setup_close(setup_t *s)
{
    keel_semaphore_release(s->semaphore);
    keel_buffer_release(s->seen);
    keel_buffer_release(s->far);
    keel_buffer_release(s->near);
    keel_device_release(s->device);
}

static keel_ref_t line(keel_buffer_t *buffer, uint32_t i)
{
    return keel_span(buffer, (uint64_t)i * LINE, LINE);
}

static keel_ref_t word(keel_buffer_t *buffer, uint32_t i)
{
    return keel_span(buffer, (uint64_t)i * LINE, WORD);
}

// Behind what was submitted before, on any queue. `recorded`: by a recording, which the GPU keeps.
static void next_submit(const setup_t *s, uint32_t queue, const keel_op_t *ops, size_t count,
                        bool recorded, uint64_t *value)
{
    const keel_point_t after = keel_point(s->semaphore, *value);
    const keel_point_t then = keel_point(s->semaphore, ++*value);
    keel_recording_t *recording = NULL;
    keel_op_t execute;
    if (recorded) {
        OK(keel_recording_create(s->device, NULL, &recording));
        OK(keel_recording_add(recording, ops, count));
        OK(keel_recording_end(recording));
        execute = keel_op_execute(recording, KEEL_NO_BINDINGS);
        ops = &execute;
        count = 1;
    }
    OK(keel_queue_submit(s->queues[queue], KEEL_AFTER(after), ops, count, KEEL_SIGNAL(then), NULL));
    keel_recording_release(recording);
}

// The first GPU writes, the second one takes that to its own memory, and says how the first one is
// to go on, which brings to the host what it finds there. In front of and behind barriers.
static void round_submit(const setup_t *s, uint32_t round, bool recorded, uint64_t *value)
{
    const uint32_t row = round * LINES, odd = round & 1;
    const keel_op_t writes[] = {
        keel_op_fill(line(s->near, 0), round, WORD),
        keel_op_barrier(),
        keel_op_fill(line(s->near, 1), round, WORD),
    };
    const keel_op_t takes[] = {
        keel_op_copy(line(s->near, 0), line(s->far, AWAY)),
        keel_op_fill(line(s->far, AWAY + 2), round, WORD),
        keel_op_barrier(),
        keel_op_copy(line(s->near, 1), line(s->far, AWAY + 1)),
        keel_op_fill(word(s->near, 2), odd, WORD),
    };
    const keel_op_t brings[] = {
        keel_op_if(word(s->near, 2)),
        keel_op_copy(line(s->far, AWAY), line(s->seen, row)),
        keel_op_else(),
        keel_op_fill(line(s->seen, row), ROUNDS + round, WORD),
        keel_op_end(),
        keel_op_copy(line(s->far, AWAY + 2), line(s->seen, row + 2)),
        keel_op_copy(word(s->near, 2), word(s->seen, row + 3)),
        keel_op_barrier(),
        keel_op_copy(line(s->far, AWAY + 1), line(s->seen, row + 1)),
    };
    next_submit(s, 0, writes, KEEL_LENGTH(writes), recorded, value);
    next_submit(s, 1, takes, KEEL_LENGTH(takes), recorded, value);
    next_submit(s, 0, brings, KEEL_LENGTH(brings), true, value); // only recordings branch
}

static void seen_check(const setup_t *s)
{
    uint32_t *words;
    OK(keel_buffer_map(s->seen, 0, ROUNDS * LINES * LINE, KEEL_ACCESS_READ, (void **)&words));
    for (uint32_t round = 0; round < ROUNDS; round++, words += LINES * LINE / WORD) {
        const uint32_t other = round & 1 ? 0 : ROUNDS; // the way that an even round takes
        for (uint32_t i = 0; i < LINE / WORD; i++) assert_int_equal(words[i], other + round);
        for (uint32_t i = LINE / WORD; i < 3 * LINE / WORD; i++) assert_int_equal(words[i], round);
        assert_int_equal(words[3 * LINE / WORD], round & 1);
    }
    keel_buffer_unmap(s->seen);
}

static void rounds_run(const char *uri, bool recorded)
{
    setup_t s;
    uint64_t value = 1;
    setup_open(&s, uri);
    for (uint32_t round = 0; round < ROUNDS; round++) round_submit(&s, round, recorded, &value);
    OK(keel_semaphore_signal(s.semaphore, 1));
    const keel_point_t last = keel_point(s.semaphore, value);
    OK(keel_wait(KEEL_POINTS(last), KEEL_ALL, KEEL_FOREVER));
    seen_check(&s);
    setup_close(&s);
}

static void test_what_the_gpu_schedules(void **state)
{
    (void)state;
    rounds_run("amdgpu://0,1?scheduler=device", false);
    rounds_run("amdgpu://0,1?scheduler=device", true);
}

static void test_what_the_host_schedules(void **state)
{
    (void)state;
    rounds_run("amdgpu://0,1?scheduler=host", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_the_gpu_schedules),
        cmocka_unit_test(test_what_the_host_schedules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
