// SPDX-License-Identifier: Apache-2.0
// event_test LIBRARY: shared events, listeners, the shape of blocks.
#include "rig.h"

#include <stdatomic.h>

// What a listener's block was called with.
typedef struct heard_t {
    rig_count_t *count;
    uint64_t value;
    id event;
} heard_t;

static void hear(block_t *block, id event, uint64_t value)
{
    heard_t *heard = block->user;
    heard->value = value;
    heard->event = event;
    rig_count_raise(heard->count);
}

static id listener_new(void)
{
    id queue = metal.dispatch_queue_create("test", NULL);
    id listener = m_init_queue(m_alloc(metal.objc_getClass("MTLSharedEventListener")), queue);
    metal.dispatch_release(queue);
    return listener;
}

static void listen_to(id event, uint64_t value, heard_t *heard)
{
    id listener = listener_new();
    block_t block = rig_block((void (*)(void))hear, heard, FOR_EVENT);
    m_notify(event, listener, value, &block);
    m_release(listener);
}

static void test_value_only_grows(id device)
{
    id event = m_new_event(device);
    CHECK(m_value(event) == 0);
    m_set_value(event, 7);
    m_set_value(event, 5);
    CHECK(m_value(event) == 7);
    CHECK(rig_said("a signal of 5 leaves an event at 7"));
    m_release(event);
}

static void test_wait_for_a_while(id device)
{
    id event = m_new_event(device);
    CHECK(!m_wait_value(event, 1, 0));
    m_set_value(event, 3);
    CHECK(m_wait_value(event, 1, 0) && m_wait_value(event, 3, UINT64_MAX));
    m_release(event);
}

static void test_listener(id device)
{
    heard_t heard = {.count = rig_count_new()};
    id event = m_new_event(device);
    listen_to(event, 5, &heard);
    m_set_value(event, 4);
    m_set_value(event, 6);
    rig_count_wait(heard.count, 1);
    CHECK(heard.value == 6 && heard.event == event);
    m_release(event);
    rig_count_free(heard.count);
}

static void test_listener_of_the_past(id device)
{
    heard_t heard = {.count = rig_count_new()};
    id event = m_new_event(device);
    m_set_value(event, 9);
    listen_to(event, 5, &heard);
    rig_count_wait(heard.count, 1);
    CHECK(heard.value == 9);
    m_release(event);
    rig_count_free(heard.count);
}

// The GPU's signals wake a listener that the host's do not.
static void test_lost_notes(id device)
{
    heard_t heard = {.count = rig_count_new()};
    id event = m_new_event(device), queue = m_new_queue(device, 4);
    listen_to(event, 1, &heard);
    m_set_value(event, 1);
    id command = m_command(queue);
    m_signal_event(command, event, 2);
    m_commit(command);
    rig_count_wait(heard.count, 1);
    CHECK(heard.value == 2);
    m_release(queue);
    m_release(event);
    rig_count_free(heard.count);
}

// What listeners of one queue were told, in this order.
typedef struct row_t {
    rig_count_t *count;
    unsigned values[8];
    atomic_uint length;
} row_t;

typedef struct place_t {
    row_t *row;
    unsigned value;
    id event;
} place_t;

static void take_place(block_t *block, id event, uint64_t value)
{
    const place_t *place = block->user;
    CHECK(m_value(place->event) >= place->value && value >= place->value);
    place->row->values[atomic_fetch_add(&place->row->length, 1)] = place->value;
    rig_count_raise(place->row->count);
}

// Whether the listeners of growing values, of one queue, were called in their order.
static bool told_in_order(id device)
{
    enum { COUNT = 8 };
    row_t row = {.count = rig_count_new()};
    place_t places[COUNT];
    id event = m_new_event(device), listener = listener_new();
    for (unsigned i = 0; i < COUNT; i++) {
        places[i] = (place_t){&row, i + 1, event};
        block_t block = rig_block((void (*)(void))take_place, &places[i], FOR_EVENT);
        m_notify(event, listener, i + 1, &block);
    }
    for (unsigned i = 0; i < COUNT; i++) m_set_value(event, i + 1);
    rig_count_wait(row.count, COUNT);
    bool ordered = true;
    for (unsigned i = 0; i < COUNT; i++) ordered &= row.values[i] == i + 1;
    m_release(listener);
    m_release(event);
    rig_count_free(row.count);
    return ordered;
}

static void test_notes_in_order(id device)
{
    CHECK(told_in_order(device));
}

// Each is called, and after its event; but they overtake each other, if not the first time.
static void test_late_notes(id device)
{
    while (told_in_order(device)) continue;
}

static void test_release_before_value(id device)
{
    heard_t heard = {.count = NULL};
    id event = m_new_event(device);
    listen_to(event, 5, &heard);
    m_release(event);
    CHECK(rig_said("released before it had value 5"));
    CHECK(rig_blocks() == 0);
}

static void notify_with(id device, int flags, const char *signature)
{
    block_t block = rig_block((void (*)(void))hear, NULL, signature);
    block.flags = flags;
    m_notify(m_new_event(device), listener_new(), 1, &block);
}

static void dies_no_signature(id device)
{
    notify_with(device, HELPERS, FOR_EVENT);
}

static void dies_wrong_signature(id device)
{
    notify_with(device, HELPERS | SIGNATURE, FOR_COMMAND);
}

// Neither on the stack nor global.
static void dies_no_isa(id device)
{
    block_t block = rig_block((void (*)(void))hear, NULL, FOR_EVENT);
    block.isa = &block;
    m_notify(m_new_event(device), listener_new(), 1, &block);
}

static void dies_global_flag(id device)
{
    notify_with(device, HELPERS | SIGNATURE | 1 << 28, FOR_EVENT);
}

static void dies_wrong_object(id device)
{
    block_t block = rig_block((void (*)(void))hear, NULL, FOR_EVENT);
    m_notify(m_new_event(device), device, 1, &block);
}

static void all(void)
{
    RUN("", test_value_only_grows);
    RUN("", test_wait_for_a_while);
    RUN("", test_listener);
    RUN("", test_listener_of_the_past);
    RUN("lostnotes=1", test_lost_notes);
    RUN("", test_notes_in_order);
    RUN("late=5000 seed=1", test_late_notes);
    RUN("late=5000 seed=2", test_late_notes);
    RUN("", test_release_before_value);
    DIES("the block has no signature", dies_no_signature);
    DIES("the block's isa is neither that of stack nor of global blocks", dies_no_isa);
    DIES("the block's isa and its flag 1 << 28 differ", dies_global_flag);
    DIES("the block's signature is v16@?0@8, not v24@?0@8Q16", dies_wrong_signature);
    DIES("an MTLDevice where an MTLSharedEventListener must be", dies_wrong_object);
}

int main(int argc, char **argv)
{
    return rig_main(argc, argv, all);
}
