#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# listed.sh LIBRARY HIP: of the functions that libamdhip64.so exports, LIBRARY has all that launch,
# copy, set, allocate, free and wait, and those of streams, events, graphs and modules.
set -eu
functions() { # functions LIBRARY WHICH
    nm -D --defined-only "$1" | sed 's/^[0-9a-f]* [TWi] //; s/@.*//' | grep -E "$2" | sort -u
}
memory='Malloc|Free|Memcpy|Memset|Array3?D?(Create|Destroy)|Host(Alloc|Register|Unregister)'
memory="$memory|Mem(Pool|Create|Release|Map|Unmap|Address|AllocHost|AllocPitch|Prefetch|Advise)"
memory="$memory|ExternalMemory|ShareableHandle|Ipc"
others='Launch|Synchronize|Stream|Event|Graph|Module|Library|^hipLink|ExternalSemaphore|CtxReset'
# Not of them: graphics; and what returns a device, and no error.
has=$(functions "$2" '^(hip[A-Z]|_Z24hip)' | grep -E "$memory|$others" |
    grep -vE '^(hipGraphics.*|hipGetStreamDeviceId)$')
[ "$(echo "$has" | wc -l)" -ge 200 ] || { echo "$2 has too few functions: $has"; exit 1; }
if echo "$has" | grep -vxF "$(functions "$1" hip)"; then
    echo "^ src/capture/hip/calls.def lacks them"
    exit 1
fi
