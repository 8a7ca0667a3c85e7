// SPDX-License-Identifier: Apache-2.0
// Runs a program with its trace in FILE.parts, and makes FILE of that.
#include <errno.h>
#include <fcntl.h>
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
#include "tools/trace/words.h"
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

// The value of an option: behind its `=`, if it has two dashes, or the next word; NULL: none.
static const char *option_value(char **argv, int left, size_t *length, int *words)
{
    const char *equals = strncmp(argv[0], "--", 2) == 0 ? strchr(argv[0], '=') : NULL;
    const char *value = equals ? equals + 1 : left > 1 ? argv[1] : NULL;
    *length = equals ? (size_t)(equals - argv[0]) : strlen(argv[0]);
    *words = equals ? 1 : 2;
    return value && *value && strcmp(value, "--") != 0 ? value : NULL;
}

// Takes one option with its value. Returns how many words that were; 0, and says so, if it is none.
static int option_take(options_t *options, char **argv, int left)
{
    size_t length;
    int words;
    const char *name = argv[0], *value = option_value(argv, left, &length, &words);
    const struct {
        const char *name;
        const char **text;
        double *seconds;
        uint32_t *count;
    } known[] = {
        {"-o", &options->file, NULL, NULL},
        {"-m", &options->mode, NULL, NULL},
        {"-n", NULL, NULL, &options->limit},
        {"--delay", NULL, &options->delay_s, NULL},
        {"--duration", NULL, &options->duration_s, NULL},
        {"--kernel-filter", &options->kernels, NULL, NULL},
        {"--api-filter", &options->calls, NULL, NULL},
        {"--rank-from", &options->rank, NULL, NULL},
    };
    if (strcmp(name, "-f") == 0 || strcmp(name, "--all-calls") == 0) {
        *(name[1] == 'f' ? &options->replace : &options->all_calls) = true;
        return 1;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strlen(known[i].name) != length || strncmp(name, known[i].name, length) != 0) continue;
        bool good = value;
        if (good && known[i].text) *known[i].text = value;
        if (good && known[i].seconds) good = number_read(value, known[i].seconds);
        if (good && known[i].count) good = words_limit(value, known[i].count);
        if (!good)
            fprintf(stderr, "keel trace: %s wants %s\n", known[i].name,
                    known[i].seconds ? "a number of seconds"
                    : known[i].count ? "a number"
                                     : "a value");
        return good ? words : 0;
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
    struct stat about;
    const char *why = NULL;
    if (lstat(file, &about) == 0 && !S_ISREG(about.st_mode) && !S_ISLNK(about.st_mode))
        why = S_ISDIR(about.st_mode) ? "Is a directory" : "Not a file that could be replaced";
    else if (unlink(file) != 0 && errno != ENOENT)
        why = strerror(errno);
    if (why)
        fprintf(stderr, "keel trace: %s: %s\n", file, why);
    else
        parts_remove(parts);
    return !why;
}

// Makes the folder for what the processes write and puts its full name into the environment.
static bool parts_make(const options_t *options, const char *parts)
{
    struct stat about;
    if (parts_are_written(parts)) {
        fprintf(stderr, "keel trace: %s: processes run still that write there\n", parts);
        return false;
    }
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
    // In any case: by the page `keel trace stop` knows the tool's own number as well.
    keel_status_t status = control_open(parts, &timing.control);
    if (options->delay_s <= 0 && options->duration_s <= 0) {
        keel_status_release(status);
        return true;
    }
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

static keel_status_t filter_read(const char *option, const char *text, regex_t *regex,
                                 const regex_t **filter)
{
    char why[256];
    int error = text ? regcomp(regex, text, REG_EXTENDED | REG_NOSUB) : 0;
    if (text && !error) *filter = regex;
    if (!error) return NULL;
    regerror(error, regex, why, sizeof why);
    return KEEL_ERROR(KEEL_INVALID_ARGUMENT, "%s: '%s' is no regular expression: %s", option, text,
                      why);
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

// What the child does of a fork.
static _Noreturn void program_become(char **words, const struct sigaction old[SIGNALS],
                                     const sigset_t *mask, int failed)
{
    signals_give_back(old);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(words[0], words);
    int error = errno;
    while (write(failed, &error, sizeof error) < 0 && errno == EINTR) continue;
    _exit(127);
}

// Starts the program. No signal is lost before it is there. Returns 0, or why it did not start.
static int program_start(char **words, const struct sigaction old[SIGNALS])
{
    sigset_t all, before;
    int failed[2], error = 0; // a pipe that closes when the program takes the child's place
    if (pipe(failed) != 0) return errno;
    for (int i = 0; i < 2; i++) fcntl(failed[i], F_SETFD, FD_CLOEXEC);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t pid = fork();
    if (pid == 0) program_become(words, old, &before, failed[1]);
    if (pid < 0) error = errno;
    close(failed[1]);
    while (pid > 0 && read(failed[0], &error, sizeof error) < 0 && errno == EINTR) continue;
    close(failed[0]);
    if (!error) program = pid;
    if (error && pid > 0) waitpid(pid, NULL, 0);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return error;
}

// As of a shell.
static int start_failed(const char *name, const char *parts, int error)
{
    fprintf(stderr, "keel trace: %s: %s\n", name, strerror(error));
    parts_remove(parts);
    return error == ENOENT ? 127 : 126;
}

static int program_run(const options_t *options, filter_t filter, const char *parts)
{
    struct sigaction old[SIGNALS];
    if (!mode_apply(options->mode) || !parts_make(options, parts) || !timing_begin(options, parts))
        return 1;
    signals_take(old);
    int error = program_start(options->program, old);
    if (error) return start_failed(options->program[0], parts, error);
    pid_t pid = program;
    program_wait(pid);
    timer_set(1e6);
    // From here on signals end the tool; what was recorded stays. A reader of the summary that has
    // seen enough, as `head`, does not keep the trace from being made.
    signals_give_back(old);
    signal(SIGPIPE, SIG_IGN);
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
    keel_status_t status =
        filter_read("--kernel-filter", options.kernels, &kernels, &filter.kernels);
    if (!status) status = filter_read("--api-filter", options.calls, &calls, &filter.calls);
    int result = status ? trace_complain(status) : program_run(&options, filter, parts);
    if (filter.kernels) regfree(&kernels);
    if (filter.calls) regfree(&calls);
    return result;
}
