// SPDX-License-Identifier: Apache-2.0
#include "kit/call.h"

#include "base/log.h"

void keel_call_defer(keel_host_call_t *call)
{
    if (!call_defer(call))
        log_say(KEEL_LOG_ERROR, "keel_call_defer has no effect: the thread is in no such call");
}

void keel_call_complete(keel_host_call_t *call, keel_status_t status)
{
    if (call_complete(call, status)) return;
    log_say(KEEL_LOG_ERROR,
            "keel_call_complete has no effect: the call has ended, or was not deferred");
    keel_status_release(status);
}
