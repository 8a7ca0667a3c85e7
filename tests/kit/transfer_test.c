// SPDX-License-Identifier: Apache-2.0
// Transfers of files: every byte gets to its place, whether the device copies as soon as it can or
// as late as it may; and failures end them.
#include "kit/transfer.h"

#include <keel/driver/driver.h>
#include <keel/keel.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "unit.h"

enum { PIECE = TRANSFER_PIECE, MOST = 4 * PIECE, FILE_OFFSET = 512, BUFFER_OFFSET = 64 };

// A submission of two transfers, and the device that it is for.
typedef struct place_t {
    transfers_t transfers;
    aio_t *aio;
    keel_file_t file;
    keel_buffer_t buffers[2];
    keel_cmd_transfer_t commands[2];
    unsigned char *memory[2]; // of the device
    unsigned char *staging[2];
    uint64_t staged[2]; // bytes
    int stages, steps, copied;
    bound_copy_t copies[8]; // on the queue
    int waiting;
    bool eager;           // the device copies at once
    int copies_left;      // before one fails
    bool stage_fails;     // there is no staging
    _Atomic int pending;  // steps under way
    _Atomic int failures; // that `done` was told of
    keel_status_t failure;
    const keel_cmd_transfer_t *guilty;
} place_t;

static keel_status_t stage(transfers_t *transfers, uint64_t size, void **data, uint64_t *address)
{
    place_t *place = (place_t *)(void *)transfers;
    if (place->stage_fails) return KEEL_ERROR(KEEL_RESOURCE_EXHAUSTED, "no staging");
    int i = place->stages++;
    place->staged[i] = size;
    place->staging[i] = malloc(size);
    memset(place->staging[i], 0xee, size);
    *data = place->staging[i];
    *address = (uint64_t)(uintptr_t)place->staging[i];
    return NULL;
}

static void device_run(place_t *place)
{
    for (int i = 0; i < place->waiting; i++) {
        const bound_copy_t *copy = &place->copies[i];
        memcpy((void *)(uintptr_t)copy->target, (const void *)(uintptr_t)copy->source, copy->size);
    }
    place->waiting = 0;
}

static keel_status_t copy(transfers_t *transfers, const bound_copy_t *copy)
{
    place_t *place = (place_t *)(void *)transfers;
    if (!place->copies_left--) return KEEL_ERROR(KEEL_INTERNAL, "no copy");
    assert_in_range(copy->size, 1, PIECE);
    place->copies[place->waiting++] = *copy;
    place->copied++;
    if (place->eager) device_run(place);
    return NULL;
}

static bool begin(transfers_t *transfers)
{
    place_t *place = (place_t *)(void *)transfers;
    if (atomic_load(&place->failures)) return false;
    place->steps++;
    atomic_fetch_add(&place->pending, 1);
    return true;
}

static void done(transfers_t *transfers, const keel_cmd_transfer_t *c, keel_status_t status)
{
    place_t *place = (place_t *)(void *)transfers;
    if (status && atomic_fetch_add(&place->failures, 1) == 0) {
        place->failure = status;
        place->guilty = c;
    } else {
        keel_status_release(status);
    }
    atomic_fetch_sub(&place->pending, 1);
}

static const transfer_ops_t ops = {stage, copy, begin, done};

// Bytes that are alike in no two pieces, by words: tools that watch each access are slow.
static unsigned char *bytes_make(uint64_t size, int seed)
{
    uint64_t *words = malloc((size + 7) / 8 * 8);
    for (uint64_t i = 0; i < (size + 7) / 8; i++)
        words[i] = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)seed;
    return (unsigned char *)words;
}

static void bytes_check(const unsigned char *bytes, uint64_t size, int seed)
{
    unsigned char *expected = bytes_make(size, seed);
    assert_int_equal(memcmp(bytes, expected, size), 0);
    free(expected);
}

static void place_open(place_t *place)
{
    static char name[] = "transfers";
    char path[] = "/tmp/keel-transfer-XXXXXX";
    *place = (place_t){.file.path = name, .copies_left = 1000};
    place->file.fd = mkstemp(path);
    assert_true(place->file.fd >= 0);
    unlink(path);
    assert_null(aio_create(&place->aio));
}

static void place_close(place_t *place)
{
    assert_int_equal(atomic_load(&place->pending), 0);
    aio_destroy(place->aio);
    close(place->file.fd);
    keel_status_release(place->failure);
    for (int i = 0; i < 2; i++) {
        free(place->memory[i]);
        free(place->staging[i]);
    }
}

// Of `size` bytes of a buffer in the device's memory, full of what `seed` says.
static keel_cmd_transfer_t *command(place_t *place, int i, keel_cmd_t kind, uint64_t size, int seed)
{
    keel_buffer_t *buffer = &place->buffers[i];
    unsigned char *bytes = bytes_make(size, seed);
    place->memory[i] = malloc(BUFFER_OFFSET + size);
    memcpy(place->memory[i] + BUFFER_OFFSET, bytes, size);
    free(bytes);
    buffer->root = buffer;
    atomic_store(&buffer->address, (uint64_t)(uintptr_t)place->memory[i]);
    place->commands[i] = (keel_cmd_transfer_t){
        .head.kind = (uint16_t)kind,
        .file = &place->file,
        .file_offset = FILE_OFFSET + (uint64_t)i * MOST,
        .ref = {.buffer = buffer, .offset = BUFFER_OFFSET, .length = size},
    };
    return &place->commands[i];
}

// The file as the command is to find it.
static void file_fill(const place_t *place, const keel_cmd_transfer_t *c, int seed)
{
    unsigned char *bytes = bytes_make(c->ref.length, seed);
    assert_int_equal(pwrite(place->file.fd, bytes, c->ref.length, (off_t)c->file_offset),
                     c->ref.length);
    free(bytes);
}

static void check_memory(const place_t *place, int i, int seed)
{
    bytes_check(place->memory[i] + BUFFER_OFFSET, place->commands[i].ref.length, seed);
}

static void check_file(const place_t *place, int i, int seed)
{
    const keel_cmd_transfer_t *c = &place->commands[i];
    unsigned char *bytes = malloc(c->ref.length);
    assert_int_equal(pread(place->file.fd, bytes, c->ref.length, (off_t)c->file_offset),
                     c->ref.length);
    bytes_check(bytes, c->ref.length, seed);
    free(bytes);
}

static void steps_wait(place_t *place)
{
    uint64_t deadline = clock_deadline(60ull * 1000000000);
    while (atomic_load(&place->pending)) {
        assert_true(keel_now_ns() < deadline);
        clock_sleep(20000);
    }
}

static void read_begin(place_t *place, keel_cmd_transfer_t *c)
{
    place->steps++;
    atomic_fetch_add(&place->pending, 1);
    transfer_read(&place->transfers, &ops, place->aio, c);
}

static void write_begin(place_t *place, keel_cmd_transfer_t *c)
{
    assert_null(transfer_write(&place->transfers, &ops, place->aio, c));
}

// To the end, with the device behind the files, or before them. Returns how often it landed.
static int place_run(place_t *place)
{
    int rounds = 0;
    device_run(place);
    transfers_staged(&place->transfers);
    do {
        steps_wait(place);
        device_run(place);
        rounds++;
    } while (transfers_land(&place->transfers));
    device_run(place);
    assert_null(place->transfers.staged);
    return rounds;
}

static void round_trip(uint64_t size, bool eager)
{
    uint64_t pieces = (size + PIECE - 1) / PIECE;
    for (int write = 0; write < 2; write++) {
        place_t place;
        place_open(&place);
        place.eager = eager;
        keel_cmd_transfer_t *c =
            command(&place, 0, write ? KEEL_CMD_WRITE : KEEL_CMD_READ, size, 1);
        if (!write) file_fill(&place, c, 2);
        write ? write_begin(&place, c) : read_begin(&place, c);
        assert_int_equal(place_run(&place), pieces);
        if (write) check_file(&place, 0, 1);
        check_memory(&place, 0, write ? 1 : 2);
        assert_int_equal(place.copied, pieces);
        assert_int_equal(place.stages, 1);
        assert_int_equal(place.staged[0], size < 2 * PIECE ? size : 2 * PIECE);
        place_close(&place);
    }
}

static void test_pieces(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, PIECE + 4, 2 * PIECE, 3 * PIECE + 12};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        round_trip(sizes[i], false);
        round_trip(sizes[i], true);
    }
}

static void test_two(void **state)
{
    (void)state;
    place_t place;
    place_open(&place);
    keel_cmd_transfer_t *write = command(&place, 0, KEEL_CMD_WRITE, 2 * PIECE + 8, 1);
    keel_cmd_transfer_t *read = command(&place, 1, KEEL_CMD_READ, PIECE + 100, 2);
    file_fill(&place, read, 3);
    write_begin(&place, write);
    read_begin(&place, read);
    place_run(&place);
    check_file(&place, 0, 1);
    check_memory(&place, 1, 3);
    assert_int_equal(place.stages, 2);
    assert_int_equal(atomic_load(&place.failures), 0);
    place_close(&place);
}

// Memory that the host can reach needs no staging, and a file of many pieces is one.
static void test_direct(void **state)
{
    (void)state;
    for (int write = 0; write < 2; write++) {
        place_t place;
        place_open(&place);
        keel_cmd_transfer_t *c =
            command(&place, 0, write ? KEEL_CMD_WRITE : KEEL_CMD_READ, 2 * PIECE + 8, 1);
        atomic_store(&place.buffers[0].data, place.memory[0]);
        place.buffers[0].memory = KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_HOST_COHERENT;
        if (!write) file_fill(&place, c, 2);
        write ? write_begin(&place, c) : read_begin(&place, c);
        assert_int_equal(place_run(&place), 1);
        if (write) check_file(&place, 0, 1);
        check_memory(&place, 0, write ? 1 : 2);
        assert_int_equal(place.stages + place.copied, 0);
        place_close(&place);
    }
}

// Memory that the host sees only after a flush or an invalidation is staged.
static void test_not_coherent(void **state)
{
    (void)state;
    place_t place;
    place_open(&place);
    keel_cmd_transfer_t *c = command(&place, 0, KEEL_CMD_READ, 100, 1);
    atomic_store(&place.buffers[0].data, place.memory[0]);
    place.buffers[0].memory = KEEL_MEMORY_HOST_VISIBLE;
    file_fill(&place, c, 2);
    read_begin(&place, c);
    assert_int_equal(place_run(&place), 1);
    check_memory(&place, 0, 2);
    assert_int_equal(place.stages, 1);
    assert_int_equal(place.copied, 1);
    place_close(&place);
}

static void check_failure(const place_t *place, keel_code_t code, const char *words)
{
    assert_int_equal(atomic_load(&place->failures), 1);
    assert_int_equal(keel_status_code(place->failure), code);
    assert_non_null(strstr(keel_status_message(place->failure), words));
    assert_ptr_equal(place->guilty, &place->commands[0]);
}

// The second piece is not all there: what came before is copied, and no more.
static void test_short_file(void **state)
{
    (void)state;
    place_t place;
    place_open(&place);
    keel_cmd_transfer_t *c = command(&place, 0, KEEL_CMD_READ, 4 * PIECE, 1);
    c->ref.length = PIECE + 100;
    file_fill(&place, c, 2);
    c->ref.length = 4 * PIECE;
    read_begin(&place, c);
    assert_int_equal(place_run(&place), 2);
    check_failure(&place, KEEL_OUT_OF_RANGE, "file 'transfers' ends before offset 512 plus");
    assert_int_equal(place.copied, 1);
    place_close(&place);
}

// A copy that is refused on the way ends the transfer, at its own step.
static void test_refused(void **state)
{
    (void)state;
    for (int write = 0; write < 2; write++) {
        place_t place;
        place_open(&place);
        keel_cmd_transfer_t *c =
            command(&place, 0, write ? KEEL_CMD_WRITE : KEEL_CMD_READ, 4 * PIECE, 1);
        file_fill(&place, c, 2);
        place.copies_left = 2;
        write ? write_begin(&place, c) : read_begin(&place, c);
        assert_int_equal(place_run(&place), write ? 1 : 3);
        check_failure(&place, KEEL_INTERNAL, "no copy");
        place_close(&place);
    }
    place_t place;
    place_open(&place);
    place.copies_left = 1;
    keel_status_t status = transfer_write(&place.transfers, &ops, place.aio,
                                          command(&place, 0, KEEL_CMD_WRITE, 2 * PIECE, 1));
    assert_int_equal(keel_status_code(status), KEEL_INTERNAL);
    assert_null(place.transfers.staged);
    keel_status_release(status);
    place_close(&place);
}

// A read ends by `done` also if it could not begin.
static void test_not_begun(void **state)
{
    (void)state;
    place_t place;
    place_open(&place);
    place.stage_fails = true;
    read_begin(&place, command(&place, 0, KEEL_CMD_READ, 100, 1));
    check_failure(&place, KEEL_RESOURCE_EXHAUSTED, "no staging");
    assert_false(transfers_land(&place.transfers));
    place_close(&place);
    place_open(&place);
    keel_cmd_transfer_t *c = command(&place, 0, KEEL_CMD_READ, 100, 1);
    atomic_store(&place.buffers[0].address, 0);
    read_begin(&place, c);
    check_failure(&place, KEEL_FAILED_PRECONDITION, "has no memory");
    place_close(&place);
}

// Of a submission that has failed nothing more is begun.
static void test_failed(void **state)
{
    (void)state;
    place_t place;
    place_open(&place);
    keel_cmd_transfer_t *read = command(&place, 0, KEEL_CMD_READ, 2 * PIECE, 1);
    file_fill(&place, read, 2);
    read_begin(&place, read);
    write_begin(&place, command(&place, 1, KEEL_CMD_WRITE, 100, 1));
    steps_wait(&place);
    atomic_store(&place.failures, 1);
    transfers_staged(&place.transfers);
    assert_false(transfers_land(&place.transfers));
    assert_null(place.transfers.staged);
    assert_int_equal(place.steps, 1);
    assert_int_equal(place.copied, 1); // the write's
    place_close(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),     cmocka_unit_test(test_two),
        cmocka_unit_test(test_direct),     cmocka_unit_test(test_not_coherent),
        cmocka_unit_test(test_short_file), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_not_begun),  cmocka_unit_test(test_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
