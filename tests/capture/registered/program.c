// SPDX-License-Identifier: Apache-2.0
// A program on the HIP that is played: calls as the linker binds them, and past a preloaded
// library. Ends with 7 if all of them came through and returned what they should.
#include "hip.h"

#include <stdio.h>

static int bad;

static void check(int line, int good)
{
    if (good) return;
    fprintf(stderr, "line %d\n", line);
    bad = 1;
}
#define CHECK(condition) check(__LINE__, condition)

static void use(const hip_functions_t *hip)
{
    void *memory = NULL, *kernel = NULL, *function = NULL, *stream = hip_own()->called;
    CHECK(hip->malloc(&memory, 16) == 0 && memory == stream);
    CHECK(hip->malloc(&memory, 0) == 1);
    CHECK(hip->kernel(&kernel, &memory, "add_one") == 0);
    CHECK(hip->kernel(&kernel, &memory, "no_such_kernel") == 500);
    CHECK(hip->function(&function, kernel) == 0);
    CHECK(hip->launch(NULL, function, NULL, NULL) == 0);
    CHECK(hip->batch(2, NULL, NULL, 3, stream) == 0);
    CHECK(hip->prefetch(memory, 4, (hip_place_t){1, 7}, 9, stream) == 0);
}

int main(void)
{
    static const hip_functions_t bound = {
        .malloc = hipMalloc,
        .launch = hipDrvLaunchKernelEx,
        .batch = hipMemcpy3DBatchAsync,
        .prefetch = hipMemPrefetchAsync_v2,
        .kernel = hipLibraryGetKernel,
        .function = hipKernelGetFunction,
    };
    use(&bound);
    use(hip_own());
    CHECK(*hip_own()->called == 16);
    puts(bad ? "wrong" : "right");
    return bad ? 1 : 7;
}
