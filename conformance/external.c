// SPDX-License-Identifier: Apache-2.0
// Memory from and for outside: host pointers, device addresses, file descriptors.
#include "suite/suite.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOST  .needs = KEEL_CAP_IMPORT_HOST
#define FD    .needs = KEEL_CAP_EXPORT_FD
#define RUNS_ | KEEL_CAP_EXECUTES

static atomic_int released;

static void on_release(void *user)
{
    EXPECT(user == &released);
    atomic_fetch_add(&released, 1);
}

static keel_buffer_t *import_host(void *memory, uint64_t size, uint32_t access)
{
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_HOST,
                                       .handle.host = memory,
                                       .size = size,
                                       .release = on_release,
                                       .user = &released};
    keel_buffer_options_t options = {.access = access, .name = "imported"};
    keel_buffer_t *buffer = NULL;
    TRY(keel_buffer_import(the_device(), &external, &options, &buffer));
    OWN(buffer);
    return buffer;
}

TEST(external, import_host, HOST RUNS_)
{
    uint8_t *memory = scratch(4096);
    memset(memory, 1, 4096);
    keel_buffer_t *x = import_host(memory + 3, 1000, 0), *y = new_buffer(1000);
    CHECK_EQ(keel_buffer_size(x), 1000);
    reach(submit(keel_op_copy(keel_whole(x), keel_whole(y))));
    check_filled(y, 0, 1000, 1);
    reach(submit(keel_op_fill(keel_whole(x), 2, 1)));
    CHECK_EQ(memory[2], 1);
    CHECK_EQ(memory[3], 2);
    CHECK_EQ(memory[1002], 2);
    CHECK_EQ(memory[1003], 1);
}

// The error names the argument that the size came from. Memory of the host may be larger than the
// device's own.
TEST(external, import_too_large, HOST)
{
    uint8_t *memory = scratch(64);
    keel_buffer_t *buffer = NULL;
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_HOST, .handle.host = memory};
    external.size = UINT64_MAX;
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "external->size",
                 keel_buffer_import(the_device(), &external, NULL, &buffer));
    external.kind = KEEL_EXTERNAL_DEVICE;
    external.handle.device = 4096;
    FAILS_SAYING(KEEL_OUT_OF_RANGE, "external->size",
                 keel_buffer_import(the_device(), &external, NULL, &buffer));
}

// The callback comes once, when the last user is gone.
TEST(external, import_host_release, HOST)
{
    atomic_store(&released, 0);
    uint8_t *memory = scratch(64);
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *x = import_host(memory, 64, 0);
    keel_buffer_t *part = new_subspan(x, 0, 32);
    keel_point_t done =
        submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_fill(keel_whole(part), 1, 1));
    drop(x);
    drop(part);
    CHECK_EQ(atomic_load(&released), 0);
    TRY(keel_semaphore_signal(gate, 1));
    reach(done);
    TRY(keel_device_wait_idle(the_device(), patience()));
    drop(the_device());
    come_to(&released, 1);
}

TEST(external, import_host_without_callback, HOST)
{
    uint8_t *memory = scratch(64);
    keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_HOST, .handle.host = memory, .size = 64};
    for (int i = 0; i < 3; i++) { // and again, since nothing of it stays registered
        row("round %d", i);
        keel_buffer_t *buffer = NULL;
        TRY(keel_buffer_import(the_device(), &external, NULL, &buffer));
        keel_buffer_release(buffer);
    }
}

TEST(external, import_host_twice_at_once, HOST RUNS_)
{
    atomic_store(&released, 0);
    uint8_t *memory = scratch(64);
    keel_buffer_t *x = import_host(memory, 64, 0), *y = import_host(memory, 64, 0);
    reach(submit(keel_op_fill(keel_whole(x), 1, 1)));
    reach(submit(keel_op_fill(keel_span(y, 32, 32), 2, 1)));
    CHECK_EQ(memory[31], 1);
    CHECK_EQ(memory[32], 2);
    drop(x);
    come_to(&released, 1);
    reach(submit(keel_op_fill(keel_whole(y), 3, 1)));
    CHECK_EQ(memory[0], 3);
}

typedef struct importer_t {
    keel_device_t *device;
    char *memory;
} importer_t;

static void import_often(void *user)
{
    const importer_t *importer = user;
    for (int i = 0; i < 200; i++) {
        keel_buffer_t *buffer = NULL;
        keel_external_buffer_t external = {
            .kind = KEEL_EXTERNAL_HOST, .handle.host = importer->memory, .size = 100};
        TRY(keel_buffer_import(importer->device, &external, NULL, &buffer));
        keel_buffer_release(buffer);
    }
}

// Imports of the same memory, and of neighbours in the same page, by threads and devices at once.
TEST(external, import_host_by_threads, HOST)
{
    importer_t *importers = scratch(4 * sizeof *importers);
    thread_t *threads[4];
    char *memory = scratch(200);
    for (int i = 0; i < 4; i++) {
        importers[i].device = i % 2 ? open_device(the_uri()) : the_device();
        importers[i].memory = memory + 100 * (i / 2);
        threads[i] = thread_start(import_often, &importers[i]);
    }
    for (int i = 0; i < 4; i++) thread_join(threads[i]);
}

// Where one page of memory of the host ends and another begins; both are there.
static uint8_t *host_border(uint64_t *page)
{
    *page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint8_t *memory = scratch(4 * *page);
    return memory + (-(uintptr_t)memory & (*page - 1)) + *page;
}

// Memory that shares pages with imported memory, at the end of one and across it.
TEST(external, import_host_neighbours, HOST RUNS_)
{
    uint64_t page;
    uint8_t *border = host_border(&page);
    keel_buffer_t *x = import_host(border - 300, 100, 0), *y = import_host(border - 200, 100, 0);
    keel_buffer_t *z = import_host(border - 100, page, 0);
    reach(submit(keel_op_fill(keel_whole(x), 1, 1)));
    reach(submit(keel_op_fill(keel_whole(y), 2, 1)));
    reach(submit(keel_op_fill(keel_whole(z), 3, 1)));
    int64_t end = (int64_t)page - 100;
    for (int64_t i = -350; i < end + 100; i++) {
        int want = i < -300 || i >= end ? 0 : i < -200 ? 1 : i < -100 ? 2 : 3;
        if (border[i] != want) CHECK_EQ(border[i], want);
    }
}

// What is 8 bytes on both sides of a border gets and gives all its bytes, by all that moves bytes.
static void move_across(keel_buffer_t *part, const uint8_t *bytes, keel_recording_t *recording)
{
    keel_buffer_t *y = new_buffer(16), *z = new_buffer(16);
    reach(submit(keel_op_update(keel_whole(part), "a border between")));
    CHECK(!memcmp(bytes, "a border between", 16));
    reach(submit(keel_op_copy(keel_whole(part), keel_whole(y))));
    reach(submit(keel_op_fill(keel_whole(part), 0x01020304, 4)));
    CHECK_EQ(bytes[7], 1);
    CHECK_EQ(bytes[8], 4);
    reach(submit(keel_op_copy(keel_whole(y), keel_whole(part))));
    CHECK(!memcmp(bytes, "a border between", 16));
    keel_ref_t tables[][2] = {{keel_whole(y), keel_whole(z)},
                              {keel_whole(part), keel_whole(z)},
                              {keel_whole(y), keel_whole(part)}};
    for (int i = 0; i < 3; i++) {
        row("table %d", i);
        reach(submit(keel_op_execute(recording, (keel_refs_t){tables[i], 2})));
    }
    CHECK(!memcmp(bytes, "written pieces..", 16));
    reach(submit(keel_op_copy(keel_whole(z), keel_whole(part))));
    CHECK(!memcmp(bytes, "written pieces..", 16));
}

// On CUDA the first page is locked with the first import, and the other with the second: no call of
// the vendor's goes across.
TEST(external, import_host_in_pieces, HOST RUNS_)
{
    uint64_t page;
    uint8_t *border = host_border(&page);
    keel_op_t ops[] = {
        keel_op_fill(keel_slot(0, 0, 16), '.', 1),
        keel_op_barrier(),
        keel_op_update(keel_slot(0, 0, 14), "written pieces"),
        keel_op_barrier(),
        keel_op_copy(keel_slot(0, 0, 16), keel_slot(1, 0, 16)),
    };
    keel_recording_t *recording = new_recording(2, ops, sizeof ops / sizeof *ops);
    import_host(border - 100, 50, 0);
    move_across(import_host(border - 8, 16, 0), border - 8, recording);
    CHECK_EQ(border[-9], 0);
    CHECK_EQ(border[8], 0);
}

static keel_status_t import_plainly(uint8_t *memory, uint64_t size, keel_buffer_t **buffer)
{
    keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_HOST, .handle.host = memory, .size = size};
    keel_status_t status = keel_buffer_import(the_device(), &external, NULL, buffer);
    if (!status) OWN(*buffer);
    return status;
}

// Of memory that is imported, any part can be; of memory that is imported in part, all can be only
// where the device sees it at one place.
static void import_overlapping(uint8_t *memory)
{
    keel_buffer_t *part = NULL, *inner = NULL, *all = NULL;
    TRY(import_plainly(memory + 100, 100, &part));
    TRY(import_plainly(memory + 120, 50, &inner));
    reach(submit(keel_op_fill(keel_whole(inner), 7, 1)));
    CHECK_EQ(memory[119], 0);
    CHECK_EQ(memory[120], 7);
    CHECK_EQ(memory[169], 7);
    CHECK_EQ(memory[170], 0);
    keel_status_t status = import_plainly(memory, 300, &all);
    drop(inner);
    drop(part);
    if (keel_status_code(status) == KEEL_UNSUPPORTED) {
        keel_status_release(status);
        status = import_plainly(memory, 300, &all);
    }
    TRY(status);
    reach(submit(keel_op_fill(keel_whole(all), 8, 1)));
    CHECK_EQ(memory[0], 8);
    CHECK_EQ(memory[150], 8);
    CHECK_EQ(memory[299], 8);
    drop(all);
}

TEST(external, import_host_overlapping, HOST RUNS_)
{
    uint64_t page;
    uint8_t *border = host_border(&page);
    row("within a page");
    import_overlapping(border);
    row("across a border");
    import_overlapping(border - 250);
}

TEST(external, import_host_access, HOST)
{
    keel_buffer_t *x = import_host(scratch(64), 64, KEEL_ACCESS_READ);
    FAILS_SAYING(KEEL_PERMISSION_DENIED, "imported",
                 keel_queue_fill(the_queue(), KEEL_NO_WAITS, keel_whole(x), 0, 1, NULL));
}

typedef struct constant_t {
    int32_t *memory;
    uint64_t size;
    keel_buffer_t *buffer;
} constant_t;

// A file that is mapped for reading, as weights are, imported but for its first value. `flags`:
// MAP_SHARED, as devices that page-lock memory need it, or MAP_PRIVATE.
static keel_status_t try_constant(int flags, constant_t *out)
{
    constant_t c = {.size = 3 * (uint64_t)sysconf(_SC_PAGESIZE)};
    char path[] = "/tmp/keel-weights-XXXXXX";
    int fd = mkstemp(path);
    own_descriptor(fd);
    CHECK(unlink(path) == 0);
    CHECK(ftruncate(fd, (off_t)c.size) == 0);
    for (int32_t i = 0; i < 1024; i++) CHECK_EQ(pwrite(fd, &(int32_t){-i}, 4, 4 * i), 4);
    c.memory = mmap(NULL, c.size, PROT_READ, flags, fd, 0);
    CHECK(c.memory != MAP_FAILED);
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_HOST,
                                       .handle.host = c.memory + 1,
                                       .size = c.size - 4,
                                       .release = on_release,
                                       .user = &released};
    keel_buffer_options_t options = {.access = KEEL_ACCESS_READ, .name = "weights"};
    atomic_store(&released, 0);
    keel_status_t status = keel_buffer_import(the_device(), &external, &options, &c.buffer);
    if (!status) OWN(c.buffer);
    *out = c;
    return status;
}

static constant_t import_constant(void)
{
    constant_t c;
    TRY(try_constant(MAP_SHARED, &c));
    return c;
}

static void drop_constant(constant_t c)
{
    drop(c.buffer);
    come_to(&released, 1);
    munmap(c.memory, c.size);
}

TEST(external, import_host_read_only, HOST RUNS_, .also = NEED_READ_ONLY_HOST)
{
    constant_t c = import_constant();
    keel_buffer_t *x = new_subspan(c.buffer, 0, 64 * 4);
    keel_buffer_t *y = new_buffer(64 * 4), *z = new_buffer(c.size - 4);
    reach(submit(keel_op_dispatch(kernel("abs"), keel_groups(4, 1, 1), NULL, 0, KEEL_BIND(x, y))));
    for (uint32_t i = 0; i < 64; i++) CHECK_EQ(buffer_u32(y, i), i + 1);
    reach(submit(keel_op_copy(keel_whole(c.buffer), keel_whole(z))));
    for (uint32_t i = 0; i < 1023; i += 31) CHECK_EQ(buffer_u32(z, i), -(i + 1));
    check_filled(z, 4096, c.size - 4 - 4096, 0);
    int32_t seen = 0;
    TRY(keel_buffer_read(c.buffer, 8, &seen, 4));
    CHECK_EQ(seen, -3);
    drop(x);
    drop_constant(c);
}

// It is as good as a shared one, or refused by an error that says what is.
TEST(external, import_host_private_file, HOST RUNS_)
{
    constant_t c;
    keel_status_t status = try_constant(MAP_PRIVATE, &c);
    if (keel_status_code(status) == KEEL_UNSUPPORTED) {
        FAILS_SAYING(KEEL_UNSUPPORTED, "MAP_SHARED", status);
        CHECK_EQ(atomic_load(&released), 0);
        munmap(c.memory, c.size);
        return;
    }
    TRY(status);
    keel_buffer_t *y = new_buffer(c.size - 4);
    reach(submit(keel_op_copy(keel_whole(c.buffer), keel_whole(y))));
    for (uint32_t i = 0; i < 1023; i += 31) CHECK_EQ(buffer_u32(y, i), -(i + 1));
    drop_constant(c);
}

// Nothing that would write it gets as far as the device.
TEST(external, import_host_read_only_is_not_written, HOST RUNS_, .also = NEED_READ_ONLY_HOST)
{
    constant_t c = import_constant();
    keel_buffer_t *x = c.buffer, *y = new_buffer(c.size), *part = new_subspan(x, 16, 16);
    keel_queue_t *queue = the_queue();
    const keel_op_t ops[] = {
        keel_op_fill(keel_span(x, 0, 16), 1, 1),
        keel_op_update(keel_span(x, 0, 16), "sixteen letters."),
        keel_op_copy(keel_span(y, 0, 16), keel_span(x, 0, 16)),
        keel_op_dispatch(kernel("abs"), keel_groups(4, 1, 1), NULL, 0, KEEL_BIND(y, x)),
        keel_op_fill(keel_whole(part), 1, 1),
    };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        row("operation %zu", i);
        FAILS_SAYING(KEEL_PERMISSION_DENIED, "KEEL_ACCESS_WRITE",
                     keel_queue_run(queue, KEEL_NO_WAITS, ops[i], NULL));
    }
    void *memory = NULL;
    FAILS(KEEL_PERMISSION_DENIED, keel_buffer_map(x, 0, 16, KEEL_ACCESS_ALL, &memory));
    FAILS(KEEL_PERMISSION_DENIED, keel_buffer_write(x, 0, "a", 1));
    drop(part);
    drop_constant(c);
}

// It is taken, or refused by an error that says why.
TEST(external, import_host_read_only_or_not, HOST RUNS_)
{
    constant_t c;
    keel_status_t status = try_constant(MAP_SHARED, &c);
    if (status) {
        FAILS_SAYING(KEEL_UNSUPPORTED, "the memory cannot be written", status);
        CHECK_EQ(atomic_load(&released), 0);
        munmap(c.memory, c.size);
        return;
    }
    CHECK(c.buffer);
    drop_constant(c);
}

TEST(external, import_host_usage, HOST, .also = NEED_EXACT_USAGE)
{
    keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_HOST, .handle.host = scratch(64), .size = 64};
    keel_buffer_options_t options = {.usage = KEEL_USAGE_DISPATCH};
    keel_buffer_t *x = NULL;
    TRY(keel_buffer_import(the_device(), &external, &options, &x));
    OWN(x);
    keel_buffer_info_t info;
    keel_buffer_info(x, &info);
    CHECK(info.usage & KEEL_USAGE_DISPATCH);
    need_no_usage(x, KEEL_USAGE_TRANSFER);
    FAILS_SAYING(KEEL_PERMISSION_DENIED, "KEEL_USAGE_TRANSFER",
                 keel_queue_fill(the_queue(), KEEL_NO_WAITS, keel_whole(x), 0, 1, NULL));
}

TEST(external, import_host_for_kernels, HOST RUNS_)
{
    int32_t *memory = scratch(64 * 4);
    for (int i = 0; i < 64; i++) memory[i] = -i;
    keel_buffer_t *x = import_host(memory, 64 * 4, 0), *y = new_buffer(64 * 4);
    reach(submit(keel_op_dispatch(kernel("abs"), keel_groups(4, 1, 1), NULL, 0, KEEL_BIND(x, y))));
    for (uint32_t i = 0; i < 64; i++) CHECK_EQ(buffer_u32(y, i), i);
}

// Memory is what it is, and `options->memory` what it has to be.
TEST(external, import_memory, HOST)
{
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_HOST,
                                       .handle.host = scratch(64),
                                       .size = 64,
                                       .release = on_release,
                                       .user = &released};
    keel_buffer_options_t options = {.memory = KEEL_MEMORY_HOST_VISIBLE};
    keel_buffer_t *x = NULL;
    keel_buffer_info_t info;
    TRY(keel_buffer_import(the_device(), &external, &options, &x));
    OWN(x);
    keel_buffer_info(x, &info);
    options.memory = ~info.memory & (KEEL_MEMORY_DEVICE_LOCAL | KEEL_MEMORY_HOST_COHERENT);
    if (!options.memory) return;
    atomic_store(&released, 0);
    FAILS_SAYING(KEEL_UNSUPPORTED, "options->memory",
                 keel_buffer_import(the_device(), &external, &options, &x));
    CHECK_EQ(atomic_load(&released), 0);
}

TEST(external, import_counts_no_memory, HOST)
{
    keel_memory_stats_t before, after;
    TRY(keel_device_memory(the_device(), &before));
    import_host(scratch(1 << 16), 1 << 16, 0);
    TRY(keel_device_memory(the_device(), &after));
    CHECK_LE(after.used, before.used + 4096);
}

TEST(external, import_bad_arguments, HOST)
{
    atomic_store(&released, 0);
    char memory[16];
    keel_external_buffer_t good = {.kind = KEEL_EXTERNAL_HOST,
                                   .handle.host = memory,
                                   .size = 16,
                                   .release = on_release,
                                   .user = &released};
    keel_external_buffer_t null = good, kind = good;
    keel_buffer_options_t usage = {.usage = 1u << 30};
    keel_buffer_t *buffer = NULL;
    null.handle.host = NULL;
    kind.kind = (keel_external_kind_t)77;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "device", keel_buffer_import(NULL, &good, NULL, &buffer));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "external",
                 keel_buffer_import(the_device(), NULL, NULL, &buffer));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "buffer",
                 keel_buffer_import(the_device(), &good, NULL, NULL));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "host",
                 keel_buffer_import(the_device(), &null, NULL, &buffer));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "kind",
                 keel_buffer_import(the_device(), &kind, NULL, &buffer));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "usage",
                 keel_buffer_import(the_device(), &good, &usage, &buffer));
    CHECK(buffer == NULL);
    CHECK_EQ(atomic_load(&released), 0); // on failure it is not called
}

TEST(external, export_host, HOST RUNS_)
{
    keel_buffer_t *x = new_host_buffer(64), *part = new_subspan(x, 16, 16);
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_HOST};
    reach(submit(keel_op_fill(keel_whole(x), 4, 1)));
    TRY(keel_buffer_export(part, &external));
    CHECK_EQ(external.size, 16);
    reach(submit(keel_op_fill(keel_span(x, 16, 8), 5, 1)));
    const uint8_t *bytes = external.handle.host;
    CHECK_EQ(bytes[0], 5);
    CHECK_EQ(bytes[8], 4);
}

// What the device has locked itself can be imported again, however small, there and elsewhere.
TEST(external, import_exported_host, HOST RUNS_)
{
    keel_device_t *other = open_device(the_uri());
    for (uint64_t size = 16; size <= 1 << 16; size *= 16) {
        row("%u bytes", (unsigned)size);
        keel_buffer_t *x = new_host_buffer(size), *y = NULL;
        keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_HOST};
        TRY(keel_buffer_export(x, &external));
        drop(import_host(external.handle.host, size, 0));
        TRY(keel_buffer_import(other, &external, NULL, &y));
        OWN(y);
        keel_buffer_t *z = import_host((char *)external.handle.host + 4, size - 8, 0);
        reach(submit(keel_op_fill(keel_whole(x), 1, 1)));
        reach(submit(keel_op_fill(keel_whole(z), 2, 1)));
        char bytes[8];
        buffer_get_on(other, y, bytes, 8);
        CHECK_MEM(bytes, "\1\1\1\1\2\2\2\2", 8);
    }
}

TEST(external, export_device_address, HOST)
{
    keel_buffer_t *x = new_buffer(64);
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_DEVICE};
    uint64_t address;
    TRY(keel_buffer_export(x, &external));
    TRY(keel_buffer_address(x, &address));
    CHECK_EQ(external.handle.device, address);
    CHECK_EQ(external.size, 64);
}

TEST(external, import_device_address, HOST RUNS_)
{
    keel_buffer_t *x = new_buffer_filled(64, 1);
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_DEVICE};
    TRY(keel_buffer_export(x, &external));
    keel_buffer_t *y = NULL;
    TRY(keel_buffer_import(the_device(), &external, NULL, &y));
    OWN(y);
    CHECK_EQ(keel_buffer_size(y), 64);
    reach(submit(keel_op_fill(keel_span(y, 0, 8), 2, 1)));
    check_filled(x, 0, 8, 2);
    check_filled(x, 8, 56, 1);
}

// The vendor's object behind a buffer. False: there is none, and none is taken.
static bool object_export(keel_buffer_t *buffer, keel_external_buffer_t *external)
{
    keel_external_buffer_t none = {.kind = KEEL_EXTERNAL_NATIVE, .size = keel_buffer_size(buffer)};
    keel_buffer_t *refused = NULL;
    *external = none;
    keel_status_t status = keel_buffer_export(buffer, external);
    bool has = keel_status_code(status) != KEEL_UNSUPPORTED;
    if (has) TRY(status);
    keel_status_release(status);
    FAILS_SAYING(has ? KEEL_INVALID_ARGUMENT : KEEL_UNSUPPORTED, "object",
                 keel_buffer_import(the_device(), &none, NULL, &refused));
    return has;
}

// Where memory is an object of the vendor's, it goes out and comes in as that.
TEST(external, native_object, HOST RUNS_)
{
    keel_buffer_t *x = new_buffer_filled(64, 1), *part = new_subspan(x, 16, 32), *y = NULL;
    keel_external_buffer_t external;
    if (!object_export(part, &external)) return;
    CHECK_EQ(external.size, 32);
    TRY(keel_buffer_import(the_device(), &external, NULL, &y));
    OWN(y);
    reach(submit(keel_op_fill(keel_span(y, 0, 8), 2, 1)));
    check_filled(x, 0, 16, 1);
    check_filled(x, 16, 8, 2);
    check_filled(x, 24, 40, 1);
    external.size = UINT64_C(1) << 31;
    FAILS(KEEL_OUT_OF_RANGE, keel_buffer_import(the_device(), &external, NULL, &y));
}

// The object stays for as long as a buffer has it.
TEST(external, native_object_outlives, HOST RUNS_)
{
    keel_buffer_t *x = new_buffer_filled(64, 3), *y = NULL;
    keel_external_buffer_t external;
    if (!object_export(x, &external)) return;
    TRY(keel_buffer_import(the_device(), &external, NULL, &y));
    OWN(y);
    drop(x);
    reach(submit(keel_op_fill(keel_span(y, 0, 8), 2, 1)));
    check_filled(y, 8, 56, 3);
}

TEST(external, export_bad_arguments, HOST)
{
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_HOST};
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "buffer", keel_buffer_export(NULL, &external));
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "external", keel_buffer_export(new_buffer(16), NULL));
    external.kind = (keel_external_kind_t)9;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "kind", keel_buffer_export(new_buffer(16), &external));
}

TEST(external, export_without_memory, .needs = KEEL_CAP_QUEUE_ALLOCA)
{
    keel_buffer_t *x = new_reserved(new_pool(0, 0), 64);
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_DEVICE};
    FAILS(KEEL_FAILED_PRECONDITION, keel_buffer_export(x, &external));
}

static keel_buffer_t *exportable(uint64_t size)
{
    keel_buffer_options_t options = {.size = size,
                                     .usage = KEEL_USAGE_TRANSFER | KEEL_USAGE_DISPATCH |
                                              KEEL_USAGE_MAP | KEEL_USAGE_EXPORT};
    keel_buffer_t *buffer = NULL;
    TRY(keel_buffer_create(the_device(), &options, &buffer));
    OWN(buffer);
    return buffer;
}

static keel_external_buffer_t export_fd(keel_buffer_t *buffer)
{
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_FD};
    TRY(keel_buffer_export(buffer, &external));
    CHECK(external.handle.fd >= 0);
    own_descriptor(external.handle.fd);
    return external;
}

TEST(external, export_fd, FD RUNS_, .also = NEED_MAPPABLE_FD)
{
    keel_buffer_t *x = exportable(10000);
    keel_external_buffer_t external = export_fd(x);
    CHECK_EQ(external.size, 10000);
    reach(submit(keel_op_fill(keel_whole(x), 7, 1)));
    uint8_t *p = mmap(NULL, external.size, PROT_READ | PROT_WRITE, MAP_SHARED, external.handle.fd,
                      (off_t)external.offset);
    CHECK(p != MAP_FAILED);
    bool seen = p[0] == 7 && p[9999] == 7;
    p[1] = 9;
    munmap(p, external.size);
    CHECK(seen);
    check_filled(x, 1, 1, 9);
}

// A part of a buffer is exported as that part.
TEST(external, export_fd_of_a_subspan, FD)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    keel_buffer_t *x = exportable(3 * page), *part = new_subspan(x, page, page);
    buffer_put(part, 0, "in the middle", 13);
    keel_external_buffer_t external = export_fd(part);
    CHECK_EQ(external.size, page);
    keel_buffer_t *y = NULL;
    TRY(keel_buffer_import(the_device(), &external, NULL, &y));
    OWN(y);
    check_bytes(y, 0, "in the middle", 13);
}

TEST(external, export_fd_is_new_each_time, FD)
{
    keel_buffer_t *x = exportable(4096);
    int a = export_fd(x).handle.fd, b = export_fd(x).handle.fd;
    CHECK(a != b);
    CHECK(fcntl(a, F_GETFD) & FD_CLOEXEC);
}

TEST(external, export_fd_outlives_the_buffer, FD)
{
    keel_buffer_t *x = exportable(4096);
    buffer_put(x, 0, "words", 5);
    keel_external_buffer_t external = export_fd(x);
    drop(x);
    keel_buffer_t *y = NULL;
    TRY(keel_buffer_import(the_device(), &external, NULL, &y));
    OWN(y);
    check_bytes(y, 0, "words", 5);
}

TEST(external, export_fd_needs_the_usage, FD)
{
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_FD};
    FAILS_SAYING(KEEL_PERMISSION_DENIED, "EXPORT", keel_buffer_export(new_buffer(64), &external));
}

TEST(external, export_fd_aligned, FD)
{
    for (uint64_t alignment = 4096; alignment <= 32 << 20; alignment *= 8) {
        row("%u", (unsigned)alignment);
        keel_buffer_options_t options = {
            .size = 100, .usage = KEEL_USAGE_EXPORT, .alignment = alignment};
        keel_buffer_t *x[3];
        for (int i = 0; i < 3; i++) { // one alone may be aligned by chance
            uint64_t address;
            TRY(keel_buffer_create(the_device(), &options, &x[i]));
            OWN(x[i]);
            TRY(keel_buffer_address(x[i], &address));
            CHECK_EQ(address % alignment, 0);
            export_fd(x[i]);
        }
    }
}

// Memory is exported by those who made it.
TEST(external, import_fd_to_export, FD)
{
    keel_external_buffer_t external = export_fd(exportable(4096));
    keel_buffer_options_t options = {.usage = KEEL_USAGE_EXPORT};
    keel_buffer_t *x = NULL;
    FAILS_SAYING(KEEL_UNSUPPORTED, "KEEL_USAGE_EXPORT",
                 keel_buffer_import(the_device(), &external, &options, &x));
}

TEST(external, import_fd, FD RUNS_)
{
    keel_external_buffer_t external = export_fd(exportable(8192));
    keel_buffer_t *a = NULL, *b = NULL;
    keel_device_t *other = open_device(the_uri());
    TRY(keel_buffer_import(the_device(), &external, NULL, &a));
    OWN(a);
    TRY(keel_buffer_import(other, &external, NULL, &b));
    OWN(b);
    CHECK_EQ(keel_buffer_size(b), 8192);
    CHECK(fcntl(external.handle.fd, F_GETFD) >= 0); // the caller's stays the caller's
    reach(submit(keel_op_fill(keel_whole(a), 3, 1)));
    uint8_t *bytes = scratch(8192);
    buffer_get_on(other, b, bytes, 8192);
    CHECK(bytes[0] == 3 && bytes[8191] == 3);
}

// The number that a descriptor gets in a process without standard input.
TEST(external, import_fd_zero, FD)
{
    keel_buffer_t *x = exportable(4096), *y = NULL;
    buffer_put(x, 0, "words", 5);
    keel_external_buffer_t external = export_fd(x);
    int input = fcntl(0, F_DUPFD_CLOEXEC, 3);
    CHECK_EQ(dup2(external.handle.fd, 0), 0);
    external.handle.fd = 0;
    keel_status_t status = keel_buffer_import(the_device(), &external, NULL, &y);
    close(0);
    if (input >= 0) {
        dup2(input, 0);
        close(input);
    }
    TRY(status);
    OWN(y);
    check_bytes(y, 0, "words", 5);
}

TEST(external, import_fd_with_offset, FD)
{
    long page = sysconf(_SC_PAGESIZE);
    keel_buffer_t *x = exportable((uint64_t)page * 3);
    keel_external_buffer_t external = export_fd(x);
    uint64_t base = external.offset;
    buffer_put(x, (uint64_t)page, "second page", 11);
    external.offset = base + (uint64_t)page;
    external.size = 100;
    keel_buffer_t *part = NULL;
    TRY(keel_buffer_import(the_device(), &external, NULL, &part));
    OWN(part);
    CHECK_EQ(keel_buffer_size(part), 100);
    check_bytes(part, 0, "second page", 11);
    keel_buffer_t *bad = NULL;
    external.offset = base + 1;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "offset",
                 keel_buffer_import(the_device(), &external, NULL, &bad));
}

TEST(external, import_fd_beyond_its_end, FD)
{
    keel_external_buffer_t external = export_fd(exportable(4096));
    keel_buffer_t *buffer = NULL;
    external.size = UINT64_C(1) << 30;
    FAILS(KEEL_OUT_OF_RANGE, keel_buffer_import(the_device(), &external, NULL, &buffer));
    external.size = 4096;
    external.offset += UINT64_C(1) << 40;
    FAILS(KEEL_OUT_OF_RANGE, keel_buffer_import(the_device(), &external, NULL, &buffer));
}

TEST(external, import_bad_fd, FD)
{
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_FD, .handle.fd = -1, .size = 4096};
    keel_buffer_t *buffer = NULL;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, "fd",
                 keel_buffer_import(the_device(), &external, NULL, &buffer));
    external.handle.fd = 987654;
    FAILS(KEEL_INVALID_ARGUMENT, keel_buffer_import(the_device(), &external, NULL, &buffer));
}

// Another process works on the same memory.
TEST(external, shared_between_processes, FD RUNS_, .also = NEED_MAPPABLE_FD)
{
    keel_buffer_t *x = exportable(4096);
    keel_external_buffer_t external = export_fd(x);
    reach(submit(keel_op_fill(keel_whole(x), 1, 1)));
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) { // without Keel: it needs nothing but the descriptor
        uint8_t *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, external.handle.fd,
                          (off_t)external.offset);
        if (p == MAP_FAILED || p[4095] != 1) _exit(1);
        memset(p, 2, 2048);
        _exit(0);
    }
    int status = 1;
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_EQ(status, 0);
    keel_buffer_t *y = new_buffer(4096);
    reach(submit(keel_op_copy(keel_whole(x), keel_whole(y))));
    check_filled(y, 0, 2048, 2);
    check_filled(y, 2048, 2048, 1);
}
