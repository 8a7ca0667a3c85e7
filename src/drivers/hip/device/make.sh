#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make.sh KEEL_CC [FILE]: makes builtin.co, or FILE instead, of the built-in kernels, as HIP loads
# it (src/builtin/bundle.sh).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
builtin=$here/../../../builtin
exec "$builtin/bundle.sh" "$1" "$builtin/kernels.c" "${2:-$here/../builtin.co}"
