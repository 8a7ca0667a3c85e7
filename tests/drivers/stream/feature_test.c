// SPDX-License-Identifier: Apache-2.0
// Features and quirks: what the core calls with them, and what without.
#include "drivers/stream/fixture.h"

// Opens a device of that kind.
static void open_as(uint32_t features, stream_quirks_t quirks)
{
    static vendor_kind_t asked;
    asked = (vendor_kind_t){.name = "asked for", .features = features, .quirks = quirks};
    kind = &asked;
    fixture_open(NULL);
}

static void says(keel_status_t status, keel_code_t code, const char *words)
{
    if (keel_status_code(status) != code || !strstr(keel_status_message(status), words))
        fail_msg("%s\ndoes not say: %s", keel_status_message(status), words);
    keel_status_release(status);
}

static void every_slot_is_looked_for(void **state)
{
    (void)state;
    vendor_kind_t whole = {.features = VENDOR_FEATURES};
    vendor_begin(&whole);
    stream_api_t *api = vendor_api();
    ok_status(stream_api_check(api, VENDOR_FEATURES));
    for (int i = 0; i < SLOTS; i++) {
        void *slot, **at = (void **)(void *)api + i;
        memcpy(&slot, at, sizeof slot);
        if (!slot) continue; // of features that the fake does not have
        memset(at, 0, sizeof slot);
        says(stream_api_check(api, VENDOR_FEATURES), KEEL_INTERNAL, "leaves out");
        memcpy(at, &slot, sizeof slot);
    }
    all_is_gone(false);
}

// A slot that is missing is named, and if it belongs to a feature, only missed with that.
static void missing_slots_are_named(void **state)
{
    (void)state;
    static const struct {
        int slot;
        const char *name;
        uint32_t feature;
    } some[] = {
        {SLOT(launch), "launch, which is required", 0},
        {SLOT(event_sync), "event_sync, which is required", 0},
        {SLOT(builtin_names), "builtin_names, which is required", 0},
        {SLOT(exec_set_fill), "exec_set_fill, which is of a feature", STREAM_GRAPHS},
        {SLOT(graph_branch), "graph_branch, which is of a feature", STREAM_CONDITIONS},
        {SLOT(graph_updatable), "graph_updatable, which is of a feature", STREAM_UPDATABLE},
        {SLOT(exec_upload), "exec_upload, which is of a feature", STREAM_UPLOAD},
        {SLOT(pool_trim), "pool_trim, which is of a feature", STREAM_POOLS},
        {SLOT(alloc_managed), "alloc_managed, which is of a feature", STREAM_MANAGED},
        {SLOT(function_arguments), "function_arguments, which is of a feature", STREAM_ARGUMENTS},
    };
    vendor_kind_t whole = {.features = VENDOR_FEATURES};
    vendor_begin(&whole);
    for (size_t i = 0; i < COUNT(some); i++) {
        stream_api_t *api = vendor_api();
        memset((void **)(void *)api + some[i].slot, 0, sizeof(void *));
        says(stream_api_check(api, VENDOR_FEATURES), KEEL_INTERNAL, some[i].name);
        if (some[i].feature) ok_status(stream_api_check(api, 0));
    }
    all_is_gone(false);
}

static void features_need_others(void **state)
{
    (void)state;
    vendor_kind_t whole = {.features = VENDOR_FEATURES};
    vendor_begin(&whole);
    const stream_api_t *api = vendor_api();
    says(stream_api_check(api, STREAM_CONDITIONS), KEEL_INTERNAL, "need 0x1 as well");
    says(stream_api_check(api, STREAM_UPLOAD), KEEL_INTERNAL, "need 0x1 as well");
    says(stream_api_check(api, STREAM_UPDATABLE | STREAM_GRAPHS), KEEL_INTERNAL,
         "need 0x8 as well");
    all_is_gone(false);
}

static void a_device_that_lacks_a_slot_is_not_opened(void **state)
{
    (void)state;
    vendor_kind_t shares = {.features = STREAM_SHARED}; // whose slots the fake has not
    keel_device_t *none = NULL;
    vendor_begin(&shares);
    says(keel_device_open("fake://", NULL, &none), KEEL_INTERNAL, "leaves out shared_granularity");
    all_is_gone(false);
}

static const uint32_t one = 1;

// Launches by graphs of one kernel, of four that differ in nothing but arguments.
static uint64_t launches_as_graphs(stream_quirks_t quirks)
{
    open_as(VENDOR_FEATURES, quirks);
    keel_buffer_t *x = numbers(0, 0, 0);
    keel_ref_t ref = keel_whole(x);
    keel_op_t op = op_add(&ref, &one, 1);
    uint64_t runs = vendor_calls(SLOT(exec_run)), launches = vendor_calls(SLOT(launch));
    for (int i = 0; i < 4; i++) ok(submit(queue, KEEL_NO_WAITS, &op, 1));
    runs = vendor_calls(SLOT(exec_run)) - runs;
    launches = vendor_calls(SLOT(launch)) - launches;
    assert_int_equal(runs + launches, 4);
    assert_int_equal(words_of(x)[0], 4);
    keel_buffer_release(x);
    fixture_close(NULL);
    return runs;
}

static void launches_are_graphs_only_where_that_is_cheaper(void **state)
{
    (void)state;
    assert_int_equal(launches_as_graphs((stream_quirks_t){0}), 0);
    assert_int_equal(launches_as_graphs((stream_quirks_t){.launch_graphs = 4}), 3);
}

static void graphs_are_made_ahead_only_where_room_is_short(void **state)
{
    (void)state;
    open_as(VENDOR_FEATURES, (stream_quirks_t){0});
    uint64_t alone = vendor_calls(SLOT(graph_instantiate)); // for grids in memory
    assert_int_equal(vendor_calls(SLOT(exec_destroy)), 0);
    fixture_close(NULL);
    open_as(VENDOR_FEATURES, (stream_quirks_t){.graph_room = 5});
    assert_int_equal(vendor_calls(SLOT(exec_destroy)),
                     vendor_calls(SLOT(graph_instantiate)) - alone);
    assert_true(vendor_calls(SLOT(exec_destroy)) >= 5);
    fixture_close(NULL);
}

// How often the host changes nodes of a recording of so many dispatches whose buffer has moved.
static uint64_t nodes_set_by_host(uint32_t features, uint32_t rebind_least, uint32_t dispatches)
{
    open_as(features, (stream_quirks_t){.rebind_least = rebind_least});
    keel_buffer_t *x = numbers(0, 0, 0), *y = numbers(0, 0, 0);
    keel_ref_t ref = keel_slot(0, 0, 4);
    keel_op_t ops[16];
    for (uint32_t i = 0; i < dispatches; i++) ops[i] = op_add(&ref, &one, 1);
    keel_recording_t *recording = record(ops, dispatches, 1);
    ok(execute(queue, recording, KEEL_BIND(x)));
    uint64_t sets = vendor_calls(SLOT(exec_set_launch));
    ok(execute(queue, recording, KEEL_BIND(x)));
    assert_int_equal(vendor_calls(SLOT(exec_set_launch)), sets); // nothing has moved
    ok(execute(queue, recording, KEEL_BIND(y)));
    sets = vendor_calls(SLOT(exec_set_launch)) - sets;
    assert_int_equal(words_of(x)[0], 2 * dispatches);
    assert_int_equal(words_of(y)[0], dispatches);
    keel_recording_release(recording);
    keel_buffer_release(x);
    keel_buffer_release(y);
    fixture_close(NULL);
    return sets;
}

static void the_device_changes_many_nodes_where_that_is_faster(void **state)
{
    (void)state;
    assert_int_equal(nodes_set_by_host(VENDOR_FEATURES, 0, 8), 8);
    assert_int_equal(nodes_set_by_host(VENDOR_FEATURES, 8, 7), 7);
    assert_int_equal(nodes_set_by_host(VENDOR_FEATURES, 8, 8), 0);
    assert_int_equal(nodes_set_by_host(STREAM_GRAPHS, 8, 8), 8);
    assert_int_equal(nodes_set_by_host(STREAM_GRAPHS | STREAM_UPLOAD, 8, 8), 8);
}

// Executes with these parameters; returns how many nodes the host changed for that.
static uint64_t sets_with(keel_recording_t *recording, const uint32_t *parameters, size_t count)
{
    uint64_t before = vendor_calls(SLOT(exec_set_launch));
    keel_op_t op = keel_op_execute_with(recording, KEEL_NO_BINDINGS, parameters, count * 4);
    ok(submit(queue, KEEL_NO_WAITS, &op, 1));
    return vendor_calls(SLOT(exec_set_launch)) - before;
}

static void only_nodes_with_other_parameters_change(void **state)
{
    enum { DISPATCHES = 4 };
    (void)state;
    open_as(STREAM_GRAPHS, (stream_quirks_t){0});
    keel_buffer_t *x = numbers(0, 0, 0);
    keel_ref_t ref = keel_whole(x);
    keel_patch_t patches[DISPATCHES];
    keel_op_t ops[DISPATCHES];
    for (uint32_t i = 0; i < DISPATCHES; i++) {
        patches[i] = (keel_patch_t){0, keel_parameter(i * 4, 4)};
        ops[i] = keel_op_patched(op_add(&ref, &one, 1), &patches[i], 1);
    }
    keel_recording_t *recording = record(ops, DISPATCHES, 0);
    assert_int_equal(sets_with(recording, (const uint32_t[]){1, 1, 1, 1}, 4), 0); // made for these
    assert_int_equal(sets_with(recording, (const uint32_t[]){1, 1, 1, 1}, 4), 0);
    assert_int_equal(sets_with(recording, (const uint32_t[]){1, 5, 1, 1}, 4), 1);
    assert_int_equal(sets_with(recording, (const uint32_t[]){2, 3, 4, 5}, 4), 4);
    assert_int_equal(vendor_calls(SLOT(graph_instantiate)), 1);
    assert_int_equal(words_of(x)[0], 4 + 4 + 8 + 14);
    keel_recording_release(recording);
    keel_buffer_release(x);
    fixture_close(NULL);
}

// What the device reads by itself is copied in front, and no node changes.
static void parameters_that_the_device_reads_change_no_node(void **state)
{
    (void)state;
    open_as(STREAM_GRAPHS, (stream_quirks_t){0});
    keel_buffer_t *x = numbers(0, 0, 0);
    keel_op_t op = keel_op_copy(keel_parameter(4, 4), keel_span(x, 0, 4));
    keel_recording_t *recording = record(&op, 1, 0);
    for (uint32_t i = 1; i < 4; i++) {
        uint64_t copies = vendor_calls(SLOT(copy));
        assert_int_equal(sets_with(recording, (const uint32_t[]){7, 10 * i}, 2), 0);
        assert_int_equal(vendor_calls(SLOT(copy)), copies + 1);
        assert_int_equal(words_of(x)[0], 10 * i);
    }
    assert_int_equal(vendor_calls(SLOT(graph_instantiate)), 1);
    keel_recording_release(recording);
    keel_buffer_release(x);
    fixture_close(NULL);
}

static uint64_t uploads_of_prepare(uint32_t features)
{
    open_as(features, (stream_quirks_t){0});
    keel_buffer_t *x = numbers(0, 0, 0);
    keel_ref_t ref = keel_whole(x);
    keel_op_t op = op_add(&ref, &one, 1);
    keel_recording_t *recording = record(&op, 1, 0);
    ok_status(keel_recording_prepare(recording, queue));
    uint64_t uploads = vendor_calls(SLOT(exec_upload));
    assert_int_equal(vendor_calls(SLOT(graph_instantiate)), 1);
    ok(execute(queue, recording, KEEL_NO_BINDINGS));
    assert_int_equal(vendor_calls(SLOT(graph_instantiate)), 1);
    assert_int_equal(words_of(x)[0], 1);
    keel_recording_release(recording);
    keel_buffer_release(x);
    fixture_close(NULL);
    return uploads;
}

static void prepare_uploads_where_the_vendor_can(void **state)
{
    (void)state;
    assert_int_equal(uploads_of_prepare(STREAM_GRAPHS), 0);
    assert_int_equal(uploads_of_prepare(STREAM_GRAPHS | STREAM_UPLOAD), 1);
}

// Which thread makes the graph of a recording that was not prepared.
static uint64_t graphs_made_here(bool graph_waits)
{
    open_as(STREAM_GRAPHS, (stream_quirks_t){.graph_waits = graph_waits});
    keel_buffer_t *x = numbers(0, 0, 0);
    keel_op_t op = keel_op_fill(keel_whole(x), 1, 4);
    keel_recording_t *recording = record(&op, 1, 0);
    ok(execute(queue, recording, KEEL_NO_BINDINGS));
    assert_int_equal(vendor_calls(SLOT(graph_instantiate)), 1);
    uint64_t here = vendor_calls_here(SLOT(graph_instantiate));
    keel_recording_release(recording);
    keel_buffer_release(x);
    fixture_close(NULL);
    return here;
}

static void graphs_are_made_elsewhere_where_that_may_wait(void **state)
{
    (void)state;
    assert_int_equal(graphs_made_here(false), 1);
    assert_int_equal(graphs_made_here(true), 0);
}

// Fills of the vendor's own, for one of 4096 bytes and one of 4112.
static uint64_t fills_of_the_vendor(stream_quirks_t quirks)
{
    open_as(STREAM_GRAPHS, quirks);
    keel_buffer_t *x = buffer_create(8192);
    uint64_t fills = vendor_calls(SLOT(fill));
    keel_op_t small = keel_op_fill(keel_span(x, 0, 4096), 1, 4);
    keel_op_t large = keel_op_fill(keel_span(x, 0, 4112), 2, 4);
    ok(submit(queue, KEEL_NO_WAITS, &small, 1));
    assert_int_equal(words_of(x)[1023], 1);
    ok(submit(queue, KEEL_NO_WAITS, &large, 1));
    assert_int_equal(words_of(x)[1027], 2);
    fills = vendor_calls(SLOT(fill)) - fills;
    keel_buffer_release(x);
    fixture_close(NULL);
    return fills;
}

static void small_transfers_are_kernels_where_that_is_faster(void **state)
{
    (void)state;
    assert_int_equal(fills_of_the_vendor((stream_quirks_t){0}), 2);
    assert_int_equal(
        fills_of_the_vendor((stream_quirks_t){.small_transfer = 4096, .launch_graphs = 4}), 1);
}

// Without pools of the vendor's, memory is cut from slabs, and capabilities say what is emulated.
static void capabilities_say_what_is_emulated(void **state)
{
    (void)state;
    uint32_t of_features =
        KEEL_CAP_QUEUE_ALLOCA | KEEL_CAP_EVENTS | KEEL_CAP_BRANCHES | KEEL_CAP_DYNAMIC_COUNTS;
    open_as(0, (stream_quirks_t){0});
    assert_int_equal(keel_device_caps(device)->bits & of_features, of_features);
    assert_int_equal(keel_device_caps(device)->native & of_features, 0);
    fixture_close(NULL);
    open_as(VENDOR_FEATURES, (stream_quirks_t){0});
    assert_int_equal(keel_device_caps(device)->native & of_features, of_features);
    fixture_close(NULL);
}

// The vendor's priority of a new queue, its second one, and of the one that the device begins with.
static int32_t priority_of(int32_t least, int32_t priority, int32_t *usual)
{
    static vendor_kind_t own;
    own = (vendor_kind_t){.name = "priorities", .least = least};
    kind = &own;
    fixture_open(NULL);
    keel_queue_options_t options = {.priority = priority};
    keel_queue_t *made;
    ok_status(keel_queue_create(device, &options, &made));
    int32_t got = vendor_priority(1);
    *usual = vendor_priority(0);
    keel_queue_release(made);
    fixture_close(NULL);
    return got;
}

// The vendor's levels go from `least` down to -2, which no queue gets.
static void queues_have_the_usual_priority_unless_they_say_so(void **state)
{
    (void)state;
    int32_t usual;
    assert_int_equal(priority_of(1, -1, &usual), 1);
    assert_int_equal(usual, 0);
    assert_int_equal(priority_of(1, 1, &usual), -1);
    assert_int_equal(usual, 0);
    assert_int_equal(priority_of(0, 1, &usual), -1);
    assert_int_equal(usual, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_slot_is_looked_for),
        cmocka_unit_test(missing_slots_are_named),
        cmocka_unit_test(features_need_others),
        cmocka_unit_test(a_device_that_lacks_a_slot_is_not_opened),
        cmocka_unit_test(launches_are_graphs_only_where_that_is_cheaper),
        cmocka_unit_test(graphs_are_made_ahead_only_where_room_is_short),
        cmocka_unit_test(the_device_changes_many_nodes_where_that_is_faster),
        cmocka_unit_test(only_nodes_with_other_parameters_change),
        cmocka_unit_test(parameters_that_the_device_reads_change_no_node),
        cmocka_unit_test(prepare_uploads_where_the_vendor_can),
        cmocka_unit_test(graphs_are_made_elsewhere_where_that_may_wait),
        cmocka_unit_test(small_transfers_are_kernels_where_that_is_faster),
        cmocka_unit_test(capabilities_say_what_is_emulated),
        cmocka_unit_test(queues_have_the_usual_priority_unless_they_say_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
