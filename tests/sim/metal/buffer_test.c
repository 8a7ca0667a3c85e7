// SPDX-License-Identifier: Apache-2.0
// buffer_test LIBRARY: buffers of each storage mode, fills and copies.
#include "rig.h"

#include <stdlib.h>
#include <string.h>

enum { SHARED = 0, MANAGED = 1 << 4, PRIVATE = 2 << 4, PAGE = 16384 };

static void run_fill(id queue, id buffer, range_t range, uint8_t value)
{
    id command = m_command(queue), blit = m_blit(command);
    m_fill(blit, buffer, range, value);
    m_end(blit);
    m_commit(command);
    m_wait(command);
}

static void run_copy(id queue, id from, size_t from_offset, id to, size_t to_offset)
{
    id command = m_command(queue), blit = m_blit(command);
    m_copy(blit, from, from_offset, to, to_offset, 16);
    m_end(blit);
    m_commit(command);
    m_wait(command);
}

static bool all_are(const void *memory, int value, size_t size)
{
    const uint8_t *bytes = memory;
    while (size--)
        if (bytes[size] != value) return false;
    return true;
}

static void test_shared(id device)
{
    id queue = m_new_queue(device, 4), buffer = m_new_buffer(device, 100, SHARED);
    uint8_t *bytes = m_contents(buffer);
    CHECK(all_are(bytes, 0, 100));
    CHECK(m_address(buffer) && m_address(buffer) != (uintptr_t)bytes);
    run_fill(queue, buffer, (range_t){4, 92}, 7);
    CHECK(all_are(bytes, 0, 4) && all_are(bytes + 4, 7, 92) && all_are(bytes + 96, 0, 4));
    m_release(buffer);
    m_release(queue);
}

static void test_private(id device)
{
    id queue = m_new_queue(device, 4);
    id hidden = m_new_buffer(device, 64, PRIVATE), seen = m_new_buffer(device, 64, SHARED);
    CHECK(!m_contents(hidden));
    run_fill(queue, hidden, (range_t){0, 64}, 9);
    run_copy(queue, hidden, 0, seen, 16);
    uint8_t *bytes = m_contents(seen);
    CHECK(all_are(bytes, 0, 16) && all_are(bytes + 16, 9, 16) && all_are(bytes + 32, 0, 32));
    m_release(hidden);
    m_release(seen);
    m_release(queue);
}

// Neither side sees what the other wrote before it is told.
static void test_managed(id device)
{
    id queue = m_new_queue(device, 4);
    id buffer = m_new_buffer(device, 64, MANAGED), seen = m_new_buffer(device, 16, SHARED);
    uint8_t *bytes = m_contents(buffer);
    memset(bytes, 3, 64);
    run_copy(queue, buffer, 0, seen, 0);
    CHECK(all_are(m_contents(seen), 0, 16));
    m_did_modify(buffer, (range_t){0, 16});
    run_copy(queue, buffer, 0, seen, 0);
    CHECK(all_are(m_contents(seen), 3, 16));
    run_fill(queue, buffer, (range_t){0, 64}, 5);
    CHECK(all_are(bytes, 3, 64));
    id command = m_command(queue), blit = m_blit(command);
    m_synchronize(blit, buffer);
    m_end(blit);
    m_commit(command);
    m_wait(command);
    CHECK(all_are(bytes, 5, 64));
    m_release(buffer);
    m_release(seen);
    m_release(queue);
}

static void synchronize(id queue, id buffer)
{
    id command = m_command(queue), blit = m_blit(command);
    m_synchronize(blit, buffer);
    m_end(blit);
    m_commit(command);
    m_wait(command);
}

static void test_discrete(id device)
{
    CHECK(!m_unified(device) && m_allocated(device) == 0);
    id queue = m_new_queue(device, 4);
    id buffer = m_new_buffer(device, 64, MANAGED), seen = m_new_buffer(device, 16, SHARED);
    CHECK(m_allocated(device) >= 80);
    memset(m_contents(buffer), 3, 16); // the rest is not, and no one says so
    m_did_modify(buffer, (range_t){0, 16});
    run_copy(queue, buffer, 0, seen, 0);
    CHECK(all_are(m_contents(seen), 3, 16));
    run_fill(queue, buffer, (range_t){0, 64}, 5);
    synchronize(queue, buffer);
    CHECK(all_are(m_contents(buffer), 5, 64));
    m_release(buffer);
    m_release(seen);
    m_release(queue);
    CHECK(m_allocated(device) == 0);
}

static void dies_unflushed(id device)
{
    id buffer = m_new_buffer(device, 64, MANAGED);
    memset((char *)m_contents(buffer) + 8, 3, 8);
    m_did_modify(buffer, (range_t){0, 12});
    run_copy(m_new_queue(device, 4), buffer, 0, m_new_buffer(device, 16, SHARED), 0);
}

static void dies_undone(id device)
{
    id buffer = m_new_buffer(device, 64, MANAGED);
    *(char *)m_contents(buffer) = 1;
    synchronize(m_new_queue(device, 4), buffer);
}

// Whether the last of several fills of one encoder was the last to be done, each time.
static bool fills_in_order(id device)
{
    enum { TIMES = 16, FILLS = 8 };
    bool all = true;
    id queue = m_new_queue(device, 4), buffer = m_new_buffer(device, 16, SHARED);
    for (int i = 0; i < TIMES; i++) {
        id command = m_command(queue), blit = m_blit(command);
        for (uint8_t value = 1; value <= FILLS; value++)
            m_fill(blit, buffer, (range_t){0, 16}, value);
        m_end(blit);
        blit = m_blit(command);
        m_fill(blit, buffer, (range_t){4, 12}, 99);
        m_end(blit);
        m_commit(command);
        m_wait(command);
        all &= all_are(m_contents(buffer), FILLS, 4);
        CHECK(all_are((char *)m_contents(buffer) + 4, 99, 12));
    }
    m_release(buffer);
    m_release(queue);
    return all;
}

static void test_order(id device)
{
    CHECK(fills_in_order(device));
}

static void test_any_order(id device)
{
    CHECK(!fills_in_order(device));
}

static void freed(block_t *block, void *memory, size_t length)
{
    *(size_t *)block->user = length;
    free(memory);
}

static void test_wrapped(id device)
{
    id queue = m_new_queue(device, 4);
    uint8_t *memory = aligned_alloc(PAGE, 2 * PAGE);
    size_t length = 0;
    CHECK(memory && !m_new_wrap(device, memory + 64, PAGE, SHARED, NULL));
    CHECK(!m_new_wrap(device, memory, PAGE + 64, SHARED, NULL));
    block_t block = rig_block((void (*)(void))freed, &length, "v24@?0^v8Q16");
    id buffer = m_new_wrap(device, memory, 2 * PAGE, SHARED, &block);
    CHECK(buffer && m_contents(buffer) == memory);
    run_fill(queue, buffer, (range_t){0, 2 * PAGE}, 4);
    CHECK(all_are(memory, 4, 2 * PAGE));
    m_release(buffer);
    m_release(queue);
    CHECK(length == 2 * PAGE);
}

static void test_too_large(id device)
{
    CHECK(!m_new_buffer(device, 1ul << 40, SHARED));
}

static void blit_copy(id device, size_t from, size_t to, size_t size)
{
    id buffer = m_new_buffer(device, 64, SHARED);
    m_copy(m_blit(m_command(m_new_queue(device, 4))), buffer, from, buffer, to, size);
}

static void dies_empty(id device)
{
    m_new_buffer(device, 0, SHARED);
}

static void dies_storage(id device)
{
    m_new_buffer(device, 16, 3 << 4);
}

static void dies_out_of_bounds(id device)
{
    blit_copy(device, 0, 32, 36);
}

static void dies_wrapping_around(id device)
{
    blit_copy(device, 0, ~0ul - 3, 16);
}

static void dies_unaligned(id device)
{
    blit_copy(device, 0, 32, 6);
}

static void dies_overlap(id device)
{
    blit_copy(device, 0, 8, 16);
}

static void dies_nothing_to_copy(id device)
{
    blit_copy(device, 0, 8, 0);
}

static void dies_modify_shared(id device)
{
    m_did_modify(m_new_buffer(device, 16, SHARED), (range_t){0, 16});
}

static void dies_ended(id device)
{
    id blit = m_blit(m_command(m_new_queue(device, 4)));
    m_end(blit);
    m_fill(blit, m_new_buffer(device, 16, SHARED), (range_t){0, 16}, 0);
}

static void all(void)
{
    RUN("", test_shared);
    RUN("", test_private);
    RUN("", test_managed);
    RUN("discrete=1", test_discrete);
    RUN("", test_order);
    RUN("seed=3", test_any_order);
    DIES_WITH("discrete=1", "byte 12 of a managed buffer of 64 bytes is unflushed", dies_unflushed);
    DIES_WITH("discrete=1", "synchronizeResource: would undo that", dies_undone);
    RUN("", test_wrapped);
    RUN("", test_too_large);
    DIES("cannot create a buffer of zero length", dies_empty);
    DIES("buffers have no storage mode 3", dies_storage);
    DIES("36 bytes from 32 are not in the buffer of 64", dies_out_of_bounds);
    DIES("are not in the buffer of 64", dies_wrapping_around);
    DIES("offset 0 and size 6 must be multiples of 4", dies_unaligned);
    DIES("the ranges from 0 and 8 overlap", dies_overlap);
    DIES("a range of no bytes", dies_nothing_to_copy);
    DIES("-[MTLBuffer didModifyRange:]: the buffer's storage is not managed", dies_modify_shared);
    DIES("fillBuffer:range:value:]: the encoder has ended", dies_ended);
}

int main(int argc, char **argv)
{
    return rig_main(argc, argv, all);
}
