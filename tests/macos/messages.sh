#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# messages.sh FOLDER: has an Objective-C compiler send each message of the driver's table, and
# compare its name and types with Metal's interfaces: Apple's on a Mac, those of interfaces.h
# elsewhere. Then misspells one, and mistakes a type, to see that this is noticed.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
table=$root/src/drivers/metal/base/selectors.def
folder=$1
mkdir -p "$folder"
cc=clang-19
interfaces="-ffreestanding -nostdlibinc -include $root/tests/macos/interfaces.h"
if [ "$(uname)" = Darwin ]; then
    cc=clang
    interfaces="-include Foundation/Foundation.h -include Metal/Metal.h"
elif ! command -v clang-19 > /dev/null || ! command -v python3 > /dev/null; then
    echo "needs clang-19 and python3"
    exit 77
fi
targets="arm64-apple-macos13 x86_64-apple-macos13"
phones="arm64-apple-ios16 arm64-apple-ios16-simulator" # Apple's headers for these come with Xcode
[ "$(uname)" = Darwin ] || targets="$targets $phones"

# check TABLE TARGET: interfaces are several words
check() {
    python3 "$root/tests/macos/messages.py" "$1" > "$folder/messages.m"
    # shellcheck disable=SC2086
    $cc --target="$2" -fblocks -fsyntax-only -Wall -Wextra -Wconversion -Werror \
        -Wno-objc-root-class -Wno-deprecated-declarations $interfaces "$folder/messages.m"
}

refuses() {
    if check "$1" arm64-apple-macos13 2> "$folder/refusal"; then
        echo "the compiler takes a table with $2" >&2
        exit 1
    fi
}

for target in $targets; do check "$table" "$target"; done
rows=$(grep -cE '^(X|LARGE)\(' "$table")
sent=$(sed -n 's/.*: \([0-9]*\) messages.*/\1/p' "$folder/messages.m")
if [ "$rows" != "$sent" ]; then
    echo "the table has $rows rows, and $sent messages were sent" >&2
    exit 1
fi
sed 's/newBufferWithLength:/newBufferOfLength:/' "$table" > "$folder/misspelt.def"
refuses "$folder/misspelt.def" "a misspelt selector"
sed 's/X(uint64_t, gpu_address/X(uint32_t, gpu_address/' "$table" > "$folder/mistaken.def"
refuses "$folder/mistaken.def" "an address of 32 bits"
echo "$rows messages have the names and types of Metal's interfaces"
