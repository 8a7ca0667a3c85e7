// SPDX-License-Identifier: Apache-2.0
#include "transfer.h"

#include "suite/suite.h"

// The whole buffer must hold these bytes.
static void compare(keel_buffer_t *buffer, const uint8_t *expected, uint64_t size)
{
    check_bytes(buffer, 0, expected, size);
}

typedef struct fill_row_t {
    uint32_t pattern_size;
    uint64_t buffer, offset, length;
} fill_row_t;

static const fill_row_t fills[] = {
    {1, 1, 0, 1},       {1, 5, 0, 5},         {1, 16, 0, 1},        {1, 16, 0, 3},
    {1, 16, 0, 8},      {1, 16, 2, 8},        {1, 16, 15, 1},       {1, 33, 1, 31},
    {2, 2, 0, 2},       {2, 16, 0, 8},        {2, 16, 0, 10},       {2, 16, 2, 8},
    {2, 16, 1, 6},      {2, 65, 3, 62},       {4, 4, 0, 4},         {4, 20, 16, 4},
    {4, 16, 0, 8},      {4, 16, 8, 8},        {4, 16, 1, 8},        {4, 19, 3, 16},
    {1, 1000, 7, 777},  {2, 1000, 7, 776},    {4, 1000, 7, 776},    {1, 4097, 0, 4097},
    {4, 4100, 2, 4096}, {1, 65536, 1, 65535}, {2, 65536, 0, 65536}, {4, 65540, 3, 65536},
};

void transfer_fill_table(transfer_run_fn run)
{
    static const uint32_t pattern = 0xd4c3b2a1;
    static const uint8_t bytes[] = {0xa1, 0xb2, 0xc3, 0xd4};
    for (size_t i = 0; i < COUNT(fills); i++) {
        const fill_row_t *f = &fills[i];
        row("pattern of %u, buffer %llu, offset %llu, length %llu", f->pattern_size,
            (unsigned long long)f->buffer, (unsigned long long)f->offset,
            (unsigned long long)f->length);
        keel_buffer_t *buffer = new_buffer_filled(f->buffer, 0x11);
        keel_op_t op =
            keel_op_fill(keel_span(buffer, f->offset, f->length), pattern, f->pattern_size);
        run(&op, 1);
        uint8_t *expected = scratch(f->buffer);
        memset(expected, 0x11, f->buffer);
        for (uint64_t b = 0; b < f->length; b++) {
            expected[f->offset + b] = bytes[b % f->pattern_size];
        }
        compare(buffer, expected, f->buffer);
        drop(expected);
        drop(buffer);
    }
}

typedef struct range_row_t {
    uint64_t buffer, source, target, length;
} range_row_t;

static const range_row_t ranges[] = {
    {1, 0, 0, 1},           {16, 0, 0, 16},     {16, 4, 0, 8},      {16, 0, 4, 8},
    {16, 1, 3, 5},          {16, 15, 0, 1},     {16, 0, 15, 1},     {64, 3, 7, 31},
    {64, 8, 24, 33},        {256, 0, 0, 256},   {256, 17, 65, 190}, {1000, 1, 0, 999},
    {1000, 0, 1, 999},      {4096, 0, 0, 4096}, {4099, 2, 1, 4097}, {65536, 0, 0, 65536},
    {65600, 33, 64, 65535},
};

static void row_of(const range_row_t *r)
{
    row("buffer %llu, source %llu, target %llu, length %llu", (unsigned long long)r->buffer,
        (unsigned long long)r->source, (unsigned long long)r->target,
        (unsigned long long)r->length);
}

void transfer_update_table(transfer_run_fn run)
{
    for (size_t i = 0; i < COUNT(ranges); i++) {
        const range_row_t *r = &ranges[i];
        row_of(r);
        uint8_t *data = numbered(r->buffer), *expected = scratch(r->buffer);
        keel_buffer_t *buffer = new_buffer_filled(r->buffer, 0xee);
        keel_op_t op = keel_op_update(keel_span(buffer, r->target, r->length), data + r->source);
        run(&op, 1);
        memset(expected, 0xee, r->buffer);
        memcpy(expected + r->target, data + r->source, r->length);
        compare(buffer, expected, r->buffer);
        drop(buffer);
    }
}

void transfer_copy_table(transfer_run_fn run)
{
    for (size_t i = 0; i < COUNT(ranges); i++) {
        const range_row_t *r = &ranges[i];
        row_of(r);
        uint8_t *data = numbered(r->buffer), *expected = scratch(r->buffer);
        keel_buffer_t *source = new_buffer_of(data, r->buffer);
        keel_buffer_t *target = new_buffer_filled(r->buffer, 0xee);
        keel_op_t op = keel_op_copy(keel_span(source, r->source, r->length),
                                    keel_span(target, r->target, r->length));
        run(&op, 1);
        memset(expected, 0xee, r->buffer);
        memcpy(expected + r->target, data + r->source, r->length);
        compare(target, expected, r->buffer);
        compare(source, data, r->buffer);
        drop(source);
        drop(target);
    }
}
