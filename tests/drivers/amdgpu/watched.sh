#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# watched.sh KEEL CHAIN_TEST LIBRARY: the chain's test where libkeeltrace.so, the library, watches
# the queues, as any tool does, because Keel itself is not traced.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
HSA_TOOLS_LIB=$3 RTL_OUTPUT=$folder/%p.db RTL_MODE=standard "$1" sim --gpus=gfx90a -- "$2"
