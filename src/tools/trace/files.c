// SPDX-License-Identifier: Apache-2.0
// keel trace export, report, merge and compare: what becomes of traces that were written.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/trace/trace.h"
#include "tracer/compare.h"
#include "tracer/export.h"
#include "tracer/load.h"
#include "tracer/merge.h"
#include "tracer/rocpd.h"
#include "tracer/rocpd3.h"

typedef struct words_t {
    const char *out, *format;
    uint32_t limit;
    char **traces;
    int count;
} words_t;

// Splits options from traces; says what is wrong with them. At most one option of each kind.
static bool words_read(words_t *words, int argc, char **argv)
{
    int i = 1;
    words->limit = 20;
    for (; i < argc && argv[i][0] == '-'; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        bool good = *value != 0;
        if (strcmp(argv[i], "-o") == 0)
            words->out = value;
        else if (strcmp(argv[i], "-f") == 0)
            words->format = value;
        else if (strcmp(argv[i], "-n") == 0)
            good = (words->limit = (uint32_t)strtoul(value, NULL, 10)) != 0;
        else {
            fprintf(stderr, "keel trace %s: what is %s?\n", argv[0], argv[i]);
            return false;
        }
        if (good) continue;
        fprintf(stderr, "keel trace %s: %s wants %s\n", argv[0], argv[i],
                argv[i][1] == 'n' ? "a number" : "a value");
        return false;
    }
    words->traces = argv + i;
    words->count = argc > i ? argc - i : 0;
    return true;
}

typedef keel_status_t (*export_fn)(const model_t *model, FILE *out); // NULL: rocpd3_write

// Writes a file of a model, which replaces one of that name once it is whole; "-": to stdout.
static keel_status_t file_write(const model_t *model, export_fn write, const char *path)
{
    char making[4096];
    bool to_stdout = strcmp(path, "-") == 0;
    if (!write && to_stdout)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "-o -: a database needs a file of its own");
    if (!write) return rocpd3_write(model, path);
    if ((size_t)snprintf(making, sizeof making, "%s.new", path) >= sizeof making)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "the name is too long: %s", path);
    FILE *out = to_stdout ? stdout : fopen(making, "we");
    if (!out) return KEEL_ERROR(KEEL_IO, "%s: %s", making, strerror(errno));
    keel_status_t status = write(model, out);
    bool failed = ferror(out) || fflush(out) != 0;
    if (!to_stdout && fclose(out) != 0) failed = true;
    if (!status && failed) status = KEEL_ERROR(KEEL_IO, "%s: %s", path, strerror(errno));
    if (!status && !to_stdout && rename(making, path) != 0)
        status = KEEL_ERROR(KEEL_IO, "%s: %s", path, strerror(errno));
    if (status && !to_stdout) unlink(making);
    return status;
}

// Reads the one trace and writes a file of it, whose name is the trace's with an ending if none is
// given.
static int trace_convert(const words_t *words, export_fn write, const char *ending)
{
    char path[4096];
    snprintf(path, sizeof path, "%s%s", words->traces[0], ending);
    const char *out = words->out ? words->out : path;
    model_t model = {0};
    keel_status_t status = load_path(&model, words->traces[0]);
    if (!status) status = file_write(&model, write, out);
    model_finish(&model);
    if (status) return trace_complain(status);
    if (strcmp(out, "-") != 0) printf("%s\n", out);
    return 0;
}

int trace_export(int argc, char **argv)
{
    static const struct {
        const char *name, *ending;
        export_fn write;
    } formats[] = {{"perfetto", ".pftrace", export_perfetto},
                   {"chrome", ".json", export_chrome},
                   {"csv", ".csv", export_csv},
                   {"rocpd3", ".rocpd3", NULL}};
    words_t words = {.format = "perfetto"};
    if (!words_read(&words, argc, argv)) return 2;
    if (words.count != 1) {
        fprintf(stderr, "keel trace export: one trace is wanted\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(words.format, formats[i].name) == 0)
            return trace_convert(&words, formats[i].write, formats[i].ending);
    fprintf(stderr,
            "keel trace export: there is no format %s, but perfetto, chrome, csv and rocpd3\n",
            words.format);
    return 2;
}

int trace_report(int argc, char **argv)
{
    words_t words = {0};
    if (!words_read(&words, argc, argv)) return 2;
    if (words.count == 1) return trace_convert(&words, export_report, ".html");
    fprintf(stderr, "keel trace report: one trace is wanted\n");
    return 2;
}

int trace_merge(int argc, char **argv)
{
    words_t words = {0};
    model_t model = {0};
    keel_status_t status = NULL;
    if (!words_read(&words, argc, argv)) return 2;
    if (!words.out || words.count < 2) {
        fprintf(stderr, "keel trace merge: -o FILE and at least two traces are wanted\n");
        return 2;
    }
    for (int i = 0; !status && i < words.count; i++) {
        int64_t moved_ns;
        status = merge_add(&model, words.traces[i], &moved_ns);
        if (!status && moved_ns)
            printf("%s: of another start of a machine: moved by %.6f s\n", words.traces[i],
                   (double)moved_ns / 1e9);
    }
    if (!status) status = rocpd_write(&model, words.out);
    model_finish(&model);
    return status ? trace_complain(status) : 0;
}

int trace_compare(int argc, char **argv)
{
    words_t words = {0};
    model_t models[2];
    memset(models, 0, sizeof models);
    if (!words_read(&words, argc, argv)) return 2;
    if (words.count != 2) {
        fprintf(stderr, "keel trace compare: two traces are wanted, the one before first\n");
        return 2;
    }
    keel_status_t status = load_path(&models[0], words.traces[0]);
    if (!status) status = load_path(&models[1], words.traces[1]);
    if (!status) status = compare_print(&models[0], &models[1], words.limit, stdout);
    for (int i = 0; i < 2; i++) model_finish(&models[i]);
    return status ? trace_complain(status) : 0;
}
