// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "tracer/db.h"
#include "tracer/replace.h"
#include "tracer/rocpd.h"

_Static_assert(ROCPD_PID_STRIDE == 10000000, "as its text says");
#define ROCPD_PID_STRIDE_TEXT "10000000"

// Texts that rows are given besides those of the trace.
typedef enum word_t {
    WORD_NONE,
    WORD_KERNEL,
    WORD_HOST,
    WORD_OTHER,
    WORD_WAIT,
    WORD_MARKER,
    WORD_RANGE,
    WORD_MARK,
    WORD_PROCESS,
    WORD_COPY, // and one for each trace_copy_t
    WORDS = WORD_COPY + TRACE_COPIES,
} word_t;
static const char *const words[WORDS] = {"",           "KernelExecution", "HostCall", "Operation",
                                         "Wait",       "UserMarker",      "range",    "mark",
                                         ROCPD_PROCESS};

// Tables with a row or so for each event, which a tree writes.
typedef enum large_t {
    LARGE_API,
    LARGE_OP,
    LARGE_LINK,
    LARGE_DETAIL,
    LARGE_KERNEL,
    LARGES
} large_t;
static const struct {
    const char *name;
    int columns;
} larges[LARGES] = {{"rocpd_api", 9},
                    {"rocpd_op", 8},
                    {"rocpd_api_ops", 3},
                    {"keel_op", 6},
                    {"rocpd_kernelapi", 11}};

typedef struct writer_t {
    const model_t *model;
    db_t db;
    tree_t tree;
    uint32_t roots[LARGES]; // pages
} writer_t;

// Numbers of strings in the database: first the trace's own, as they are, then the words.
static int64_t word_id(const writer_t *writer, uint32_t word)
{
    return (int64_t)writer->model->strings.count + 1 + word;
}

static int64_t text_id(const writer_t *writer, uint32_t text)
{
    return text ? (int64_t)text : word_id(writer, WORD_NONE);
}

static const char *word_text(uint32_t word)
{
    event_t copy = {.kind = EVENT_OP, .op = TRACE_OP_COPY, .copy = (uint8_t)(word - WORD_COPY)};
    return word < WORD_COPY ? words[word] : model_name(NULL, &copy);
}

// Both tables have the same strings, so that no consumer misses one.
static keel_status_t write_strings(writer_t *writer, db_rows_t *rows, const char *into)
{
    const strings_t *strings = &writer->model->strings;
    KEEL_TRY(db_rows_begin(rows, &writer->db, into, 2));
    for (uint32_t i = 1; i <= strings->count; i++) {
        db_int(rows, i);
        db_text(rows, strings_text(strings, i));
    }
    for (uint32_t i = 0; i < WORDS; i++) {
        db_int(rows, word_id(writer, i));
        db_text(rows, word_text(i));
    }
    return db_rows_end(rows);
}

static keel_status_t write_metadata(writer_t *writer, db_rows_t *rows)
{
    const model_t *model = writer->model;
    char left_out[32];
    snprintf(left_out, sizeof left_out, "%llu", (unsigned long long)model->left_out);
    const struct {
        const char *tag, *value;
    } tags[] = {
        {"schema_version", "3"},
        {"gpu_stride", "1000"},
        {"pid_stride", ROCPD_PID_STRIDE_TEXT},
        {"writer", "keel trace"},
        {"trace_complete", model_is_incomplete(model) ? "0" : "1"},
        {"keel_left_out", left_out}, // files
        {"keel_left_why", model_string(model, model->left_why)},
    };
    size_t count = sizeof tags / sizeof *tags - (model->left_out ? 0 : 2);
    KEEL_TRY(db_rows_begin(rows, &writer->db, "INTO rocpd_metadata", 3));
    for (size_t i = 0; i < count; i++) {
        db_int(rows, (int64_t)i + 1);
        db_text(rows, tags[i].tag);
        db_text(rows, tags[i].value);
    }
    return db_rows_end(rows);
}

static void api_row(const writer_t *writer, db_rows_t *rows, uint32_t index)
{
    const event_t *event = &writer->model->events[index];
    const track_t *track = &writer->model->tracks[event->track];
    bool is_call = event->kind == EVENT_CALL;
    word_t of_marker = event->kind == EVENT_MARK ? WORD_MARK : WORD_RANGE;
    db_int(rows, (int64_t)index + 1);
    db_int(rows, rocpd_pid(&writer->model->processes[track->process]));
    db_int(rows, (int64_t)track->number);
    db_int(rows, (int64_t)event->start_ns);
    db_int(rows, (int64_t)event->end_ns);
    db_int(rows, is_call ? text_id(writer, event->name) : word_id(writer, WORD_MARKER));
    db_int(rows, word_id(writer, is_call ? WORD_NONE : of_marker));
    db_int(rows, text_id(writer, event->domain));
    db_int(rows, text_id(writer, is_call ? event->args : event->name));
}

// Tools for the format want a call. A trace of none has a row for each process.
static void process_row(const writer_t *writer, db_rows_t *rows, uint32_t index)
{
    const process_t *process = &writer->model->processes[index];
    range_t range = model_range(writer->model);
    db_int(rows, (int64_t)index + 1);
    db_int(rows, rocpd_pid(process));
    db_int(rows, process->pid);
    db_int(rows, (int64_t)range.first_ns);
    db_int(rows, (int64_t)range.last_ns);
    db_int(rows, word_id(writer, WORD_PROCESS));
    for (int i = 0; i < 3; i++) db_int(rows, word_id(writer, WORD_NONE));
}

static uint32_t op_word(const event_t *event)
{
    switch ((trace_op_t)event->op) {
    case TRACE_OP_DISPATCH: return WORD_KERNEL;
    case TRACE_OP_HOST: return WORD_HOST;
    case TRACE_OP_WAIT: return WORD_WAIT;
    case TRACE_OP_COPY: return WORD_COPY + event->copy;
    default: return WORD_OTHER;
    }
}

static void op_row(const writer_t *writer, db_rows_t *rows, uint32_t index)
{
    const event_t *event = &writer->model->events[index];
    const track_t *track = &writer->model->tracks[event->track];
    db_int(rows, (int64_t)index + 1);
    db_int(rows, track->device);
    db_int(rows, event->track);
    db_int(rows, event->later);
    db_int(rows, (int64_t)event->start_ns);
    db_int(rows, (int64_t)event->end_ns);
    db_int(rows, text_id(writer, event->name));
    db_int(rows, word_id(writer, op_word(event)));
}

static void link_row(const writer_t *writer, db_rows_t *rows, uint32_t index)
{
    const event_t *event = &writer->model->events[index];
    if (!event->link) return;
    db_int(rows, (int64_t)index + 1);
    db_int(rows, event->link);
    db_int(rows, (int64_t)index + 1);
}

static void detail_row(const writer_t *writer, db_rows_t *rows, uint32_t index)
{
    const event_t *event = &writer->model->events[index];
    bool shaped = event->op == TRACE_OP_DISPATCH;
    if (!event->value && !event->copy && !event->args) return;
    db_int(rows, (int64_t)index + 1);
    db_int(rows, event->op);
    db_int(rows, shaped ? (int64_t)event->value : 0);
    db_int(rows, shaped ? 0 : (int64_t)event->value);
    db_int(rows, event->copy);
    db_int(rows, text_id(writer, event->args));
}

static void kernel_row(const writer_t *writer, db_rows_t *rows, const event_t *event)
{
    const model_t *model = writer->model;
    trace_shape_t shape = event->value ? model->shapes[event->value] : (trace_shape_t){0};
    db_int(rows, event->link);
    db_text(rows, model_string(model, model->tracks[event->track].name));
    for (int i = 0; i < 3; i++) db_int(rows, shape.grid[i]);
    db_int(rows, shape.group_x);
    db_int(rows, shape.group_y);
    db_int(rows, shape.group_z);
    db_int(rows, shape.group_bytes);
    db_int(rows, 0);
    db_int(rows, text_id(writer, event->name));
}

// A call that made several operations of one sort has the first of them in rocpd_kernelapi and
// rocpd_copyapi.
static void copy_row(const writer_t *writer, db_rows_t *rows, const event_t *event)
{
    // As hipMemcpyKind: host to host, to device, to host, device to device.
    static const int8_t kinds[TRACE_COPIES] = {4, 1, 2, 3, 3, 0, 4};
    const model_t *model = writer->model;
    int64_t device = model->tracks[event->track].device;
    db_int(rows, event->link);
    db_text(rows, model_string(model, model->tracks[event->track].name));
    db_int(rows, (int64_t)event->value);
    db_int(rows, 0);
    db_int(rows, 0);
    db_int(rows, kinds[event->copy]);
    db_text(rows, "");
    db_text(rows, "");
    db_int(rows, device);
    db_int(rows, device);
    db_int(rows, 0);
    db_int(rows, 0);
}

static keel_status_t write_copies(writer_t *writer, db_rows_t *rows)
{
    const model_t *model = writer->model;
    KEEL_TRY(db_rows_begin(rows, &writer->db, "OR IGNORE INTO rocpd_copyapi", 12));
    for (uint32_t i = 0; i < model->event_count; i++) {
        const event_t *event = &model->events[i];
        if (event->kind == EVENT_OP && event->op == TRACE_OP_COPY && event->link && !event->later)
            copy_row(writer, rows, event);
    }
    return db_rows_end(rows);
}

// A row for each value of a counter, which holds until the next one.
static keel_status_t write_counters(writer_t *writer, db_rows_t *rows, char (*texts)[32])
{
    const model_t *model = writer->model;
    KEEL_TRY(db_rows_begin(rows, &writer->db, "INTO rocpd_monitor", 7));
    uint32_t at = 0;
    for (uint32_t i = 0; i < model->event_count; i++) {
        const event_t *event = &model->events[i];
        if (event->kind != EVENT_COUNT) continue;
        double value;
        memcpy(&value, &event->value, sizeof value);
        char *text = texts[at++ % DB_ROWS]; // as many as wait to be added
        snprintf(text, sizeof *texts, "%.17g", value);
        db_int(rows, (int64_t)i + 1);
        db_text(rows, "keel");
        db_int(rows, event->track);
        db_text(rows, model_string(model, event->name));
        db_int(rows, (int64_t)event->start_ns);
        db_int(rows, (int64_t)event->end_ns);
        db_text(rows, text);
    }
    return db_rows_end(rows);
}

// `first` is when the thread began to count.
static keel_status_t write_launches(writer_t *writer, db_rows_t *rows)
{
    const model_t *model = writer->model;
    KEEL_TRY(db_rows_begin(rows, &writer->db, "INTO keel_launches", 5));
    for (uint32_t i = 0; i < model->event_count; i++) {
        const event_t *event = &model->events[i];
        if (event->kind != EVENT_LAUNCHES) continue;
        db_int(rows, (int64_t)i + 1);
        db_int(rows, event->track);
        db_text(rows, model_string(model, event->name));
        db_int(rows, (int64_t)event->start_ns);
        db_int(rows, (int64_t)event->value);
    }
    return db_rows_end(rows);
}

static keel_status_t write_processes(writer_t *writer, db_rows_t *rows)
{
    const model_t *model = writer->model;
    KEEL_TRY(db_rows_begin(rows, &writer->db, "INTO keel_process", 11));
    for (uint32_t i = 0; i < model->process_count; i++) {
        const process_t *process = &model->processes[i];
        db_int(rows, i);
        db_int(rows, process->pid);
        db_int(rows, process->parent);
        db_text(rows, model_string(model, process->command));
        db_text(rows, model_string(model, process->rank));
        db_text(rows, model_string(model, process->boot));
        db_int(rows, process->ended);
        db_int(rows, (int64_t)process->lost);
        db_int(rows, (int64_t)process->damaged);
        db_int(rows, process->real_ns);
        db_int(rows, process->node);
    }
    return db_rows_end(rows);
}

static keel_status_t write_devices(writer_t *writer, db_rows_t *rows)
{
    const model_t *model = writer->model;
    KEEL_TRY(db_rows_begin(rows, &writer->db, "INTO keel_device", 3));
    for (uint32_t i = 0; i < model->device_count; i++) {
        db_int(rows, i);
        db_int(rows, model->devices[i].process);
        db_text(rows, model_string(model, model->devices[i].name));
    }
    KEEL_TRY(db_rows_end(rows));
    KEEL_TRY(db_rows_begin(rows, &writer->db, "INTO keel_track", 6));
    for (uint32_t i = 0; i < model->track_count; i++) {
        const track_t *track = &model->tracks[i];
        db_int(rows, i);
        db_int(rows, track->is_queue);
        db_int(rows, track->process);
        db_int(rows, track->device);
        db_text(rows, model_string(model, track->name));
        db_int(rows, (int64_t)track->number);
    }
    return db_rows_end(rows);
}

static keel_status_t write_shapes(writer_t *writer, db_rows_t *rows)
{
    const model_t *model = writer->model;
    KEEL_TRY(db_rows_begin(rows, &writer->db, "INTO keel_shape", 8));
    for (uint32_t i = 1; i < model->shape_count; i++) {
        const trace_shape_t *shape = &model->shapes[i];
        db_int(rows, i);
        for (int k = 0; k < 3; k++) db_int(rows, shape->grid[k]);
        db_int(rows, shape->group_x);
        db_int(rows, shape->group_y);
        db_int(rows, shape->group_z);
        db_int(rows, shape->group_bytes);
    }
    return db_rows_end(rows);
}

static keel_status_t write_submissions(writer_t *writer, db_rows_t *rows)
{
    const model_t *model = writer->model;
    KEEL_TRY(db_rows_begin(rows, &writer->db, "INTO keel_submission", 12));
    for (uint32_t i = 0; i < model->work_count; i++) {
        const work_t *work = &model->works[i];
        const uint64_t numbers[] = {
            work->track,    work->call,    work->number,    work->commands,
            work->waits,    work->signals, work->submit_ns, work->ready_ns,
            work->begin_ns, work->end_ns,  work->status,
        };
        db_int(rows, i);
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            db_int(rows, (int64_t)numbers[k]);
    }
    return db_rows_end(rows);
}

// `on_id` is the submission whose end is waited for; -1: none that is known.
static keel_status_t write_waits(writer_t *writer, db_rows_t *rows)
{
    const model_t *model = writer->model;
    KEEL_TRY(db_rows_begin(rows, &writer->db, "INTO keel_wait", 5));
    for (uint32_t i = 0; i < model->need_count; i++) {
        const need_t *need = &model->needs[i];
        db_int(rows, i);
        db_int(rows, need->work);
        db_int(rows, (int64_t)need->on - 1);
        db_text(rows, model_string(model, need->name));
        db_int(rows, (int64_t)need->value);
    }
    return db_rows_end(rows);
}

static keel_status_t write_tables(writer_t *writer)
{
    db_rows_t rows;
    char texts[DB_ROWS][32];
    KEEL_TRY(db_run(&writer->db, rocpd_tables));
    KEEL_TRY(write_metadata(writer, &rows));
    KEEL_TRY(write_strings(writer, &rows, "INTO rocpd_string"));
    KEEL_TRY(write_strings(writer, &rows, "INTO rocpd_ustring"));
    KEEL_TRY(write_processes(writer, &rows));
    KEEL_TRY(write_devices(writer, &rows));
    KEEL_TRY(write_shapes(writer, &rows));
    KEEL_TRY(write_copies(writer, &rows));
    KEEL_TRY(write_counters(writer, &rows, texts));
    KEEL_TRY(write_launches(writer, &rows));
    KEEL_TRY(write_submissions(writer, &rows));
    KEEL_TRY(write_waits(writer, &rows));
    KEEL_TRY(db_run(&writer->db, rocpd_views));
    return db_run(&writer->db, "COMMIT");
}

static keel_status_t root_read(void *user, db_row_t row)
{
    writer_t *writer = user;
    for (int i = 0; i < LARGES; i++)
        if (strcmp(larges[i].name, row_text(row, 0)) == 0)
            writer->roots[i] = (uint32_t)row_int(row, 1);
    return NULL;
}

static void large_begin(writer_t *writer, db_rows_t *rows, large_t large)
{
    db_rows_by_tree(rows, &writer->tree, writer->roots[large], larges[large].columns);
}

// Rows of events of one kind, or of calls, and spans and marks as user markers.
typedef void (*row_fn)(const writer_t *writer, db_rows_t *rows, uint32_t index);
static void write_large(writer_t *writer, db_rows_t *rows, large_t large, row_fn row)
{
    const model_t *model = writer->model;
    bool none = true;
    large_begin(writer, rows, large);
    for (uint32_t i = 0; i < model->event_count; i++) {
        uint8_t kind = model->events[i].kind;
        bool host = kind == EVENT_CALL || kind == EVENT_SPAN || kind == EVENT_MARK;
        if (large == LARGE_API ? !host : kind != EVENT_OP) continue;
        row(writer, rows, i);
        none = false;
    }
    if (large == LARGE_API && none)
        for (uint32_t i = 0; i < model->process_count; i++) process_row(writer, rows, i);
    tree_end(&writer->tree);
}

// In the order of calls, not of kernels.
static keel_status_t write_kernels(writer_t *writer, db_rows_t *rows)
{
    const model_t *model = writer->model;
    uint32_t *first = mem_zalloc((model->event_count + (size_t)1) * sizeof *first); // of each call
    if (!first) return status_no_memory();
    for (uint32_t i = model->event_count; i-- > 0;) {
        const event_t *event = &model->events[i];
        if (event->kind == EVENT_OP && event->op == TRACE_OP_DISPATCH && !event->later)
            first[event->link] = i + 1;
    }
    large_begin(writer, rows, LARGE_KERNEL);
    for (uint32_t i = 1; i <= model->event_count; i++)
        if (first[i]) kernel_row(writer, rows, &model->events[first[i] - 1]);
    tree_end(&writer->tree);
    mem_free(first);
    return NULL;
}

// After SQLite has closed the file. A table at a time: its pages then lie together.
static keel_status_t write_larges(writer_t *writer, const char *path)
{
    db_rows_t rows = {0};
    keel_status_t status = tree_open(&writer->tree, path);
    if (!status) {
        write_large(writer, &rows, LARGE_API, api_row);
        write_large(writer, &rows, LARGE_OP, op_row);
        write_large(writer, &rows, LARGE_LINK, link_row);
        write_large(writer, &rows, LARGE_DETAIL, detail_row);
        status = write_kernels(writer, &rows);
    }
    keel_status_t closed = tree_close(&writer->tree);
    if (!status) return closed;
    keel_status_release(closed);
    return status;
}

keel_status_t rocpd_write(const model_t *model, const char *path)
{
    writer_t writer = {.model = model};
    char making[REPLACE_NAME];
    KEEL_TRY(replace_begin(path, making));
    keel_status_t status = db_create(&writer.db, making);
    if (!status) status = write_tables(&writer);
    if (!status)
        status =
            db_query(&writer.db, "SELECT name, rootpage FROM sqlite_master", root_read, &writer);
    db_close(&writer.db);
    if (!status) status = write_larges(&writer, making);
    return replace_end(status, making, path);
}
