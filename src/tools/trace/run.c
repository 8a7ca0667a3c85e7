// SPDX-License-Identifier: Apache-2.0
// Runs a program with its trace in FILE.parts, and makes FILE of that.
#include <errno.h>
#include <math.h>
#include <regex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/trace/mode.h"
#include "tools/trace/parts.h"
#include "tools/trace/trace.h"
#include "tracer/control.h"
#include "tracer/load.h"
#include "tracer/rocpd.h"
#include "tracer/summary.h"

typedef struct options_t {
    const char *file;
    bool replace, all_calls;
    uint32_t limit;
    double delay_s, duration_s; // 0: none
    const char *kernels, *calls, *rank, *mode;
    char **program;
} options_t;

static bool number_read(const char *text, double *number)
{
    char *end;
    *number = strtod(text, &end);
    return *text && !*end && isfinite(*number) && *number > 0 && *number < 1e9;
}

// Takes one option with its value. Returns how many words that were; 0, and says so, if it is none.
static int option_take(options_t *options, char **argv, int left)
{
    const char *name = argv[0], *value = left > 1 ? argv[1] : NULL;
    const struct {
        const char *name;
        const char **text;
        double *seconds;
    } known[] = {
        {"-o", &options->file, NULL},
        {"-m", &options->mode, NULL},
        {"--delay", NULL, &options->delay_s},
        {"--duration", NULL, &options->duration_s},
        {"--kernel-filter", &options->kernels, NULL},
        {"--api-filter", &options->calls, NULL},
        {"--rank-from", &options->rank, NULL},
    };
    if (strcmp(name, "-f") == 0 || strcmp(name, "--all-calls") == 0) {
        *(name[1] == 'f' ? &options->replace : &options->all_calls) = true;
        return 1;
    }
    if (strcmp(name, "-n") == 0) {
        double number = 0;
        bool good = value && number_read(value, &number) && number >= 1;
        options->limit = (uint32_t)number;
        if (!good) fprintf(stderr, "keel trace: -n wants a number\n");
        return good ? 2 : 0;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(name, known[i].name) != 0) continue;
        bool good = value && *value;
        if (good && known[i].text) *known[i].text = value;
        if (good && known[i].seconds) good = number_read(value, known[i].seconds);
        if (!good)
            fprintf(stderr, "keel trace: %s wants %s\n", name,
                    known[i].seconds ? "a number of seconds" : "a value");
        return good ? 2 : 0;
    }
    fprintf(stderr, "keel trace: what is %s? The program stands after --\n", name);
    return 0;
}

static bool options_read(options_t *options, int argc, char **argv)
{
    int i = 1;
    while (i < argc && strcmp(argv[i], "--") != 0) {
        int words = option_take(options, argv + i, argc - i);
        if (!words) return false;
        i += words;
    }
    options->program = argv + i + 1;
    if (i + 1 < argc) return true;
    fprintf(stderr, "keel trace: which program? It stands after --: keel trace -- ./program\n");
    return false;
}

// A trace of that name: at once, so that what is there afterwards is of this program, whatever
// becomes of it.
static bool old_remove(const char *file, const char *parts)
{
    parts_remove(parts);
    if (unlink(file) == 0 || errno == ENOENT) return true;
    fprintf(stderr, "keel trace: %s: %s\n", file, strerror(errno));
    return false;
}

// Makes the folder for what the processes write and puts its full name into the environment.
static bool parts_make(const options_t *options, const char *parts)
{
    struct stat about;
    if (options->replace && !old_remove(options->file, parts)) return false;
    if (!options->replace && stat(options->file, &about) == 0) {
        fprintf(stderr,
                "keel trace: %s: File exists; name another one with -o, or replace it "
                "with -f\n",
                options->file);
        return false;
    }
    if (mkdir(parts, 0777) != 0) {
        fprintf(stderr, "keel trace: %s: %s%s\n", parts, strerror(errno),
                errno == EEXIST ? "; it is left of a tracer that was killed: keel trace summary "
                                  "reads it, -f replaces it"
                                : "");
        return false;
    }
    char *full = realpath(parts, NULL);
    bool set = full && setenv("KEEL_TRACE", full, 1) == 0 &&
               (!options->rank || setenv("KEEL_TRACE_RANK", options->rank, 1) == 0) &&
               (!options->all_calls || setenv("KEEL_TRACE_CALLS", "all", 1) == 0);
    if (!set) fprintf(stderr, "keel trace: %s: %s\n", parts, strerror(errno));
    free(full);
    return set;
}

// When to start and stop recording: by a timer, whose handler stores a word.
static struct {
    trace_control_t *control;
    double duration_s;
    bool starts; // what the timer does when it rings, whatever others did meanwhile
} timing;

static void timer_set(double seconds)
{
    struct itimerval timer = {0};
    timer.it_value.tv_sec = (time_t)seconds;
    timer.it_value.tv_usec = (suseconds_t)((seconds - floor(seconds)) * 1e6);
    if (!timer.it_value.tv_sec && !timer.it_value.tv_usec) timer.it_value.tv_usec = 1;
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void timer_rings(int signal)
{
    (void)signal;
    control_set(timing.control, timing.starts);
    if (timing.starts && timing.duration_s > 0) timer_set(timing.duration_s);
    timing.starts = false;
}

static bool timing_begin(const options_t *options, const char *parts)
{
    if (options->delay_s <= 0 && options->duration_s <= 0) return true;
    keel_status_t status = control_open(parts, &timing.control);
    if (status) return trace_complain(status) == 0;
    timing.duration_s = options->duration_s;
    timing.starts = options->delay_s > 0;
    struct sigaction action = {.sa_handler = timer_rings, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    control_set(timing.control, options->delay_s <= 0);
    timer_set(options->delay_s > 0 ? options->delay_s : options->duration_s);
    return true;
}

// Signals while the program runs. Those of the terminal reach it as well: it ends by them, or not,
// as it would alone. Others are meant for both, and are passed on.
static const int signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
enum { SIGNALS = sizeof signals / sizeof *signals, OF_TERMINAL = 2 };
static volatile pid_t program;

static void signal_pass(int number)
{
    int error = errno;
    if (program) kill(program, number);
    errno = error;
}

static void signals_take(struct sigaction old[SIGNALS])
{
    for (int i = 0; i < SIGNALS; i++) {
        struct sigaction action = {.sa_handler = i < OF_TERMINAL ? SIG_IGN : signal_pass,
                                   .sa_flags = SA_RESTART};
        sigaction(signals[i], NULL, &old[i]);
        if (old[i].sa_handler != SIG_IGN) sigaction(signals[i], &action, NULL); // not of nohup
    }
}

static void signals_give_back(const struct sigaction old[SIGNALS])
{
    for (int i = 0; i < SIGNALS; i++) sigaction(signals[i], &old[i], NULL);
}

// Waits for the program's end, until which no other process has its number.
static void program_wait(pid_t pid)
{
    siginfo_t info;
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR) continue;
    program = 0;
}

// Returns the exit status of the program, which has ended; 128 and the number if it was a signal.
static int program_status(pid_t pid)
{
    int status;
    if (waitpid(pid, &status, 0) < 0) return 1;
    if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
    fprintf(stderr, "keel trace: the program was ended by signal %d (%s)\n", WTERMSIG(status),
            strsignal(WTERMSIG(status)));
    return 128 + WTERMSIG(status);
}

static keel_status_t filter_read(const char *text, regex_t *regex, const regex_t **filter)
{
    char why[256];
    int error = text ? regcomp(regex, text, REG_EXTENDED | REG_NOSUB) : 0;
    if (text && !error) *filter = regex;
    if (!error) return NULL;
    regerror(error, regex, why, sizeof why);
    return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "%s is no regular expression: %s", text, why);
}

// Processes that outlive the program record on: what is there is told, and the trace is made later.
static void parts_leave(const options_t *options, const char *parts)
{
    fprintf(stderr,
            "\nINCOMPLETE: processes run still, which record into %s. Once they have ended, keel "
            "trace finish %s makes the trace\n",
            parts, options->file);
}

static keel_status_t parts_tell(const options_t *options, model_t *model, const set_t *set,
                                const char *parts)
{
    KEEL_TRY(load_set(model, set));
    if (!set->count)
        fprintf(stderr,
                "%s has no records: the program used nothing that is recorded, or could not write "
                "there\n",
                options->file);
    else if (!model->event_count)
        fprintf(stderr, "%s has no events: none happened while recording was on\n", options->file);
    KEEL_TRY(summary_print(model, options->limit, stderr));
    if (set->alive) {
        parts_leave(options, parts);
        return NULL;
    }
    if (set->count) KEEL_TRY(rocpd_write(model, options->file));
    parts_remove_read(parts, set);
    if (set->count) fprintf(stderr, "\nThe trace is in %s.\n", options->file);
    return NULL;
}

// Makes the database and tells what is in it. To stderr: what the program printed stays as it is.
static int parts_finish(const options_t *options, filter_t filter, const char *parts)
{
    model_t model = {.filter = filter};
    set_t set;
    keel_status_t status = set_open(&set, parts);
    if (!status) status = parts_tell(options, &model, &set, parts);
    set_close(&set);
    model_finish(&model);
    if (!status) return 0;
    trace_complain(status);
    fprintf(stderr, "keel trace: what was recorded is in %s; keel trace summary reads it\n", parts);
    return 1;
}

// Starts the program; -1, after a message, if that fails. No signal is lost before it is there.
static pid_t program_start(char **words, const struct sigaction old[SIGNALS])
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) {
        signals_give_back(old);
        sigprocmask(SIG_SETMASK, &before, NULL);
        execvp(words[0], words);
        fprintf(stderr, "keel trace: %s: %s\n", words[0], strerror(errno));
        _exit(127);
    }
    if (pid < 0)
        fprintf(stderr, "keel trace: %s\n", strerror(errno));
    else
        program = pid;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

static int program_run(const options_t *options, filter_t filter, const char *parts)
{
    struct sigaction old[SIGNALS];
    if (!mode_apply(options->mode) || !parts_make(options, parts) || !timing_begin(options, parts))
        return 1;
    signals_take(old);
    pid_t pid = program_start(options->program, old);
    if (pid < 0) return 1;
    program_wait(pid);
    timer_set(1e6);
    // From here on signals end the tool; what was recorded stays.
    signals_give_back(old);
    int status = program_status(pid);
    int failed = parts_finish(options, filter, parts);
    return status ? status : failed;
}

int trace_run(int argc, char **argv)
{
    options_t options = {.file = "keel-trace.db", .limit = 20, .mode = "auto"};
    regex_t kernels, calls;
    filter_t filter = {0};
    char parts[4096];
    if (!options_read(&options, argc, argv)) return 2;
    if ((size_t)snprintf(parts, sizeof parts, "%s.parts", options.file) >= sizeof parts) {
        fprintf(stderr, "keel trace: the name after -o is too long\n");
        return 2;
    }
    keel_status_t status = filter_read(options.kernels, &kernels, &filter.kernels);
    if (!status) status = filter_read(options.calls, &calls, &filter.calls);
    int result = status ? trace_complain(status) : program_run(&options, filter, parts);
    if (filter.kernels) regfree(&kernels);
    if (filter.calls) regfree(&calls);
    return result;
}
