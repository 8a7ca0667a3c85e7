// SPDX-License-Identifier: Apache-2.0
#include "forward/ledger.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 1024, KINDS = 16 };

typedef struct entry_t {
    struct entry_t *next;
    int kind;
    uint64_t what;
    const char *by; // borrowed: the function
    uint64_t call;  // of that function
    pid_t owner;
} entry_t;

// What is left of a kind.
typedef struct sum_t {
    const entry_t *first;
    size_t count;
} sum_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry_t *rows[ROWS];
static const char *kinds[KINDS]; // borrowed, in the order in which they were made first

static entry_t **row_of(uint64_t what)
{
    return &rows[(what ^ what >> 12) / 8 % ROWS];
}

static int kind_of(const char *name)
{
    int kind = 0;
    while (kinds[kind] && strcmp(kinds[kind], name)) kind++;
    kinds[kind] = name;
    return kind;
}

void ledger_add(const call_site_t *site, const char *kind, uint64_t what)
{
    entry_t *entry = malloc(sizeof *entry), **row = row_of(what);
    if (!entry) abort();
    pthread_mutex_lock(&lock);
    *entry = (entry_t){*row, kind_of(kind), what, site->name, site->count, getpid()};
    *row = entry;
    pthread_mutex_unlock(&lock);
}

void ledger_remove(const char *kind, uint64_t what)
{
    if (!kind) return;
    pthread_mutex_lock(&lock);
    entry_t **link = row_of(what), *entry;
    while ((entry = *link) && (entry->what != what || strcmp(kinds[entry->kind], kind)))
        link = &entry->next;
    if (entry) *link = entry->next;
    pthread_mutex_unlock(&lock);
    free(entry);
}

static void sum_up(const entry_t *entry, sum_t *sum)
{
    if (entry->owner != getpid()) return;
    if (!sum->count++ || entry->call < sum->first->call) sum->first = entry;
}

__attribute__((visibility("default"))) size_t keel_sim_left(char *text, size_t size)
{
    sum_t sums[KINDS] = {{0}};
    size_t count = 0, used = 0;
    *text = '\0';
    pthread_mutex_lock(&lock);
    for (int i = 0; i < ROWS; i++)
        for (const entry_t *entry = rows[i]; entry; entry = entry->next)
            sum_up(entry, &sums[entry->kind]);
    for (int i = 0; i < KINDS; i++) {
        const entry_t *first = sums[i].first;
        if (first && used < size)
            used += (size_t)snprintf(text + used, size - used, "%s%s %zu (since %s:%llu)",
                                     count ? ", " : "", kinds[i], sums[i].count, first->by,
                                     (unsigned long long)first->call);
        count += sums[i].count;
    }
    pthread_mutex_unlock(&lock);
    return count;
}

__attribute__((destructor)) static void ledger_close(void)
{
    char text[512];
    if (!keel_sim_left(text, sizeof text)) return;
    fprintf(stderr, "sim: not given back when the process ends: %s\n", text);
    fflush(NULL);
    _exit(1);
}
