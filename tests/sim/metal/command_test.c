// SPDX-License-Identifier: Apache-2.0
// command_test LIBRARY: command buffers, their order, their handlers and how they die.
#include "rig.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { COMPLETED = 4, FAILED = 5 };

// What a completed handler saw.
typedef struct end_t {
    rig_count_t *count;
    size_t status;
} end_t;

static void note_end(block_t *block, id command)
{
    end_t *end = block->user;
    end->status = m_status(command);
    rig_count_raise(end->count);
}

static void on_end(id command, end_t *end)
{
    block_t block = rig_block((void (*)(void))note_end, end, FOR_COMMAND);
    m_on_completed(command, &block);
}

static void fill(id command, id buffer, uint8_t value)
{
    id blit = m_blit(command);
    m_fill(blit, buffer, (range_t){0, 16}, value);
    m_end(blit);
}

static void test_complete(id device)
{
    id queue = m_new_queue(device, 4), command = m_command(queue);
    end_t end = {.count = rig_count_new()};
    CHECK(m_status(command) == 0 && m_start_time(command) == 0.0);
    on_end(command, &end);
    m_commit(command);
    m_wait(command); // after its handlers
    CHECK(end.status == COMPLETED && m_status(command) == COMPLETED && !m_error(command));
    CHECK(m_start_time(command) > 0 && m_end_time(command) >= m_start_time(command));
    m_release(queue);
    rig_count_free(end.count);
}

// A place that is reserved and not committed holds up those after it.
static void test_enqueue_reserves(id device)
{
    id queue = m_new_queue(device, 4), buffer = m_new_buffer(device, 16, 0);
    id first = m_command(queue), second = m_command(queue);
    m_enqueue(first);
    fill(second, buffer, 2);
    m_commit(second);
    CHECK(m_status(second) == 2);
    fill(first, buffer, 1);
    m_commit(first);
    m_wait(second);
    CHECK(*(uint8_t *)m_contents(buffer) == 2);
    m_release(buffer);
    m_release(queue);
}

// The ends of several command buffers of one queue, in the order in which handlers told of them.
typedef struct ends_t {
    rig_count_t *count;
    id commands[8];
    id told[8];
    atomic_uint length;
} ends_t;

static void tell_end(block_t *block, id command)
{
    ends_t *ends = block->user;
    CHECK(m_status(command) == COMPLETED);
    ends->told[atomic_fetch_add(&ends->length, 1)] = command;
    rig_count_raise(ends->count);
}

static bool ended_in_order(id device)
{
    enum { COUNT = 8 };
    ends_t ends = {.count = rig_count_new()};
    id queue = m_new_queue(device, COUNT);
    for (unsigned i = 0; i < COUNT; i++) {
        block_t block = rig_block((void (*)(void))tell_end, &ends, FOR_COMMAND);
        ends.commands[i] = m_retain(m_command(queue));
        m_on_completed(ends.commands[i], &block);
        m_commit(ends.commands[i]);
    }
    rig_count_wait(ends.count, COUNT);
    bool ordered = true;
    for (unsigned i = 0; i < COUNT; i++) ordered &= ends.told[i] == ends.commands[i];
    for (unsigned i = 0; i < COUNT; i++) m_release(ends.commands[i]);
    m_release(queue);
    rig_count_free(ends.count);
    return ordered;
}

static void test_handlers_in_order(id device)
{
    CHECK(ended_in_order(device));
}

static void test_late_handlers(id device)
{
    while (ended_in_order(device)) continue;
}

// The value of an event comes before the handler of the command buffer that signals it; a wait for
// the command buffer returns after the handler all the same.
static void test_handler_after_event(id device)
{
    id queue = m_new_queue(device, 4), event = m_new_event(device), command = m_command(queue);
    end_t end = {.count = rig_count_new()};
    on_end(command, &end);
    m_signal_event(command, event, 1);
    m_commit(command);
    CHECK(m_wait_value(event, 1, 60000));
    m_wait(command);
    CHECK(end.status == COMPLETED);
    m_release(event);
    m_release(queue);
    rig_count_free(end.count);
}

// Two queues, and the host: wait before signal.
static void test_events_order(id device)
{
    id one = m_new_queue(device, 4), two = m_new_queue(device, 4);
    id event = m_new_event(device), buffer = m_new_buffer(device, 16, 0);
    id last = m_command(two), first = m_command(one);
    m_wait_event(last, event, 2);
    fill(last, buffer, 2);
    m_commit(last);
    m_wait_event(first, event, 1);
    fill(first, buffer, 1);
    m_signal_event(first, event, 2);
    m_commit(first);
    m_set_value(event, 1);
    m_wait(last);
    CHECK(*(uint8_t *)m_contents(buffer) == 2 && m_value(event) == 2);
    m_release(buffer);
    m_release(event);
    m_release(two);
    m_release(one);
}

// The second is killed: its signal never comes, its handler does, and the third is healthy.
static void test_killed(id device)
{
    id queue = m_new_queue(device, 4), event = m_new_event(device), commands[3];
    end_t end = {.count = rig_count_new()};
    const uint64_t after[] = {1, 1, 4};
    for (unsigned i = 0; i < 3; i++) {
        commands[i] = m_command(queue);
        m_signal_event(commands[i], event, 1u << i);
        if (i == 1) on_end(commands[i], &end);
        m_commit(commands[i]);
        m_wait(commands[i]);
        CHECK(m_value(event) == after[i]);
    }
    CHECK(end.status == FAILED && m_status(commands[1]) == FAILED);
    CHECK(m_code(m_error(commands[1])) == 3);
    CHECK(strstr(m_utf8(m_text(m_error(commands[1]))), "0000000b"));
    CHECK(m_status(commands[2]) == COMPLETED);
    m_release(event);
    m_release(queue);
    rig_count_free(end.count);
}

// What comes before its death is done.
static void test_killed_late(id device)
{
    id queue = m_new_queue(device, 4), event = m_new_event(device), command = m_command(queue);
    for (uint64_t value = 1; value <= 3; value++) m_signal_event(command, event, value);
    m_commit(command);
    m_wait(command);
    CHECK(m_status(command) == FAILED && m_code(m_error(command)) == 3);
    CHECK(m_value(event) == 2);
    m_release(event);
    m_release(queue);
}

static void test_killed_onwards(id device)
{
    id queue = m_new_queue(device, 4);
    for (unsigned i = 0; i < 3; i++) {
        id command = m_command(queue);
        m_commit(command);
        m_wait(command);
        CHECK(m_status(command) == (i == 0 ? COMPLETED : FAILED));
    }
    m_release(queue);
}

// With one message, here the second of its kind, all devices go.
static void test_lost(id device)
{
    id queue = m_new_queue(device, 4), buffer = m_new_buffer(device, 16, 0), command;
    m_commit(command = m_command(queue));
    m_wait(command);
    CHECK(buffer && m_status(command) == COMPLETED);
    CHECK(!m_new_buffer(device, 16, 0));
    m_commit(command = m_command(queue));
    m_wait(command);
    CHECK(m_status(command) == FAILED && m_code(m_error(command)) == 11);
    m_release(buffer);
    m_release(queue);
}

// A command buffer keeps what it uses, unless it is told not to.
static void use_after_release(id queue, id device, id command, size_t status)
{
    id buffer = m_new_buffer(device, 16, 0), event = m_new_event(device);
    m_wait_event(command, event, 1);
    fill(command, buffer, 1);
    m_commit(command);
    m_release(buffer);
    m_set_value(event, 1);
    m_wait(command);
    CHECK(m_status(command) == status);
    m_release(event);
}

static void test_retained(id device)
{
    id queue = m_new_queue(device, 4);
    use_after_release(queue, device, m_command(queue), COMPLETED);
    m_release(queue);
}

static void test_unretained(id device)
{
    id queue = m_new_queue(device, 4);
    id command = m_command_unretained(queue);
    use_after_release(queue, device, command, FAILED);
    CHECK(m_code(m_error(command)) == 9);
    CHECK(rig_said("uses an MTLBuffer that was released"));
    m_release(queue);
}

// An event that dies while the GPU is to signal it.
static void test_dead_event(id device)
{
    id queue = m_new_queue(device, 4), event = m_new_event(device), gate = m_new_event(device);
    id command = m_command_unretained(queue);
    m_wait_event(command, gate, 1);
    m_signal_event(command, event, 1);
    m_commit(command);
    m_release(event);
    m_set_value(gate, 1);
    m_wait(command);
    CHECK(m_status(command) == FAILED && m_code(m_error(command)) == 9);
    m_release(gate);
    m_release(queue);
}

// Each code of an error has the text by which others know it.
static void check_death(id device, long code, const char *words)
{
    id queue = m_new_queue(device, 4), command = m_command(queue);
    m_commit(command);
    m_wait(command);
    CHECK(m_status(command) == FAILED && m_code(m_error(command)) == code);
    CHECK(strstr(m_utf8(m_text(m_error(command))), words));
    m_release(queue);
}

static void test_timeout(id device)
{
    check_death(device, 2, "kIOGPUCommandBufferCallbackErrorTimeout");
}

static void test_ignored(id device)
{
    check_death(device, 4, "kIOGPUCommandBufferCallbackErrorSubmissionsIgnored");
    check_death(device, 4, "kIOGPUCommandBufferCallbackErrorSubmissionsIgnored");
}

static void test_out_of_memory(id device)
{
    check_death(device, 8, "kIOGPUCommandBufferCallbackErrorOutOfMemory");
}

static void test_invalid_resource(id device)
{
    check_death(device, 9, "kIOGPUCommandBufferCallbackErrorInvalidResource");
}

static void *commit_later(void *command)
{
    while (!rig_said("blocks: 1 command buffers are outstanding, and none is committed"))
        sched_yield();
    m_commit(command);
    return NULL;
}

// One that was never committed counts.
static void test_outstanding_block(id device)
{
    id queue = m_new_queue(device, 1), first = m_command(queue);
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, commit_later, first));
    id second = m_command(queue);
    CHECK(m_status(first) >= COMPLETED && second);
    pthread_join(thread, NULL);
    m_release(queue);
}

// The queue is released first, and its last command buffer dies on the library's own threads.
static void test_release_in_flight(id device)
{
    void *pool = metal.objc_autoreleasePoolPush();
    id queue = m_new_queue(device, 4), event = m_new_event(device), command = m_command(queue);
    m_wait_event(command, event, 1);
    m_commit(command);
    m_release(queue);
    metal.objc_autoreleasePoolPop(pool);
    CHECK(metal.simMetalObjects("MTLCommandQueue") == 1);
    m_set_value(event, 1);
    m_release(event);
}

static void dies_commit_twice(id device)
{
    id command = m_command(m_new_queue(device, 4));
    m_commit(command);
    m_commit(command);
}

static void dies_commit_open(id device)
{
    id command = m_command(m_new_queue(device, 4));
    m_blit(command);
    m_commit(command);
}

static void dies_two_encoders(id device)
{
    id command = m_command(m_new_queue(device, 4));
    m_blit(command);
    m_blit(command);
}

static void dies_signal_open(id device)
{
    id command = m_command(m_new_queue(device, 4));
    m_blit(command);
    m_signal_event(command, m_new_event(device), 1);
}

static void dies_late_handler(id device)
{
    id command = m_command(m_new_queue(device, 4));
    end_t end = {.count = NULL};
    m_commit(command);
    on_end(command, &end);
}

static void dies_enqueue_twice(id device)
{
    id command = m_command(m_new_queue(device, 4));
    m_enqueue(command);
    m_enqueue(command);
}

static void dies_lost_encoder(id device)
{
    void *pool = metal.objc_autoreleasePoolPush();
    m_blit(m_command(m_new_queue(device, 4)));
    metal.objc_autoreleasePoolPop(pool);
}

static void wait_inside(block_t *block, id command)
{
    m_wait(command);
}

static void dies_wait_in_handler(id device)
{
    id command = m_command(m_new_queue(device, 4));
    block_t block = rig_block((void (*)(void))wait_inside, NULL, FOR_COMMAND);
    m_on_completed(command, &block);
    m_commit(command);
    m_wait(command);
}

static void read_error(block_t *block, id command)
{
    m_error(command);
}

static void dies_handler_without_pool(id device)
{
    id command = m_command(m_new_queue(device, 4));
    block_t block = rig_block((void (*)(void))read_error, NULL, FOR_COMMAND);
    m_on_completed(command, &block);
    m_commit(command);
    m_wait(command);
}

static void dies_encode_late(id device)
{
    id command = m_command(m_new_queue(device, 4));
    m_commit(command);
    m_blit(command);
}

static void dies_wait_open(id device)
{
    id command = m_command(m_new_queue(device, 4));
    m_blit(command);
    m_wait_event(command, m_new_event(device), 1);
}

static void dies_wait_uncommitted(id device)
{
    m_wait(m_command(m_new_queue(device, 4)));
}

static void dying(void)
{
    DIES("blitCommandEncoder]: the command buffer is committed", dies_encode_late);
    DIES("encodeWaitForEvent:value:]: an encoder is open", dies_wait_open);
    DIES("waitUntilCompleted]: the command buffer is not committed", dies_wait_uncommitted);
    DIES("-[MTLCommandBuffer commit]: the command buffer is committed", dies_commit_twice);
    DIES("-[MTLCommandBuffer commit]: an encoder is open", dies_commit_open);
    DIES("-[MTLCommandBuffer blitCommandEncoder]: an encoder is open", dies_two_encoders);
    DIES("-[MTLCommandBuffer encodeSignalEvent:value:]: an encoder is open", dies_signal_open);
    DIES("addCompletedHandler:]: the command buffer is committed", dies_late_handler);
    DIES("-[MTLCommandBuffer enqueue]: the command buffer has its place", dies_enqueue_twice);
    DIES("an encoder was released before endEncoding", dies_lost_encoder);
    DIES("waitUntilCompleted]: a handler waits for handlers", dies_wait_in_handler);
    rig_run_dying("dies_handler_without_pool", "kill=1:2", dies_handler_without_pool,
                  "an NSError was autoreleased on a thread without a pool");
}

// A fence between two encoders; the command buffer that retains nothing sees that it dies.
static void test_fence(id device)
{
    id queue = m_new_queue(device, 4), buffer = m_new_buffer(device, 16, 0);
    id fence = m_new_fence(device), command = m_command(queue), encoder = m_blit(command);
    m_fill(encoder, buffer, (range_t){0, 16}, 1);
    m_update_fence(encoder, fence);
    m_end(encoder);
    encoder = m_blit(command);
    m_wait_fence(encoder, fence);
    m_fill(encoder, buffer, (range_t){0, 8}, 2);
    m_end(encoder);
    m_commit(command);
    m_wait(command);
    const uint8_t *bytes = m_contents(buffer);
    CHECK(m_status(command) == 4 && bytes[7] == 2 && bytes[8] == 1);
    m_release(fence);
    m_release(buffer);
    m_release(queue);
}

static void test_dead_fence(id device)
{
    id queue = m_new_queue(device, 4), fence = m_new_fence(device);
    id command = m_command_unretained(queue), encoder = m_blit(command);
    m_update_fence(encoder, fence);
    m_end(encoder);
    m_release(fence);
    m_commit(command);
    m_wait(command);
    CHECK(m_status(command) == 5 && m_code(m_error(command)) == 9);
    m_release(queue);
}

static void dies_fence_order(id device)
{
    id encoder = m_blit(m_command(m_new_queue(device, 1))), fence = m_new_fence(device);
    m_update_fence(encoder, fence);
    m_wait_fence(encoder, fence);
}

// A fence that another command buffer updates, and is committed too late.
static void dies_fence_of_later(id device)
{
    id queue = m_new_queue(device, 4), fence = m_new_fence(device);
    id later = m_command(queue), encoder = m_blit(later);
    m_update_fence(encoder, fence);
    m_end(encoder);
    id command = m_command(queue);
    encoder = m_blit(command);
    m_wait_fence(encoder, fence);
    m_end(encoder);
    m_commit(command);
}

// Once it was updated it may be waited for again.
static void test_fence_of_earlier(id device)
{
    id queue = m_new_queue(device, 4), fence = m_new_fence(device);
    for (int i = 0; i < 3; i++) {
        id command = m_command(queue), encoder = m_blit(command);
        if (i == 0) m_update_fence(encoder, fence);
        if (i > 0) m_wait_fence(encoder, fence);
        m_end(encoder);
        m_commit(command);
        m_wait(command);
    }
    m_release(fence);
    m_release(queue);
}

static void *end_elsewhere(void *encoder)
{
    m_end(encoder);
    return NULL;
}

static void dies_other_thread(id device)
{
    pthread_t thread;
    pthread_create(&thread, NULL, end_elsewhere, m_blit(m_command(m_new_queue(device, 4))));
    pthread_join(thread, NULL);
}

static void *commit_for_ever(void *queue)
{
    for (;;) {
        id pool = metal.objc_autoreleasePoolPush(), command = m_command(queue);
        m_end(m_blit(command));
        m_commit(command);
        metal.objc_autoreleasePoolPop(pool);
    }
    return NULL;
}

static void dies_crowded(id device)
{
    pthread_t thread;
    id queue = m_new_queue(device, 4);
    pthread_create(&thread, NULL, commit_for_ever, queue);
    commit_for_ever(queue);
}

// A command buffer of another queue is at work while one dies.
static void test_victim(id device)
{
    id queue = m_new_queue(device, 4), other = m_new_queue(device, 4), event = m_new_event(device);
    id bystander = m_command(queue), command = m_command(other);
    m_signal_event(bystander, event, 1);
    m_wait_event(bystander, event, 2);
    m_commit(bystander);
    CHECK(m_wait_value(event, 1, 60000)); // it has begun
    m_commit(command);
    m_wait(command);
    CHECK(m_code(m_error(command)) == 3);
    m_set_value(event, 2);
    m_wait(bystander);
    CHECK(m_status(bystander) == FAILED);
    CHECK(strstr(m_utf8(m_text(m_error(bystander))), "InnocentVictim"));
    id later = m_command(queue);
    m_commit(later);
    m_wait(later);
    CHECK(m_status(later) == COMPLETED);
    m_release(event);
    m_release(other);
    m_release(queue);
}

static void test_slow(id device)
{
    id queue = m_new_queue(device, 4), buffer = m_new_buffer(device, 16, 0);
    id command = m_command(queue);
    fill(command, buffer, 1);
    m_commit(command);
    m_wait(command);
    CHECK(m_end_time(command) - m_start_time(command) >= 0.02);
    m_release(buffer);
    m_release(queue);
}

static void all(void)
{
    RUN("", test_fence);
    RUN("", test_fence_of_earlier);
    DIES("commit]: an encoder waits for a fence that nothing has updated", dies_fence_of_later);
    DIES("endEncoding]: another thread has made the encoder", dies_other_thread);
    DIES_WITH("crowd=100", "another thread opens an encoder, or commits, on the queue",
              dies_crowded);
    RUN("victims=1 kill=2:3", test_victim);
    RUN("slow=20000", test_slow);
    RUN("", test_dead_fence);
    DIES("this encoder has updated the fence", dies_fence_order);
    RUN("", test_complete);
    RUN("", test_handlers_in_order);
    RUN("late=5000 seed=1", test_late_handlers);
    RUN("late=5000 seed=2", test_late_handlers);
    RUN("late=5000 seed=1", test_handler_after_event);
    RUN("", test_enqueue_reserves);
    RUN("", test_events_order);
    RUN("kill=2:3", test_killed);
    RUN("kill=2+:4", test_killed_onwards);
    RUN("kill=1:2", test_timeout);
    RUN("kill=1+:4", test_ignored);
    RUN("kill=1:8", test_out_of_memory);
    RUN("kill=1:9", test_invalid_resource);
    RUN("", test_dead_event);
    RUN("kill=1:3@2", test_killed_late);
    RUN("lose=newBufferWithLength:options:/2", test_lost);
    RUN("", test_retained);
    RUN("", test_unretained);
    RUN("", test_outstanding_block);
    RUN("", test_release_in_flight);
    dying();
}

int main(int argc, char **argv)
{
    return rig_main(argc, argv, all);
}
