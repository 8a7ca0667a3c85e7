#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trace.py compare KEEL FOLDER: runs this program with itself as what is traced: alone, by KEEL in
each mode, and under torch.profiler; and compares numbers of kernels, and times.
trace.py floor KEEL FOLDER LIBRARY: what CUPTI costs by itself, by LIBRARY (trace_floor.c), which
runs `trace.py turns LIBRARY [all]`.
trace.py launches KEEL FOLDER LIBRARY PROGRAM: what a launch takes on the host (trace_launch.cu).
trace.py run [profiler] [NAME...]: the programs. Each has a loop that is run some times; NVTX ranges
stand around each of them, with the GPU idle before and after."""
import collections
import csv
import json
import os
import statistics
import subprocess
import sys
import time

REPEATS = int(os.environ.get("REPEATS", "5"))
ROUNDS = 2
KINDS = ("kernel", "gpu_memcpy", "gpu_memset")


# The programs: each returns the function that one loop is, after a warm-up of its own.

def eager(torch):
    layers = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(8)]).cuda().half()
    x = torch.randn(256, 512, device="cuda", dtype=torch.half)
    host = torch.zeros(512, dtype=torch.half, pin_memory=True)

    def loop():
        for _ in range(20):
            y = torch.nn.functional.gelu(layers(x)).sum(0)
            y.zero_()
            host.copy_(y, non_blocking=True)
    return loop


def replay(torch):
    x = torch.randn(1024, 1024, device="cuda")

    def body():
        y = x
        for _ in range(50):
            y = torch.sin(y) + 1
        return y
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        body()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        body()

    def loop():
        for _ in range(100):
            graph.replay()
    return loop


def decode(torch):
    """As a language model makes one token after the other: thousands of small kernels."""
    width, depth = 1024, 24
    make = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.bfloat16) * 0.02
    layers = [(make(width, width), make(width, width), make(width)) for _ in range(depth)]

    def loop():
        with torch.no_grad():
            x = torch.ones(1, width, device="cuda", dtype=torch.bfloat16)
            for _ in range(40):
                for up, down, scale in layers:
                    norm = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * scale
                    x = x + torch.nn.functional.silu(norm @ up) @ down
    return loop


def triton_add(torch):
    import triton
    import triton.language as tl

    @triton.jit
    def add(x_ptr, y_ptr, count, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < count)
        tl.store(y_ptr + at, x + 1, mask=at < count)
    x = torch.zeros(1 << 16, device="cuda")

    def loop():
        for _ in range(500):
            add[(64,)](x, x, x.numel(), BLOCK=1024)
    return loop


PROGRAMS = {"eager": eager, "replay": replay, "decode": decode, "triton": triton_add}


def run(profiled, names):
    import torch
    from torch.profiler import ProfilerActivity, profile
    both = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    out = {"torch": torch.__version__, "seconds": {}, "counts": {}}
    torch.zeros(1, device="cuda").add_(1)
    torch.cuda.synchronize()
    if profiled:  # the first time it sets itself up
        with profile(activities=both):
            torch.zeros(1, device="cuda").add_(1)
            torch.cuda.synchronize()
    for name, make in PROGRAMS.items():
        if names and name not in names:
            continue
        try:
            loop = make(torch)
            loop()
        except Exception as error:  # what is not there is left out, and told
            out.setdefault("left out", {})[name] = repr(error)[:300]
            continue
        out["seconds"][name] = []
        for i in range(REPEATS):
            torch.cuda.synchronize()
            tracer = profile(activities=both) if profiled else None
            if tracer:
                tracer.start()
            time.sleep(0.02)
            torch.cuda.nvtx.range_push(f"{name} {i}")
            begin = time.perf_counter()
            loop()
            torch.cuda.synchronize()
            out["seconds"][name].append(time.perf_counter() - begin)
            torch.cuda.nvtx.range_pop()
            time.sleep(0.02)
            if tracer:
                tracer.stop()
                if i == 0:
                    out["counts"][name] = profiler_counts(tracer)
    print("RESULT " + json.dumps(out), flush=True)


def profiler_counts(tracer):
    path = f"/tmp/trace-{os.getpid()}.json"
    tracer.export_chrome_trace(path)
    with open(path, encoding="utf8") as file:
        events = json.load(file)["traceEvents"]
    os.unlink(path)
    return dict(collections.Counter(e["cat"] for e in events if e.get("cat") in KINDS))


# The comparison.

def show(title, text, most=40):
    lines = text.strip().splitlines()
    print(f"-- {title}")
    for line in lines if len(lines) <= most else lines[:most // 2] + ["..."] + lines[-most // 2:]:
        print("   " + line[:180])


def child(command, limit=150, **environment):
    begin = time.perf_counter()
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=limit, check=False, env={**os.environ, **environment})
    except subprocess.TimeoutExpired as late:
        return None, f"{late.stdout}\n{late.stderr}\nit took longer than {limit} s", limit
    result = None
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            result = json.loads(line[7:])
    said = "\n".join(line for line in done.stdout.splitlines() if not line.startswith("RESULT "))
    if done.returncode:
        said += f"\nexit status {done.returncode}"
    return result, said + "\n" + done.stderr, time.perf_counter() - begin


def kind_of(row):
    """As torch.profiler has them."""
    if row["name"].startswith("Copy"):
        return "gpu_memcpy"
    return "gpu_memset" if row["name"] == "FillBuffer" else "kernel"


def read(keel, path):
    """The operations and calls of a trace inside of each NVTX range."""
    out = path + ".csv"
    text = subprocess.run([keel, "trace", "export", "-f", "csv", "-o", out, path],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if text.returncode:
        show("export", text.stdout)
        return None
    with open(out, encoding="utf8", newline="") as file:
        rows = list(csv.DictReader(file))
    os.unlink(out)
    for row in rows:
        row["start"], row["end"] = int(row["start_ns"]), int(row["end_ns"])
    return rows


def inside(rows, span):
    return [row for row in rows if span["start"] <= row["start"] <= span["end"]]


def trace_counts(rows):
    """For each range: how many of each kind, how many are linked, from graphs, and out of order."""
    calls = {row["id"]: row for row in rows if row["kind"] == "call"}
    operations = [row for row in rows if row["kind"] == "operation"]
    out = {}
    for span in (row for row in rows if row["kind"] == "span"):
        mine = inside(operations, span)
        counts = collections.Counter(kind_of(row) for row in mine)
        counts["linked"] = sum(row["call_id"] in calls for row in mine)
        counts["of a graph"] = sum("node" in row["arguments"] for row in mine)
        counts["before its call"] = sum(row["call_id"] in calls and
                                        calls[row["call_id"]]["start"] > row["start"]
                                        for row in mine)
        counts["calls"] = len(inside(calls.values(), span))
        out[span["name"]] = dict(counts)
    return out


def best(values):
    return min(values) if values else float("nan")


def compare(keel, folder):
    me = [sys.executable, os.path.abspath(__file__), "run"]
    seconds = collections.defaultdict(lambda: collections.defaultdict(list))
    counts, bad = {}, 0
    for turn in range(ROUNDS):
        for variant in ("alone", "cuda", "standard", "lite", "profiler"):
            path = os.path.join(folder, f"{variant}{turn}.db")
            traced = [keel, "trace", "-f", "-n", "8", "-o", path, "-m", variant, "--"]
            command = {"alone": me, "profiler": me + ["profiler"]}.get(variant, traced + me)
            result, said, took = child(command)
            print(f"== {variant}, turn {turn}: {took:.1f} s")
            if turn == 0 or not result:
                show("said", said, 70 if variant == "cuda" else 16)
            if not result:
                bad += 1
                continue
            if turn == 0 and variant == "alone":
                print("torch", result["torch"], result.get("left out", ""))
            for name, values in result["seconds"].items():
                seconds[name][variant] += values
            if turn == 0 and variant == "profiler":
                counts["profiler"] = result["counts"]
            if turn == 0 and variant == "cuda":
                rows = read(keel, path)
                counts["cuda"] = trace_counts(rows) if rows else {}
    bad += counts_print(counts)
    times_print(seconds)
    starts_print(keel, folder)
    jax_run(keel, folder)
    print(f"== {'all counts agree' if not bad else f'{bad} things are wrong'}")
    return 1 if bad else 0


def counts_print(counts):
    bad = 0
    print("\n== counts of one loop: keel trace -m cuda, torch.profiler")
    print(f"{'program':10} {'kind':12} {'keel':>8} {'profiler':>8}")
    ours, theirs = counts.get("cuda", {}), counts.get("profiler", {})
    for name in PROGRAMS:
        for kind in KINDS:
            mine = [ours.get(f"{name} {i}", {}).get(kind, 0) for i in range(REPEATS)]
            wanted = theirs.get(name, {}).get(kind, 0)
            same = all(count == wanted for count in mine)
            bad += not same
            print(f"{name:10} {kind:12} {mine[0]:8} {wanted:8} "
                  f"{'' if same else f'DIFFERENT: in each loop {mine}'}")
        first = ours.get(f"{name} 0", {})
        total = sum(first.get(kind, 0) for kind in KINDS)
        bad += first.get("linked", 0) != total or first.get("before its call", 0) > 0 or not total
        print(f"{name:10} {json.dumps(first)}")
    return bad


def times_print(seconds):
    print("\n== ms of one loop, the best (median); slowdown of the best, and of the median")
    for name, variants in seconds.items():
        alone, middle = best(variants["alone"]), statistics.median(variants["alone"])
        for variant, values in variants.items():
            median = statistics.median(values)
            slower = best(values) / alone * 100 - 100, median / middle * 100 - 100
            print(f"{name:10} {variant:24} {best(values) * 1e3:9.2f} ({median * 1e3:9.2f}) "
                  f"{slower[0]:+7.1f} % {slower[1]:+7.1f} %")


# What CUPTI can be asked for. 10: kernels; 3: kernels one after the other; 1, 2: copies and sets; 4,
# 5: calls of the driver and the runtime; 49: memory; 51: graphs as a whole; r211, r430, d307, d652:
# calls that launch a kernel. Activities, activities of single functions, callbacks.
LAUNCHES = "r211,r430,d307,d652"
ASKED = {
    "nothing": ("", "", ""),
    "kernels": ("10", "", ""),
    "kernels, serial": ("3", "", ""),
    "graphs": ("51", "", ""),
    "kernels+graphs": ("10,51", "", ""),
    "copies": ("1,2", "", ""),
    "runtime": ("5", "", ""),
    "launches": ("", LAUNCHES, ""),
    "callbacks": ("", "", LAUNCHES),
    "kernels+launches": ("10", LAUNCHES, ""),
    "kernels+callbacks": ("10", "", LAUNCHES),
    "as -m cuda": ("10,1,2,49,5,4", "", ""),
}
# Attributes of CUPTI's: 0: bytes of a buffer on the device (6: how many at once); 3: semaphores of a
# pool (7: how many pools at once); 5: buffers come zeroed; 8: they are pinned; 9: one per thread.
SET_UPS = {
    "": {},
    "zeroed": {"FLOOR_SET": "5:1"},
    "32 MB": {"FLOOR_SET": "0:33554432"},
    "32 MB, 8 at once": {"FLOOR_SET": "0:33554432,6:8"},
    "pinned": {"FLOOR_SET": "8:1"},
    "shared": {"FLOOR_SET": "9:0"},
    "semaphores": {"FLOOR_SET": "3:65536,7:8"},
    "clock": {"FLOOR_CLOCK": "1"},
    "hardware": {"FLOOR_HARDWARE": "1"},
    "all": {"FLOOR_SET": "0:33554432,3:65536,5:1,6:8,7:8,8:1"},
}


def loops_time(torch, loop, count):
    """Seconds of each of some loops, after one that is not counted."""
    out = []
    for i in range(count + 1):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        loop()
        torch.cuda.synchronize()
        out += [time.perf_counter() - begin] if i else []
    return out


def turns(library, asked, rounds):
    """In one process, in turns, so that the noise of the machine meets all alike: the loops with
    CUPTI not there, asked for one thing after the other, and taken out."""
    import ctypes
    import gc
    import torch
    floor_library = ctypes.CDLL(library)
    torch.zeros(1, device="cuda").add_(1)
    loops = {"decode": decode(torch), "replay": replay(torch)}
    seconds = collections.defaultdict(lambda: collections.defaultdict(list))
    gc.disable()

    def measure(name, count=3):
        for program, loop in loops.items():
            seconds[program][name] += loops_time(torch, loop, count)
        gc.collect()
    late = os.environ.get("FLOOR_LATE")
    if late:
        measure("alone", 12)
        if not floor_library.floor_start():
            return
    for _ in range(rounds):
        for name in asked:
            lists = [text.encode() for text in ASKED[name]]
            floor_library.floor_use(*lists, 1)
            measure(name)
            floor_library.floor_use(*lists, 0)
    if late:
        print("RESULT " + json.dumps({"seconds": seconds}), flush=True)
        floor_library.floor_stop()
        measure("taken out", 12)
    print("RESULT " + json.dumps({"seconds": seconds}), flush=True)


def turns_print(seconds, base):
    for program, variants in seconds.items():
        for name, values in variants.items():
            against = variants[base]
            slower = [statistics.median(values) / statistics.median(against) * 100 - 100,
                      best(values) / best(against) * 100 - 100]
            print(f"  {program:8} {name:20} {statistics.median(values) * 1e3:8.2f} "
                  f"({best(values) * 1e3:8.2f}) ms {slower[0]:+6.1f} % ({slower[1]:+6.1f} %)")


def floor(keel, folder, library):
    me = [sys.executable, os.path.abspath(__file__), "turns", library]
    print("\n== what CUPTI costs by itself: median (best), and slowdown against `nothing`")
    asked = [(", late", me + ["all"], {"FLOOR_LATE": "1"}), ("", me + ["all"], {})]
    asked += [(", " + name, me, environment) for name, environment in SET_UPS.items() if name]
    for name, command, environment in asked:
        result, said, took = child(command, CUDA_INJECTION64_PATH=library, **environment)
        told = {line for line in said.splitlines() if line.startswith("floor:")}
        print(f"CUPTI{name}: {took:.1f} s  {' | '.join(sorted(told)[:6])}", flush=True)
        if result:
            turns_print(result["seconds"], "nothing")
        else:
            show("said", said, 16)
    _, said, _ = child([sys.executable, "-c", BEGIN], CUDA_INJECTION64_PATH=library,
                       FLOOR_TIMES="1", FLOOR_FILTER="1")
    show("what takes long at the start", said)
    starts_print(keel, folder)
    modes_print(keel, folder)
    return 0


def launches(keel, folder, library, program):
    """What one launch takes on the host."""
    variants = [("alone", [program], {})]
    for name, lists in ASKED.items():
        variants.append((name, [program, library, *lists], {"CUDA_INJECTION64_PATH": library}))
    variants.append(("all calls but those that tell", [program],
                     {"CUDA_INJECTION64_PATH": library, "FLOOR_FILTER": "1"}))
    variants.append(("kernels, and these calls", [program, library, "10", "", ""],
                     {"CUDA_INJECTION64_PATH": library, "FLOOR_FILTER": "1"}))
    for mode in ("cuda", "standard", "lite"):
        path = os.path.join(folder, "launch.db")
        traced = [keel, "trace", "-f", "-o", path, "-m", mode, "--", program]
        variants.append(("keel trace -m " + mode, traced, {}))
    variants.append(("alone again", [program], {}))
    print("\n== ns of a launch on the host: the median, and what 9 of 10 are below")
    base = None
    for name, command, environment in variants:
        result, said, _ = child(command, 40, **environment)
        if not result:
            show("said", said, 8)
            continue
        base = base or result[0]
        print(f"{name:32} {result[0]:6} {result[0] - base:+6}   {result[1]:6}", flush=True)
    return 0


def modes_print(keel, folder):
    """Whole runs, in turns."""
    me = [sys.executable, os.path.abspath(__file__), "run", "decode", "replay"]
    seconds = collections.defaultdict(lambda: collections.defaultdict(list))
    for _ in range(3):
        for mode in ("alone", "cuda", "lite"):
            path = os.path.join(folder, f"floor-{mode}.db")
            traced = [keel, "trace", "-f", "-o", path, "-m", mode, "--"]
            result, said, _ = child((traced if mode != "alone" else []) + me, REPEATS="15")
            if not result:
                show("said", said, 16)
                continue
            for program, values in result["seconds"].items():
                seconds[program][mode] += values
    print("\n== keel trace: median (best)")
    turns_print(seconds, "alone")


# cuInit and a context, of a process that does no more.
BEGIN = """import ctypes, time
begin = time.perf_counter()
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
cuda.cuInit(0)
middle = time.perf_counter()
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
print("RESULT", [middle - begin, time.perf_counter() - begin])
"""


def starts_print(keel, folder):
    path = os.path.join(folder, "start.db")
    print("\n== ms of cuInit, and with a context, the best of 3")
    for variant in ("alone", "cuda", "lite"):
        traced = [keel, "trace", "-f", "-o", path, "-m", variant, "--"]
        traced = traced if variant != "alone" else []
        found, said = [], ""
        for _ in range(3):
            result, said, _ = child(traced + [sys.executable, "-c", BEGIN])
            found += [result] if result else []
        if not found:
            show("start " + variant, said)
            continue
        print(f"{variant:10} {min(f[0] for f in found) * 1e3:9.1f} "
              f"{min(f[1] for f in found) * 1e3:9.1f}")


def jax_run(keel, folder):
    program = ("import jax, jax.numpy as n; f = jax.jit(lambda x: n.sin(x) @ n.cos(x));\n"
               "x = n.ones((512, 512));\nfor _ in range(50): x = f(x) / 512\n"
               "print('RESULT', int(x.sum() != 12345))")
    path = os.path.join(folder, "jax.db")
    print("\n== JAX")
    result, said, _ = child([keel, "trace", "-f", "-n", "5", "-o", path, "-m", "cuda", "--",
                             sys.executable, "-c", program], 80,
                            XLA_PYTHON_CLIENT_PREALLOCATE="false")
    show("ended well" if result else "did not end well, or is not here", said, 30)


if __name__ == "__main__":
    if sys.argv[1:2] == ["compare"]:
        sys.exit(compare(sys.argv[2], sys.argv[3]))
    if sys.argv[1:2] == ["floor"]:
        sys.exit(floor(*sys.argv[2:5]))
    if sys.argv[1:2] == ["launches"]:
        sys.exit(launches(*sys.argv[2:6]))
    if sys.argv[1:2] == ["turns"]:
        few = [] if "all" in sys.argv else ["nothing", "kernels"]
        sys.exit(turns(sys.argv[2], few or list(ASKED), 4 if few else 5))
    run("profiler" in sys.argv, [name for name in sys.argv if name in PROGRAMS])
