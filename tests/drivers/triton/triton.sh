#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# triton.sh BUILD: kernels that Triton compiles, as they are, on hip:// and amdgpu:// above the
# software AMD GPU. The last line is `N passed, N failed, N skipped`, for the two drivers. Ends with
# 77, and says why, where Triton cannot be had (compile.sh).
set -u
build=$(realpath "${1:?give the folder of the build}")
here=$(dirname "$0")
passed=0 failed=0 skipped=0

"$here/compile.sh" "$build" || exit
for device in hip://0 amdgpu://0; do
    echo "$device"
    timeout --kill-after=10 600 "$build/keel" sim --gpus=gfx90a -- \
        "$build/tests/drivers/triton/test_drivers_triton" $device "$build/triton/gfx90a"
    case $? in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) ;;
    *) failed=$((failed + 1)) ;;
    esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
