# SPDX-License-Identifier: Apache-2.0
"""trace_bars.py KEEL SPANS: a trace of 10 million spans: what it costs to record them, to summarise
them from parts and from the database, and to make that. Fails if a span is missing, or if a bar is
missed. Times are those of the processor; a summary has all memory that it had at once, files that
are mapped included."""
import os
import re
import subprocess
import sys
import tempfile

COUNT = 10_000_000
KEEL, SPANS = sys.argv[1:]
missed = []


def bar(what, value, most, unit):
    print(f"{what}: {value:.3g} {unit}, bar {most:.3g}")
    if value > most:
        missed.append(what)


def used(*words):
    """Runs keel trace: its output, seconds of the processor, MiB."""
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen([KEEL, "trace", *words], stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        out.seek(0)
        assert status == 0, (words, status)
        return out.read(), usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def check(trace):
    text, seconds, memory = used("summary", trace)
    counts = [int(count) for count in re.findall(r"^ +(\d+) .* %  (?:one|two)$", text, re.M)]
    assert counts == [COUNT // 2] * 2 and "INCOMPLETE" not in text, text
    bar(f"summary of {trace}", seconds, 10, "s")
    bar(f"memory of it, {trace}", memory, 1024, "MiB")


with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    os.mkdir("trace.parts")
    told = subprocess.run([SPANS, str(COUNT)], env={**os.environ, "KEEL_TRACE": "trace.parts"},
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    bar("a span", float(told), 150, "ns")
    check("trace.parts")
    _, seconds, _ = used("finish", "trace")
    bar("a database, for each million rows", seconds / (COUNT / 1e6), 1 / 3, "s")
    check("trace")
print(f"{COUNT} spans; missed: {', '.join(missed) or 'none'}")
sys.exit(bool(missed))
