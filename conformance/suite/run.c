// SPDX-License-Identifier: Apache-2.0
#include "suite/run.h"

#include <dirent.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Thread_local jmp_buf *run_exit;

static settings_t current;
static result_t *result_now;
static pthread_mutex_t outcome_lock = PTHREAD_MUTEX_INITIALIZER;

const settings_t *run_settings(void)
{
    return &current;
}

result_t *run_result(void)
{
    return result_now;
}

void run_outcome(outcome_t outcome, const char *format, ...)
{
    pthread_mutex_lock(&outcome_lock);
    outcome_t before = result_now->outcome;
    if (before == OUTCOME_PASSED || (before == OUTCOME_STARVED && outcome == OUTCOME_FAILED)) {
        result_now->outcome = outcome;
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(result_now->reason, sizeof result_now->reason, format, arguments);
        va_end(arguments);
    }
    pthread_mutex_unlock(&outcome_lock);
}

outcome_t run_outcome_now(void)
{
    pthread_mutex_lock(&outcome_lock);
    outcome_t outcome = result_now->outcome;
    pthread_mutex_unlock(&outcome_lock);
    return outcome;
}

void run_leave(void)
{
    if (!run_exit) {
        fprintf(stderr, "a check failed on a thread of the library: nowhere to go\n");
        abort();
    }
    longjmp(*run_exit, 1);
}

static double crowd = 1; // threads that want each processor

void limits_adapt(void)
{
    enum { MOST = 8 };
    FILE *file = fopen("/proc/loadavg", "re");
    double minute = 0, processors = (double)sysconf(_SC_NPROCESSORS_ONLN);
    unsigned running = 0;
    char line[128];
    bool told = file && fgets(line, sizeof line, file) &&
                sscanf(line, "%lf %*f %*f %u", &minute, &running) == 2;
    if (file) fclose(file);
    double wanted = minute > running ? minute : running;
    crowd = told && wanted > processors ? wanted / processors : 1;
    if (crowd > MOST) crowd = MOST;
}

// What a test may take of the usual limit.
static double share_of(const test_t *test)
{
    return test && test->seconds ? test->seconds / 20.0 : 1.0;
}

double limit_of(const settings_t *settings, const test_t *test)
{
    return crowd * settings->limit_s * share_of(test);
}

// The entries of a folder, less itself and its parent: open descriptors, threads.
static int entries_of(const char *path, bool (*left_out)(const char *name))
{
    DIR *folder = opendir(path);
    if (!folder) return 0;
    int count = 0;
    const struct dirent *entry;
    while ((entry = readdir(folder)))
        count += entry->d_name[0] != '.' && !(left_out && left_out(entry->d_name));
    closedir(folder);
    return count;
}

// One that was joined is there until the system has done away with it, as one that ends.
static bool is_ending(const char *thread)
{
    enum { ENDS = 4 }; // the kernel's PF_EXITING
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/stat", thread);
    FILE *file = fopen(path, "r");
    if (!file) return true;
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = 0;
    const char *rest = strrchr(text, ')'); // behind its name
    unsigned flags = 0;
    return !rest || (sscanf(rest, ") %*c %*d %*d %*d %*d %*d %u", &flags) == 1 && flags & ENDS);
}

typedef struct footprint_t {
    int descriptors, threads;
} footprint_t;

int threads_now(void)
{
    return entries_of("/proc/self/task", is_ending);
}

static footprint_t footprint_now(void)
{
    if (current.under_tool) return (footprint_t){0};
    return (footprint_t){entries_of("/dev/fd/", NULL), threads_now()};
}

// What there was before the test: nothing, unless tests share a process.
static struct {
    keel_live_t live;
    int64_t allocations;
    size_t vendor; // fault_left
} base;

static bool is_clean(const keel_live_t *live, footprint_t before, footprint_t now)
{
    char text[1];
    return fault_left(current.uri, text, sizeof text) == base.vendor &&
           memcmp(live, &base.live, sizeof *live) == 0 &&
           starve_outstanding() == base.allocations && before.descriptors == now.descriptors &&
           before.threads >= now.threads;
}

static void print_leaks(const keel_live_t *live, footprint_t before, footprint_t now)
{
    const struct {
        const char *name;
        int64_t count;
    } counts[] = {
        {"devices", live->devices - base.live.devices},
        {"queues", live->queues - base.live.queues},
        {"semaphores", live->semaphores - base.live.semaphores},
        {"buffers", live->buffers - base.live.buffers},
        {"pools", live->pools - base.live.pools},
        {"executables", live->executables - base.live.executables},
        {"recordings", live->recordings - base.live.recordings},
        {"files", live->files - base.live.files},
        {"completions", live->completions - base.live.completions},
        {"submissions", live->submissions - base.live.submissions},
        {"statuses", live->statuses - base.live.statuses},
        {"allocations", starve_outstanding() - base.allocations},
        {"descriptors", now.descriptors - before.descriptors},
        {"threads", now.threads - before.threads},
    };
    char text[512] = "", vendor[300];
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        size_t used = strlen(text);
        if (!counts[i].count) continue;
        snprintf(text + used, sizeof text - used, " %s %lld", counts[i].name,
                 (long long)counts[i].count);
    }
    if (fault_left(current.uri, vendor, sizeof vendor) != base.vendor) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, " of the vendor's library: %s", vendor);
    }
    fprintf(stderr, "left after the test:%s\n", text);
    run_outcome(OUTCOME_FAILED, "left after the test:%s", text);
}

// Of a device that is lost nothing is given back: the vendor's own library keeps its threads then.
static bool vendor_keeps(void)
{
    const vendor_t *vendor = fault_vendor(current.uri);
    return vendor && vendor->keeps && fault_hit();
}

// A device that was closed on a worker of its own ends a little later, and so do its threads.
static void check_leaks(footprint_t before)
{
    double patience_s = current.limit_s < 20 ? current.limit_s * 0.15 : 3;
    uint64_t deadline = keel_now_ns() + (uint64_t)(patience_s * 1e9);
    for (unsigned ms = 0;; ms = ms * 2 + 1) {
        keel_live_t live;
        keel_live_objects(&live);
        footprint_t now = vendor_keeps() ? before : footprint_now();
        if (is_clean(&live, before, now)) return;
        if (keel_now_ns() > deadline) {
            print_leaks(&live, before, now);
            return;
        }
        sleep_ms(ms < 50 ? ms : 50);
    }
}

static void show_log(void *user, keel_log_level_t level, const char *text)
{
    fprintf(stderr, "keel log: %s\n", text);
}

// ROCm, up to its release 6, ends the process when a kernel goes astray, unless a driver takes that
// on itself.
static bool survives(keel_device_t *device)
{
    const keel_device_info_t *info = keel_device_info(device);
    int major = 7;
    (void)sscanf(info->api, "HIP %d", &major);
    return major >= 7 || strncmp(info->target, "gfx", 3) != 0;
}

// Whether memory that the process may not write can be imported.
static bool reads_only(keel_device_t *device)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_HOST, .handle.host = page, .size = size};
    keel_buffer_options_t options = {.access = KEEL_ACCESS_READ};
    keel_buffer_t *buffer = NULL;
    if (page == MAP_FAILED) abort();
    keel_status_t status = keel_buffer_import(device, &external, &options, &buffer);
    bool reads = !status;
    keel_status_release(status);
    keel_buffer_release(buffer);
    munmap(page, size);
    return reads;
}

static void run_body(const job_t *job)
{
    jmp_buf point;
    run_exit = &point;
    if (!setjmp(point)) {
        if (job->test) {
            job->test->body();
        } else {
            result_now->probe =
                (probe_t){*the_caps(), survives(the_device()), reads_only(the_device())};
        }
    }
    run_exit = NULL;
    if (job->test && !result_now->checked && !starved()) {
        fprintf(stderr, "the test checked nothing\n");
        run_outcome(OUTCOME_FAILED, "the test checked nothing");
    }
}

void run_job(const settings_t *settings, const job_t *job, result_t *result)
{
    fault_seed(settings, job);
    if (!settings->under_tool) warm_up(settings, job->test);
    fault_install(settings, job);
    current = *settings;
    current.seed = job->seed;
    current.limit_s *= share_of(job->test); // what waits in the test may take as long
    row("%s", "");
    result_now = result;
    footprint_t before = footprint_now();
    // In every mode: what is outstanding at the end is a leak.
    starve_install(settings->mode == MODE_TORTURE ? job->fail_at : 0);
    keel_log_set(show_log, NULL, KEEL_LOG_WARNING);
    keel_live_objects(&base.live);
    base.allocations = starve_outstanding();
    base.vendor = fault_left(current.uri, (char[1]){0}, 1);

    uint64_t start = keel_now_ns();
    result->outcome = OUTCOME_PASSED;
    run_body(job);
    outcome_t outcome = run_outcome_now();
    fixture_finish(outcome != OUTCOME_PASSED && outcome != OUTCOME_SKIPPED);
    fixture_forget();
    check_leaks(before);
    result->seconds = (double)(keel_now_ns() - start) / 1e9;
    result->places = settings->mode == MODE_FAULT ? fault_calls(result->tallies) : allocations();
    result->hit = starved();
    result->finished = true;
}
