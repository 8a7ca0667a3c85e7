// SPDX-License-Identifier: Apache-2.0
// keel sim: runs a program that finds software AMD GPUs below its ROCm.
#include "tools/commands.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: keel sim [OPTIONS] -- PROGRAM [ARGUMENTS]\n"
    "  --gpus=LIST   gfx900, gfx906, gfx908 or gfx90a, several separated by commas\n"
    "  --seed=N      run packets, workgroups and waves in the random order that N gives\n"
    "  --threads=N   run workgroups of a dispatch on N threads at once\n"
    "  --watchdog=N  name packets that have not completed for N seconds (10; 0: never)\n"
    "  --log=LIST    calls, packets, isa: what is written to standard error\n"
    "  --break=NAME  run the program in gdb and stop in this kernel\n"
    "  --help        print this\n";

// The folder of a library of sim: beside this program in its build, or where it is installed.
static bool find_folder(char *folder, size_t size, const char *file)
{
    static const char *const places[] = {"sim/amd", "../" KEEL_LIBDIR "/keel/sim/amd"};
    char program[3072];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0) return false;
    program[length] = 0;
    char *slash = strrchr(program, '/');
    if (!slash) return false;
    *slash = 0;
    for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
        char path[4096 + 64];
        snprintf(folder, size, "%s/%s", program, places[k]);
        snprintf(path, sizeof path, "%s/%s", folder, file);
        if (access(path, R_OK) == 0) return true;
    }
    return false;
}

// Puts a value before those that a variable has.
static bool prepend(const char *name, const char *separator, const char *folder, const char *rest)
{
    const char *old = getenv(name);
    size_t size = strlen(folder) + strlen(rest) + (old ? strlen(old) : 0) + 2;
    char *value = malloc(size);
    if (!value) return false;
    snprintf(value, size, "%s%s%s%s", folder, rest, old ? separator : "", old ? old : "");
    bool set = setenv(name, value, 1) == 0;
    free(value);
    return set;
}

// Takes --NAME=VALUE, or --NAME and the next argument; true when it was this one.
static bool option(char **argv, int *index, const char *name, const char *variable)
{
    size_t length = strlen(name);
    const char *argument = argv[*index], *value = argument + length + 1;
    if (strncmp(argument, name, length) || (argument[length] && argument[length] != '='))
        return false;
    if (!argument[length]) {
        value = argv[*index + 1];
        if (!value) return false;
        ++*index;
    }
    return setenv(variable, value, 1) == 0;
}

static bool option_parse(char **argv, int *index)
{
    static const char *const known[][2] = {
        {"--gpus", "KEEL_SIM_GPUS"},         {"--seed", "KEEL_SIM_SEED"},
        {"--threads", "KEEL_SIM_THREADS"},   {"--log", "KEEL_SIM_LOG"},
        {"--watchdog", "KEEL_SIM_WATCHDOG"}, {"--break", "KEEL_SIM_BREAK"},
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        if (option(argv, index, known[k][0], known[k][1])) return true;
    }
    return false;
}

// Sets up the environment of a program and says what is missing.
static bool prepare(char *folder, size_t size)
{
    if (!find_folder(folder, size, "libhsakmt.so.1")) {
        fprintf(
            stderr,
            "keel sim: no libhsakmt.so.1 in sim/amd beside this program, nor where it is "
            "installed; it is built where libhsakmt-dev and libhsa-runtime-dev are installed\n");
        return false;
    }
    if (prepend("LD_LIBRARY_PATH", ":", folder, "") &&
        prepend("LD_PRELOAD", " ", folder, "/libsimkfd.so") &&
        prepend("PATH", ":", folder, "/bin")) {
        return true;
    }
    fprintf(stderr, "keel sim: memory is short\n");
    return false;
}

static int run(char **argv)
{
    execvp(argv[0], argv);
    fprintf(stderr, "keel sim: %s: %s\n", argv[0], strerror(errno));
    return 127;
}

// Runs the program in gdb, which the file beside the library teaches some commands. The debugger
// itself shall not be preloaded.
static int run_debugger(const char *folder, char **argv)
{
    char script[4160], preload[8192];
    snprintf(script, sizeof script, "%s/keel.gdb", folder);
    snprintf(preload, sizeof preload, "set environment LD_PRELOAD %s", getenv("LD_PRELOAD"));
    unsetenv("LD_PRELOAD");
    const char *const front[] = {"gdb", "-q", "-x", script, "-ex", preload, "-ex", "run", "--args"};
    enum { FRONT = sizeof front / sizeof *front };
    size_t count = 0;
    while (argv[count]) count++;
    char **line = calloc(FRONT + count + 1, sizeof *line);
    if (!line) return 1;
    for (size_t k = 0; k < FRONT; k++) line[k] = (char *)front[k];
    memcpy(line + FRONT, argv, count * sizeof *line);
    int status = run(line);
    free(line);
    return status;
}

int command_sim(int argc, char **argv)
{
    char folder[4096];
    int i = 1;
    while (i < argc && strcmp(argv[i], "--") != 0 && argv[i][0] == '-') {
        if (strcmp(argv[i], "--help") == 0) {
            fputs(usage, stdout);
            return 0;
        }
        if (!option_parse(argv, &i)) {
            fprintf(stderr, "keel sim: what is %s?\n%s", argv[i], usage);
            return 2;
        }
        i++;
    }
    if (i < argc && strcmp(argv[i], "--") == 0) i++;
    if (i == argc) {
        fputs(usage, stderr);
        return 2;
    }
    if (!prepare(folder, sizeof folder)) return 1;
    return getenv("KEEL_SIM_BREAK") ? run_debugger(folder, argv + i) : run(argv + i);
}

int command_sim_bench(int argc, char **argv)
{
    char folder[4096], program[4160], kernels[4160], start[4160];
    if (argc != 2) {
        fprintf(stderr, "keel bench: --sim is all there is then, not '%s'\n", argv[2]);
        return 2;
    }
    if (!find_folder(folder, sizeof folder, "bench.hsaco")) {
        fprintf(stderr,
                "keel bench: there is nothing to run: it is built where clang-19 and lld-19 "
                "are installed\n");
        return 1;
    }
    snprintf(program, sizeof program, "%s/bin/bench", folder);
    snprintf(kernels, sizeof kernels, "%s/bench.hsaco", folder);
    snprintf(start, sizeof start, "%s/bin/start", folder);
    bool hip = access(start, X_OK) == 0 && prepare(folder, sizeof folder);
    char *line[] = {program, kernels, hip ? start : NULL, NULL};
    return run(line);
}
