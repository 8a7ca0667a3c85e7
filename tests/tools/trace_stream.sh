#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# trace_stream.sh KEEL SAXPY URI STEPS [DECODE]: operations of a GPU, here one in software, with
# times of the device's clock; and those of the host. With DECODE, recordings as graphs, too.
keel=$1
saxpy=$2
uri=$3
steps=$4
decode=${5:-}
. "$(dirname "$0")/trace_common.sh"

column() { # column NAME NUMBER: that column of the operations of a name
    grep -F "operation,\"$1\"," one.csv | cut -d, -f"$2"
}

"$keel" trace -o one -- "$saxpy" "$uri" >out 2>err || fail "the program failed"
! grep -q INCOMPLETE err || fail "it is said to be incomplete"
"$keel" trace export -f csv one >/dev/null
for name in update fill saxpy copy; do
    is "$name" "$(column $name 2)" operation
    [ "$(column $name 4)" -le "$(column $name 5)" ] || fail "$name ends before it begins"
done
for name in update fill copy; do
    is "bytes of $name" "$(column $name 11)" 262144
done

# In the order of the stream, after the call that submitted them, and over when the host knows it.
for pair in 'update fill' 'fill saxpy' 'saxpy copy'; do
    first=${pair% *} second=${pair#* }
    [ "$(column "$first" 5)" -le "$(column "$second" 4)" ] ||
        fail "$second begins before $first ends"
done
call=$(grep '"keel_queue_submit"' one.csv | sort -t, -k4,4n | tail -1 | cut -d, -f4)
[ "$call" -le "$(column update 4)" ] || fail "operations begin before the call"
# The clocks are related to some microseconds. On a busy machine in software that may be more. There
# is no wait if the work had ended before it.
wait=$(grep '"keel_wait"' one.csv | sort -t, -k5,5n | tail -1 | cut -d, -f5)
[ -z "$wait" ] || [ "$(column copy 5)" -le $((wait + 100000000)) ] ||
    fail "operations end after the program knew it"
"$keel" trace summary one | grep -q ' %  process [0-9]*, ' || fail "no device is busy"

# What the host does for a queue: a write, a read and a call, which ends after it has returned.
"$keel" trace -o two -- "$steps" data "$uri" >out 2>err || fail "the steps failed"
"$keel" trace export -f csv -o one.csv two >/dev/null
# A write may go on, on another thread: that is one call.
for name in write read 'host call'; do
    is "$name" "$(calls "$name")" 1
done
for name in write read; do
    is "bytes of $name" "$(column $name 11 | awk '{ sum += $1 } END { print sum }')" 65536
done
completing=$(grep -F 'mark,"completing",' one.csv | cut -d, -f4)
[ "$(column 'host call' 5)" -ge "$completing" ] || fail "the call ends before it was completed"

[ -n "$decode" ] || exit 0
# A recording is one operation as a graph; without graphs its commands are operations.
often() { # often NAME OPTION: how often there is an operation
    "$keel" trace -f -o three -- "$decode" "$uri$2" >out 2>err || fail "the recordings failed"
    calls "$1"
}
is 'graphs' "$(often execute '')" 300
is 'commands of graphs' "$(calls attend)" ''
is 'commands of recordings' "$(often attend '&commands=stream')" 300
is 'recordings' "$(calls execute)" ''
