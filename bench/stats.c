// SPDX-License-Identifier: Apache-2.0
#include "bench.h"

#include <stdarg.h>
#include <stdlib.h>

void tally_add(tally_t *tally, double ns)
{
    if (tally->count == tally->capacity) {
        size_t capacity = tally->capacity ? 2 * tally->capacity : 1024;
        double *samples = realloc(tally->samples, capacity * sizeof *samples);
        if (!samples) abort();
        tally->samples = samples;
        tally->capacity = capacity;
    }
    tally->samples[tally->count++] = ns;
}

void tally_note(tally_t *tally, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(tally->note, sizeof tally->note, format, arguments);
    va_end(arguments);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double percentile(double *values, size_t count, double p)
{
    qsort(values, count, sizeof *values, compare);
    double at = p * (double)(count - 1);
    size_t below = (size_t)at, above = below + 1 < count ? below + 1 : below;
    return values[below] + (at - (double)below) * (values[above] - values[below]);
}
