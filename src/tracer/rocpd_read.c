// SPDX-License-Identifier: Apache-2.0
// Rows of several databases may be read into one model, so ids are those of the database and 0 or
// more.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "tracer/db.h"
#include "tracer/map.h"
#include "tracer/rocpd.h"
#include "tracer/runs.h"

typedef struct importer_t {
    model_t *model;
    db_t db;
    map_t strings, ustrings; // texts by their ids and 1
    map_t processes;         // by their ids and 1
    map_t devices, tracks, shapes;
    map_t threads; // tracks by a mix of pid and tid
    runs_t calls;  // events by their ids
    map_t pids;    // processes by what calls name them
    map_t pid_of;  // and the reverse
    map_t works;
    uint32_t marker, process; // the texts
    uint32_t first;           // process: that of operations that do not tell theirs
} importer_t;

bool rocpd_is(const char *path)
{
    char magic[16] = "";
    FILE *file = fopen(path, "re");
    if (!file) return false;
    size_t got = fread(magic, 1, sizeof magic, file);
    fclose(file);
    return got == sizeof magic && memcmp(magic, "SQLite format 3", sizeof magic) == 0;
}

static uint32_t known(const map_t *map, int64_t id)
{
    uint32_t value;
    return map_get(map, (uint64_t)id + 1, &value) ? value : 0;
}

static keel_status_t string_read(void *user, db_row_t row)
{
    importer_t *in = user;
    uint32_t text;
    KEEL_TRY(model_text(in->model, row_text(row, 1), &text));
    return map_put(&in->strings, (uint64_t)row_int(row, 0) + 1, text);
}

static keel_status_t ustring_read(void *user, db_row_t row)
{
    importer_t *in = user;
    uint32_t text;
    KEEL_TRY(model_text(in->model, row_text(row, 1), &text));
    return map_put(&in->ustrings, (uint64_t)row_int(row, 0) + 1, text);
}

static keel_status_t process_read(void *user, db_row_t row)
{
    importer_t *in = user;
    uint32_t index;
    process_t process = {.pid = (uint32_t)row_int(row, 1),
                         .parent = (uint32_t)row_int(row, 2),
                         .ended = row_int(row, 6) != 0,
                         .lost = (uint64_t)row_int(row, 7),
                         .damaged = (uint64_t)row_int(row, 8),
                         .real_ns = row_int(row, 9)};
    KEEL_TRY(model_text(in->model, row_text(row, 3), &process.command));
    KEEL_TRY(model_text(in->model, row_text(row, 4), &process.rank));
    KEEL_TRY(model_text(in->model, row_text(row, 5), &process.boot));
    KEEL_TRY(model_process(in->model, process, &index));
    process.node = (uint32_t)row_int(row, 10); // that of the database
    KEEL_TRY(map_put(&in->pids, (uint64_t)rocpd_pid(&process) + 1, index));
    KEEL_TRY(map_put(&in->pid_of, (uint64_t)index + 1, (uint32_t)rocpd_pid(&process)));
    return map_put(&in->processes, (uint64_t)row_int(row, 0) + 1, index);
}

static keel_status_t device_read(void *user, db_row_t row)
{
    importer_t *in = user;
    uint32_t index;
    device_t device = {.process = known(&in->processes, row_int(row, 1))};
    KEEL_TRY(model_text(in->model, row_text(row, 2), &device.name));
    KEEL_TRY(model_device(in->model, device, &index));
    return map_put(&in->devices, (uint64_t)row_int(row, 0) + 1, index);
}

// What calls name a process by has less than 32 bits, and so has the number of a thread.
static uint64_t thread_key(uint64_t pid, uint64_t tid)
{
    return (pid << 32 ^ tid) + 1;
}

static keel_status_t track_read(void *user, db_row_t row)
{
    importer_t *in = user;
    uint32_t index;
    track_t track = {.is_queue = row_int(row, 1) != 0,
                     .process = known(&in->processes, row_int(row, 2)),
                     .device = known(&in->devices, row_int(row, 3)),
                     .number = (uint64_t)row_int(row, 5)};
    if (track.process >= in->model->process_count ||
        (track.is_queue && track.device >= in->model->device_count))
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT,
                          "%s is damaged: no process or device of track %lld", in->db.path,
                          (long long)row_int(row, 0));
    KEEL_TRY(model_text(in->model, row_text(row, 4), &track.name));
    KEEL_TRY(model_track(in->model, track, &index));
    KEEL_TRY(map_put(&in->tracks, (uint64_t)row_int(row, 0) + 1, index));
    if (track.is_queue) return NULL;
    return map_put(&in->threads, thread_key(known(&in->pid_of, track.process), track.number),
                   index);
}

static keel_status_t shape_read(void *user, db_row_t row)
{
    importer_t *in = user;
    uint64_t number;
    trace_shape_t shape = {
        .grid = {(uint32_t)row_int(row, 1), (uint32_t)row_int(row, 2), (uint32_t)row_int(row, 3)},
        .group_x = (uint32_t)row_int(row, 4),
        .group_y = (uint16_t)row_int(row, 5),
        .group_z = (uint16_t)row_int(row, 6),
        .group_bytes = (uint32_t)row_int(row, 7)};
    KEEL_TRY(model_shape(in->model, shape, &number));
    return map_put(&in->shapes, (uint64_t)row_int(row, 0) + 1, (uint32_t)number);
}

// A process that only its calls tell of.
static keel_status_t pid_find(importer_t *in, uint64_t pid, uint32_t *index)
{
    if (map_get(&in->pids, pid + 1, index)) return NULL;
    KEEL_TRY(model_process(in->model, (process_t){.pid = (uint32_t)pid, .ended = true}, index));
    return map_put(&in->pids, pid + 1, *index);
}

static keel_status_t thread_find(importer_t *in, uint64_t pid, uint64_t tid, uint32_t *track)
{
    if (map_get(&in->threads, thread_key(pid, tid), track)) return NULL;
    track_t wanted = {.number = tid};
    KEEL_TRY(pid_find(in, pid, &wanted.process));
    KEEL_TRY(model_track(in->model, wanted, track));
    return map_put(&in->threads, thread_key(pid, tid), *track);
}

// A queue that only its operations tell of, with its device.
static keel_status_t queue_find(importer_t *in, int64_t gpu, int64_t queue, uint32_t *track)
{
    char name[64];
    if (map_get(&in->tracks, (uint64_t)queue + 1, track) && in->model->tracks[*track].is_queue)
        return NULL;
    track_t wanted = {.is_queue = true, .number = (uint64_t)queue};
    device_t device = {0};
    snprintf(name, sizeof name, "GPU %lld", (long long)gpu);
    KEEL_TRY(model_text(in->model, name, &device.name));
    device.process = wanted.process = in->first;
    KEEL_TRY(model_device(in->model, device, &wanted.device));
    wanted.number |= (uint64_t)gpu << 32;
    return model_track(in->model, wanted, track);
}

static keel_status_t api_read(void *user, db_row_t row)
{
    importer_t *in = user;
    uint32_t index, name = known(&in->strings, row_int(row, 5));
    event_t event = {.kind = EVENT_CALL,
                     .start_ns = (uint64_t)row_int(row, 3),
                     .end_ns = (uint64_t)row_int(row, 4),
                     .name = name,
                     .domain = known(&in->strings, row_int(row, 6)),
                     .args = known(&in->ustrings, row_int(row, 7))};
    if (name && name == in->process) return NULL; // it stands for calls that there are not
    if (name && name == in->marker) {
        event.kind = event.start_ns == event.end_ns ? EVENT_MARK : EVENT_SPAN;
        event.name = event.args;
        event.args = event.domain = 0;
    }
    KEEL_TRY(thread_find(in, (uint64_t)row_int(row, 1), (uint64_t)row_int(row, 2), &event.track));
    KEEL_TRY(model_event(in->model, event, &index));
    if (index == UINT32_MAX) return NULL;
    return runs_put(&in->calls, row_int(row, 0), index);
}

// What an operation is, of a database whose writer has not said so.
static void op_guess(event_t *event, const char *type)
{
    static const char *const copies[TRACE_COPIES] = {
        "Copy",           "CopyHostToDevice", "CopyDeviceToHost", "CopyDeviceToDevice",
        "CopyPeerToPeer", "CopyHostToHost",   "FillBuffer"};
    if (strcmp(type, "KernelExecution") == 0) event->op = TRACE_OP_DISPATCH;
    if (strcmp(type, "HostCall") == 0) event->op = TRACE_OP_HOST;
    if (strcmp(type, "Wait") == 0) event->op = TRACE_OP_WAIT;
    for (uint8_t i = 0; i < TRACE_COPIES; i++) {
        if (strcmp(type, copies[i]) != 0) continue;
        event->op = TRACE_OP_COPY;
        event->copy = i;
    }
}

// What is told of an operation in other tables: rows in the order of operations.
typedef struct ops_t {
    db_cursor_t ops, links, details;
} ops_t;

// Moves a cursor to the row of an operation, by its first column. False: there is none.
static keel_status_t cursor_reach(db_cursor_t *cursor, int64_t id, bool *found)
{
    while (cursor->more && row_int(cursor->row, 0) < id) KEEL_TRY(db_cursor_next(cursor));
    *found = cursor->more && row_int(cursor->row, 0) == id;
    return NULL;
}

static keel_status_t op_read(importer_t *in, ops_t *ops)
{
    db_row_t row = ops->ops.row;
    event_t event = {.kind = EVENT_OP,
                     .later = row_int(row, 3) != 0,
                     .start_ns = (uint64_t)row_int(row, 4),
                     .end_ns = (uint64_t)row_int(row, 5),
                     .name = known(&in->strings, row_int(row, 6))};
    bool linked, detailed = false;
    uint32_t call, index;
    op_guess(&event, model_string(in->model, known(&in->strings, row_int(row, 7))));
    KEEL_TRY(cursor_reach(&ops->links, row_int(row, 0), &linked));
    if (ops->details.db) KEEL_TRY(cursor_reach(&ops->details, row_int(row, 0), &detailed));
    if (linked && runs_get(&in->calls, row_int(ops->links.row, 1), &call)) event.link = call + 1;
    if (detailed && event.op == TRACE_OP_DISPATCH)
        event.value = known(&in->shapes, row_int(ops->details.row, 1));
    if (detailed && event.op == TRACE_OP_COPY) event.value = (uint64_t)row_int(ops->details.row, 2);
    if (detailed) event.args = known(&in->ustrings, row_int(ops->details.row, 3));
    KEEL_TRY(queue_find(in, row_int(row, 1), row_int(row, 2), &event.track));
    return model_event(in->model, event, &index);
}

// The event that a row tells of by its track, its name and its time.
static keel_status_t counted_read(importer_t *in, db_row_t row, event_t event)
{
    uint32_t index;
    event.start_ns = event.end_ns = (uint64_t)row_int(row, 2);
    KEEL_TRY(model_text(in->model, row_text(row, 1), &event.name));
    event.track = known(&in->tracks, row_int(row, 0));
    if (event.track >= in->model->track_count) return NULL;
    return model_event(in->model, event, &index);
}

static keel_status_t counter_read(void *user, db_row_t row)
{
    event_t event = {.kind = EVENT_COUNT};
    double value = row_real(row, 3);
    memcpy(&event.value, &value, sizeof value);
    return counted_read(user, row, event);
}

static keel_status_t launches_read(void *user, db_row_t row)
{
    return counted_read(user, row,
                        (event_t){.kind = EVENT_LAUNCHES, .value = (uint64_t)row_int(row, 3)});
}

static keel_status_t submission_read(void *user, db_row_t row)
{
    importer_t *in = user;
    uint32_t call, index;
    work_t work = {.track = known(&in->tracks, row_int(row, 0)),
                   .number = (uint64_t)row_int(row, 2),
                   .commands = (uint64_t)row_int(row, 3),
                   .waits = (uint64_t)row_int(row, 4),
                   .signals = (uint64_t)row_int(row, 5),
                   .submit_ns = (uint64_t)row_int(row, 6),
                   .ready_ns = (uint64_t)row_int(row, 7),
                   .begin_ns = (uint64_t)row_int(row, 8),
                   .end_ns = (uint64_t)row_int(row, 9),
                   .status = (uint32_t)row_int(row, 10)};
    if (work.track >= in->model->track_count || !in->model->tracks[work.track].is_queue)
        return NULL;
    if (runs_get(&in->calls, row_int(row, 1), &call)) work.call = call + 1;
    KEEL_TRY(model_work(in->model, work, &index));
    return map_put(&in->works, (uint64_t)row_int(row, 11) + 1, index);
}

static keel_status_t wait_read(void *user, db_row_t row)
{
    importer_t *in = user;
    need_t need = {.value = (uint64_t)row_int(row, 3)};
    uint32_t on;
    if (!map_get(&in->works, (uint64_t)row_int(row, 0) + 1, &need.work)) return NULL;
    if (row_int(row, 1) >= 0 && map_get(&in->works, (uint64_t)row_int(row, 1) + 1, &on))
        need.on = on + 1;
    KEEL_TRY(model_text(in->model, row_text(row, 2), &need.name));
    return model_need(in->model, need);
}

static keel_status_t left_read(void *user, db_row_t row)
{
    importer_t *in = user;
    return model_leave_out(in->model, (uint64_t)row_int(row, 0), row_text(row, 1));
}

static keel_status_t read_own(importer_t *in)
{
    const struct {
        const char *table, *sql;
        db_row_fn fn;
    } tables[] = {
        {"keel_process", "SELECT * FROM keel_process", process_read},
        {"keel_device", "SELECT * FROM keel_device", device_read},
        {"keel_track", "SELECT * FROM keel_track", track_read},
        {"keel_shape", "SELECT * FROM keel_shape", shape_read},
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (db_has(&in->db, tables[i].table))
            KEEL_TRY(db_query(&in->db, tables[i].sql, tables[i].fn, in));
    return NULL;
}

// Older databases have the arguments of calls among their other strings, and no domain.
static keel_status_t read_calls(importer_t *in)
{
    bool is_new = db_has(&in->db, "rocpd_ustring");
    KEEL_TRY(db_query(&in->db, "SELECT id, string FROM rocpd_string", string_read, in));
    KEEL_TRY(db_query(&in->db,
                      is_new ? "SELECT id, string FROM rocpd_ustring"
                             : "SELECT id, string FROM rocpd_string",
                      ustring_read, in));
    KEEL_TRY(model_text(in->model, "UserMarker", &in->marker));
    KEEL_TRY(model_text(in->model, ROCPD_PROCESS, &in->process));
    return db_query(&in->db,
                    is_new ? "SELECT id, pid, tid, start, end, apiName_id, domain_id, args_id FROM "
                             "rocpd_api"
                           : "SELECT id, pid, tid, start, end, apiName_id, -1, args_id FROM "
                             "rocpd_api",
                    api_read, in);
}

// Side by side, which takes a third of the time of a join. Databases of others have links in any
// order, and no sequence that tells of parts.
static keel_status_t ops_open(importer_t *in, ops_t *ops)
{
    bool own = db_has(&in->db, "keel_op");
    KEEL_TRY(db_cursor_open(&ops->ops, &in->db,
                            own ? "SELECT id, gpuId, queueId, sequenceId, start, end, "
                                  "description_id, opType_id FROM rocpd_op ORDER BY id"
                                : "SELECT id, gpuId, queueId, 0, start, end, description_id, "
                                  "opType_id FROM rocpd_op ORDER BY id"));
    KEEL_TRY(db_cursor_open(&ops->links, &in->db,
                            own ? "SELECT op_id, api_id FROM rocpd_api_ops ORDER BY id"
                                : "SELECT op_id, api_id FROM rocpd_api_ops ORDER BY op_id"));
    KEEL_TRY(db_cursor_next(&ops->ops));
    KEEL_TRY(db_cursor_next(&ops->links));
    if (!own) return NULL;
    bool argued = db_has_column(&in->db, "keel_op", "args_id"); // it came later than the others
    KEEL_TRY(
        db_cursor_open(&ops->details, &in->db,
                       argued ? "SELECT op_id, shape_id, bytes, args_id FROM keel_op ORDER BY op_id"
                              : "SELECT op_id, shape_id, bytes, -1 FROM keel_op ORDER BY op_id"));
    return db_cursor_next(&ops->details);
}

static keel_status_t read_ops(importer_t *in)
{
    ops_t ops = {0};
    keel_status_t status = ops_open(in, &ops);
    while (!status && ops.ops.more) {
        status = op_read(in, &ops);
        if (!status) status = db_cursor_next(&ops.ops);
    }
    db_cursor_close(&ops.ops);
    db_cursor_close(&ops.links);
    db_cursor_close(&ops.details);
    return status;
}

static keel_status_t first_read(void *user, db_row_t row)
{
    importer_t *in = user;
    return pid_find(in, (uint64_t)row_int(row, 0), &in->first);
}

static keel_status_t tables_counted(void *user, db_row_t row)
{
    *(int64_t *)user = row_int(row, 0);
    return NULL;
}

static keel_status_t read_all(importer_t *in)
{
    int64_t tables;
    // If the database is damaged, this says so.
    KEEL_TRY(db_query(&in->db, "SELECT count(*) FROM sqlite_master", tables_counted, &tables));
    if (!db_has(&in->db, "rocpd_op") || !db_has(&in->db, "rocpd_api"))
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT,
                          "%s is a database, but no trace: it has no tables rocpd_op and rocpd_api",
                          in->db.path);
    KEEL_TRY(read_own(in));
    KEEL_TRY(db_query(&in->db, "SELECT coalesce(min(pid), 0) FROM rocpd_api", first_read, in));
    KEEL_TRY(read_calls(in));
    KEEL_TRY(read_ops(in));
    if (!db_has(&in->db, "keel_submission")) return NULL;
    KEEL_TRY(
        db_query(&in->db,
                 "SELECT CAST(A.value AS INTEGER), B.value FROM rocpd_metadata A "
                 "JOIN rocpd_metadata B ON A.tag = 'keel_left_out' AND B.tag = 'keel_left_why'",
                 left_read, in));
    KEEL_TRY(db_query(&in->db, "SELECT deviceId, monitorType, start, value FROM rocpd_monitor",
                      counter_read, in));
    KEEL_TRY(db_query(&in->db,
                      "SELECT track_id, api_id, number, commands, waits, signals, submit, ready, "
                      "begin, end, status, id FROM keel_submission",
                      submission_read, in));
    if (db_has(&in->db, "keel_launches")) // it came later than the others
        KEEL_TRY(db_query(&in->db, "SELECT track_id, kernel, first, launches FROM keel_launches",
                          launches_read, in));
    if (!db_has(&in->db, "keel_wait")) return NULL;
    return db_query(&in->db,
                    "SELECT submission_id, on_id, semaphore, value FROM keel_wait ORDER BY id",
                    wait_read, in);
}

keel_status_t rocpd_read(model_t *model, const char *path)
{
    importer_t in = {.model = model};
    keel_status_t status = db_open(&in.db, path);
    if (!status) status = read_all(&in);
    db_close(&in.db);
    map_t *const maps[] = {&in.strings, &in.ustrings, &in.processes, &in.devices, &in.tracks,
                           &in.shapes,  &in.threads,  &in.pids,      &in.pid_of,  &in.works};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) map_finish(maps[i]);
    runs_finish(&in.calls);
    return status;
}
