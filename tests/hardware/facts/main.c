// SPDX-License-Identifier: Apache-2.0
// facts --lib=PATH [--kernels=PATH] [--filter=GLOB] [--limit=SECONDS] [-v]: which facts are true of
// the library at PATH, be it that of a card or of sim/. Ends with `N passed, N failed, N skipped`,
// and status 0 if none failed; 77 if the library cannot be opened. facts --list: all there are.
#include "facts.h"

#include <dlfcn.h>
#include <errno.h>
#include <fnmatch.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LINGER_MS = 10000 };
enum { EXIT_TRUE = 0, EXIT_UNTRUE = 1, EXIT_BROKEN = 3, EXIT_SKIPPED = 77 };

void *fact_library;
const char *fact_kernels;
static const char *library_path;
static int limit_ms = 60000; // for each fact
static int words_fd = -1;    // of the child: what its line says
static bool has_said;

__attribute__((format(printf, 1, 0))) static void tell(const char *format, va_list list)
{
    char text[400];
    int length = vsnprintf(text, sizeof text, format, list);
    if (length >= (int)sizeof text) length = sizeof text - 1;
    if (length > 0 && write(words_fd, text, (size_t)length) < 0) _exit(EXIT_BROKEN);
}

static void tell_line(int line)
{
    char text[32];
    int length = snprintf(text, sizeof text, "%sline %d: ", has_said ? "; " : "", line);
    if (write(words_fd, text, (size_t)length) < 0) _exit(EXIT_BROKEN);
}

#define TELL(format)                                                                               \
    do {                                                                                           \
        va_list list_;                                                                             \
        va_start(list_, format);                                                                   \
        tell(format, list_);                                                                       \
        va_end(list_);                                                                             \
    } while (0)

void fact_untrue(int line, const char *format, ...)
{
    tell_line(line);
    TELL(format);
    _exit(EXIT_UNTRUE);
}

void fact_broken(int line, const char *format, ...)
{
    tell_line(line);
    TELL(format);
    _exit(EXIT_BROKEN);
}

void fact_skip(const char *format, ...)
{
    TELL(format);
    _exit(EXIT_SKIPPED);
}

void fact_say(const char *format, ...)
{
    TELL(format);
    has_said = true;
}

void fact_nap(unsigned ms)
{
    nanosleep(&(struct timespec){ms / 1000, (long)(ms % 1000) * 1000000}, NULL);
}

bool fact_await(const uint32_t *word, uint32_t value)
{
    for (int i = 0; i < 20000; i++) {
        if (__atomic_load_n(word, __ATOMIC_ACQUIRE) >= value) return true;
        fact_nap(1);
    }
    return false;
}

// The thread that lets go, once the call has returned or patience is over.
typedef struct releaser_t {
    const fact_try_t *attempt;
    unsigned patience_ms;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool returned, waited;
} releaser_t;

static void *releaser_main(void *argument)
{
    releaser_t *r = argument;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += r->patience_ms / 1000;
    until.tv_nsec += (long)(r->patience_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&r->lock);
    while (!r->returned)
        if (pthread_cond_timedwait(&r->changed, &r->lock, &until) == ETIMEDOUT) break;
    r->waited = !r->returned;
    pthread_mutex_unlock(&r->lock);
    r->attempt->release(r->attempt->what);
    return NULL;
}

bool fact_waits(const fact_try_t *attempt, unsigned patience_ms)
{
    pthread_t thread;
    releaser_t r = {.attempt = attempt,
                    .patience_ms = patience_ms,
                    .lock = PTHREAD_MUTEX_INITIALIZER,
                    .changed = PTHREAD_COND_INITIALIZER};
    NEED(pthread_create(&thread, NULL, releaser_main, &r) == 0);
    attempt->call(attempt->user);
    pthread_mutex_lock(&r.lock);
    r.returned = true;
    pthread_cond_signal(&r.changed);
    pthread_mutex_unlock(&r.lock);
    NEED(pthread_join(thread, NULL) == 0);
    return r.waited;
}

// A process that has ended: its status, what its line says, and all else that it wrote.
typedef struct child_t {
    int status;
    bool late;
    char words[500];
    FILE *output;
} child_t;

static bool child_ends(pid_t pid, int *status, int ms)
{
    for (int i = 0; i <= ms; i++) {
        if (waitpid(pid, status, WNOHANG) == pid) return true;
        fact_nap(1);
    }
    return false;
}

static void child_main(int fd, FILE *output, void (*run)(void *), void *user)
{
    words_fd = fd;
    if (dup2(fileno(output), STDOUT_FILENO) < 0 || dup2(fileno(output), STDERR_FILENO) < 0)
        _exit(EXIT_BROKEN);
    fact_library = dlopen(library_path, RTLD_NOW | RTLD_GLOBAL);
    if (!fact_library) fact_skip("%s", dlerror());
    run(user);
    fflush(NULL);
    _exit(EXIT_TRUE);
}

// Runs a function in a process of its own, in which the library is open; this one never opens it.
static child_t child_run(void (*run)(void *), void *user)
{
    int ends[2];
    child_t child = {.output = tmpfile()};
    if (!child.output || pipe(ends)) {
        perror("facts");
        exit(1);
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        child_main(ends[1], child.output, run, user);
    }
    close(ends[1]);
    if (!child_ends(pid, &child.status, limit_ms)) {
        child.late = true;
        kill(pid, SIGKILL);
        child_ends(pid, &child.status, LINGER_MS);
    } else {
        ssize_t length = read(ends[0], child.words, sizeof child.words - 1);
        child.words[length < 0 ? 0 : length] = '\0';
    }
    close(ends[0]);
    return child;
}

// What the library at hand is, found out by a process that is asked before the facts are.
typedef struct place_t {
    const fact_vendor_t *vendor;
    bool sim;
} place_t;

static void place_look(void *user)
{
    for (unsigned i = 0; fact_vendors[i]; i++) {
        if (!dlsym(fact_library, fact_vendors[i]->symbol)) continue;
        fact_vendors[i]->open();
        fact_say("%u %d", i, fact_vendors[i]->is_sim());
        return;
    }
    fact_skip("it is none of the libraries that there are facts of");
}

static place_t place_find(void)
{
    unsigned index = 0;
    int sim = 0;
    child_t child = child_run(place_look, NULL);
    fclose(child.output);
    if (child.late || !WIFEXITED(child.status) || WEXITSTATUS(child.status) != EXIT_TRUE ||
        sscanf(child.words, "%u %d", &index, &sim) != 2) {
        printf("%s: %s\n", library_path, child.words);
        exit(EXIT_SKIPPED);
    }
    return (place_t){fact_vendors[index], sim};
}

typedef struct job_t {
    const place_t *place;
    const fact_t *fact;
} job_t;

static void job_run(void *user)
{
    const job_t *job = user;
    job->place->vendor->open();
    job->fact->run();
}

typedef enum result_t { PASSED, FAILED, SKIPPED } result_t;

static result_t report(result_t result, const fact_t *fact, const char *how, const char *words)
{
    static const char *const names[] = {"passed ", "FAILED ", "skipped"};
    const char *first = *how ? ": " : "", *second = *words ? ": " : "";
    printf("%s %s%s%s%s%s\n", names[result], fact->name, first, how, second, words);
    if (result == FAILED) printf("        %s (%s)\n", fact->what, fact->source);
    return result;
}

static void output_show(FILE *output)
{
    char line[400];
    rewind(output);
    while (fgets(line, sizeof line, output)) printf("        | %s", line);
}

static result_t judge(const fact_t *fact, fact_expect_t expected, const child_t *child)
{
    char signal[64];
    int code = WIFEXITED(child->status) ? WEXITSTATUS(child->status) : -1;
    bool differs = expected == DIFFERS;
    if (child->late) return report(FAILED, fact, "it did not end in time", "");
    if (code < 0) {
        snprintf(signal, sizeof signal, "signal %d", WTERMSIG(child->status));
        return report(FAILED, fact, signal, child->words);
    }
    switch (code) {
    case EXIT_SKIPPED: return report(SKIPPED, fact, "", child->words);
    case EXIT_UNTRUE:
        if (differs) return report(PASSED, fact, "differs, as is marked", fact->why);
        return report(FAILED, fact, "it is not so", child->words);
    case EXIT_TRUE:
        if (!differs) return report(PASSED, fact, "", child->words);
        return report(FAILED, fact, "it is so, and marked as different", fact->why);
    default: return report(FAILED, fact, "it could not be tried", child->words);
    }
}

static result_t fact_judge(const place_t *place, const fact_t *fact, bool verbose)
{
    fact_expect_t expected = place->sim ? fact->sim : fact->card;
    if (expected == NOT_RUN) return report(SKIPPED, fact, "", fact->why);
    child_t child = child_run(job_run, &(job_t){place, fact});
    result_t result = judge(fact, expected, &child);
    if (result == FAILED || verbose) output_show(child.output);
    fclose(child.output);
    return result;
}

typedef struct options_t {
    const char *filter;
    bool list, verbose;
} options_t;

static bool options_read(int argc, char **argv, options_t *o)
{
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--lib=", 6) == 0)
            library_path = argv[i] + 6;
        else if (strncmp(argv[i], "--kernels=", 10) == 0)
            fact_kernels = argv[i] + 10;
        else if (strncmp(argv[i], "--filter=", 9) == 0)
            o->filter = argv[i] + 9;
        else if (strncmp(argv[i], "--limit=", 8) == 0)
            limit_ms = atoi(argv[i] + 8) * 1000;
        else if (strcmp(argv[i], "--list") == 0)
            o->list = true;
        else if (strcmp(argv[i], "-v") == 0)
            o->verbose = true;
        else
            return false;
    }
    return o->list || library_path;
}

static void list_print(const fact_t *fact)
{
    static const char *const words[] = {"", "differs", "not run"};
    printf("%s: %s\n    source: %s\n", fact->name, fact->what, fact->source);
    if (fact->sim) printf("    sim: %s: %s\n", words[fact->sim], fact->why);
    if (fact->card) printf("    card: %s: %s\n", words[fact->card], fact->why);
}

static void list_all(const options_t *o)
{
    for (const fact_vendor_t *const *vendor = fact_vendors; *vendor; vendor++)
        for (const fact_t *const *area = (*vendor)->areas; *area; area++)
            for (const fact_t *fact = *area; fact->name; fact++)
                if (fnmatch(o->filter, fact->name, 0) == 0) list_print(fact);
}

int main(int argc, char **argv)
{
    int count[3] = {0};
    options_t o = {.filter = "*"};
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!options_read(argc, argv, &o)) {
        fprintf(stderr,
                "usage: facts --lib=PATH [--kernels=PATH] [--filter=GLOB] [--limit=SECONDS] [-v]\n"
                "       facts --list [--filter=GLOB]\n");
        return 2;
    }
    if (o.list) {
        list_all(&o);
        return 0;
    }
    place_t place = place_find();
    for (const fact_t *const *area = place.vendor->areas; *area; area++)
        for (const fact_t *fact = *area; fact->name; fact++)
            if (fnmatch(o.filter, fact->name, 0) == 0) count[fact_judge(&place, fact, o.verbose)]++;
    printf("%d passed, %d failed, %d skipped\n", count[PASSED], count[FAILED], count[SKIPPED]);
    return count[FAILED] != 0 || count[PASSED] == 0;
}
