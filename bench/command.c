// SPDX-License-Identifier: Apache-2.0
// The command line of `keel bench`.
#include "command.h"
#include "rig.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: keel bench [OPTION]...\n"
    "Measures Keel beside its peers, row by row, and holds it against its bars.\n"
    "  --filter=GLOB     only the rows whose names match\n"
    "  --list            the rows and what they do\n"
    "  --json            for machines, instead of the table\n"
    "  --json=FILE       for machines, into that file beside the table\n"
    "  --quick           fewer and shorter rounds\n"
    "  --rounds=N        that many rounds (default 7, on a GPU 30; at most 32)\n"
    "  --device=URI      the device to measure (default cpu://)\n"
    "  --workers=N,...   rows that scale, once for each number of workers\n"
    "  --alone           without the peers\n"
    "  --once            without the peers, and each row once: for a profiler\n"
    "  --strict          exit with 1 if a bar is missed\n"
    "  --sim             instead of all that: how fast the software AMD GPU runs kernels\n";

typedef struct options_t {
    const char *filter, *device;
    const char *json; // the file it is written to, "-" for instead of the table; or NULL
    bool list, quick, alone, once, strict;
    uint32_t rounds;
    uint32_t workers[16], worker_count;
} options_t;

static const row_t *const groups[] = {
    record_rows, replay_rows, submit_rows, wake_rows,       alloca_rows,    gemm_rows,
    region_rows, load_rows,   memory_rows, gpu_replay_rows, gpu_queue_rows, gpu_transfer_rows};
enum { GROUP_COUNT = sizeof groups / sizeof *groups };

static bool progress_shown;

static void progress_show(const char *row, uint32_t round, uint32_t rounds)
{
    if (!isatty(STDERR_FILENO)) return;
    fprintf(stderr, "\r\033[K%s, round %u of %u", row, round, rounds);
    progress_shown = true;
}

static void progress_clear(void)
{
    if (progress_shown) fputs("\r\033[K", stderr);
    progress_shown = false;
}

static bool workers_parse(const char *text, options_t *options)
{
    while (*text && options->worker_count < 16) {
        char *end;
        unsigned long n = strtoul(text, &end, 10);
        if (end == text || n == 0 || n > MAX_WORKERS || (*end && *end != ',')) return false;
        options->workers[options->worker_count++] = (uint32_t)n;
        text = *end ? end + 1 : end;
    }
    return !*text && options->worker_count;
}

static bool option_parse(const char *text, options_t *options)
{
    const char *value = strchr(text, '=');
    size_t length = value ? (size_t)(value - text) : strlen(text);
    const struct {
        const char *name;
        bool *flag;
        const char **string;
    } known[] = {
        {"--list", &options->list, NULL},     {"--quick", &options->quick, NULL},
        {"--once", &options->once, NULL},     {"--alone", &options->alone, NULL},
        {"--strict", &options->strict, NULL}, {"--filter", NULL, &options->filter},
        {"--device", NULL, &options->device}, {"--json", NULL, &options->json},
    };
    if (!strcmp(text, "--json")) return options->json = "-", true;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strlen(known[i].name) != length || strncmp(known[i].name, text, length)) continue;
        if ((known[i].string != NULL) != (value != NULL)) return false;
        if (value)
            *known[i].string = value + 1;
        else
            *known[i].flag = true;
        return true;
    }
    if (!strncmp(text, "--workers=", 10)) return workers_parse(value + 1, options);
    if (strncmp(text, "--rounds=", 9)) return false;
    options->rounds = (uint32_t)strtoul(value + 1, NULL, 10);
    return options->rounds >= 1 && options->rounds <= MAX_ROUNDS;
}

static keel_status_t workers_default(const char *uri, uint32_t *workers)
{
    keel_device_t *device;
    KEEL_TRY(keel_device_open(uri, NULL, &device));
    *workers = keel_device_caps(device)->workers;
    if (!*workers) *workers = 1;
    keel_device_release(device);
    return NULL;
}

static bool status_report(keel_status_t status)
{
    if (!status) return true;
    progress_clear();
    keel_status_print(status, stderr);
    keel_status_release(status);
    return false;
}

// One row, with a number of workers of its own if `workers` is not 0.
static bool row_show(const row_t *row, const plan_t *plan, setting_t setting, report_t *report,
                     uint32_t workers)
{
    row_result_t result = {0};
    if (workers) setting.workers = setting.threads = workers;
    snprintf(result.name, sizeof result.name, workers ? "%s@%u" : "%s", row->name, workers);
    bool done = status_report(row_run(row, plan, &setting, &result));
    progress_clear();
    if (done) {
        if (!plan->once) row_judge(&result, setting.workers);
        report_row(report, &result);
    }
    row_finish(&result);
    return done;
}

// The number of rows that match the filter; `*done` says whether all of them could be measured.
static size_t rows_run(const options_t *options, const plan_t *plan, const setting_t *setting,
                       report_t *report, bool *done)
{
    size_t matching = 0;
    for (size_t g = 0; g < GROUP_COUNT; g++) {
        for (const row_t *row = groups[g]; row->name; row++) {
            if (row->gpu != setting->gpu || fnmatch(options->filter, row->name, 0)) continue;
            matching++;
            if (!options->worker_count) {
                *done &= row_show(row, plan, *setting, report, 0);
            } else if (row->scales) {
                for (uint32_t i = 0; i < options->worker_count; i++)
                    *done &= row_show(row, plan, *setting, report, options->workers[i]);
            }
        }
    }
    return matching;
}

static int rows_list(void)
{
    for (size_t g = 0; g < GROUP_COUNT; g++)
        for (const row_t *row = groups[g]; row->name; row++)
            printf("%-22s %s\n", row->name, row->what);
    return 0;
}

// Where the rows go. False, with a word on stderr, if a file cannot be opened.
static bool report_open(report_t *report, const char *json)
{
    bool instead = json && !strcmp(json, "-");
    *report = (report_t){.table = instead ? NULL : stdout, .json = instead ? stdout : NULL};
    if (!json || instead) return true;
    report->json = fopen(json, "w");
    if (!report->json) fprintf(stderr, "keel bench: %s: %s\n", json, strerror(errno));
    return report->json;
}

static bool report_close(report_t *report, const char *json)
{
    if (!report->json || report->json == stdout) return true;
    bool written = !ferror(report->json);
    if (fclose(report->json) == 0 && written) return true;
    fprintf(stderr, "keel bench: %s could not be written\n", json);
    return false;
}

int bench_main(int argc, char **argv)
{
    options_t options = {.filter = "*", .device = "cpu://"};
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help")) return fputs(usage, stdout), 0;
        if (!option_parse(argv[i], &options))
            return fprintf(stderr, "keel bench: what is '%s'?\n%s", argv[i], usage), 2;
    }
    bool gpu = strncmp(options.device, "cpu:", 4) != 0;
    if (!options.rounds) options.rounds = options.quick ? 3 : gpu ? 30 : 7;

    plan_t plan = {.rounds = options.rounds,
                   .effort = options.quick ? 0.25 : 1,
                   .alone = options.alone || options.once,
                   .once = options.once,
                   .progress = progress_show};
    setting_t setting = {.device = options.device, .gpu = gpu};
    report_t report;
    if (options.list) return rows_list();
    rig_watch();
    if (!status_report(workers_default(options.device, &setting.workers))) return 1;
    if (!report_open(&report, options.json)) return 1;

    bool done = true;
    report_begin(&report, &setting, &plan);
    if (!rows_run(&options, &plan, &setting, &report, &done)) {
        fprintf(stderr, "keel bench: no row matches '%s'; --list names them\n", options.filter);
        done = false;
    }
    report_end(&report);
    done &= report_close(&report, options.json);
    return !done || (options.strict && report.verdicts[VERDICT_MISSED]);
}
