// SPDX-License-Identifier: Apache-2.0
// Devices: finding, opening, asking, waiting until they are idle.
#include "suite/suite.h"

TEST(device, list_all, .also = NEED_LISTED, .lists = true)
{
    keel_device_listing_t devices[64];
    size_t count = 0;
    bool found = false;
    TRY(keel_device_list(NULL, devices, COUNT(devices), &count));
    CHECK_GE(count, 1);
    for (size_t i = 0; i < count && i < COUNT(devices); i++) {
        row("%s", devices[i].uri);
        CHECK(devices[i].name[0]);
        CHECK_HAS(devices[i].uri, "://");
        found |= strncmp(devices[i].uri, the_driver(), strlen(the_driver())) == 0;
    }
    CHECK(found);
}

TEST(device, list_of_driver_opens, .also = NEED_LISTED, .opens = true)
{
    keel_device_listing_t devices[64];
    size_t count = 0;
    TRY(keel_device_list(the_driver(), devices, COUNT(devices), &count));
    CHECK_GE(count, 1);
    for (size_t i = 0; i < count && i < COUNT(devices); i++) {
        row("%s", devices[i].uri);
        CHECK(strncmp(devices[i].uri, the_driver(), strlen(the_driver())) == 0);
        drop(open_device(devices[i].uri));
    }
}

TEST(device, list_respects_capacity, .lists = true)
{
    keel_device_listing_t devices[2];
    size_t all = 0, count = 0;
    TRY(keel_device_list(NULL, NULL, 0, &all));
    CHECK_GE(all, 1);
    memset(devices, 0x5a, sizeof devices);
    TRY(keel_device_list(NULL, devices, 1, &count));
    if (!faulted()) CHECK_EQ(count, all); // else a driver may have none this time
    CHECK(devices[0].uri[0] != 0x5a);
    CHECK_EQ(devices[1].uri[0], 0x5a);
}

TEST(device, list_bad_arguments)
{
    size_t count;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "count", keel_device_list(NULL, NULL, 0, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "devices", keel_device_list(NULL, NULL, 3, &count));
    FAILS_SAYING(KEEL_NOT_FOUND, "nodriver", keel_device_list("nodriver", NULL, 0, &count));
}

TEST(device, open_bad_arguments)
{
    keel_device_t *device = NULL;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "uri", keel_device_open(NULL, NULL, &device));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "device", keel_device_open(the_uri(), NULL, NULL));
    CHECK(device == NULL);
}

TEST(device, open_bad_uris)
{
    static const char *const uris[] = {"",    "cpu",       "cpu:",      "cpu:/",
                                       "://", "/dev/null", "?threads=2"};
    keel_device_t *device = NULL;
    for (size_t i = 0; i < COUNT(uris); i++) {
        row("'%s'", uris[i]);
        FAILS(KEEL_INVALID_ARGUMENT, keel_device_open(uris[i], NULL, &device));
        CHECK(device == NULL);
    }
    FAILS_SAYING(KEEL_NOT_FOUND, "'nodriver'", keel_device_open("nodriver://", NULL, &device));
    FAILS(KEEL_NOT_FOUND, keel_device_open("cp://", NULL, &device));
    FAILS(KEEL_NOT_FOUND, keel_device_open("cpux://", NULL, &device));
}

TEST(device, open_unknown_option)
{
    keel_device_t *device = NULL;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "flavour",
                 keel_device_open(with_option("flavour=vanilla"), NULL, &device));
    CHECK(device == NULL);
}

TEST(device, open_malformed_options)
{
    static const char *const options[] = {"=1", "flavour", "&", "a=1&&b=2"};
    keel_device_t *device = NULL;
    for (size_t i = 0; i < COUNT(options); i++) {
        row("%s", options[i]);
        FAILS(KEEL_INVALID_ARGUMENT, keel_device_open(with_option(options[i]), NULL, &device));
    }
}

TEST(device, open_very_long_uri)
{
    char *uri = scratch(100000);
    memset(uri, 'x', 99999);
    memcpy(uri, "cpu://?", 7);
    keel_device_t *device = NULL;
    FAILS(KEEL_INVALID_ARGUMENT, keel_device_open(uri, NULL, &device));
}

TEST(device, name_and_uri)
{
    char name[] = "my machine";
    keel_device_options_t options = {.name = name};
    keel_device_t *device = NULL;
    TRY(keel_device_open(the_uri(), &options, &device));
    OWN(device);
    memset(name, 'x', sizeof name - 1);
    CHECK_STR(keel_device_info(device)->name, "my machine");
    CHECK_STR(keel_device_info(device)->uri, the_uri());
    CHECK_STR(keel_device_info(the_device())->name, the_uri());
}

// As the list says it, where the list has the device: there the memory may follow.
TEST(device, hardware, .lists = true)
{
    const char *hardware = keel_device_info(the_device())->hardware;
    CHECK(*hardware);
    keel_device_listing_t devices[16];
    size_t count;
    TRY(keel_device_list(NULL, devices, 16, &count));
    for (size_t i = 0; i < count && i < 16; i++)
        if (strcmp(devices[i].uri, the_uri()) == 0)
            CHECK(strncmp(devices[i].name, hardware, strlen(hardware)) == 0);
}

// All of it is of some use, and the same for every device that is opened by this URI.
TEST(device, info)
{
    const keel_device_info_t *info = keel_device_info(the_device());
    static const uint8_t none[16] = {0};
    CHECK(keel_device_info(the_device()) == info);
    CHECK_EQ(info->has_uuid, memcmp(info->uuid, none, sizeof none) != 0);
    CHECK(info->has_numa_node || !info->numa_node);
    if (*info->pci) {
        CHECK(strchr(info->pci, ':') && strchr(info->pci, '.'));
        CHECK_EQ(info->pci[strspn(info->pci, "0123456789abcdef:.")], 0);
    }
    const keel_device_info_t *other = keel_device_info(open_device(the_uri()));
    CHECK_STR(other->hardware, info->hardware);
    CHECK_STR(other->vendor, info->vendor);
    CHECK_STR(other->target, info->target);
    CHECK_STR(other->driver, info->driver);
    CHECK_STR(other->api, info->api);
    CHECK_STR(other->pci, info->pci);
    CHECK_EQ(memcmp(other->uuid, info->uuid, sizeof info->uuid), 0);
    CHECK_EQ(other->link, info->link);
}

TEST(device, caps_are_sane)
{
    const keel_caps_t *caps = the_caps();
    CHECK_EQ(caps->native & ~caps->bits, 0);
    CHECK(caps->queue_families & 1 << KEEL_QUEUE_COMPUTE);
    CHECK(caps->min_priority <= 0 && caps->max_priority >= 0);
    CHECK_GE(caps->nodes, 1);
    CHECK_GE(caps->max_bindings, 64);
    CHECK_GE(caps->max_slots, 64);
    CHECK_GE(caps->max_constants, 256);
    CHECK_GE(caps->max_commands, 1 << 20);
    CHECK_GE(caps->max_depth, 4);
    CHECK_GE(caps->max_group_size, 256);
    for (int i = 0; i < 3; i++) {
        CHECK_GE(caps->max_group_sizes[i], 64);
        CHECK_GE(caps->max_group_size, caps->max_group_sizes[i]);
    }
    if (caps->bits & KEEL_CAP_EXECUTES) CHECK_GE(caps->max_local_memory, 16384);
    CHECK_GE(caps->max_groups, 65535);
    for (int i = 0; i < 3; i++) CHECK_GE(caps->max_group_counts[i], 65535);
    // Groups that use them have a multiple of 64 items.
    CHECK_GE(caps->subgroup_size, 1);
    if (caps->subgroup_size) CHECK_EQ(64 % caps->subgroup_size, 0);
    CHECK_GE(caps->max_buffer_size, 1 << 28);
    CHECK_GE(caps->buffer_alignment, 16);
    CHECK_EQ(caps->buffer_alignment & (caps->buffer_alignment - 1), 0);
    if (caps->bits & KEEL_CAP_RAW_ARGUMENTS) CHECK_GE(caps->max_arguments, 256);
}

TEST(device, caps_memory_types)
{
    const keel_caps_t *caps = the_caps();
    bool visible = false;
    size_t count = 0;
    for (; count < COUNT(caps->memory_types) && caps->memory_types[count]; count++) {
        CHECK(caps->memory_types[count] & KEEL_MEMORY_DEVICE_VISIBLE);
        visible |= caps->memory_types[count] & KEEL_MEMORY_HOST_VISIBLE;
    }
    CHECK_GE(count, 1);
    CHECK_LE(count, COUNT(caps->memory_types) - 1);
    CHECK(visible);
}

TEST(device, one_queue_and_pool_per_node)
{
    uint32_t nodes = the_caps()->nodes;
    for (uint32_t i = 0; i < nodes; i++) {
        row("node %u", i);
        CHECK(keel_device_queue(the_device(), i));
        CHECK(keel_device_queue(the_device(), i) == keel_device_queue(the_device(), i));
        CHECK(keel_queue_info(keel_device_queue(the_device(), i))->device == the_device());
        if (the_caps()->bits & KEEL_CAP_QUEUE_ALLOCA) CHECK(keel_device_pool(the_device(), i));
    }
    CHECK(keel_device_queue(the_device(), nodes) == NULL);
    CHECK(keel_device_queue(the_device(), SIZE_MAX) == NULL);
    CHECK(keel_device_pool(the_device(), nodes) == NULL);
    CHECK(keel_device_pool(the_device(), SIZE_MAX) == NULL);
}

TEST(device, retain_and_release)
{
    keel_device_t *device = the_device();
    CHECK(keel_device_retain(device) == device);
    keel_device_release(device);
    reach(submit(keel_op_barrier()));
    keel_device_release(NULL);
}

TEST(device, open_twice)
{
    keel_device_t *other = open_device(the_uri());
    CHECK(other != the_device());
    CHECK(keel_device_queue(other, 0) != the_queue());
    drop(other);
    reach(submit(keel_op_barrier()));
}

TEST(device, open_and_close_often)
{
    for (int i = 0; i < 30; i++) {
        keel_device_t *device = open_device(the_uri());
        keel_point_t done;
        TRY(keel_queue_signal(keel_device_queue(device, 0), KEEL_NO_WAITS, KEEL_NO_SIGNALS, &done));
        reach(done);
        drop(device);
    }
}

TEST(device, clock_pair)
{
    uint64_t last = 0;
    for (int i = 0; i < 20; i++) {
        keel_clock_pair_t pair;
        uint64_t before = keel_now_ns();
        TRY(keel_device_clock(the_device(), &pair));
        uint64_t after = keel_now_ns();
        CHECK_GE(pair.host_ns, before);
        CHECK_LE(pair.host_ns, after);
        CHECK_LE(pair.error_ns, after - before);
        CHECK_GE(pair.device_ns, last);
        last = pair.device_ns;
    }
}

// Both clocks run at the same speed.
TEST(device, clock_rate, .alone = true)
{
    keel_clock_pair_t a, b;
    TRY(keel_device_clock(the_device(), &a));
    sleep_ms(100);
    TRY(keel_device_clock(the_device(), &b));
    uint64_t host = b.host_ns - a.host_ns, device = b.device_ns - a.device_ns;
    uint64_t difference = host > device ? host - device : device - host;
    CHECK_LE(difference, a.error_ns + b.error_ns + host / 1000 + 1000);
}

TEST(device, clock_bad_arguments)
{
    keel_clock_pair_t pair;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "device", keel_device_clock(NULL, &pair));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "pair", keel_device_clock(the_device(), NULL));
}

TEST(device, memory_follows_buffers)
{
    keel_memory_stats_t before, with, after;
    TRY(keel_device_memory(the_device(), &before));
    CHECK_GE(before.total, 1 << 20);
    CHECK_LE(before.budget, before.total);
    keel_buffer_t *a = new_buffer(1 << 20), *b = new_buffer(4096);
    TRY(keel_device_memory(the_device(), &with));
    CHECK_GE(with.used, before.used + (1 << 20) + 4096);
    CHECK_LE(with.used, before.used + (1 << 21));
    CHECK_EQ(with.buffers, before.buffers + 2);
    CHECK_GE(with.peak, with.used);
    drop(a);
    drop(b);
    TRY(keel_device_memory(the_device(), &after));
    CHECK_EQ(after.used, before.used);
    CHECK_EQ(after.buffers, before.buffers);
    CHECK_GE(after.peak, with.used);
}

TEST(device, memory_subspans_are_free)
{
    keel_buffer_t *buffer = new_buffer(4096);
    keel_memory_stats_t before, after;
    TRY(keel_device_memory(the_device(), &before));
    new_subspan(buffer, 16, 64);
    TRY(keel_device_memory(the_device(), &after));
    CHECK_EQ(after.used, before.used);
    CHECK_EQ(after.buffers, before.buffers);
}

TEST(device, memory_bad_arguments)
{
    keel_memory_stats_t stats;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "device", keel_device_memory(NULL, &stats));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "stats", keel_device_memory(the_device(), NULL));
}

TEST(device, wait_idle_when_idle)
{
    TRY(keel_device_wait_idle(the_device(), 0));
    TRY(keel_device_wait_idle(the_device(), KEEL_FOREVER));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "device", keel_device_wait_idle(NULL, 0));
}

TEST(device, wait_idle_with_work)
{
    keel_semaphore_t *gate = new_semaphore(0);
    keel_queue_t *other = new_queue(0);
    keel_point_t a = submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_barrier()), b;
    TRY(keel_queue_signal(other, KEEL_AFTER(keel_point(gate, 2)), KEEL_NO_SIGNALS, &b));
    FAILS(KEEL_DEADLINE_EXCEEDED, keel_device_wait_idle(the_device(), 0));
    uint64_t start = keel_now_ns();
    FAILS(KEEL_DEADLINE_EXCEEDED, keel_device_wait_idle(the_device(), 20000000));
    CHECK_GE(keel_now_ns() - start, 20000000);
    TRY(keel_semaphore_signal(gate, 1));
    reach(a);
    FAILS(KEEL_DEADLINE_EXCEEDED, keel_device_wait_idle(the_device(), 0));
    TRY(keel_semaphore_signal(gate, 2));
    TRY(keel_device_wait_idle(the_device(), patience()));
    CHECK(ended(b));
}

// Only what was submitted before the call counts: a chain that never ends does not hold it up.
typedef struct chain_t {
    keel_queue_t *queue;
    atomic_bool stop;
    atomic_uint submitted;
} chain_t;

static void keep_submitting(void *user)
{
    chain_t *chain = user;
    keel_point_t last = keel_point(keel_queue_timeline(chain->queue), 0);
    while (!atomic_load(&chain->stop)) {
        keel_point_t previous = last;
        TRY(keel_queue_signal(chain->queue, KEEL_AFTER(last), KEEL_NO_SIGNALS, &last));
        atomic_fetch_add(&chain->submitted, 1);
        reach(previous);
    }
    reach(last);
}

static void stop_chain(void *user)
{
    atomic_store(&((chain_t *)user)->stop, true);
}

TEST(device, wait_idle_ignores_later_work)
{
    chain_t *chain = scratch(sizeof *chain);
    chain->queue = the_queue();
    thread_t *thread = thread_start(keep_submitting, chain);
    own_cleanup(stop_chain, chain);
    uint64_t start = keel_now_ns();
    while (atomic_load(&chain->submitted) < 10 && keel_now_ns() - start < patience()) sleep_ms(1);
    for (int i = 0; i < 20; i++) TRY(keel_device_wait_idle(the_device(), patience()));
    stop_chain(chain);
    thread_join(thread);
}

TEST(device, wait_idle_does_not_report_failures)
{
    keel_semaphore_t *gate = new_semaphore(0);
    keel_point_t point = submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_barrier());
    TRY(keel_semaphore_fail(gate, KEEL_ERROR(KEEL_ABORTED, "on purpose")));
    TRY(keel_device_wait_idle(the_device(), patience()));
    reach_failure(point, KEEL_ABORTED);
}
