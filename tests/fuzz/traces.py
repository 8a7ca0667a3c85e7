#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# traces.py CORPUS: makes the seeds of the targets trace and trace_db: records of all kinds that
# belong together (src/trace/format.h), and rows of a database that do.
import os
import sqlite3
import struct
import sys

(THREAD, CLOCKS, NAME, QUEUE, PAIR, SUBMIT, READY, OP, END, WAIT, CALL, GPU, SPAN, MARK, COUNT,
 NEED, NODE, LAUNCHES) = range(1, 19)


def seed(target, name, data):
    folder = f"{sys.argv[1]}/{target}"
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/seed-{name}", "wb") as file:
        file.write(data)


def record(kind, flags=0, name=0, start=0, end=0, id=0, submission=0, a=(0, 0, 0)):
    return struct.pack("<HHIQQQQQQQ", kind, flags, name, start, end, id, submission, *a)


def name(number, text, part=0):
    return struct.pack("<HHI56s", NAME, part, number, text.encode())


def records():
    value, = struct.unpack("<Q", struct.pack("<d", 1.5))
    return [
        record(THREAD, id=77),
        record(CLOCKS, id=500000000, a=(5000, 9000, 10**18)),
        name(1, "_Z5saxpyPfS_f"), name(2, "cpu://"), name(3, "queue"), name(4, "hipMalloc"),
        name(5, "hip"), name(6, "x" * 56), name(6, "a second part", 1),
        record(QUEUE, name=3, id=1, a=(2, 40, 0)),
        record(QUEUE, name=3, id=2, a=(2, 41, 0)),
        record(PAIR, start=100, id=1, a=(5100, 10, 0)),
        record(PAIR, start=10**8, id=1, a=(5100 + 10**8, 10, 0)),
        record(SUBMIT, start=10, end=20, id=1, submission=1, a=(3, 0, 1)),
        record(READY, start=15, id=1, submission=1),
        record(OP, 1, 1, 20, 40, 1, 1, (0, 0, 8)),
        record(OP, 1, 1, 40, 60, 1, 1, (0, 8, 8)),
        record(OP, 2, 6, 70, 80, 1, 1, (64, 0, 4096)),
        record(END, start=90, id=1, submission=1),
        record(SUBMIT, start=30, end=35, id=2, submission=1, a=(1, 1, 1)),
        record(NEED, name=3, start=31, id=2, submission=1, a=(40, 1, 0)),
        record(OP, 4, 6, 95, 99, 2, 1),
        record(OP, 1 | 4 << 8, 1, 200, 300, 2, 1),
        record(END, 3, start=120, id=2, submission=1),
        record(WAIT, start=50, end=125, a=(1, 0, 0)),
        record(CALL, 0, 6, 130, 140, 9, a=(1, 6, 5)),
        record(CALL, 1, 4, 140, 145, 10, a=(5 << 32, 0xdead0000, 4096)),
        record(CALL, 2, 4, 190, 195, 11, a=(5 << 32, 0xdead0000, 0)),
        record(NODE, id=3, submission=4),
        record(GPU, 1 | 2 << 8, 1, 9300, 9400, 2, 9, (64 | 2 << 32, 1 | 64 << 32, 1 | 1 << 16)),
        record(GPU, 2 | 1 << 8, 0, 5290, 5330, 2, 9, (1 << 20, 1, 0)),
        record(SPAN, name=6, start=5, end=150),
        record(MARK, name=3, start=6),
        record(COUNT, name=3, start=7, a=(value, 0, 0)),
        record(LAUNCHES, name=1, start=8, a=(1000, 0, 0)),
        record(CLOCKS, start=10**9, id=500000000, a=(2 * 10**9 + 5000, 2 * 10**9 + 9000, 10**19)),
    ]


# As trace_db.c has them.
TABLES = ["metadata", "string", "ustring", "api", "op", "api_ops", "monitor", "process", "device",
          "track", "shape", "details", "wait", "submission", "launches"]
OTHERS = ["most", "least", "u32", "2^32", "1e12", "1e300", "-inf", "UserMarker", "keel_process",
          "KernelExecution", "CopyHostToDevice", "Wait", "left_out", "left_why", "", "marks",
          "overlong", "surrogate"]


def byte_of(value):
    return value + 4 if isinstance(value, int) else 256 - len(OTHERS) + OTHERS.index(value)


def rows(lacks, *all):
    data = [[TABLES.index(row[0]), *map(byte_of, row[1:])] for row in all]
    return bytes([lacks, *sum(data, [])])


TEXTS = [
    ("string", 1, "UserMarker"), ("string", 2, "KernelExecution"), ("string", 4, "Wait"),
    ("string", 3, "CopyHostToDevice"), ("string", 5, "marks"),
    ("ustring", 1, "overlong"), ("ustring", 2, "surrogate"),
]
CALLS = [
    ("api", 1, 7, 77, 10, 20, 5, 5, 5, 1), ("api", 2, 7, 77, 30, 40, 1, 5, 5, 2),
    ("api", 3, 8, 78, 50, 45, 5, 5, 5, 1), ("op", 1, 0, 2, 0, 15, 25, 5, 2),
    ("op", 2, 0, 2, 0, 26, 28, 5, 3), ("op", 3, 1, 9, 1, 40, 30, 5, 4),
    ("api_ops", 1, 1, 1), ("api_ops", 2, 1, 2),
]
OWN = [
    ("process", 1, 7, 1, "marks", "", "marks", 1, 0, 0, "1e12", 0),
    ("process", 2, 8, 1, "marks", "", "", 0, 1, 2, "least", 1),
    ("device", 1, 1, "marks"), ("track", 1, 0, 1, 0, "marks", 77),
    ("track", 2, 1, 1, 1, "marks", 1), ("shape", 1, 64, 1, 1, 64, 1, 1, 0),
    ("details", 1, 1, 1, 0, 0, 2), ("details", 2, 2, 0, 99, 1, 1),
    ("submission", 1, 2, 1, 1, 2, 1, 1, 10, 12, 15, 25, 0),
    ("submission", 2, 2, 2, 2, 1, 1, 1, 11, 0, 26, 0, 3),
    ("wait", 1, 2, 1, "marks", 1), ("wait", 2, 2, -1, "marks", 4),
    ("launches", 1, 1, "marks", 10, "1e12"),
    ("monitor", 1, "marks", 1, "marks", 10, 20, "1e300"),
    ("metadata", 90, "left_out", 3), ("metadata", 91, "left_why", "marks"),
]

header = struct.pack("<8IQ24s", 0, 7, 1, 0, 0, 0, 1, 1, 0, b"./program -x")
seed("trace", "kinds", header + b"".join(records()))
seed("trace", "short", struct.pack("<8s2I", b"keeltrc", 2, 4096) + header)
seed("trace_db", "own", rows(0, *OWN, *TEXTS, *CALLS))
seed("trace_db", "foreign", rows(3, *TEXTS, *CALLS))

database = sqlite3.connect(":memory:")
database.executescript("""
    PRAGMA page_size=512;
    CREATE TABLE rocpd_string(id INTEGER PRIMARY KEY, string);
    CREATE TABLE rocpd_api(id INTEGER PRIMARY KEY, pid, tid, start, end, apiName_id, args_id);
    CREATE TABLE rocpd_op(id INTEGER PRIMARY KEY, gpuId, queueId, start, end, description_id,
                          opType_id);
    CREATE TABLE rocpd_api_ops(id, api_id, op_id);
    INSERT INTO rocpd_string VALUES(1, 'hipMalloc');
    INSERT INTO rocpd_api VALUES(1, 7, 77, 10, 20, 1, 1);
    INSERT INTO rocpd_op VALUES(1, 0, 0, 12, 18, 1, 1);
    INSERT INTO rocpd_api_ops VALUES(1, 1, 1);""")
seed("trace_db", "small", database.serialize())
