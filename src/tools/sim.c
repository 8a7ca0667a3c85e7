// SPDX-License-Identifier: Apache-2.0
// keel sim: runs a program that finds software AMD GPUs below its ROCm.
#include "tools/commands.h"
#include "tools/place.h"
#include "tools/root.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
    "usage: keel sim [OPTIONS] -- PROGRAM [ARGUMENTS]\n"
    "  --gpus=LIST   gfx900, gfx906, gfx908, gfx90a or gfx942, several with commas\n"
    "  --seed=N      run packets, workgroups and waves in the random order that N gives\n"
    "  --weak[=N]    weak memory: what is not fenced is late or stale, as N (1) gives it\n"
    "  --strict      tell of packets that are odd though they are allowed\n"
    "  --threads=N   run workgroups of a dispatch on N threads at once\n"
    "  --queues=N    run N compute queues of a GPU at a time, more in turn (24)\n"
    "  --atomics=0   let the links to the host carry no atomic operations\n"
    "  --bar         let the host see all memory of the GPUs\n"
    "  --links=0     let no GPU reach the memory of another\n"
    "  --svm         let the GPUs use memory of the host at its own addresses\n"
    "  --doorbells=0 refuse to map the doorbells of a GPU for other GPUs\n"
    "  --watchdog=N  name packets that have not completed for N seconds (10; 0: never)\n"
    "  --log=LIST    calls, packets, isa, time: what is written to standard error\n"
    "  --break=NAME  run the program in gdb and stop in this kernel\n"
    "  --cache=DIR   keep there what HIP compiles for itself when it starts, and take it from "
    "there\n"
    "  --rocm=SUITE  run it with the ROCm that the script sim/rocm fetched, from its /usr\n"
    "  --help        print this\n";

// The folder of a library of sim.
static bool find_folder(char *folder, size_t size, const char *file)
{
    return place_find(folder, size, file, "sim/amd", "../" KEEL_LIBDIR "/keel/sim/amd");
}

// An option, the variable that tells the library, and what it may be: words separated by commas, a
// number, or any text.
typedef struct {
    const char *name, *variable;
    const char *words; // NULL: no words
    uint64_t least, most;
    const char *usual; // of an option without a value; NULL: it wants one
} setting_t;

static const setting_t settings[] = {
    {"--gpus", "KEEL_SIM_GPUS", "gfx900, gfx906, gfx908, gfx90a, gfx942", 1, 8, NULL},
    {"--seed", "KEEL_SIM_SEED", NULL, 0, UINT64_MAX, NULL},
    {"--weak", "KEEL_SIM_WEAK", NULL, 1, UINT64_MAX, "1"},
    {"--strict", "KEEL_SIM_STRICT", NULL, 0, 1, "1"},
    {"--threads", "KEEL_SIM_THREADS", NULL, 1, 256, NULL},
    {"--queues", "KEEL_SIM_QUEUES", NULL, 1, 1024, NULL},
    {"--atomics", "KEEL_SIM_ATOMICS", NULL, 0, 1, NULL},
    {"--bar", "KEEL_SIM_BAR", NULL, 0, 1, "1"},
    {"--links", "KEEL_SIM_LINKS", NULL, 0, 1, NULL},
    {"--svm", "KEEL_SIM_SVM", NULL, 0, 1, "1"},
    {"--doorbells", "KEEL_SIM_DOORBELLS", NULL, 0, 1, NULL},
    {"--watchdog", "KEEL_SIM_WATCHDOG", NULL, 0, 1000000, NULL},
    {"--log", "KEEL_SIM_LOG", "calls, packets, isa, time", 1, 4, NULL},
    {"--break", "KEEL_SIM_BREAK", NULL, 0, 0, NULL},
    {"--cache", "KEEL_SIM_CACHE", NULL, 0, 0, NULL},
    {"--rocm", "KEEL_SIM_ROCM", NULL, 0, 0, NULL},
};

static bool word_known(const char *words, const char *word, size_t length)
{
    for (; *words; words += strcspn(words, ", "), words += strspn(words, ", ")) {
        if (strcspn(words, ", ") == length && !strncmp(words, word, length)) return true;
    }
    return false;
}

static bool words_check(const setting_t *setting, const char *value)
{
    uint64_t count = 0;
    for (const char *word = value;; word++) {
        size_t length = strcspn(word, ",");
        if (!word_known(setting->words, word, length)) {
            fprintf(stderr, "keel sim: %s: '%.*s' is none of %s\n", setting->name, (int)length,
                    word, setting->words);
            return false;
        }
        count++;
        word += length;
        if (!*word) break;
    }
    if (count <= setting->most) return true;
    fprintf(stderr, "keel sim: %s: at most %llu, not %llu\n", setting->name,
            (unsigned long long)setting->most, (unsigned long long)count);
    return false;
}

static bool number_check(const setting_t *setting, const char *value)
{
    char *end;
    errno = 0;
    uint64_t number = strtoull(value, &end, 0);
    bool digits = *value >= '0' && *value <= '9' && !*end && !errno;
    if (digits && number >= setting->least && number <= setting->most) return true;
    fprintf(stderr, "keel sim: %s: a number from %llu to %llu, not '%s'\n", setting->name,
            (unsigned long long)setting->least, (unsigned long long)setting->most, value);
    return false;
}

static bool setting_set(const setting_t *setting, const char *value)
{
    if (!value || !*value || !strcmp(value, "--")) {
        fprintf(stderr, "keel sim: %s wants a value\n", setting->name);
        return false;
    }
    bool good = setting->words  ? words_check(setting, value)
                : setting->most ? number_check(setting, value)
                                : true;
    return good && setenv(setting->variable, value, 1) == 0;
}

// Takes --NAME=VALUE, or --NAME and the next argument unless the option can do without; false after
// a message.
static bool option_parse(char **argv, int *index)
{
    const char *argument = argv[*index];
    size_t length = strcspn(argument, "=");
    for (size_t k = 0; k < sizeof settings / sizeof *settings; k++) {
        const setting_t *setting = &settings[k];
        if (strlen(setting->name) != length || strncmp(argument, setting->name, length)) continue;
        if (argument[length]) return setting_set(setting, argument + length + 1);
        return setting_set(setting, setting->usual ? setting->usual : argv[++*index]);
    }
    fprintf(stderr, "keel sim: what is %s?\n%s", argument, usage);
    return false;
}

static bool find_gpu(char *folder, size_t size)
{
    if (find_folder(folder, size, "libkeelkfd.so")) return true;
    fprintf(stderr, "keel sim: no libkeelkfd.so in sim/amd beside this program, nor where it is "
                    "installed; it is built where libhsa-runtime-dev is installed\n");
    return false;
}

// Sets up the environment of a program that finds the software GPU in the folder.
static bool prepare(const char *folder)
{
    if (place_prepend("LD_PRELOAD", " ", folder, "/libkeelkfd.so") &&
        place_prepend("PATH", ":", folder, "/bin")) {
        return true;
    }
    fprintf(stderr, "keel sim: memory is short\n");
    return false;
}

// The same for a compiler that remembers, if a folder is given for that and the library was built.
static bool prepare_cache(const char *folder)
{
    const char *cache = getenv("KEEL_SIM_CACHE");
    char library[4200], path[4096];
    snprintf(library, sizeof library, "%s/comgr/libamd_comgr.so.2", folder);
    if (!cache || access(library, R_OK) != 0) return true;
    // The program may go to another folder.
    if ((mkdir(cache, 0777) && errno != EEXIST) || !realpath(cache, path)) {
        fprintf(stderr, "keel sim: --cache: %s: %s\n", cache, strerror(errno));
        return false;
    }
    return setenv("KEEL_SIM_CACHE", path, 1) == 0 &&
           place_prepend("LD_LIBRARY_PATH", ":", folder, "/comgr");
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

// Runs the program with the ROCm of a folder.
static int run_rocm(const char *name, const char *folder, char **argv)
{
    char build[3072], root[4096];
    if (getenv("KEEL_SIM_BREAK")) {
        fprintf(stderr, "keel sim: --break and --rocm: the debugger does not see that /usr\n");
        return 2;
    }
    if (!place_own(build, sizeof build) || !root_find(root, sizeof root, name, build)) return 1;
    if (root_enter(root, folder)) return prepare(ROOT_SIM) ? run(argv) : 1;
    if (!prepare(folder)) return 1;
    root_run(root, argv);
    return 127;
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
        if (!option_parse(argv, &i)) return 2;
        i++;
    }
    if (i < argc && strcmp(argv[i], "--") == 0) i++;
    if (i == argc) {
        fputs(usage, stderr);
        return 2;
    }
    const char *rocm = getenv("KEEL_SIM_ROCM");
    if (!find_gpu(folder, sizeof folder)) return 1;
    if (rocm) return run_rocm(rocm, folder, argv + i);
    if (!prepare(folder) || !prepare_cache(folder)) return 1;
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
    bool hip = access(start, X_OK) == 0 && find_gpu(folder, sizeof folder) && prepare(folder);
    char *line[] = {program, kernels, hip ? start : NULL, NULL};
    return run(line);
}
