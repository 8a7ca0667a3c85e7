// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/inspect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "executable/source.h"
#include "tools/commands.h"

static const char usage[] =
    "usage: keel inspect FILE [--json]\n"
    "  FILE    a container of Keel's, or an image that another tool made: a shared object of\n"
    "          kernels, PTX, cubin, fatbin, HSA code object, SPIR-V, LLVM offload binary, clang\n"
    "          offload bundle\n"
    "  --json  print JSON, for programs\n"
    "  --help  print this\n";

static int report(keel_status_t status)
{
    if (!status) return 0;
    fprintf(stderr, "keel inspect: ");
    keel_status_print(status, stderr);
    keel_status_release(status);
    return 1;
}

static keel_status_t file_read(const char *path, void **data, uint64_t *size)
{
    source_t source;
    KEEL_TRY(source_open(path, &source));
    *size = source.size;
    *data = malloc(source.size ? (size_t)source.size : 1);
    keel_status_t status = *data ? source_read(&source, *data, *size, 0)
                                 : KEEL_ERROR(KEEL_OUT_OF_MEMORY, "%s has %llu bytes", path,
                                              (unsigned long long)*size);
    source_finish(&source);
    return status;
}

static int inspect(const char *path, bool json)
{
    void *data = NULL;
    uint64_t size = 0;
    keel_status_t status = file_read(path, &data, &size);
    if (status) {
        free(data);
        return report(status);
    }
    keel_image_info_t *image = NULL;
    status = keel_image_info(data, size, &image);
    if (json && status)
        json_print_failure(stdout, path, size, status);
    else if (json)
        json_print(stdout, path, image);
    else if (image)
        text_print(stdout, path, image);
    keel_image_info_release(image);
    free(data);
    return report(keel_status_wrap(status, "%s cannot be read", path));
}

int command_inspect(int argc, char **argv)
{
    bool json = false;
    const char *path = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            fputs(usage, stdout);
            return 0;
        }
        if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else if (argv[i][0] == '-' && argv[i][1]) {
            fprintf(stderr, "keel inspect: no option is called %s\n%s", argv[i], usage);
            return 2;
        } else if (path) {
            fprintf(stderr, "keel inspect: give one file\n%s", usage);
            return 2;
        } else {
            path = argv[i];
        }
    }
    if (!path) {
        fputs(usage, stderr);
        return 2;
    }
    return inspect(path, json);
}
