// SPDX-License-Identifier: Apache-2.0
// What is expected of a GPU beyond results: that queues really run beside each other, that urgent
// work overtakes, that memory really goes back, and what its loss looks like.
#include "suite/suite.h"

#include <sys/mman.h>

#define GPU    .needs = KEEL_CAP_EXECUTES, .driver = "cuda hip amdgpu"
#define LOST   .driver = "cuda hip amdgpu", .loses = true, .also = NEED_LOSS
#define LOSES  .needs = KEEL_CAP_EXECUTES, LOST
#define SERIAL .needs = KEEL_CAP_EXECUTES, .driver = "cuda hip", .loses = true, .also = NEED_LOSS

enum { LONG_US = 5000000 };  // what waits that long has waited in vain
enum { GATE_US = 20000000 }; // beside this, a busy machine submits some thousand pieces of work

static keel_queue_t *new_queue_of(keel_queue_family_t family, int32_t priority, const char *name)
{
    keel_queue_options_t options = {.family = family, .priority = priority, .name = name};
    keel_queue_t *queue = NULL;
    TRY(keel_queue_create(the_device(), &options, &queue));
    OWN(queue);
    return queue;
}

static keel_point_t run_on(keel_queue_t *queue, keel_op_t op)
{
    keel_point_t done;
    TRY(keel_queue_run(queue, KEEL_NO_WAITS, op, &done));
    return done;
}

static keel_op_t op_await_for(uint32_t us, keel_buffer_t *words, uint32_t mine, uint32_t theirs)
{
    uint32_t k[] = {mine, theirs, us};
    return op_kernel("await", 1, k, sizeof k, KEEL_BIND(words));
}

static keel_op_t op_await(keel_buffer_t *words, uint32_t mine, uint32_t theirs)
{
    return op_await_for(LONG_US, words, mine, theirs);
}

// Two kernels, each of which waits for the other in memory: one after the other they would wait in
// vain.
TEST(gpu, queues_overlap, GPU, .also = NEED_OVERLAP)
{
    keel_buffer_t *words = new_buffer(16);
    keel_queue_t *first = new_queue(0), *second = new_queue(0);
    keel_point_t done[] = {run_on(first, op_await(words, 0, 2)),
                           run_on(second, op_await(words, 2, 0))};
    TRY(keel_wait(keel_points(done, 2), KEEL_ALL, patience()));
    CHECK_EQ(buffer_u32(words, 1), 1);
    CHECK_EQ(buffer_u32(words, 3), 1);
}

// A copy on a transfer queue reaches a kernel that is running. On AMD's GPUs it does so in memory
// of the host: of their own only what begins later need see it.
TEST(gpu, copies_overlap_kernels, GPU, .also = NEED_OVERLAP)
{
    bool amd = strncmp(keel_device_info(the_device())->target, "gfx", 3) == 0;
    keel_buffer_t *words = amd ? new_host_buffer(16) : new_buffer(16);
    keel_buffer_t *one = amd ? new_buffer(4) : new_host_buffer(4);
    keel_queue_t *compute = new_queue(0);
    keel_queue_t *transfer = new_queue_of(KEEL_QUEUE_TRANSFER, 0, "transfer");
    buffer_put(one, 0, "\1\0\0\0", 4);
    keel_point_t done[] = {run_on(compute, op_await(words, 0, 2)),
                           run_on(transfer, keel_op_copy(keel_whole(one), keel_span(words, 8, 4)))};
    TRY(keel_wait(keel_points(done, 2), KEEL_ALL, patience()));
    CHECK_EQ(buffer_u32(words, 1), 1);
}

// No barrier lies between them, so neither waits for the other to end.
TEST(gpu, recorded_dispatches_overlap, GPU, .also = NEED_PARALLEL_RECORDINGS)
{
    keel_buffer_t *words = new_buffer(16);
    keel_recording_t *recording = RECORD(0, op_await(words, 0, 2), op_await(words, 2, 0));
    reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
    CHECK_EQ(buffer_u32(words, 1), 1);
    CHECK_EQ(buffer_u32(words, 3), 1);
}

// What follows the wait needs what came before the set, not what came between.
TEST(gpu, split_barriers_let_work_overlap, .needs = KEEL_CAP_EXECUTES | KEEL_CAP_EVENTS,
     .also = NEED_PARALLEL_RECORDINGS, .driver = "cuda hip amdgpu")
{
    keel_buffer_t *words = new_buffer(16);
    uint32_t one[] = {0, 1};
    keel_op_t set = {.kind = KEEL_OP_EVENT_SET, .as.event.event = 0};
    keel_op_t wait = {.kind = KEEL_OP_EVENT_WAIT, .as.event.event = 0};
    keel_recording_t *recording =
        RECORD(0, op_kernel("poke", 1, one, sizeof one, KEEL_BIND(new_buffer(4))), set,
               op_await(words, 0, 2), wait, op_await(words, 2, 0));
    reach(submit(keel_op_execute(recording, KEEL_NO_BINDINGS)));
    CHECK_EQ(buffer_u32(words, 1), 1);
    CHECK_EQ(buffer_u32(words, 3), 1);
}

// A piece of work of every kind; those that count do so in words[0]. A grid of one group stands in
// words[4] to [6], another in words[12] to [14], and a 0 in words[8].
typedef struct piece_t {
    const char *kind;
    bool counts, behind; // in words[0]; a point of another queue
    keel_op_t op;
} piece_t;

static keel_op_t raw_tally(keel_ref_t word, keel_ref_t grid)
{
    keel_patch_t *patch = scratch(sizeof *patch);
    *patch = (keel_patch_t){0, word};
    keel_op_t op = op_kernel("raw_tally", 1, scratch(8), 8, KEEL_NO_BINDINGS);
    op.as.dispatch.raw = true;
    op.as.dispatch.patches = patch;
    op.as.dispatch.patch_count = 1;
    return keel_op_indirect(op, KEEL_COUNTS_STATIC, grid);
}

static keel_op_t recorded(keel_op_t op)
{
    keel_recording_t *recording = RECORD(0, op);
    TRY(keel_recording_prepare(recording, the_queue()));
    return keel_op_execute(recording, KEEL_NO_BINDINGS);
}

// The same recording with one grid and with another, for which its graph is made anew.
static keel_op_t rebound(keel_recording_t *recording, keel_ref_t grid)
{
    keel_ref_t *table = scratch(sizeof *table);
    *table = grid;
    return keel_op_execute(recording, keel_refs(table, 1));
}

static keel_op_t recorded_loop(keel_ref_t value, keel_op_t op)
{
    keel_op_t loop = keel_op_while(value);
    loop.as.branch.max_iterations = 5;
    return keel_op_execute(RECORD(0, loop, op, keel_op_end()), KEEL_NO_BINDINGS);
}

// A stream takes so much work and then blocks the next call. Keel's caller is not held up: it is
// done before the first of it is. Every second one is `turn`. A fill opens the gate: a GPU that has
// one engine for copies from the host does them in order.
static void fill_stream(const piece_t *piece, keel_op_t turn, keel_buffer_t *counter, size_t count)
{
    keel_buffer_t *words = new_buffer(16);
    keel_queue_t *gate = new_queue(0), *queue = piece->behind ? new_queue(0) : gate;
    keel_queue_t *opener = new_queue_of(KEEL_QUEUE_TRANSFER, 0, "opener");
    uint32_t before = buffer_u32(counter, 0);
    keel_point_t first = run_on(gate, op_await_for(GATE_US, words, 0, 2));
    keel_point_t *done = scratch(count * sizeof *done);
    keel_points_t waits = piece->behind ? KEEL_AFTER(first) : KEEL_NO_WAITS;
    for (size_t i = 0; i < count; i++)
        TRY(keel_queue_run(queue, waits, i % 2 ? turn : piece->op, &done[i]));
    bool held = ended(first);
    if (!starved()) CHECK(!held); // without memory for an event a thread has to wait
    reach(run_on(opener, keel_op_fill(keel_span(words, 8, 4), 1, 4)));
    reach(first);
    TRY(keel_queue_wait_idle(queue, patience()));
    TRY(keel_wait(keel_points(done, count), KEEL_ALL,
                  patience())); // one that was refused says so here
    if (!starved()) CHECK_EQ(buffer_u32(words, 1), 1);
    CHECK_EQ(buffer_u32(counter, 0) - before, piece->counts ? count : 0);
}

TEST(gpu, full_streams_hold_nobody, .driver = "cuda hip amdgpu", .also = NEED_OVERLAP,
     .heavy = true, .seconds = 60,
     .needs = KEEL_CAP_EXECUTES | KEEL_CAP_DYNAMIC_COUNTS | KEEL_CAP_RAW_ARGUMENTS |
              KEEL_CAP_BRANCHES | KEEL_CAP_TIMESTAMPS)
{
    static const uint32_t contents[16] = {[4] = 1, [5] = 1, [6] = 1, [12] = 1, [13] = 1, [14] = 1};
    keel_buffer_t *words = new_buffer_of(contents, sizeof contents), *x = new_buffer(64);
    keel_ref_t counter = keel_span(words, 0, 4), grid = keel_span(words, 16, 12);
    keel_ref_t low = keel_span(x, 0, 8), high = keel_span(x, 8, 8);
    keel_buffer_t *h = new_host_buffer(64);
    keel_ref_t h_low = keel_span(h, 0, 8), h_high = keel_span(h, 8, 8);
    keel_recording_t *remade = RECORD(1, raw_tally(counter, keel_slot(0, 0, 12)));
    keel_op_t tally = op_kernel("tally", 1, NULL, 0, keel_refs(&counter, 1));
    keel_op_t indirect = keel_op_indirect(tally, KEEL_COUNTS_STATIC, grid);
    const piece_t pieces[] = {
        {"dispatch", true, false, tally},
        {"dispatch behind another queue", true, true, tally},
        {"fill", false, false, keel_op_fill(low, 1, 4)},
        {"odd fill", false, false, keel_op_fill(keel_span(x, 1, 6), 0x1234, 2)},
        {"copy", false, false, keel_op_copy(low, high)},
        {"copy to the host", false, false, keel_op_copy(low, h_low)},
        {"copy within the host's memory", false, false, keel_op_copy(h_low, h_high)},
        {"fill of the host's memory", false, false, keel_op_fill(h_low, 1, 4)},
        {"update", false, false, keel_op_update(keel_span(x, 0, 4), contents)},
        {"update of the host's memory", false, false, keel_op_update(keel_span(h, 0, 4), contents)},
        {"timestamp", false, false, keel_op_timestamp(keel_span(x, 0, 8))},
        {"indirect dispatch", true, false, indirect},
        {"indirect dispatch of a kernel made elsewhere", true, false, raw_tally(counter, grid)},
        {"recorded dispatch", true, false, recorded(tally)},
        {"recorded indirect dispatch", true, false, recorded(indirect)},
        {"recorded indirect dispatch of a kernel made elsewhere", true, false,
         recorded(raw_tally(counter, grid))},
        {"recorded loop", false, false, recorded_loop(keel_span(words, 32, 4), tally)},
    };
    for (size_t i = 0; i < COUNT(pieces); i++) {
        row("%s", pieces[i].kind);
        fill_stream(&pieces[i], pieces[i].op, words, few(1200));
    }
    const piece_t anew = {"recorded indirect dispatch of a kernel made elsewhere, made anew", true,
                          false, rebound(remade, grid)};
    row("%s", anew.kind);
    fill_stream(&anew, rebound(remade, keel_span(words, 48, 12)), words, few(1200));
}

// A grid that takes the device several times over has begun; a small urgent one that comes later is
// not made to wait until the last of its groups has found a place.
TEST(gpu, urgent_work_overtakes, GPU, .also = NEED_OVERLAP, .alone = true, .heavy = true,
     .seconds = 60)
{
    enum { AT_ONCE = 32, TIMES = 40 }; // groups that fit a multiprocessor
    uint32_t us = 300, groups = the_caps()->workers * AT_ONCE * TIMES;
    keel_buffer_t *slow = new_buffer(4), *fast = new_buffer(4), *seen = new_host_buffer(4);
    keel_queue_t *patient = new_queue(the_caps()->min_priority);
    keel_queue_t *urgent = new_queue(the_caps()->max_priority);
    keel_queue_t *transfer = new_queue_of(KEEL_QUEUE_TRANSFER, 0, "transfer");
    keel_op_t look = keel_op_copy(keel_whole(slow), keel_whole(seen));
    keel_op_t overtake[] = {op_kernel("tally", 1, NULL, 0, KEEL_BIND(fast)), keel_op_barrier(),
                            look};
    keel_point_t last = run_on(patient, op_kernel("slow", groups, &us, 4, KEEL_BIND(slow)));
    keel_point_t first;
    do {
        reach(run_on(transfer, look));
    } while (!buffer_u32(seen, 0) && !ended(last));
    TRY(keel_queue_submit(urgent, KEEL_NO_WAITS, overtake, COUNT(overtake), KEEL_NO_SIGNALS,
                          &first));
    reach(first);
    CHECK_LE(buffer_u32(seen, 0), groups / 2); // as the device saw it: this thread may be late
    CHECK_EQ(buffer_u32(fast, 0), 1);
    TRY(keel_wait(KEEL_POINTS(last), KEEL_ALL,
                  4 * patience())); // seconds of work where groups take turns
    CHECK_EQ(buffer_u32(slow, 0), groups);
}

enum { MANAGED = KEEL_MEMORY_DEVICE_LOCAL | KEEL_MEMORY_HOST_VISIBLE };

// Memory that host and device touch without any copy.
TEST(gpu, managed_memory, GPU, .also = NEED_MANAGED)
{
    keel_buffer_options_t options = {.size = 1 << 20, .memory = MANAGED};
    keel_buffer_t *x = NULL;
    TRY(keel_buffer_create(the_device(), &options, &x));
    OWN(x);
    uint32_t *words, k[] = {3, 1}, wrong = 0;
    TRY(keel_buffer_map(x, 0, KEEL_WHOLE, KEEL_ACCESS_ALL, (void **)&words));
    for (uint32_t w = 0; w < 1 << 18; w++) words[w] = w;
    keel_buffer_unmap(x);
    reach(submit(op_kernel("scale", (1 << 18) / 16, k, sizeof k, KEEL_BIND(x))));
    TRY(keel_buffer_map(x, 0, KEEL_WHOLE, KEEL_ACCESS_ALL, (void **)&words));
    for (uint32_t w = 0; w < 1 << 18; w++) wrong += words[w] != w * 3 + 1;
    keel_buffer_unmap(x);
    CHECK_EQ(wrong, 0);
}

// Takes a tensor over on another device of the same GPU, which writes there, and the host too.
static void managed_in(keel_device_t *other, DLManagedTensorVersioned *tensor)
{
    uint32_t *words = tensor->dl_tensor.data;
    keel_buffer_t *y = NULL;
    keel_buffer_info_t info;
    keel_point_t done;
    void *mapped = NULL;
    keel_status_t status = keel_buffer_from_dlpack(other, tensor, &y);
    if (status) tensor->deleter(tensor);
    TRY(status);
    OWN(y);
    keel_buffer_info(y, &info);
    CHECK_EQ(info.memory & MANAGED, MANAGED);
    TRY(keel_buffer_map(y, 0, KEEL_WHOLE, KEEL_ACCESS_ALL, &mapped));
    CHECK(mapped == words);
    keel_buffer_unmap(y);
    words[0] = 1;
    TRY(keel_queue_fill(keel_device_queue(other, 0), KEEL_NO_WAITS, keel_span(y, 4, 4), 2, 4,
                        &done));
    reach(done);
    CHECK_EQ(words[0], 1);
    CHECK_EQ(words[1], 2);
}

// Tensors of managed memory say so, go back in, and come from others who have them.
TEST(gpu, managed_tensors, .needs = KEEL_CAP_EXECUTES, .also = NEED_MANAGED, .driver = "cuda")
{
    enum { CUDA_MANAGED = 13 };
    const int64_t shape[] = {4};
    keel_tensor_t how = {.type = {1, 32, 1}, .rank = 1, .shape = shape};
    keel_buffer_options_t options = {.size = 16, .memory = MANAGED};
    keel_device_t *other = open_device(the_uri());
    DLManagedTensorVersioned *tensor = NULL;
    keel_buffer_t *x = NULL;
    TRY(keel_buffer_create(the_device(), &options, &x));
    OWN(x);
    TRY(keel_buffer_to_dlpack(x, &how, &tensor));
    CHECK_EQ(tensor->dl_tensor.device.device_type, CUDA_MANAGED);
    CHECK_EQ(tensor->dl_tensor.device.device_id, 0);
    managed_in(other, tensor);
}

// An address of managed memory is a device's and the host's.
TEST(gpu, managed_address, GPU, .also = NEED_MANAGED)
{
    keel_buffer_options_t options = {.size = 16, .memory = MANAGED};
    keel_external_buffer_t external = {.kind = KEEL_EXTERNAL_DEVICE};
    keel_buffer_t *x = NULL, *y = NULL;
    TRY(keel_buffer_create(the_device(), &options, &x));
    OWN(x);
    TRY(keel_buffer_export(x, &external));
    TRY(keel_buffer_import(the_device(), &external, &options, &y));
    OWN(y);
    reach(submit(keel_op_fill(keel_whole(x), 7, 4)));
    uint32_t word = 0;
    TRY(keel_buffer_read(y, 12, &word, 4));
    CHECK_EQ(word, 7);
    options.memory = KEEL_MEMORY_HOST_VISIBLE | KEEL_MEMORY_HOST_CACHED;
    FAILS_SAYING(KEEL_UNSUPPORTED, "options->memory",
                 keel_buffer_import(the_device(), &external, &options, &y));
}

// Memory that is not there cannot be page-locked.
TEST(gpu, import_of_nothing, GPU)
{
    keel_device_t *device = the_device(); // and whatever that maps
    char *memory = mmap(NULL, 1 << 16, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    CHECK_EQ(munmap(memory, 1 << 16), 0);
    char where[64];
    snprintf(where, sizeof where, "external->handle.host is %p: the 100 bytes", (void *)memory);
    keel_external_buffer_t external = {
        .kind = KEEL_EXTERNAL_HOST, .handle.host = memory, .size = 100};
    keel_buffer_t *buffer = NULL;
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, where,
                 keel_buffer_import(device, &external, NULL, &buffer));
    keel_buffer_options_t options = {.access = KEEL_ACCESS_READ};
    FAILS_SAYING(KEEL_INVALID_ARGUMENT, where,
                 keel_buffer_import(device, &external, &options, &buffer));
}

static uint64_t memory_left(void)
{
    keel_memory_stats_t stats;
    TRY(keel_device_memory(the_device(), &stats));
    return stats.budget;
}

// What a pool is done with is the whole machine's again, not only in its own books.
TEST(gpu, trim_gives_memory_back, GPU, .alone = true)
{
    uint64_t size = the_caps()->max_buffer_size / 16;
    keel_pool_t *pool = new_pool(2 * size, 0);
    keel_buffer_t *x = new_reserved(pool, size);
    uint64_t before = memory_left();
    reach(submit(keel_op_alloca(x)));
    reach(submit(keel_op_dealloca(x)));
    CHECK_LE(memory_left(), before - size / 2);
    TRY(keel_pool_trim(pool, 0));
    uint64_t start = keel_now_ns(), after; // a thread may give it back
    do {
        after = memory_left();
    } while (after < before - size / 2 && keel_now_ns() - start < patience() && !faulted());
    if (!faulted()) CHECK_GE(after, before - size / 2); // a lost device tells nothing
}

// What the vendor calls a kernel that has gone astray, in CUDA and HIP by a number, and what else
// it tells.
static const char *astray(void)
{
    return strncmp(the_uri(), "amdgpu", 6) ? "(700)" : "memory fault";
}

static const char *astray_more(void)
{
    return strncmp(the_uri(), "amdgpu", 6) ? " returned " : " at address 0x";
}

#define FAILS_LOST(cause, call) FAILS_SAYING(KEEL_DEVICE_LOST, cause, call)

static keel_op_t op_wild(keel_device_t *device, keel_buffer_t *word)
{
    static const uint64_t nowhere = 64;
    keel_op_t op = op_kernel("wild", 1, &nowhere, sizeof nowhere, KEEL_BIND(word));
    op.as.dispatch.entry = kernel_on(device, "wild");
    return op;
}

TEST(gpu, loss_names_its_cause, LOSES)
{
    keel_buffer_t *word = new_buffer(4), *other = NULL;
    keel_queue_t *a = new_queue_of(KEEL_QUEUE_COMPUTE, 0, "first"), *queue = NULL;
    keel_queue_t *b = new_queue_of(KEEL_QUEUE_COMPUTE, 0, "second");
    keel_semaphore_t *gate = new_semaphore(0);
    keel_op_t fill = keel_op_fill(keel_whole(word), 0, 1);
    keel_point_t late;
    TRY(keel_queue_run(b, KEEL_AFTER(keel_point(gate, 1)), fill, &late));
    keel_point_t done = run_on(a, op_wild(the_device(), word));
    keel_point_t behind = submit_after(KEEL_AFTER(done), fill);
    // The error, the call that told, and where each queue was.
    FAILS_LOST(astray(), keel_wait(KEEL_POINTS(done), KEEL_ALL, patience()));
    FAILS_LOST(astray_more(), keel_wait(KEEL_POINTS(done), KEEL_ALL, patience()));
    FAILS_LOST("queue 'first', submission 1", keel_wait(KEEL_POINTS(done), KEEL_ALL, patience()));
    FAILS_LOST("queue 'first', submission 1", keel_wait(KEEL_POINTS(behind), KEEL_ALL, patience()));
    FAILS_LOST("queue 'first', submission 1", keel_queue_create(the_device(), NULL, &queue));
    keel_buffer_options_t options = {.size = 64};
    FAILS_LOST("queue 'first', submission 1", keel_buffer_create(the_device(), &options, &other));
    FAILS_LOST("queue 'first', submission 1", keel_wait(KEEL_POINTS(late), KEEL_ALL, patience()));
    FAILS_LOST("waiting: queue 'second', submission 1",
               keel_wait(KEEL_POINTS(late), KEEL_ALL, patience()));
    TRY(keel_device_wait_idle(the_device(), patience()));
}

static void wait_for_ever(void *user)
{
    FAILS_LOST(astray(), keel_wait(keel_points(user, 1), KEEL_ALL, KEEL_FOREVER));
}

// Points that are never signalled: each waiter, here or elsewhere, learns why.
TEST(gpu, loss_ends_every_wait, .needs = KEEL_CAP_EXECUTES | KEEL_CAP_HOST_CALLS, LOST)
{
    kernel("wild"); // where the device does not take it, the test ends here
    enum { HOST, TIMELINE, WORK, CALL, FOREIGN, BEHIND, POINTS };
    keel_device_t *cpu = open_device("cpu://?threads=1");
    keel_semaphore_t *never = new_semaphore(0), *out = new_semaphore(0), *there = NULL;
    TRY(keel_semaphore_create(cpu, NULL, &there));
    OWN(there);
    keel_op_t fill = keel_op_fill(keel_whole(new_buffer(4)), 0, 1);
    keel_points_t waits = KEEL_AFTER(keel_point(never, 1)),
                  foreign = KEEL_AFTER(keel_point(there, 1));
    keel_point_t *points = scratch(POINTS * sizeof *points), late;
    points[HOST] = keel_point(never, 1);
    points[TIMELINE] = keel_point(out, 1);
    TRY(keel_queue_submit(the_queue(), waits, &fill, 1, KEEL_SIGNAL(points[TIMELINE]),
                          &points[WORK]));
    points[CALL] = submit_after(waits, op_hold(new_hold()));
    points[FOREIGN] = submit_after(foreign, fill);
    TRY(keel_queue_run(keel_device_queue(cpu, 0), waits, keel_op_barrier(), &points[BEHIND]));
    thread_t *threads[POINTS];
    for (int i = 0; i < POINTS; i++) threads[i] = thread_start(wait_for_ever, &points[i]);
    for (int i = 0; i < POINTS; i++) thread_asleep(threads[i]);
    reach_failure(run_on(new_queue(0), op_wild(the_device(), new_buffer(4))), KEEL_DEVICE_LOST);
    for (int i = 0; i < POINTS; i++) thread_join(threads[i]);
    // What comes later is told at once.
    keel_semaphore_t *more = NULL;
    FAILS_LOST(astray(), keel_semaphore_create(the_device(), NULL, &more));
    FAILS_LOST(astray(), keel_semaphore_signal(never, 1));
    TRY(keel_queue_run(the_queue(), foreign, fill, &late));
    FAILS_LOST(astray(), keel_wait(KEEL_POINTS(late), KEEL_ALL, KEEL_FOREVER));
    TRY(keel_semaphore_signal(there, 1)); // which is no concern of the others
}

// What waits for memory of a lost device waits for nothing.
TEST(gpu, loss_ends_waits_for_memory, .needs = KEEL_CAP_EXECUTES | KEEL_CAP_QUEUE_ALLOCA, LOST)
{
    keel_pool_t *pool = new_pool(1024, 1024);
    keel_semaphore_t *gate = new_semaphore(0);
    keel_buffer_t *word = new_buffer(4), *first = new_reserved(pool, 1024);
    keel_buffer_t *second = new_reserved(pool, 1024);
    reach(submit(keel_op_alloca(first)));
    keel_point_t late = submit_after(KEEL_AFTER(keel_point(gate, 1)), keel_op_dealloca(first));
    keel_point_t waiting = submit(keel_op_alloca(second));
    reach_failure(run_on(new_queue(0), op_wild(the_device(), word)), KEEL_DEVICE_LOST);
    FAILS_LOST(astray(), keel_wait(KEEL_POINTS(waiting), KEEL_ALL, patience()));
    FAILS_LOST(astray(), keel_wait(KEEL_POINTS(late), KEEL_ALL, patience()));
}

TEST(gpu, serial_names_the_operation, SERIAL)
{
    keel_device_t *device = open_device(with_option("serial=1"));
    keel_buffer_t *word = new_buffer_on(device, 4);
    keel_op_t fill = keel_op_fill(keel_whole(word), 0, 1);
    keel_op_t ops[] = {fill, keel_op_barrier(), op_wild(device, word), keel_op_barrier(), fill};
    keel_point_t done;
    TRY(keel_queue_submit(keel_device_queue(device, 0), KEEL_NO_WAITS, ops, COUNT(ops),
                          KEEL_NO_SIGNALS, &done));
    FAILS_LOST("command 2 (dispatch 'wild')", keel_wait(KEEL_POINTS(done), KEEL_ALL, patience()));
}

// Executes a recording of these with something innocent behind it, and expects that path.
static void serial_names(keel_device_t *device, const keel_op_t *ops, size_t count,
                         const char *path)
{
    keel_queue_t *queue = keel_device_queue(device, 0);
    keel_recording_options_t options = {.name = "step"};
    keel_recording_t *recording = NULL;
    TRY(keel_recording_create(device, &options, &recording));
    OWN(recording);
    TRY(keel_recording_add(recording, ops, count));
    TRY(keel_recording_end(recording));
    TRY(keel_recording_prepare(recording, queue));
    keel_op_t fill = keel_op_fill(keel_whole(new_buffer_on(device, 4)), 0, 1);
    keel_op_t all[] = {keel_op_execute(recording, KEEL_NO_BINDINGS), keel_op_barrier(), fill};
    keel_point_t done;
    TRY(keel_queue_submit(queue, KEEL_NO_WAITS, all, COUNT(all), KEEL_NO_SIGNALS, &done));
    FAILS_LOST(path, keel_wait(KEEL_POINTS(done), KEEL_ALL, patience()));
}

TEST(gpu, serial_names_the_command_in_a_block, SERIAL)
{
    keel_device_t *device = open_device(with_option("serial=1"));
    keel_buffer_t *words = new_host_buffer_on(device, 64);
    static const uint32_t values[16] = {1, 7};
    TRY(keel_buffer_write(words, 0, values, sizeof values));
    keel_op_t fill = keel_op_fill(keel_span(words, 32, 4), 0, 1);
    keel_op_t ops[] = {
        keel_op_if(keel_span(words, 0, 4)),
        fill,
        keel_op_switch(keel_span(words, 4, 4)),
        keel_op_case(6),
        fill,
        keel_op_case(7),
        op_wild(device, words),
        keel_op_end(),
        keel_op_end(),
        fill,
    };
    serial_names(device, ops, COUNT(ops), "(execute 'step') > command 6 (dispatch 'wild')");
}

// A dispatch over counts in memory that the kernel cannot read makes a recording a graph.
TEST(gpu, serial_names_the_command_beside_counts, .driver = "cuda hip", .loses = true,
     .also = NEED_LOSS,
     .needs = KEEL_CAP_EXECUTES | KEEL_CAP_DYNAMIC_COUNTS | KEEL_CAP_RAW_ARGUMENTS)
{
    keel_device_t *device = open_device(with_option("serial=1"));
    keel_buffer_t *words = new_host_buffer_on(device, 64);
    static const uint32_t values[16] = {1, 1, 1};
    TRY(keel_buffer_write(words, 0, values, sizeof values));
    uint64_t block = 0;
    keel_patch_t patch = {0, keel_span(words, 32, 4)};
    keel_op_t tally = keel_op_dispatch(kernel_on(device, "raw_tally"), keel_groups(1, 1, 1), &block,
                                       sizeof block, KEEL_NO_BINDINGS);
    tally.as.dispatch.raw = true;
    tally.as.dispatch.patches = &patch;
    tally.as.dispatch.patch_count = 1;
    keel_op_t ops[] = {
        keel_op_indirect(tally, KEEL_COUNTS_STATIC, keel_span(words, 0, 12)),
        keel_op_barrier(),
        op_wild(device, words),
    };
    serial_names(device, ops, COUNT(ops), "(execute 'step') > command 2 (dispatch 'wild')");
}

// There is no room for all of these names; what is said is said to its end.
TEST(gpu, loss_tells_of_many_queues, .needs = KEEL_CAP_EXECUTES, .driver = "cuda hip amdgpu",
     .loses = true, .also = NEED_LOSS | NEED_OVERLAP)
{
    enum { QUEUES = 8, NAME = 150 };
    keel_queue_t *queues[QUEUES];
    keel_point_t done[QUEUES];
    uint32_t us = 1000000; // longer than it takes to tell
    keel_op_t slow = op_kernel("slow", 1, &us, sizeof us, KEEL_BIND(new_buffer(4)));
    keel_op_t wild = op_wild(the_device(), new_buffer(4));
    char name[NAME + 1] = "", text[4096];
    memset(name, 'q', NAME);
    for (int i = 0; i < QUEUES; i++)
        queues[i] = new_queue_of(KEEL_QUEUE_COMPUTE, 0, i == QUEUES - 1 ? NULL : name);
    for (int i = 0; i < QUEUES; i++) done[i] = run_on(queues[i], i == QUEUES - 1 ? wild : slow);
    keel_status_t status = keel_wait(keel_points(done, QUEUES), KEEL_ALL, patience());
    keel_status_format(status, text, sizeof text);
    CHECK(status);
    keel_status_release(status);
    if (starved()) return;
    char unnamed[64]; // its number; the device began with one for each node
    snprintf(unnamed, sizeof unnamed, "queue '%u', submission 1", QUEUES - 1 + the_caps()->nodes);
    CHECK(strstr(text, unnamed));
    CHECK(strstr(text, "qqqq', submission 1"));
    bool one = strstr(text, " 1 more queue\n") || strstr(text, " 1 more queue;");
    CHECK(one || strstr(text, " more queues"));
}
