// SPDX-License-Identifier: Apache-2.0
// Executables: loading, entry points, globals.
#include "suite/suite.h"

#include <fcntl.h>
#include <unistd.h>

#define RUNS .needs = KEEL_CAP_EXECUTES

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__has_feature)
#define WITH_ASAN __has_feature(address_sanitizer)
#else
#define WITH_ASAN 0
#endif

static keel_status_t load(const void *data, size_t size, const char *path)
{
    keel_executable_options_t options = {.data = data, .size = size, .path = path};
    keel_executable_t *executable = NULL;
    keel_status_t status = keel_executable_load(the_device(), &options, &executable);
    keel_executable_release(executable);
    return status;
}

TEST(executable, load_from_memory, RUNS)
{
    const void *data;
    size_t size;
    kernels_image(&data, &size);
    // The image is borrowed for the call only.
    void *copy = scratch(size);
    memcpy(copy, data, size);
    keel_executable_options_t options = {.data = copy, .size = size, .name = "mine"};
    keel_executable_t *executable = kernels_load(the_device(), &options);
    drop(copy);
    keel_entry_t entry;
    TRY(keel_executable_entry(executable, "tally", &entry));
    keel_buffer_t *word = new_buffer(4);
    reach(submit(keel_op_dispatch(entry, keel_groups(3, 1, 1), NULL, 0, KEEL_BIND(word))));
    CHECK_EQ(buffer_u32(word, 0), 3);
}

static void remove_file(void *user)
{
    unlink(user);
}

static const char *write_file(const void *data, size_t size)
{
    char *path = scratch(64);
    strcpy(path, "/tmp/keel-conformance-XXXXXX");
    int fd = mkstemp(path);
    CHECK(fd >= 0);
    own_cleanup(remove_file, path);
    ssize_t written = write(fd, data, size);
    close(fd);
    CHECK(written == (ssize_t)size);
    return path;
}

TEST(executable, load_from_a_path, RUNS)
{
    const void *data;
    size_t size;
    kernels_image(&data, &size);
    const char *path = write_file(data, size);
    keel_executable_options_t options = {.path = path};
    keel_executable_t *executable = kernels_load(the_device(), &options);
    CHECK_GE(keel_executable_entry_count(executable), 10);
    keel_entry_t entry;
    FAILS_SAYING(KEEL_NOT_FOUND, path, keel_executable_entry(executable, "missing", &entry));
}

extern const unsigned char keel_embed_conformance_deep[];
extern const uint64_t keel_embed_conformance_deep_size;

// A device that has no such workgroups says so when they are loaded, with both sizes.
TEST(executable, deep_workgroups, RUNS)
{
    keel_executable_options_t options = {.data = keel_embed_conformance_deep,
                                         .size = keel_embed_conformance_deep_size};
    keel_executable_t *executable = NULL;
    uint32_t most = the_caps()->max_group_sizes[2];
    if (most < 128) {
        char most_text[64];
        snprintf(most_text, sizeof most_text, "x %u", most);
        const char *const parts[] = {"1 x 1 x 128", most_text};
        for (size_t i = 0; i < COUNT(parts); i++)
            FAILS_SAYING(KEEL_UNSUPPORTED, parts[i],
                         keel_executable_load(the_device(), &options, &executable));
        return;
    }
    executable = kernels_load(the_device(), &options);
    keel_buffer_t *out = new_buffer(128 * 4);
    keel_entry_t entry = {executable, 0};
    reach(submit(keel_op_dispatch(entry, keel_groups(1, 1, 1), NULL, 0, KEEL_BIND(out))));
    for (uint32_t i = 0; i < 128; i++) CHECK_EQ(buffer_u32(out, i), i);
}

TEST(executable, load_twice, RUNS)
{
    keel_executable_t *a = kernels(), *b = kernels_on(the_device());
    CHECK(a != b);
    drop(a);
    keel_entry_t entry;
    TRY(keel_executable_entry(b, "empty", &entry));
    reach(submit(keel_op_dispatch(entry, keel_groups(1, 1, 1), NULL, 0, KEEL_NO_BINDINGS)));
}

// Two loads of one image do not share their variables.
TEST(executable, load_twice_is_two, RUNS)
{
    keel_executable_t *a = kernels_on(the_device()), *b = kernels_on(the_device());
    keel_entry_t entry;
    keel_buffer_t *out = new_buffer(16);
    uint32_t five = 5, zero = 0;
    TRY(keel_executable_entry(a, "use_global", &entry));
    reach(submit(keel_op_dispatch(entry, keel_groups(1, 1, 1), &five, 4, KEEL_BIND(out))));
    CHECK_EQ(buffer_u32(out, 0), 16);
    TRY(keel_executable_entry(b, "use_global", &entry));
    reach(submit(keel_op_dispatch(entry, keel_groups(1, 1, 1), &zero, 4, KEEL_BIND(out))));
    CHECK_EQ(buffer_u32(out, 0), 11);
}

static void load_parts(const void *data, size_t size)
{
    const size_t sizes[] = {1, 4, 16, 63, 64, 100, size / 4, size / 2, size - 1};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        row("the first %zu of %zu bytes", sizes[i], size);
        void *part = scratch(sizes[i]);
        memcpy(part, data, sizes[i]);
        FAILS(KEEL_CORRUPT, load(part, sizes[i], NULL));
    }
}

TEST(executable, damaged_images, RUNS)
{
    const void *data;
    size_t size;
    kernels();
    kernels_image(&data, &size);
    load_parts(data, size);
    FAILS(KEEL_CORRUPT, load("this is no image at all, is it?", 31, NULL));
    void *zeros = scratch(4096);
    FAILS(KEEL_CORRUPT, load(zeros, 4096, NULL));
}

TEST(executable, damaged_shared_objects, RUNS, .driver = "cpu")
{
    const void *data;
    size_t size;
    host_kernels_image(&data, &size);
    load_parts(data, size);
}

// Each byte of the headers changed in turn: an error or not, but never a crash.
static void load_flipped(const void *data, size_t size)
{
    unsigned char *copy = scratch(size);
    unsigned refused = 0;
    for (size_t i = 0; i < 64; i++) {
        row("byte %zu", i);
        memcpy(copy, data, size);
        copy[i] ^= 0xff;
        keel_status_t status = load(copy, size, NULL);
        keel_code_t code = keel_status_code(status);
        if (code != KEEL_CORRUPT && code != KEEL_UNSUPPORTED) TRY(status);
        refused += status != NULL;
        keel_status_release(status);
    }
    CHECK_GE(refused, 8); // a driver that reads no header finds nothing wrong
}

TEST(executable, flipped_bytes, RUNS, .heavy = true)
{
    const void *data;
    size_t size;
    kernels_image(&data, &size);
    load_flipped(data, size);
}

TEST(executable, flipped_bytes_of_shared_objects, RUNS, .heavy = true, .driver = "cpu")
{
    const void *data;
    size_t size;
    host_kernels_image(&data, &size);
    load_flipped(data, size);
}

TEST(executable, another_machine, RUNS, .driver = "cpu")
{
    const void *data;
    size_t size;
    host_kernels_image(&data, &size);
    unsigned char *copy = scratch(size);
    memcpy(copy, data, size);
    memcpy(copy + 18, "\x08\x00", 2); // e_machine: MIPS
    FAILS_SAYING(KEEL_UNSUPPORTED, "machine 8", load(copy, size, NULL));
    memcpy(copy, data, size);
    copy[4] = 1; // 32 bits
    FAILS_SAYING(KEEL_UNSUPPORTED, "64-bit", load(copy, size, NULL));
}

// A library with everything in order but for the name of its table.
TEST(executable, without_the_table, RUNS, .driver = "cpu")
{
#if WITH_ASAN
    skip("ASAN", "AddressSanitizer keeps a symbol of its own by that name");
#endif
    static const char name[] = "keel_host_library";
    const void *data;
    size_t size;
    host_kernels_image(&data, &size);
    char *copy = scratch(size);
    memcpy(copy, data, size);
    for (size_t i = 0; i + sizeof name <= size; i++) {
        if (memcmp(copy + i, name, sizeof name) == 0) copy[i] = 'K';
    }
    FAILS_SAYING(KEEL_UNSUPPORTED, name, load(copy, size, NULL));
}

TEST(executable, load_bad_arguments, RUNS)
{
    const void *data;
    size_t size;
    kernels_image(&data, &size);
    keel_executable_options_t good = {.data = data, .size = size}, none = {.name = "none"};
    keel_executable_options_t both = {.data = data, .size = size, .path = "/dev/null"};
    keel_executable_t *executable = NULL;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "device", keel_executable_load(NULL, &good, &executable));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "options",
                 keel_executable_load(the_device(), NULL, &executable));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "executable",
                 keel_executable_load(the_device(), &good, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "path",
                 keel_executable_load(the_device(), &none, &executable));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "path",
                 keel_executable_load(the_device(), &both, &executable));
    FAILS(KEEL_NOT_FOUND, load(NULL, 0, "/no/such/file"));
    CHECK(executable == NULL);
}

TEST(executable, entries, RUNS)
{
    size_t count = keel_executable_entry_count(kernels());
    CHECK_EQ(count, 21);
    for (uint32_t i = 0; i < count; i++) {
        keel_entry_info_t info;
        keel_entry_t entry;
        TRY(keel_entry_info((keel_entry_t){kernels(), i}, &info));
        row("%s", info.name);
        TRY(keel_executable_entry(kernels(), info.name, &entry));
        CHECK(entry.executable == kernels());
        CHECK_EQ(entry.index, i);
    }
}

TEST(executable, entry_info, RUNS)
{
    keel_entry_info_t info;
    TRY(keel_entry_info(kernel("describe"), &info));
    CHECK_STR(info.name, "describe");
    CHECK_EQ(info.group_size[0], 4);
    CHECK_EQ(info.group_size[1], 3);
    CHECK_EQ(info.group_size[2], 2);
    CHECK_EQ(info.constants, 12);
    CHECK_EQ(info.bindings, 1);
    CHECK_EQ(info.local_memory, 128);
}

TEST(executable, entry_not_found, RUNS)
{
    keel_entry_t entry;
    FAILS_SAYING(KEEL_NOT_FOUND, "tall", keel_executable_entry(kernels(), "tall", &entry));
    FAILS_SAYING(KEEL_NOT_FOUND, "saxpy", keel_executable_entry(kernels(), "tall", &entry));
    FAILS(KEEL_NOT_FOUND, keel_executable_entry(kernels(), "", &entry));
    FAILS(KEEL_NOT_FOUND, keel_executable_entry(kernels(), "TALLY", &entry));
}

TEST(executable, entry_bad_arguments, RUNS)
{
    keel_entry_t entry;
    keel_entry_info_t info;
    uint32_t count = (uint32_t)keel_executable_entry_count(kernels());
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "executable", keel_executable_entry(NULL, "x", &entry));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "name", keel_executable_entry(kernels(), NULL, &entry));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "entry", keel_executable_entry(kernels(), "add", NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "executable",
                 keel_entry_info((keel_entry_t){NULL, 0}, &info));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "info",
                 keel_entry_info((keel_entry_t){kernels(), 0}, NULL));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "index",
                 keel_entry_info((keel_entry_t){kernels(), count}, &info));
    FAILS(KEEL_OUT_OF_RANGE, keel_entry_info((keel_entry_t){kernels(), UINT32_MAX}, &info));
}

TEST(executable, bindings, RUNS)
{
    keel_binding_info_t infos[3];
    memset(infos, 0x5a, sizeof infos);
    TRY(keel_entry_bindings(kernel("abs"), 2, infos));
    CHECK_STR(infos[0].name, "in");
    CHECK_STR(infos[1].name, "out");
    CHECK_EQ(infos[0].access, KEEL_ACCESS_READ);
    CHECK_EQ(infos[1].access, KEEL_ACCESS_WRITE);
    CHECK_EQ(infos[2].access, 0x5a5a5a5a);
    TRY(keel_entry_bindings(kernel("add"), 1, infos));
    CHECK_STR(infos[0].name, "a");
    CHECK_STR(infos[1].name, "out"); // beyond the capacity nothing is written
}

TEST(executable, bindings_without_names, .needs = KEEL_CAP_EXECUTES | KEEL_CAP_KERNEL_STATUS)
{
    keel_binding_info_t info = {.name = NULL};
    keel_entry_t fail = kernel("fail");
    TRY(keel_entry_bindings(fail, 1, &info));
    CHECK_STR(info.name, "");
}

TEST(executable, bindings_bad_arguments, RUNS)
{
    keel_binding_info_t info;
    uint32_t index = kernel("abs").index;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "executable",
                 keel_entry_bindings((keel_entry_t){NULL, index}, 1, &info));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "bindings",
                 keel_entry_bindings((keel_entry_t){kernels(), index}, 1, NULL));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "index",
                 keel_entry_bindings((keel_entry_t){kernels(), 1000}, 1, &info));
    TRY(keel_entry_bindings((keel_entry_t){kernels(), index}, 0, NULL));
}

TEST(executable, global, RUNS)
{
    keel_buffer_t *global = NULL, *out = new_buffer(16);
    TRY(keel_executable_global(kernels(), "shared_words", &global));
    OWN(global);
    CHECK_EQ(keel_buffer_size(global), 16);
    CHECK_EQ(buffer_u32(global, 2), 33);
    uint32_t hundred = 100, one = 1;
    buffer_put(global, 8, &hundred, 4);
    reach(submit(
        keel_op_dispatch(kernel("use_global"), keel_groups(1, 1, 1), &one, 4, KEEL_BIND(out))));
    CHECK_EQ(buffer_u32(out, 2), 101);
    CHECK_EQ(buffer_u32(global, 3), 45);
}

TEST(executable, global_in_queue_order, RUNS)
{
    keel_buffer_t *global = NULL, *out = new_buffer(16);
    TRY(keel_executable_global(kernels(), "shared_words", &global));
    OWN(global);
    uint32_t one = 1;
    reach(SUBMIT(
        KEEL_NO_WAITS, keel_op_fill(keel_whole(global), 7, 4), keel_op_barrier(),
        keel_op_dispatch(kernel("use_global"), keel_groups(1, 1, 1), &one, 4, KEEL_BIND(out))));
    CHECK_EQ(buffer_u32(out, 3), 8);
}

// The buffer keeps the executable.
TEST(executable, global_retains, RUNS)
{
    keel_buffer_t *global = NULL;
    TRY(keel_executable_global(kernels(), "shared_words", &global));
    OWN(global);
    drop(kernels());
    CHECK_EQ(buffer_u32(global, 0), 11);
    keel_live_t live;
    keel_live_objects(&live);
    CHECK_EQ(live.executables, 1);
    drop(global);
    keel_live_objects(&live);
    CHECK_EQ(live.executables, 0);
}

TEST(executable, global_bad_arguments, RUNS)
{
    keel_buffer_t *global = NULL;
    FAILS_SAYING(KEEL_NOT_FOUND, "secrets", keel_executable_global(kernels(), "secrets", &global));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "executable", keel_executable_global(NULL, "x", &global));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "name", keel_executable_global(kernels(), NULL, &global));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "buffer",
                 keel_executable_global(kernels(), "shared_words", NULL));
    CHECK(global == NULL);
}

TEST(executable, released_with_work_in_flight, RUNS)
{
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *word = new_buffer(4);
    keel_op_t op =
        keel_op_dispatch(kernel("tally"), keel_groups(5, 1, 1), NULL, 0, KEEL_BIND(word));
    keel_point_t done = submit_after(KEEL_AFTER(keel_point(gate, 1)), op);
    drop(kernels());
    TRY(keel_semaphore_signal(gate, 1));
    reach(done);
    CHECK_EQ(buffer_u32(word, 0), 5);
}

TEST(executable, retain_and_release, RUNS)
{
    keel_executable_t *executable = kernels();
    CHECK(keel_executable_retain(executable) == executable);
    keel_executable_release(executable);
    keel_executable_release(NULL);
    CHECK_GE(keel_executable_entry_count(executable), 1);
}

static void load_in_a_loop(void *user)
{
    for (size_t i = 0; i < few(64); i++) {
        keel_executable_options_t options = {.name = "loop"};
        keel_executable_t *executable = NULL;
        keel_entry_t entry;
        kernels_image(&options.data, &options.size);
        TRY(keel_executable_load(the_device(), &options, &executable));
        keel_status_t status = keel_executable_entry(executable, "empty", &entry);
        keel_executable_release(executable);
        TRY(status);
    }
}

TEST(executable, loaded_by_many_threads, RUNS)
{
    kernels();
    thread_t *threads[3];
    for (int i = 0; i < 3; i++) threads[i] = thread_start(load_in_a_loop, NULL);
    for (int i = 0; i < 3; i++) thread_join(threads[i]);
}

// Constants: the layout that kernels/ declares.
typedef struct chosen_t {
    uint64_t wide;
    uint8_t narrow;
} chosen_t;

static keel_status_t load_with(const keel_executable_constant_t *constants, size_t count,
                               keel_executable_t **executable)
{
    keel_executable_options_t options = {
        .name = "chosen", .constants = constants, .constant_count = count};
    kernels(); // where the device does not take them, the test ends here
    kernels_image(&options.data, &options.size);
    return keel_executable_load(the_device(), &options, executable);
}

// Runs its kernel: the words that it writes, and the first of them.
static void check_chosen(keel_executable_t *executable, uint32_t words, uint32_t first)
{
    keel_buffer_t *out = new_buffer(64);
    keel_entry_t entry;
    TRY(keel_executable_entry(executable, "use_chosen", &entry));
    reach(submit(keel_op_dispatch(entry, keel_groups(1, 1, 1), NULL, 0, KEEL_BIND(out))));
    CHECK_EQ(buffer_u32(out, 0), first);
    for (uint32_t i = 1; i < 16; i++) CHECK_EQ(buffer_u32(out, i), i < words ? words : 0);
}

TEST(executable, constants, RUNS)
{
    uint32_t word = 9, other = 3;
    chosen_t pair = {.wide = 1000, .narrow = 1};
    keel_executable_constant_t both[] = {{"chosen_word", &word, 4},
                                         {"chosen_pair", &pair, sizeof pair}};
    keel_executable_constant_t one = {"chosen_word", &other, 4};
    keel_executable_t *a = NULL, *b = NULL;
    TRY(load_with(both, 2, &a));
    OWN(a);
    word = pair.narrow = 0; // borrowed for the call only
    TRY(load_with(&one, 1, &b));
    OWN(b);
    row("as the image says");
    check_chosen(kernels(), 5, 83);
    row("both");
    check_chosen(a, 9, 1010);
    row("one of two");
    check_chosen(b, 3, 81);
}

// Code that comes to lie where other code was, whose kernels were dispatched again and again.
TEST(executable, in_the_place_of_another, RUNS)
{
    for (uint32_t i = 0; i < 6; i++) {
        uint32_t word = 2 + i;
        keel_executable_constant_t one = {"chosen_word", &word, 4};
        keel_executable_t *executable = NULL;
        row("%u", word);
        TRY(load_with(&one, 1, &executable));
        OWN(executable);
        for (int k = 0; k < 4; k++) check_chosen(executable, word, word + 78);
        drop(executable);
    }
}

// A queue that is busy does not hold up a load.
TEST(executable, constants_beside_work, .needs = KEEL_CAP_EXECUTES | KEEL_CAP_HOST_CALLS,
     .also = NEED_WORKERS)
{
    uint32_t word = 2;
    keel_executable_constant_t constant = {"chosen_word", &word, 4};
    kernels();
    hold_t *hold = new_hold();
    keel_point_t done = submit(op_hold(hold));
    hold_entered(hold, done);
    keel_executable_t *executable = NULL;
    TRY(load_with(&constant, 1, &executable));
    OWN(executable);
    gate_open(hold->gate);
    reach(done);
    check_chosen(executable, 2, 80);
}

TEST(executable, constants_refused, RUNS)
{
    uint32_t word[2] = {1, 2};
    const struct {
        keel_code_t code;
        const char *part;
        keel_executable_constant_t constant;
    } rows[] = {
        {KEEL_NOT_FOUND, "no_such", {"no_such", word, 4}},
        {KEEL_INVALID_ARGUMENT, "'chosen_word' has 4 bytes; 8", {"chosen_word", word, 8}},
        {KEEL_INVALID_ARGUMENT, "'chosen_word' has 4 bytes; 0", {"chosen_word", word, 0}},
        {KEEL_INVALID_ARGUMENT, "constants[0].name", {NULL, word, 4}},
        {KEEL_INVALID_ARGUMENT, "constants[0].data", {"chosen_word", NULL, 4}},
    };
    keel_executable_t *executable = NULL;
    for (size_t i = 0; i < COUNT(rows); i++) {
        row("%s", rows[i].part);
        FAILS_SAYING(rows[i].code, rows[i].part, load_with(&rows[i].constant, 1, &executable));
        CHECK(executable == NULL);
    }
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "constant_count", load_with(NULL, 1, &executable));
}

// Arguments are checked also where no kernel reads constants.
TEST(executable, constants_checked)
{
    uint32_t word = 1;
    keel_executable_constant_t bad = {NULL, &word, 4};
    keel_executable_t *executable = NULL;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "constants[0].name", load_with(&bad, 1, &executable));
    keel_executable_constant_t good = {"chosen_word", &word, 4};
    TRY(load_with(&good, 1, &executable));
    OWN(executable);
}
