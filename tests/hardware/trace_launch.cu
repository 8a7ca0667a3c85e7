// SPDX-License-Identifier: Apache-2.0
// trace_launch [LIBRARY KINDS APIS CALLS]: ns that the call of a launch takes, with some time
// between the calls, so that the GPU is idle then: the median of a round, of the best of its
// rounds. With a library (trace_floor.c) CUPTI is asked for that first.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LAUNCHES = 10000, ROUNDS = 8, BETWEEN_NS = 6000 };

__global__ void nothing() {}

static uint64_t now()
{
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return uint64_t(time.tv_sec) * 1000000000u + uint64_t(time.tv_nsec);
}

static int less(const void *a, const void *b)
{
    return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

static uint32_t took[LAUNCHES];

static void round_run(cudaStream_t stream)
{
    for (int i = 0; i < LAUNCHES; i++) {
        uint64_t begin = now(), end;
        nothing<<<1, 1, 0, stream>>>();
        took[i] = uint32_t((end = now()) - begin);
        while (now() - end < BETWEEN_NS) {
        }
    }
    cudaStreamSynchronize(stream);
    qsort(took, LAUNCHES, sizeof *took, less);
}

int main(int argc, char **argv)
{
    cudaStream_t stream;
    if (cudaStreamCreate(&stream) != cudaSuccess) return 1;
    if (argc == 5) {
        void *library = dlopen(argv[1], RTLD_NOW);
        auto use =
            (void (*)(const char *, const char *, const char *, int))dlsym(library, "floor_use");
        use(argv[2], argv[3], argv[4], 1);
    }
    uint32_t least = UINT32_MAX, high = 0;
    for (int i = 0; i < ROUNDS; i++) {
        round_run(stream);
        if (took[LAUNCHES / 2] >= least) continue;
        least = took[LAUNCHES / 2];
        high = took[LAUNCHES * 9 / 10];
    }
    printf("RESULT [%u, %u]\n", least, high);
    return 0;
}
