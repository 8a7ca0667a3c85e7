// SPDX-License-Identifier: Apache-2.0
#include "metal/base.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static settings_t current;
static pthread_once_t once = PTHREAD_ONCE_INIT;

__attribute__((format(printf, 1, 0))) static void say(const char *format, va_list arguments)
{
    char line[1024] = "sim: metal: ";
    size_t prefix = strlen(line);
    int length = vsnprintf(line + prefix, sizeof line - prefix - 1, format, arguments);
    size_t count = prefix + (length < 0 ? 0 : (size_t)length);
    if (count > sizeof line - 2) count = sizeof line - 2;
    line[count++] = '\n';
    if (write(STDERR_FILENO, line, count) < 0) return; // nowhere left to complain
}

void complain(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

void die(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    abort();
}

void *make(size_t size)
{
    void *memory = calloc(1, size);
    if (!memory) die("no memory for %zu bytes", size);
    return memory;
}

uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool rule_means(const rule_t *rule, uint64_t number)
{
    return rule->number && (number == rule->number || (rule->onwards && number > rule->number));
}

uint64_t draw(void)
{
    static atomic_uint_fast64_t drawn;
    uint64_t x = settings()->seed * 0x9e3779b97f4a7c15u + atomic_fetch_add(&drawn, 1);
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static bool read_number(const char *text, uint64_t *out)
{
    char *end;
    if (*text < '0' || *text > '9') return false;
    *out = strtoull(text, &end, 0);
    return *end == '\0';
}

// N[+]
static bool read_moment(char *text, rule_t *rule)
{
    size_t length = strlen(text);
    rule->onwards = length && text[length - 1] == '+';
    if (rule->onwards) text[length - 1] = '\0';
    return read_number(text, &rule->number) && rule->number > 0;
}

// [SELECTOR/]N[+]; a selector has colons of its own.
static bool read_rule(char *text, rule_t *rule)
{
    char *slash = strchr(text, '/');
    if (!slash) return read_moment(text, rule);
    if ((size_t)(slash - text) >= sizeof rule->selector) return false;
    memcpy(rule->selector, text, (size_t)(slash - text));
    return read_moment(slash + 1, rule);
}

static bool read_fail(char *text, settings_t *out)
{
    return out->fail_count < RULES_MAX && read_rule(text, &out->fail[out->fail_count++]);
}

// A descriptor of a file that holds a counters_t.
static bool read_counters(uint64_t fd, settings_t *out)
{
    struct stat file;
    if (fstat((int)fd, &file) || file.st_size < (off_t)sizeof *out->counters) return false;
    size_t size = (size_t)file.st_size;
    void *words = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
    if (words == MAP_FAILED) return false;
    out->counters = words;
    out->tally_room = (size - sizeof *out->counters) / sizeof(tally_t);
    return true;
}

// N[+]:CODE[@WORKS]
static bool read_kill(char *text, settings_t *out)
{
    uint64_t code = 0;
    char *colon = strchr(text, ':'), *works = strchr(text, '@');
    if (works && !read_number(works + 1, &out->kill.works)) return false;
    if (works) *works = '\0';
    if (!colon || !read_number(colon + 1, &code)) return false;
    *colon = '\0';
    out->kill.code = (unsigned)code;
    return code >= 1 && code <= 12 && read_moment(text, &out->kill);
}

static bool read_lack(const char *text, settings_t *out)
{
    if (out->lack_count == RULES_MAX || strlen(text) >= sizeof *out->lacks) return false;
    strcpy(out->lacks[out->lack_count++], text);
    return *text != '\0';
}

// What is 0 or 1.
static bool read_switch(const char *name, uint64_t number, settings_t *out, bool *known)
{
    const struct {
        const char *name;
        bool *target;
    } all[] = {{"leaks", &out->leaks},          {"residency", &out->residency},
               {"hazards", &out->hazards},      {"discrete", &out->discrete},
               {"lostnotes", &out->lost_notes}, {"victims", &out->victims},
               {"warns", &out->warns},          {"virtual", &out->virtual_gpu}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(name, all[i].name) != 0) continue;
        *known = true;
        *all[i].target = number == 1;
    }
    return number <= 1;
}

// What is a number between two others.
static bool read_amount(const char *name, uint64_t number, settings_t *out)
{
    const struct {
        const char *name;
        uint64_t *target, least, most;
    } all[] = {
        {"slow", &out->slow, 0, 1000000},   {"late", &out->late, 0, 1000000},
        {"crowd", &out->crowd, 0, 1000000}, {"seed", &out->seed, 0, UINT64_MAX},
        {"family", &out->family, 1, 9},     {"indirectthreads", &out->indirect_threads, 1, 1024},
        {"tier", &out->tier, 1, 2}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(name, all[i].name) != 0) continue;
        *all[i].target = number;
        return number >= all[i].least && number <= all[i].most;
    }
    return false;
}

static bool read_option(const char *name, char *value, settings_t *out)
{
    uint64_t number = 0;
    bool known = false;
    if (!strcmp(name, "fail")) return read_fail(value, out);
    if (!strcmp(name, "kill")) return read_kill(value, out);
    if (!strcmp(name, "lose")) return read_rule(value, &out->lose);
    if (!strcmp(name, "xpc")) return read_moment(value, &out->xpc);
    if (!strcmp(name, "lacks")) return read_lack(value, out);
    if (!strcmp(name, "cache")) {
        if (strlen(value) >= sizeof out->cache) return false;
        strcpy(out->cache, value);
        return *value != '\0';
    }
    if (!read_number(value, &number)) return false;
    bool good = read_switch(name, number, out, &known);
    if (known) return good;
    if (!strcmp(name, "counters")) return read_counters(number, out);
    if (!strcmp(name, "devices")) {
        out->devices = (unsigned)number;
        return number <= 8;
    }
    if (!strcmp(name, "samples")) {
        out->samples = number == 0 ? SAMPLES_NONE : number == 1 ? SAMPLES_GOOD : SAMPLES_ZERO;
        return number <= 2;
    }
    return read_amount(name, number, out);
}

// The GPU that virtual machines of Apple's have: an old one, whatever is below.
static bool make_virtual(settings_t *out)
{
    if (!out->virtual_gpu) return true;
    if (out->family > 5) out->family = 5;
    return read_lack("newResidencySetWithDescriptor:error:", out) &&
           read_lack("MTLResidencySetDescriptor", out);
}

// Two sides of memory are for Macs.
static bool make_ios(settings_t *out)
{
    return !on_ios || (!out->discrete && read_lack("didModifyRange:", out) &&
                       read_lack("synchronizeResource:", out));
}

static void read_settings(void)
{
    current =
        (settings_t){.devices = 1, .page = 16384, .family = 9, .tier = 2, .indirect_threads = 1024};
    const char *given = getenv("KEEL_SIM_METAL");
    char *copy = strdup(given ? given : ""), *rest = copy;
    for (char *item; (item = strsep(&rest, " ,")) != NULL;) {
        char *value = strchr(item, '=');
        if (*item == '\0') continue;
        if (value) *value++ = '\0';
        if (!value || !read_option(item, value, &current))
            die("KEEL_SIM_METAL: `%s`: docs/sim.md lists what there is", item);
    }
    free(copy);
    if (!make_virtual(&current)) die("KEEL_SIM_METAL: `virtual` leaves no room for `lacks`");
    if (!make_ios(&current)) die("KEEL_SIM_METAL: iOS has no `discrete`, and needs two `lacks`");
}

const settings_t *settings(void)
{
    pthread_once(&once, read_settings);
    return &current;
}
