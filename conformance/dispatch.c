// SPDX-License-Identifier: Apache-2.0
// Dispatches with direct counts: arguments, grids, limits.
#include "suite/suite.h"

#define RUNS         .needs = KEEL_CAP_EXECUTES
#define HOST_KERNELS .needs = KEEL_CAP_EXECUTES | KEEL_CAP_KERNEL_STATUS

static keel_op_t dispatch(const char *name, uint32_t groups, keel_refs_t bindings)
{
    return op_kernel(name, groups, NULL, 0, bindings);
}

static keel_status_t attempt(keel_op_t op)
{
    return keel_queue_run(the_queue(), KEEL_NO_WAITS, op, NULL);
}

TEST(dispatch, runs_every_group_once, RUNS)
{
    static const uint32_t counts[] = {1, 2, 3, 7, 64, 1000, 4096};
    for (size_t i = 0; i < COUNT(counts); i++) {
        row("%u groups", counts[i]);
        keel_buffer_t *out = new_buffer(counts[i] * 4);
        uint32_t *expected = scratch(counts[i] * 4);
        for (uint32_t g = 0; g < counts[i]; g++) expected[g] = 1 + g;
        reach(submit(dispatch("identify", counts[i], KEEL_BIND(out))));
        check_bytes(out, 0, expected, counts[i] * 4);
    }
}

TEST(dispatch, three_dimensions, RUNS)
{
    static const uint32_t rows[][3] = {{1, 1, 1}, {5, 3, 2}, {1, 7, 1},
                                       {1, 1, 9}, {4, 4, 4}, {2, 1, 8}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint32_t w = rows[i][0], h = rows[i][1], d = rows[i][2];
        row("%u x %u x %u", w, h, d);
        keel_buffer_t *out = new_buffer(w * h * d * 4);
        reach(submit(
            keel_op_dispatch(kernel("identify"), keel_groups(w, h, d), NULL, 0, KEEL_BIND(out))));
        for (uint32_t z = 0; z < d; z++) {
            for (uint32_t y = 0; y < h; y++) {
                for (uint32_t x = 0; x < w; x++) {
                    CHECK_EQ(buffer_u32(out, (z * h + y) * w + x), 1 + x + (y << 10) + (z << 20));
                }
            }
        }
    }
}

TEST(dispatch, many_groups, RUNS)
{
    const uint32_t count = careful() ? 20000 : 1000000;
    keel_buffer_t *word = new_buffer(4);
    reach(submit(dispatch("tally", count, KEEL_BIND(word))));
    CHECK_EQ(buffer_u32(word, 0), count);
}

static keel_groups_t groups_along(int dimension, uint32_t count)
{
    return keel_groups(dimension == 0 ? count : 1, dimension == 1 ? count : 1,
                       dimension == 2 ? count : 1);
}

// Kernels of keel cc may have all of their groups in any dimension.
TEST(dispatch, many_groups_in_each_dimension, RUNS)
{
    const uint32_t count = careful() ? 1000 : 70000;
    keel_buffer_t *word = new_buffer(4);
    for (int i = 0; i < 3; i++) {
        row("dimension %d", i);
        keel_op_t op = dispatch("tally", 1, KEEL_BIND(word));
        op.as.dispatch.groups = groups_along(i, count);
        reach(submit(keel_op_fill(keel_whole(word), 0, 4)));
        reach(submit(op));
        reach(submit(keel_op_execute(RECORD(0, op), KEEL_NO_BINDINGS)));
        CHECK_EQ(buffer_u32(word, 0), 2 * count);
    }
}

// A grid with a zero in it does nothing, and ends.
TEST(dispatch, no_groups, RUNS)
{
    static const uint32_t rows[][3] = {{0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {0, 0, 0}, {7, 0, 7}};
    keel_buffer_t *word = new_buffer(4);
    for (size_t i = 0; i < COUNT(rows); i++) {
        row("%u x %u x %u", rows[i][0], rows[i][1], rows[i][2]);
        reach(submit(keel_op_dispatch(kernel("tally"),
                                      keel_groups(rows[i][0], rows[i][1], rows[i][2]), NULL, 0,
                                      KEEL_BIND(word))));
        CHECK_EQ(buffer_u32(word, 0), 0);
    }
}

TEST(dispatch, no_groups_later, RUNS)
{
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *word = new_buffer(4);
    keel_point_t done =
        submit_after(KEEL_AFTER(keel_point(gate, 1)), dispatch("tally", 0, KEEL_BIND(word)));
    CHECK(pending(done));
    TRY(keel_semaphore_signal(gate, 1));
    reach(done);
    CHECK_EQ(buffer_u32(word, 0), 0);
}

TEST(dispatch, subrange_of_bindings, RUNS)
{
    int32_t in[32], out[32];
    for (int i = 0; i < 32; i++) {
        in[i] = -i - 1;
        out[i] = 77;
    }
    keel_buffer_t *x = new_buffer_of(in, sizeof in), *y = new_buffer_of(out, sizeof out);
    reach(submit(
        dispatch("abs", 1, KEEL_BIND(keel_span(x, 8 * 4, 8 * 4), keel_span(y, 4 * 4, 8 * 4)))));
    for (int i = 0; i < 8; i++) out[4 + i] = 9 + i;
    check_bytes(y, 0, out, sizeof out);
}

TEST(dispatch, odd_offsets_of_bindings, RUNS)
{
    keel_buffer_t *x = new_buffer(300);
    unsigned char constants[256];
    for (int i = 0; i < 256; i++) constants[i] = (unsigned char)(255 - i);
    reach(submit(keel_op_dispatch(kernel("many_constants"), keel_groups(1, 1, 1), constants, 256,
                                  KEEL_BIND(keel_span(x, 13, 256)))));
    check_filled(x, 0, 13, 0);
    check_bytes(x, 13, constants, 256);
    check_filled(x, 269, 31, 0);
}

TEST(dispatch, subspans_as_bindings, RUNS)
{
    keel_buffer_t *x = new_buffer(64), *part = new_subspan(new_subspan(x, 16, 32), 8, 8);
    reach(submit(dispatch("identify", 2, KEEL_BIND(part))));
    CHECK_EQ(buffer_u32(x, 5), 0);
    CHECK_EQ(buffer_u32(x, 6), 1);
    CHECK_EQ(buffer_u32(x, 7), 2);
    CHECK_EQ(buffer_u32(x, 8), 0);
}

TEST(dispatch, constants, RUNS)
{
    struct {
        float a;
        uint32_t count;
    } k = {2.5f, 100};
    float x[100], y[100];
    for (int i = 0; i < 100; i++) {
        x[i] = (float)i;
        y[i] = 1.0f;
    }
    keel_buffer_t *bx = new_buffer_of(x, sizeof x), *by = new_buffer_of(y, sizeof y);
    reach(submit(
        keel_op_dispatch(kernel("saxpy"), keel_groups(2, 1, 1), &k, sizeof k, KEEL_BIND(bx, by))));
    for (int i = 0; i < 100; i++) y[i] = 2.5f * x[i] + 1.0f;
    check_bytes(by, 0, y, sizeof y);
}

// Constants and the binding list are taken when the dispatch is submitted.
TEST(dispatch, captures_its_arguments, RUNS)
{
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *x = new_buffer(16), *wrong = new_buffer(16);
    uint32_t constants[] = {1, 42};
    keel_ref_t binding = keel_whole(x);
    keel_point_t done = submit_after(KEEL_AFTER(keel_point(gate, 1)),
                                     keel_op_dispatch(kernel("poke"), keel_groups(1, 1, 1),
                                                      constants, 8, keel_refs(&binding, 1)));
    constants[0] = constants[1] = 0;
    binding = keel_whole(wrong);
    TRY(keel_semaphore_signal(gate, 1));
    reach(done);
    CHECK_EQ(buffer_u32(x, 1), 42);
    check_filled(wrong, 0, 16, 0);
}

TEST(dispatch, what_kernels_are_told, RUNS)
{
    keel_buffer_t *out = new_buffer(64);
    uint32_t constants[3] = {1, 2, 3};
    reach(submit(keel_op_dispatch(kernel("describe"), keel_groups(5, 6, 7), constants, 12,
                                  KEEL_BIND(keel_span(out, 0, 48)))));
    static const uint32_t expected[] = {5, 6, 7, 4, 3, 2, 1, 12, 128, 48};
    check_bytes(out, 0, expected, sizeof expected);
}

TEST(dispatch, sixty_four_bindings, RUNS)
{
    keel_ref_t bindings[64];
    keel_buffer_t *x = new_buffer(64 * 64);
    for (uint32_t i = 0; i < 64; i++) bindings[i] = keel_span(x, i * 64, 4);
    reach(submit(dispatch("many_bindings", 1, keel_refs(bindings, 64))));
    for (uint32_t i = 0; i < 64; i++) CHECK_EQ(buffer_u32(x, i * 16), i + 1);
}

TEST(dispatch, local_memory, RUNS)
{
    keel_buffer_t *out = new_buffer(100 * 4);
    reach(submit(dispatch("local", 100, KEEL_BIND(out))));
    for (uint32_t i = 0; i < 100; i++) CHECK_EQ(buffer_u32(out, i), 1024);
}

TEST(dispatch, more_local_memory, HOST_KERNELS)
{
    keel_buffer_t *out = new_buffer(20 * 4);
    static const uint32_t extra[] = {1, 63, 64, 1000, 8192};
    for (size_t i = 0; i < COUNT(extra); i++) {
        row("%u bytes more", extra[i]);
        keel_op_t op = dispatch("resizable_local", 20, KEEL_BIND(out));
        op.as.dispatch.local_memory = extra[i];
        reach(submit(op));
        for (uint32_t g = 0; g < 20; g++) CHECK_GE(buffer_u32(out, g), 1024 + extra[i]);
    }
}

// As much as there is, however the dispatch comes to the device.
TEST(dispatch, all_local_memory, RUNS)
{
    static const uint32_t contents[] = {20, 1, 1};
    keel_buffer_t *out = new_buffer(20 * 4), *grid = new_buffer_of(contents, sizeof contents);
    keel_entry_info_t info;
    keel_entry_t local = kernel("local");
    TRY(keel_entry_info(local, &info));
    keel_op_t op = dispatch("local", 20, KEEL_BIND(out));
    op.as.dispatch.local_memory = the_caps()->max_local_memory - info.local_memory;
    keel_op_t indirect = keel_op_indirect(op, KEEL_COUNTS_STATIC, keel_whole(grid));
    const keel_op_t ops[] = {op, indirect, keel_op_execute(RECORD(0, op), KEEL_NO_BINDINGS),
                             keel_op_execute(RECORD(0, indirect), KEEL_NO_BINDINGS)};
    for (size_t i = 0; i < COUNT(ops); i++) {
        row("%zu", i);
        reach(submit(keel_op_fill(keel_whole(out), 0, 4)));
        reach(submit(ops[i]));
        for (uint32_t g = 0; g < 20; g++) CHECK_GE(buffer_u32(out, g), 1024);
    }
}

TEST(dispatch, too_much_local_memory, RUNS)
{
    keel_op_t op = dispatch("local", 1, KEEL_BIND(new_buffer(4)));
    op.as.dispatch.local_memory = the_caps()->max_local_memory;
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "local_memory", attempt(op));
    op.as.dispatch.local_memory = UINT32_MAX;
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "local_memory", attempt(op));
}

TEST(dispatch, group_size_override, .needs = KEEL_CAP_GROUP_SIZE | KEEL_CAP_KERNEL_STATUS)
{
    keel_buffer_t *out = new_buffer(64);
    uint32_t constants[3] = {0};
    keel_op_t op = keel_op_dispatch(kernel("resizable_describe"), keel_groups(2, 1, 1), constants,
                                    12, KEEL_BIND(out));
    op.as.dispatch.group_size = keel_groups(8, 2, 1);
    reach(submit(op));
    CHECK_EQ(buffer_u32(out, 3), 8);
    CHECK_EQ(buffer_u32(out, 4), 2);
    CHECK_EQ(buffer_u32(out, 5), 1);
}

TEST(dispatch, group_size_override_works, .needs = KEEL_CAP_GROUP_SIZE | KEEL_CAP_KERNEL_STATUS)
{
    int32_t in[64];
    for (int i = 0; i < 64; i++) in[i] = -i;
    keel_buffer_t *x = new_buffer_of(in, sizeof in), *y = new_buffer(sizeof in);
    keel_op_t op = dispatch("resizable_abs", 2, KEEL_BIND(x, y));
    op.as.dispatch.group_size = keel_groups(32, 1, 1);
    reach(submit(op));
    for (uint32_t i = 0; i < 64; i++) CHECK_EQ(buffer_u32(y, i), i);
}

// What keel cc makes has its sizes compiled in.
TEST(dispatch, fixed_group_size, .needs = KEEL_CAP_EXECUTES | KEEL_CAP_GROUP_SIZE)
{
    keel_entry_info_t info;
    TRY(keel_entry_info(kernel("tally"), &info));
    CHECK(info.fixed_size);
    keel_buffer_t *word = new_buffer(4);
    keel_op_t op = dispatch("tally", 3, KEEL_BIND(word));
    op.as.dispatch.group_size = keel_groups(2, 1, 1);
    FAILS_SAYING(KEEL_UNSUPPORTED, "tally", attempt(op));
    op.as.dispatch.group_size = keel_groups(1, 1, 1);
    reach(submit(op));
    CHECK_EQ(buffer_u32(word, 0), 3);
}

TEST(dispatch, bad_group_size, .needs = KEEL_CAP_EXECUTES | KEEL_CAP_GROUP_SIZE)
{
    keel_op_t op = dispatch("tally", 1, KEEL_BIND(new_buffer(4)));
    op.as.dispatch.group_size = keel_groups(8, 0, 1);
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "group_size", attempt(op));
    op.as.dispatch.group_size = keel_groups(the_caps()->max_group_size + 1, 1, 1);
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "group_size", attempt(op));
    const uint32_t *most = the_caps()->max_group_sizes;
    op.as.dispatch.group_size = keel_groups(most[0] + 1, 1, 1);
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "group_size", attempt(op));
    op.as.dispatch.group_size = keel_groups(1, most[1] + 1, 1);
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "group_size", attempt(op));
    op.as.dispatch.group_size = keel_groups(1, 1, most[2] + 1);
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "group_size", attempt(op));
    op.as.dispatch.group_size = keel_groups(65536, 65536, 65536);
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "group_size", attempt(op));
}

TEST(dispatch, too_many_groups, RUNS)
{
    uint64_t limit = the_caps()->max_groups;
    keel_op_t op = dispatch("empty", 1, KEEL_NO_BINDINGS);
    op.as.dispatch.groups = keel_groups(UINT32_MAX, UINT32_MAX, UINT32_MAX);
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "groups", attempt(op));
    if (limit < UINT32_MAX) {
        op.as.dispatch.groups = keel_groups((uint32_t)limit + 1, 1, 1);
        FAILS_SAYING(KEEL_OUT_OF_RANGE, "groups", attempt(op));
    }
}

TEST(dispatch, wrong_arguments, RUNS)
{
    keel_buffer_t *x = new_buffer(64);
    uint32_t constants[4] = {0};
    keel_entry_t poke = kernel("poke");
    keel_groups_t one = keel_groups(1, 1, 1);
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "constant",
                 attempt(keel_op_dispatch(poke, one, constants, 4, KEEL_BIND(x))));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "constant",
                 attempt(keel_op_dispatch(poke, one, constants, 12, KEEL_BIND(x))));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "constant",
                 attempt(keel_op_dispatch(poke, one, NULL, 8, KEEL_BIND(x))));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "binding",
                 attempt(keel_op_dispatch(poke, one, constants, 8, KEEL_NO_BINDINGS)));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "binding",
                 attempt(keel_op_dispatch(poke, one, constants, 8, KEEL_BIND(x, x))));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "binding",
                 attempt(keel_op_dispatch(poke, one, constants, 8, keel_refs(NULL, 1))));
    FAILS_SAYING(
        KEEL_INVALID_ARGUMENT, "bindings[0]",
        attempt(keel_op_dispatch(poke, one, constants, 8, KEEL_BIND(keel_span(NULL, 0, 4)))));
    FAILS_SAYING(
        KEEL_OUT_OF_RANGE, "bindings[0]",
        attempt(keel_op_dispatch(poke, one, constants, 8, KEEL_BIND(keel_span(x, 60, 8)))));
    // The message names the kernel.
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "poke",
                 attempt(keel_op_dispatch(poke, one, constants, 4, KEEL_BIND(x))));
}

TEST(dispatch, wrong_entries, RUNS)
{
    keel_entry_t none = {NULL, 0}, beyond = {kernels(), 1000};
    keel_entry_t foreign = kernel_on(open_device(the_uri()), "empty");
    keel_groups_t one = keel_groups(1, 1, 1);
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "entry",
                 attempt(keel_op_dispatch(none, one, NULL, 0, KEEL_NO_BINDINGS)));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "entry",
                 attempt(keel_op_dispatch(beyond, one, NULL, 0, KEEL_NO_BINDINGS)));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "device",
                 attempt(keel_op_dispatch(foreign, one, NULL, 0, KEEL_NO_BINDINGS)));
}

TEST(dispatch, access_of_bindings, RUNS)
{
    keel_buffer_options_t read = {.size = 64, .access = KEEL_ACCESS_READ};
    keel_buffer_options_t write = {.size = 64, .access = KEEL_ACCESS_WRITE};
    keel_buffer_t *r = NULL, *w = NULL;
    TRY(keel_buffer_create(the_device(), &read, &r));
    OWN(r);
    TRY(keel_buffer_create(the_device(), &write, &w));
    OWN(w);
    FAILS_SAYING(KEEL_PERMISSION_DENIED, "bindings[1]",
                 attempt(dispatch("abs", 1, KEEL_BIND(r, r))));
    FAILS_SAYING(KEEL_PERMISSION_DENIED, "bindings[0]",
                 attempt(dispatch("abs", 1, KEEL_BIND(w, w))));
    reach(submit(dispatch("abs", 1, KEEL_BIND(r, w))));
}

TEST(dispatch, usage_of_bindings, RUNS, .also = NEED_EXACT_USAGE)
{
    keel_buffer_options_t options = {.size = 64, .usage = KEEL_USAGE_TRANSFER};
    keel_buffer_t *x = NULL;
    TRY(keel_buffer_create(the_device(), &options, &x));
    OWN(x);
    need_no_usage(x, KEEL_USAGE_DISPATCH);
    FAILS_SAYING(KEEL_PERMISSION_DENIED, "DISPATCH", attempt(dispatch("tally", 1, KEEL_BIND(x))));
}

// The block of a kernel made elsewhere, as kernels/ declares it.
typedef struct raw_t {
    uint32_t factor;
    uint32_t count;
    uint64_t in;
    uint64_t out;
    uint32_t offset;
} raw_t;

#define RAW .needs = KEEL_CAP_EXECUTES | KEEL_CAP_RAW_ARGUMENTS

static keel_op_t raw_dispatch(const raw_t *block, const keel_patch_t *patches, size_t count)
{
    keel_op_t op = keel_op_dispatch(kernel("raw"), keel_groups(1, 1, 1), block, sizeof *block,
                                    KEEL_NO_BINDINGS);
    op.as.dispatch.raw = true;
    op.as.dispatch.patches = patches;
    op.as.dispatch.patch_count = count;
    return op;
}

TEST(dispatch, raw_arguments, RAW)
{
    uint32_t in[] = {1, 2, 3, 4};
    keel_buffer_t *x = new_buffer_of(in, sizeof in), *y = new_buffer(32);
    raw_t block = {.factor = 3, .count = 3, .offset = 100};
    keel_patch_t patches[] = {{offsetof(raw_t, in), keel_span(x, 4, 12)},
                              {offsetof(raw_t, out), keel_span(y, 8, 16)}};
    reach(submit(raw_dispatch(&block, patches, 2)));
    CHECK_EQ(buffer_u32(y, 1), 0);
    CHECK_EQ(buffer_u32(y, 2), 106);
    CHECK_EQ(buffer_u32(y, 3), 109);
    CHECK_EQ(buffer_u32(y, 4), 112);
    CHECK_EQ(buffer_u32(y, 5), 0);
}

TEST(dispatch, raw_arguments_retain, RAW)
{
    keel_semaphore_t *gate = new_semaphore(0);
    uint32_t in[] = {5};
    keel_buffer_t *x = new_buffer_of(in, 4), *y = new_buffer(4), *out = new_buffer(4);
    raw_t block = {.factor = 2, .count = 1};
    keel_patch_t patches[] = {{offsetof(raw_t, in), keel_whole(x)},
                              {offsetof(raw_t, out), keel_whole(y)}};
    keel_op_t op = raw_dispatch(&block, patches, 2);
    keel_point_t done = submit_after(KEEL_AFTER(keel_point(gate, 1)), op);
    keel_point_t copied =
        submit_after(KEEL_AFTER(done), keel_op_copy(keel_whole(y), keel_whole(out)));
    drop(x);
    drop(y);
    memset(&block, 0, sizeof block);
    memset(patches, 0, sizeof patches);
    TRY(keel_semaphore_signal(gate, 1));
    reach(copied);
    CHECK_EQ(buffer_u32(out, 0), 10);
}

TEST(dispatch, raw_arguments_of_a_pool,
     .needs = KEEL_CAP_EXECUTES | KEEL_CAP_RAW_ARGUMENTS | KEEL_CAP_QUEUE_ALLOCA)
{
    uint32_t in[] = {7};
    keel_buffer_t *x = new_buffer_of(in, 4), *y = new_reserved(new_pool(0, 0), 4);
    raw_t block = {.factor = 2, .count = 1, .offset = 1};
    keel_patch_t patches[] = {{offsetof(raw_t, in), keel_whole(x)},
                              {offsetof(raw_t, out), keel_whole(y)}};
    keel_point_t ready = submit(keel_op_alloca(y));
    reach(submit_after(KEEL_AFTER(ready), raw_dispatch(&block, patches, 2)));
    CHECK_EQ(buffer_u32(y, 0), 15);
}

TEST(dispatch, raw_arguments_refused, RAW)
{
    keel_buffer_t *x = new_buffer(16);
    raw_t block = {.count = 0};
    keel_patch_t beyond = {sizeof block - 4, keel_whole(x)};
    keel_patch_t null = {8, keel_span(NULL, 0, 4)};
    keel_patch_t range = {8, keel_span(x, 17, 0)};
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "patches[0]", attempt(raw_dispatch(&block, &beyond, 1)));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "patches[0]", attempt(raw_dispatch(&block, &null, 1)));
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "patches[0]", attempt(raw_dispatch(&block, &range, 1)));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "patches", attempt(raw_dispatch(&block, NULL, 1)));
    keel_op_t large = raw_dispatch(&block, NULL, 0);
    large.as.dispatch.constants = scratch(the_caps()->max_arguments + 1);
    large.as.dispatch.constant_size = the_caps()->max_arguments + 1;
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "constant_size", attempt(large));
}

// Where the image says how many bytes a kernel takes, what is behind a shorter block is not read.
TEST(dispatch, raw_arguments_too_short, RAW)
{
    keel_entry_info_t info;
    raw_t block = {.count = 0};
    keel_op_t op = raw_dispatch(&block, NULL, 0);
    TRY(keel_entry_info(kernel("raw"), &info));
    CHECK(!info.constants || info.constants == sizeof block);
    op.as.dispatch.constant_size = sizeof block - 1;
    if (info.constants) FAILS_SAYING(KEEL_INVALID_ARGUMENT, "constant_size", attempt(op));
    op.as.dispatch.constant_size = sizeof block;
    reach(submit(op));
}

// Some vendors lose the device over a group that is larger than the kernel was compiled for.
TEST(dispatch, raw_group_too_large, .needs = KEEL_CAP_RAW_ARGUMENTS | KEEL_CAP_GROUP_SIZE)
{
    keel_entry_info_t info;
    raw_t block = {.count = 0};
    keel_op_t op = raw_dispatch(&block, NULL, 0);
    TRY(keel_entry_info(kernel("raw"), &info));
    CHECK(!info.max_group_size || info.max_group_size == 1);
    op.as.dispatch.group_size = keel_groups(2, 1, 1);
    if (info.max_group_size) FAILS_SAYING(KEEL_OUT_OF_RANGE, "'raw'", attempt(op));
    op.as.dispatch.group_size = keel_groups(1, 1, 1);
    reach(submit(op));
}

static keel_op_t raw_tally(keel_buffer_t *word, keel_groups_t groups)
{
    keel_patch_t *patch = scratch(sizeof *patch);
    *patch = (keel_patch_t){0, keel_whole(word)};
    keel_op_t op = op_kernel("raw_tally", 1, scratch(8), 8, KEEL_NO_BINDINGS);
    op.as.dispatch.groups = groups;
    op.as.dispatch.raw = true;
    op.as.dispatch.patches = patch;
    op.as.dispatch.patch_count = 1;
    return op;
}

// Up to what the caps say.
TEST(dispatch, raw_groups_in_each_dimension, RAW)
{
    keel_buffer_t *word = new_buffer(4);
    for (int i = 0; i < 3; i++) {
        row("dimension %d", i);
        uint32_t count = the_caps()->max_group_counts[i], few = careful() ? 1000 : 70000;
        if (count > few) count = few;
        keel_op_t op = raw_tally(word, groups_along(i, count));
        reach(submit(keel_op_fill(keel_whole(word), 0, 4)));
        reach(submit(op));
        reach(submit(keel_op_execute(RECORD(0, op), KEEL_NO_BINDINGS)));
        CHECK_EQ(buffer_u32(word, 0), 2 * count);
    }
}

// Where the caps have a limit there: when it is submitted, and when it is recorded.
TEST(dispatch, too_many_raw_groups_in_a_dimension, RAW)
{
    keel_buffer_t *word = new_buffer(4);
    keel_recording_t *recording = NULL;
    TRY(keel_recording_create(the_device(), NULL, &recording));
    OWN(recording);
    for (int i = 0; i < 3; i++) {
        uint32_t most = the_caps()->max_group_counts[i];
        if (most == UINT32_MAX) continue;
        char said[100];
        snprintf(said, sizeof said, "groups.%c is %u; the device takes at most %u", "xyz"[i],
                 most + 1, most);
        keel_op_t op = raw_tally(word, groups_along(i, most + 1));
        FAILS_SAYING(KEEL_OUT_OF_RANGE, said, attempt(op));
        FAILS_SAYING(KEEL_OUT_OF_RANGE, said, keel_recording_add(recording, &op, 1));
        op.as.dispatch.raw = false; // which a block without addresses need not be
        op.as.dispatch.patch_count = 0;
        FAILS_SAYING(KEEL_OUT_OF_RANGE, said, attempt(op));
    }
    CHECK_EQ(keel_recording_count(recording), 0);
}

// Nor does a zero beside a number that is too large do anything.
TEST(dispatch, no_raw_groups, RAW)
{
    keel_buffer_t *word = new_buffer(4);
    static const uint32_t rows[][3] = {
        {0, 1, 1}, {0, UINT32_MAX, 1}, {1, 0, UINT32_MAX}, {UINT32_MAX, 1, 0}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        row("%u x %u x %u", rows[i][0], rows[i][1], rows[i][2]);
        keel_op_t op = raw_tally(word, keel_groups(rows[i][0], rows[i][1], rows[i][2]));
        reach(submit(op));
        reach(submit(keel_op_execute(RECORD(0, op), KEEL_NO_BINDINGS)));
        CHECK_EQ(buffer_u32(word, 0), 0);
    }
}

// Who takes bindings cannot take a block, and who takes a block has no bindings, and takes all of
// it.
TEST(dispatch, raw_arguments_of_another_kind, RAW)
{
    keel_buffer_t *x = new_buffer(64);
    uint64_t junk[8] = {0};
    raw_t block = {.count = 0};
    keel_op_t op = keel_op_dispatch(kernel("tally"), keel_groups(1, 1, 1), junk, sizeof junk,
                                    KEEL_NO_BINDINGS);
    op.as.dispatch.raw = true;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "raw: entry point 'tally'", attempt(op));
    op = raw_dispatch(&block, NULL, 0);
    op.as.dispatch.bindings = KEEL_BIND(x);
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "bindings", attempt(op));
    op = raw_dispatch(&block, NULL, 0);
    op.as.dispatch.constant_size = 8;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "constant_size", attempt(op));
    op.as.dispatch.raw = false;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "constant_size", attempt(op));
}

TEST(dispatch, patches_need_raw, RUNS)
{
    keel_buffer_t *x = new_buffer(16);
    keel_patch_t patch = {0, keel_whole(x)};
    keel_op_t op = dispatch("tally", 1, KEEL_BIND(x));
    op.as.dispatch.patches = &patch;
    op.as.dispatch.patch_count = 1;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "raw", attempt(op));
}

TEST(dispatch, allocates_nothing, RUNS)
{
    keel_buffer_t *word = new_buffer(4);
    keel_op_t op = dispatch("tally", 5, KEEL_BIND(word));
    // Work may hold its memory a moment longer than its point is pending, so that one submission
    // at a time can need that of several.
    keel_semaphore_t *gate = new_semaphore(0);
    keel_point_t held[16];
    for (int i = 0; i < 16; i++)
        TRY(keel_queue_run(the_queue(), KEEL_AFTER(keel_point(gate, 1)), op, &held[i]));
    TRY(keel_semaphore_signal(gate, 1));
    for (int i = 0; i < 16; i++) reach(held[i]);
    for (int i = 0; i < 84; i++) reach(submit(op));
    uint64_t before = allocations();
    for (int i = 0; i < 100; i++) reach(submit(op));
    if (!starved()) CHECK_EQ(allocations() - before, 0);
    CHECK_EQ(buffer_u32(word, 0), 1000);
}

TEST(dispatch, empty_bindings, RUNS)
{
    keel_buffer_t *x = new_buffer(16);
    reach(submit(dispatch("abs", 4, KEEL_BIND(keel_span(x, 16, 0), keel_span(x, 0, 0)))));
    check_filled(x, 0, 16, 0);
}

TEST(dispatch, chain_of_kernels, RUNS)
{
    keel_buffer_t *x = new_buffer(64);
    uint32_t k[][2] = {{0, 1}, {10, 2}, {10, 3}, {10, 4}};
    keel_op_t ops[8];
    for (int i = 0; i < 4; i++) {
        ops[2 * i] = op_kernel("scale", 1, k[i], 8, KEEL_BIND(x));
        ops[2 * i + 1] = keel_op_barrier();
    }
    reach(submit_all(KEEL_NO_WAITS, ops, 8));
    for (uint32_t i = 0; i < 16; i++) CHECK_EQ(buffer_u32(x, i), 1234);
}

TEST(dispatch, sees_transfers, RUNS)
{
    int32_t data[16];
    for (int i = 0; i < 16; i++) data[i] = i % 2 ? i : -i;
    keel_buffer_t *x = new_buffer(64), *y = new_buffer(64), *z = new_buffer(64);
    reach(SUBMIT(KEEL_NO_WAITS, keel_op_update(keel_span(x, 0, 64), data),
                 keel_op_fill(keel_whole(y), 9, 4), keel_op_barrier(),
                 dispatch("abs", 1, KEEL_BIND(x, y)), keel_op_barrier(),
                 dispatch("add", 1, KEEL_BIND(x, y, z))));
    for (uint32_t i = 0; i < 16; i++) CHECK_EQ(buffer_u32(z, i), i % 2 ? 2 * i : 0);
}

// What was dispatched before with other arguments, drivers may do in another way.
TEST(dispatch, again, RUNS)
{
    const uint32_t rounds = careful() ? 20 : 200;
    keel_buffer_t *x[] = {new_buffer(64), new_buffer(64)};
    uint32_t want[2] = {0, 0};
    keel_point_t last = submit(keel_op_barrier());
    for (uint32_t i = 0; i < rounds; i++) {
        uint32_t k[] = {3 + i % 5, i}, which = i % 3 == 0;
        want[which] = want[which] * k[0] + k[1];
        last = submit_after(KEEL_AFTER(last), op_kernel("scale", 1, k, 8, KEEL_BIND(x[which])));
    }
    reach(last);
    for (uint32_t i = 0; i < 16; i++) CHECK_EQ(buffer_u32(x[0], i), want[0]);
    for (uint32_t i = 0; i < 16; i++) CHECK_EQ(buffer_u32(x[1], i), want[1]);
}

// Kernels and grids in turns, and each twice in a row, so many that none can have a place to
// itself.
TEST(dispatch, again_in_turns, RUNS)
{
    enum { GRIDS = 40, ROUNDS = 4 };
    keel_buffer_t *sums = new_buffer(GRIDS * 4), *word = new_buffer(4);
    keel_point_t last = submit(keel_op_barrier());
    for (uint32_t i = 0; i < ROUNDS * GRIDS * 2; i++) {
        uint32_t groups = 1 + i / 2 % GRIDS;
        last = submit_after(KEEL_AFTER(last), dispatch("identify", groups, KEEL_BIND(sums)));
        last = submit_after(KEEL_AFTER(last), dispatch("tally", groups, KEEL_BIND(word)));
    }
    reach(last);
    for (uint32_t g = 0; g < GRIDS; g++)
        CHECK_EQ(buffer_u32(sums, g), ROUNDS * 2 * (GRIDS - g) * (1 + g));
    CHECK_EQ(buffer_u32(word, 0), ROUNDS * 2 * GRIDS * (GRIDS + 1) / 2);
}

TEST(dispatch, again_with_local_memory, RUNS)
{
    keel_buffer_t *out = new_buffer(20 * 4);
    keel_entry_info_t info;
    keel_entry_t local = kernel("local");
    TRY(keel_entry_info(local, &info));
    uint32_t most = the_caps()->max_local_memory - info.local_memory;
    const uint32_t extra[] = {0, 0, 0, most, most, most, 0, most / 2, most / 2, most / 2};
    for (size_t i = 0; i < COUNT(extra); i++) {
        row("%zu: %u more bytes", i, extra[i]);
        keel_op_t op = dispatch("local", 20, KEEL_BIND(out));
        op.as.dispatch.local_memory = extra[i];
        reach(submit(keel_op_fill(keel_whole(out), 0, 4)));
        reach(submit(op));
        for (uint32_t g = 0; g < 20; g++) CHECK_GE(buffer_u32(out, g), 1024);
    }
}

TEST(dispatch, again_on_queues, RUNS)
{
    enum { QUEUES = 5, GRIDS = 12, ROUNDS = 5 };
    keel_queue_t *queues[QUEUES];
    keel_buffer_t *sums[QUEUES];
    keel_point_t last[QUEUES];
    for (int q = 0; q < QUEUES; q++) {
        queues[q] = new_queue(0);
        sums[q] = new_buffer(GRIDS * 4);
        TRY(keel_queue_run(queues[q], KEEL_NO_WAITS, keel_op_barrier(), &last[q]));
    }
    for (uint32_t i = 0; i < GRIDS * ROUNDS; i++) {
        for (int q = 0; q < QUEUES; q++) {
            keel_op_t op = dispatch("identify", 1 + i / ROUNDS, KEEL_BIND(sums[q]));
            TRY(keel_queue_run(queues[q], KEEL_AFTER(last[q]), op, &last[q]));
        }
    }
    for (int q = 0; q < QUEUES; q++) {
        row("queue %d", q);
        reach(last[q]);
        for (uint32_t g = 0; g < GRIDS; g++)
            CHECK_EQ(buffer_u32(sums[q], g), ROUNDS * (GRIDS - g) * (1 + g));
    }
}

TEST(dispatch, raw_arguments_again, RAW)
{
    uint32_t in[] = {1, 2, 3, 4};
    keel_buffer_t *x = new_buffer_of(in, sizeof in), *y = new_buffer(64);
    for (uint32_t i = 0; i < 6; i++) {
        raw_t block = {.factor = 3 + i, .count = 3, .offset = 100 * i};
        keel_patch_t patches[] = {{offsetof(raw_t, in), keel_span(x, 4, 12)},
                                  {offsetof(raw_t, out), keel_span(y, 8 * i, 16)}};
        reach(submit(raw_dispatch(&block, patches, 2)));
        for (uint32_t k = 0; k < 3; k++)
            CHECK_EQ(buffer_u32(y, 2 * i + k), in[1 + k] * block.factor + block.offset);
    }
}
