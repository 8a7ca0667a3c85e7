#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# make.sh KEEL_CC [FILE]: makes ../raw.co, or FILE instead, of raw.c (src/builtin/bundle.sh).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/../../src/builtin/bundle.sh" "$1" "$here/raw.c" "${2:-$here/../raw.co}"
