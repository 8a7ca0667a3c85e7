// SPDX-License-Identifier: Apache-2.0
#include "graphs/stress.h"
#include "graphs/command.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "usage: keel stress [--device=URI] [options]\n"
    "  --device=URI         the device (cpu://)\n"
    "  --workers-list=LIST  cpu://: numbers of workers, a run with each: 1,2,4,16\n"
    "  --submissions=N      in each run (1000000)\n"
    "  --threads=N          that submit (4)\n"
    "  --seed=N             of everything random (1)\n"
    "  --limit=N            seconds without progress that count as a hang (5)\n";

typedef struct settings_t {
    const char *uri, *workers;
    double submissions, threads, seed, limit_s;
    bool help;
} settings_t;

static keel_status_t submitter_init(stress_t *stress, size_t number, uint64_t seed)
{
    submitter_t *self = &stress->submitters[number];
    keel_device_t *device = stress->env.devices[0].device;
    keel_buffer_options_t word = {
        .size = sizeof self->word, .memory = KEEL_MEMORY_HOST_VISIBLE, .name = "word"};
    self->stress = stress;
    self->random.state = random_mix(seed + number);
    keel_buffer_options_t scratch = {.size = STRESS_SLOTS * STRESS_SLOT, .name = "scratch"};
    KEEL_TRY(keel_buffer_create(device, &scratch, &self->scratch));
    KEEL_TRY(keel_buffer_create(device, &word, &self->buffer));
    KEEL_TRY(keel_buffer_write(self->buffer, 0, &self->word, sizeof self->word));
    KEEL_TRY(keel_semaphore_create(device, NULL, &self->gate));
    KEEL_TRY(keel_semaphore_create(device, NULL, &self->question));
    return keel_semaphore_create(device, NULL, &self->answer);
}

static void submitter_finish(submitter_t *self)
{
    keel_buffer_release(self->buffer);
    keel_buffer_release(self->scratch);
    keel_semaphore_release(self->gate);
    keel_semaphore_release(self->question);
    keel_semaphore_release(self->answer);
}

static void hang_tell(const stress_t *stress)
{
    printf("no progress; what the threads were at:\n");
    for (size_t i = 0; i < stress->thread_count; i++) {
        const submitter_t *self = &stress->submitters[i];
        uint64_t question = 0, answer = 0, timeline = 0;
        keel_status_release(keel_semaphore_value(self->question, &question));
        keel_status_release(keel_semaphore_value(self->answer, &answer));
        keel_status_release(
            keel_semaphore_value(keel_queue_timeline(stress->env.devices[0].queues[0]), &timeline));
        printf("  thread %zu: %s, %" PRIu64 " submitted, question at %" PRIu64
               ", answer at %" PRIu64 ", queue 0 at %" PRIu64 "\n",
               i, atomic_load(&self->doing), atomic_load(&self->submitted), question, answer,
               timeline);
    }
}

// Until all threads are through. False if nothing moves any more.
static bool stress_watch(stress_t *stress, double limit_s)
{
    struct timespec pause = {0, 20000000};
    uint64_t steps = 0, since = keel_now_ns();
    while (atomic_load(&stress->running) && !atomic_load(&stress->problem)) {
        uint64_t now = atomic_load(&stress->steps);
        if (now != steps) since = keel_now_ns();
        steps = now;
        if ((double)(keel_now_ns() - since) > limit_s * 1e9) return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

static void echoes_stop(stress_t *stress)
{
    atomic_store(&stress->stop, true);
    for (size_t i = 0; i < stress->thread_count; i++) {
        submitter_t *self = &stress->submitters[i];
        keel_status_release(keel_semaphore_signal(self->question, self->question_value + 1));
        pthread_join(self->echo, NULL);
    }
}

static void threads_start(stress_t *stress)
{
    atomic_store(&stress->running, stress->thread_count);
    for (size_t i = 0; i < stress->thread_count; i++) {
        submitter_t *self = &stress->submitters[i];
        if (pthread_create(&self->echo, NULL, echo_run, self)) abort();
        if (pthread_create(&self->thread, NULL, submitter_run, self)) abort();
    }
}

static uint64_t submissions_total(stress_t *stress)
{
    uint64_t total = 0;
    for (size_t i = 0; i < stress->thread_count; i++)
        total += atomic_load(&stress->submitters[i].submitted);
    return total;
}

static bool live_none(void)
{
    keel_live_t live;
    keel_live_objects(&live);
    bool none = !live.devices && !live.queues && !live.semaphores && !live.buffers &&
                !live.submissions && !live.statuses && !live.executables && !live.pools;
    if (!none) printf("objects are left\n");
    return none;
}

static bool stress_play(stress_t *stress, double limit_s, const char *uri)
{
    uint64_t begin = keel_now_ns();
    threads_start(stress);
    if (!stress_watch(stress, limit_s)) {
        printf("%s: ", uri);
        hang_tell(stress);
        return false;
    }
    const char *problem = atomic_load(&stress->problem);
    if (problem) {
        printf("%s: %s\n", uri, problem);
        return false;
    }
    double seconds = (double)(keel_now_ns() - begin) / 1e9;
    uint64_t total = submissions_total(stress);
    printf("%s: %" PRIu64 " submissions in %.2f s, %.0f per second\n", uri, total, seconds,
           (double)total / seconds);
    fflush(stdout);
    for (size_t i = 0; i < stress->thread_count; i++)
        pthread_join(stress->submitters[i].thread, NULL);
    echoes_stop(stress);
    return true;
}

bool stress_run(const stress_options_t *options, const char *uri)
{
    stress_t *stress = calloc(1, sizeof *stress);
    if (!stress) abort();
    stress->thread_count = options->threads;
    stress->submissions = options->submissions / options->threads;
    stress->mute = options->mute;
    keel_status_t status = env_open(&stress->env, &uri, 1);
    for (size_t i = 0; !status && i < stress->thread_count; i++)
        status = submitter_init(stress, i, options->seed);
    if (status) {
        keel_status_print(status, stderr);
        keel_status_release(status);
        return false;
    }
    if (!stress_play(stress, options->limit_s, uri)) return false;
    for (size_t i = 0; i < stress->thread_count; i++) submitter_finish(&stress->submitters[i]);
    env_close(&stress->env);
    free(stress);
    return live_none();
}

static int stress_all(const settings_t *settings)
{
    const char *list = settings->workers;
    // Others have as many as they have.
    bool counted = strncmp(settings->uri, "cpu:", 4) == 0 && !strstr(settings->uri, "inline");
    unsigned passed = 0;
    stress_options_t run = {.submissions = (uint64_t)settings->submissions,
                            .seed = (uint64_t)settings->seed,
                            .threads = (size_t)settings->threads,
                            .limit_s = settings->limit_s};
    do {
        char uri[200], *end = (char *)list;
        unsigned long workers = strtoul(list, &end, 10);
        snprintf(uri, sizeof uri, "%s%cthreads=%lu", settings->uri,
                 strchr(settings->uri, '?') ? '&' : '?', workers);
        bool good = stress_run(&run, counted ? uri : settings->uri);
        passed += good;
        if (!good) {
            printf("%u passed, 1 failed\n", passed);
            fflush(stdout);
            _exit(1);
        }
        list = *end ? end + 1 : end;
    } while (*list && counted);
    printf("%u passed, 0 failed\n", passed);
    return 0;
}

enum {
    OPTION_DEVICE = 256,
    OPTION_WORKERS,
    OPTION_SUBMISSIONS,
    OPTION_THREADS,
    OPTION_SEED,
    OPTION_LIMIT,
    OPTION_HELP,
};

static const struct option options[] = {
    {"device", required_argument, NULL, OPTION_DEVICE},
    {"workers-list", required_argument, NULL, OPTION_WORKERS},
    {"submissions", required_argument, NULL, OPTION_SUBMISSIONS},
    {"threads", required_argument, NULL, OPTION_THREADS},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"limit", required_argument, NULL, OPTION_LIMIT},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static bool number_read(const char *what, double least, double most, double *number)
{
    char *end;
    errno = 0;
    *number = strtod(optarg, &end);
    if (!errno && end != optarg && !*end && *number >= least && *number <= most) return true;
    fprintf(stderr, "keel stress: --%s=%s: give a number from %g to %g\n", what, optarg, least,
            most);
    return false;
}

static bool workers_read(settings_t *settings)
{
    settings->workers = optarg;
    bool good = optarg[0] && strspn(optarg, "0123456789,") == strlen(optarg);
    for (const char *c = optarg; good && *c; c++)
        if (*c == ',' && (c == optarg || !c[1] || c[1] == ',')) good = false;
    if (!good) fprintf(stderr, "keel stress: --workers-list=%s: give numbers as 1,2,4\n", optarg);
    return good;
}

static bool option_read(settings_t *settings, int option)
{
    switch (option) {
    case OPTION_DEVICE: settings->uri = optarg; return true;
    case OPTION_WORKERS: return workers_read(settings);
    case OPTION_SUBMISSIONS: return number_read("submissions", 1, 1e12, &settings->submissions);
    case OPTION_THREADS: return number_read("threads", 1, STRESS_THREADS, &settings->threads);
    case OPTION_SEED: return number_read("seed", 0, 1e15, &settings->seed);
    case OPTION_LIMIT: return number_read("limit", 0.1, 1e4, &settings->limit_s);
    case OPTION_HELP: settings->help = true; return true;
    default: return false;
    }
}

int stress_main(int argc, char **argv)
{
    settings_t settings = {.uri = "cpu://", .workers = "1,2,4,16"};
    bool good = true;
    settings.submissions = 1000000;
    settings.threads = 4;
    settings.seed = 1;
    settings.limit_s = 5;
    optind = 1;
    for (int option; good && (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        good = option_read(&settings, option);
    if (good && optind != argc) {
        fprintf(stderr, "keel stress: %s: no such argument\n", argv[optind]);
        good = false;
    }
    if (!good || settings.help) fputs(usage, good ? stdout : stderr);
    if (!good || settings.help) return good ? 0 : 2;
    return stress_all(&settings);
}
