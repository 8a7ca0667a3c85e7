// SPDX-License-Identifier: Apache-2.0
// inside PATH: a program in another /usr. It sees the software GPU there, the machine's files
// beside it, and no cache of the machine's libraries; it can write the file PATH as the user it
// was.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char gpu[] = "/usr/lib/keel-sim/";

static int fail(const char *what)
{
    printf("inside: %s\n", what);
    return 1;
}

int main(int argc, char **argv)
{
    struct stat about;
    const char *preload = getenv("LD_PRELOAD");
    if (argc != 2) return 2;
    if (access("/usr/bin/inside", X_OK) != 0) return fail("/usr is the machine's");
    if (!preload || strncmp(preload, gpu, sizeof gpu - 1)) return fail("LD_PRELOAD is wrong");
    char first[256];
    snprintf(first, sizeof first, "%.*s", (int)strcspn(preload, " :"), preload);
    if (access(first, R_OK) != 0) return fail("the software GPU is missing");
    if (stat("/etc/ld.so.cache", &about) == 0 && about.st_size) return fail("there is a cache");
    FILE *file = fopen(argv[1], "w");
    if (!file || fclose(file) != 0 || stat(argv[1], &about) != 0) return fail("nothing is written");
    if (about.st_uid != geteuid()) return fail("the user is another");
    printf("inside: all is well\n");
    return 0;
}
