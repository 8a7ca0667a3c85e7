// SPDX-License-Identifier: Apache-2.0
// Kernels for fills and copies that blits refuse, and for updates. Each thread takes every nth unit
// of a range, n being the number of threads.
#include "drivers/metal/executable/executable.h"

static const char source[] =
    "#include <metal_stdlib>\n"
    "using namespace metal;\n"
    "struct range { ulong count; uint pattern; };\n"
    "kernel void keel_fill(device uchar *to [[buffer(0)]], constant range &r [[buffer(1)]],\n"
    "                      uint i [[thread_position_in_grid]], uint n [[threads_per_grid]])\n"
    "{\n"
    "    for (ulong at = i; at < r.count; at += n) to[at] = uchar(r.pattern >> (at % 4 * 8));\n"
    "}\n"
    "kernel void keel_fill_words(device uint *to [[buffer(0)]], constant range &r [[buffer(1)]],\n"
    "                            uint i [[thread_position_in_grid]],\n"
    "                            uint n [[threads_per_grid]])\n"
    "{\n"
    "    for (ulong at = i; at < r.count; at += n) to[at] = r.pattern;\n"
    "}\n"
    "kernel void keel_copy(device uchar *to [[buffer(0)]], constant range &r [[buffer(1)]],\n"
    "                      device const uchar *from [[buffer(2)]],\n"
    "                      uint i [[thread_position_in_grid]], uint n [[threads_per_grid]])\n"
    "{\n"
    "    for (ulong at = i; at < r.count; at += n) to[at] = from[at];\n"
    "}\n"
    "kernel void keel_copy_words(device uint *to [[buffer(0)]], constant range &r [[buffer(1)]],\n"
    "                            device const uint *from [[buffer(2)]],\n"
    "                            uint i [[thread_position_in_grid]],\n"
    "                            uint n [[threads_per_grid]])\n"
    "{\n"
    "    for (ulong at = i; at < r.count; at += n) to[at] = from[at];\n"
    "}\n"
    "kernel void keel_update(device uchar *to [[buffer(0)]], constant range &r [[buffer(1)]],\n"
    "                        constant uchar *from [[buffer(2)]],\n"
    "                        uint i [[thread_position_in_grid]], uint n [[threads_per_grid]])\n"
    "{\n"
    "    for (ulong at = i; at < r.count; at += n) to[at] = from[at];\n"
    "}\n"
    "kernel void keel_counts(device uint *to [[buffer(0)]], constant range &r [[buffer(1)]],\n"
    "                        device const uint *from [[buffer(2)]],\n"
    "                        uint i [[thread_position_in_grid]])\n"
    "{\n"
    "    if (i > 0) return;\n"
    "    ulong plane = ulong(from[0]) * from[1];\n"
    "    bool many = from[2] != 0 && plane > r.count / from[2];\n"
    "    for (uint at = 0; at < 3; at++) to[at] = many ? 0 : from[at];\n"
    "    to[3] = many;\n"
    "}\n"
    "struct stop { atomic_uint asked; uint gone; };\n"
    "struct guard { uint words, count, index[8], number[8]; };\n"
    "kernel void keel_guard(device uint *counts [[buffer(0)]], constant guard &g [[buffer(1)]],\n"
    "                       device const uint *done [[buffer(2)]],\n"
    "                       device stop &s [[buffer(3)]],\n"
    "                       uint i [[thread_position_in_grid]], uint n [[threads_per_grid]])\n"
    "{\n"
    "    threadgroup bool gone;\n"
    "    if (i == 0) {\n"
    "        gone = s.gone != 0 || atomic_load_explicit(&s.asked, memory_order_relaxed) != 0;\n"
    "        if (gone) s.gone = 1;\n"
    "    }\n"
    "    threadgroup_barrier(mem_flags::mem_threadgroup);\n"
    "    bool kept = !gone;\n"
    "    for (uint at = 0; at < g.count; at++) kept &= done[g.index[at]] == g.number[at];\n"
    "    if (kept) return;\n"
    "    for (uint at = i; at < g.words; at += n) counts[at] = 0;\n"
    "}\n"
    "kernel void keel_done(device uint *word [[buffer(0)]], constant uint &number [[buffer(1)]])\n"
    "{\n"
    "    *word = number;\n"
    "}\n";

static const char *const names[METAL_BUILTINS] = {
    [METAL_FILL] = "keel_fill",     [METAL_FILL_WORDS] = "keel_fill_words",
    [METAL_COPY] = "keel_copy",     [METAL_COPY_WORDS] = "keel_copy_words",
    [METAL_UPDATE] = "keel_update", [METAL_COUNTS] = "keel_counts",
    [METAL_GUARD] = "keel_guard",   [METAL_DONE] = "keel_done",
};

static keel_status_t refusal(const metal_api_t *api, const char *what, id error)
{
    return KEEL_ERROR(KEEL_UNSUPPORTED, "Metal does not compile the driver's kernel %s: %s", what,
                      metal_text(api, error));
}

static keel_status_t pipeline_make(metal_device_t *device, id library, const char *name, id *made)
{
    const metal_api_t *api = device->api;
    id error = NULL;
    id function = mtl_new_function(api, library, mtl_string(api, api->string_class, name));
    if (function) *made = metal_state_make(device, function, &error);
    mtl_release(api, function);
    return *made ? NULL : refusal(api, name, error);
}

keel_status_t metal_builtins_make(metal_device_t *device)
{
    const metal_api_t *api = device->api;
    id error = NULL, library = metal_library_make(device, source, NULL, &error);
    if (!library) return refusal(api, "library", error);
    keel_status_t status = NULL;
    for (int i = 0; i < METAL_BUILTINS && !status; i++)
        status = pipeline_make(device, library, names[i], &device->builtins[i]);
    mtl_release(api, library);
    return status;
}

void metal_builtins_release(metal_device_t *device)
{
    for (int i = 0; i < METAL_BUILTINS; i++) mtl_release(device->api, device->builtins[i]);
}
