#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make.sh KEEL_CC [FILE]: makes library.co, or FILE instead, of the device library, of which the
# driver takes the code object of its target (src/builtin/bundle.sh). $TARGETS are others than those
# of the tree, for a build that is for few GPUs only.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
export TARGETS="${TARGETS:-gfx900 gfx906 gfx908 gfx90a gfx942 gfx1030 gfx1100 gfx1201}"
exec "$here/../../../builtin/bundle.sh" "$1" "$here/library.c" "${2:-$here/../library.co}"
