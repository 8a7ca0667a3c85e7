// SPDX-License-Identifier: Apache-2.0
// The reference compiler of FlatBuffers reads what is written here, and what it writes is read
// here.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "executable/packed.h"

#define SCHEMA SOURCE_DIR "/src/executable/container.fbs"

static char folder[] = "/tmp/keel-test-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void file_write(const char *name, const void *data, size_t size)
{
    FILE *file = fopen(in_folder(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    fclose(file);
}

// Ended by a zero that is not counted.
static size_t file_read(const char *name, char **data)
{
    struct stat info;
    assert_int_equal(stat(in_folder(name), &info), 0);
    size_t size = (size_t)info.st_size;
    *data = calloc(1, size + 1);
    FILE *file = fopen(in_folder(name), "rb");
    assert_non_null(file);
    assert_int_equal(fread(*data, 1, size, file), size);
    fclose(file);
    return size;
}

// With the schema, on a file of the folder.
static void flatc(const char *options, const char *name)
{
    char command[512];
    snprintf(command, sizeof command, "flatc -o %s %s %s %s%s >&2", folder, options, SCHEMA,
             strstr(name, ".bin") ? "-- " : "", in_folder(name));
    assert_int_equal(system(command), 0);
}

static void has(const char *json, const char *words)
{
    if (!strstr(json, words)) fail_msg("'%s' is not in %s", words, json);
}

// Contents made by flatc with two images around them, as a container.
static packed_t wrap(const char *contents, size_t size)
{
    packed_t packed = {calloc(1, 4096 + 5000 + 3192 + 7), 4096 + 5000 + 3192 + 7};
    prefix_t prefix = {.magic = FORMAT_MAGIC,
                       .version = CONTAINER_VERSION,
                       .contents = (uint32_t)size,
                       .size = packed.size,
                       .hash = hash_of(contents, size)};
    assert_true(size < 4096 - sizeof prefix);
    memcpy(packed.bytes, &prefix, sizeof prefix);
    memcpy(packed.bytes + sizeof prefix, contents, size);
    memcpy(packed.bytes + 4096, sample_bytes(), 5000);
    memcpy(packed.bytes + 4096 + 5000 + 3192, "// ptx\n", 7);
    return packed;
}

static void images_check(const packed_t *packed, const container_t *c)
{
    source_t source = source_of_memory(packed->bytes, packed->size);
    unsigned char bytes[5000];
    OK(container_image_read(c, &source, 0, bytes));
    assert_memory_equal(bytes, sample_bytes(), 5000);
    OK(container_image_read(c, &source, 1, bytes));
    assert_memory_equal(bytes, "// ptx\n", 7);
}

static void test_there_and_back(void **state)
{
    (void)state;
    packed_t packed = packed_make(false);
    file_write("ours.bin", packed.bytes + sizeof(prefix_t), packed_prefix(&packed).contents);
    mem_free(packed.bytes);
    // Checks the identifier, too.
    flatc("--json --strict-json", "ours.bin");
    char *json, *contents;
    file_read("ours.json", &json);
    has(json, "\"producer\": \"a test\"");
    has(json, "\"target\": \"gfx90a\"");
    has(json, "\"kind\": \"hsaco\"");
    has(json, "\"offset\": 4096");
    has(json, "\"size\": 5000");
    has(json, "\"name\": \"saxpy\"");
    has(json, "\"x\": 64");
    has(json, "\"local_memory\": 1024");
    has(json, "\"abi\": \"direct\"");
    has(json, "\"access\": \"read write\"");
    has(json, "\"arguments\": 40");
    has(json, "\"target\": \"nvptx:sm_70\"");

    flatc("--binary", "ours.json");
    size_t size = file_read("ours.bin", &contents);
    packed = wrap(contents, size);
    container_t c;
    OK(packed_read(&packed, &c));
    assert_int_equal(c.image_count, 2);
    assert_string_equal(c.images[0].target, "gfx90a");
    assert_string_equal(c.images[0].entries[0].info.name, "saxpy");
    assert_memory_equal(c.images[0].entries[0].info.group_size, ((uint32_t[]){64, 2, 1}), 12);
    assert_int_equal(c.images[0].entries[0].bindings[1].access, KEEL_ACCESS_ALL);
    assert_string_equal(c.images[0].entries[1].info.name, "größe");
    assert_int_equal(c.images[0].entries[1].arguments, 40);
    images_check(&packed, &c);
    container_finish(&c);
    free(packed.bytes);
    free(contents);
    free(json);
}

// All that may be left out is left out.
static void test_sparse(void **state)
{
    (void)state;
    static const char json[] =
        "{images: [{target: \"spirv\", offset: 4096, stored: 1, size: 1, hash: {bytes: "
        "[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,9]}, "
        "entries: [{name: \"f\", group_size: {x: 1, y: 2, z: 3}, bindings: [{}, {}]}]}]}";
    file_write("sparse.json", json, sizeof json - 1);
    flatc("--binary", "sparse.json");
    char *contents;
    size_t size = file_read("sparse.bin", &contents);
    packed_t packed = wrap(contents, size);
    container_t c;
    OK(packed_read(&packed, &c));
    assert_string_equal(c.producer, "");
    assert_int_equal(c.image_count, 1);
    assert_int_equal(c.images[0].kind, KEEL_IMAGE_UNKNOWN);
    assert_int_equal(c.images[0].hash.bytes[31], 9);
    assert_int_equal(c.images[0].entries[0].info.bindings, 2);
    assert_int_equal(c.images[0].entries[0].bindings[1].access, 0);
    assert_string_equal(c.images[0].entries[0].bindings[1].name, "");
    container_finish(&c);
    free(packed.bytes);
    free(contents);
}

static int folder_make(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int folder_remove(void **state)
{
    (void)state;
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    if (system("flatc --version >/dev/null 2>&1") != 0) {
        puts("there is no flatc here");
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_sparse),
    };
    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
