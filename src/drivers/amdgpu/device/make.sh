#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make.sh KEEL_CC [FILE]: makes library.co, or FILE instead, of the device library, of which the
# driver takes the code object of its target (src/builtin/bundle.sh).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/../../../builtin/bundle.sh" "$1" "$here/library.c" "${2:-$here/../library.co}"
