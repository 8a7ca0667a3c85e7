// SPDX-License-Identifier: Apache-2.0
#include <keel/driver/command.h>

void keel_call_defer(keel_host_call_t *call)
{
    call->deferred = true;
}

void keel_call_complete(keel_host_call_t *call, keel_status_t status)
{
    call->status = status;
    // acq_rel: pairs with the driver's; if the call has returned already, it is ours to end.
    uint32_t before =
        atomic_fetch_or_explicit(&call->end, KEEL_CALL_COMPLETED, memory_order_acq_rel);
    if (before & KEEL_CALL_RETURNED) call->done(call, status);
}
