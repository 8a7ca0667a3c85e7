#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# build.sh FOLDER [ROOM...]: makes libkeel.dylib for arm64 and x86-64 Macs, for phones and for their
# simulator on Macs, of all rooms of the library or of those that are named, with clang and lld
# alone: no SDK of Apple's is needed, as system.h declares what the library uses of macOS and iOS.
# Nothing of the result is run. Fails if a file does not compile without warnings, or uses what
# system.h does not have.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$1
shift
cd "$root"
rooms=$(sed -n '/^set(rooms/,/)/p' src/CMakeLists.txt | tr '()' '  ' | sed 's/set *rooms//')
all=yes
[ $# -eq 0 ] || { rooms=$* all=; }
headers="assert ctype dirent dlfcn errno fcntl inttypes limits math poll pthread sched signal spawn
    stdio stdlib string strings sys/file sys/mman sys/mount sys/resource sys/stat sys/time sys/types
    sys/wait time unistd"

mkdir -p "$folder/include/sys"
for header in $headers; do
    echo '#include "system.h"' > "$folder/include/$header.h"
done
{
    for room in $rooms; do ls "src/$room"/*.c; done
    [ $# -gt 0 ] || echo src/drivers/register.c
} > "$folder/sources"

# Files that the library carries inside.
embed() {
    sed "s|@name@|$1|; s|@copy@|$root/$2|" cmake/embed.c.in > "$folder/$1.c"
    echo "$folder/$1.c" >> "$folder/sources"
}
if [ $# -eq 0 ]; then
    embed cuda_builtin src/drivers/cuda/builtin.ptx
    embed hip_builtin src/drivers/hip/builtin.co
    embed amdgpu_library src/drivers/amdgpu/library.co
    embed amdgpu_library_traced src/drivers/amdgpu/library_traced.co
fi

# One file for one system: compile TARGET SOURCE
defines=
for library in HWLOC URING ZSTD LZ4 ZLIB; do defines="$defines -DKEEL_HAVE_$library=0"; done
cat > "$folder/compile" <<END
object=$folder/\$1/\$(echo "\$2" | tr '/' '_').o
clang-19 --target=\$1 -nostdlibinc -isystem $folder/include -isystem tests/macos \\
    -Iinclude -Isrc -D_DARWIN_C_SOURCE -DKEEL_PORTABLE=1 $defines \\
    -std=c17 -O1 -fvisibility=hidden \\
    -Wall -Wextra -Wundef -Wmissing-prototypes -Wno-unused-parameter -Werror -c "\$2" -o "\$object"
END

# What the objects need and none of them has is declared, or is the compiler's.
undeclared() {
    llvm-nm-19 --quiet --undefined-only --just-symbol-name "$folder/$1"/*.o | grep '^_' | sort -u \
        > "$folder/$1/needs"
    llvm-nm-19 --quiet --defined-only --just-symbol-name "$folder/$1"/*.o | grep '^_' | sort -u \
        > "$folder/$1/has"
    comm -23 "$folder/$1/needs" "$folder/$1/has" | sed 's/^_//' | while read -r name; do
        case $name in
        __stack_chk_* | _tlv_bootstrap | __cxa_atexit | __dso_handle) continue ;;
        bzero | __bzero | memset_pattern16) continue ;;
        esac
        grep -qw -- "$name" tests/macos/system.h || echo "$name"
    done
}

# build TARGET PLATFORM VERSION
build() {
    rm -rf "${folder:?}/$1"
    mkdir -p "$folder/$1"
    xargs -P 2 -n 1 sh "$folder/compile" "$1" < "$folder/sources"
    missing=$(undeclared "$1")
    if [ "$all" ] && [ "$missing" ]; then
        echo "$2 may not have these: $missing" >&2
        exit 1
    fi
    ld64.lld-19 -dylib -arch "${1%%-*}" -platform_version "$2" "$3" "$3" \
        -undefined dynamic_lookup -o "$folder/$1/libkeel.dylib" "$folder/$1"/*.o
    echo "$1: $(wc -l < "$folder/sources") files compiled and linked"
}
build arm64-apple-macos13 macos 13.0
build x86_64-apple-macos13 macos 13.0
build arm64-apple-ios16 ios 16.0
build arm64-apple-ios16-simulator ios-simulator 16.0
