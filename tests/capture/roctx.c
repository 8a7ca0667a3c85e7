// SPDX-License-Identifier: Apache-2.0
// Ranges and a mark as applications make them by roctx, whose functions the traced program finds.
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void *find(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    if (found) return found;
    fprintf(stderr, "no %s\n", name);
    exit(1);
}

static void *stop(void *id)
{
    void (*range_stop)(uint64_t) = (void (*)(uint64_t))find("roctxRangeStop");
    range_stop(*(uint64_t *)id);
    range_stop(12345); // never begun
    return NULL;
}

int main(void)
{
    void (*mark)(const char *) = (void (*)(const char *))find("roctxMarkA");
    int (*push)(const char *) = (int (*)(const char *))find("roctxRangePushA");
    int (*pop)(void) = (int (*)(void))find("roctxRangePop");
    uint64_t (*start)(const char *) = (uint64_t (*)(const char *))find("roctxRangeStartA");
    uint64_t id = start("across");
    int outer = push("outer"), inner = push("inner");
    mark("mark");
    int first = pop(), second = pop(), third = pop();
    printf("%d %d %d %d %d\n", outer, inner, first, second, third);
    enum { DEEP = 100 };
    for (int i = 0; i < DEEP; i++) {
        char name[16];
        snprintf(name, sizeof name, "deep %d", i);
        if (push(name) != i) return 2;
    }
    for (int i = DEEP; i-- > 0;)
        if (pop() != i) return 3;
    pthread_t thread;
    if (pthread_create(&thread, NULL, stop, &id) != 0) return 1;
    return pthread_join(thread, NULL);
}
