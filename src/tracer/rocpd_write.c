// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "tracer/db.h"
#include "tracer/rocpd.h"

// Busy is the union of the intervals in which operations ran, so that it is never above 1.
static const char schema[] =
    "CREATE TABLE rocpd_metadata(id INTEGER PRIMARY KEY, tag TEXT NOT NULL, value TEXT NOT NULL);"
    "CREATE TABLE rocpd_string(id INTEGER PRIMARY KEY, string TEXT NOT NULL);"
    "CREATE TABLE rocpd_ustring(id INTEGER PRIMARY KEY, string TEXT NOT NULL);"
    "CREATE TABLE rocpd_api(id INTEGER PRIMARY KEY, pid INTEGER NOT NULL, tid INTEGER NOT NULL,"
    " start INTEGER NOT NULL, end INTEGER NOT NULL, apiName_id INTEGER NOT NULL,"
    " category_id INTEGER NOT NULL, domain_id INTEGER NOT NULL, args_id INTEGER NOT NULL);"
    "CREATE TABLE rocpd_op(id INTEGER PRIMARY KEY, gpuId INTEGER NOT NULL,"
    " queueId INTEGER NOT NULL, sequenceId INTEGER NOT NULL, start INTEGER NOT NULL,"
    " end INTEGER NOT NULL, description_id INTEGER NOT NULL, opType_id INTEGER NOT NULL);"
    "CREATE TABLE rocpd_api_ops(id INTEGER PRIMARY KEY, api_id INTEGER NOT NULL,"
    " op_id INTEGER NOT NULL);"
    "CREATE TABLE rocpd_kernelapi(api_ptr_id INTEGER PRIMARY KEY, stream TEXT NOT NULL,"
    " gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL,"
    " workgroupX INTEGER NOT NULL, workgroupY INTEGER NOT NULL, workgroupZ INTEGER NOT NULL,"
    " groupSegmentSize INTEGER NOT NULL, privateSegmentSize INTEGER NOT NULL,"
    " kernelName_id INTEGER NOT NULL);"
    "CREATE TABLE rocpd_copyapi(api_ptr_id INTEGER PRIMARY KEY, stream TEXT NOT NULL,"
    " size INTEGER NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL,"
    " kind INTEGER NOT NULL, dst TEXT NOT NULL, src TEXT NOT NULL, dstDevice INTEGER NOT NULL,"
    " srcDevice INTEGER NOT NULL, sync INTEGER NOT NULL, pinned INTEGER NOT NULL);"
    "CREATE TABLE rocpd_monitor(id INTEGER PRIMARY KEY, deviceType TEXT NOT NULL,"
    " deviceId INTEGER NOT NULL, monitorType TEXT NOT NULL, start INTEGER NOT NULL,"
    " end INTEGER NOT NULL, value TEXT NOT NULL);"
    "CREATE TABLE rocpd_counter(id INTEGER PRIMARY KEY, value REAL NOT NULL,"
    " op_id INTEGER NOT NULL, name_id INTEGER NOT NULL);"
    "CREATE TABLE rocpd_stackframe(id INTEGER PRIMARY KEY, api_ptr_id INTEGER NOT NULL,"
    " depth INTEGER NOT NULL, name_id INTEGER NOT NULL);"
    "CREATE TABLE keel_process(id INTEGER PRIMARY KEY, pid INTEGER, parent INTEGER, command TEXT,"
    " rank TEXT, boot TEXT, ended INTEGER, lost INTEGER, damaged INTEGER, real_ns INTEGER,"
    " node INTEGER);"
    "CREATE TABLE keel_device(id INTEGER PRIMARY KEY, process_id INTEGER, name TEXT);"
    "CREATE TABLE keel_track(id INTEGER PRIMARY KEY, is_queue INTEGER, process_id INTEGER,"
    " device_id INTEGER, name TEXT, number INTEGER);"
    "CREATE TABLE keel_shape(id INTEGER PRIMARY KEY, gridX INTEGER, gridY INTEGER, gridZ INTEGER,"
    " workgroupX INTEGER, workgroupY INTEGER, workgroupZ INTEGER, groupSegmentSize INTEGER);"
    "CREATE TABLE keel_op(op_id INTEGER PRIMARY KEY, kind INTEGER, shape_id INTEGER,"
    " bytes INTEGER, copy INTEGER, args_id INTEGER);"
    "CREATE TABLE keel_submission(id INTEGER PRIMARY KEY, track_id INTEGER, api_id INTEGER,"
    " number INTEGER, commands INTEGER, waits INTEGER, signals INTEGER, submit INTEGER,"
    " ready INTEGER, begin INTEGER, end INTEGER, status INTEGER);"
    "CREATE TABLE keel_wait(id INTEGER PRIMARY KEY, submission_id INTEGER, on_id INTEGER,"
    " semaphore TEXT, value INTEGER);";

static const char views[] =
    "CREATE VIEW api AS SELECT rocpd_api.id, pid, tid, start, end, A.string AS apiName,"
    " B.string AS args FROM rocpd_api JOIN rocpd_string A ON A.id = apiName_id"
    " JOIN rocpd_ustring B ON B.id = args_id;"
    "CREATE VIEW op AS SELECT rocpd_op.id, gpuId, queueId, sequenceId, start, end,"
    " A.string AS description, B.string AS opType FROM rocpd_op"
    " JOIN rocpd_string A ON A.id = description_id JOIN rocpd_string B ON B.id = opType_id;"
    "CREATE VIEW busy AS WITH"
    " seen AS (SELECT gpuId, start, end, max(end) OVER (PARTITION BY gpuId ORDER BY start, id"
    " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS until FROM rocpd_op"
    " WHERE opType_id NOT IN (SELECT id FROM rocpd_string WHERE string = 'Wait')),"
    " sums AS (SELECT gpuId, sum(max(0, end - max(start, coalesce(until, start)))) AS GpuTime"
    " FROM seen GROUP BY gpuId),"
    " wall AS (SELECT max(end) - min(start) AS WallTime FROM"
    " (SELECT start, end FROM rocpd_op UNION ALL SELECT start, end FROM rocpd_api))"
    " SELECT gpuId, GpuTime, WallTime, GpuTime * 1.0 / WallTime AS Busy FROM sums, wall;"
    "CREATE VIEW top AS WITH"
    " named AS (SELECT CASE WHEN A.string <> '' THEN A.string ELSE B.string END AS Name,"
    " sequenceId = 0 AS first, end - start AS took FROM rocpd_op"
    " JOIN rocpd_string A ON A.id = description_id JOIN rocpd_string B ON B.id = opType_id)"
    " SELECT Name, sum(first) AS TotalCalls, sum(took) / 1000 AS TotalDuration_us,"
    " sum(took) / max(1, sum(first)) / 1000 AS Ave_us,"
    " sum(took) * 100.0 / (SELECT sum(end - start) FROM rocpd_op) AS Percentage"
    " FROM named GROUP BY Name ORDER BY sum(took) DESC;"
    "CREATE VIEW kernel AS SELECT O.id, gpuId, queueId, sequenceId, start, end,"
    " (end - start) AS duration, T.name AS stream, coalesce(S.gridX, 0) AS gridX,"
    " coalesce(S.gridY, 0) AS gridY, coalesce(S.gridZ, 0) AS gridZ,"
    " coalesce(S.workgroupX, 0) AS workgroupX, coalesce(S.workgroupY, 0) AS workgroupY,"
    " coalesce(S.workgroupZ, 0) AS workgroupZ, coalesce(S.groupSegmentSize, 0)"
    " AS groupSegmentSize, 0 AS privateSegmentSize, D.string AS kernelName FROM rocpd_op O"
    " JOIN rocpd_string D ON D.id = description_id JOIN keel_track T ON T.id = queueId"
    " LEFT JOIN keel_op K ON K.op_id = O.id LEFT JOIN keel_shape S ON S.id = K.shape_id"
    " WHERE opType_id IN (SELECT id FROM rocpd_string WHERE string = 'KernelExecution');"
    "CREATE VIEW copy AS SELECT B.id, pid, tid, start, end, C.string AS apiName, stream, size,"
    " width, height, kind, dst, src, dstDevice, srcDevice, sync, pinned FROM rocpd_copyapi A"
    " JOIN rocpd_api B ON B.id = A.api_ptr_id JOIN rocpd_string C ON C.id = B.apiName_id;"
    "CREATE VIEW copyop AS SELECT O.id, gpuId, queueId, sequenceId, start, end,"
    " (end - start) AS duration, T.name AS stream, coalesce(K.bytes, 0) AS size,"
    " Y.string AS opType FROM rocpd_op O JOIN rocpd_string Y ON Y.id = opType_id"
    " JOIN keel_track T ON T.id = queueId LEFT JOIN keel_op K ON K.op_id = O.id"
    " WHERE Y.string LIKE 'Copy%' OR Y.string = 'FillBuffer';";

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
    WORD_COPY, // and one for each trace_copy_t
    WORDS = WORD_COPY + TRACE_COPIES,
} word_t;
static const char *const words[WORDS] = {"",     "KernelExecution", "HostCall", "Operation",
                                         "Wait", "UserMarker"};

typedef struct writer_t {
    const model_t *model;
    db_t db;
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
    const struct {
        const char *tag, *value;
    } tags[] = {
        {"schema_version", "3"},
        {"gpu_stride", "1000"},
        {"pid_stride", ROCPD_PID_STRIDE_TEXT},
        {"writer", "keel trace"},
        {"trace_complete", model_is_incomplete(writer->model) ? "0" : "1"},
    };
    KEEL_TRY(db_rows_begin(rows, &writer->db, "INTO rocpd_metadata", 3));
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
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
    db_int(rows, (int64_t)index + 1);
    db_int(rows, rocpd_pid(&writer->model->processes[track->process]));
    db_int(rows, (int64_t)track->number);
    db_int(rows, (int64_t)event->start_ns);
    db_int(rows, (int64_t)event->end_ns);
    db_int(rows, is_call ? text_id(writer, event->name) : word_id(writer, WORD_MARKER));
    db_int(rows, word_id(writer, WORD_NONE));
    db_int(rows, text_id(writer, event->domain));
    db_int(rows, text_id(writer, is_call ? event->args : event->name));
}

// Calls; and spans and marks as user markers.
static keel_status_t write_api(writer_t *writer, db_rows_t *rows)
{
    KEEL_TRY(db_rows_begin(rows, &writer->db, "INTO rocpd_api", 9));
    for (uint32_t i = 0; i < writer->model->event_count; i++) {
        uint8_t kind = writer->model->events[i].kind;
        if (kind == EVENT_CALL || kind == EVENT_SPAN || kind == EVENT_MARK)
            api_row(writer, rows, i);
    }
    return db_rows_end(rows);
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

static void link_row(db_rows_t *rows, const event_t *event, uint32_t index)
{
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

// One pass for each table: rows of a table are then written one after the other.
static keel_status_t write_ops(writer_t *writer, db_rows_t *rows)
{
    const model_t *model = writer->model;
    KEEL_TRY(db_rows_begin(rows, &writer->db, "INTO rocpd_op", 8));
    for (uint32_t i = 0; i < model->event_count; i++)
        if (model->events[i].kind == EVENT_OP) op_row(writer, rows, i);
    KEEL_TRY(db_rows_end(rows));
    KEEL_TRY(db_rows_begin(rows, &writer->db, "INTO rocpd_api_ops", 3));
    for (uint32_t i = 0; i < model->event_count; i++)
        if (model->events[i].kind == EVENT_OP) link_row(rows, &model->events[i], i);
    KEEL_TRY(db_rows_end(rows));
    KEEL_TRY(db_rows_begin(rows, &writer->db, "INTO keel_op", 6));
    for (uint32_t i = 0; i < model->event_count; i++)
        if (model->events[i].kind == EVENT_OP) detail_row(writer, rows, i);
    return db_rows_end(rows);
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

// These tables have one row for a call: the first operation's, if it made several of one sort.
typedef void (*api_row_fn)(const writer_t *writer, db_rows_t *rows, const event_t *event);
static keel_status_t write_calls_of(writer_t *writer, db_rows_t *rows, trace_op_t op,
                                    api_row_fn row)
{
    const model_t *model = writer->model;
    bool kernels = op == TRACE_OP_DISPATCH;
    const char *into = kernels ? "OR IGNORE INTO rocpd_kernelapi" : "OR IGNORE INTO rocpd_copyapi";
    KEEL_TRY(db_rows_begin(rows, &writer->db, into, kernels ? 11 : 12));
    for (uint32_t i = 0; i < model->event_count; i++) {
        const event_t *event = &model->events[i];
        if (event->kind == EVENT_OP && event->op == op && event->link && !event->later)
            row(writer, rows, event);
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
    KEEL_TRY(db_run(&writer->db, schema));
    KEEL_TRY(write_metadata(writer, &rows));
    KEEL_TRY(write_strings(writer, &rows, "INTO rocpd_string"));
    KEEL_TRY(write_strings(writer, &rows, "INTO rocpd_ustring"));
    KEEL_TRY(write_processes(writer, &rows));
    KEEL_TRY(write_devices(writer, &rows));
    KEEL_TRY(write_shapes(writer, &rows));
    KEEL_TRY(write_api(writer, &rows));
    KEEL_TRY(write_ops(writer, &rows));
    KEEL_TRY(write_calls_of(writer, &rows, TRACE_OP_DISPATCH, kernel_row));
    KEEL_TRY(write_calls_of(writer, &rows, TRACE_OP_COPY, copy_row));
    KEEL_TRY(write_counters(writer, &rows, texts));
    KEEL_TRY(write_submissions(writer, &rows));
    KEEL_TRY(write_waits(writer, &rows));
    KEEL_TRY(db_run(&writer->db, views));
    return db_run(&writer->db, "COMMIT");
}

keel_status_t rocpd_write(const model_t *model, const char *path)
{
    writer_t writer = {.model = model};
    char making[4096];
    if ((size_t)snprintf(making, sizeof making, "%s.new", path) >= sizeof making)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "the name is too long: %s", path);
    unlink(making); // of a tool that was killed
    keel_status_t status = db_create(&writer.db, making);
    if (!status) status = write_tables(&writer);
    db_close(&writer.db);
    if (!status && rename(making, path) != 0)
        status = status_from_errno(status_errno_code(errno), errno, path);
    if (status) unlink(making);
    return status;
}
