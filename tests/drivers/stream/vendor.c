// SPDX-License-Identifier: Apache-2.0
// The script, the things, and the driver.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "drivers/stream/stream.h"
#include "drivers/stream/vendor_inside.h"

// What the script says of a slot, and what was counted of it.
typedef struct slot_t {
    const char *name;
    bool fails;
    uint64_t calls, calls_here;
    uint64_t fail_at; // 0: never
    bool blocked;
    uint32_t inside; // threads that are held
} slot_t;

enum { PATIENCE_S = 60 }; // on a machine that has much else to do

static struct vendor_t {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    const vendor_kind_t *kind;
    slot_t slots[SLOTS];
    pthread_t here;
    keel_code_t code;  // of the failure to come
    bool dies, failed; // all calls fail from the first on; it was
    thing_t *things;
    stream_api_t api;
    char text[1024]; // of what went wrong
} vendor = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

struct stream_vendor_t {
    char nothing;
};
static stream_vendor_t device;
static _Thread_local int depth; // of `enter`

static const char *const thing_names[THINGS] = {
    "", "stream", "event", "piece of memory", "locked page", "module", "pool", "graph", "exec"};

void misuse(const char *format, ...)
{
    size_t used = strlen(vendor.text);
    va_list list;
    va_start(list, format);
    vsnprintf(vendor.text + used, sizeof vendor.text - used, format, list);
    va_end(list);
}

void *thing_new(thing_kind_t kind, size_t size)
{
    thing_t *thing = calloc(1, size);
    if (!thing) abort();
    thing->kind = kind;
    thing->next = vendor.things;
    vendor.things = thing;
    return thing;
}

void *thing_of(void *handle, thing_kind_t kind)
{
    const thing_t *thing = handle;
    if (thing->kind != kind) misuse("a %s is gone, or something else; ", thing_names[kind]);
    return handle;
}

void thing_end(void *handle, thing_kind_t kind)
{
    ((thing_t *)thing_of(handle, kind))->kind = THING_GONE;
}

thing_t *thing_first(void)
{
    return vendor.things;
}

void vendor_lock(void)
{
    pthread_mutex_lock(&vendor.lock);
}

keel_status_t done(keel_status_t status)
{
    pump();
    pthread_cond_broadcast(&vendor.changed);
    pthread_mutex_unlock(&vendor.lock);
    return status;
}

void changed_wait(void)
{
    pump();
    pthread_cond_broadcast(&vendor.changed);
    pthread_cond_wait(&vendor.changed, &vendor.lock);
}

void begin_void(stream_vendor_t *v, int index, const char *name)
{
    slot_t *slot = &vendor.slots[index];
    vendor_lock();
    slot->name = name;
    slot->calls++;
    slot->calls_here += pthread_equal(pthread_self(), vendor.here) != 0;
    if (v != &device) misuse("%s got another vendor; ", name);
    if (!depth && index != SLOT(close_device)) misuse("%s was called outside of enter; ", name);
    slot->inside++;
    pthread_cond_broadcast(&vendor.changed);
    while (slot->blocked) pthread_cond_wait(&vendor.changed, &vendor.lock);
    slot->inside--;
}

keel_status_t begin_call(stream_vendor_t *v, int index, const char *name)
{
    slot_t *slot = &vendor.slots[index];
    begin_void(v, index, name);
    slot->fails = true;
    bool due = slot->fail_at && slot->calls == slot->fail_at;
    vendor.failed |= due;
    if (!due && !(vendor.dies && vendor.failed)) return NULL;
    return done(KEEL_ERROR(vendor.code, "%s fails as it was told to", name));
}

static void enter(stream_vendor_t *v, stream_before_t *before)
{
    (void)v, (void)before;
    depth++;
}

static void leave(stream_before_t *before)
{
    (void)before;
    depth--;
}

static void close_device(stream_vendor_t *v)
{
    BEGIN_VOID(close_device);
    done(NULL);
}

stream_api_t *vendor_api(void)
{
    vendor.api = (stream_api_t){
        .driver = "fake",
        .enter = enter,
        .leave = leave,
        .close_device = close_device,
    };
    memory_slots(&vendor.api, vendor.kind->features);
    stream_slots(&vendor.api);
    graph_slots(&vendor.api, vendor.kind->features);
    return &vendor.api;
}

static keel_status_t fake_list(keel_device_listing_t *devices, size_t capacity, size_t *count)
{
    (void)devices, (void)capacity;
    *count = 0;
    return NULL;
}

const vendor_kind_t *kind_now(void)
{
    return vendor.kind;
}

static keel_status_t fake_open(const keel_uri_t *uri, keel_device_t **opened)
{
    stream_options_t options;
    stream_limits_t limits = {
        .info = {.hardware = "Fake", .target = "fake"},
        .processors = 2,
        .max_group_size = 1024,
        .max_group_sizes = {1024, 1024, 64},
        .subgroup_size = 32,
        .max_local_memory = 1 << 16,
        .max_arguments = 4096,
        .max_group_counts = {1 << 20, 1 << 16, 1 << 16},
        .least = vendor.kind->least,
        .greatest = VENDOR_GREATEST,
        .memory = 1 << 30,
        .clock_khz = vendor.kind->clock_khz,
        .features = vendor.kind->features,
        .quirks = vendor.kind->quirks,
    };
    KEEL_TRY(stream_options_parse(uri, &options));
    return stream_device_create(vendor_api(), &device, &limits, &options, opened);
}

static const keel_driver_t fake = {KEEL_DRIVER_HEAD, .name = "fake", .list = fake_list,
                                   .open = fake_open};

void vendor_begin(const vendor_kind_t *kind)
{
    keel_status_t status = keel_driver_register(&fake);
    if (status) abort();
    vendor_lock();
    memset(vendor.slots, 0, sizeof vendor.slots);
    vendor.kind = kind;
    vendor.here = pthread_self();
    vendor.dies = vendor.failed = false;
    vendor.text[0] = 0;
    done(NULL);
    vendor_memory(1 << 30);
}

const char *vendor_end(bool lost)
{
    vendor_lock();
    streams_reset();
    memory_reset();
    for (thing_t *thing; (thing = vendor.things);) {
        vendor.things = thing->next;
        if (thing->kind != THING_GONE && !lost) misuse("a %s is left; ", thing_names[thing->kind]);
        if (thing->finish) thing->finish(thing);
        free(thing);
    }
    done(NULL);
    return vendor.text;
}

uint64_t vendor_calls(int slot)
{
    vendor_lock();
    uint64_t calls = vendor.slots[slot].calls;
    pthread_mutex_unlock(&vendor.lock);
    return calls;
}

uint64_t vendor_calls_here(int slot)
{
    vendor_lock();
    uint64_t calls = vendor.slots[slot].calls_here;
    pthread_mutex_unlock(&vendor.lock);
    return calls;
}

const char *vendor_slot_name(int slot)
{
    return vendor.slots[slot].name ? vendor.slots[slot].name : "";
}

bool vendor_slot_fails(int slot)
{
    return vendor.slots[slot].fails;
}

// Waits until it holds, with the lock held.
#define AWAIT(condition)                                                                           \
    struct timespec end_;                                                                          \
    clock_gettime(CLOCK_REALTIME, &end_);                                                          \
    end_.tv_sec += PATIENCE_S;                                                                     \
    vendor_lock();                                                                                 \
    while (!(condition) && !pthread_cond_timedwait(&vendor.changed, &vendor.lock, &end_))          \
        continue;                                                                                  \
    bool holds_ = (condition);                                                                     \
    pthread_mutex_unlock(&vendor.lock);                                                            \
    return holds_

bool vendor_await(int slot, uint64_t calls)
{
    AWAIT(vendor.slots[slot].calls >= calls);
}

bool vendor_await_blocked(int slot)
{
    AWAIT(vendor.slots[slot].blocked && vendor.slots[slot].inside);
}

bool vendor_await_pending(uint32_t queue, uint32_t n)
{
    AWAIT(queue_has_pending(queue, n));
}

void vendor_fail(int slot, uint64_t nth, keel_code_t code)
{
    vendor_lock();
    vendor.slots[slot].fail_at = vendor.slots[slot].calls + nth;
    vendor.code = code;
    vendor.failed = false;
    pthread_mutex_unlock(&vendor.lock);
}

void vendor_die(int slot, uint64_t nth)
{
    vendor_fail(slot, nth, KEEL_DEVICE_LOST);
    vendor_lock();
    vendor.dies = true;
    pthread_mutex_unlock(&vendor.lock);
}

bool vendor_failed(void)
{
    vendor_lock();
    bool failed = vendor.failed;
    pthread_mutex_unlock(&vendor.lock);
    return failed;
}

static void block_set(int slot, bool blocked)
{
    vendor_lock();
    vendor.slots[slot].blocked = blocked;
    done(NULL);
}

void vendor_block(int slot)
{
    block_set(slot, true);
}

void vendor_unblock(int slot)
{
    block_set(slot, false);
}
