#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make_traced.sh KEEL_CC [FILE]: makes library_traced.co, or FILE instead: the device library with
# the trace ring (ring.h), which is loaded when a trace is written. $FEATURES are the bits of what
# is in it: 13 for operations, values and messages; 31 for zones and the GPU's own texts, too.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
export FLAGS="-DRING_FEATURES=${FEATURES:-13}" LIMIT=131072
exec "$here/make.sh" "$1" "${2:-$here/../library_traced.co}"
