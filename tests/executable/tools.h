// SPDX-License-Identifier: Apache-2.0
// Images made by the tools that make them for everybody, in a folder that goes away with the test.
#ifndef TESTS_EXECUTABLE_TOOLS_H_
#define TESTS_EXECUTABLE_TOOLS_H_

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <keel/status.h>

#include "executable/image.h"
#include "unit.h"

static char tools_folder[] = "/tmp/keel-images-XXXXXX";

// Group setup and teardown.
static inline int tools_begin(void **state)
{
    (void)state;
    return mkdtemp(tools_folder) ? 0 : -1;
}

static inline int tools_end(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", tools_folder);
    return system(command);
}

// Skips the test where one of the programs, named in words, is missing.
static inline void tools_need(const char *programs)
{
    char command[256];
    snprintf(command, sizeof command, "for p in %s; do command -v $p >/dev/null || exit 1; done",
             programs);
    if (system(command) == 0) return;
    print_message("needs %s\n", programs);
    skip();
}

// Runs a command in the folder; it must succeed.
__attribute__((format(printf, 1, 2))) static inline void tools_run(const char *format, ...)
{
    char command[4096];
    int used = snprintf(command, sizeof command, "cd %s && ", tools_folder);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command + used, sizeof command - (size_t)used, format, arguments);
    va_end(arguments);
    if (system(command) != 0) fail_msg("this failed: %s", command);
}

// Writes a file into the folder.
static inline void tools_write(const char *name, const void *data, size_t size)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", tools_folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

// The contents of a file, by a path in the folder or an absolute one; to be freed, and terminated
// beyond its size.
static inline char *tools_read(const char *name, size_t *size)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", name[0] == '/' ? "" : tools_folder, name);
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("cannot open %s", path);
    char *data = NULL;
    *size = 0;
    for (size_t got = 1; got; *size += got) {
        data = realloc(data, *size + 65537);
        assert_non_null(data);
        got = fread(data + *size, 1, 65536, file);
    }
    fclose(file);
    data[*size] = 0;
    return data;
}

static inline const keel_image_entry_info_t *entry_named(const image_info_t *info, const char *name)
{
    for (uint32_t i = 0; i < info->entry_count; i++)
        if (!strcmp(info->entries[i].name, name)) return &info->entries[i];
    fail_msg("there is no entry %s", name);
    return NULL;
}

// Reading succeeds, or the message of the failure is shown.
static inline void read_well(keel_status_t status)
{
    if (!status) return;
    char text[1024];
    keel_status_format(status, text, sizeof text);
    keel_status_release(status);
    fail_msg("%s", text);
}

// Reading fails with `code`, and the message has `words` in it.
static inline void read_badly(keel_status_t status, keel_code_t code, const char *words)
{
    assert_non_null(status);
    if (!strstr(keel_status_message(status), words) || keel_status_code(status) != code)
        fail_msg("expected %s '%s', got %s '%s'", keel_code_name(code), words,
                 keel_code_name(keel_status_code(status)), keel_status_message(status));
    keel_status_release(status);
}

#endif
