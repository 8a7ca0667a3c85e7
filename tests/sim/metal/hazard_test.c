// SPDX-License-Identifier: Apache-2.0
// hazard_test LIBRARY: with hazards=1, accesses that nothing orders are told of, and no others.
#include "rig.h"

#include <sched.h>
#include <stdatomic.h>

enum { SIZE = 256, UNTRACKED = 1 << 8, MANAGED = 1 << 4, SERIAL = 0, CONCURRENT = 1 };
enum { LARGE = 1 << 17 }; // the host's writes are not looked for, and touches are held for a while

static size_t size = SIZE; // of buffers

static const char source[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "kernel void bump(device uint *x [[buffer(0)]]) { x[0] += 1; }\n"
    "kernel void look(device const uint *x [[buffer(0)]], device uint *y [[buffer(1)]])\n"
    "{\n"
    "    y[0] = x[0];\n"
    "}\n"
    "kernel void clear(device uint *x [[buffer(0)]]) { for (uint i = 0; i < 64; i++) x[i] = 0; }\n"
    "kernel void low(device uchar *x [[buffer(0)]]) { x[1] = 7; }\n"
    "kernel void high(device uchar *x [[buffer(0)]]) { x[2] = 7; }\n"
    "kernel void count(device atomic_uint *x [[buffer(0)]])\n"
    "{\n"
    "    atomic_fetch_add_explicit(x, 1u, memory_order_relaxed);\n"
    "}\n"
    "kernel void peek(device atomic_uint *x [[buffer(0)]], device uint *y [[buffer(1)]])\n"
    "{\n"
    "    y[0] = atomic_load_explicit(x, memory_order_relaxed);\n"
    "}\n";

static id text(const char *from)
{
    return m_string(metal.objc_getClass("NSString"), from);
}

// A device with two queues and some untracked buffers, and one encoder that is open.
typedef struct scene_t {
    id device, library, queue, other;
    id x, y, z, fence, event;
    id command, encoder;
} scene_t;

static scene_t scene_begin(id device)
{
    return (scene_t){.device = device,
                     .library = m_new_library(device, text(source), NULL, NULL),
                     .queue = m_new_queue(device, 8),
                     .other = m_new_queue(device, 8),
                     .x = m_new_buffer(device, size, UNTRACKED),
                     .y = m_new_buffer(device, size, UNTRACKED),
                     .z = m_new_buffer(device, size, UNTRACKED),
                     .fence = m_new_fence(device),
                     .event = m_new_event(device)};
}

static void scene_end(scene_t *s)
{
    id all[] = {s->library, s->queue, s->other, s->x, s->y, s->z, s->fence, s->event};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) m_release(all[i]);
}

static void open_compute(scene_t *s, size_t type)
{
    s->encoder = m_compute_type(s->command, type);
}

static void begin(scene_t *s, id queue, size_t type)
{
    s->command = m_command(queue);
    open_compute(s, type);
}

// One thread of a kernel; it may read x and write y, or change x.
static void dispatch(scene_t *s, const char *kernel, id x, id y)
{
    id function = m_new_function(s->library, text(kernel));
    id pipeline = m_new_pipeline(s->device, function, NULL);
    m_set_pipeline(s->encoder, pipeline);
    m_set_buffer(s->encoder, x, 0, 0);
    m_set_buffer(s->encoder, y, 0, 1);
    m_dispatch(s->encoder, (extent_t){1, 1, 1}, (extent_t){1, 1, 1});
    m_release(pipeline);
    m_release(function);
}

static id commit(scene_t *s)
{
    m_end(s->encoder);
    m_commit(s->command);
    return s->command;
}

static void finish(scene_t *s)
{
    m_wait(commit(s));
}

// A command buffer that reads x, with one kernel.
static id commit_look(scene_t *s, id queue)
{
    begin(s, queue, CONCURRENT);
    dispatch(s, "look", s->x, s->y);
    return commit(s);
}

static id commit_bump(scene_t *s, id queue)
{
    begin(s, queue, CONCURRENT);
    dispatch(s, "bump", s->x, NULL);
    return commit(s);
}

static void dies_no_barrier(id device)
{
    scene_t s = scene_begin(device);
    begin(&s, s.queue, CONCURRENT);
    dispatch(&s, "bump", s.x, NULL);
    dispatch(&s, "look", s.x, s.y);
    finish(&s);
}

// Also what was only read must not be written.
static void dies_written_after(id device)
{
    scene_t s = scene_begin(device);
    begin(&s, s.queue, CONCURRENT);
    dispatch(&s, "look", s.x, s.y);
    dispatch(&s, "bump", s.x, NULL);
    finish(&s);
}

// A loop that the compiler makes one fill of.
static void dies_cleared(id device)
{
    scene_t s = scene_begin(device);
    begin(&s, s.queue, CONCURRENT);
    dispatch(&s, "look", s.x, s.y);
    dispatch(&s, "clear", s.x, NULL);
    finish(&s);
}

static void dies_counts(id device)
{
    scene_t s = scene_begin(device);
    begin(&s, s.queue, CONCURRENT);
    dispatch(&s, "bump", s.x, NULL);
    m_dispatch_indirect(s.encoder, s.x, 0, (extent_t){1, 1, 1});
    finish(&s);
}

static void dies_atomic_and_plain(id device)
{
    scene_t s = scene_begin(device);
    begin(&s, s.queue, CONCURRENT);
    dispatch(&s, "count", s.x, NULL);
    dispatch(&s, "look", s.x, s.y);
    finish(&s);
}

static void dies_plain_before_atomic(id device)
{
    scene_t s = scene_begin(device);
    begin(&s, s.queue, CONCURRENT);
    dispatch(&s, "look", s.x, s.y);
    dispatch(&s, "peek", s.x, s.z);
    dispatch(&s, "count", s.x, NULL);
    finish(&s);
}

static void dies_blits(id device)
{
    scene_t s = scene_begin(device);
    s.command = m_command(s.queue);
    s.encoder = m_blit(s.command);
    m_fill(s.encoder, s.x, (range_t){0, SIZE}, 1);
    m_copy(s.encoder, s.x, SIZE - 8, s.y, 0, 8);
    finish(&s);
}

static void dies_no_fence(id device)
{
    scene_t s = scene_begin(device);
    begin(&s, s.queue, SERIAL);
    dispatch(&s, "bump", s.x, NULL);
    m_end(s.encoder);
    open_compute(&s, SERIAL);
    dispatch(&s, "look", s.x, s.y);
    finish(&s);
}

static void dies_updated_too_early(id device)
{
    scene_t s = scene_begin(device);
    begin(&s, s.queue, CONCURRENT);
    m_update_fence(s.encoder, s.fence);
    dispatch(&s, "bump", s.x, NULL);
    m_end(s.encoder);
    open_compute(&s, CONCURRENT);
    m_wait_fence(s.encoder, s.fence);
    dispatch(&s, "look", s.x, s.y);
    finish(&s);
}

static void dies_waited_too_late(id device)
{
    scene_t s = scene_begin(device);
    begin(&s, s.queue, CONCURRENT);
    dispatch(&s, "bump", s.x, NULL);
    m_update_fence(s.encoder, s.fence);
    m_end(s.encoder);
    open_compute(&s, CONCURRENT);
    dispatch(&s, "look", s.x, s.y);
    m_wait_fence(s.encoder, s.fence);
    finish(&s);
}

// The order of a queue is that in which command buffers start.
static void dies_one_queue(id device)
{
    scene_t s = scene_begin(device);
    commit_bump(&s, s.queue);
    m_wait(commit_look(&s, s.queue));
}

static void dies_no_event(id device)
{
    scene_t s = scene_begin(device);
    id first = commit_bump(&s, s.queue);
    m_wait(commit_look(&s, s.other));
    m_wait(first);
}

static void dies_signalled_too_early(id device)
{
    scene_t s = scene_begin(device);
    s.command = m_command(s.queue);
    m_signal_event(s.command, s.event, 1);
    open_compute(&s, CONCURRENT);
    dispatch(&s, "bump", s.x, NULL);
    id first = commit(&s);
    s.command = m_command(s.other);
    m_wait_event(s.command, s.event, 1);
    open_compute(&s, CONCURRENT);
    dispatch(&s, "look", s.x, s.y);
    finish(&s);
    m_wait(first);
}

// The queue is held up, so that the host is there first. That queue's order does not help.
static void dies_host_before(id device)
{
    scene_t s = scene_begin(device);
    id before = m_command(s.queue);
    m_wait_event(before, s.event, 1);
    m_commit(before);
    id command = commit_look(&s, s.queue);
    *(uint32_t *)m_contents(s.x) = 5;
    m_set_value(s.event, 1);
    m_wait(command);
}

// Until the GPU has written y, which is no way to learn that it has ended.
static void await_word(id buffer)
{
    _Atomic uint32_t *word = m_contents(buffer);
    while (atomic_load(word) == 0) sched_yield();
}

static void dies_host_after(id device)
{
    scene_t s = scene_begin(device);
    *(uint32_t *)m_contents(s.x) = 5;
    begin(&s, s.queue, CONCURRENT);
    dispatch(&s, "look", s.x, s.y);
    m_end(s.encoder);
    m_wait_event(s.command, s.event, 1);
    m_commit(s.command);
    await_word(s.y);
    *(uint32_t *)m_contents(s.x) = 6;
    m_set_value(s.event, 1);
    m_wait(s.command);
}

static void dies_flushed(id device)
{
    scene_t s = scene_begin(device);
    id managed = m_new_buffer(device, SIZE, UNTRACKED | MANAGED);
    begin(&s, s.queue, SERIAL);
    dispatch(&s, "bump", managed, NULL);
    dispatch(&s, "bump", s.y, NULL);
    commit(&s);
    await_word(s.y);
    m_did_modify(managed, (range_t){0, SIZE});
}

// Works of one encoder, and of several.
static void test_encoders(id device)
{
    scene_t s = scene_begin(device);
    begin(&s, s.queue, CONCURRENT);
    dispatch(&s, "bump", s.x, NULL);
    m_barrier(s.encoder, 1);
    dispatch(&s, "look", s.x, s.y);
    dispatch(&s, "look", s.x, s.z);
    m_update_fence(s.encoder, s.fence);
    m_end(s.encoder);
    open_compute(&s, SERIAL);
    m_wait_fence(s.encoder, s.fence);
    dispatch(&s, "bump", s.x, NULL);
    dispatch(&s, "look", s.x, s.y);
    m_update_fence(s.encoder, s.fence);
    m_end(s.encoder);
    s.encoder = m_blit(s.command);
    m_wait_fence(s.encoder, s.fence);
    m_copy(s.encoder, s.x, 0, s.z, 0, 16);
    m_fill(s.encoder, s.x, (range_t){16, 16}, 1);
    finish(&s);
    CHECK(*(uint32_t *)m_contents(s.z) == 2);
    scene_end(&s);
}

static void test_no_hazards(id device)
{
    scene_t s = scene_begin(device);
    id tracked = m_new_buffer(device, SIZE, 0);
    begin(&s, s.queue, CONCURRENT);
    dispatch(&s, "low", s.x, NULL);
    dispatch(&s, "high", s.x, NULL);
    dispatch(&s, "count", s.y, NULL);
    dispatch(&s, "count", s.y, NULL);
    dispatch(&s, "peek", s.y, s.z);
    dispatch(&s, "bump", tracked, NULL);
    dispatch(&s, "bump", tracked, NULL);
    finish(&s);
    CHECK(*(uint32_t *)m_contents(s.y) == 2);
    m_release(tracked);
    scene_end(&s);
}

// From one command buffer to the third, by a fence on one queue and then an event.
static void test_fence_and_event(id device)
{
    scene_t s = scene_begin(device);
    begin(&s, s.queue, CONCURRENT);
    dispatch(&s, "bump", s.x, NULL);
    m_update_fence(s.encoder, s.fence);
    id first = commit(&s);
    begin(&s, s.queue, CONCURRENT);
    m_wait_fence(s.encoder, s.fence);
    dispatch(&s, "bump", s.z, NULL);
    m_end(s.encoder);
    m_signal_event(s.command, s.event, 1);
    m_commit(s.command);
    id second = s.command;
    s.command = m_command(s.other);
    m_wait_event(s.command, s.event, 1);
    open_compute(&s, CONCURRENT);
    dispatch(&s, "look", s.x, s.y);
    dispatch(&s, "bump", s.z, NULL);
    finish(&s);
    m_wait(second);
    m_wait(first);
    scene_end(&s);
}

// Between two encoders of one command buffer.
static void test_own_event(id device)
{
    scene_t s = scene_begin(device);
    begin(&s, s.queue, CONCURRENT);
    dispatch(&s, "bump", s.x, NULL);
    m_end(s.encoder);
    m_signal_event(s.command, s.event, 1);
    m_wait_event(s.command, s.event, 1);
    open_compute(&s, CONCURRENT);
    dispatch(&s, "bump", s.x, NULL);
    finish(&s);
    scene_end(&s);
}

// A fill of a word beside a kernel that counts in it, and one that looks at it.
static void test_word(id device)
{
    scene_t s = scene_begin(device);
    begin(&s, s.queue, CONCURRENT);
    dispatch(&s, "peek", s.x, s.y);
    dispatch(&s, "count", s.x, NULL);
    dispatch(&s, "peek", s.x, s.z);
    id first = commit(&s);
    s.command = m_command(s.other);
    s.encoder = m_blit(s.command);
    m_fill(s.encoder, s.x, (range_t){0, 4}, 1);
    finish(&s);
    m_wait(first);
    scene_end(&s);
}

static void on_completed(const block_t *block, id command)
{
    rig_count_raise(block->user);
}

// The host sees the end by a wait, by the status, by a handler, by an event.
static void test_host(id device)
{
    scene_t s = scene_begin(device);
    m_wait(commit_bump(&s, s.queue));
    id second = commit_bump(&s, s.other);
    while (m_status(second) < 4) sched_yield();
    rig_count_t *count = rig_count_new();
    block_t block = rig_block((void (*)(void))on_completed, count, FOR_COMMAND);
    begin(&s, s.queue, CONCURRENT);
    dispatch(&s, "bump", s.x, NULL);
    m_on_completed(s.command, &block);
    commit(&s);
    rig_count_wait(count, 1);
    begin(&s, s.other, CONCURRENT);
    dispatch(&s, "bump", s.x, NULL);
    m_end(s.encoder);
    m_signal_event(s.command, s.event, 1);
    m_commit(s.command);
    id fourth = s.command;
    CHECK(m_wait_value(s.event, 1, 60000));
    m_wait(commit_look(&s, s.queue));
    m_wait(fourth);
    CHECK(*(uint32_t *)m_contents(s.y) == 4);
    rig_count_free(count);
    scene_end(&s);
}

// The host writes what it may: before a commit, before it raises an event that is waited for, what
// no work touches, and what it has seen the end of.
static void test_host_writes(id device)
{
    scene_t s = scene_begin(device);
    uint32_t *words = m_contents(s.x);
    words[0] = 1;
    s.command = m_command(s.queue);
    m_wait_event(s.command, s.event, 1);
    open_compute(&s, CONCURRENT);
    dispatch(&s, "bump", s.x, NULL);
    id first = commit(&s);
    words[0] = 2;
    words[1] = 2;
    m_set_value(s.event, 1);
    words[2] = 2;
    m_wait(first);
    CHECK(words[0] == 3);
    words[0] = 7;
    m_wait(commit_look(&s, s.queue));
    CHECK(*(uint32_t *)m_contents(s.y) == 7);
    words[0] = 8;
    m_wait(commit_look(&s, s.other));
    scene_end(&s);
}

// The same with large buffers.
#define LARGER(test)                                                                               \
    static void large_##test(id device)                                                            \
    {                                                                                              \
        size = LARGE;                                                                              \
        test(device);                                                                              \
    }
LARGER(dies_no_barrier)
LARGER(dies_written_after)
LARGER(dies_cleared)
LARGER(dies_atomic_and_plain)
LARGER(dies_plain_before_atomic)
LARGER(dies_blits)
LARGER(dies_no_fence)
LARGER(test_encoders)
LARGER(test_no_hazards)
LARGER(test_fence_and_event)

static void all_large(void)
{
    static const char on[] = "hazards=1";
    DIES_WITH(on,
              "kernel look reads byte 0 of an untracked buffer of 131072 bytes, which kernel bump "
              "writes: nothing orders",
              large_dies_no_barrier);
    DIES_WITH(on,
              "kernel bump writes byte 0 of an untracked buffer of 131072 bytes, which kernel "
              "look reads: nothing orders",
              large_dies_written_after);
    DIES_WITH(on, "kernel clear writes byte 0", large_dies_cleared);
    DIES_WITH(on, "which kernel count writes: nothing orders", large_dies_atomic_and_plain);
    DIES_WITH(on, "kernel count writes byte 0 of an untracked buffer of 131072 bytes, which kernel",
              large_dies_plain_before_atomic);
    DIES_WITH(on, "a copy reads byte 248 of an untracked buffer of 131072 bytes, which a fill",
              large_dies_blits);
    DIES_WITH(on, "which kernel bump writes: nothing orders", large_dies_no_fence);
    RUN(on, large_test_encoders);
    RUN(on, large_test_no_hazards);
    RUN(on, large_test_fence_and_event);
}

static void all(void)
{
    static const char on[] = "hazards=1";
    all_large();
    DIES_WITH(on,
              "kernel look reads byte 0 of an untracked buffer of 256 bytes, which kernel bump "
              "writes: nothing orders",
              dies_no_barrier);
    DIES_WITH(on,
              "kernel bump writes byte 0 of an untracked buffer of 256 bytes, which kernel "
              "look reads: nothing orders",
              dies_written_after);
    DIES_WITH(on, "kernel clear writes byte 0", dies_cleared);
    DIES_WITH(on, "kernel bump reads byte 0 of an untracked buffer", dies_counts);
    DIES_WITH(on, "which kernel count writes: nothing orders", dies_atomic_and_plain);
    DIES_WITH(on,
              "kernel count writes byte 0 of an untracked buffer of 256 bytes, which kernel look",
              dies_plain_before_atomic);
    DIES_WITH(on, "a copy reads byte 248 of an untracked buffer of 256 bytes, which a fill writes",
              dies_blits);
    DIES_WITH(on, "which kernel bump writes: nothing orders", dies_no_fence);
    DIES_WITH(on, "which kernel bump writes: nothing orders", dies_updated_too_early);
    DIES_WITH(on, "which kernel bump writes: nothing orders", dies_waited_too_late);
    DIES_WITH(on, "which kernel bump writes: nothing orders", dies_one_queue);
    DIES_WITH(on, "nothing orders the two", dies_no_event);
    DIES_WITH(on, "nothing orders the two", dies_signalled_too_early);
    DIES_WITH(on,
              "kernel look reads byte 0 of an untracked buffer of 256 bytes, which the host "
              "has written since the command buffer was committed",
              dies_host_before);
    DIES_WITH(on,
              "the host has written byte 0 of an untracked buffer of 256 bytes, which kernel "
              "look reads: the host has not seen its end",
              dies_host_after);
    DIES_WITH(on, "which kernel bump writes: the host has not seen its end", dies_flushed);
    RUN(on, test_encoders);
    RUN(on, test_no_hazards);
    RUN(on, test_fence_and_event);
    RUN(on, test_own_event);
    RUN(on, test_word);
    RUN(on, test_host);
    RUN(on, test_host_writes);
    RUN("hazards=1 seed=3", test_encoders);
}

int main(int argc, char **argv)
{
    return rig_main(argc, argv, all);
}
