#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cache.sh KEEL PROGRAM FOLDER: a HIP program compiles once, and then finds what it compiled, unless
# that is damaged. A file that is made anew is another one.
set -eu
keel=$1 program=$2 folder=$3
rm -rf "$folder"

run() { "$keel" sim --gpus=gfx90a --cache="$folder" -- "$program"; }
files() { (cd "$folder" && ls -i); }

run
made=$(files)
[ -n "$made" ] || { echo "nothing was kept"; exit 1; }
run
[ "$(files)" = "$made" ] || { echo "something was compiled twice"; exit 1; }

for file in "$folder"/*; do
    printf x | dd of="$file" bs=1 seek=64 conv=notrunc 2>/dev/null
done
run
[ "$(files)" != "$made" ] || { echo "damaged files were used"; exit 1; }

for file in "$folder"/*; do : >"$file"; done
run

said=$("$keel" sim --cache=/nothing/there -- true 2>&1) && said="a bad folder was taken"
case $said in
*"--cache: /nothing/there: No such file"*) ;;
*)
    echo "it said: $said"
    exit 1
    ;;
esac
