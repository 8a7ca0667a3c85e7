// SPDX-License-Identifier: Apache-2.0
// bench FILE [PROGRAM]: runs the kernels of kernels.c, checks what they computed, and prints how
// many instructions of a wave were run in a second of processor time, beside the bar for it. With a
// program, how long that takes from its start to its end, and how much of it is not the software
// GPU's doing. What `keel bench --sim` runs.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "amd/bench/device.h"

// Of this thread alone, whatever else the machine does.
static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

typedef struct {
    isa_t *isa;
    uint64_t kernel;
    uint32_t groups, size;
    const void *arguments;
    size_t argument_size;
    void (*reset)(void);
} run_t;

static bool run_once(const run_t *run)
{
    if (run->reset) run->reset();
    return device_run(run->isa, run->kernel, run->groups, run->size, run->arguments,
                      run->argument_size);
}

static double million_per_second(const run_t *run)
{
    if (!run_once(run)) return 0; // decodes, too
    double best = 0;
    for (unsigned k = 0; k < 9; k++) {
        uint64_t before = isa_count(run->isa);
        double start = seconds(CLOCK_THREAD_CPUTIME_ID);
        run_once(run);
        double taken = seconds(CLOCK_THREAD_CPUTIME_ID) - start;
        double rate = (double)(isa_count(run->isa) - before) / taken * 1e-6;
        if (rate > best) best = rate;
    }
    return best;
}

static void print(const char *name, double rate, const char *bar)
{
    printf("%-16s %7.1f M wave-instructions/s and thread%s\n", name, rate, bar);
}

enum { COUNT = 1 << 18, ROUNDS = 200, LOOPS = 64 * 256, SIZE = 64, TASKS = 2000, WORDS = 256 };

static unsigned vadd(isa_t *isa, const module_t *module, double *rate)
{
    float *a = device_alloc(COUNT * 4), *b = device_alloc(COUNT * 4), *c = device_alloc(COUNT * 4);
    for (unsigned n = 0; n < COUNT; n++) {
        a[n] = (float)n;
        b[n] = 0.5f * (float)n;
    }
    struct {
        float *a, *b, *c;
        uint32_t count;
    } arguments = {a, b, c, COUNT};
    *rate = million_per_second(&(run_t){isa, module_symbol(module, "vadd.kd"), COUNT / 256, 256,
                                        &arguments, sizeof arguments, NULL});
    unsigned wrong = 0;
    for (unsigned n = 0; n < COUNT; n++) wrong += c[n] != a[n] + b[n];
    device_free(a);
    device_free(b);
    device_free(c);
    return wrong;
}

static uint32_t integer_loop(uint32_t n)
{
    uint32_t x = n, y = n * 2654435761u;
    for (uint32_t k = 0; k < ROUNDS; k++) {
        x = (x ^ y) + (y >> 3);
        y = (y & x) - (x << 5);
        x += y ^ 0x9e3779b9;
        y = y < x ? y + 7 : y ^ x;
    }
    return x + y;
}

static unsigned loop(isa_t *isa, const module_t *module, double *rate)
{
    uint32_t *out = device_alloc(LOOPS * 4);
    struct {
        uint32_t *out;
        uint32_t rounds;
    } arguments = {out, ROUNDS};
    *rate = million_per_second(&(run_t){isa, module_symbol(module, "integer_loop.kd"), LOOPS / 256,
                                        256, &arguments, sizeof arguments, NULL});
    unsigned wrong = 0;
    for (unsigned n = 0; n < LOOPS; n++) wrong += out[n] != integer_loop(n);
    device_free(out);
    return wrong;
}

static unsigned matmul(isa_t *isa, const module_t *module, double *rate)
{
    enum { BYTES = SIZE * SIZE * 4 };
    float *a = device_alloc(BYTES), *b = device_alloc(BYTES), *c = device_alloc(BYTES);
    for (unsigned n = 0; n < SIZE * SIZE; n++) {
        a[n] = (float)(n % 7) - 3;
        b[n] = (float)(n % 5) - 2;
    }
    struct {
        float *a, *b, *c;
        uint32_t size;
    } arguments = {a, b, c, SIZE};
    *rate = million_per_second(&(run_t){isa, module_symbol(module, "matmul.kd"), SIZE * SIZE / 256,
                                        256, &arguments, sizeof arguments, NULL});
    unsigned wrong = 0;
    for (unsigned n = 0; n < SIZE * SIZE; n++) {
        float sum = 0;
        for (unsigned k = 0; k < SIZE; k++) sum += a[n / SIZE * SIZE + k] * b[k * SIZE + n % SIZE];
        wrong += c[n] != sum;
    }
    device_free(a);
    device_free(b);
    device_free(c);
    return wrong;
}

// As in kernels.c.
typedef struct {
    uint32_t kind, value, target, source, waits, successor_count, successors[2];
} task_t;

typedef struct {
    uint64_t head, tail, done;
    uint32_t ring[1024];
} ready_t;

static task_t *tasks;
static ready_t *ready;
static uint32_t *words;

// Task n waits for n - 1, which makes the order and so the result certain, and for one before it.
static void tasks_reset(void)
{
    uint64_t state = 3;
    memset(ready, 0, sizeof *ready);
    memset(words, 0, WORDS * sizeof *words);
    memset(tasks, 0, TASKS * sizeof *tasks);
    for (uint32_t n = 0; n < TASKS; n++) {
        uint64_t random = random_next(&state);
        tasks[n].kind = random & 3;
        tasks[n].value = (uint32_t)(random >> 32);
        tasks[n].target = (random >> 2) % (WORDS - 4);
        tasks[n].source = (random >> 12) % WORDS;
        if (n + 1 < TASKS) tasks[n].successors[tasks[n].successor_count++] = n + 1;
        if (n + 1 < TASKS) tasks[n + 1].waits++;
        uint32_t later = n + 2 + (random >> 22) % 8;
        if (later < TASKS) tasks[n].successors[tasks[n].successor_count++] = later;
        if (later < TASKS) tasks[later].waits++;
    }
    ready->tail = 1;
}

static void task_do(const task_t *task, uint32_t *out)
{
    switch (task->kind) {
    case 0: out[task->target] += out[task->source] + task->value; break;
    case 1: out[task->target] ^= out[task->source] * task->value; break;
    case 2: out[task->target] = out[task->source]; break;
    default:
        for (uint32_t k = 0; k < 4; k++) out[task->target + k] = task->value;
        break;
    }
}

static unsigned scheduler(isa_t *isa, const module_t *module, double *rate)
{
    uint32_t want[WORDS] = {0};
    tasks = device_alloc(TASKS * sizeof *tasks);
    ready = device_alloc(sizeof *ready);
    words = device_alloc(WORDS * sizeof *words);
    struct {
        task_t *tasks;
        ready_t *ready;
        uint32_t *words;
        uint64_t count;
    } arguments = {tasks, ready, words, TASKS};
    *rate = million_per_second(&(run_t){isa, module_symbol(module, "scheduler.kd"), 1, 64,
                                        &arguments, sizeof arguments, tasks_reset});
    unsigned wrong = ready->done != TASKS;
    for (unsigned n = 0; n < TASKS; n++) task_do(&tasks[n], want);
    for (unsigned n = 0; n < WORDS; n++) wrong += words[n] != want[n];
    device_free(tasks);
    device_free(ready);
    device_free(words);
    return wrong;
}

// One run of a program, in seconds: from its start to its end, and of the processor what all of it
// took and what the software GPU did.
typedef struct {
    double whole, processor, gpu;
} start_t;

static double timeval_seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

// Runs a program with its standard error in a file. False when it fails.
static bool start_run(char **argv, int errors, start_t *out)
{
    struct rusage used;
    int status = -1;
    double start = seconds(CLOCK_MONOTONIC);
    pid_t child = fork();
    if (child == 0) {
        setenv("KEEL_SIM_LOG", "time", 1);
        dup2(errors, STDERR_FILENO);
        execv(argv[0], argv);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &used) != child || status) return false;
    out->whole = seconds(CLOCK_MONOTONIC) - start;
    out->processor = timeval_seconds(used.ru_utime) + timeval_seconds(used.ru_stime);
    return true;
}

// The shortest of some runs of a program; false when it fails, or does not tell what the software
// GPU took.
static bool start_best(char **argv, start_t *best)
{
    *best = (start_t){0};
    for (unsigned k = 0; k < 5; k++) {
        start_t run;
        char text[1024] = "";
        FILE *errors = tmpfile();
        bool good = errors && start_run(argv, fileno(errors), &run);
        if (good) rewind(errors);
        good = good && fread(text, 1, sizeof text - 1, errors) > 0;
        good = good && sscanf(text, "sim: %lf s of processor time", &run.gpu) == 1;
        if (errors) fclose(errors);
        if (!good) {
            fputs(text, stderr);
            return false;
        }
        if (!k || run.whole < best->whole) *best = run;
    }
    return true;
}

// The vendor's share is a floor: no GPU, in software or not, makes the process shorter than that.
static bool start_print(char **argv)
{
    start_t start;
    if (!start_best(argv, &start)) {
        printf("HIP process      failed\n");
        return false;
    }
    double rocm = start.processor - start.gpu;
    printf("%-16s %7.3f s from its start to its end, bar 0.2\n", "HIP process", start.whole);
    printf("%-16s %7.3f s of processor time outside of the software GPU, which took %.3f s: in all "
           "%.2f times that, bar 1.2\n",
           "ROCm's share", rocm, start.gpu, start.whole / rocm);
    return true;
}

int main(int argc, char **argv)
{
    double rates[4];
    if (argc < 2) return 2;
    isa_t *isa = isa_create(GFX90A, DEVICE_NODE, NULL);
    module_t module = module_load(argv[1]);
    unsigned wrong = vadd(isa, &module, &rates[0]);
    wrong += matmul(isa, &module, &rates[1]);
    wrong += scheduler(isa, &module, &rates[2]);
    wrong += loop(isa, &module, &rates[3]);
    print("integer loop", rates[3], ", bar 80");
    print("vadd", rates[0], "");
    print("LDS matmul", rates[1], "");
    print("scheduler", rates[2], "");
    print("geometric mean", cbrt(rates[0] * rates[1] * rates[2]), " of the last three, bar 35");
    if (wrong) printf("%u results are wrong\n", wrong);
    module_unload(&module);
    isa_destroy(isa);
    if (argc < 3) return wrong != 0;
    return !start_print(argv + 2) || wrong != 0;
}
