#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# compile.sh BUILD: compiles the kernels of kernels.py for gfx90a into BUILD/triton/gfx90a. pip
# fetches Triton into BUILD/triton, if it is not there: 260 MB, 0.9 GB unpacked. It needs no GPU and
# no PyTorch. TRITON names another version. Ends with 77, and says why, where it cannot be had.
set -eu
version=${TRITON:-3.9.0}
folder=${1:?give the folder of the build}/triton
python=$folder/$version
here=$(dirname "$0")

lacking() {
    echo "$*"
    exit 77
}

if [ ! -e "$python" ]; then
    python3 -m pip --version >/dev/null 2>&1 || lacking "needs pip, of Python 3"
    rm -rf "$python.part"
    mkdir -p "$folder"
    python3 -m pip install --quiet --no-deps --only-binary=:all: --target="$python.part" \
        "triton==$version" || lacking "Triton $version cannot be had here, see above"
    mv "$python.part" "$python"
fi
mkdir -p "$folder/gfx90a"
PYTHONPATH=$python TRITON_CACHE_DIR=$folder/cache python3 "$here/kernels.py" gfx90a "$folder/gfx90a"
