#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# trace_page.sh KEEL SAXPY: the page that keel trace report makes, in a browser: what it draws, and
# what the mouse and the keys do with it.
keel=$1
saxpy=$2
. "$(dirname "$0")/trace_common.sh"
for command in chromium python3 sqlite3; do
    if ! has $command; then
        echo "$command is not installed"
        exit 77
    fi
done

# A trace with known times: a ms, of which the page has a us in each pixel.
"$keel" trace -o page -- "$saxpy" >/dev/null 2>&1 || fail "the program failed"
sqlite3 page <<'END'
DELETE FROM rocpd_op; DELETE FROM rocpd_api; DELETE FROM rocpd_api_ops; DELETE FROM rocpd_monitor;
DELETE FROM keel_op; DELETE FROM keel_submission; DELETE FROM keel_wait;
DELETE FROM keel_track WHERE is_queue AND id > (SELECT min(id) FROM keel_track WHERE is_queue);
DELETE FROM keel_track WHERE NOT is_queue AND number <> (SELECT min(pid) FROM keel_process);
INSERT INTO rocpd_string VALUES (1001, 'one'), (1002, 'two'), (1003, 'three'), (1004, 'call');
INSERT INTO rocpd_ustring VALUES (1001, 'all'), (1002, 'half');
INSERT INTO rocpd_op SELECT row_number() OVER (), device_id, T.id, 0, column2, column3, column1,
        (SELECT id FROM rocpd_string WHERE string = 'KernelExecution')
    FROM (VALUES (1001, 1000000, 1400000), (1002, 1200000, 1600000), (1003, 1500000, 1900000)),
        keel_track T WHERE is_queue;
INSERT INTO rocpd_api SELECT row_number() OVER (), pid, pid, column2, column3, column1,
        (SELECT id FROM rocpd_string WHERE string = ''),
        (SELECT id FROM rocpd_string WHERE string = ''), column4
    FROM (VALUES
        ((SELECT id FROM rocpd_string WHERE string = 'UserMarker'), 1000000, 2000000, 1001),
        ((SELECT id FROM rocpd_string WHERE string = 'UserMarker'), 1100000, 1500000, 1002),
        (1004, 1200000, 1300000, (SELECT id FROM rocpd_ustring WHERE string = '')),
        (1004, 1600000, 1700000, (SELECT id FROM rocpd_ustring WHERE string = ''))), keel_process;
INSERT INTO rocpd_api_ops VALUES (1, 1, 1), (2, 3, 2), (3, 3, 3);
END
"$keel" trace report page >/dev/null

# The same with more rows than a canvas is high: threads, each with a call of 4 us.
cp page rows
sqlite3 rows <<'END'
DELETE FROM rocpd_op; DELETE FROM rocpd_api; DELETE FROM rocpd_api_ops;
DELETE FROM keel_track;
INSERT INTO keel_track SELECT value, 0, (SELECT id FROM keel_process), 0, '', value
    FROM generate_series(0, 4999);
INSERT INTO rocpd_api SELECT value + 1, (SELECT pid FROM keel_process), value,
        1000000 + value % 250 * 4000, 1004000 + value % 250 * 4000, 1004,
        (SELECT id FROM rocpd_string WHERE string = ''),
        (SELECT id FROM rocpd_string WHERE string = ''),
        (SELECT id FROM rocpd_ustring WHERE string = '')
    FROM generate_series(0, 4999);
END
"$keel" trace report rows >/dev/null

# The browser takes commands from a pipe and answers to another one. It ends when they are closed.
mkfifo to from
trap 'wait; rm -rf "$folder" || :' EXIT # helpers of the browser may still write there
chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage \
    --remote-debugging-pipe --user-data-dir="$folder/profile" 3<to 4>from >browser 2>&1 &
python3 "$here/page.py" to from "file://$folder/page.html" \
    "file://$folder/rows.html" || fail "the page"
wait $! || fail "the browser failed: $(cat browser)"
