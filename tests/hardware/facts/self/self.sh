#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# self.sh PROGRAM: what it says of the facts of self.c.
set -u
said=$("$1" --lib=libc.so.6 --limit=2 | grep -v '^  ' | sed 's/: line [0-9]*/: line N/')
wanted="passed  a.true: 7
FAILED  b.untrue: it is not so: line N: not true: fact_library == NULL
passed  c.marked: differs, as is marked: a reason
FAILED  d.agrees: it is so, and marked as different: no reason
FAILED  e.broken: it could not be tried: line N: not true: fact_library == NULL
skipped f.skipped: nothing to see
skipped g.not_run: it would crash
FAILED  h.crashes: signal 6
FAILED  i.hangs: it did not end in time
passed  j.waits
3 passed, 5 failed, 2 skipped"
[ "$said" = "$wanted" ] || { echo "$said"; exit 1; }
"$1" --lib=libc.so.6 --filter='d.*' >/dev/null && exit 1
"$1" --lib=libc.so.6 --filter='[acj].*' || exit 1
"$1" --lib=no.such.library
[ $? = 77 ]
