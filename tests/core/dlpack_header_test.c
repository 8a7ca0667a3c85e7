// SPDX-License-Identifier: Apache-2.0
// That a program may include any release of dlpack.h before <keel/dlpack.h>. What the releases
// declare is written here by hand, since a system has one of them at most.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "unit.h"

static char folder[] = "/tmp/keel-dlpack-XXXXXX";

static const char begin[] = "#ifndef DLPACK_DLPACK_H_\n"
                            "#define DLPACK_DLPACK_H_\n"
                            "#include <stdint.h>\n";
static const char data_type[] =
    "typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;\n";
static const char managed[] = "typedef struct DLManagedTensor {\n"
                              "    DLTensor dl_tensor;\n"
                              "    void *manager_ctx;\n"
                              "    void (*deleter)(struct DLManagedTensor *self);\n"
                              "} DLManagedTensor;\n";
static const char end[] = "#endif\n";

#define DEVICE(type) "typedef struct { int device_type, device_id; } " type ";\n"
#define TENSOR(device)                                                                             \
    "typedef struct {\n"                                                                           \
    "    void *data; " device "; int ndim; DLDataType dtype;\n"                                    \
    "    int64_t *shape, *strides; uint64_t byte_offset;\n"                                        \
    "} DLTensor;\n"
#define VERSION                                                                                    \
    "#define DLPACK_MAJOR_VERSION 1\n"                                                             \
    "typedef struct { uint32_t major, minor; } DLPackVersion;\n"
#define VERSIONED(before, after)                                                                   \
    before "struct DLManagedTensorVersioned {\n"                                                   \
           "    DLPackVersion version;\n"                                                          \
           "    void *manager_ctx;\n"                                                              \
           "    void (*deleter)(struct DLManagedTensorVersioned *self);\n"                         \
           "    uint64_t flags;\n"                                                                 \
           "    DLTensor dl_tensor;\n"                                                             \
           "}" after ";\n"

static const struct {
    const char *release, *version, *device, *tensor, *versioned;
} headers[] = {
    {"0.4", "#define DLPACK_VERSION 040\n", DEVICE("DLContext"), TENSOR("DLContext ctx"), ""},
    {"0.6", "#define DLPACK_VERSION 60\n", DEVICE("DLDevice"), TENSOR("DLDevice device"), ""},
    {"1.0", VERSION, DEVICE("DLDevice"), TENSOR("DLDevice device"), VERSIONED("", "")},
    {"1.1", VERSION, DEVICE("DLDevice"), TENSOR("DLDevice device"),
     VERSIONED("typedef ", " DLManagedTensorVersioned")},
};

// A program between the two, which names every type of the border.
static const char program[] =
    "#include \"dlpack.h\"\n"
    "#include <keel/dlpack.h>\n"
    "static keel_status_t to(keel_buffer_t *buffer, const keel_tensor_t *shape, DLTensor *tensor)\n"
    "{\n"
    "    DLManagedTensorVersioned *managed;\n"
    "    keel_status_t status = keel_buffer_to_dlpack(buffer, shape, &managed);\n"
    "    if (!status && managed->version.major == 1) *tensor = managed->dl_tensor;\n"
    "    return status;\n"
    "}\n"
    "int main(void)\n"
    "{\n"
    "    static DLManagedTensor legacy;\n"
    "    DLTensor tensor;\n"
    "    keel_tensor_t shape = {{2, 32, 1}, 0, 0, 0, 0};\n"
    "    return to(0, &shape, &tensor) || legacy.deleter ||\n"
    "           sizeof(DLManagedTensorVersioned) != 80;\n"
    "}\n";

static FILE *file_open(const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    return file;
}

static void header_write(int index)
{
    FILE *file = file_open("dlpack.h");
    fprintf(file, "%s%s%s%s%s%s%s%s", begin, headers[index].version, headers[index].device,
            data_type, headers[index].tensor, managed, headers[index].versioned, end);
    fclose(file);
}

// Compiles the program, which is no more than checked: another test runs such a one.
static void expect_taken(const char *compiler, const char *release)
{
    char command[1024];
    snprintf(command, sizeof command,
             "cd %s && %s -Wall -Wextra -pedantic -Werror -fsyntax-only -I" SOURCE_DIR
             "/include program.c",
             folder, compiler);
    if (system(command) != 0) fail_msg("with DLPack %s this failed: %s", release, command);
}

static void test_every_release(void **state)
{
    bool cxx = system("command -v g++ >/dev/null") == 0;
    for (int i = 0; i < (int)(sizeof headers / sizeof headers[0]); i++) {
        header_write(i);
        expect_taken(HOST_CC " -std=c11", headers[i].release);
        if (cxx) expect_taken("g++ -xc++ -std=c++17", headers[i].release);
    }
}

static int set_up(void **state)
{
    if (!mkdtemp(folder)) return -1;
    FILE *file = file_open("program.c");
    fputs(program, file);
    return fclose(file);
}

static int tear_down(void **state)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_release)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
