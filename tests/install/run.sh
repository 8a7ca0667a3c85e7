#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD COMPILER: installs a build into a prefix, moves that elsewhere, and builds a user of
# it by pkg-config and by find_package, with the shared and with the static library.
set -eu
build=$1 cc=$2
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$build" --prefix "$folder/first" >/dev/null
prefix=$folder/moved
mv "$folder/first" "$prefix"

for file in include/keel/keel.h bin/keel; do
    [ -e "$prefix/$file" ] || { echo "$file was not installed"; exit 1; }
done

PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name keel.pc)")
export PKG_CONFIG_PATH
libdir=$(pkg-config --variable=libdir keel)
version=-DPACKAGE_VERSION=\"$(pkg-config --modversion keel)\"
$cc "$version" "$here/consumer.c" -o "$folder/shared" \
    $(pkg-config --cflags --libs keel) -Wl,-rpath,"$libdir"
$cc "$version" "$here/consumer.c" -o "$folder/static" \
    $(pkg-config --static --cflags --libs keel | sed 's/-lkeel/-l:libkeel.a/')

cp -r "$here" "$folder/user"
cmake -S "$folder/user" -B "$folder/package" -G Ninja -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$folder/package" >/dev/null

status=0
expect() { # expect NAME PROGRAM shared|static
    linked=$(ldd "$2" | grep -c 'libkeel\.so\.0 ' || true)
    if "$2" && [ "$linked" = "$([ "$3" = shared ] && echo 1 || echo 0)" ]; then
        echo "$1, $3: works"
    else
        echo "$1, $3: does not work"
        status=1
    fi
}
expect pkg-config "$folder/shared" shared
expect pkg-config "$folder/static" static
expect find_package "$folder/package/with_keel" shared
expect keel_add_kernels "$folder/package/with_kernels" shared
expect find_package "$folder/package/with_keel_static" static

# A change of a header that kernels include compiles them again, by either generator, in folders
# whose names are not easy.
for generator in Ninja "Unix Makefiles"; do
    build_folder="$folder/by $generator"
    cmake -S "$folder/user" -B "$build_folder" -G "$generator" -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
    cmake --build "$build_folder" --target my_kernels >/dev/null
    cmp -s "$build_folder/my_kernels.keel" "$folder/package/my_kernels.keel" ||
        { echo "two builds make two containers"; status=1; }
    sed -i 's/FACTOR .*/FACTOR 3/' "$folder/user/twice.h"
    cmake --build "$build_folder" --target my_kernels >/dev/null
    if cmp -s "$build_folder/my_kernels.keel" "$folder/package/my_kernels.keel"; then
        echo "$generator: a new header does not compile the kernels again"
        status=1
    else
        echo "$generator, a new header: works"
    fi
    cp "$here/twice.h" "$folder/user"
done

# The software GPU, where it was built and there is a program to see it.
if [ -e "$build/sim/amd/libhsakmt.so.1" ] && command -v rocminfo >/dev/null; then
    if "$prefix/bin/keel" sim --gpus=gfx906 -- rocminfo | grep -q 'amdhsa--gfx906'; then
        echo "keel sim: works"
    else
        echo "keel sim: does not work"
        status=1
    fi
fi
exit $status
