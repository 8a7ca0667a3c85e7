#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# trace_steps.sh KEEL STEPS LINES: operations that go on by themselves, memory of pools, a child of
# a fork, and Ctrl-C, each as often in the trace as in the program.
keel=$1
steps=$2
lines=$3
. "$(dirname "$0")/trace_common.sh"

column() { # column NAME NUMBER: that column of the events of a name, in the order of time
    grep -F ",\"$1\"," one.csv | sort -t, -k4,4n | cut -d, -f"$2"
}

"$keel" trace -o one -- "$steps" "$folder/file" >out 2>err || fail "the program failed"
! grep -q INCOMPLETE err || fail "it is said to be incomplete"
"$keel" trace export -f csv one >/dev/null

# Each operation once; those that go on by themselves end when they have ended.
for name in read write 'host call'; do
    is "$name" "$(column "$name" 2)" operation
done
is alloca "$(column alloca 2 | wc -l)" 2
is dealloca "$(column dealloca 2 | wc -l)" 2
is fill "$(column fill 2 | wc -l)" 3
[ "$(column 'host call' 5)" -ge "$(column completing 4)" ] || fail "the call ends too early"
last=$(column alloca 5 | tail -1)
[ "$last" -ge "$(column dealloca 4 | head -1)" ] || fail "the alloca that waits ends too early"
is waits "$("$keel" trace summary one | grep -c '^ *1 .* waited for memory$')" 1

# Of the pool, each value that it had in use.
counter=$(grep -o '"[^"]*bytes in use of pool 1 scratch"' one.csv | head -1 | tr -d '"')
is counter "$counter" 'cpu://?threads=1: bytes in use of pool 1 scratch'
is values "$(column "$counter" 11 | tr '\n' ' ')" '65536 0 65536 0 '

# The child has a part of its own, with what it did, and the parent's goes on behind the fork.
is processes "$(cut -d, -f7 one.csv | sort -u | grep -c '[0-9]')" 2
parent=$(column read 7)
is 'fills of the parent' "$(column fill 7 | grep -c "^$parent$")" 2
is 'fills of the child' "$(column fill 7 | grep -vc "^$parent$")" 1
if has sqlite3; then
    is whole "$(sqlite3 one 'PRAGMA integrity_check')" ok
    is linked "$(sqlite3 one 'SELECT count(*) FROM rocpd_op WHERE id NOT IN
        (SELECT op_id FROM rocpd_api_ops)')" 0
    is busy "$(sqlite3 one 'SELECT min(Busy) > 0 AND max(Busy) <= 1 FROM busy')" 1
fi

# stopped SIGNAL NUMBER TARGET: a signal ends the program; the tool makes the trace all the same.
env --default-signal=INT true 2>/dev/null && has setsid || exit 0
mkfifo in answers
stopped() {
    setsid env --default-signal=INT "$keel" trace -o "$1" -- "$lines" <in >answers 2>err &
    tool=$!
    exec 3>in 4<answers
    echo line >&3
    read -r answer <&4
    is answer "$answer" done
    kill -s "$1" -- "$3$tool"
    status=0
    wait $tool || status=$?
    is "status by $1" $status $((128 + $2))
    grep -q "ended by signal $2 " err || fail "it does not say what ended the program"
    grep -q INCOMPLETE err || fail "it is not said to be incomplete"
    [ ! -e "$1.parts" ] || fail "the parts are still there"
    "$keel" trace info "$1" >out
    grep -qE '^ +1 submissions$' out || fail "$1: $(cat out)"
}
# Ctrl-C reaches both; other signals reach the tool, which passes them on.
stopped INT 2 -
stopped TERM 15 ''
stopped HUP 1 ''
