// SPDX-License-Identifier: Apache-2.0
// Two passes over a file: calls first, so that operations find the call that made them wherever its
// record is.
#include "tracer/load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/status.h"
#include "tracer/demangle.h"
#include "tracer/map.h"
#include "tracer/rocpd.h"
#include "tracer/usage.h"

enum {
    NAMES = TRACE_NAMES + 1, // and 0
    STREAMS = 0x7fff,        // that have tracks of their own
};

// One file that is being read.
typedef struct loader_t {
    model_t *model;
    const reader_t *reader;
    uint32_t process, first; // the own one; the first of this trace
    uint32_t *names;         // owned: strings by the file's numbers, and 1; 0: not looked up yet
    map_t calls;             // events by their numbers
    map_t works;             // submissions by queue and number
    map_t streams;           // numbers of HIP's streams by their handles, from 1
    uint64_t queue_of;       // whose track was asked for last
    uint32_t stream_of;      // with it
    uint64_t thread_of;
    uint32_t queue, thread; // their tracks
    bool has_queue, has_thread;
    struct {
        uint64_t thread, key, command;
        uint32_t event; // its index and 1; 0: none
    } part;             // of an operation, that was added last
    struct {
        uint64_t thread, graph, number; // 0: none
    } node; // of a graph, that the next operation of a GPU that the thread tells of comes from
    usage_t usage;        // of memory, by calls of HIP
    keel_status_t status; // owned: the first failure
} loader_t;

// Adds a name. One that is too long for some formats is cut, and has a mark of the whole behind it,
// so that kernels that differ in the rest only stay apart.
static keel_status_t name_add(model_t *model, const char *name, uint32_t *text)
{
    enum { MOST = 4000 }; // bytes
    char *readable = demangle(name), cut[MOST + 32];
    const char *shown = readable ? readable : name;
    if (strlen(shown) > MOST) {
        uint64_t mark = 0;
        for (const char *at = name; *at; at++) mark = (mark ^ (unsigned char)*at) * 0x100000001b3u;
        snprintf(cut, sizeof cut, "%.*s... %016llx", MOST, shown, (unsigned long long)mark);
        shown = cut;
    }
    keel_status_t status = model_text(model, shown, text);
    free(readable);
    return status;
}

static keel_status_t name_find(loader_t *loader, uint64_t name, uint32_t *text)
{
    bool known = name < NAMES;
    *text = 0;
    if (known && loader->names[name]) {
        *text = loader->names[name] - 1;
        return NULL;
    }
    size_t size = reader_name_size(loader->reader, (uint32_t)name);
    char *whole = mem_zalloc(size);
    if (!whole) return status_no_memory();
    reader_name(loader->reader, (uint32_t)name, whole, size);
    keel_status_t status = name_add(loader->model, whole, text);
    mem_free(whole);
    if (!status && known) loader->names[name] = *text + 1;
    return status;
}

static keel_status_t thread_find(loader_t *loader, uint64_t thread, uint32_t *track)
{
    if (!loader->has_thread || loader->thread_of != thread) {
        const trace_record_t *record = reader_thread(loader->reader, thread);
        track_t wanted = {.process = loader->process, .number = thread};
        char name[sizeof record->text] = "";
        if (record) memcpy(name, record->text, sizeof name - 1);
        KEEL_TRY(model_text(loader->model, name, &wanted.name));
        KEEL_TRY(model_track(loader->model, wanted, &loader->thread));
        loader->thread_of = thread;
        loader->has_thread = true;
    }
    *track = loader->thread;
    return NULL;
}

// The name of a track: that of the queue, and the stream.
static keel_status_t queue_name(loader_t *loader, const trace_record_t *queue, uint32_t stream,
                                uint32_t *text)
{
    char name[512];
    KEEL_TRY(name_find(loader, queue ? queue->name : 0, text));
    if (!stream) return NULL;
    snprintf(name, sizeof name, "%s, stream %u", model_string(loader->model, *text), stream);
    return model_text(loader->model, name, text);
}

// The track of a queue, or of a stream on it, if `stream` is not 0.
static keel_status_t queue_find(loader_t *loader, uint64_t queue, uint32_t stream, uint32_t *track)
{
    if (stream > STREAMS) stream = 0;
    if (!loader->has_queue || loader->queue_of != queue || loader->stream_of != stream) {
        const trace_record_t *record = reader_queue(loader->reader, queue);
        // Each library of a process numbers its own.
        track_t wanted = {.is_queue = true,
                          .process = loader->process,
                          .number = (uint64_t)stream << 48 |
                                    (uint64_t)loader->reader->header->number << 32 | queue};
        device_t device = {.process = loader->process};
        KEEL_TRY(queue_name(loader, record, stream, &wanted.name));
        KEEL_TRY(name_find(loader, record ? record->a[0] : 0, &device.name));
        KEEL_TRY(model_device(loader->model, device, &wanted.device));
        KEEL_TRY(model_track(loader->model, wanted, &loader->queue));
        loader->queue_of = queue;
        loader->stream_of = stream;
        loader->has_queue = true;
    }
    *track = loader->queue;
    return NULL;
}

// Never 0. Two submissions would have one key only after 2^44 on a queue.
static uint64_t work_key(const trace_record_t *raw)
{
    return 1ull << 63 | (raw->id & 0x7ffff) << 44 | (raw->submission & ((1ull << 44) - 1));
}

static event_t event_of(const reader_record_t *record, event_kind_t kind)
{
    return (event_t){.start_ns = record->start_ns, .end_ns = record->end_ns, .kind = (uint8_t)kind};
}

static keel_status_t add_submit(loader_t *loader, const reader_record_t *record)
{
    const trace_record_t *raw = record->raw;
    event_t event = event_of(record, EVENT_CALL);
    work_t work = {.number = raw->submission, .submit_ns = record->start_ns};
    uint32_t call, index;
    KEEL_TRY(model_text(loader->model, "keel_queue_submit", &event.name));
    KEEL_TRY(model_text(loader->model, "keel", &event.domain));
    KEEL_TRY(thread_find(loader, record->thread, &event.track));
    KEEL_TRY(model_event(loader->model, event, &call));
    work.call = call + 1; // 0 if it was left out
    work.commands = raw->a[0];
    work.waits = raw->a[1];
    work.signals = raw->a[2];
    KEEL_TRY(queue_find(loader, raw->id, 0, &work.track));
    KEEL_TRY(model_work(loader->model, work, &index));
    return map_put(&loader->works, work_key(raw), index);
}

// The arguments of a call. Those of one about memory are as rocmProfileData's tools read them.
static keel_status_t call_given(loader_t *loader, const trace_record_t *raw, uint32_t *args)
{
    char text[64];
    if (!raw->flags) return name_find(loader, raw->a[1], args);
    if (raw->flags == TRACE_MEMORY_TAKEN)
        snprintf(text, sizeof text, "ptr(0x%llx) size(0x%llx)", (unsigned long long)raw->a[1],
                 (unsigned long long)raw->a[2]);
    else
        snprintf(text, sizeof text, "ptr(0x%llx)", (unsigned long long)raw->a[1]);
    return model_text(loader->model, text, args);
}

// The number of a call's stream: 0 if it has none, or the default one. HIP puts several streams on
// one queue, so that only calls tell them apart. A stream at the address of one that was destroyed
// has the number of that.
static keel_status_t stream_find(loader_t *loader, uint64_t handle, uint64_t *stream)
{
    uint32_t number;
    *stream = 0;
    if (!handle) return NULL;
    if (!map_get(&loader->streams, handle, &number)) {
        number = loader->streams.count + 1;
        KEEL_TRY(map_put(&loader->streams, handle, number));
    }
    *stream = number;
    return NULL;
}

// With its stream, and with what it returned, if that is no success.
static keel_status_t call_args(loader_t *loader, const trace_record_t *raw, uint64_t stream,
                               uint32_t *args)
{
    char text[4096 + 64];
    KEEL_TRY(call_given(loader, raw, args));
    if (!stream && !trace_call_result(raw)) return NULL;
    const char *given = model_string(loader->model, *args);
    int length = snprintf(text, sizeof text, "%s", given);
    if (stream)
        length += snprintf(text + length, sizeof text - (size_t)length, "%sstream %llu",
                           length ? " " : "", (unsigned long long)stream);
    if (trace_call_result(raw))
        snprintf(text + length, sizeof text - (size_t)length, "%sreturned %lld", length ? " " : "",
                 (long long)trace_call_result(raw));
    return model_text(loader->model, text, args);
}

// Memory is there when the call that takes it ends, and until the one begins that gives it back:
// another thread may get the same address from then on.
static keel_status_t call_memory(loader_t *loader, const reader_record_t *record, uint32_t track)
{
    const trace_record_t *raw = record->raw;
    bool taken = raw->flags == TRACE_MEMORY_TAKEN;
    if (!raw->flags || !raw->a[1]) return NULL;
    return usage_add(&loader->usage, (change_t){.ns = taken ? record->end_ns : record->start_ns,
                                                .address = raw->a[1],
                                                .bytes = taken ? raw->a[2] : 0,
                                                .track = track});
}

static keel_status_t add_call(loader_t *loader, const reader_record_t *record)
{
    const trace_record_t *raw = record->raw;
    event_t event = event_of(record, EVENT_CALL);
    uint32_t index;
    KEEL_TRY(name_find(loader, raw->name, &event.name));
    KEEL_TRY(name_find(loader, trace_call_domain(raw), &event.domain));
    KEEL_TRY(stream_find(loader, raw->submission, &event.value));
    KEEL_TRY(call_args(loader, raw, event.value, &event.args));
    KEEL_TRY(thread_find(loader, record->thread, &event.track));
    KEEL_TRY(call_memory(loader, record, event.track));
    KEEL_TRY(model_event(loader->model, event, &index));
    if (index == UINT32_MAX || !raw->id) return NULL;
    // A call that a runtime made of itself may have the number of the one that it is in.
    uint32_t known;
    if (map_get(&loader->calls, raw->id, &known) &&
        loader->model->events[known].start_ns <= event.start_ns)
        return NULL;
    return map_replace(&loader->calls, raw->id, index);
}

static keel_status_t add_wait(loader_t *loader, const reader_record_t *record)
{
    event_t event = event_of(record, EVENT_CALL);
    uint32_t index;
    KEEL_TRY(model_text(loader->model, "keel_wait", &event.name));
    KEEL_TRY(model_text(loader->model, "keel", &event.domain));
    KEEL_TRY(thread_find(loader, record->thread, &event.track));
    return model_event(loader->model, event, &index);
}

// Parts of one operation that a thread runs one after the other become one event: a kernel may have
// thousands of workgroups. The part with the first unit begins an event, since the same command may
// run again.
static bool part_joins(loader_t *loader, const reader_record_t *record)
{
    const trace_record_t *raw = record->raw;
    if (!loader->part.event || !raw->a[1] || loader->part.thread != record->thread ||
        loader->part.key != work_key(raw) || loader->part.command != raw->a[0])
        return false;
    event_t *event = &loader->model->events[loader->part.event - 1];
    if (event->name + 1 != (raw->name < NAMES ? loader->names[raw->name] : 0)) return false;
    if (record->end_ns > event->end_ns) event->end_ns = record->end_ns;
    if (event->op == TRACE_OP_COPY) event->value += raw->a[2];
    return true;
}

static keel_status_t add_op(loader_t *loader, const reader_record_t *record)
{
    const trace_record_t *raw = record->raw;
    event_t event = event_of(record, EVENT_OP);
    uint32_t work, index;
    if (part_joins(loader, record)) return NULL;
    event.op = (uint8_t)raw->flags;
    event.later = raw->a[1] != 0; // the part with the first unit is the call
    if (event.op == TRACE_OP_COPY) event.value = raw->a[2];
    if (map_get(&loader->works, work_key(raw), &work)) {
        work_t *of = &loader->model->works[work];
        event.link = of->call;
        if (!of->begin_ns || record->start_ns < of->begin_ns) of->begin_ns = record->start_ns;
    }
    KEEL_TRY(name_find(loader, raw->name, &event.name));
    KEEL_TRY(queue_find(loader, raw->id, 0, &event.track));
    if (reader_clock(raw) > TRACE_DEVICE_NS)
        loader->model->devices[loader->model->tracks[event.track].device].own_clock = true;
    KEEL_TRY(model_event(loader->model, event, &index));
    loader->part.thread = record->thread;
    loader->part.key = work_key(raw);
    loader->part.command = raw->a[0];
    loader->part.event = index + 1; // 0 if it was left out
    return NULL;
}

static void node_keep(loader_t *loader, const reader_record_t *record)
{
    loader->node.thread = record->thread;
    loader->node.graph = record->raw->submission;
    loader->node.number = record->raw->id;
}

static keel_status_t node_use(loader_t *loader, const reader_record_t *record, uint32_t *args)
{
    char text[64];
    if (!loader->node.number || loader->node.thread != record->thread) return NULL;
    snprintf(text, sizeof text, "graph %llu node %llu", (unsigned long long)loader->node.graph,
             (unsigned long long)loader->node.number);
    loader->node.number = 0;
    return model_text(loader->model, text, args);
}

static keel_status_t add_gpu(loader_t *loader, const reader_record_t *record)
{
    const trace_record_t *raw = record->raw;
    event_t event = event_of(record, EVENT_OP);
    uint32_t index, stream = 0;
    event.op = (uint8_t)raw->flags;
    if (event.op == TRACE_OP_DISPATCH)
        KEEL_TRY(model_shape(loader->model, raw->shape, &event.value));
    if (event.op == TRACE_OP_COPY) {
        event.value = raw->a[0];
        event.copy = raw->a[1] < TRACE_COPIES ? (uint8_t)raw->a[1] : 0;
    }
    if (raw->submission && map_get(&loader->calls, raw->submission, &index)) {
        event.link = index + 1;
        stream = (uint32_t)loader->model->events[index].value;
    }
    KEEL_TRY(node_use(loader, record, &event.args));
    KEEL_TRY(name_find(loader, raw->name, &event.name));
    KEEL_TRY(queue_find(loader, raw->id, stream, &event.track));
    return model_event(loader->model, event, &index);
}

static keel_status_t add_own(loader_t *loader, const reader_record_t *record, event_kind_t kind)
{
    event_t event = event_of(record, kind);
    uint32_t index;
    if (kind == EVENT_COUNT || kind == EVENT_LAUNCHES) event.value = record->raw->a[0];
    if (kind != EVENT_SPAN) event.end_ns = event.start_ns;
    KEEL_TRY(name_find(loader, record->raw->name, &event.name));
    KEEL_TRY(thread_find(loader, record->thread, &event.track));
    return model_event(loader->model, event, &index);
}

// What becomes known of a submission after its call.
static keel_status_t work_learn(loader_t *loader, const reader_record_t *record, trace_kind_t kind)
{
    uint32_t index;
    if (!map_get(&loader->works, work_key(record->raw), &index)) return NULL;
    work_t *work = &loader->model->works[index];
    if (kind == TRACE_READY) work->ready_ns = record->start_ns;
    if (kind != TRACE_END) return NULL;
    work->end_ns = record->start_ns;
    work->status = record->raw->flags;
    return NULL;
}

// The queue whose timeline a semaphore is, at some moment: an address may have been another one's
// before. 0: none.
static uint64_t timeline_queue(const reader_t *reader, uint64_t semaphore, uint64_t start)
{
    uint64_t queue = 0;
    for (size_t i = 0; i < reader->queues.count; i++) {
        const trace_record_t *record = reader->queues.records[i];
        if (record->a[1] == semaphore && record->start <= start) queue = record->id;
    }
    return queue;
}

static keel_status_t add_need(loader_t *loader, const reader_record_t *record)
{
    const trace_record_t *raw = record->raw;
    need_t need = {.value = raw->a[1]};
    uint32_t on;
    if (!map_get(&loader->works, work_key(raw), &need.work)) return NULL;
    trace_record_t made = {.id = timeline_queue(loader->reader, raw->a[0], raw->start),
                           .submission = raw->a[1]};
    if (made.id && map_get(&loader->works, work_key(&made), &on)) need.on = on + 1;
    if (!need.on) KEEL_TRY(name_find(loader, raw->name, &need.name));
    return model_need(loader->model, need);
}

static keel_status_t record_add(loader_t *loader, const reader_record_t *record)
{
    trace_kind_t kind = (trace_kind_t)record->raw->kind;
    switch (kind) {
    case TRACE_SUBMIT: return add_submit(loader, record);
    case TRACE_CALL: return add_call(loader, record);
    case TRACE_NODE: node_keep(loader, record); return NULL;
    case TRACE_WAIT: return add_wait(loader, record);
    case TRACE_OP: return add_op(loader, record);
    case TRACE_GPU: return add_gpu(loader, record);
    case TRACE_SPAN: return add_own(loader, record, EVENT_SPAN);
    case TRACE_MARK: return add_own(loader, record, EVENT_MARK);
    case TRACE_COUNT: return add_own(loader, record, EVENT_COUNT);
    case TRACE_LAUNCHES: return add_own(loader, record, EVENT_LAUNCHES);
    case TRACE_NEED: return add_need(loader, record);
    default: return work_learn(loader, record, kind);
    }
}

static void record_see(void *user, const reader_record_t *record)
{
    loader_t *loader = user;
    if (!loader->status) loader->status = record_add(loader, record);
}

// Two libraries in one process write a file each.
static keel_status_t process_join(loader_t *loader, process_t process)
{
    model_t *model = loader->model;
    for (uint32_t i = loader->first; i < model->process_count; i++) {
        process_t *known = &model->processes[i];
        if (known->pid != process.pid || known->boot != process.boot) continue;
        // Another command is that of an exec, at which a file ends without a word.
        known->ended = process.ended && (known->ended || known->command != process.command);
        known->command = process.command;
        known->lost += process.lost;
        known->damaged += process.damaged;
        loader->process = i;
        return NULL;
    }
    return model_process(model, process, &loader->process);
}

static keel_status_t process_add(loader_t *loader)
{
    const reader_t *reader = loader->reader;
    const trace_header_t *header = reader->header;
    process_t process = {.pid = header->pid,
                         .parent = header->parent,
                         .ended = reader->ended,
                         .lost = header->lost,
                         .damaged = reader->unknown};
    const struct {
        const char *text;
        size_t size;
        uint32_t *into;
    } texts[] = {{header->command, sizeof header->command, &process.command},
                 {header->rank, sizeof header->rank, &process.rank},
                 {header->boot, sizeof header->boot, &process.boot}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[sizeof header->command];
        snprintf(text, sizeof text, "%.*s", (int)texts[i].size - 1, texts[i].text);
        KEEL_TRY(model_text(loader->model, text, texts[i].into));
    }
    if (reader->clocks.count) {
        const trace_record_t *clocks = reader->clocks.records[0];
        process.real_ns = (int64_t)(clocks->a[2] - clocks->a[0]);
    }
    return process_join(loader, process);
}

static keel_status_t file_load(loader_t *loader)
{
    static const uint32_t first = 1u << TRACE_SUBMIT | 1u << TRACE_CALL;
    static const uint32_t none = (1u << TRACE_SUBMIT) - 1; // that speak of other records
    loader->names = mem_zalloc(NAMES * sizeof *loader->names);
    if (!loader->names) return status_no_memory();
    KEEL_TRY(process_add(loader));
    reader_each(loader->reader, first, record_see, loader);
    reader_each(loader->reader, ~(first | none), record_see, loader);
    keel_status_t status = loader->status;
    loader->status = NULL;
    return status ? status : usage_count(&loader->usage, loader->model, "hip: memory");
}

// By how much the operations of a device are to be moved so that none begins before the call that
// made it. Its clock is known but to some microseconds.
static uint64_t clock_lag(const model_t *model, uint32_t device, uint32_t first)
{
    uint64_t by_ns = 0;
    for (uint32_t i = first; i < model->event_count; i++) {
        const event_t *event = &model->events[i];
        if (event->kind != EVENT_OP || model->tracks[event->track].device != device) continue;
        uint64_t called = event->link ? model->events[event->link - 1].start_ns : 0;
        if (called > event->start_ns + by_ns) by_ns = called - event->start_ns;
    }
    return by_ns;
}

static void clock_align(model_t *model, uint32_t device, uint32_t event, uint32_t work)
{
    uint64_t by_ns = clock_lag(model, device, event);
    for (; by_ns && event < model->event_count; event++) {
        event_t *moved = &model->events[event];
        if (moved->kind != EVENT_OP || model->tracks[moved->track].device != device) continue;
        event_move(moved, by_ns);
    }
    for (; by_ns && work < model->work_count; work++)
        if (model->works[work].begin_ns && model->tracks[model->works[work].track].device == device)
            model->works[work].begin_ns += by_ns;
}

static keel_status_t set_note(model_t *model, const set_t *set)
{
    if (!set->left_out) return NULL;
    return model_leave_out(model, set->left_out, keel_status_message(set->why));
}

keel_status_t load_set(model_t *model, const set_t *set)
{
    keel_status_t status = NULL;
    uint32_t first = model->process_count, device = model->device_count;
    uint32_t event = model->event_count, work = model->work_count;
    for (size_t i = 0; !status && i < set->count; i++) {
        loader_t loader = {.model = model, .reader = &set->readers[i], .first = first};
        status = file_load(&loader);
        mem_free(loader.names);
        map_finish(&loader.calls);
        map_finish(&loader.works);
        map_finish(&loader.streams);
        usage_finish(&loader.usage);
    }
    if (!status) status = set_note(model, set);
    for (uint32_t i = device; i < model->device_count; i++)
        if (model->devices[i].own_clock) clock_align(model, i, event, work);
    return status;
}

// A folder of a trace without records has its control.
static keel_status_t folder_check(const set_t *set, const char *path)
{
    char control[4096 + 16];
    if (set->count || set->alive || set->left_out) return NULL;
    snprintf(control, sizeof control, "%s/control", path);
    if (access(control, F_OK) == 0) return NULL;
    return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "%s is no trace: no file of one is in that folder",
                      path);
}

static keel_status_t parts_load(model_t *model, const char *path)
{
    set_t set;
    keel_status_t status = set_open(&set, path);
    if (!status) status = folder_check(&set, path);
    if (!status) status = load_set(model, &set);
    set_close(&set);
    return status;
}

keel_status_t load_path(model_t *model, const char *path)
{
    struct stat about;
    char parts[4096];
    if (stat(path, &about) != 0 && errno == ENOENT) {
        snprintf(parts, sizeof parts, "%s.parts", path);
        if (stat(parts, &about) == 0) path = parts;
    }
    return rocpd_is(path) ? rocpd_read(model, path) : parts_load(model, path);
}
