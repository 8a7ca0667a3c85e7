// SPDX-License-Identifier: Apache-2.0
#include "tools/trace/trace.h"

int trace_complain(keel_status_t status)
{
    keel_status_print(status, stderr);
    keel_status_release(status);
    return 1;
}
