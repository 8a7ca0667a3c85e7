#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh BUILD COMPILER [-portable]: installs a build, which may be a portable one, into a prefix,
# moves that elsewhere, and builds a user of it by pkg-config and by find_package, with the shared
# and with the static library. Then drivers outside of the tree: a copy of null and the toy of
# examples/driver, linked in and loaded.
set -eu
build=$1 cc=$2 portable=${3:-}
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$build" --prefix "$folder/first" >/dev/null
prefix=$folder/moved
mv "$folder/first" "$prefix"

for file in include/keel/keel.h include/keel/driver/driver.h bin/keel; do
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

works() { # works NAME COMMAND...
    name=$1
    shift
    if "$@" >"$folder/output" 2>&1; then
        echo "$name: works"
    else
        echo "$name: does not work:"
        tail -20 "$folder/output"
        status=1
    fi
}
refused() { # refused NAME WORDS COMMAND...
    name=$1 words=$2
    shift 2
    if ! "$@" >"$folder/output" 2>&1 && grep -q "$words" "$folder/output"; then
        echo "$name: is refused"
    else
        echo "$name: does not say: $words"
        tail -20 "$folder/output"
        status=1
    fi
}

# Drivers outside of the tree. What docs/new-driver.md has a newcomer do: copy null, rename it.
drivers=$folder/drivers tree=$here/../.. keel=$prefix/bin/keel
cp -r "$here/driver" "$drivers"
cp "$tree"/examples/driver/*.[ch] "$drivers"
sed -e 's/null_/skeleton_/g' -e 's/"null"/"skeleton"/' -e 's,null://,skeleton://,g' \
    "$tree/src/drivers/null/null.c" >"$drivers/skeleton.c"
echo 'KEEL_DRIVER_ENTRY(skeleton_driver)' >>"$drivers/skeleton.c"
cmake -S "$drivers" -B "$drivers/build" -G Ninja -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$drivers/build" >/dev/null
skeleton=$drivers/build/libskeleton.so toy=$drivers/build/libtoy.so
expects=$tree/conformance/expect

works "a driver linked in, shared" "$drivers/build/linked_keel"
works "a driver linked in, static" "$drivers/build/linked_keel_static"
works "a driver loaded, shared" "$drivers/build/loads_keel" "$skeleton" skeleton://
works "a driver loaded, static and exported" "$drivers/build/loads_exported" "$skeleton" skeleton://
refused "a driver loaded, static" "second copy of Keel" \
    "$drivers/build/loads_keel_static" "$skeleton" skeleton://
works "a copy of null" "$keel" --driver="$skeleton" conformance --device=skeleton:// \
    --expect="$expects/null$portable.txt"
works "the toy" "$keel" --driver="$toy" conformance --device=toy:// \
    --expect="$expects/toy$portable.txt"
works "the toy, lost" "$drivers/build/loses" "$toy"
"$keel" --driver="$skeleton" --driver="$toy" devices >"$folder/devices"
works "the copy of null is listed" grep '^skeleton://' "$folder/devices"
works "the toy is listed" grep '^toy://' "$folder/devices"

# Not linked with Keel at all; for another version; not a driver; with a name that is taken.
compile() { # compile NAME: a shared object of skeleton.c as it stands
    $cc -shared -fPIC $(pkg-config --cflags keel) "$drivers/skeleton.c" -o "$folder/$1.so"
}
compile plain
works "a driver that is linked with nothing" "$keel" --driver="$folder/plain.so" \
    conformance --device=skeleton:// --filter='queue.*'
refused "a driver loaded, static, linked with nothing" "does not export" \
    "$drivers/build/loads_keel_static" "$folder/plain.so" skeleton://
sed -i 's/KEEL_DRIVER_HEAD/.version = KEEL_DRIVER_VERSION + 1/' "$drivers/skeleton.c"
compile newer
refused "a driver of another version" "was built for version 2 .* this library has version 1" \
    "$keel" --driver="$folder/newer.so" devices
echo 'void keel_of_tomorrow(void); void call(void); void call(void) { keel_of_tomorrow(); }' \
    >>"$drivers/skeleton.c"
compile newest
refused "one that calls what this library has not" "was built for version 2" \
    "$keel" --driver="$folder/newest.so" devices
refused "a library that is no driver" "exports no keel_driver_entry" \
    "$keel" --driver="$libdir/libkeel.so" devices
refused "a driver of a name that is taken" "a driver called 'skeleton' already" \
    "$keel" --driver="$folder/plain.so" --driver="$skeleton" devices

# A user in C++, and one whose bindings nothing keeps. A driver in C++ has the same structs.
if command -v g++ >/dev/null; then
    g++ -std=c++17 -Wall -Wextra -Wpedantic -Werror "$here/consumer.cc" -o "$folder/cxx" \
        $(pkg-config --cflags --libs keel) -Wl,-rpath,"$libdir"
    expect "C++" "$folder/cxx" shared
    sed 's/const auto table/const keel_refs_t table/' "$here/consumer.cc" >"$folder/careless.cc"
    refused "bindings that nothing keeps" "deleted function" \
        g++ -std=c++17 -c "$folder/careless.cc" -o "$folder/careless.o" $(pkg-config --cflags keel)
    for language in c c++; do
        g++ -x $language $(pkg-config --cflags keel) "$drivers/layout.c" -o "$folder/layout"
        "$folder/layout" >"$folder/layout.$language"
    done
    works "C and C++ agree" cmp "$folder/layout.c" "$folder/layout.c++"
fi

# The software GPU, where it was built and there is a program to see it.
if [ -e "$build/sim/amd/libkeelkfd.so" ] && command -v rocminfo >/dev/null; then
    if "$prefix/bin/keel" sim --gpus=gfx906 -- rocminfo | grep -q 'amdhsa--gfx906'; then
        echo "keel sim: works"
    else
        echo "keel sim: does not work"
        status=1
    fi
fi
exit $status
