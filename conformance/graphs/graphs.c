// SPDX-License-Identifier: Apache-2.0
#include "graphs/check.h"
#include "graphs/command.h"
#include "graphs/listing.h"
#include "graphs/report.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: keel graphs [--device=URI ...] [options]\n"
    "  --device=URI      a device to use, several for graphs over several; SEED in it stands for\n"
    "                    another number with each batch\n"
    "  --count=N         graphs to run (10000)\n"
    "  --seed=N          of the first graph (1)\n"
    "  --seconds=N       run until that time has passed, however many graphs that is\n"
    "  --threads=N       at most so many threads submit (4)\n"
    "  --jobs=N          batches of graphs that run at a time, each in a process (8)\n"
    "  --no-failures     inject none\n"
    "  --replay=WHAT     run one graph again and again: a seed, or a file with a listing\n"
    "  --limit=N         seconds after which a graph counts as hanging (20)\n"
    "  --minimise=N      seconds to spend on making a failing graph small (60)\n"
    "  --verbose         tell of each batch\n";

enum { BATCH = 200, MOST_FAILURES = 5, MOST_JOBS = 64, URI_SIZE = 96 };

typedef struct settings_t {
    const char *command; // its words, for messages that repeat it
    const char *uris[MAX_DEVICES];
    size_t uri_count;
    double count, seed, seconds, threads, jobs, limit_s, minimise_s;
    const char *replay;
    bool no_failures, verbose, help, counted;
} settings_t;

typedef struct tally_t {
    uint64_t passed, failed;
} tally_t;

// Without a choice: all that the cpu driver has to offer.
static void devices_default(settings_t *settings)
{
    static const char *const uris[] = {"cpu://", "cpu://inline", "cpu://?nodes=2",
                                       "cpu://?threads=4", "cpu://?shuffle=SEED"};
    if (settings->uri_count) return;
    settings->uri_count = sizeof uris / sizeof uris[0];
    memcpy(settings->uris, uris, sizeof uris);
}

// The URIs with this batch's seed put in.
static void uris_expand(const settings_t *settings, uint64_t seed, char texts[][URI_SIZE],
                        const char **uris)
{
    for (size_t i = 0; i < settings->uri_count; i++) {
        const char *uri = settings->uris[i], *mark = strstr(uri, "SEED");
        if (mark)
            snprintf(texts[i], URI_SIZE, "%.*s%" PRIu64 "%s", (int)(mark - uri), uri, seed,
                     mark + 4);
        else
            snprintf(texts[i], URI_SIZE, "%s", uri);
        uris[i] = texts[i];
    }
}

static job_t job_make(const settings_t *settings, const char *const *uris)
{
    job_t job = {.uris = uris, .uri_count = settings->uri_count};
    job.generate.threads = (uint8_t)settings->threads;
    job.generate.failures = !settings->no_failures;
    job.run.limit_s = settings->limit_s;
    return job;
}

static void failure_tell(const settings_t *settings, page_t *page, const job_t *job, bool minimise)
{
    printf("\n# seed %" PRIu64 " failed\n", page->graph.seed);
    failure_print(page, stdout);
    if (!minimise || settings->minimise_s <= 0) return;
    printf("\n# seed %" PRIu64 " made smaller: save as a file, %s --replay=FILE\n",
           page->graph.seed, settings->command);
    failure_minimise(page, job, settings->minimise_s, stdout);
    failure_print(page, stdout);
}

// Seeds that one child goes through. A batch is used where it lies: its job points into it.
typedef struct batch_t {
    char texts[MAX_DEVICES][URI_SIZE];
    const char *uris[MAX_DEVICES];
    job_t job;
    page_t *page;
    pid_t child;
} batch_t;

static void batch_begin(const settings_t *settings, batch_t *batch, uint64_t seed, uint64_t count)
{
    uris_expand(settings, seed, batch->texts, batch->uris);
    batch->job = job_make(settings, batch->uris);
    batch->job.first_seed = seed;
    batch->job.count = count;
    batch->page = page_create();
    batch->child = child_fork(batch->page, &batch->job);
}

static void batch_drop(batch_t *batch)
{
    child_end(batch->child);
    page_destroy(batch->page);
}

// Waits for the batch's child and tells what it found. Returns how many seeds are through: fewer
// than the batch has after a failure, none if nothing can be run at all.
static uint64_t batch_end(const settings_t *settings, batch_t *batch, tally_t *tally)
{
    page_t *page = batch->page;
    child_watch(page, batch->child, &batch->job);
    uint64_t through = atomic_load(&page->passed);
    int state = atomic_load(&page->state);
    tally->passed += through;
    if (settings->verbose)
        printf("seeds from %" PRIu64 ": %" PRIu64 " passed\n", batch->job.first_seed, through);
    if (state == CHILD_BROKEN) {
        fprintf(stderr, "keel graphs: %s", page->judgement.complaints);
        through = 0;
    }
    if (state == CHILD_FAILED) {
        tally->failed++;
        failure_tell(settings, page, &batch->job, true);
        through++;
    }
    page_destroy(page);
    return through;
}

// Batches under way, oldest first, in a ring: they are told of in the order of their seeds.
typedef struct line_t {
    batch_t *batches;
    size_t size, first, count;
} line_t;

static batch_t *line_add(line_t *line)
{
    return &line->batches[(line->first + line->count++) % line->size];
}

static batch_t *line_take(line_t *line)
{
    batch_t *batch = &line->batches[line->first];
    line->first = (line->first + 1) % line->size;
    line->count--;
    return batch;
}

// Waits for a batch, and for what it left after a failure. False if nothing can be run at all.
static bool batch_finish(const settings_t *settings, batch_t *batch, tally_t *tally)
{
    for (;;) {
        uint64_t seed = batch->job.first_seed, count = batch->job.count;
        uint64_t through = batch_end(settings, batch, tally);
        if (!through) return false;
        if (through >= count || tally->failed == MOST_FAILURES) return true;
        batch_begin(settings, batch, seed + through, count - through);
    }
}

static bool time_is_up(const settings_t *settings, uint64_t begin)
{
    return settings->seconds > 0 && (double)(keel_now_ns() - begin) >= settings->seconds * 1e9;
}

static bool batches_run(const settings_t *settings, uint64_t count, line_t *line, tally_t *tally)
{
    uint64_t begin = keel_now_ns(), begun = 0;
    bool good = true;
    while (good && tally->failed < MOST_FAILURES) {
        while (line->count < line->size && begun < count && !time_is_up(settings, begin)) {
            uint64_t size = count - begun < BATCH ? count - begun : BATCH;
            batch_begin(settings, line_add(line), (uint64_t)settings->seed + begun, size);
            begun += size;
        }
        if (!line->count) break;
        good = batch_finish(settings, line_take(line), tally);
    }
    while (line->count) batch_drop(line_take(line));
    return good;
}

static int graphs_run(settings_t *settings)
{
    tally_t tally = {0, 0};
    batch_t batches[MOST_JOBS];
    line_t line = {.batches = batches, .size = (size_t)settings->jobs};
    bool timed = settings->seconds > 0;
    devices_default(settings);
    uint64_t count = timed && !settings->counted ? UINT64_MAX : (uint64_t)settings->count;
    if (!batches_run(settings, count, &line, &tally)) return 2;
    printf("%" PRIu64 " passed, %" PRIu64 " failed\n", tally.passed, tally.failed);
    return tally.failed ? 1 : 0;
}

static char *file_read(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;
    if (!file) return NULL;
    if (getdelim(&text, &size, 0, file) < 0) {
        free(text);
        text = NULL;
    }
    fclose(file);
    return text;
}

// Puts the graph of a file on the page; its devices are used unless others were given.
static bool replay_load(settings_t *settings, page_t *page)
{
    char message[200] = "cannot be read";
    char *text = file_read(settings->replay);
    bool good = text && graph_parse(text, &page->graph, message, sizeof message);
    free(text);
    if (!good) fprintf(stderr, "keel graphs: %s: %s\n", settings->replay, message);
    for (size_t i = 0; good && settings->uri_count < page->graph.device_count; i++)
        settings->uris[settings->uri_count++] = strdup(page->graph.uris[i]);
    return good;
}

static int replay_run(settings_t *settings)
{
    char texts[MAX_DEVICES][URI_SIZE], *end;
    const char *uris[MAX_DEVICES];
    page_t *page = page_create();
    uint64_t seed = strtoull(settings->replay, &end, 10);
    bool by_seed = end != settings->replay && !*end;
    if (!by_seed && !replay_load(settings, page)) return 2;
    devices_default(settings);
    uris_expand(settings, by_seed ? seed : page->graph.seed, texts, uris);
    job_t job = job_make(settings, uris);
    job.first_seed = seed;
    job.count = 1;
    if (by_seed) child_run(page, &job);
    tally_t tally = {by_seed ? atomic_load(&page->passed) : 0, 0};
    if (!by_seed || atomic_load(&page->state) == CHILD_DONE) {
        job.repeat = true;
        job.count = settings->counted ? (uint64_t)settings->count : 100;
        child_run(page, &job);
        tally.passed += atomic_load(&page->passed);
    }
    int state = atomic_load(&page->state);
    if (state == CHILD_BROKEN) fprintf(stderr, "keel graphs: %s", page->judgement.complaints);
    if (state == CHILD_FAILED) {
        tally.failed = 1;
        failure_tell(settings, page, &job, by_seed);
    } else if (settings->verbose) {
        failure_print(page, stdout);
    }
    page_destroy(page);
    if (state == CHILD_BROKEN) return 2;
    printf("%" PRIu64 " passed, %" PRIu64 " failed\n", tally.passed, tally.failed);
    return tally.failed ? 1 : 0;
}

enum {
    OPTION_DEVICE = 256,
    OPTION_COUNT,
    OPTION_SEED,
    OPTION_SECONDS,
    OPTION_THREADS,
    OPTION_JOBS,
    OPTION_NO_FAILURES,
    OPTION_REPLAY,
    OPTION_LIMIT,
    OPTION_MINIMISE,
    OPTION_VERBOSE,
    OPTION_HELP,
};

static const struct option options[] = {
    {"device", required_argument, NULL, OPTION_DEVICE},
    {"count", required_argument, NULL, OPTION_COUNT},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"seconds", required_argument, NULL, OPTION_SECONDS},
    {"threads", required_argument, NULL, OPTION_THREADS},
    {"jobs", required_argument, NULL, OPTION_JOBS},
    {"no-failures", no_argument, NULL, OPTION_NO_FAILURES},
    {"replay", required_argument, NULL, OPTION_REPLAY},
    {"limit", required_argument, NULL, OPTION_LIMIT},
    {"minimise", required_argument, NULL, OPTION_MINIMISE},
    {"verbose", no_argument, NULL, OPTION_VERBOSE},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static bool number_read(const char *what, double least, double most, double *number)
{
    char *end;
    errno = 0;
    *number = strtod(optarg, &end);
    if (!errno && end != optarg && !*end && *number >= least && *number <= most) return true;
    fprintf(stderr, "keel graphs: --%s=%s: give a number from %g to %g\n", what, optarg, least,
            most);
    return false;
}

static bool device_read(settings_t *settings)
{
    if (settings->uri_count == MAX_DEVICES || strlen(optarg) + 20 > URI_SIZE) {
        fprintf(stderr, "keel graphs: --device=%s: at most %d devices, of 76 characters\n", optarg,
                MAX_DEVICES);
        return false;
    }
    settings->uris[settings->uri_count++] = optarg;
    return true;
}

static bool option_read(settings_t *settings, int option)
{
    switch (option) {
    case OPTION_DEVICE: return device_read(settings);
    case OPTION_COUNT:
        settings->counted = true;
        return number_read("count", 1, 1e12, &settings->count);
    case OPTION_SEED: return number_read("seed", 0, 1e15, &settings->seed);
    case OPTION_SECONDS: return number_read("seconds", 0.1, 1e6, &settings->seconds);
    case OPTION_THREADS: return number_read("threads", 1, MAX_THREADS, &settings->threads);
    case OPTION_JOBS: return number_read("jobs", 1, MOST_JOBS, &settings->jobs);
    case OPTION_LIMIT: return number_read("limit", 0.1, 1e4, &settings->limit_s);
    case OPTION_MINIMISE: return number_read("minimise", 0, 1e5, &settings->minimise_s);
    case OPTION_REPLAY: settings->replay = optarg; return true;
    case OPTION_NO_FAILURES: settings->no_failures = true; return true;
    case OPTION_VERBOSE: settings->verbose = true; return true;
    case OPTION_HELP: settings->help = true; return true;
    default: return false;
    }
}

static bool arguments_read(int argc, char **argv, settings_t *settings)
{
    *settings = (settings_t){.command = argv[0],
                             .count = 10000,
                             .seed = 1,
                             .threads = 4,
                             .jobs = 8,
                             .limit_s = 20,
                             .minimise_s = 60};
    optind = 1;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        if (!option_read(settings, option)) return false;
    if (optind != argc) {
        fprintf(stderr, "keel graphs: %s: no such argument\n", argv[optind]);
        return false;
    }
    return true;
}

int graphs_main(int argc, char **argv)
{
    settings_t settings;
    if (!arguments_read(argc, argv, &settings)) {
        fputs(usage, stderr);
        return 2;
    }
    if (settings.help) {
        fputs(usage, stdout);
        return 0;
    }
    return settings.replay ? replay_run(&settings) : graphs_run(&settings);
}
