// SPDX-License-Identifier: Apache-2.0
// Each table has a suffix that no other database has, so that several can be read as one, and a
// view with its plain name. Processes, threads, agents and queues are named by the numbers of their
// rows; numbers here are those of the model and 1. Readers join without mercy, so every row has all
// that it refers to: a host and an unknown thread for each process, a code object for each device.
#include "tracer/rocpd3.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "tracer/db.h"
#include "tracer/replace.h"

// Tables and their columns, each after `id` and `guid`.
typedef enum table_id_t {
    STRING,
    NODE,
    PROCESS,
    THREAD,
    AGENT,
    QUEUE,
    STREAM,
    CODE,
    SYMBOL,
    EVENT,
    ARGUMENT,
    REGION,
    DISPATCH,
    COPY,
    FILLED, // the rest stays empty
    PMC = FILLED,
    PMC_EVENT,
    TRACK,
    SAMPLE,
    ALLOCATE,
    TABLES,
} table_id_t;

static const struct {
    const char *name, *columns;
    const char *written; // those of them that rows are given, after `id`
    int count;           // of these, with `id`
} tables[TABLES] = {
    [STRING] = {"string", "string TEXT", "string", 2},
    [NODE] = {"info_node",
              "hash BIGINT, machine_id TEXT, system_name TEXT, hostname TEXT, release TEXT,"
              " version TEXT, hardware_name TEXT, domain_name TEXT",
              "hash, machine_id", 3},
    [PROCESS] = {"info_process",
                 "nid INTEGER, ppid INTEGER, pid INTEGER, init BIGINT, fini BIGINT, start BIGINT,"
                 " end BIGINT, command TEXT, environment JSONB DEFAULT '{}'",
                 "nid, ppid, pid, start, end, command", 7},
    [THREAD] = {"info_thread",
                "nid INTEGER, ppid INTEGER, pid INTEGER, tid INTEGER, name TEXT, start BIGINT,"
                " end BIGINT",
                "nid, ppid, pid, tid, name", 6},
    [AGENT] = {"info_agent",
               "nid INTEGER, pid INTEGER, type TEXT, absolute_index INTEGER,"
               " logical_index INTEGER, type_index INTEGER, uuid INTEGER, name TEXT,"
               " model_name TEXT, vendor_name TEXT, product_name TEXT, user_name TEXT",
               "nid, pid, type, absolute_index, logical_index, type_index, name", 8},
    [QUEUE] = {"info_queue", "nid INTEGER, pid INTEGER, name TEXT", "nid, pid, name", 4},
    [STREAM] = {"info_stream", "nid INTEGER, pid INTEGER, name TEXT", "nid, pid, name", 4},
    [CODE] = {"info_code_object",
              "nid INTEGER, pid INTEGER, agent_id INTEGER, uri TEXT, load_base BIGINT,"
              " load_size BIGINT, load_delta BIGINT, storage_type TEXT",
              "nid, pid, agent_id, storage_type", 5},
    [SYMBOL] = {"info_kernel_symbol",
                "nid INTEGER, pid INTEGER, code_object_id INTEGER, kernel_name TEXT,"
                " display_name TEXT, kernel_object INTEGER, kernarg_segment_size INTEGER,"
                " kernarg_segment_alignment INTEGER, group_segment_size INTEGER,"
                " private_segment_size INTEGER, sgpr_count INTEGER, arch_vgpr_count INTEGER,"
                " accum_vgpr_count INTEGER",
                "nid, pid, code_object_id, kernel_name, display_name", 6},
    [EVENT] = {"event",
               "category_id INTEGER, stack_id INTEGER, parent_stack_id INTEGER,"
               " correlation_id INTEGER, call_stack JSONB DEFAULT '{}',"
               " line_info JSONB DEFAULT '{}'",
               "category_id, stack_id, parent_stack_id, correlation_id", 5},
    [ARGUMENT] = {"arg", "event_id INTEGER, position INTEGER, type TEXT, name TEXT, value TEXT",
                  "event_id, position, type, name, value", 6},
    [REGION] = {"region",
                "nid INTEGER, pid INTEGER, tid INTEGER, start BIGINT, end BIGINT,"
                " name_id INTEGER, event_id INTEGER",
                "nid, pid, tid, start, end, name_id, event_id", 8},
    [DISPATCH] = {"kernel_dispatch",
                  "nid INTEGER, pid INTEGER, tid INTEGER, agent_id INTEGER, kernel_id INTEGER,"
                  " dispatch_id INTEGER, queue_id INTEGER, stream_id INTEGER, start BIGINT,"
                  " end BIGINT, private_segment_size INTEGER, group_segment_size INTEGER,"
                  " workgroup_size_x INTEGER, workgroup_size_y INTEGER, workgroup_size_z INTEGER,"
                  " grid_size_x INTEGER, grid_size_y INTEGER, grid_size_z INTEGER,"
                  " region_name_id INTEGER, event_id INTEGER",
                  "nid, pid, tid, agent_id, kernel_id, dispatch_id, queue_id, stream_id, start,"
                  " end, group_segment_size, workgroup_size_x, workgroup_size_y,"
                  " workgroup_size_z, grid_size_x, grid_size_y, grid_size_z, region_name_id,"
                  " event_id",
                  20},
    [COPY] = {"memory_copy",
              "nid INTEGER, pid INTEGER, tid INTEGER, start BIGINT, end BIGINT, name_id INTEGER,"
              " dst_agent_id INTEGER, dst_address INTEGER, src_agent_id INTEGER,"
              " src_address INTEGER, size INTEGER, queue_id INTEGER, stream_id INTEGER,"
              " region_name_id INTEGER, event_id INTEGER",
              "nid, pid, tid, start, end, name_id, dst_agent_id, src_agent_id, size, queue_id,"
              " stream_id, region_name_id, event_id",
              14},
    [PMC] = {"info_pmc",
             "nid INTEGER, pid INTEGER, agent_id INTEGER, target_arch TEXT, event_code INT,"
             " instance_id INTEGER, name TEXT, symbol TEXT, description TEXT,"
             " long_description TEXT, component TEXT, units TEXT, value_type TEXT, block TEXT,"
             " expression TEXT, is_constant INTEGER, is_derived INTEGER",
             NULL, 0},
    [PMC_EVENT] = {"pmc_event", "event_id INTEGER, pmc_id INTEGER, value REAL", NULL, 0},
    [TRACK] = {"track", "nid INTEGER, pid INTEGER, tid INTEGER, name_id INTEGER", NULL, 0},
    [SAMPLE] = {"sample", "track_id INTEGER, timestamp BIGINT, event_id INTEGER", NULL, 0},
    [ALLOCATE] = {"memory_allocate",
                  "nid INTEGER, pid INTEGER, tid INTEGER, agent_id INTEGER, type TEXT,"
                  " level TEXT, start BIGINT, end BIGINT, address INTEGER, size INTEGER,"
                  " queue_id INTEGER, stream_id INTEGER, event_id INTEGER",
                  NULL, 0},
};

// As the tools' own, as far as this trace has what they show: first what calls and operations
// belong to, then these, then sums of them.
static const char views[] =
    "CREATE VIEW processes AS SELECT P.id, P.guid, P.nid, N.machine_id, N.system_name, N.hostname,"
    " N.release AS system_release, N.version AS system_version, P.ppid, P.pid, P.init, P.start,"
    " P.end, P.fini, P.command FROM rocpd_info_process P JOIN rocpd_info_node N ON N.id = P.nid;"
    "CREATE VIEW threads AS SELECT T.id, P.guid, P.nid, P.machine_id, P.system_name, P.hostname,"
    " P.system_release, P.system_version, P.ppid, P.pid, T.tid, T.start, T.end, T.name"
    " FROM rocpd_info_thread T JOIN processes P ON P.id = T.pid;"
    "CREATE VIEW code_objects AS SELECT C.id, C.guid, C.nid, P.pid,"
    " A.absolute_index AS agent_absolute_index, C.uri, C.load_base, C.load_size, C.load_delta,"
    " C.storage_type AS storage_type_str FROM rocpd_info_code_object C"
    " JOIN rocpd_info_agent A ON A.id = C.agent_id JOIN rocpd_info_process P ON P.id = C.pid;"
    "CREATE VIEW kernel_symbols AS SELECT S.id, S.guid, S.nid, P.pid, S.code_object_id,"
    " S.kernel_name, S.display_name, S.kernel_object, S.kernarg_segment_size,"
    " S.kernarg_segment_alignment, S.group_segment_size, S.private_segment_size, S.sgpr_count,"
    " S.arch_vgpr_count, S.accum_vgpr_count FROM rocpd_info_kernel_symbol S"
    " JOIN rocpd_info_process P ON P.id = S.pid;"
    "CREATE VIEW regions AS SELECT R.id, R.guid, C.string AS category, S.string AS name, R.nid,"
    " P.pid, T.tid, R.start, R.end, R.end - R.start AS duration, R.event_id, E.stack_id,"
    " E.parent_stack_id, E.correlation_id AS corr_id FROM rocpd_region R"
    " JOIN rocpd_event E ON E.id = R.event_id JOIN rocpd_string C ON C.id = E.category_id"
    " JOIN rocpd_string S ON S.id = R.name_id JOIN rocpd_info_process P ON P.id = R.pid"
    " JOIN rocpd_info_thread T ON T.id = R.tid;"
    "CREATE VIEW kernels AS SELECT K.id, K.guid, T.tid, C.string AS category,"
    " G.string AS region, S.display_name AS name, K.nid, P.pid, A.absolute_index AS"
    " agent_abs_index, A.type AS agent_type, S.code_object_id, K.kernel_id, K.dispatch_id,"
    " K.queue_id, Q.name AS queue, K.stream_id, K.start, K.end, K.end - K.start AS duration,"
    " K.grid_size_x AS grid_x, K.grid_size_y AS grid_y, K.grid_size_z AS grid_z,"
    " K.workgroup_size_x AS workgroup_x, K.workgroup_size_y AS workgroup_y,"
    " K.workgroup_size_z AS workgroup_z, K.group_segment_size AS lds_size, E.stack_id,"
    " E.correlation_id AS corr_id FROM rocpd_kernel_dispatch K"
    " JOIN rocpd_event E ON E.id = K.event_id JOIN rocpd_string C ON C.id = E.category_id"
    " JOIN rocpd_string G ON G.id = K.region_name_id"
    " JOIN rocpd_info_kernel_symbol S ON S.id = K.kernel_id"
    " JOIN rocpd_info_agent A ON A.id = K.agent_id JOIN rocpd_info_queue Q ON Q.id = K.queue_id"
    " JOIN rocpd_info_process P ON P.id = K.pid JOIN rocpd_info_thread T ON T.id = K.tid;"
    "CREATE VIEW memory_copies AS SELECT M.id, M.guid, C.string AS category, M.nid, P.pid, T.tid,"
    " M.start, M.end, M.end - M.start AS duration, S.string AS name, M.size, D.name AS dst_device,"
    " F.name AS src_device, M.queue_id, M.stream_id, E.stack_id, E.correlation_id AS corr_id"
    " FROM rocpd_memory_copy M JOIN rocpd_event E ON E.id = M.event_id"
    " JOIN rocpd_string C ON C.id = E.category_id JOIN rocpd_string S ON S.id = M.name_id"
    " JOIN rocpd_info_agent D ON D.id = M.dst_agent_id"
    " JOIN rocpd_info_agent F ON F.id = M.src_agent_id"
    " JOIN rocpd_info_process P ON P.id = M.pid JOIN rocpd_info_thread T ON T.id = M.tid;"
    "CREATE VIEW top_kernels AS SELECT name, count(*) AS total_calls,"
    " sum(duration) / 1000.0 AS total_duration, avg(duration) / 1000.0 AS average,"
    " sum(duration) * 100.0 / (SELECT sum(duration) FROM kernels) AS percentage"
    " FROM kernels GROUP BY name ORDER BY total_duration DESC;"
    "CREATE VIEW top AS WITH work AS (SELECT name, duration FROM kernels"
    " UNION ALL SELECT name, duration FROM memory_copies"
    " UNION ALL SELECT name, duration FROM regions) SELECT name, count(*) AS total_calls,"
    " sum(duration) / 1000.0 AS total_duration, avg(duration) / 1000.0 AS average,"
    " sum(duration) * 100.0 / (SELECT sum(duration) FROM work) AS percentage"
    " FROM work GROUP BY name ORDER BY total_duration DESC;"
    // Time in which two ran counts once: what began before others had ended counts from there on.
    "CREATE VIEW busy AS WITH work AS (SELECT agent_id, start, end FROM rocpd_kernel_dispatch"
    " UNION ALL SELECT dst_agent_id, start, end FROM rocpd_memory_copy), steps AS (SELECT agent_id,"
    " start, end, max(end) OVER (PARTITION BY agent_id ORDER BY start, end"
    " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM work), sums AS (SELECT"
    " agent_id, sum(max(end - max(start, coalesce(before, start)), 0)) AS GpuTime FROM steps"
    " GROUP BY agent_id), whole AS (SELECT max(end) - min(start) AS WallTime FROM work)"
    " SELECT agent_id, A.type, GpuTime, WallTime, GpuTime * 1.0 / WallTime AS Busy"
    " FROM sums JOIN rocpd_info_agent A ON A.id = agent_id, whole;";

// Strings besides the trace's own.
enum {
    WORD_NONE,
    WORD_CALL,
    WORD_MARKER,
    WORD_KERNEL,
    WORD_COPY,
    WORDS = WORD_COPY + TRACE_COPIES
};
typedef uint32_t word_t;
static const char *const words[WORDS] = {
    [WORD_CALL] = "RUNTIME_API",
    [WORD_MARKER] = "MARKER_CORE_API",
    [WORD_KERNEL] = "KERNEL_DISPATCH",
    [WORD_COPY] = "MEMORY_COPY", // with TRACE_COPY_OTHER, the name of a copy
    [WORD_COPY + TRACE_COPY_TO_DEVICE] = "MEMORY_COPY_HOST_TO_DEVICE",
    [WORD_COPY + TRACE_COPY_TO_HOST] = "MEMORY_COPY_DEVICE_TO_HOST",
    [WORD_COPY + TRACE_COPY_WITHIN] = "MEMORY_COPY_DEVICE_TO_DEVICE",
    [WORD_COPY + TRACE_COPY_ACROSS] = "MEMORY_COPY_DEVICE_TO_DEVICE",
    [WORD_COPY + TRACE_COPY_HOST] = "MEMORY_COPY_HOST_TO_HOST",
    [WORD_COPY + TRACE_COPY_SET] = "MEMORY_SET",
};

typedef struct writer_t {
    const model_t *model;
    db_t db;
    char guid[40], suffix[48];
    char into[512];
    db_rows_t rows;
    map_t symbols; // by device and name
} writer_t;

static void guid_make(writer_t *writer)
{
    const model_t *model = writer->model;
    uint64_t hash[2] = {0xcbf29ce484222325u, 0x9e3779b97f4a7c15u};
    const process_t *first = model->process_count ? model->processes : NULL;
    const uint64_t words_of[] = {first ? first->pid : 0, model_range(model).first_ns,
                                 model->event_count, first ? (uint64_t)first->real_ns : 0};
    for (size_t i = 0; i < 4; i++)
        for (int k = 0; k < 2; k++)
            hash[k] = ((hash[k] ^ words_of[i]) * 0x100000001b3u) ^ hash[k] >> (29 + k);
    snprintf(writer->guid, sizeof writer->guid, "%08x-%04x-%04x-%04x-%012llx",
             (unsigned)(hash[0] >> 32), (unsigned)(hash[0] >> 16 & 0xffff),
             (unsigned)(hash[0] & 0xffff), (unsigned)(hash[1] >> 48),
             (unsigned long long)(hash[1] & 0xffffffffffff));
    snprintf(writer->suffix, sizeof writer->suffix, "_%s", writer->guid);
    for (char *c = writer->suffix; *c; c++)
        if (*c == '-') *c = '_';
}

static keel_status_t tables_make(writer_t *writer)
{
    char sql[2048];
    for (int i = 0; i < TABLES; i++) {
        snprintf(
            sql, sizeof sql,
            "CREATE TABLE rocpd_%s%s(id INTEGER PRIMARY KEY, guid TEXT DEFAULT '%s' NOT NULL,"
            " %s, extdata JSONB DEFAULT '{}'); CREATE VIEW rocpd_%s AS SELECT * FROM rocpd_%s%s",
            tables[i].name, writer->suffix, writer->guid, tables[i].columns, tables[i].name,
            tables[i].name, writer->suffix);
        KEEL_TRY(db_run(&writer->db, sql));
    }
    snprintf(sql, sizeof sql,
             "CREATE TABLE rocpd_metadata%s(id INTEGER PRIMARY KEY, tag TEXT, value TEXT);"
             "CREATE VIEW rocpd_metadata AS SELECT * FROM rocpd_metadata%s;"
             "INSERT INTO rocpd_metadata%s(tag, value) VALUES('schema_version', '3'),"
             "('uuid', '%s'), ('guid', '%s')",
             writer->suffix, writer->suffix, writer->suffix, writer->suffix, writer->guid);
    return db_run(&writer->db, sql);
}

static keel_status_t rows_begin(writer_t *writer, table_id_t table)
{
    snprintf(writer->into, sizeof writer->into, "INTO rocpd_%s%s(id, %s)", tables[table].name,
             writer->suffix, tables[table].written);
    return db_rows_begin(&writer->rows, &writer->db, writer->into, tables[table].count);
}

static void put(writer_t *writer, int64_t value)
{
    db_int(&writer->rows, value);
}

static void put_text(writer_t *writer, uint32_t text)
{
    db_text(&writer->rows, model_string(writer->model, text));
}

static int64_t word_id(const writer_t *writer, word_t word)
{
    return (int64_t)writer->model->strings.count + 1 + word;
}

static int64_t text_id(const writer_t *writer, uint32_t text)
{
    return text ? (int64_t)text : word_id(writer, WORD_NONE);
}

static int64_t host_id(const writer_t *writer, uint32_t process)
{
    return (int64_t)writer->model->device_count + process + 1;
}

// The thread of the call that made an operation; that of none.
static int64_t thread_id(const writer_t *writer, const event_t *event)
{
    const model_t *model = writer->model;
    if (event->link) return (int64_t)model->events[event->link - 1].track + 1;
    return (int64_t)model->track_count + model->tracks[event->track].process + 1;
}

static void put_process(writer_t *writer, uint32_t process)
{
    put(writer, writer->model->processes[process].node + 1ll);
    put(writer, process + 1ll);
}

static keel_status_t write_strings(writer_t *writer)
{
    const strings_t *strings = &writer->model->strings;
    KEEL_TRY(rows_begin(writer, STRING));
    for (uint32_t i = 1; i <= strings->count; i++) {
        put(writer, i);
        put_text(writer, i);
    }
    for (uint32_t i = 0; i < WORDS; i++) {
        put(writer, word_id(writer, (word_t)i));
        db_text(&writer->rows, words[i] ? words[i] : "");
    }
    return db_rows_end(&writer->rows);
}

static keel_status_t write_processes(writer_t *writer)
{
    const model_t *model = writer->model;
    range_t range = model_range(model);
    uint32_t nodes = 0;
    KEEL_TRY(rows_begin(writer, NODE));
    for (uint32_t i = 0; i < model->process_count; i++) {
        const process_t *process = &model->processes[i];
        if (process->node < nodes) continue;
        nodes = process->node + 1;
        put(writer, nodes);
        put(writer, nodes);
        put_text(writer, process->boot);
    }
    KEEL_TRY(db_rows_end(&writer->rows));
    KEEL_TRY(rows_begin(writer, PROCESS));
    for (uint32_t i = 0; i < model->process_count; i++) {
        const process_t *process = &model->processes[i];
        put(writer, i + 1ll);
        put(writer, process->node + 1ll);
        put(writer, process->parent);
        put(writer, process->pid);
        put(writer, (int64_t)range.first_ns);
        put(writer, (int64_t)range.last_ns);
        put_text(writer, process->command);
    }
    return db_rows_end(&writer->rows);
}

static void thread_row(writer_t *writer, int64_t id, uint32_t process, int64_t tid,
                       const char *name)
{
    put(writer, id);
    put(writer, writer->model->processes[process].node + 1ll);
    put(writer, writer->model->processes[process].parent);
    put(writer, process + 1ll);
    put(writer, tid);
    db_text(&writer->rows, name);
}

static keel_status_t write_threads(writer_t *writer)
{
    const model_t *model = writer->model;
    KEEL_TRY(rows_begin(writer, THREAD));
    for (uint32_t i = 0; i < model->track_count; i++) {
        const track_t *track = &model->tracks[i];
        if (!track->is_queue)
            thread_row(writer, i + 1ll, track->process, (int64_t)track->number,
                       model_string(model, track->name));
    }
    for (uint32_t i = 0; i < model->process_count; i++)
        thread_row(writer, (int64_t)model->track_count + i + 1, i, 0, "unknown");
    return db_rows_end(&writer->rows);
}

static void agent_row(writer_t *writer, int64_t id, uint32_t process, bool gpu, const char *name)
{
    put(writer, id);
    put_process(writer, process);
    db_text(&writer->rows, gpu ? "GPU" : "CPU");
    for (int i = 0; i < 3; i++) put(writer, id - 1);
    db_text(&writer->rows, name);
}

// Devices, and a host for each process; and code for each device.
static keel_status_t write_agents(writer_t *writer)
{
    const model_t *model = writer->model;
    KEEL_TRY(rows_begin(writer, AGENT));
    for (uint32_t i = 0; i < model->device_count; i++) {
        const char *name = model_string(model, model->devices[i].name);
        agent_row(writer, i + 1ll, model->devices[i].process, strncmp(name, "cpu", 3) != 0, name);
    }
    for (uint32_t i = 0; i < model->process_count; i++)
        agent_row(writer, host_id(writer, i), i, false, "host");
    KEEL_TRY(db_rows_end(&writer->rows));
    KEEL_TRY(rows_begin(writer, CODE));
    for (uint32_t i = 0; i < model->device_count; i++) {
        put(writer, i + 1ll);
        put_process(writer, model->devices[i].process);
        put(writer, i + 1ll);
        db_text(&writer->rows, "MEMORY");
    }
    return db_rows_end(&writer->rows);
}

static keel_status_t write_queues(writer_t *writer, table_id_t table)
{
    const model_t *model = writer->model;
    KEEL_TRY(rows_begin(writer, table));
    for (uint32_t i = 0; i < model->track_count; i++) {
        if (!model->tracks[i].is_queue) continue;
        put(writer, i + 1ll);
        put_process(writer, model->tracks[i].process);
        put_text(writer, model->tracks[i].name);
    }
    return db_rows_end(&writer->rows);
}

static uint64_t symbol_key(const model_t *model, const event_t *event)
{
    return (model->tracks[event->track].device + 1ull) << 32 | event->name;
}

static bool is_op(const event_t *event, trace_op_t op)
{
    return event->kind == EVENT_OP && event->op == op;
}

static keel_status_t write_symbols(writer_t *writer)
{
    const model_t *model = writer->model;
    keel_status_t status = rows_begin(writer, SYMBOL);
    uint32_t count = 0, known;
    for (uint32_t i = 0; !status && i < model->event_count; i++) {
        const event_t *event = &model->events[i];
        uint64_t key = symbol_key(model, event);
        if (!is_op(event, TRACE_OP_DISPATCH) || map_get(&writer->symbols, key, &known)) continue;
        status = map_put(&writer->symbols, key, ++count);
        put(writer, count);
        put_process(writer, model->tracks[event->track].process);
        put(writer, model->tracks[event->track].device + 1ll);
        put_text(writer, event->name);
        put_text(writer, event->name);
    }
    keel_status_t ended = db_rows_end(&writer->rows);
    if (!status) return ended;
    keel_status_release(ended);
    return status;
}

// What an event becomes; FILLED: nothing.
static table_id_t table_of(const event_t *event)
{
    if (is_op(event, TRACE_OP_DISPATCH)) return DISPATCH;
    if (is_op(event, TRACE_OP_COPY)) return COPY;
    bool region =
        event->kind == EVENT_CALL || event->kind == EVENT_SPAN || event->kind == EVENT_MARK;
    return region ? REGION : FILLED;
}

static void event_row(writer_t *writer, uint32_t index)
{
    const event_t *event = &writer->model->events[index];
    table_id_t table = table_of(event);
    word_t category = table == DISPATCH ? WORD_KERNEL : table == COPY ? WORD_COPY : WORD_MARKER;
    int64_t domain = event->domain ? event->domain : word_id(writer, WORD_CALL);
    int64_t made = event->link ? event->link : index + 1ll;
    put(writer, index + 1ll);
    put(writer, event->kind == EVENT_CALL ? domain : word_id(writer, category));
    put(writer, made);
    put(writer, 0);
    put(writer, made);
}

static void argument_row(writer_t *writer, uint32_t index)
{
    const event_t *event = &writer->model->events[index];
    if (event->kind != EVENT_CALL || !event->args) return;
    put(writer, index + 1ll);
    put(writer, index + 1ll);
    put(writer, 0);
    db_text(&writer->rows, "text");
    db_text(&writer->rows, "arguments");
    put_text(writer, event->args);
}

static void region_row(writer_t *writer, uint32_t index)
{
    const event_t *event = &writer->model->events[index];
    if (table_of(event) != REGION) return;
    put(writer, index + 1ll);
    put_process(writer, writer->model->tracks[event->track].process);
    put(writer, event->track + 1ll);
    put(writer, (int64_t)event->start_ns);
    put(writer, (int64_t)event->end_ns);
    put(writer, text_id(writer, event->name));
    put(writer, index + 1ll);
}

static void dispatch_row(writer_t *writer, uint32_t index)
{
    const model_t *model = writer->model;
    const event_t *event = &model->events[index];
    if (table_of(event) != DISPATCH) return;
    uint32_t symbol = 0;
    trace_shape_t shape = event->value ? model->shapes[event->value] : (trace_shape_t){0};
    map_get(&writer->symbols, symbol_key(model, event), &symbol);
    put(writer, index + 1ll);
    put_process(writer, model->tracks[event->track].process);
    put(writer, thread_id(writer, event));
    put(writer, model->tracks[event->track].device + 1ll);
    put(writer, symbol);
    put(writer, index + 1ll);
    put(writer, event->track + 1ll);
    put(writer, event->track + 1ll);
    put(writer, (int64_t)event->start_ns);
    put(writer, (int64_t)event->end_ns);
    put(writer, shape.group_bytes);
    const int64_t sizes[] = {shape.group_x, shape.group_y, shape.group_z};
    for (int i = 0; i < 3; i++) put(writer, sizes[i]);
    for (int i = 0; i < 3; i++) put(writer, shape.grid[i]);
    put(writer, word_id(writer, WORD_NONE));
    put(writer, index + 1ll);
}

static void copy_row(writer_t *writer, uint32_t index)
{
    const model_t *model = writer->model;
    const event_t *event = &model->events[index];
    if (table_of(event) != COPY) return;
    const track_t *track = &model->tracks[event->track];
    int64_t device = track->device + 1ll, host = host_id(writer, track->process);
    bool to_host = event->copy == TRACE_COPY_TO_HOST || event->copy == TRACE_COPY_HOST;
    bool from_host = event->copy == TRACE_COPY_TO_DEVICE || event->copy == TRACE_COPY_HOST;
    put(writer, index + 1ll);
    put_process(writer, track->process);
    put(writer, thread_id(writer, event));
    put(writer, (int64_t)event->start_ns);
    put(writer, (int64_t)event->end_ns);
    uint32_t word = WORD_COPY + (event->copy < TRACE_COPIES ? event->copy : 0u);
    put(writer, event->name ? event->name : word_id(writer, word));
    put(writer, to_host ? host : device);
    put(writer, from_host ? host : device);
    put(writer, (int64_t)event->value);
    put(writer, event->track + 1ll);
    put(writer, event->track + 1ll);
    put(writer, word_id(writer, WORD_NONE));
    put(writer, index + 1ll);
}

static void row_of_event(writer_t *writer, uint32_t index)
{
    if (table_of(&writer->model->events[index]) != FILLED) event_row(writer, index);
}

static keel_status_t write_events(writer_t *writer)
{
    const struct {
        table_id_t table;
        void (*row)(writer_t *writer, uint32_t index);
    } kinds[] = {{EVENT, row_of_event},
                 {ARGUMENT, argument_row},
                 {REGION, region_row},
                 {DISPATCH, dispatch_row},
                 {COPY, copy_row}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        KEEL_TRY(rows_begin(writer, kinds[k].table));
        for (uint32_t i = 0; i < writer->model->event_count; i++) kinds[k].row(writer, i);
        KEEL_TRY(db_rows_end(&writer->rows));
    }
    return NULL;
}

static keel_status_t write_all(writer_t *writer)
{
    KEEL_TRY(tables_make(writer));
    KEEL_TRY(write_strings(writer));
    KEEL_TRY(write_processes(writer));
    KEEL_TRY(write_threads(writer));
    KEEL_TRY(write_agents(writer));
    KEEL_TRY(write_queues(writer, QUEUE));
    KEEL_TRY(write_queues(writer, STREAM));
    KEEL_TRY(write_symbols(writer));
    KEEL_TRY(write_events(writer));
    KEEL_TRY(db_run(&writer->db, views));
    return db_run(&writer->db, "COMMIT");
}

keel_status_t rocpd3_write(const model_t *model, const char *path)
{
    writer_t writer = {.model = model};
    char making[REPLACE_NAME];
    KEEL_TRY(replace_begin(path, making));
    guid_make(&writer);
    keel_status_t status = db_create(&writer.db, making);
    if (!status) status = write_all(&writer);
    db_close(&writer.db);
    map_finish(&writer.symbols);
    return replace_end(status, making, path);
}
