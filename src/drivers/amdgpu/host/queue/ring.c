// SPDX-License-Identifier: Apache-2.0
// HSA's queues: rings of packets, which host and GPU write. Where they lie HSA decides, for all
// queues of a GPU.
#include <sched.h>
#include <string.h>

#include "base/status.h"
#include "drivers/amdgpu/host/queue/queue.h"
#include "trace/captured.h"

// What HSA keeps behind the handles, as amd_hsa_queue.h and amd_hsa_signal.h have it.
enum { QUEUE_WRITE = 56, SIGNAL_KIND = 0, SIGNAL_DOORBELL = 8 };

enum { HARDWARE = -1 }; // the kind of a doorbell that is a word of the hardware's

// On a thread of HSA's, which also calls the handlers.
void amdgpu_ring_failed(hsa_status_t status, hsa_queue_t *queue, void *device)
{
    amdgpu_device_t *d = device;
    (void)queue;
    amdgpu_device_fail(d, hsa_status_make(d->hsa, status, "a queue of the GPU"));
}

static bool callback_comes(hsa_signal_value_t value, void *came)
{
    (void)value;
    // release: pairs with callbacks_pass, whose memory this is.
    atomic_store_explicit((_Atomic bool *)came, true, memory_order_release);
    return false; // it is not to be called again
}

// Until the thread of HSA's that calls back has left what it was in. If there is no memory for
// that, it is taken to have.
static void callbacks_pass(const hsa_symbols_t *hsa)
{
    _Atomic bool came = false;
    hsa_signal_t now;
    if (hsa->hsa_signal_create(0, 0, NULL, &now) != HSA_STATUS_SUCCESS) return;
    bool comes = hsa->hsa_amd_signal_async_handler(now, HSA_SIGNAL_CONDITION_LT, 1, callback_comes,
                                                   &came) == HSA_STATUS_SUCCESS;
    while (comes && !atomic_load_explicit(&came, memory_order_acquire)) sched_yield();
    hsa->hsa_signal_destroy(now);
}

void amdgpu_ring_destroy(amdgpu_device_t *device, hsa_queue_t *queue)
{
    // HSA's last word on a queue that has failed goes into a signal, behind amdgpu_ring_failed.
    // hsa_queue_destroy writes there, too, and waits for an answer. If it covers that word, it
    // never returns.
    if (atomic_load(&device->failed)) callbacks_pass(device->hsa);
    device->hsa->hsa_queue_destroy(queue);
}

keel_status_t amdgpu_ring_make(amdgpu_device_t *device, uint32_t node, uint32_t size,
                               hsa_queue_t **queue)
{
    const hsa_symbols_t *hsa = device->hsa;
    if (device->traced) trace_queues_leave(true);
    keel_status_t status =
        HSA_CALL(hsa, hsa_queue_create, device->agents[node], size, HSA_QUEUE_TYPE_MULTI,
                 amdgpu_ring_failed, device, UINT32_MAX, UINT32_MAX, queue);
    if (device->traced) trace_queues_leave(false);
    if (status || !device->traced) return status;
    status = HSA_CALL(hsa, hsa_amd_profiling_set_profiler_enabled, *queue, 1);
    if (!status) return NULL;
    amdgpu_ring_destroy(device, *queue);
    *queue = NULL;
    return status;
}

uint64_t amdgpu_packet_write(const hsa_symbols_t *hsa, hsa_queue_t *queue, const void *packet,
                             uint32_t header)
{
    enum { PACKET = 64 };
    uint64_t number = hsa->hsa_queue_add_write_index_relaxed(queue, 1);
    unsigned char *at =
        (unsigned char *)queue->base_address + (number & (queue->size - 1)) * PACKET;
    // The packet that was here has ended long ago; the index may still be on its way.
    while (number - hsa->hsa_queue_load_read_index_scacquire(queue) >= queue->size) sched_yield();
    memcpy(at + sizeof header, (const unsigned char *)packet + sizeof header,
           PACKET - sizeof header);
    // The processor may combine writes to a GPU's memory, and send the header first.
    if (hsa->rings_local) __atomic_thread_fence(__ATOMIC_SEQ_CST);
    // release: pairs with the packet processor, which reads the rest when the header is valid.
    __atomic_store_n((uint32_t *)(void *)at, header, __ATOMIC_RELEASE);
    return number;
}

bool amdgpu_signal_await(amdgpu_device_t *device, hsa_signal_t signal)
{
    enum { WAIT = 100000000 }; // then it looks whether the device has failed
    while (device->hsa->hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, WAIT,
                                                  HSA_WAIT_STATE_BLOCKED) > 0)
        if (atomic_load(&device->failed)) return false;
    return true;
}

static uint64_t word_at(uint64_t address, uint64_t offset)
{
    return *(const uint64_t *)(uintptr_t)(address + offset);
}

// A tool that watches the queue takes the place of its doorbell: then only HSA's functions will do.
bool amdgpu_ring_is_watched(const hsa_queue_t *queue)
{
    return (int64_t)word_at(queue->doorbell_signal.handle, SIGNAL_KIND) != HARDWARE;
}

keel_status_t amdgpu_ring_describe(hsa_queue_t *queue, uint32_t room, ring_queue_t *ring)
{
    uint64_t doorbell = queue->doorbell_signal.handle;
    if (amdgpu_ring_is_watched(queue))
        return KEEL_ERROR(KEEL_UNSUPPORTED,
                          "the GPU cannot schedule: the doorbells are not the hardware's own; a "
                          "tool watches the queues, or the GPU is too old");
    *ring = (ring_queue_t){
        .packets = (uintptr_t)queue->base_address,
        .mask = queue->size - 1,
        .write = (uintptr_t)queue + QUEUE_WRITE,
        .doorbell = word_at(doorbell, SIGNAL_DOORBELL),
        .room = room,
    };
    return NULL;
}

// A tool has a ring of its own, in memory of the host, in front of the hardware's.
static keel_status_t place_ask(const amdgpu_device_t *device, const hsa_queue_t *queue, bool *local)
{
    hsa_amd_pointer_info_t info = {.size = sizeof info};
    if (amdgpu_ring_is_watched(queue))
        return KEEL_ERROR(KEEL_UNSUPPORTED,
                          "a tool watches the queues, so nothing tells where their rings lie; open "
                          "the device without the option rings");
    KEEL_TRY(
        HSA_CALL(device->hsa, hsa_amd_pointer_info, queue->base_address, &info, NULL, NULL, NULL));
    *local = amdgpu_device_has(device, info.agentOwner);
    return NULL;
}

static keel_status_t ring_check(amdgpu_device_t *device, uint32_t node, bool wanted)
{
    enum { SMALL = 64 }; // packets of a queue to look at
    hsa_queue_t *queue = NULL;
    bool local = false;
    KEEL_TRY(amdgpu_ring_make(device, node, SMALL, &queue));
    keel_status_t status = place_ask(device, queue, &local);
    amdgpu_ring_destroy(device, queue);
    if (status || local == wanted) return status;
    if (!wanted)
        return KEEL_ERROR(KEEL_UNSUPPORTED,
                          "rings=host: the rings of queues lie in the GPU's memory; unset "
                          "HSA_ALLOCATE_QUEUE_DEV_MEM before the program starts");
    return KEEL_ERROR(KEEL_UNSUPPORTED,
                      "rings=device: the rings of queues lie in memory of the host; set "
                      "HSA_ALLOCATE_QUEUE_DEV_MEM=1 before the program starts, with ROCm 6.4 and a "
                      "GPU whose memory the host sees whole");
}

keel_status_t amdgpu_rings_check(amdgpu_device_t *device, bool wanted)
{
    for (uint32_t i = 0; i < device->node_count; i++) KEEL_TRY(ring_check(device, i, wanted));
    return NULL;
}
