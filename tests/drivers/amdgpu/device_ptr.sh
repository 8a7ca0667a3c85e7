#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# device_ptr.sh CLANG: host code that reads or writes through a marked pointer does not compile, nor
# does one that loses the mark.
set -eu
cd "$(dirname "$0")/../../.."
compiles() {
    printf '%s\n' '#include "drivers/amdgpu/host/base/device.h"' \
        "int try(KEEL_AMDGPU_DEVICE_PTR int *at); int try(KEEL_AMDGPU_DEVICE_PTR int *at) { $2 }" |
        "$1" -std=c17 -D_GNU_SOURCE -Iinclude -Isrc -Werror -fsyntax-only -xc - 2>/dev/null
}
compiles "$1" 'return at != 0;' || { echo "what is right does not compile"; exit 1; }
for wrong in 'return *at;' '*at = 1; return 0;' 'int *plain = at; return plain != 0;'; do
    ! compiles "$1" "$wrong" || { echo "it compiles: $wrong"; exit 1; }
done
