// SPDX-License-Identifier: Apache-2.0
// replay FOLDER [COUNT]: gives every file of a corpus to a fuzz target, with any compiler, and each
// COUNT times with some bytes changed, the same ones in each run. A sanitizer, or a crash, says
// which by the name and the number printed before it.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"

// The next of a fixed sequence of numbers (xorshift64).
static uint32_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)(*state >> 32);
}

// Changes up to eight bytes: to others, or to values at which much ends. One change in four leaves
// the end away.
static size_t bytes_change(uint8_t *data, size_t size, uint64_t *state)
{
    static const uint8_t ends[] = {0, 1, 0x7f, 0x80, 0xff};
    for (uint32_t left = 1 + draw(state) % 8; size && left; left--) {
        uint32_t how = draw(state);
        data[draw(state) % size] = how & 1 ? ends[how / 2 % sizeof ends] : (uint8_t)(how >> 8);
    }
    return size && draw(state) % 4 == 0 ? draw(state) % size : size;
}

// In a block of exactly its size, so that a sanitizer sees what goes beyond.
static void bytes_replay(const uint8_t *given, size_t size, uint64_t *change)
{
    uint8_t *data = malloc(size ? size : 1);
    if (!data) abort();
    memcpy(data, given, size);
    if (change) {
        size = bytes_change(data, size, change);
        data = realloc(data, size ? size : 1);
    }
    if (!data) abort();
    LLVMFuzzerTestOneInput(data, size);
    free(data);
}

static int file_replay(const char *path, unsigned count)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) != 0) return -1;
    long size = ftell(file);
    uint8_t *data = size >= 0 ? malloc(size ? (size_t)size : 1) : NULL;
    rewind(file);
    if (!data || fread(data, 1, (size_t)size, file) != (size_t)size) return -1;
    fclose(file);
    uint64_t state = 0x9e3779b97f4a7c15u;
    bytes_replay(data, (size_t)size, NULL);
    for (unsigned i = 1; i <= count; i++) {
        fprintf(stderr, "changed, %u\n", i);
        bytes_replay(data, (size_t)size, &state);
    }
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    DIR *folder = argc == 2 || argc == 3 ? opendir(argv[1]) : NULL;
    unsigned changed = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    if (!folder) {
        fprintf(stderr, "usage: replay FOLDER [COUNT]\n");
        return 2;
    }
    unsigned count = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[4096];
        if (entry->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        fprintf(stderr, "%s\n", path);
        if (file_replay(path, changed) != 0) {
            perror(path);
            return 1;
        }
        count++;
    }
    closedir(folder);
    return count ? 0 : 1;
}
