// SPDX-License-Identifier: Apache-2.0
// spans COUNT: records as many spans, and prints how many ns of its processor time each took.
#include <keel/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double seconds_used(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    long count = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
    if (count <= 0 || !keel_trace_is_on()) return 2;
    double start = seconds_used();
    for (long i = 0; i < count; i++) keel_trace_end(keel_trace_begin(), i % 2 ? "one" : "two");
    printf("%.1f\n", (seconds_used() - start) * 1e9 / (double)count);
    return 0;
}
