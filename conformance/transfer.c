// SPDX-License-Identifier: Apache-2.0
// Fill, update and copy, submitted to a queue. The same in recordings: recorded_transfer.c.
#include "suite/suite.h"

#include "transfer.h"

#define RUNS .needs = KEEL_CAP_EXECUTES

static void run_submitted(const keel_op_t *ops, size_t count)
{
    reach(submit_all(KEEL_NO_WAITS, ops, count));
}

TEST(transfer, fill_table, RUNS)
{
    transfer_fill_table(run_submitted);
}

TEST(transfer, update_table, RUNS)
{
    transfer_update_table(run_submitted);
}

TEST(transfer, copy_table, RUNS)
{
    transfer_copy_table(run_submitted);
}

TEST(transfer, fill_ignores_high_pattern_bytes, RUNS)
{
    keel_buffer_t *x = new_buffer(8);
    reach(SUBMIT(KEEL_NO_WAITS, keel_op_fill(keel_span(x, 0, 2), 0xffffff11, 1),
                 keel_op_fill(keel_span(x, 2, 2), 0xffff3322, 2),
                 keel_op_fill(keel_span(x, 4, 4), 0x77665544, 4)));
    check_bytes(x, 0, "\x11\x11\x22\x33\x44\x55\x66\x77", 8);
}

TEST(transfer, fill_whole, RUNS)
{
    keel_buffer_t *x = new_buffer(100);
    reach(submit(keel_op_fill(keel_whole(x), 1, 1)));
    reach(submit(keel_op_fill(keel_span(x, 60, KEEL_WHOLE), 0x0202, 2)));
    check_filled(x, 0, 60, 1);
    check_filled(x, 60, 40, 2);
}

TEST(transfer, fill_large, RUNS)
{
    const uint64_t size = careful() ? 1 << 20 : 1 << 25;
    keel_buffer_t *x = new_buffer(size + 3);
    reach(submit(keel_op_fill(keel_span(x, 1, size), 0xa5, 1)));
    check_filled(x, 0, 1, 0);
    check_filled(x, 1, size, 0xa5);
    check_filled(x, size + 1, 2, 0);
}

TEST(transfer, copy_large, RUNS)
{
    const uint64_t size = careful() ? 1 << 20 : 1 << 25;
    uint8_t *data = numbered(size);
    keel_buffer_t *x = new_buffer_of(data, size), *y = new_buffer(size + 7);
    reach(submit(keel_op_copy(keel_whole(x), keel_span(y, 5, size))));
    check_filled(y, 0, 5, 0);
    check_bytes(y, 5, data, size);
    check_filled(y, size + 5, 2, 0);
}

TEST(transfer, update_large, RUNS)
{
    const size_t size = 1000000; // more than any command buffer holds inline
    uint8_t *data = numbered(size);
    keel_buffer_t *x = new_buffer(size);
    reach(submit(keel_op_update(keel_span(x, 0, size), data)));
    check_bytes(x, 0, data, size);
}

// The data is taken when it is submitted.
TEST(transfer, update_captures_its_source, RUNS)
{
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *x = new_buffer(16);
    char data[] = "fifteen letters";
    keel_point_t done =
        submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_update(keel_span(x, 0, 16), data));
    memset(data, 0, sizeof data);
    TRY(keel_semaphore_signal(gate, 1));
    reach(done);
    check_bytes(x, 0, "fifteen letters", 16);
}

TEST(transfer, of_nothing, RUNS)
{
    keel_buffer_t *x = new_buffer_filled(16, 1), *y = new_buffer_filled(16, 2),
                  *none = new_buffer(0);
    reach(SUBMIT(KEEL_NO_WAITS, keel_op_fill(keel_span(x, 16, 0), 9, 1),
                 keel_op_fill(keel_span(x, 3, 0), 9, 4), keel_op_update(keel_span(x, 4, 0), NULL),
                 keel_op_copy(keel_span(x, 0, 0), keel_span(y, 16, 0)),
                 keel_op_fill(keel_whole(none), 9, 4)));
    check_filled(x, 0, 16, 1);
    check_filled(y, 0, 16, 2);
}

TEST(transfer, copy_within_a_buffer, RUNS)
{
    keel_buffer_t *x = new_buffer_of("abcdefgh........", 16);
    reach(submit(keel_op_copy(keel_span(x, 0, 8), keel_span(x, 8, 8))));
    check_bytes(x, 0, "abcdefghabcdefgh", 16);
}

TEST(transfer, through_subspans, RUNS)
{
    keel_buffer_t *x = new_buffer(64);
    keel_buffer_t *part = new_subspan(x, 16, 32), *inner = new_subspan(part, 8, 16);
    reach(submit(keel_op_fill(keel_whole(part), 1, 1)));
    reach(submit(keel_op_fill(keel_span(inner, 4, 8), 2, 1)));
    reach(submit(keel_op_copy(keel_span(inner, 4, 8), keel_span(part, 0, 8))));
    uint8_t expected[64] = {0};
    memset(expected + 16, 1, 32);
    memset(expected + 28, 2, 8);
    memset(expected + 16, 2, 8);
    check_bytes(x, 0, expected, 64);
}

// Ranges that overlap through a subspan are still the same memory.
TEST(transfer, copy_overlap_is_refused)
{
    keel_buffer_t *x = new_buffer(64), *part = new_subspan(x, 16, 32);
    const struct {
        keel_ref_t source, target;
    } rows[] = {
        {keel_span(x, 0, 16), keel_span(x, 8, 16)},
        {keel_span(x, 8, 16), keel_span(x, 0, 16)},
        {keel_whole(x), keel_whole(x)},
        {keel_span(x, 0, 17), keel_span(part, 0, 17)},
        {keel_span(part, 8, 8), keel_span(x, 24, 8)},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        row("row %zu", i);
        FAILS_SAYING(
            KEEL_INVALID_ARGUMENT, "overlap",
            keel_queue_copy(the_queue(), KEEL_NO_WAITS, rows[i].source, rows[i].target, NULL));
    }
    reach(submit(keel_op_copy(keel_span(x, 0, 16), keel_span(part, 0, 16))));
}

TEST(transfer, copy_lengths_must_agree)
{
    keel_buffer_t *x = new_buffer(64), *y = new_buffer(32);
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "source",
                 keel_queue_copy(the_queue(), KEEL_NO_WAITS, keel_whole(x), keel_whole(y), NULL));
    FAILS_SAYING(
        KEEL_INVALID_ARGUMENT, "source",
        keel_queue_copy(the_queue(), KEEL_NO_WAITS, keel_span(x, 0, 8), keel_span(y, 0, 9), NULL));
}

TEST(transfer, bad_patterns)
{
    keel_buffer_t *x = new_buffer(64);
    static const uint32_t sizes[] = {0, 3, 5, 8, 16};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        row("pattern of %u bytes", sizes[i]);
        FAILS_SAYING(KEEL_INVALID_ARGUMENT, "pattern_size",
                     keel_queue_fill(the_queue(), KEEL_NO_WAITS, keel_whole(x), 0, sizes[i], NULL));
    }
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "multiple",
                 keel_queue_fill(the_queue(), KEEL_NO_WAITS, keel_span(x, 0, 7), 0, 2, NULL));
    FAILS_SAYING(
        KEEL_INVALID_ARGUMENT, "multiple",
        keel_queue_fill(the_queue(), KEEL_NO_WAITS, keel_span(x, 1, KEEL_WHOLE), 0, 4, NULL));
}

TEST(transfer, bad_ranges)
{
    keel_buffer_t *x = new_buffer(64), *y = new_buffer(128), *part = new_subspan(x, 32, 16);
    const keel_ref_t refs[] = {
        keel_span(x, 0, 65),
        keel_span(x, 64, 1),
        keel_span(x, 65, 0),
        keel_span(x, 65, KEEL_WHOLE),
        keel_span(x, 60, 8),
        keel_span(x, UINT64_MAX - 3, 8),
        keel_span(x, 8, UINT64_MAX - 4),
        keel_span(part, 0, 17),
        keel_span(part, 17, 0),
        keel_span(x, UINT64_MAX, KEEL_WHOLE),
    };
    char data[80] = "";
    for (size_t i = 0; i < COUNT(refs); i++) {
        row("row %zu: offset %llu length %llu", i, (unsigned long long)refs[i].offset,
            (unsigned long long)refs[i].length);
        FAILS_SAYING(KEEL_OUT_OF_RANGE, "target",
                     keel_queue_fill(the_queue(), KEEL_NO_WAITS, refs[i], 0, 1, NULL));
        FAILS_SAYING(
            KEEL_OUT_OF_RANGE, "source",
            keel_queue_copy(the_queue(), KEEL_NO_WAITS, refs[i], keel_span(y, 0, 65), NULL));
        keel_op_t update =
            keel_op_update(keel_span(refs[i].buffer, refs[i].offset, refs[i].length), data);
        FAILS_SAYING(KEEL_OUT_OF_RANGE, "target",
                     keel_queue_run(the_queue(), KEEL_NO_WAITS, update, NULL));
    }
}

TEST(transfer, missing_buffers_and_data)
{
    keel_buffer_t *x = new_buffer(64);
    keel_queue_t *q = the_queue();
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "target",
                 keel_queue_fill(q, KEEL_NO_WAITS, keel_span(NULL, 0, 8), 0, 1, NULL));
    FAILS_SAYING(
        KEEL_INVALID_ARGUMENT, "source",
        keel_queue_copy(q, KEEL_NO_WAITS, keel_span(NULL, 0, 8), keel_span(x, 0, 8), NULL));
    FAILS_SAYING(
        KEEL_INVALID_ARGUMENT, "target",
        keel_queue_copy(q, KEEL_NO_WAITS, keel_span(x, 0, 8), keel_span(NULL, 0, 8), NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "data",
                 keel_queue_run(q, KEEL_NO_WAITS, keel_op_update(keel_span(x, 0, 8), NULL), NULL));
}

static keel_buffer_t *buffer_with(keel_buffer_options_t options)
{
    keel_buffer_t *buffer = NULL;
    TRY(keel_buffer_create(the_device(), &options, &buffer));
    OWN(buffer);
    return buffer;
}

TEST(transfer, access_is_respected)
{
    keel_buffer_t *all = new_buffer(64);
    keel_buffer_t *r = buffer_with((keel_buffer_options_t){.size = 64, .access = KEEL_ACCESS_READ});
    keel_buffer_t *w =
        buffer_with((keel_buffer_options_t){.size = 64, .access = KEEL_ACCESS_WRITE});
    keel_queue_t *q = the_queue();
    FAILS_SAYING(KEEL_PERMISSION_DENIED, "target",
                 keel_queue_fill(q, KEEL_NO_WAITS, keel_whole(r), 0, 1, NULL));
    FAILS_SAYING(KEEL_PERMISSION_DENIED, "target",
                 keel_queue_run(q, KEEL_NO_WAITS, keel_op_update(keel_span(r, 0, 1), "x"), NULL));
    FAILS_SAYING(KEEL_PERMISSION_DENIED, "target",
                 keel_queue_copy(q, KEEL_NO_WAITS, keel_whole(all), keel_whole(r), NULL));
    FAILS_SAYING(KEEL_PERMISSION_DENIED, "source",
                 keel_queue_copy(q, KEEL_NO_WAITS, keel_whole(w), keel_whole(all), NULL));
    reach(submit(keel_op_copy(keel_whole(r), keel_whole(w))));
}

TEST(transfer, usage_is_respected, .also = NEED_EXACT_USAGE)
{
    keel_buffer_t *x =
        buffer_with((keel_buffer_options_t){.size = 64, .usage = KEEL_USAGE_DISPATCH});
    need_no_usage(x, KEEL_USAGE_TRANSFER);
    FAILS_SAYING(KEEL_PERMISSION_DENIED, "TRANSFER",
                 keel_queue_fill(the_queue(), KEEL_NO_WAITS, keel_whole(x), 0, 1, NULL));
}

// But by copies: across.c.
TEST(transfer, foreign_buffers_are_refused)
{
    keel_buffer_t *there = new_buffer_on(open_device(the_uri()), 64);
    uint8_t *data = scratch(64);
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "device",
                 keel_queue_fill(the_queue(), KEEL_NO_WAITS, keel_whole(there), 0, 1, NULL));
    FAILS_SAYING(
        KEEL_INVALID_ARGUMENT, "device",
        keel_queue_run(the_queue(), KEEL_NO_WAITS, keel_op_update(keel_whole(there), data), NULL));
}

TEST(transfer, burst, RUNS)
{
    enum { N = 200 };
    keel_buffer_t *x = new_buffer(4 * N), *y = new_buffer(4 * N);
    keel_point_t copied[N];
    for (uint32_t i = 0; i < N; i++) {
        keel_point_t filled = submit(keel_op_fill(keel_span(x, 4 * i, 4), i * 0x01010101u, 4));
        copied[i] = submit_after(KEEL_AFTER(filled),
                                 keel_op_copy(keel_span(x, 4 * i, 4), keel_span(y, 4 * i, 4)));
    }
    TRY(keel_wait(keel_points(copied, N), KEEL_ALL, patience()));
    for (uint32_t i = 0; i < N; i++) CHECK_EQ(buffer_u32(y, i), i * 0x01010101u);
}

TEST(transfer, chain_of_points, RUNS)
{
    keel_buffer_t *x = new_buffer(16), *y = new_buffer(16);
    keel_point_t a = submit(keel_op_update(keel_span(x, 0, 16), "0123456789abcdef"));
    keel_point_t b = submit_after(KEEL_AFTER(a), keel_op_copy(keel_whole(x), keel_whole(y)));
    keel_point_t c = submit_after(KEEL_AFTER(b), keel_op_fill(keel_span(y, 4, 4), '-', 1));
    reach(c);
    check_bytes(y, 0, "0123----89abcdef", 16);
    check_bytes(x, 0, "0123456789abcdef", 16);
}
