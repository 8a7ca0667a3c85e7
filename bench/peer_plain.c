// SPDX-License-Identifier: Apache-2.0
// The loops that a person writes without Keel, compiled for this very machine when they are needed.
#include "rig.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char source[] =
    "#include <stddef.h>\n"
    "void saxpy(size_t n, const float *restrict x, float *restrict y, float *restrict unused)\n"
    "{\n"
    "    float a = unused[0];\n"
    "    for (size_t i = 0; i < n; i++) y[i] = a * x[i] + y[i];\n"
    "}\n"
    "void sgemm(size_t n, const float *restrict a, float *restrict b, float *restrict c)\n"
    "{\n"
    "    for (size_t i = 0; i < n; i++)\n"
    "        for (size_t j = 0; j < n; j++) {\n"
    "            float sum = 0;\n"
    "            for (size_t k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];\n"
    "            c[i * n + j] = sum;\n"
    "        }\n"
    "}\n";

typedef void (*loop_fn)(size_t n, const float *x, float *y, float *z);

typedef struct plain_t {
    setting_t setting;
    void *object;
    loop_fn loop;
    float *arrays[3];
} plain_t;

// Compiles the source; NULL if there is no compiler, or it does not know this machine.
static void *object_make(void)
{
    char folder[] = "/tmp/keel-bench-XXXXXX", path[64], command[512];
    if (!mkdtemp(folder)) return NULL;
    snprintf(path, sizeof path, "%s/plain.c", folder);
    FILE *file = fopen(path, "w");
    if (file) {
        fputs(source, file);
        fclose(file);
    }
    snprintf(command, sizeof command,
             "cc -O3 -march=native -shared -fPIC %s -o %s/plain.so >/dev/null 2>&1", path, folder);
    void *object = NULL;
    if (system(command) == 0) {
        snprintf(path, sizeof path, "%s/plain.so", folder);
        object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/plain.c", folder);
    unlink(path);
    rmdir(folder);
    return object;
}

static keel_status_t plain_begin(const setting_t *setting, void **state)
{
    plain_t *self = calloc(1, sizeof *self);
    if (!self) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
    *state = self;
    self->setting = *setting;
    self->object = object_make();
    if (!self->object) return KEEL_ERROR(KEEL_UNSUPPORTED, "cc -O3 -march=native does not work");
    self->loop = (loop_fn)(uintptr_t)dlsym(self->object, setting->job.kernel);
    size_t n = setting->job.size, count = strcmp(setting->job.kernel, "saxpy") ? n * n : n;
    for (int i = 0; i < 3; i++) {
        self->arrays[i] = aligned_alloc(64, count * sizeof(float));
        if (!self->arrays[i]) return KEEL_ERROR(KEEL_OUT_OF_MEMORY, "no memory");
        for (size_t k = 0; k < count; k++) self->arrays[i][k] = (float)(k % 7);
    }
    return NULL;
}

static keel_status_t plain_round(void *state, tally_t *tally)
{
    plain_t *self = state;
    const job_t *job = &self->setting.job;
    for (uint32_t s = 0; s < job->samples; s++) {
        uint64_t start = keel_now_ns();
        for (uint32_t i = 0; i < job->repeat; i++)
            self->loop(job->size, self->arrays[0], self->arrays[1], self->arrays[2]);
        tally_add(tally, (double)(keel_now_ns() - start) / job->repeat);
    }
    return NULL;
}

static void plain_end(void *state)
{
    plain_t *self = state;
    for (int i = 0; i < 3; i++) free(self->arrays[i]);
    if (self->object) dlclose(self->object);
    free(self);
}

const side_t plain_loop = {"plain loop", plain_begin, plain_round, plain_end};
