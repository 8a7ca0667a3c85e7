// SPDX-License-Identifier: Apache-2.0
// Rings of packets, and the runs whose packets are in there.
//
//     ring.c        HSA queues: their rings, and packets in there
//     stamp.c       when packets ran, for a trace
//     flight.c      runs whose packets are in a ring, and their completion
//     launch.c      kernels as packets of a run
#ifndef KEEL_SRC_DRIVERS_AMDGPU_HOST_QUEUE_QUEUE_H_
#define KEEL_SRC_DRIVERS_AMDGPU_HOST_QUEUE_QUEUE_H_

#include "drivers/amdgpu/device/ring.h"
#include "drivers/amdgpu/host/base/device.h"

typedef struct amdgpu_queue_t {
    keel_queue_t base;
    hsa_queue_t *queue;               // owned
    ring_queue_t *shared;             // owned: for a scheduler on the GPU; NULL: there is none
    struct amdgpu_control_t *control; // that scheduler
    block_t *advances;                // owned: what it has of the queue
    struct amdgpu_queue_t *next;      // of those that it has
    run_queue_t runs;
} amdgpu_queue_t;

// A submission that was started: its commands become packets.
struct amdgpu_run_t {
    run_t base;
    bool flying;         // its last packet was written, and the signal tells when it is over
    bool unwatched;      // by HSA, so the device's thread looks at the signal; under the lock
    uint32_t packets;    // in the ring
    bool behind;         // of these, one has the barrier bit and others in front of it
    hsa_signal_t signal; // owned; 0: none yet
    struct {
        amdgpu_run_t *next, **link;
    } flight;                // in amdgpu_device_t.flights, or in the scheduler's runs
    block_t *blocks;         // owned: what packets in the ring read
    struct record_t *record; // what the scheduler on the GPU has; NULL: it is the host's
    bool over;               // the GPU has ended the record; set where it is traced
    struct late_t *lates;    // of the record
    block_t *staging;        // owned: what is needed until the end
    uint32_t *peek;          // in staging: three words; NULL: none yet
    uint64_t peek_at;
    struct {
        const keel_command_t *command; // that packets are being made for; NULL: they are not traced
        const keel_cmd_execute_t *execute;
        uint32_t packets; // of it so far
        amdgpu_stamp_t *newest;
    } stamps;
};

static inline amdgpu_queue_t *amdgpu_queue(const keel_queue_t *queue)
{
    return (amdgpu_queue_t *)(void *)queue;
}

static inline amdgpu_device_t *amdgpu_run_device(const amdgpu_run_t *run)
{
    return amdgpu_device(run->base.submission.queue->device);
}

// Which GPU of its device a run is for.
static inline uint32_t amdgpu_run_node(const amdgpu_run_t *run)
{
    return run->base.submission.queue->info.node;
}

// Memory that packets of the run read, which both see, until they have ended.
KEEL_MUST_USE static inline keel_status_t amdgpu_run_piece(amdgpu_run_t *run, uint64_t size,
                                                           void **data, uint64_t *address)
{
    return blocks_piece(&amdgpu_run_device(run)->blocks, NULL, &run->blocks, size ? size : 1, data,
                        address);
}

// Sets a slot of a trace ring, or one beside it, to what the GPU expects.
static inline void amdgpu_slot_reset(ring_slot_t *slot)
{
    *slot = (ring_slot_t){.signal = RING_SIGNAL, .open = 1};
}

static inline bool amdgpu_slot_is_complete(ring_slot_t *slot)
{
    // acquire: pairs with who closed it, the GPU or its packet processor.
    return !PROTOCOL_LOAD(&slot->open, __ATOMIC_ACQUIRE);
}

// ring.c
// An HSA queue of a GPU, for packets of several threads.
keel_status_t amdgpu_ring_make(amdgpu_device_t *device, uint32_t node, uint32_t size,
                               hsa_queue_t **queue) KEEL_MUST_USE;
// Destroys a queue that amdgpu_ring_make has made. Not on a thread of HSA's.
void amdgpu_ring_destroy(amdgpu_device_t *device, hsa_queue_t *queue);
// A queue that amdgpu_ring_make has made has failed; HSA calls this.
void amdgpu_ring_failed(hsa_status_t status, hsa_queue_t *queue, void *device);
// Writes a packet of 64 bytes: `header` is its first four. Returns its number.
uint64_t amdgpu_packet_write(const hsa_symbols_t *hsa, hsa_queue_t *queue, const void *packet,
                             uint32_t header);
// Until the packet of a signal has ended. False: the device has failed, and it may never end.
bool amdgpu_signal_await(amdgpu_device_t *device, hsa_signal_t signal);
// Whether a tool stands between the queue and the hardware; or the GPU is too old for a doorbell
// that the GPU itself could ring.
bool amdgpu_ring_is_watched(const hsa_queue_t *queue);
// How packets are written into a queue without HSA's functions. KEEL_UNSUPPORTED: a tool watches
// it.
keel_status_t amdgpu_ring_describe(hsa_queue_t *queue, uint32_t room,
                                   ring_queue_t *ring) KEEL_MUST_USE;
// That the rings of queues lie in the GPU's own memory, or in the host's, as wanted.
// KEEL_UNSUPPORTED.
keel_status_t amdgpu_rings_check(amdgpu_device_t *device, bool wanted) KEEL_MUST_USE;

// stamp.c
// Whether the device is traced; before its first queue.
void amdgpu_stamps_open(amdgpu_device_t *device);
// Packets of the run are made for a command from here on; NULL: for none.
void amdgpu_stamps_of(amdgpu_run_t *run, const keel_command_t *command,
                      const keel_cmd_execute_t *execute);
// Has a packet tell its times, if it is made for a command and the device is traced.
void amdgpu_stamp(amdgpu_run_t *run, hsa_kernel_dispatch_packet_t *packet);
// The packets of the run have ended: puts their times into the trace. False: the times of some have
// not come, and the GPU may still write them into the run's blocks.
bool amdgpu_stamps_record(amdgpu_run_t *run);
// A time of a GPU's clock, as the trace has times.
uint64_t amdgpu_boot_ns(const amdgpu_device_t *device, uint32_t node, uint64_t ticks);
// A command of a run has ended, or one of its packets: puts its times into the trace. The first one
// has all the bytes.
void amdgpu_command_record(const amdgpu_run_t *run, const keel_command_t *command,
                           const keel_cmd_execute_t *execute, uint32_t packet,
                           const ring_slot_t *slot);

// flight.c
// A signal for the run, before its first packet.
keel_status_t amdgpu_signal_need(amdgpu_run_t *run) KEEL_MUST_USE;
void amdgpu_signals_destroy(amdgpu_device_t *device);
// Keeps a list of blocks that the GPU may still write to, until the device goes. Any thread.
void amdgpu_late_keep(amdgpu_device_t *device, block_t *list);
// The run is over: gives back what it has.
void amdgpu_flight_finish(run_t *run);
// Writes the last packet and tells the GPU, if there are any; the run waits for it.
void amdgpu_flight_commit(run_t *run);
// The packets have ended: takes back what they needed.
void amdgpu_flight_settle(run_t *run);
// Ends those that have ended and that HSA does not watch. True: there are some to look for again.
// The device's thread.
bool amdgpu_flights_look(amdgpu_device_t *device);
// The oldest submission of the queue whose packets are in its ring; 0: none are.
uint64_t amdgpu_flight_first(amdgpu_device_t *device, const keel_queue_t *queue);
// The device is lost: the host ends what is in its rings.
void amdgpu_flights_end(amdgpu_device_t *device);

// launch.c
// The scopes of a packet's fences, in its header. docs/amdgpu.md says which packet needs which.
enum {
    AMDGPU_ACQUIRE = 3 << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE, // the bits
    AMDGPU_RELEASE = 3 << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE,
    AMDGPU_ACQUIRE_AGENT = HSA_FENCE_SCOPE_AGENT << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE,
    AMDGPU_ACQUIRE_SYSTEM = HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE,
    AMDGPU_RELEASE_AGENT = HSA_FENCE_SCOPE_AGENT << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE,
    AMDGPU_RELEASE_SYSTEM = HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE,
};
// A kernel with `size` bytes of arguments, for which it has a copy made.
typedef struct amdgpu_launch_t {
    const amdgpu_kernel_t *kernel;
    uint32_t groups[3], group_size[3];
    uint32_t local; // bytes of memory of a workgroup, in all
    const void *arguments;
    uint32_t size;
} amdgpu_launch_t;
// The packet of a launch whose arguments lie at an address; the header has the fences, and no
// barrier.
void amdgpu_packet_make(const amdgpu_launch_t *launch, uint64_t arguments, uint32_t fences,
                        hsa_kernel_dispatch_packet_t *packet);
// Writes its packet, for a run that has room for one.
keel_status_t amdgpu_launch(amdgpu_run_t *run, const amdgpu_launch_t *launch) KEEL_MUST_USE;

#endif
