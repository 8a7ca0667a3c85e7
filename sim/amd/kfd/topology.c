// SPDX-License-Identifier: Apache-2.0
// The machine as the kernel driver describes it below /sys: a CPU node and a node for each GPU.
// Each GPU has a link to the CPU and, if it is to have any, to every other GPU. There is none from
// the CPU to a GPU, which would say that the host may touch the GPU's memory.
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "amd/kfd/kfd.h"

#define TOPOLOGY "/sys/devices/virtual/kfd/kfd/topology"

static const struct model {
    uint32_t version; // major * 10000 + minor * 100 + stepping
    uint16_t device;
    const char *name;
} models[GFX_COUNT] = {
    [GFX900] = {90000, 0x6860, "Keel software GPU (Vega 10)"},
    [GFX906] = {90006, 0x66a1, "Keel software GPU (Vega 20)"},
    [GFX908] = {90008, 0x738c, "Keel software GPU (MI100)"},
    [GFX90A] = {90010, 0x7408, "Keel software GPU (MI200)"},
    [GFX942] = {90402, 0x74a1, "Keel software GPU (MI300)"},
};

enum { HOST_SIZE_GIB = 8, FIRST_SIMD = 0x80000000 };

// capability: queues have sizes that are powers of two (bit 7), doorbells of 64 bits (type 2).
enum { CAPABILITY = 1 << 7 | 2 << 12, CAPABILITY_SVM = 1 << 27 };

const char *gpu_text(unsigned node)
{
    return models[gpu_gfx(node)].name;
}

uint16_t gpu_device(unsigned node)
{
    return models[gpu_gfx(node)].device;
}

typedef struct {
    char *text;
    size_t size, room;
} out_t;

__attribute__((format(printf, 2, 3))) static void put(out_t *out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(out->text + out->size, out->room - out->size, format, arguments);
    va_end(arguments);
    if (length > 0) out->size += (size_t)length;
    if (out->size > out->room - 1) out->size = out->room - 1;
}

static void put_number(out_t *out, const char *name, uint64_t value)
{
    put(out, "%s %llu\n", name, (unsigned long long)value);
}

static void put_cpu(out_t *out)
{
    put_number(out, "cpu_cores_count", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
    put(out, "simd_count 0\nmem_banks_count 1\ncaches_count 0\nio_links_count 0\n"
             "p2p_links_count 0\ncpu_core_id_base 0\nsimd_id_base 0\nmax_waves_per_simd 0\n"
             "lds_size_in_kb 0\ngds_size_in_kb 0\nnum_gws 0\nwave_front_size 64\narray_count 0\n"
             "simd_arrays_per_engine 0\ncu_per_simd_array 0\nsimd_per_cu 0\n"
             "max_slots_scratch_cu 0\ngfx_target_version 0\nvendor_id 0\ndevice_id 0\n"
             "location_id 0\ndomain 0\ndrm_render_minor 0\nhive_id 0\nnum_sdma_engines 0\n"
             "num_sdma_xgmi_engines 0\nnum_sdma_queues_per_engine 0\nnum_cp_queues 0\n"
             "max_engine_clk_ccompute 2000\n");
}

static unsigned link_count(void)
{
    return sim_settings()->links ? gpu_count() : 1;
}

static void put_gpu(out_t *out, unsigned node)
{
    gfx_t gfx = gpu_gfx(node);
    const struct model *model = &models[gfx];
    put_number(out, "cpu_cores_count", 0);
    put_number(out, "simd_count", gfx_units(gfx) * UNIT_SIMDS);
    put_number(out, "mem_banks_count", 1);
    put_number(out, "caches_count", 2);
    put_number(out, "io_links_count", link_count());
    put_number(out, "p2p_links_count", 0);
    put_number(out, "cpu_core_id_base", 0);
    put_number(out, "simd_id_base", (uint32_t)FIRST_SIMD);
    put_number(out, "max_waves_per_simd", gfx_simd_waves(gfx));
    put_number(out, "lds_size_in_kb", LDS_SIZE_MAX / 1024);
    put_number(out, "gds_size_in_kb", 0);
    put_number(out, "num_gws", GWS_COUNT);
    put_number(out, "wave_front_size", 64);
    put_number(out, "array_count", gfx_dies(gfx));
    put_number(out, "simd_arrays_per_engine", 1);
    put_number(out, "cu_per_simd_array", gfx_units(gfx) / gfx_dies(gfx));
    put_number(out, "simd_per_cu", UNIT_SIMDS);
    put_number(out, "max_slots_scratch_cu", 32);
    put_number(out, "gfx_target_version", model->version);
    put_number(out, "vendor_id", 0x1002);
    put_number(out, "device_id", model->device);
    put_number(out, "location_id", 0x0100 * (node + 2));
    put_number(out, "domain", 0);
    put_number(out, "drm_render_minor", RENDER_MINOR + node);
    put_number(out, "hive_id", 0);
    put_number(out, "num_sdma_engines", 2);
    put_number(out, "num_sdma_xgmi_engines", 0);
    put_number(out, "num_sdma_queues_per_engine", 8);
    put_number(out, "num_cp_queues", 24);
    put_number(out, "max_engine_clk_fcompute", 1000);
    put_number(out, "local_mem_size", (uint64_t)VRAM_SIZE_GIB << 30);
    put_number(out, "fw_version", 421);
    put_number(out, "capability", sim_settings()->svm ? CAPABILITY | CAPABILITY_SVM : CAPABILITY);
    put_number(out, "debug_prop", 0);
    put_number(out, "sdma_fw_version", 421);
    put_number(out, "unique_id", 0x4b45454c00000000ull + node);
    put_number(out, "num_xcc", gfx_dies(gfx));
    put_number(out, "max_engine_clk_ccompute", 2000);
}

static void put_memory(out_t *out, unsigned node)
{
    enum {
        SYSTEM,
        PUBLIC,
        PRIVATE
    }; // the host's, and of a GPU what the host sees and does not see
    bool gpu = node != NODE_CPU;
    put_number(out, "heap_type", !gpu ? SYSTEM : sim_settings()->bar ? PUBLIC : PRIVATE);
    put_number(out, "size_in_bytes", (uint64_t)(gpu ? VRAM_SIZE_GIB : HOST_SIZE_GIB) << 30);
    put_number(out, "flags", 0);
    put_number(out, "width", gpu ? 2048 : 64);
    put_number(out, "mem_clk_max", gpu ? 945 : 1600);
}

// Type 9: of data, of the compute units.
static void put_cache(out_t *out, unsigned index)
{
    put_number(out, "processor_id_low", (uint32_t)FIRST_SIMD);
    put_number(out, "level", index + 1);
    put_number(out, "size", index ? 4096 : 16);
    put(out, "cache_line_size 64\ncache_lines_per_tag 1\nassociation 16\nlatency 1\ntype 9\n"
             "sibling_map 1\n");
}

static void put_link(out_t *out, unsigned node, unsigned index)
{
    enum { PCI_EXPRESS = 2, XGMI = 11 };
    enum { ENABLED = 1 << 0, NO_ATOMICS = 1 << 2 | 1 << 3 }; // of 32 bits, and of 64
    unsigned other = index < node ? index : index + 1;
    bool atomics = other != NODE_CPU || sim_settings()->atomics;
    put_number(out, "type", other == NODE_CPU ? PCI_EXPRESS : XGMI);
    put(out, "version_major 0\nversion_minor 0\n");
    put_number(out, "node_from", node);
    put_number(out, "node_to", other);
    put_number(out, "weight", other == NODE_CPU ? 20 : 15);
    put(out, "min_latency 0\nmax_latency 0\nmin_bandwidth 0\nmax_bandwidth 0\n"
             "recommended_transfer_size 0\nrecommended_sdma_engine_id_mask 0\n");
    put_number(out, "flags", atomics ? ENABLED : ENABLED | NO_ATOMICS);
}

// Takes a number and the slash behind it off a path; false when there is none.
static bool take_number(const char **path, unsigned *out_number)
{
    char *end;
    if (**path < '0' || **path > '9') return false;
    *out_number = (unsigned)strtoul(*path, &end, 10);
    *path = end + (*end == '/');
    return true;
}

// A folder of a node with several of a kind in it, as "caches/1/properties"; false when the path is
// not in that folder, or there are not so many.
static bool take_folder(const char *path, const char *folder, unsigned count, unsigned *out_index)
{
    size_t length = strlen(folder);
    if (strncmp(path, folder, length)) return false;
    path += length;
    return take_number(&path, out_index) && *out_index < count && !strcmp(path, "properties");
}

static bool put_node(out_t *out, unsigned node, const char *path)
{
    bool gpu = node != NODE_CPU;
    unsigned index;
    if (!strcmp(path, "gpu_id")) {
        put(out, "%u\n", gpu ? GPU_ID + node : 0);
    } else if (!strcmp(path, "name")) {
        put(out, "\n");
    } else if (!strcmp(path, "properties")) {
        if (gpu) {
            put_gpu(out, node);
        } else {
            put_cpu(out);
        }
    } else if (take_folder(path, "mem_banks/", 1, &index)) {
        put_memory(out, node);
    } else if (take_folder(path, "caches/", gpu ? 2 : 0, &index)) {
        put_cache(out, index);
    } else if (take_folder(path, "io_links/", gpu ? link_count() : 0, &index)) {
        put_link(out, node, index);
    } else {
        return false;
    }
    return true;
}

// What is behind a folder's name in a path; NULL when it is not in there.
static const char *below(const char *path, const char *folder)
{
    size_t length = strlen(folder);
    return strncmp(path, folder, length) ? NULL : path + length;
}

static bool put_path(out_t *out, const char *path)
{
    const char *in_nodes = below(path, TOPOLOGY "/nodes/");
    unsigned node;
    if (!strcmp(path, "/sys/module/amdgpu/initstate")) {
        put(out, "live\n");
    } else if (!strcmp(path, TOPOLOGY "/generation_id")) {
        put(out, "1\n");
    } else if (!strcmp(path, TOPOLOGY "/system_properties")) {
        put(out, "platform_oem 0\nplatform_id 0\nplatform_rev 0\n");
    } else {
        return in_nodes && take_number(&in_nodes, &node) && node <= gpu_count() &&
               put_node(out, node, in_nodes);
    }
    return true;
}

char *topology_text(const char *path)
{
    out_t out = {.text = malloc(4096), .room = 4096};
    if (out.text && put_path(&out, path)) {
        out.text[out.size] = 0;
        return out.text;
    }
    free(out.text);
    return NULL;
}

char *topology_list(const char *path)
{
    const char *rest = below(path, TOPOLOGY "/nodes");
    if (!rest || (*rest && strcmp(rest, "/"))) return NULL;
    char *names = calloc(1, 4 * (GPU_MAX + 2));
    char *at = names;
    for (unsigned node = 0; names && node <= gpu_count(); node++) at += sprintf(at, "%u", node) + 1;
    return names;
}
