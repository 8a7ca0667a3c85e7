// SPDX-License-Identifier: Apache-2.0
// replay FOLDER: gives every file of a corpus to a fuzz target, with any compiler. A sanitizer, or
// a crash, says which by the name printed before it.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"

// In a block of exactly its size, so that a sanitizer sees what goes beyond.
static int file_replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) return -1;
    long size = ftell(file);
    uint8_t *data = size >= 0 ? malloc(size ? (size_t)size : 1) : NULL;
    rewind(file);
    if (!data || fread(data, 1, (size_t)size, file) != (size_t)size) return -1;
    fclose(file);
    LLVMFuzzerTestOneInput(data, (size_t)size);
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
    if (!folder) {
        fprintf(stderr, "usage: replay FOLDER\n");
        return 2;
    }
    unsigned count = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[4096];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        fprintf(stderr, "%s\n", path);
        if (file_replay(path) != 0) {
            perror(path);
            return 1;
        }
        count++;
    }
    closedir(folder);
    return count ? 0 : 1;
}
