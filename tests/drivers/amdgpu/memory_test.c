// SPDX-License-Identifier: Apache-2.0
// The driver's own memory comes from HSA in chunks; and memory of the GPU is none of the host's.
// Run on the software GPU (keel sim).
#include <errno.h>
#include <keel/keel.h>
#include <stdlib.h>
#include <unistd.h>

#include "drivers/amdgpu/host/memory/memory.h"
#include "drivers/amdgpu/host/program/program.h"
#include "drivers/amdgpu/host/scheduler/scheduler.h"
#include "ok.h"
#include "unit.h"

enum { SMALL = 64 << 10, LARGE = 512 << 10, HUGE = 8 << 20 };

// What HSA was asked for.
static const hsa_symbols_t *real;
static int made, freed;
static size_t most;  // bytes that there are at a time
static size_t taken; // of these

static hsa_status_t count_allocate(hsa_amd_memory_pool_t pool, size_t size, uint32_t flags,
                                   void **memory)
{
    if (taken + size > most) return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    made++;
    taken += size;
    return real->hsa_amd_memory_pool_allocate(pool, size, flags, memory);
}

static hsa_status_t count_free(void *memory)
{
    hsa_amd_pointer_info_t info = {.size = sizeof info};
    assert_int_equal(real->hsa_amd_pointer_info(memory, &info, NULL, NULL, NULL),
                     HSA_STATUS_SUCCESS);
    freed++;
    taken -= info.sizeInBytes;
    return real->hsa_amd_memory_pool_free(memory);
}

typedef struct setup_t {
    keel_device_t *device;
    hsa_symbols_t symbols;
    amdgpu_chunks_t chunks; // besides those of the device
} setup_t;

static void setup_open(setup_t *s)
{
    OK(keel_device_open("amdgpu://0", NULL, &s->device));
    amdgpu_device_t *device = amdgpu_device(s->device);
    real = device->hsa;
    s->symbols = *real;
    s->symbols.hsa_amd_memory_pool_allocate = count_allocate;
    s->symbols.hsa_amd_memory_pool_free = count_free;
    amdgpu_chunks_init(&s->chunks, device, device->shared, SMALL, LARGE);
    device->hsa = &s->symbols;
    made = freed = 0;
    most = SIZE_MAX;
    taken = 0;
}

static void setup_close(setup_t *s)
{
    amdgpu_device(s->device)->hsa = real;
    keel_device_release(s->device);
}

static unsigned char *take(setup_t *s, uint64_t size)
{
    void *memory = NULL;
    OK(amdgpu_chunks_take(&s->chunks, size, &memory));
    assert_non_null(memory);
    return memory;
}

// All of them at once: no two may have a byte in common.
static void test_blocks_share_chunks(void **state)
{
    (void)state;
    enum { COUNT = 40, CHUNK = 32 }; // so many small blocks are in a chunk of 2 MiB
    setup_t s;
    unsigned char *blocks[COUNT];
    setup_open(&s);
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = take(&s, SMALL);
        for (int k = 0; k < i; k++)
            assert_true(blocks[i] >= blocks[k] + SMALL || blocks[k] >= blocks[i] + SMALL);
    }
    assert_int_equal(made, 2);
    for (int i = 0; i < CHUNK; i++) amdgpu_chunks_give_back(&s.chunks, blocks[i]);
    assert_int_equal(freed, 0); // one is kept
    for (int i = CHUNK; i < COUNT; i++) amdgpu_chunks_give_back(&s.chunks, blocks[i]);
    assert_int_equal(freed, 1);
    amdgpu_chunks_give_back(&s.chunks, take(&s, 1));
    assert_int_equal(made, 2);
    amdgpu_chunks_trim(&s.chunks);
    assert_int_equal(freed, 2);
    setup_close(&s);
}

static void test_sizes_have_buckets(void **state)
{
    (void)state;
    setup_t s;
    setup_open(&s);
    unsigned char *small = take(&s, SMALL), *large = take(&s, SMALL + 1), *other = take(&s, LARGE);
    assert_int_equal(made, 2); // a chunk of each
    assert_true(other >= large + LARGE || large >= other + LARGE);
    unsigned char *huge = take(&s, HUGE);
    assert_int_equal(made, 3);
    amdgpu_chunks_give_back(&s.chunks, huge);
    assert_int_equal(freed, 1);
    amdgpu_chunks_close(&s.chunks);
    assert_int_equal(freed, 1);
    amdgpu_chunks_give_back(&s.chunks, small);
    assert_int_equal(freed, 2); // from now on at once
    amdgpu_chunks_give_back(&s.chunks, large);
    amdgpu_chunks_give_back(&s.chunks, other);
    assert_int_equal(freed, made);
    setup_close(&s);
}

// There is none for a chunk, but for the block, where an idle chunk goes.
static void test_a_block_needs_no_chunk(void **state)
{
    (void)state;
    setup_t s;
    setup_open(&s);
    amdgpu_chunks_give_back(&s.chunks, take(&s, LARGE));
    assert_int_equal(freed, 0);
    most = taken;
    unsigned char *alone = take(&s, SMALL);
    assert_int_equal(freed, 1);
    assert_int_equal(taken, SMALL);
    unsigned char *other = take(&s, SMALL);
    assert_int_equal(taken, 2 * SMALL);
    amdgpu_chunks_give_back(&s.chunks, alone);
    amdgpu_chunks_give_back(&s.chunks, other);
    amdgpu_chunks_close(&s.chunks);
    assert_int_equal(freed, made);
    setup_close(&s);
}

// What the device keeps of other sizes goes first.
static void test_a_block_finds_what_is_kept(void **state)
{
    (void)state;
    enum { CHUNK = 4 }; // so many large blocks are in a chunk, and the device has some already
    setup_t s;
    block_t *block = NULL, *list = NULL;
    setup_open(&s);
    blocks_t *blocks = &amdgpu_device(s.device)->blocks;
    for (int i = 0; i < CHUNK; i++) {
        OK(blocks_acquire(blocks, LARGE, &block));
        block->next = list;
        list = block;
    }
    blocks_return(blocks, list, true);
    assert_int_equal(made, 1);
    assert_int_equal(freed, 0);
    most = taken;
    OK(blocks_acquire(blocks, 2 * LARGE, &block));
    assert_int_equal(freed, 1);
    keel_status_t status = blocks_acquire(blocks, HUGE, &(block_t *){NULL});
    assert_int_equal(keel_status_code(status), KEEL_RESOURCE_EXHAUSTED);
    keel_status_release(status);
    blocks_return(blocks, block, false);
    setup_close(&s);
}

enum { PROGRAMS = 8, PROGRAM = 4 << 10 }; // a program has a block

static void programs_make(const setup_t *s, keel_buffer_t *buffer, keel_recording_t **recordings)
{
    const keel_op_t op = keel_op_fill(keel_span(buffer, 0, 4), 1, 4);
    for (int i = 0; i < PROGRAMS; i++) {
        OK(keel_recording_create(s->device, NULL, &recordings[i]));
        OK(keel_recording_add(recordings[i], &op, 1));
        OK(keel_recording_end(recordings[i]));
    }
}

// By a call of the system, which tells where a read would end the process.
static bool is_readable(uint64_t address)
{
    int pipes[2];
    assert_int_equal(pipe(pipes), 0);
    ssize_t got = write(pipes[1], (const void *)(uintptr_t)address, 8);
    if (got < 0) assert_int_equal(errno, EFAULT);
    close(pipes[0]);
    close(pipes[1]);
    return got == 8;
}

// All of them in one chunk of the GPU's own memory, which goes where a buffer finds none.
static void test_programs_share_chunks(void **state)
{
    (void)state;
    const keel_buffer_options_t options = {.size = 4096}, large = {.size = 2 << 20};
    keel_recording_t *recordings[PROGRAMS];
    keel_buffer_t *buffer = NULL;
    uint64_t blocks[PROGRAMS];
    setup_t s;
    setup_open(&s);
    OK(keel_buffer_create(s.device, &options, &buffer));
    programs_make(&s, buffer, recordings);
    made = 0;
    for (int i = 0; i < PROGRAMS; i++) {
        blocks[i] = amdgpu_program_of(recordings[i], 0)->address;
        assert_false(is_readable(blocks[i]));
        assert_int_equal((blocks[i] - blocks[0]) % PROGRAM, 0);
        for (int k = 0; k < i; k++) assert_int_not_equal(blocks[i], blocks[k]);
    }
    assert_int_equal(made, 1);
    for (int i = 0; i < PROGRAMS; i++) keel_recording_release(recordings[i]);
    keel_buffer_release(buffer);
    freed = 0;
    most = taken;
    OK(keel_buffer_create(s.device, &large, &buffer));
    assert_int_equal(freed, 1);
    keel_buffer_release(buffer);
    setup_close(&s);
}

// The kernel refuses to read it, as a processor would. Conformance shows that the driver never
// tries.
static void test_the_host_cannot_read_the_gpus_memory(void **state)
{
    (void)state;
    const keel_buffer_options_t options[] = {{.size = 4096},
                                             {.size = 4096, .memory = KEEL_MEMORY_HOST_VISIBLE}};
    setup_t s;
    setup_open(&s);
    for (int i = 0; i < 2; i++) {
        keel_buffer_t *buffer = NULL;
        uint64_t address = 0;
        OK(keel_buffer_create(s.device, &options[i], &buffer));
        OK(keel_buffer_address(buffer, &address));
        assert_int_equal(is_readable(address), i);
        keel_buffer_release(buffer);
    }
    setup_close(&s);
}

static keel_buffer_t *memory_import(keel_device_t *device, void *memory)
{
    keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_HOST, .handle.host = memory, .size = SMALL};
    keel_buffer_t *buffer = NULL;
    OK(keel_buffer_import(device, &external, NULL, &buffer));
    return buffer;
}

static bool is_locked(const void *memory)
{
    hsa_amd_pointer_info_t info = {.size = sizeof info};
    assert_int_equal(real->hsa_amd_pointer_info(memory, &info, NULL, NULL, NULL),
                     HSA_STATUS_SUCCESS);
    return info.type != HSA_EXT_POINTER_TYPE_UNKNOWN;
}

// Else HSA would know it when the application has other memory there.
static void test_a_lost_device_unlocks_memory(void **state)
{
    static _Alignas(4096) char memory[SMALL];
    keel_device_t *device = NULL;
    (void)state;
    OK(keel_device_open("amdgpu://0", NULL, &device));
    real = amdgpu_device(device)->hsa;
    keel_buffer_t *buffer = memory_import(device, memory);
    assert_true(is_locked(memory));
    amdgpu_ring_failed(HSA_STATUS_ERROR_EXCEPTION, NULL, amdgpu_device(device));
    keel_buffer_release(buffer);
    assert_false(is_locked(memory));
    keel_device_release(device);
}

// The device that has locked memory goes before another one that uses it.
static void test_memory_outlives_who_has_locked_it(void **state)
{
    static _Alignas(4096) char memory[SMALL];
    keel_device_t *first = NULL, *second = NULL;
    (void)state;
    OK(keel_device_open("amdgpu://0", NULL, &first));
    OK(keel_device_open("amdgpu://0", NULL, &second));
    real = amdgpu_device(second)->hsa;
    keel_buffer_t *gone = memory_import(first, memory), *buffer = memory_import(second, memory);
    keel_buffer_release(gone);
    keel_device_release(first);
    assert_true(is_locked(memory));
    keel_buffer_release(buffer);
    assert_false(is_locked(memory));
    keel_device_release(second);
}

// Memory of the host that HSA has allocated is for the host alone, until HSA is told of others.
static void test_the_gpu_may_use_memory_of_hsa(void **state)
{
    unsigned char *memory = NULL;
    keel_device_t *device = NULL;
    keel_point_t done;
    (void)state;
    OK(keel_device_open("amdgpu://0", NULL, &device));
    real = amdgpu_device(device)->hsa;
    assert_int_equal(real->hsa_amd_memory_pool_allocate(amdgpu_device(device)->shared, SMALL, 0,
                                                        (void **)(void *)&memory),
                     HSA_STATUS_SUCCESS);
    keel_buffer_t *buffer = memory_import(device, memory);
    OK(keel_queue_fill(keel_device_queue(device, 0), KEEL_NO_WAITS, keel_whole(buffer), 7, 1,
                       &done));
    OK(keel_wait(KEEL_POINTS(done), KEEL_ALL, KEEL_FOREVER));
    assert_int_equal(memory[0], 7);
    assert_int_equal(memory[SMALL - 1], 7);
    keel_buffer_release(buffer);
    assert_int_equal(real->hsa_amd_memory_pool_free(memory), HSA_STATUS_SUCCESS);
    keel_device_release(device);
}

int main(void)
{
    if (!getenv("KEEL_SIM_GPUS")) return 77; // to be run by keel sim
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_share_chunks),
        cmocka_unit_test(test_sizes_have_buckets),
        cmocka_unit_test(test_a_block_needs_no_chunk),
        cmocka_unit_test(test_a_block_finds_what_is_kept),
        cmocka_unit_test(test_programs_share_chunks),
        cmocka_unit_test(test_a_lost_device_unlocks_memory),
        cmocka_unit_test(test_memory_outlives_who_has_locked_it),
        cmocka_unit_test(test_the_gpu_may_use_memory_of_hsa),
        cmocka_unit_test(test_the_host_cannot_read_the_gpus_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
