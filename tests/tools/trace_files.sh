#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# trace_files.sh KEEL SAXPY LINES: what keel trace makes of traces (export, report, merge, compare),
# and start, stop and status of a program that runs. Readers of the formats that are not installed
# (protoc, python3, sqlite3) leave out what they would check.
keel=$1
saxpy=$2
lines=$3
. "$(dirname "$0")/trace_common.sh"

number() { # number NAME: what info says of the trace `of`
    "$keel" trace info "$of" | sed -nE "s/^ *([0-9]+) $1\$/\1/p"
}

"$keel" trace -o one -- "$saxpy" >/dev/null 2>err
"$keel" trace -o two -- "$saxpy" >/dev/null 2>err
of=two
calls_two=$(number calls)
of=one
calls=$(number calls) # three of keel_queue_submit, and keel_wait if there was something to wait for
operations=$(number operations)
[ "$calls" = 3 ] || is calls "$calls" 4

# Comma-separated values: a line for each event.
is export "$("$keel" trace export -f csv one)" one.csv
is lines "$(wc -l <one.csv)" $((1 + calls + operations + $(number 'values of counters')))
is saxpy "$(grep -c ',operation,"saxpy",' one.csv)" "$(grep -c saxpy one.csv)"

# Options may stand behind the trace. A pipe is written, and not replaced; nor is the trace itself.
mkfifo pipe
cat pipe >piped &
is export "$("$keel" trace export one -o pipe -f csv)" pipe
wait $!
cmp piped one.csv || fail "a pipe gets something else"
refuse 1 'pipe is no file that could be replaced' export -f rocpd3 -o pipe one
refuse 1 'pipe is no file that could be replaced' merge -o pipe one two
refuse 1 'one is the trace itself' export -o "$folder/one" one
[ -p pipe ] && [ "$(number calls)" = "$calls" ] || fail "a pipe, or the trace, was replaced"
mkdir parts.parts
: >parts.parts/control
is report "$("$keel" trace report parts.parts/)" parts.parts.html

# Perfetto, as the public protos read it.
"$keel" trace export -o one.pftrace one >/dev/null
if has protoc; then
    protoc --proto_path="$here" --decode=Trace perfetto.proto <one.pftrace >text
    is begins "$(grep -c 'type: TYPE_SLICE_BEGIN' text)" $((calls + operations))
    is ends "$(grep -c 'type: TYPE_SLICE_END' text)" $((calls + operations))
    is names "$(grep -cE '^ +name: "saxpy"' text)" 1
    grep -q 'name: "queue depth"' text || fail "no queue depth"
    [ "$(grep -c flow_ids text)" -gt "$operations" ] || fail "no arrows"
    ! grep -qE '^ +[0-9]+[:{ ]' text || fail "fields that are not known"
fi

# Chrome's JSON, and the page.
"$keel" trace export -f chrome one >/dev/null
"$keel" trace report one >/dev/null
! grep -qE '(src|href)=|url\(|https?:' one.html || fail "the page needs other files"
if has python3; then
    python3 - $((calls + operations)) "$operations" <<'END' || fail "JSON"
import json, re, sys
count, operations = map(int, sys.argv[1:])
events = json.load(open("one.json"))["traceEvents"]
of = lambda phase: [event for event in events if event["ph"] == phase]
assert len(of("X")) == count, len(of("X"))
assert len(of("s")) == len(of("f")) == operations
assert sum(event["name"] == "saxpy" and event["cat"] == "operation" for event in of("X")) >= 1
assert of("C")[-1]["args"]["operations"] == 0, "the queue is empty at the end"
page = open("one.html").read()
data = json.loads(re.search(r'application/json">\n(.*?)</script>', page, re.S).group(1))
assert data["events"] == count == sum(len(track["start"]) for track in data["tracks"])
for track in data["tracks"]:
    assert len(track["start"]) == len(track["time"]) == len(track["lane"]) == len(track["name_of"])
    assert track["start"] == sorted(track["start"])
assert "saxpy" in data["names"] and "operations on processors" in data["summary"]
END
fi

# The schema of rocprofiler-sdk. Its views join all tables, and each event is in one of them.
"$keel" trace export -f rocpd3 one >/dev/null
if has sqlite3; then
    sql() { # sql EXPECTED QUERY
        is "$2" "$(sqlite3 one.rocpd3 "$2")" "$1"
    }
    sql ok 'PRAGMA integrity_check'
    sql 3 "SELECT value FROM rocpd_metadata WHERE tag = 'schema_version'"
    sql "$calls" 'SELECT count(*) FROM regions'
    sql 1 "SELECT count(DISTINCT corr_id) FROM kernels WHERE name = 'saxpy' AND duration > 0"
    sql 3 'SELECT count(*) FROM memory_copies WHERE size = 262144'
    sql 1 "SELECT count(DISTINCT K.corr_id) FROM kernels K JOIN regions R USING (corr_id)
        WHERE R.name = 'keel_queue_submit' AND R.start <= K.start AND R.tid = K.tid"
    sql 1 "SELECT count(*) FROM top_kernels WHERE name = 'saxpy' AND total_calls >= 1"
    sql 1 "SELECT abs(sum(percentage) - 100) < 0.01 FROM top_kernels"
    sql 1 "SELECT count(*) FROM processes P JOIN rocpd_info_node N ON N.id = P.nid
        WHERE P.machine_id = N.machine_id AND pid = (SELECT pid FROM kernels)"
    sql 0 "SELECT count(*) FROM kernels K WHERE NOT EXISTS (SELECT 1 FROM threads T
        WHERE T.pid = K.pid AND T.tid = K.tid)"
    sql 1 "SELECT count(*) FROM kernel_symbols S JOIN code_objects C ON C.id = S.code_object_id
        WHERE S.display_name = 'saxpy' AND C.pid = S.pid"
    sql 4 "SELECT count(DISTINCT name) FROM top WHERE name IN ('saxpy', 'fill', 'update', 'copy')"
    sql 1 'SELECT min(GpuTime) > 0 AND max(Busy) <= 1 FROM busy'
    uuid=$(sqlite3 one.rocpd3 "SELECT value FROM rocpd_metadata WHERE tag = 'uuid'")
    sql 1 "SELECT count(*) > 0 FROM \"rocpd_kernel_dispatch$uuid\""
    for table in kernel_dispatch memory_copy; do # all at once
        sqlite3 one.rocpd3 "UPDATE \"rocpd_$table$uuid\" SET start = 100, end = 300"
    done
    sql '200|200|1.0' 'SELECT GpuTime, WallTime, Busy FROM busy'
fi

# Merged, nothing is lost; of another machine, times are moved by its clock.
"$keel" trace merge -o both one two
of=both
is 'calls of both' "$(number calls)" $((calls + calls_two))
is 'submissions of both' "$(number submissions)" 6
is processes "$("$keel" trace info both | grep -c '^process')" 2
if has sqlite3; then
    sqlite3 two "UPDATE keel_process SET boot = 'other', real_ns = real_ns + 5000000000"
    "$keel" trace merge -o both one two >out
    grep -q 'two: of another start of a machine: moved by 5.000000 s' out || fail "$(cat out)"
    "$keel" trace merge -o again both one # a merged trace can be merged
    of=again
    is 'calls of three' "$(number calls)" $((2 * calls + calls_two))
    is later "$(sqlite3 both 'SELECT max(start) - min(start) > 4900000000 FROM rocpd_api')" 1
    is 'names of processes' "$(sqlite3 both 'SELECT count(DISTINCT pid) FROM rocpd_api')" 2
fi
"$keel" trace compare one one >out
grep -qE '^ +before +after +change$' out || fail "it does not say which trace is which"
is compared "$(grep -c '+0.0 %' out)" $((5 + calls - 2)) # five operations, one or two calls
if has sqlite3; then
    cp one slow
    sqlite3 slow "UPDATE rocpd_op SET end = end + 1000000 + end - start WHERE description_id =
        (SELECT id FROM rocpd_string WHERE string = 'saxpy')"
    "$keel" trace compare one slow >out
    is slower "$(grep -c '+[1-9][0-9.]* %' out)" 1
    grep -q '+[1-9][0-9.]* % *saxpy$' out || fail "$(cat out)"
    # What differs most stands first.
    is first "$(grep ' % ' out | sed -n '1s/.* //p')" saxpy
fi

# A program that has recorded nothing so far is known as well, and is started.
mkfifo in answers
"$keel" trace -o run --delay 1000 -- sh -c 'echo $$ >pid; exec "$0"' "$lines" <in >answers 2>err &
tool=$!
exec 3>in 4<answers
while [ ! -s pid ] || [ "$(readlink "/proc/$(cat pid)/exe")" != "$(readlink -f "$lines")" ] ||
    ! grep -q /control "/proc/$(cat pid)/maps"; do
    kill -0 $tool || fail "the program did not start"
done
pid=$(cat pid)
is status "$("$keel" trace status "$pid")" "process $pid: stopped"
is start "$("$keel" trace start "$pid")" "process $pid: recording"
echo line >&3
read -r answer <&4
exec 3>&- 4<&-
wait $tool || fail "the program failed"
of=run
is submissions "$(number submissions)" 1
rm run pid

# A program that runs: what happens while it is stopped is not recorded.
"$keel" trace -o run -- sh -c 'echo $$ >pid; exec "$0"' "$lines" <in >answers 2>err &
tool=$!
exec 3>in 4<answers
ask() {
    echo line >&3
    read -r answer <&4
    is answer "$answer" done
}
ask
pid=$(cat pid)
is status "$("$keel" trace status "$pid")" "process $pid: recording"
is 'status of the tool' "$("$keel" trace status "$tool")" "process $tool: recording"
is stop "$("$keel" trace stop "$pid")" "process $pid: stopped"
ask
ask
is start "$("$keel" trace start "$pid")" "process $pid: recording"
ask
exec 3>&-
wait $tool || fail "the program failed"
of=run
is submissions "$(number submissions)" 2
status=0
"$keel" trace stop $$ 2>err || status=$?
is 'stop of another' $status 1
grep -q "process $$ is not traced" err || fail "it does not say that a process is not traced"

# Mistakes.
refuse 2 'there is no format xml' export -f xml one
refuse 1 'a database needs a file' export -f rocpd3 -o - one
refuse 2 'one trace is wanted' export one two
refuse 2 'at least two traces' merge -o new one
refuse 2 'two traces are wanted' compare one
refuse 2 'what is --fast?' report --fast one
refuse 2 'the number of a process is wanted' stop it
refuse 1 'nowhere/a.new: No such file' export -o nowhere/a one
has sqlite3 || exit 0
sqlite3 other 'CREATE TABLE t(a)'
refuse 1 'no trace: it has no tables' summary other
