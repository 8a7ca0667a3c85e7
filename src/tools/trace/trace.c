// SPDX-License-Identifier: Apache-2.0
// keel trace: runs a program and records what it did, and tells of it.
#include "tools/trace/trace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/commands.h"
#include "tools/trace/words.h"
#include "tracer/load.h"
#include "tracer/summary.h"

static const char usage[] =
    "usage: keel trace [OPTIONS] -- PROGRAM [ARGUMENTS]\n"
    "  runs a program, and children of it, and records what they do\n"
    "  -o FILE             the trace (keel-trace.db)\n"
    "  -f                  replace a trace of that name\n"
    "  -m MODE             what is recorded besides Keel: auto for GPUs and calls of CUDA and\n"
    "                      HIP, cuda or hip for one of them, standard for GPUs alone, lite for\n"
    "                      their kernels alone, of CUDA how often these were launched (auto)\n"
    "  -n N                names that the summary shows of each table (20)\n"
    "  --delay SECONDS     record after that time\n"
    "  --duration SECONDS  record for that time\n"
    "  --kernel-filter RE  keep operations whose names the regular expression matches\n"
    "  --api-filter RE     keep calls whose names it matches\n"
    "  --all-calls         record calls of CUDA that only tell something, too\n"
    "  --rank-from NAME    the variable of the environment with a process's rank\n"
    "\n"
    "       keel trace summary [-n N] TRACE       what took how long\n"
    "       keel trace info TRACE                 what is in a trace\n"
    "       keel trace compare [-n N] TRACE TRACE what got slower\n"
    "       keel trace report [-o FILE] TRACE     a page with a timeline, for a browser\n"
    "       keel trace export [-f perfetto|chrome|csv|rocpd3] [-o FILE] TRACE\n"
    "       keel trace merge -o FILE TRACE...     one trace of several\n"
    "       keel trace finish TRACE               make it of the parts that a killed tool left\n"
    "       keel trace start|stop|status PID      of a program that is traced\n"
    "\n"
    "A TRACE is what -o named. docs/trace.md explains all of it.\n";

static int bad_usage(const char *why)
{
    fprintf(stderr, "keel trace: %s\n", why);
    fputs(usage, stderr);
    return 2;
}

int trace_summary(int argc, char **argv)
{
    words_t words;
    if (!words_read(&words, "n", argc, argv)) return 2;
    if (words.count != 1) return bad_usage("summary wants one trace");
    const char *path = words.traces[0];
    model_t model = {0};
    keel_status_t status = load_path(&model, path);
    if (!status && !model.process_count) printf("%s has no records\n", path);
    if (!status) status = summary_print(&model, words.limit, stdout);
    model_finish(&model);
    return status ? trace_complain(status) : 0;
}

static void info_print(const model_t *model)
{
    static const char *const kinds[EVENT_KINDS] = {
        "calls", "operations", "spans", "marks", "values of counters", "counts of launches"};
    uint64_t counts[EVENT_KINDS] = {0}, linked = 0;
    range_t range = model_range(model);
    for (uint32_t i = 0; i < model->event_count; i++) {
        counts[model->events[i].kind]++;
        linked += model->events[i].link != 0;
    }
    summary_processes(model, stdout);
    printf("%s\n", model_is_incomplete(model) ? "INCOMPLETE" : "complete");
    printf("%12.6f s from the first to the last event\n",
           (double)(range.last_ns - range.first_ns) / 1e9);
    for (int i = 0; i < EVENT_KINDS; i++)
        printf("%12llu %s\n", (unsigned long long)counts[i], kinds[i]);
    printf("%12llu operations that are linked to the call that made them\n",
           (unsigned long long)linked);
    printf("%12u submissions\n%12u devices\n%12u threads and queues\n%12u different texts\n",
           model->work_count, model->device_count, model->track_count, model->strings.count);
    for (uint32_t i = 0; i < model->device_count; i++)
        printf("device %u: process %u, %s\n", i, model->processes[model->devices[i].process].pid,
               model_string(model, model->devices[i].name));
}

int trace_info(int argc, char **argv)
{
    words_t words;
    if (!words_read(&words, "", argc, argv)) return 2;
    if (words.count != 1) return bad_usage("info wants one trace");
    model_t model = {0};
    keel_status_t status = load_path(&model, words.traces[0]);
    if (!status) info_print(&model);
    model_finish(&model);
    return status ? trace_complain(status) : 0;
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int help_print(void)
{
    fputs(usage, stdout);
    return 0;
}

// What was printed may not have found its way.
static int verb_end(int status)
{
    if ((fflush(stdout) == 0 && !ferror(stdout)) || status) return status;
    fprintf(stderr, "keel trace: standard output: %s\n", strerror(errno));
    return 1;
}

int command_trace(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } verbs[] = {{"summary", trace_summary},     {"info", trace_info},
                 {"export", trace_export},       {"report", trace_report},
                 {"merge", trace_merge},         {"compare", trace_compare},
                 {"finish", trace_finish_parts}, {"start", trace_control},
                 {"stop", trace_control},        {"status", trace_control}};
    if (argc > 1 && asks_for_help(argv[1])) return help_print();
    for (size_t i = 0; argc > 1 && i < sizeof verbs / sizeof *verbs; i++) {
        if (strcmp(argv[1], verbs[i].name) != 0) continue;
        if (argc > 2 && asks_for_help(argv[2])) return help_print();
        return verb_end(verbs[i].run(argc - 1, argv + 1));
    }
    int status = argc > 1 ? trace_run(argc, argv) : 2;
    if (status == 2 && argc < 2) fputs(usage, stderr);
    return status;
}
