// SPDX-License-Identifier: Apache-2.0
// A packet that ends when its signal falls to 0; all behind it in the queue wait for that.
#ifndef KEEL_TESTS_DRIVERS_AMDGPU_GATE_H_
#define KEEL_TESTS_DRIVERS_AMDGPU_GATE_H_

#include "drivers/amdgpu/host/queue/queue.h"
#include "unit.h"

// Puts one into a queue. The signal is the caller's to destroy.
static inline hsa_signal_t gate_put(const hsa_symbols_t *hsa, hsa_queue_t *queue)
{
    hsa_barrier_and_packet_t packet = {0};
    const uint32_t header = HSA_PACKET_TYPE_BARRIER_AND | 1u << HSA_PACKET_HEADER_BARRIER;
    assert_int_equal(hsa->hsa_signal_create(1, 0, NULL, &packet.dep_signal[0]), HSA_STATUS_SUCCESS);
    uint64_t number = amdgpu_packet_write(hsa, queue, &packet, header);
    hsa->hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)number);
    return packet.dep_signal[0];
}

#endif
