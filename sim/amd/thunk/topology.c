// SPDX-License-Identifier: Apache-2.0
// The machine as the runtime sees it: a CPU node and a node for each GPU. Each GPU has a link to
// the CPU and to every other GPU. There is none from the CPU to a GPU, which would say that the
// host may touch the GPU's memory.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "amd/engine/engine.h"

static gfx_t gpus[GPU_MAX];
static unsigned gpus_found;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void gpus_read(void)
{
    const char *text = getenv("KEEL_SIM_GPUS");
    if (!text || !*text) text = "gfx90a";
    while (*text && gpus_found < GPU_MAX) {
        size_t length = strcspn(text, ",");
        gfx_t gfx = gfx_parse(text, length);
        if (gfx == GFX_COUNT) {
            log_line(LOG_ERROR,
                     "KEEL_SIM_GPUS: %.*s is none of gfx900, gfx906, gfx908, gfx90a, gfx942",
                     (int)length, text);
        } else {
            gpus[gpus_found++] = gfx;
        }
        text += length + (text[length] == ',');
    }
}

unsigned gpu_count(void)
{
    pthread_once(&once, gpus_read);
    return gpus_found;
}

bool gpu_is(unsigned node)
{
    return node >= NODE_FIRST_GPU && node - NODE_FIRST_GPU < gpu_count();
}

gfx_t gpu_gfx(unsigned node)
{
    return gpus[node - NODE_FIRST_GPU];
}

static const struct model {
    uint8_t major, minor, stepping;
    uint16_t device;
    uint32_t vgpr_size;
    const char *name;
} models[GFX_COUNT] = {
    [GFX900] = {9, 0, 0, 0x6860, 262144, "Keel software GPU (Vega 10)"},
    [GFX906] = {9, 0, 6, 0x66a1, 262144, "Keel software GPU (Vega 20)"},
    [GFX908] = {9, 0, 8, 0x738c, 262144, "Keel software GPU (MI100)"},
    [GFX90A] = {9, 0, 10, 0x7408, 524288, "Keel software GPU (MI200)"},
    [GFX942] = {9, 4, 2, 0x74a1, 524288, "Keel software GPU (MI300)"},
};

enum { COMPUTE_UNITS = 4, SIMD_PER_UNIT = 4, VRAM_SIZE_GIB = 4, HOST_SIZE_GIB = 8 };

static void set_names(HsaNodeProperties *out, const char *name, const char *marketing)
{
    snprintf((char *)out->AMDName, sizeof out->AMDName, "%s", name);
    for (unsigned k = 0; marketing[k]; k++) out->MarketingName[k] = (HSAuint16)marketing[k];
}

static void cpu_properties(HsaNodeProperties *out)
{
    out->NumCPUCores = (HSAuint32)sysconf(_SC_NPROCESSORS_ONLN);
    out->NumMemoryBanks = 1;
    out->NumCaches = 2;
    out->MaxEngineClockMhzCCompute = 2000;
    set_names(out, "CPU", "Host");
}

static void gpu_properties(unsigned node, HsaNodeProperties *out)
{
    const struct model *model = &models[gpu_gfx(node)];
    out->NumFComputeCores = COMPUTE_UNITS * SIMD_PER_UNIT;
    out->NumSIMDPerCU = SIMD_PER_UNIT;
    out->NumMemoryBanks = 3;
    out->NumCaches = 2;
    out->NumIOLinks = gpu_count();
    out->FComputeIdLo = 0x80000000;
    out->MaxWavesPerSIMD = 10;
    out->LDSSizeInKB = LDS_SIZE_MAX / 1024;
    out->WaveFrontSize = 64;
    out->NumShaderBanks = 1;
    out->NumArrays = 1;
    out->NumCUPerArray = COMPUTE_UNITS;
    out->MaxSlotsScratchCU = 32;
    out->EngineId.ui32.Major = model->major;
    out->EngineId.ui32.Minor = model->minor;
    out->EngineId.ui32.Stepping = model->stepping;
    out->EngineId.ui32.uCode = 421;
    out->uCodeEngineVersions.uCodeSDMA = 421;
    out->VendorId = 0x1002;
    out->DeviceId = model->device;
    out->LocationId = 0x0100 * (node + 2);
    out->LocalMemSize = (HSAuint64)VRAM_SIZE_GIB << 30;
    out->MaxEngineClockMhzFCompute = 1000;
    out->DrmRenderMinor = (HSAint32)(127 + node);
    out->Capability.ui32.DoorbellType = 2;
    out->Capability.ui32.QueueSizePowerOfTwo = 1;
    out->NumSdmaEngines = 2;
    out->NumSdmaQueuesPerEngine = 8;
    out->NumCpQueues = 24;
    out->UniqueID = 0x4b45454c00000000ull + node;
    out->VGPRSizePerCU = model->vgpr_size;
    out->SGPRSizePerCU = 12800;
    set_names(out, gfx_name(gpu_gfx(node)), model->name);
}

static bool node_is(unsigned node)
{
    return node == NODE_CPU || gpu_is(node);
}

HSAKMT_STATUS hsaKmtOpenKFD(void)
{
    log_line(LOG_CALLS, "OpenKFD: %u GPUs", gpu_count());
    guard_start();
    return HSAKMT_STATUS_SUCCESS;
}

HSAKMT_STATUS hsaKmtCloseKFD(void)
{
    return HSAKMT_STATUS_SUCCESS;
}

HSAKMT_STATUS hsaKmtGetVersion(HsaVersionInfo *out)
{
    *out = (HsaVersionInfo){.KernelInterfaceMajorVersion = 1, .KernelInterfaceMinorVersion = 6};
    return HSAKMT_STATUS_SUCCESS;
}

HSAKMT_STATUS hsaKmtAcquireSystemProperties(HsaSystemProperties *out)
{
    *out = (HsaSystemProperties){.NumNodes = 1 + gpu_count()};
    return HSAKMT_STATUS_SUCCESS;
}

HSAKMT_STATUS hsaKmtReleaseSystemProperties(void)
{
    return HSAKMT_STATUS_SUCCESS;
}

HSAKMT_STATUS hsaKmtGetNodeProperties(HSAuint32 node, HsaNodeProperties *out)
{
    memset(out, 0, sizeof *out);
    if (!node_is(node)) return HSAKMT_STATUS_INVALID_NODE_UNIT;
    if (node == NODE_CPU) {
        cpu_properties(out);
    } else {
        gpu_properties(node, out);
    }
    return HSAKMT_STATUS_SUCCESS;
}

HSAKMT_STATUS hsaKmtGetNodeMemoryProperties(HSAuint32 node, HSAuint32 count,
                                            HsaMemoryProperties *out)
{
    if (!node_is(node)) return HSAKMT_STATUS_INVALID_NODE_UNIT;
    const HsaMemoryProperties host = {.HeapType = HSA_HEAPTYPE_SYSTEM,
                                      .SizeInBytes = (HSAuint64)HOST_SIZE_GIB << 30,
                                      .Width = 64,
                                      .MemoryClockMax = 1600};
    const HsaMemoryProperties gpu[] = {
        {.HeapType = HSA_HEAPTYPE_FRAME_BUFFER_PRIVATE,
         .SizeInBytes = (HSAuint64)VRAM_SIZE_GIB << 30,
         .Width = 2048,
         .MemoryClockMax = 945},
        {.HeapType = HSA_HEAPTYPE_GPU_LDS,
         .SizeInBytes = LDS_SIZE_MAX,
         .VirtualBaseAddress = (HSAuint64)APERTURE_LDS << 32},
        {.HeapType = HSA_HEAPTYPE_GPU_SCRATCH,
         .SizeInBytes = 4ull << 30,
         .VirtualBaseAddress = (HSAuint64)APERTURE_SCRATCH << 32},
    };
    unsigned known = node == NODE_CPU ? 1 : 3;
    for (unsigned k = 0; k < count && k < known; k++) out[k] = node == NODE_CPU ? host : gpu[k];
    return HSAKMT_STATUS_SUCCESS;
}

HSAKMT_STATUS hsaKmtGetNodeCacheProperties(HSAuint32 node, HSAuint32 processor, HSAuint32 count,
                                           HsaCacheProperties *out)
{
    if (!node_is(node)) return HSAKMT_STATUS_INVALID_NODE_UNIT;
    for (unsigned k = 0; k < count; k++) {
        out[k] = (HsaCacheProperties){
            .CacheLevel = k + 1, .CacheSize = k ? 4096 : 16, .CacheLineSize = 64};
        out[k].CacheType.ui32.Data = 1;
        out[k].CacheType.ui32.HSACU = node != NODE_CPU;
        out[k].CacheType.ui32.CPU = node == NODE_CPU;
    }
    return HSAKMT_STATUS_SUCCESS;
}

HSAKMT_STATUS hsaKmtGetNodeIoLinkProperties(HSAuint32 node, HSAuint32 count,
                                            HsaIoLinkProperties *out)
{
    if (!node_is(node)) return HSAKMT_STATUS_INVALID_NODE_UNIT;
    unsigned made = 0;
    for (unsigned other = 0; node != NODE_CPU && other <= gpu_count() && made < count; other++) {
        if (other == node) continue;
        bool peer = other != NODE_CPU;
        out[made++] = (HsaIoLinkProperties){.IoLinkType = peer ? HSA_IOLINK_TYPE_XGMI
                                                               : HSA_IOLINKTYPE_PCIEXPRESS,
                                            .NodeFrom = node,
                                            .NodeTo = other,
                                            .Weight = peer ? 15 : 20};
    }
    return HSAKMT_STATUS_SUCCESS;
}

// How images lie in memory, which the runtime asks for on x86-64: as on a Vega.
HSAKMT_STATUS hsaKmtGetTileConfig(HSAuint32 node, HsaGpuTileConfig *out)
{
    if (!gpu_is(node)) return HSAKMT_STATUS_INVALID_NODE_UNIT;
    out->NumTileConfigs = out->NumMacroTileConfigs = 0;
    out->GbAddrConfig = 0x2a114042;
    return HSAKMT_STATUS_SUCCESS;
}

HSAKMT_STATUS hsaKmtGetClockCounters(HSAuint32 node, HsaClockCounters *out)
{
    if (!node_is(node)) return HSAKMT_STATUS_INVALID_NODE_UNIT;
    uint64_t now = clock_ns();
    *out = (HsaClockCounters){.GPUClockCounter = now / 10,
                              .CPUClockCounter = now,
                              .SystemClockCounter = now,
                              .SystemClockFrequencyHz = 1000000000};
    return HSAKMT_STATUS_SUCCESS;
}
