#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# trace.sh KEEL PROGRAM LINES: keel trace runs PROGRAM, the example saxpy on a cpu device, and tells
# what it did; and says what is wrong with its arguments and files.
keel=$1
program=$2
lines=$3
. "$(dirname "$0")/trace_common.sh"
summary=summary

# The program's own output and status stay as they are; the summary has what it did, once.
"$program" >plain
"$keel" trace -o first -- "$program" >traced 2>err || fail "the program failed"
cmp plain traced || fail "the output is another"
[ ! -e first.parts ] || fail "the parts are still there"
grep -v -e '^The trace is in first\.$' -e '^$' err >told
"$keel" trace summary first | grep -v '^$' >summary
cmp summary told || fail "the summary is another afterwards"
grep -qE '^process [0-9]+: .*saxpy' summary || fail "no process"
! grep -q 'INCOMPLETE\|DAMAGED\|had not ended' summary || fail "it is said to be incomplete"
for name in saxpy fill update copy; do
    [ "$(calls $name)" = 1 ] || fail "$name was not called once: $(calls $name)"
done
[ "$(calls alloca)" = 2 ] || fail "alloca was not called twice"
[ "$(calls keel_queue_submit)" = 3 ] || fail "there were not three submissions"
[ "$(calls 'begun, until it had ended')" = 3 ] || fail "not all submissions ended"
grep -qE '^ .* %  process [0-9]+, cpu://' summary || fail "no device is busy"

# A reader of the summary that ends before it does not keep the trace from being made.
"$keel" trace -o unread -- "$program" 2>&1 >/dev/null | true
[ -e unread ] && [ ! -e unread.parts ] || fail "there is no trace if the summary is not read"

# A program that is killed, one that fails, and one without Keel.
status=0
"$keel" trace -o none -- sh -c 'kill -9 $$' 2>err || status=$?
[ $status = 137 ] || fail "status $status for one that was killed"
grep -q 'ended by signal 9' err || fail "it does not say that the program was killed"
refuse 3 'has no records' -o failed -- sh -c 'exit 3'

# A folder that cannot be written, and no room: the program does what it does, and the tool says so.
refuse 1 '/proc/none.parts: ' -o /proc/none -- "$program"
KEEL_TRACE=/proc "$program" >traced || fail "it fails where no trace can be written"
cmp plain traced || fail "the output is another where no trace can be written"
# ThreadSanitizer writes a file of its own, without which the program fails, traced or not.
if sh -c 'ulimit -f 64; exec "$0"' "$program" >/dev/null 2>&1; then
    "$keel" trace -o full -- sh -c 'ulimit -f 64; exec "$0"' "$program" >traced 2>err ||
        fail "the program failed without room"
    cmp plain traced || fail "the output is another without room"
    grep -q 'INCOMPLETE\|has no records' err || fail "it does not say that there was no room"
fi

# Mistakes.
refuse 1 'first: File exists; name another one with -o, or replace it with -f' -o first -- \
    "$program"
"$keel" trace -f -o first -- "$program" >/dev/null 2>&1 || fail "-f does not replace a trace"
cp first old
"$keel" trace -f -o old -- true 2>err || fail "-f with a program that records nothing fails"
[ ! -e old ] && grep -q 'old has no records' err || fail "-f leaves the trace of another program"
mkdir here
"$keel" trace -f -o here -- "$program" >/dev/null 2>err && fail "-f replaces a folder"
grep -q 'here: Is a directory' err && [ ! -e here.parts ] || fail "a folder in the way is not told"
mkfifo pipe
refuse 1 'pipe: Not a file that could be replaced' -f -o pipe -- "$program"
refuse 1 'nowhere/below.parts: No such file' -o nowhere/below -- "$program"
refuse 127 'no-such-program: No such file' -o none -- no-such-program
refuse 126 'here: Permission denied' -o none -- "$folder/here"
[ "$(wc -l <err)" = 1 ] && [ ! -e none.parts ] || fail "too much is said of it"
refuse 2 'what is --fast?' --fast -- "$program"
refuse 2 'which program?' -o second --
refuse 2 '-o wants a value' -o
refuse 1 "-m: 'fast' is none of auto, hip, cuda, standard, lite" -m fast -- "$program"
refuse 2 '--delay wants a number of seconds' --delay soon -- "$program"
refuse 2 '--delay wants a number of seconds' --delay= -- "$program"
refuse 2 'what is --delays=1?' --delays=1 -- "$program"
refuse 2 '-o wants a value' -o -- "$program"
refuse 2 '-n wants a number' -n 3x -- "$program"
refuse 1 "--kernel-filter: '(' is no regular expression" --kernel-filter '(' -- "$program"
refuse 2 '-n wants a number' summary -n 0 first
refuse 2 '-n wants a number' summary first -n -1
refuse 2 'what is -f?' report first -f chrome
refuse 2 'info wants one trace' info
refuse 1 'cannot read nowhere' summary nowhere
refuse 1 'plain is no trace' summary plain
refuse 1 'here is no trace' summary here
"$keel" trace export --help >out && grep -q '^usage: keel trace' out || fail "export has no help"
if [ -c /dev/full ]; then
    for part in info summary; do
        ! "$keel" trace $part first >/dev/full 2>err || fail "$part fails where there is no room"
        grep -q 'standard output: No space left' err || fail "it does not say that there is no room"
    done
fi

# Filters keep what they name; a rank is that of the environment.
RANK=3 "$keel" trace -o some --kernel-filter='^sax' --api-filter submit --rank-from=RANK -- \
    "$program" >/dev/null 2>&1
"$keel" trace summary some >summary
[ "$(calls saxpy)" = 1 ] && [ -z "$(calls fill)" ] || fail "the filter of kernels"
[ "$(calls keel_queue_submit)" = 3 ] && [ -z "$(calls keel_wait)" ] || fail "the filter of calls"
grep -qE '^process [0-9]+, rank 3: ' summary || fail "no rank"

# Recording that never starts, and one that starts at once.
"$keel" trace -o later --delay 1000 -- "$program" >/dev/null 2>err
grep -q 'later has no events' err || fail "it records before the delay is over"
"$keel" trace -o long --duration 1000 -- "$program" >/dev/null 2>&1
"$keel" trace info long >out
grep -q '^complete$' out && grep -qE '^ +3 submissions$' out || fail "info: $(cat out)"

# A process that outlives the program: its trace is made once it has ended, and has each record
# once.
mkfifo in answers go
"$keel" trace -f -o first -- sh -c '"$0" <in >answers & read -r x <go' "$lines" 2>err &
tool=$!
exec 3>in 4<answers
ask() {
    echo line >&3
    read -r answer <&4
    [ "$answer" = done ] || fail "it answers $answer"
}
ask
echo >go
wait $tool || fail "the tool failed"
grep -q 'processes run still.*keel trace finish first' err || fail "it does not say what runs"
[ ! -e first ] || fail "there is a trace, though a process still writes"
"$keel" trace summary first | grep -q INCOMPLETE || fail "the parts are said to be complete"
refuse 1 'processes run still' finish first
refuse 1 'first.parts: processes run still' -o first -- "$program"
refuse 1 'first.parts: processes run still' -f -o first -- "$program"
ask
exec 3>&-
cat <&4 # until it has ended
"$keel" trace finish first || fail "no trace is made of a process that has ended"
"$keel" trace info first >out
grep -qE '^ +2 submissions$' out && [ "$(grep -c ^process out)" = 1 ] && grep -q ^complete out ||
    fail "a process that outlives the program: $(cat out)"
[ ! -e first.parts ] || fail "the parts are still there"
"$keel" trace -f -o first -- "$program" >/dev/null 2>&1

# One that begins to record after the program has ended finds its folder gone, and makes it anew.
"$keel" trace -f -o first -- sh -c '{ read -r x; exec "$0"; } <in >answers & read -r x <go' \
    "$lines" 2>err &
tool=$!
exec 3>in 4<answers
echo >go
wait $tool
[ ! -e first.parts ] || fail "the folder of a trace without records is still there"
echo begin >&3
ask
exec 3>&-
cat <&4
"$keel" trace finish first || fail "what a process records late is lost"
"$keel" trace info first >out
grep -qE '^ +1 submissions?$' out || fail "a process that begins late: $(cat out)"
"$keel" trace -f -o first -- "$program" >/dev/null 2>&1

# What a killed program leaves, and a tool that is killed with it, can be read.
mkdir killed.parts
KEEL_TRACE=$folder/killed.parts "$program" >/dev/null
file=$(echo killed.parts/*.trace)
printf '\0' | dd of="$file" bs=1 seek=44 conv=notrunc 2>/dev/null # `ended`
"$keel" trace summary killed >summary
grep -q INCOMPLETE summary || fail "it is not said to be incomplete"
[ "$(calls saxpy)" = 1 ] || fail "the parts of a trace are not read"

# The database of it can be made later.
cp -r killed.parts late.parts
"$keel" trace finish late || fail "no database is made of the parts"
[ -f late ] && [ ! -e late.parts ] || fail "finish leaves the parts"
"$keel" trace summary late >out
cmp out summary || fail "the summary is another afterwards"
refuse 1 'late.parts: No such file' finish late
refuse 2 'one trace is wanted' finish

# Files that are no traces are left out and stay; those of other processes that are over are read,
# though the system has given their numbers to others.
own=other.parts/$$-0.trace
mkdir other.parts
cp "$file" "$own"
"$keel" trace summary other.parts >plain
printf 'none' >other.parts/9-0.trace
"$keel" trace summary other >out || fail "a file that is no trace hides the others"
grep -q '^INCOMPLETE: 1 files .*9-0.trace is no trace' out || fail "it does not say what it lacks"
: >other.parts/99999999-0.trace
"$keel" trace finish other 2>err || fail "finish waits for a process that is another one"
grep -q 'INCOMPLETE: 2 files are left out' err || fail "finish does not say what it lacks"
[ "$(ls other.parts)" = 9-0.trace ] || fail "not the file alone stays that is no trace"
"$keel" trace summary other >out
grep -q '^INCOMPLETE: 2 files' out || fail "the database does not say what it lacks"
grep -v '^INCOMPLETE: 2' out | cmp - plain || fail "the summary is another with files left out"
refuse 1 'no trace: it is too short' finish other

# A trace that breaks off anywhere is read as far as it goes.
for size in 4096 4160 100000 266240; do
    mkdir "cut$size"
    head -c $size "$file" >"cut$size/1-0.trace"
    "$keel" trace summary "cut$size" >/dev/null || fail "it cannot read $size bytes of a trace"
done

# A database that is damaged, or breaks off, is not taken for that of another program.
head -c 100000 late >cut
refuse 1 'cut: ' summary cut
grep -q malformed err || fail "it does not say that the database breaks off"

# The database, as other tools read it.
has sqlite3 || exit 0
sql() { # sql EXPECTED QUERY
    got=$(sqlite3 first "$2")
    [ "$got" = "$1" ] || fail "$2: $got, not $1"
}
sql ok 'PRAGMA integrity_check'
sql 3 "SELECT value FROM rocpd_metadata WHERE tag = 'schema_version'"
sql 1 "SELECT value FROM rocpd_metadata WHERE tag = 'trace_complete'"
sql 1 "SELECT TotalCalls FROM top WHERE Name = 'saxpy'"
sql 1 "SELECT count(*) FROM kernel WHERE kernelName = 'saxpy' AND sequenceId = 0"
sql 3 "SELECT count(*) FROM api WHERE domain = 'keel' AND category = '' AND
    apiName = 'keel_queue_submit'"
sql 1 'SELECT Busy > 0 AND Busy <= 1 FROM busy'
sql 0 'SELECT count(*) FROM rocpd_op WHERE id NOT IN (SELECT op_id FROM rocpd_api_ops)'
sql 0 'SELECT count(*) FROM rocpd_api_ops JOIN rocpd_api A ON A.id = api_id
    JOIN rocpd_op O ON O.id = op_id WHERE O.start < A.start OR O.end < O.start'
sql 2 'SELECT count(*) FROM keel_wait W JOIN keel_submission S ON S.id = W.submission_id
    JOIN keel_submission O ON O.id = W.on_id WHERE S.number = 3 AND O.number = W.value'
sql 0 'SELECT (SELECT count(*) FROM rocpd_op) - (SELECT count(*) FROM op)'
sql 0 'SELECT (SELECT count(*) FROM rocpd_api) - (SELECT count(*) FROM api)'
# Tools for rocpd (rpd2tracing.py, recipes) join inner: that leaves nothing out.
sql 0 'SELECT (SELECT count(*) FROM rocpd_api) - (SELECT count(*) FROM rocpd_api A
    JOIN rocpd_string N ON N.id = A.apiName_id JOIN rocpd_ustring U ON U.id = A.args_id)'
sql 0 'SELECT (SELECT count(*) FROM rocpd_op) - (SELECT count(*) FROM rocpd_op O
    JOIN rocpd_string D ON D.id = O.description_id JOIN rocpd_string T ON T.id = O.opType_id)'
sql 0 'SELECT (SELECT count(*) FROM rocpd_kernelapi) - (SELECT count(*) FROM rocpd_kernelapi K
    JOIN rocpd_api A ON A.id = K.api_ptr_id JOIN rocpd_string N ON N.id = K.kernelName_id)'
sql 0 'SELECT (SELECT count(*) FROM rocpd_copyapi) - (SELECT count(*) FROM rocpd_copyapi C
    JOIN rocpd_api A ON A.id = C.api_ptr_id)'
sql 1 'SELECT count(*) > 0 FROM rocpd_kernelapi'
sql 1 'SELECT count(*) > 0 FROM rocpd_copyapi'

# Such tools want a call. Where there is none, there is a row for the process, which is no call.
"$keel" trace -o bare --api-filter '^none$' -- "$program" >/dev/null 2>&1
rows=$(sqlite3 bare 'SELECT count(*) FROM rocpd_api A JOIN keel_process USING (pid)
    JOIN rocpd_string N ON N.id = A.apiName_id JOIN rocpd_ustring U ON U.id = A.args_id
    WHERE N.string = "keel_process" AND U.string = ""
        AND start <= (SELECT min(start) FROM rocpd_op) AND end >= (SELECT max(end) FROM rocpd_op)')
is 'rows without calls' "$rows" 1
"$keel" trace summary bare >out
! grep -q keel_process out && grep -q saxpy out || fail "a process is told as a call"

# One that an earlier version has written is read as well.
"$keel" trace summary first >summary
sqlite3 first 'ALTER TABLE keel_op DROP COLUMN args_id; DROP TABLE keel_wait' 2>/dev/null || exit 0
"$keel" trace summary first >out || fail "a database of an earlier version is not read"
[ "$(grep -c . out)" -ge 10 ] && grep -q saxpy out || fail "an earlier version's is read in part"
