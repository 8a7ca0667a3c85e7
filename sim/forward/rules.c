// SPDX-License-Identifier: Apache-2.0
#include "forward/rules.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum { NAME_SIZE = 56 };

typedef struct rule_t {
    char name[NAME_SIZE]; // empty: any call
    uint64_t number;      // from 1; 0: there is no such rule
    bool onwards, loses;
    int code;
} rule_t;

typedef struct tally_t {
    char name[NAME_SIZE];
    uint64_t calls;
} tally_t;

typedef struct counters_t {
    uint64_t calls, hit;
    tally_t tallies[]; // in the order of first calls
} counters_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static counters_t own, *counters = &own;
static size_t room, used; // of tallies
static rule_t rule;
static bool lost;
static char library[256];

// [NAME:]N[+][:CODE]
static void rule_read(char *text, bool loses)
{
    rule = (rule_t){.loses = loses, .code = forward.unknown};
    if (!strncmp(text, forward.prefix, strlen(forward.prefix))) {
        size_t length = strcspn(text, ":");
        snprintf(rule.name, sizeof rule.name, "%.*s", (int)length, text);
        text += length + (text[length] == ':');
    }
    rule.number = strtoull(text, &text, 10);
    rule.onwards = *text == '+';
    text += rule.onwards;
    if (*text == ':') rule.code = atoi(text + 1);
    if (!rule.number || !rule.code) abort();
}

static void counters_map(int fd)
{
    struct stat file;
    if (fstat(fd, &file) || file.st_size < (off_t)sizeof *counters) abort();
    size_t size = (size_t)file.st_size;
    void *words = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (words == MAP_FAILED) abort();
    counters = words;
    room = (size - sizeof *counters) / sizeof(tally_t);
}

static void options_read(char *text)
{
    char *next, *value;
    for (; text; text = next) {
        next = strchr(text, ',');
        if (next) *next++ = '\0';
        value = strchr(text, '=');
        if (!value) abort();
        *value++ = '\0';
        if (!strcmp(text, "counters"))
            counters_map(atoi(value));
        else if (!strcmp(text, "fail") || !strcmp(text, "lose"))
            rule_read(value, !strcmp(text, "lose"));
        else if (!strcmp(text, "library"))
            snprintf(library, sizeof library, "%s", value);
        else
            abort();
    }
}

const char *rules_library(void)
{
    rules_read(NULL, 0);
    return *library ? library : NULL;
}

void rules_read(call_site_t *const *sites, int count)
{
    static char before[512];
    const char *text = getenv(forward.variable);
    pthread_mutex_lock(&lock);
    if (text && strcmp(text, before)) {
        char copy[sizeof before];
        if (strlen(text) >= sizeof before) abort();
        snprintf(before, sizeof before, "%s", text);
        snprintf(copy, sizeof copy, "%s", text);
        rule = (rule_t){0};
        lost = false;
        options_read(copy);
        for (int i = 0; i < count; i++) sites[i]->count = 0;
    }
    pthread_mutex_unlock(&lock);
}

static void tally(call_site_t *site)
{
    if (!site->tally && used < room) {
        site->tally = &counters->tallies[used++];
        snprintf(site->tally->name, sizeof site->tally->name, "%s", site->name);
    }
    if (site->tally) site->tally->calls = site->count;
}

// Whether the rule means this call, the `any`th of those that count; 0: it does not count.
static bool strikes(const call_site_t *site, uint64_t any)
{
    if (!rule.number || (*rule.name && strcmp(rule.name, site->name))) return false;
    uint64_t number = *rule.name ? site->count : any;
    return number == rule.number || (rule.onwards && number > rule.number);
}

int rules_strike(call_site_t *site, bool *loses)
{
    uint64_t any = 0;
    *loses = false;
    if (site->flags == CALL_QUIET) return 0;
    pthread_mutex_lock(&lock);
    site->count++;
    tally(site);
    if (site->flags != CALL_POLLS) any = __atomic_add_fetch(&counters->calls, 1, __ATOMIC_RELAXED);
    bool struck = strikes(site, any);
    if (struck) __atomic_store_n(&counters->hit, 1, __ATOMIC_RELAXED);
    bool fatal = rule.loses || (forward.fatal && rule.code == forward.unknown);
    *loses = !lost && struck && fatal;
    lost |= *loses;
    int error = struck ? rule.code : lost && site->flags != CALL_PLAIN ? forward.unknown : 0;
    pthread_mutex_unlock(&lock);
    return error;
}
