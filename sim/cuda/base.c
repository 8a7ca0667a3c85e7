// SPDX-License-Identifier: Apache-2.0
#include "cuda/base.h"

#include "cuda/limits.h"
#include "cuda/variant.h"

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

static counters_t own_counters;
static settings_t current;
static pthread_once_t once = PTHREAD_ONCE_INIT;

void complain(const char *format, ...)
{
    char line[1024] = "sim: cuda: ";
    size_t prefix = strlen(line);
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line + prefix, sizeof line - prefix - 1, format, arguments);
    va_end(arguments);
    size_t count = prefix + (length < 0 ? 0 : (size_t)length);
    if (count > sizeof line - 2) count = sizeof line - 2;
    line[count++] = '\n';
    if (write(STDERR_FILENO, line, count) < 0) return; // nowhere left to complain
}

uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void sleep_us(unsigned us)
{
    nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000L}, NULL);
}

uint64_t random_below(uint64_t bound)
{
    static atomic_uint_fast64_t draws;
    uint64_t seed = settings()->seed;
    if (seed == 0 || bound == 0) return 0;
    uint64_t x = seed * 0x9e3779b97f4a7c15u + atomic_fetch_add(&draws, 1);
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (x ^ x >> 31) % bound;
}

// Often at first, and seldom when there is a great deal to hold back.
void hold_back(void)
{
    static atomic_uint count;
    if (random_below(4) != 1) return;
    if (atomic_fetch_add(&count, 1) > 1000 && random_below(256) != 1) return;
    sleep_us((unsigned)random_below(300));
}

static bool read_number(const char *text, uint64_t *out)
{
    char *end;
    if (*text < '0' || *text > '9') return false;
    *out = strtoull(text, &end, 0);
    if (*end == 'K' || *end == 'M' || *end == 'G') {
        *out <<= *end == 'K' ? 10 : *end == 'M' ? 20 : 30;
        end++;
    }
    return *end == '\0';
}

// N[+][:CODE]
static bool read_moment(char *text, rule_t *rule)
{
    uint64_t code = CUDA_ERROR_UNKNOWN;
    char *colon = strchr(text, ':');
    if (colon) {
        *colon = '\0';
        if (!read_number(colon + 1, &code) || code == 0) return false;
    }
    size_t length = strlen(text);
    rule->onwards = length && text[length - 1] == '+';
    if (rule->onwards) text[length - 1] = '\0';
    rule->code = (CUresult)code;
    return read_number(text, &rule->number) && rule->number > 0;
}

// [SYMBOL:]N[+][:CODE]
static bool read_rule(char *text, rule_t *rule)
{
    if (strncmp(text, "cu", 2) == 0) {
        char *colon = strchr(text, ':');
        if (!colon || (size_t)(colon - text) >= sizeof rule->symbol) return false;
        memcpy(rule->symbol, text, (size_t)(colon - text));
        text = colon + 1;
    }
    return read_moment(text, rule);
}

static bool read_fail(char *text, settings_t *out)
{
    return out->rule_count < RULES_MAX && read_rule(text, &out->rules[out->rule_count++]);
}

static bool read_lose(char *text, settings_t *out)
{
    return read_rule(text, &out->lose) && !out->lose.onwards;
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

static bool read_option(const char *name, char *value, settings_t *out)
{
    uint64_t number = 0;
    if (!strcmp(name, "fail")) return read_fail(value, out);
    if (!strcmp(name, "lose")) return read_lose(value, out);
    if (!strcmp(name, "without")) return without_read(value, &out->without);
    if (!strcmp(name, "quirk")) return quirk_read(value, &out->quirks);
    if (!read_number(value, &number)) return false;
    if (!strcmp(name, "devices")) {
        out->devices = (unsigned)number;
        return number <= 16;
    }
    if (!strcmp(name, "version")) {
        out->version = (int)number;
        return number >= 1000 && number < 100000;
    }
    if (!strcmp(name, "memory")) {
        out->memory = number;
        return number >= 1u << 20 && number <= UINT64_C(1) << 36;
    }
    if (!strcmp(name, "depth")) {
        out->depth = (unsigned)number;
        return number > 0 && number <= 1u << 30;
    }
    if (!strcmp(name, "poison")) {
        out->poison = (int)number;
        return number < 256;
    }
    if (!strcmp(name, "counters")) return read_counters(number, out);
    if (!strcmp(name, "seed"))
        out->seed = number;
    else if (!strcmp(name, "slow"))
        out->slow_us = (unsigned)number;
    else if (!strcmp(name, "leaks"))
        out->leaks = (unsigned)number;
    else if (!strcmp(name, "calls"))
        out->log_calls = number != 0;
    else
        return false;
    return true;
}

static void settings_read(void)
{
    current = (settings_t){.devices = 1,
                           .version = SIM_VERSION,
                           .memory = UINT64_C(1) << 30,
                           .depth = 1021,
                           .poison = -1,
                           .valid = true,
                           .counters = &own_counters};
    const char *text = getenv("KEEL_SIM_CUDA");
    char *copy = strdup(text ? text : ""), *rest = NULL;
    for (char *word = copy ? strtok_r(copy, ",", &rest) : NULL; word;
         word = strtok_r(NULL, ",", &rest)) {
        char *equals = strchr(word, '=');
        if (equals) *equals = '\0';
        if (equals && read_option(word, equals + 1, &current)) continue;
        complain(
            "KEEL_SIM_CUDA: '%s' is no option, or not with that value; options are devices, "
            "version, memory, seed, depth, poison, slow, fail, lose, leaks, calls, counters, "
            "without (graphs, conditional, updatable, upload, pools, managed, shared, outside, "
            "arguments, peers, with + between them) and quirk (roomy, prompt, rigid, early)",
            word);
        current.valid = false;
    }
    free(copy);
}

const settings_t *settings(void)
{
    pthread_once(&once, settings_read);
    return &current;
}
