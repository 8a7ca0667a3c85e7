// SPDX-License-Identifier: Apache-2.0
// keel trace export, report, merge and compare: what becomes of traces that were written.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/trace/trace.h"
#include "tools/trace/words.h"
#include "tracer/compare.h"
#include "tracer/export.h"
#include "tracer/load.h"
#include "tracer/merge.h"
#include "tracer/replace.h"
#include "tracer/rocpd.h"
#include "tracer/rocpd3.h"

typedef keel_status_t (*export_fn)(const model_t *model, FILE *out); // NULL: rocpd3_write

// Writes to `out`, or to `path` if that is NULL, and closes it.
static keel_status_t stream_write(const model_t *model, export_fn write, FILE *out,
                                  const char *path)
{
    bool to_stdout = out != NULL;
    if (!out) out = fopen(path, "we");
    if (!out) return KEEL_ERROR(KEEL_IO, "%s: %s", path, strerror(errno));
    keel_status_t status = write(model, out);
    bool failed = ferror(out) || fflush(out) != 0;
    int error = errno;
    if (!to_stdout && fclose(out) != 0) failed = true, error = errno;
    if (!status && failed) status = KEEL_ERROR(KEEL_IO, "%s: %s", path, strerror(error));
    return status;
}

static bool is_device_or_pipe(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISDIR(about.st_mode);
}

// Writes a file of a model, which replaces one of that name once it is whole; "-": to stdout.
static keel_status_t file_write(const model_t *model, export_fn write, const char *path)
{
    char making[REPLACE_NAME];
    bool to_stdout = strcmp(path, "-") == 0;
    if (!write && to_stdout)
        return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "-o -: a database needs a file of its own");
    if (!write) return rocpd3_write(model, path);
    if (to_stdout) return stream_write(model, write, stdout, "standard output");
    if (is_device_or_pipe(path)) return stream_write(model, write, NULL, path);
    KEEL_TRY(replace_begin(path, making));
    return replace_end(stream_write(model, write, NULL, making), making, path);
}

static bool is_same_file(const char *one, const char *other)
{
    struct stat a, b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

// Reads the one trace and writes a file of it, whose name is the trace's with an ending if none is
// given. A folder may be named with a slash at its end.
static int trace_convert(const words_t *words, export_fn write, const char *ending)
{
    char path[4096];
    int length = (int)strlen(words->traces[0]);
    while (length > 1 && words->traces[0][length - 1] == '/') length--;
    snprintf(path, sizeof path, "%.*s%s", length, words->traces[0], ending);
    const char *out = words->out ? words->out : path;
    model_t model = {0};
    keel_status_t status = load_path(&model, words->traces[0]);
    if (!status && is_same_file(words->traces[0], out))
        status = KEEL_ERROR(KEEL_INVALID_ARGUMENT, "-o: %s is the trace itself", out);
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
    words_t words;
    if (!words_read(&words, "of", argc, argv)) return 2;
    if (!words.format) words.format = "perfetto";
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
    words_t words;
    if (!words_read(&words, "o", argc, argv)) return 2;
    if (words.count == 1) return trace_convert(&words, export_report, ".html");
    fprintf(stderr, "keel trace report: one trace is wanted\n");
    return 2;
}

int trace_merge(int argc, char **argv)
{
    words_t words;
    model_t model = {0};
    keel_status_t status = NULL;
    if (!words_read(&words, "o", argc, argv)) return 2;
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
    words_t words;
    model_t models[2];
    memset(models, 0, sizeof models);
    if (!words_read(&words, "n", argc, argv)) return 2;
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
