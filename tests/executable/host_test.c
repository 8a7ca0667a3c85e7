// SPDX-License-Identifier: Apache-2.0
// Shared objects that compilers make, and the same table as the system's loader sees it.
#include "executable/host.h"

#include <dlfcn.h>

#include <keel/host_kernel.h>

#include "tools.h"

static const char source[] =
    "#include <keel/host_kernel.h>\n"
    "static int one(const keel_host_dispatch_t *d, const keel_host_group_t *g)\n"
    "{ (void)d; (void)g; return 0; }\n"
    "int two(const keel_host_dispatch_t *d, const keel_host_group_t *g);\n"
    "__attribute__((visibility(\"default\"))) int two(const keel_host_dispatch_t *d,\n"
    "    const keel_host_group_t *g) { (void)d; (void)g; return 1; }\n"
    "static const uint32_t access[] = {1, 3, 2};\n"
    "static const char *const names[] = {\"x\", 0, \"out\"};\n"
    "static const keel_host_entry_t entries[] = {\n"
    "    {\"one\", one, {64, 2, 1}, 8, 3, 256, access, names},\n"
    "    {\"two\", two, {1, 1, 1}, 0, 2, 0, access, 0},\n"
    "    {\"three\", one, {16, 1, 4}, 4, 0, 0, 0, 0},\n"
    "};\n"
    "KEEL_HOST_LIBRARY(entries, 0, 0)\n";

static void compile(const char *compiler, const char *flags)
{
    tools_write("k.c", source, sizeof source - 1);
    tools_run("%s -O1 -shared -fPIC -I%s/../../include k.c -o k.so %s", compiler, TESTS_DATA,
              flags);
}

static void entry_compare(const keel_image_entry_info_t *entry, const keel_host_entry_t *loaded)
{
    assert_string_equal(entry->name, loaded->name);
    assert_memory_equal(entry->group_size, loaded->group_size, sizeof entry->group_size);
    assert_int_equal(entry->constants, loaded->constants);
    assert_int_equal(entry->local_memory, loaded->local_memory);
    assert_int_equal(entry->binding_count, loaded->bindings);
    for (uint32_t i = 0; i < entry->binding_count; i++) {
        const char *name = loaded->names && loaded->names[i] ? loaded->names[i] : "";
        assert_int_equal(entry->bindings[i].binding, i);
        assert_int_equal(entry->bindings[i].access, loaded->access[i]);
        assert_string_equal(entry->bindings[i].name, name);
    }
}

static void entries_compare(const keel_host_entry_t *loaded, const char *target)
{
    size_t size;
    char *data = tools_read("k.so", &size);
    image_info_t info;
    read_well(image_read(data, size, &info));
    assert_int_equal(info.kind, KEEL_IMAGE_HOST);
    if (target) assert_string_equal(info.target, target);
    assert_int_equal(info.entry_count, 3);
    for (uint32_t i = 0; i < 3; i++) entry_compare(&info.entries[i], &loaded[i]);
    image_info_finish(&info);
    free(data);
}

// Under an emulator the compiler is another machine's: no reason to fail, but nothing to compare.
static void is_foreign(const char *name)
{
    size_t size;
    char *data = tools_read(name, &size);
    keel_status_t status = host_check(data, size);
    free(data);
    assert_int_equal(keel_status_code(status), KEEL_UNSUPPORTED);
    keel_status_release(status);
    skip();
}

static void test_as_loaded(void **state)
{
    (void)state;
    static const char *const flags[] = {"", "-Wl,-s"};
    tools_need("cc");
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        char path[256];
        compile("cc", flags[i]);
        snprintf(path, sizeof path, "%s/k.so", tools_folder);
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!library) is_foreign("k.so");
        const keel_host_library_t *table = dlsym(library, "keel_host_library");
        assert_non_null(table);
        entries_compare(table->entries, NULL);
        dlclose(library);
    }
}

// For machines that this one need not be.
static void test_from_clang(void **state)
{
    (void)state;
    static const uint32_t access[] = {1, 3, 2};
    static const char *const names[] = {"x", NULL, "out"};
    static const keel_host_entry_t entries[] = {
        {"one", NULL, {64, 2, 1}, 8, 3, 256, access, names},
        {"two", NULL, {1, 1, 1}, 0, 2, 0, access, NULL},
        {"three", NULL, {16, 1, 4}, 4, 0, 0, NULL, NULL},
    };
    static const char *const machines[] = {"x86_64", "aarch64"};
    static const char *const flags[] = {"", "-Wl,-s", "-Wl,--pack-dyn-relocs=relr"};
    tools_need("clang-19 ld.lld-19");
    for (size_t i = 0; i < 6; i++) {
        char compiler[128], target[32];
        snprintf(compiler, sizeof compiler,
                 "clang-19 --target=%s-linux-gnu -ffreestanding -nostdlib -fuse-ld=lld",
                 machines[i / 3]);
        snprintf(target, sizeof target, "%s-linux", machines[i / 3]);
        compile(compiler, flags[i % 3]);
        entries_compare(entries, target);
    }
}

static void test_no_table(void **state)
{
    (void)state;
    tools_need("clang-19 ld.lld-19");
    tools_run("echo 'int f(void) { return 1; }' >n.c && clang-19 --target=x86_64-linux-gnu "
              "-nostdlib -fuse-ld=lld -shared -fPIC n.c -o n.so");
    size_t size;
    char *data = tools_read("n.so", &size);
    image_info_t info;
    read_well(host_read(data, size, &info));
    assert_int_equal(info.entry_count, 0);
    image_info_finish(&info);
    free(data);
}

// Every byte of the object, one after another, is turned over.
static void test_damaged(void **state)
{
    (void)state;
    tools_need("clang-19 ld.lld-19");
    compile("clang-19 --target=x86_64-linux-gnu -ffreestanding -nostdlib -fuse-ld=lld", "-Wl,-s");
    size_t size;
    char *data = tools_read("k.so", &size);
    unsigned refused = 0;
    for (size_t i = 0; i < size; i++) {
        image_info_t info;
        data[i] = (char)~data[i];
        keel_status_t status = host_read(data, size, &info);
        refused += status != NULL;
        keel_status_release(status);
        image_info_finish(&info);
        data[i] = (char)~data[i];
    }
    assert_true(refused > 100);
    image_info_t info;
    data[18] = 8;
    read_badly(host_read(data, size, &info), KEEL_UNSUPPORTED, "machine 8");
    read_badly(host_check(data, size), KEEL_UNSUPPORTED, "machine 8");
    read_badly(host_check(data, 40), KEEL_CORRUPT, "truncated");
    static const char ptx[] = ".version 8.0\n.target sm_70\n";
    read_badly(host_check(ptx, sizeof ptx - 1), KEEL_UNSUPPORTED, "it is ptx");
    read_badly(host_check("neither", 7), KEEL_CORRUPT, "no ELF file");
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_loaded),
        cmocka_unit_test(test_from_clang),
        cmocka_unit_test(test_no_table),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, tools_begin, tools_end);
}
