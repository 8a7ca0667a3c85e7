// SPDX-License-Identifier: Apache-2.0
// kernel_test LIBRARY: MSL is compiled and runs, and what encoders refuse.
#include "rig.h"

#include <string.h>

static const char source[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "// kernel void not_this(\n"
    "kernel void scale(device const float *in [[buffer(0)]], device float *out [[buffer(1)]],\n"
    "                  constant float &by [[buffer(2)]], uint i [[thread_position_in_grid]])\n"
    "{\n"
    "    out[i] = in[i] * by;\n"
    "}\n"
    "kernel void where(device uint4 *out [[buffer(0)]], uint3 g [[threadgroup_position_in_grid]],\n"
    "                  uint2 t [[thread_position_in_threadgroup]],\n"
    "                  ushort index [[thread_index_in_threadgroup]],\n"
    "                  uint3 groups [[threadgroups_per_grid]])\n"
    "{\n"
    "    uint group = g.x + groups.x * (g.y + groups.y * g.z);\n"
    "    out[group * 6 + index] = uint4(group, t, index);\n"
    "}\n"
    "kernel void turn(device uint *data [[buffer(0)]], threadgroup uint *shared "
    "[[threadgroup(0)]],\n"
    "                 uint i [[thread_index_in_threadgroup]], uint n [[threads_per_threadgroup]])\n"
    "{\n"
    "    threadgroup uint more[64];\n"
    "    shared[i] = data[i];\n"
    "    more[i] = data[i] * 100;\n"
    "    threadgroup_barrier(mem_flags::mem_threadgroup);\n"
    "    data[i] = shared[n - 1 - i] + more[n - 1 - i];\n"
    "}\n"
    "kernel void sums(device uint *out [[buffer(0)]], device atomic_uint *count [[buffer(1)]],\n"
    "                 uint i [[thread_index_in_threadgroup]])\n"
    "{\n"
    "    out[i] = simd_sum(i) + 1000 * simd_shuffle_xor(i, 1);\n"
    "    atomic_fetch_add_explicit(count, 2u, memory_order_relaxed);\n"
    "}\n"
    "kernel void none(device float *x [[buffer(0)]], uint i [[thread_position_in_grid]])\n"
    "{\n"
    "    x[i] = x[i] != x[i] ? 1.0f : 0.0f;\n"
    "}\n"
    "kernel void reach(constant ulong &at [[buffer(0)]])\n"
    "{\n"
    "    *(device uint *)at = 7;\n"
    "}\n"
    "kernel void order(device uint *out [[buffer(0)]], device atomic_uint *count [[buffer(1)]],\n"
    "                  uint i [[thread_position_in_grid]])\n"
    "{\n"
    "    out[atomic_fetch_add_explicit(count, 1u, memory_order_relaxed)] = i;\n"
    "}\n"
    "kernel void diverge(uint i [[thread_position_in_grid]])\n"
    "{\n"
    "    if (i < 3) threadgroup_barrier(mem_flags::mem_none);\n"
    "}\n";

static id text(const char *from)
{
    return m_string(metal.objc_getClass("NSString"), from);
}

// With Metal's own choice of mathematics, or with options.
static id pipeline_with(id device, const char *name, id options)
{
    id library = m_new_library(device, text(source), options, NULL);
    CHECK(library);
    id function = m_new_function(library, text(name));
    CHECK(function);
    id pipeline = m_new_pipeline(device, function, NULL);
    CHECK(pipeline && m_width(pipeline) == 32);
    m_release(function);
    m_release(library);
    return pipeline;
}

static id pipeline_new(id device, const char *name)
{
    return pipeline_with(device, name, NULL);
}

// A queue, a command buffer with an open encoder, and a pipeline.
typedef struct scene_t {
    id queue, command, encoder, pipeline;
} scene_t;

static scene_t scene_begin(id device, const char *kernel)
{
    scene_t scene = {.queue = m_new_queue(device, 4), .pipeline = pipeline_new(device, kernel)};
    scene.command = m_command(scene.queue);
    scene.encoder = m_compute(scene.command);
    m_set_pipeline(scene.encoder, scene.pipeline);
    return scene;
}

static void dispatch(const scene_t *scene, extent_t groups, extent_t threads)
{
    m_dispatch(scene->encoder, groups, threads);
}

static void scene_run(scene_t *scene)
{
    m_end(scene->encoder);
    m_commit(scene->command);
    m_wait(scene->command);
}

static void scene_end(scene_t *scene)
{
    m_release(scene->pipeline);
    m_release(scene->queue);
}

// Two dispatches of one encoder, each with its own bytes and offset.
static void test_buffers_and_bytes(id device)
{
    scene_t scene = scene_begin(device, "scale");
    id in = m_new_buffer(device, 512, 0), out = m_new_buffer(device, 512, 0);
    float *from = m_contents(in), *to = m_contents(out), by = 2;
    for (int i = 0; i < 128; i++) from[i] = (float)i;
    m_set_buffer(scene.encoder, in, 0, 0);
    m_set_buffer(scene.encoder, out, 0, 1);
    m_set_bytes(scene.encoder, &by, sizeof by, 2);
    dispatch(&scene, (extent_t){2, 1, 1}, (extent_t){32, 1, 1});
    by = 3;
    m_set_bytes(scene.encoder, &by, sizeof by, 2);
    m_set_offset(scene.encoder, 256, 1);
    dispatch(&scene, (extent_t){64, 1, 1}, (extent_t){1, 1, 1});
    scene_run(&scene);
    for (int i = 0; i < 64; i++) CHECK(to[i] == 2 * from[i] && to[64 + i] == 3 * from[i]);
    m_release(in);
    m_release(out);
    scene_end(&scene);
}

// Metal takes for granted that all numbers are numbers, unless it is told not to.
static void test_fast_mathematics(id device)
{
    id options = m_new(metal.objc_getClass("MTLCompileOptions"));
    m_set_fast(options, false);
    scene_t scene = scene_begin(device, "none");
    id exact = pipeline_with(device, "none", options), buffer = m_new_buffer(device, 8, 0);
    uint32_t *words = m_contents(buffer);
    words[0] = words[1] = 0x7fc00000;
    m_set_buffer(scene.encoder, buffer, 0, 0);
    dispatch(&scene, (extent_t){1, 1, 1}, (extent_t){1, 1, 1});
    m_set_pipeline(scene.encoder, exact);
    m_set_offset(scene.encoder, 4, 0);
    dispatch(&scene, (extent_t){1, 1, 1}, (extent_t){1, 1, 1});
    scene_run(&scene);
    CHECK(words[0] == 0 && words[1] == 0x3f800000);
    m_release(options);
    m_release(exact);
    m_release(buffer);
    scene_end(&scene);
}

static void test_positions(id device)
{
    scene_t scene = scene_begin(device, "where");
    id out = m_new_buffer(device, 24 * 6 * 16, 0);
    uint32_t(*seen)[4] = m_contents(out);
    m_set_buffer(scene.encoder, out, 0, 0);
    dispatch(&scene, (extent_t){2, 3, 4}, (extent_t){3, 2, 1});
    scene_run(&scene);
    for (uint32_t i = 0; i < 24 * 6; i++) {
        CHECK(seen[i][0] == i / 6 && seen[i][3] == i % 6);
        CHECK(seen[i][1] == i % 3 && seen[i][2] == i % 6 / 3);
    }
    m_release(out);
    scene_end(&scene);
}

static void test_threadgroup_memory(id device)
{
    scene_t scene = scene_begin(device, "turn");
    id data = m_new_buffer(device, 256, 0);
    uint32_t *words = m_contents(data);
    for (uint32_t i = 0; i < 64; i++) words[i] = i;
    m_set_buffer(scene.encoder, data, 0, 0);
    m_set_group(scene.encoder, 256, 0);
    dispatch(&scene, (extent_t){1, 1, 1}, (extent_t){64, 1, 1});
    scene_run(&scene);
    for (uint32_t i = 0; i < 64; i++) CHECK(words[i] == (63 - i) * 101);
    m_release(data);
    scene_end(&scene);
}

// 40 threads are a SIMD-group of 32 and one of 8.
static void test_simd_groups(id device)
{
    scene_t scene = scene_begin(device, "sums");
    id out = m_new_buffer(device, 160, 0), count = m_new_buffer(device, 4, 0);
    uint32_t *words = m_contents(out);
    m_set_buffer(scene.encoder, out, 0, 0);
    m_set_buffer(scene.encoder, count, 0, 1);
    dispatch(&scene, (extent_t){1, 1, 1}, (extent_t){40, 1, 1});
    scene_run(&scene);
    for (uint32_t i = 0; i < 40; i++) CHECK(words[i] == (i < 32 ? 496 : 284) + 1000 * (i ^ 1));
    CHECK(*(uint32_t *)m_contents(count) == 80);
    m_release(out);
    m_release(count);
    scene_end(&scene);
}

static void test_divergent_barrier(id device)
{
    scene_t scene = scene_begin(device, "diverge");
    dispatch(&scene, (extent_t){1, 1, 1}, (extent_t){8, 1, 1});
    scene_run(&scene);
    CHECK(m_status(scene.command) == 5 && m_code(m_error(scene.command)) == 2);
    CHECK(rig_said("kernel diverge: not all threads of a threadgroup reach the same barrier"));
    scene_end(&scene);
}

static void check_refused(id device, const char *bad, const char *words)
{
    id error = NULL;
    CHECK(!m_new_library(device, text(bad), NULL, &error) && error);
    CHECK(m_code(error) == 3 && strstr(m_utf8(m_text(error)), words));
}

static void test_bad_source(id device)
{
    check_refused(device, "\nkernel void k(device int *a [[buffer(0)]]) { *a = wrong; }",
                  "program_source:2");
    check_refused(device,
                  "kernel void k(threadgroup int *a [[threadgroup(0)]]) { device int *b = a; }",
                  "cannot initialize");
    check_refused(device, "kernel void k(device int *a [[buffer(31)]]) {}",
                  "kernel k: a parameter has no attribute that is known");
    check_refused(device, "kernel void k(device double *a [[buffer(0)]]) { *a = 1; }", "double");
}

static void test_unknown_function(id device)
{
    id library = m_new_library(device, text(source), NULL, NULL);
    CHECK(!m_new_function(library, text("not_this")));
    m_release(library);
}

// A text that is compiled twice: once by the compiler, and each library has variables of its own.
static void test_cache(id device)
{
    id one = m_new_library(device, text(source), NULL, NULL);
    unsigned kept = rig_cached();
    id other = m_new_library(device, text(source), NULL, NULL);
    CHECK(one && other && kept > 0 && rig_cached() == kept);
    id more = m_new_library(device, text("kernel void k() {}"), NULL, NULL);
    CHECK(more && rig_cached() == kept + 1);
    m_release(one);
    m_release(other);
    m_release(more);
}

static void dies_unbound(id device)
{
    scene_t scene = scene_begin(device, "sums");
    m_set_buffer(scene.encoder, m_new_buffer(device, 160, 0), 0, 0);
    dispatch(&scene, (extent_t){1, 1, 1}, (extent_t){32, 1, 1});
}

static void dies_no_group_memory(id device)
{
    scene_t scene = scene_begin(device, "turn");
    m_set_buffer(scene.encoder, m_new_buffer(device, 256, 0), 0, 0);
    dispatch(&scene, (extent_t){1, 1, 1}, (extent_t){64, 1, 1});
}

static void dies_no_groups(id device)
{
    scene_t scene = scene_begin(device, "diverge");
    dispatch(&scene, (extent_t){1, 0, 1}, (extent_t){8, 1, 1});
}

static void dies_large_group(id device)
{
    scene_t scene = scene_begin(device, "diverge");
    dispatch(&scene, (extent_t){1, 1, 1}, (extent_t){1025, 1, 1});
}

static void dies_no_pipeline(id device)
{
    m_dispatch(m_compute(m_command(m_new_queue(device, 1))), (extent_t){1, 1, 1},
               (extent_t){1, 1, 1});
}

static void dies_many_bytes(id device)
{
    static char bytes[4097];
    m_set_bytes(m_compute(m_command(m_new_queue(device, 1))), bytes, sizeof bytes, 0);
}

static void dies_index(id device)
{
    id encoder = m_compute(m_command(m_new_queue(device, 1)));
    m_set_buffer(encoder, m_new_buffer(device, 16, 0), 0, 31);
}

// By its address, which Metal does not see.
static void reach(id device, bool use)
{
    scene_t scene = scene_begin(device, "reach");
    id buffer = m_new_buffer(device, 64, 0);
    uint64_t at = m_address(buffer) + 4;
    if (use) m_use(scene.encoder, buffer, 2);
    m_set_bytes(scene.encoder, &at, sizeof at, 0);
    dispatch(&scene, (extent_t){1, 1, 1}, (extent_t){1, 1, 1});
    scene_run(&scene);
    CHECK(((uint32_t *)m_contents(buffer))[1] == 7);
    m_release(buffer);
    scene_end(&scene);
}

static void test_resident(id device)
{
    reach(device, true);
}

static void dies_not_resident(id device)
{
    reach(device, false);
}

// How many of 8 groups of 32 threads run right behind the one before; all threads run once.
static unsigned orderly(id device)
{
    unsigned in_order = 0, seen = 0;
    scene_t scene = scene_begin(device, "order");
    id out = m_new_buffer(device, 1024, 0), count = m_new_buffer(device, 4, 0);
    uint32_t *order = m_contents(out);
    m_set_buffer(scene.encoder, out, 0, 0);
    m_set_buffer(scene.encoder, count, 0, 1);
    dispatch(&scene, (extent_t){8, 1, 1}, (extent_t){32, 1, 1});
    scene_run(&scene);
    for (unsigned i = 0; i < 256; i++) seen += order[i];
    for (unsigned i = 1; i < 256; i++) in_order += order[i] == order[i - 1] + 1;
    CHECK(seen == 255 * 256 / 2);
    m_release(out);
    m_release(count);
    scene_end(&scene);
    return in_order;
}

static void test_order(id device)
{
    CHECK(orderly(device) == 255);
}

static void test_seeded_order(id device)
{
    CHECK(orderly(device) < 200);
}

// Counts that the same command buffer has written; none of them may be missing, any may be 0.
static void test_counts(id device)
{
    scene_t scene = {.queue = m_new_queue(device, 4), .pipeline = pipeline_new(device, "scale")};
    id in = m_new_buffer(device, 512, 0), out = m_new_buffer(device, 512, 0);
    id given = m_new_buffer(device, 32, 0), counts = m_new_buffer(device, 32, 2 << 4);
    const uint32_t groups[8] = {0, 2, 1, 1, 3, 0, 1, 0};
    float *from = m_contents(in), *to = m_contents(out), by = 2;
    for (int i = 0; i < 128; i++) from[i] = (float)i + 1;
    memcpy(m_contents(given), groups, sizeof groups);
    scene.command = m_command(scene.queue);
    id blit = m_blit(scene.command);
    m_copy(blit, given, 0, counts, 0, sizeof groups);
    m_end(blit);
    scene.encoder = m_compute(scene.command);
    m_set_pipeline(scene.encoder, scene.pipeline);
    m_set_buffer(scene.encoder, in, 0, 0);
    m_set_buffer(scene.encoder, out, 0, 1);
    m_set_bytes(scene.encoder, &by, sizeof by, 2);
    m_dispatch_indirect(scene.encoder, counts, 4, (extent_t){32, 1, 1});
    m_dispatch_indirect(scene.encoder, counts, 16, (extent_t){32, 1, 1}); // 3 x 0 x 1
    scene_run(&scene);
    for (int i = 0; i < 128; i++) CHECK(to[i] == (i < 64 ? 2 * from[i] : 0));
    m_release(in);
    m_release(out);
    m_release(given);
    m_release(counts);
    scene_end(&scene);
}

static void dies_counts(id device)
{
    scene_t scene = scene_begin(device, "scale");
    m_dispatch_indirect(scene.encoder, m_new_buffer(device, 64, 0), 56, (extent_t){1, 1, 1});
}

// Whether the last of several dispatches of one encoder was the last to run, each time.
static bool dispatches_in_order(id device, size_t type, bool barriers)
{
    bool all = true;
    scene_t scene = {.queue = m_new_queue(device, 4), .pipeline = pipeline_new(device, "scale")};
    id in = m_new_buffer(device, 4, 0), out = m_new_buffer(device, 4, 0);
    *(float *)m_contents(in) = 1;
    for (int i = 0; i < 16; i++) {
        scene.command = m_command(scene.queue);
        scene.encoder = m_compute_type(scene.command, type);
        m_set_pipeline(scene.encoder, scene.pipeline);
        m_set_buffer(scene.encoder, in, 0, 0);
        m_set_buffer(scene.encoder, out, 0, 1);
        for (float by = 1; by <= 8; by++) {
            m_set_bytes(scene.encoder, &by, sizeof by, 2);
            dispatch(&scene, (extent_t){1, 1, 1}, (extent_t){1, 1, 1});
            if (barriers) m_barrier(scene.encoder, 1);
        }
        scene_run(&scene);
        all &= *(float *)m_contents(out) == 8;
    }
    m_release(in);
    m_release(out);
    scene_end(&scene);
    return all;
}

static void test_concurrent(id device)
{
    CHECK(dispatches_in_order(device, 0, false));
    CHECK(dispatches_in_order(device, 1, true));
    CHECK(!dispatches_in_order(device, 1, false));
}

static void dies_group_length(id device)
{
    m_set_group(m_compute(m_command(m_new_queue(device, 1))), 20, 0);
}

static void bind_at(id device, const char *kernel, size_t offset)
{
    scene_t scene = scene_begin(device, kernel);
    id buffer = m_new_buffer(device, 512, 0);
    for (size_t i = 0; i < 3; i++) m_set_buffer(scene.encoder, buffer, offset, i);
    dispatch(&scene, (extent_t){1, 1, 1}, (extent_t){1, 1, 1});
    scene_run(&scene);
    scene_end(&scene);
    m_release(buffer);
}

static void dies_offset(id device)
{
    bind_at(device, "scale", 6);
}

static void dies_vector_offset(id device)
{
    bind_at(device, "where", 8);
}

static void dies_constant_offset(id device)
{
    bind_at(device, "scale", 16);
}

static void test_offsets(id device)
{
    bind_at(device, "scale", 32);
    bind_at(device, "where", 16);
}

// A warning is no failure, though it comes as an error does.
static void test_warning(id device)
{
    id error = NULL, library = m_new_library(device, text(source), NULL, &error);
    CHECK(library && error && m_code(error) == 4);
    m_release(library);
}

// The compiler's process goes with the second text, and is there again.
static void test_lost_compiler(id device)
{
    for (int i = 0; i < 3; i++) {
        id error = NULL, library = m_new_library(device, text(source), NULL, &error);
        CHECK((library != NULL) == (i != 1) && (error != NULL) == (i == 1));
        if (error) CHECK(m_code(error) == 2);
        if (error) CHECK(strstr(m_utf8(m_text(error)), "XPC_ERROR_CONNECTION_INTERRUPTED"));
        m_release(library);
    }
}

static void dies_counts_offset(id device)
{
    scene_t scene = scene_begin(device, "scale");
    m_dispatch_indirect(scene.encoder, m_new_buffer(device, 64, 0), 2, (extent_t){1, 1, 1});
}

static void all(void)
{
    RUN("xpc=2", test_lost_compiler);
    DIES("counts at offset 2: must be a multiple of 4", dies_counts_offset);
    DIES("kernel scale: offset 6 of buffer(0) must be a multiple of 4", dies_offset);
    DIES("kernel where: offset 8 of buffer(0) must be a multiple of 16", dies_vector_offset);
    DIES_WITH("discrete=1", "kernel scale: offset 16 of buffer(2) must be a multiple of 32",
              dies_constant_offset);
    RUN("", test_offsets);
    RUN("warns=1", test_warning);
    RUN("", test_buffers_and_bytes);
    RUN("", test_fast_mathematics);
    RUN("", test_positions);
    RUN("", test_threadgroup_memory);
    RUN("", test_simd_groups);
    RUN("", test_divergent_barrier);
    RUN("", test_bad_source);
    RUN("", test_unknown_function);
    RUN("", test_cache);
    RUN("residency=1", test_resident);
    DIES_WITH("residency=1", "kernel reach reaches byte 4 of a buffer of 64 bytes that is not",
              dies_not_resident);
    RUN("", test_order);
    RUN("seed=3", test_seeded_order);
    RUN("seed=3", test_concurrent);
    RUN("", test_counts);
    DIES("12 bytes from 56 are not in the buffer of 64", dies_counts);
    DIES("kernel sums: nothing is bound at buffer(1)", dies_unbound);
    DIES("kernel turn: threadgroup(0) has no length", dies_no_group_memory);
    DIES("a grid of 1 x 0 x 1 threadgroups", dies_no_groups);
    DIES("1025 x 1 x 1 threads in a threadgroup", dies_large_group);
    DIES("no pipeline is set", dies_no_pipeline);
    DIES("4097 bytes: it takes 1 to 4096", dies_many_bytes);
    DIES("index 31: there are 31", dies_index);
    DIES("a length of 20: must be a multiple of 16", dies_group_length);
}

int main(int argc, char **argv)
{
    return rig_main(argc, argv, all);
}
