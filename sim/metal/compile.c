// SPDX-License-Identifier: Apache-2.0
#include "metal/compile.h"

#include "metal/thread.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

// Runs a program whose output goes to a file; whether it succeeded.
static bool run(const char *log, const char *const arguments[])
{
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    pid_t child;
    int status =
        posix_spawnp(&child, arguments[0], &files, NULL, (char *const *)arguments, environ);
    posix_spawn_file_actions_destroy(&files);
    if (status) die("%s cannot be run (%s): it compiles MSL", arguments[0], strerror(status));
    while (waitpid(child, &status, 0) < 0) continue;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

char *read_text(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file) return NULL;
    char *text = NULL;
    size_t size = 0;
    if (getdelim(&text, &size, '\0', file) < 0) {
        free(text);
        text = NULL;
    }
    fclose(file);
    return text;
}

// Puts a word that is not longer in the place of another, and blanks.
static void replace(char *text, const char *word, const char *by)
{
    for (char *at = text; (at = strstr(at, word)) != NULL;) {
        memset(at, ' ', strlen(word));
        memcpy(at, by, strlen(by));
    }
}

// Takes out the calling convention of kernels of OpenCL, which not all processors have. With
// hazards=1 the library copies and fills for kernels, and so knows of it.
static bool plain_calls(const char *path)
{
    char *text = read_text(path);
    if (!text) return false;
    replace(text, "spir_kernel", "");
    if (settings()->hazards) {
        replace(text, "@llvm.memset.p0.i64", "@simMetalSet");
        replace(text, "@llvm.memcpy.p0.p0.i64", "@simMetalCopy");
        replace(text, "@llvm.memmove.p0.p0.i64", "@simMetalMove");
        replace(text, "immarg", "");
    }
    FILE *file = fopen(path, "w");
    bool good = file && fputs(text, file) >= 0;
    if (file) good = fclose(file) == 0 && good;
    free(text);
    return good;
}

void compile_begin(paths_t *paths)
{
    strcpy(paths->folder, "/tmp/sim-metal-XXXXXX");
    paths->fast = false;
    if (!mkdtemp(paths->folder)) die("%s cannot be made", paths->folder);
    snprintf(paths->source, sizeof paths->source, "%s/k.metal", paths->folder);
    snprintf(paths->ir, sizeof paths->ir, "%s/k.ll", paths->folder);
    snprintf(paths->object, sizeof paths->object, "%s/k.so", paths->folder);
    snprintf(paths->log, sizeof paths->log, "%s/log", paths->folder);
}

void compile_end(const paths_t *paths)
{
    unlink(paths->source);
    unlink(paths->ir);
    unlink(paths->object);
    unlink(paths->log);
    rmdir(paths->folder);
}

// No double and no contraction: Metal has none of the first, and results can be compared exactly.
static const char *const front[] = {
    SIM_METAL_CLANG,
    "-x",
    "clcpp",
    "-cl-std=clc++2021",
    "-cl-no-stdinc",
    "-cl-single-precision-constant",
    "-Xclang",
    ("-cl-ext=+cl_khr_fp16,+__cl_clang_non_portable_kernel_param_types,-cl_khr_fp64,"
     "-__opencl_c_fp64"),
    "-I",
    SIM_METAL_MSL,
    "-Wno-unknown-attributes",
    "-ffp-contract=off",
    "-Wno-unknown-pragmas",
    "-O1",
    "-fPIC",
    "-S",
    "-emit-llvm"};
static const char *const back[] = {SIM_METAL_CLANG, "-x", "ir", "-O1", "-fPIC", "-shared"};

// Kernels tell of each load and store, and of atomic operations (hazard.h). Nothing is made better
// after that: it might become a copy that tells nothing.
static const char tells_front[] = "-DSIM_METAL_HAZARDS";
static const char tells_back[] = "-fsanitize-coverage=func,trace-loads,trace-stores";
// By names of the library's own: a program with a sanitizer has these functions, too, and would be
// told instead.
#define WRAP(size) "--wrap=__sanitizer_cov_load" size ",--wrap=__sanitizer_cov_store" size
static const char tells_us[] =
    "-Wl," WRAP("1") "," WRAP("2") "," WRAP("4") "," WRAP("8") "," WRAP("16");

enum { FRONT = sizeof front / sizeof *front, BACK = sizeof back / sizeof *back };

// Kernels call back into this library, whose path they are linked with.
static const char *own_path(void)
{
    Dl_info here;
    if (!dladdr((void *)simMetalGroupBarrier, &here)) die("the library does not find itself");
    return here.dli_fname;
}

static bool run_clang(const paths_t *paths)
{
    const char *first[FRONT + 6] = METHODS_END, *second[BACK + 11] = METHODS_END;
    const char *math = paths->fast ? "-ffast-math" : "-fno-fast-math";
    const char *const to_ir[] = {math, paths->source, "-o", paths->ir};
    const char *const to_object[] = {paths->ir, "-x", "none",       own_path(),
                                     "-lm",     "-o", paths->object};
    memcpy(first, front, sizeof front);
    memcpy(first + FRONT, to_ir, sizeof to_ir);
    memcpy(second, back, sizeof back);
    memcpy(second + BACK, to_object, sizeof to_object);
    if (settings()->hazards) {
        first[FRONT + sizeof to_ir / sizeof *to_ir] = tells_front;
        const char *const to_tell[] = {tells_back, tells_us, "-O0"};
        memcpy(second + BACK + sizeof to_object / sizeof *to_object, to_tell, sizeof to_tell);
    }
    return run(paths->log, first) && plain_calls(paths->ir) && run(paths->log, second);
}

// FNV-1a, with the end of the text.
static uint64_t hash_text(uint64_t hash, const char *text)
{
    do hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    while (*text++);
    return hash;
}

static uint64_t hash_file(uint64_t hash, const char *path)
{
    char *text = read_text(path);
    if (!text) die("%s cannot be read", path);
    hash = hash_text(hash, text);
    free(text);
    return hash;
}

// The name of what is compiled from a source: by everything that decides how it comes out.
static void cache_path(char *out, size_t size, const paths_t *paths)
{
    uint64_t hash = hash_file(0xcbf29ce484222325, paths->source);
    hash = hash_file(hash, SIM_METAL_MSL "/metal_stdlib");
    hash = hash_text(hash, own_path());
    hash = hash_text(hash, paths->fast ? "fast" : "exact");
    if (settings()->hazards)
        hash = hash_text(hash_text(hash_text(hash, tells_front), tells_back), tells_us);
    for (unsigned i = 0; i < FRONT; i++) hash = hash_text(hash, front[i]);
    for (unsigned i = 0; i < BACK; i++) hash = hash_text(hash, back[i]);
    snprintf(out, size, "%s/%016llx.so", settings()->cache, (unsigned long long)hash);
}

static bool copy_file(const char *from, const char *to)
{
    FILE *in = fopen(from, "rb"), *out = in ? fopen(to, "wb") : NULL;
    char bytes[16384];
    bool good = in && out;
    for (size_t count; good && (count = fread(bytes, 1, sizeof bytes, in)) > 0;)
        good = fwrite(bytes, 1, count, out) == count;
    if (in) good = !ferror(in) && fclose(in) == 0 && good;
    if (out) good = fclose(out) == 0 && good;
    return good;
}

bool compile(const paths_t *paths)
{
    if (!settings()->cache[0]) return run_clang(paths);
    char kept[320], fresh[320];
    cache_path(kept, sizeof kept, paths);
    mkdir(settings()->cache, 0700); // if that fails, so does the copy below, which tells
    if (copy_file(kept, paths->object)) return true;
    if (!run_clang(paths)) return false;
    // Under another name first: another process may look for it now.
    snprintf(fresh, sizeof fresh, "%s/%s", settings()->cache, strrchr(paths->folder, '/') + 1);
    if (!copy_file(paths->object, fresh) || rename(fresh, kept) != 0) {
        int error = errno;
        unlink(fresh);
        complain("%s cannot be written (%s): compiled MSL is not kept", kept, strerror(error));
    }
    return true;
}
