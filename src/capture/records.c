// SPDX-License-Identifier: Apache-2.0
// What Keel's own library asks, so that operations are not in the trace twice.
#include <stdbool.h>
#include <string.h>

#include "capture/cuda/tool.h"
#include "capture/hsa/queue.h"
#include "capture/hsa/tool.h"

__attribute__((visibility("default"))) bool keeltrace_records(const char *runtime);
__attribute__((visibility("default"))) void keeltrace_leave_queues(bool leave);

bool keeltrace_records(const char *runtime)
{
    if (strcmp(runtime, "cuda") == 0) return cuda_is_recorded();
    return strcmp(runtime, "hip") == 0 && hsa_is_recorded();
}

void keeltrace_leave_queues(bool leave)
{
    queue_leave(leave);
}
