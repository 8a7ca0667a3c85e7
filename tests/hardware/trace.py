#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""trace.py compare KEEL FOLDER: runs this program with itself as what is traced: by KEEL and under
torch.profiler; and compares numbers of kernels.
trace.py turns LIBRARY FOLDER FLOOR [VARIANT...]: what tracing costs, by the library of `keel trace`
and by one that asks CUPTI for records and throws them away (trace_floor.c); of all variants, or of
those that are named.
trace.py run [profiler] [NAME...]: the programs. Each has a loop that is run some times; NVTX ranges
stand around each of them, with the GPU idle before and after."""
import collections
import csv
import ctypes
import gc
import json
import os
import random
import select
import statistics
import struct
import subprocess
import sys
import time

REPEATS = 5
GENERATIONS = 2  # of processes
TURNS = int(os.environ.get("TURNS", "30"))  # of each process
STARTS = 5
MOST_S = int(os.environ.get("MOST_S", "130"))  # for all turns
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
    out = {"torch": torch.__version__, "counts": {}}
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
        if "TRACE_START" in os.environ:
            recording_start(os.environ["TRACE_START"], os.environ["TRACE_PARTS"], loop)
        for i in range(REPEATS):
            torch.cuda.synchronize()
            tracer = profile(activities=both) if profiled else None
            if tracer:
                tracer.start()
            time.sleep(0.02)
            torch.cuda.nvtx.range_push(f"{name} {i}")
            loop()
            torch.cuda.synchronize()
            torch.cuda.nvtx.range_pop()
            time.sleep(0.02)
            if tracer:
                tracer.stop()
                if i == 0:
                    out["counts"][name] = profiler_counts(tracer)
    print("RESULT " + json.dumps(out), flush=True)


def recording_start(keel, parts, loop):
    """Starts recording, and runs the loop until the trace has operations: all of CUPTI is on then."""
    subprocess.run([keel, "trace", "start", str(os.getpid())], check=True,
                   stdout=subprocess.DEVNULL)
    while not recorded(keel, parts):
        loop()


def recorded(keel, parts):
    """The number of operations that a trace has so far."""
    said = subprocess.run([keel, "trace", "info", parts], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False).stdout
    lines = [line.split() for line in said.splitlines()]
    return sum(int(words[0]) for words in lines if words[1:] == ["operations"])


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


def compare(keel, folder):
    """Counts of a whole run, and of one in which recording is started once CUDA is in use."""
    me = [sys.executable, os.path.abspath(__file__), "run"]
    counts, bad = {}, 0
    for variant in ("cuda", "late", "profiler"):
        path = os.path.join(folder, f"{variant}.db")
        traced = [keel, "trace", "-f", "-n", "8", "-o", path, "-m", "cuda"]
        command = {"profiler": me + ["profiler"],
                   "late": traced + ["--delay", "1000", "--", *me, "decode"]}
        late = {"TRACE_START": keel, "TRACE_PARTS": path + ".parts"} if variant == "late" else {}
        result, said, took = child(command.get(variant, traced + ["--", *me]), **late)
        print(f"== {variant}: {took:.1f} s, {result and result.get('left out', '')}")
        show("said", said, 24)
        bad += not result
        if result and variant == "profiler":
            counts["profiler"] = result["counts"]
        elif result:
            counts[variant] = trace_counts(read(keel, path) or [])
    bad += counts_print(counts)
    jax_run(keel, folder)
    print(f"== {'all counts agree' if not bad else f'{bad} things are wrong'}")
    return 1 if bad else 0


def counts_print(counts):
    bad = 0
    print("\n== counts of one loop: keel trace -m cuda, torch.profiler")
    print(f"{'program':12} {'kind':12} {'keel':>8} {'profiler':>8}")
    theirs = counts.get("profiler", {})
    for name, variant in [(name, "cuda") for name in PROGRAMS] + [("decode", "late")]:
        ours = counts.get(variant, {})
        label = name if variant == "cuda" else f"{name}, {variant}"
        for kind in KINDS:
            mine = [ours.get(f"{name} {i}", {}).get(kind, 0) for i in range(REPEATS)]
            wanted = theirs.get(name, {}).get(kind, 0)
            same = all(count == wanted for count in mine)
            bad += not same
            print(f"{label:12} {kind:12} {mine[0]:8} {wanted:8} "
                  f"{'' if same else f'DIFFERENT: in each loop {mine}'}")
        first = ours.get(f"{name} 0", {})
        total = sum(first.get(kind, 0) for kind in KINDS)
        bad += first.get("linked", 0) != total or first.get("before its call", 0) > 0 or not total
        print(f"{label:12} {json.dumps(first)}")
    return bad


# Costs, in turns. Each variant is a process of its own; all of them live at the same time, and one
# after the other has its turn of a tenth of a second, so that what the machine does meanwhile meets
# all alike. A variant is what the environment asks for before CUDA starts. `alone again` is the same
# as `alone`: what it differs by is what cannot be told.

def asked(library, **environment):
    return {"CUDA_INJECTION64_PATH": library, **environment}


def variants_of(floor_library, trace_library, folder):
    """10: kernels; 3: kernels, one at a time; 51: graphs as a whole. FLOOR_SET: buffers that come
    zeroed (5), large ones on the device (0), or on the host (8), shared by threads (9)."""
    floor = lambda **environment: asked(floor_library, **environment)
    out = {
        "alone": {},
        "alone again": {},
        "nothing": floor(),
        "kernels": floor(FLOOR_KINDS="10"),
        "no subscriber": floor(FLOOR_KINDS="10", FLOOR_SUBSCRIBE="0"),
        "kernels+graphs": floor(FLOOR_KINDS="10,51"),
        "kernels, serial": floor(FLOOR_KINDS="3"),
        "kernels, zeroed": floor(FLOOR_KINDS="10", FLOOR_SET="5:1,0:33554432"),
        "kernels, pinned": floor(FLOOR_KINDS="10", FLOOR_SET="8:1"),
        "kernels, shared": floor(FLOOR_KINDS="10", FLOOR_SET="9:0"),
        "calls": floor(FLOOR_CALLS="records"),
        "kernels+all but": floor(FLOOR_KINDS="10", FLOOR_CALLS="but"),
        "kernels+calls": floor(FLOOR_KINDS="10", FLOOR_CALLS="records"),
        "kernels+callbacks": floor(FLOOR_KINDS="10", FLOOR_CALLS="callbacks"),
    }
    for mode in ("lite", "standard", "cuda"):
        path = os.path.join(folder, "turns-" + mode)
        os.makedirs(path, exist_ok=True)
        loads = "LD_PRELOAD" if mode == "lite" else "CUDA_INJECTION64_PATH"
        out["keel " + mode] = {loads: trace_library, "NVTX_INJECTION64_PATH": trace_library,
                               "KEEL_TRACE": path, "KEEL_TRACE_MODE": mode}
    out["torch.profiler"] = {}
    return out


def counter_open():
    """A count of the calling thread's instructions in user mode; or why there is none."""
    hardware, instructions, user_alone = 0, 1, 0x60
    attributes = struct.pack("<IIQQQQQ", hardware, 128, instructions, 0, 0, 0, user_alone)
    attributes = attributes.ljust(128, b"\0")
    number = {"x86_64": 298, "aarch64": 241}[os.uname().machine]
    libc = ctypes.CDLL(None, use_errno=True)
    file = libc.syscall(number, attributes, 0, -1, -1, 0)
    return file if file >= 0 else os.strerror(ctypes.get_errno())


def threads_place(core):
    """This thread gets a core, and all others of the process the other cores."""
    others = os.sched_getaffinity(0) - {core}
    for task in os.listdir("/proc/self/task"):
        if int(task) != os.getpid():
            os.sched_setaffinity(int(task), others)
    os.sched_setaffinity(0, {core})


class Player:
    """In a process of a variant: measures a loop each time it is told to."""

    def __init__(self, torch, profiled):
        self.torch, self.profiled = torch, profiled
        self.loops = {"decode": decode(torch), "replay": replay(torch)}
        for loop in self.loops.values():
            loop()
        torch.cuda.synchronize()
        threads_place(max(os.sched_getaffinity(0)))
        self.counter = counter_open()
        gc.collect()
        gc.disable()

    def count(self):
        if isinstance(self.counter, str):
            return 0
        return struct.unpack("<Q", os.read(self.counter, 8))[0]

    def turn(self, name):
        loop, tracer = self.loops[name], None
        if self.profiled:
            tracer = self.torch.profiler.profile(
                activities=[self.torch.profiler.ProfilerActivity.CPU,
                            self.torch.profiler.ProfilerActivity.CUDA])
            tracer.start()
        self.loops["replay"]()  # so that the GPU and this process are awake
        self.torch.cuda.synchronize()
        before = time.perf_counter(), time.thread_time(), self.count()
        loop()
        self.torch.cuda.synchronize()
        after = time.perf_counter(), time.thread_time(), self.count()
        if tracer:
            tracer.stop()
        gc.collect()
        return [b - a for a, b in zip(before, after)]


def player_run(name, pipe):
    reads, writes = os.fdopen(pipe[0], "r"), os.fdopen(pipe[1], "w")

    def say(what):
        writes.write(json.dumps(what) + "\n")
        writes.flush()
    try:
        import torch
        player = Player(torch, name == "torch.profiler")
        say({"counter": player.counter})
        for line in iter(reads.readline, "end\n"):
            say(player.turn(line.strip()))
    except Exception as error:
        say({"error": repr(error)[:300]})
    sys.stderr.flush()
    ctypes.CDLL(None).exit(0)  # not Python's end, but what libraries do at the end


def player_start(name, environment):
    to_child, to_parent = os.pipe(), os.pipe()
    pipe = to_child[0], to_parent[1]
    process = subprocess.Popen([sys.executable, os.path.abspath(__file__), "play", name,
                                *map(str, pipe)], env={**os.environ, **environment}, pass_fds=pipe)
    os.close(pipe[0]), os.close(pipe[1])
    return {"process": process, "to": os.fdopen(to_child[1], "w"),
            "from": os.fdopen(to_parent[0], "r")}


def player_ask(player, what, limit=40):
    """What a variant measured; None: it is no more, or took longer than this."""
    try:
        if what:
            player["to"].write(what + "\n")
            player["to"].flush()
        if not select.select([player["from"]], [], [], limit)[0]:
            player["process"].kill()
            return None
        return json.loads(player["from"].readline())
    except (OSError, ValueError):
        return None


def players_start(variants):
    players = {name: player_start(name, environment) for name, environment in variants.items()}
    for name in list(players):
        said = player_ask(players[name], None)
        if said and "counter" in said:
            if name == "alone" and isinstance(said["counter"], str):
                print("no count of instructions:", said["counter"])
            continue
        print(f"{name}: did not start: {said}", flush=True)
        del players[name]
    return players


def players_end(players):
    for player in players.values():
        player["to"].write("end\n")
        player["to"].flush()
    for name, player in players.items():
        status = player["process"].wait()
        if status:
            print(f"{name}: ended with {status}")


def generation(variants, until, found):
    """Processes of all variants, and rounds in which each has a turn, in an order of chance."""
    players = players_start(variants)
    for i in range(TURNS):
        if time.perf_counter() > until:
            break
        for program in ("decode",) if i % 4 else ("decode", "replay"):
            order = [name for name in players if name != "torch.profiler" or i % 5 == 0]
            random.shuffle(order)
            turn = {name: player_ask(players[name], program) for name in order}
            for name in order:
                if not isinstance(turn[name], list):
                    print(f"{name}: is no more: {turn[name]}", flush=True)
                    del players[name]
            found[program].append({name: value for name, value in turn.items()
                                   if isinstance(value, list)})
    players_end(players)


def ratios(rounds, name, which):
    return [turn[name][which] / turn["alone"][which] for turn in rounds
            if name in turn and "alone" in turn and turn["alone"][which]]


def quarter(values, which):
    return sorted(values)[which * (len(values) - 1) // 4]


def percent(ratio):
    return f"{ratio * 100 - 100:+6.1f}"


def turns_print(found, names):
    for program, rounds in found.items():
        print(f"\n== {program}: medians; of each turn, more than `alone` in the same round")
        print(f"{'':18} pairs       ms    % (quarters)               of half the rounds  "
              "% of thread time  % of instructions")
        for name in names:
            wall = ratios(rounds, name, 0)
            if not wall:
                continue
            half = [statistics.median(part) if part else 1 for part in
                    (ratios(rounds[:len(rounds) // 2], name, 0),
                     ratios(rounds[len(rounds) // 2:], name, 0))]
            ms = statistics.median(turn[name][0] for turn in rounds if name in turn) * 1e3
            counted = ratios(rounds, name, 2)
            print(f"{name:18} {len(wall):5} {ms:8.2f}  {percent(statistics.median(wall))} "
                  f"({percent(quarter(wall, 1))} .. {percent(quarter(wall, 3))})   "
                  f"{percent(half[0])} {percent(half[1])}      "
                  f"{percent(statistics.median(ratios(rounds, name, 1)))}       "
                  f"{percent(statistics.median(counted)) if counted else '-'}")


def turns(trace_library, folder, floor_library, *names):
    begin = time.perf_counter()
    variants = {name: environment for name, environment in
                variants_of(floor_library, trace_library, folder).items()
                if not names or name in names}
    found = {"decode": [], "replay": []}
    for _ in range(GENERATIONS):
        generation(variants, begin + MOST_S, found)
        print(f"{time.perf_counter() - begin:.1f} s", flush=True)
    turns_print(found, variants)
    with open(os.path.join(folder, "turns.json"), "w", encoding="utf8") as file:
        json.dump(found, file)
    starts(variants)
    return 0


def starts(variants):
    """What a process takes until cuInit, and a context, are there."""
    variants = {name: environment for name, environment in variants.items()
                if name in ("alone", "alone again", "no subscriber", "kernels", "keel lite",
                            "keel cuda")}
    found = collections.defaultdict(list)
    for i in range(STARTS):
        for name in random.sample(list(variants), len(variants)):
            times = {"FLOOR_TIMES": "1"} if i == 0 else {}
            result, said, _ = child([sys.executable, "-c", BEGIN], 30, **variants[name], **times)
            found[name] += [result] if result else []
            if i == 0 and "took" in said:
                show(name, said)
    print("\n== ms of a start, medians and the least: cuInit, cuInit and a context; more than alone")
    base = [statistics.median(r[i] for r in found["alone"]) for i in (0, 1)]
    least = [min(r[i] for r in found["alone"]) for i in (0, 1)]
    for name in variants:
        for i, what in enumerate(("cuInit", "context")):
            values = [result[i] for result in found[name]] or [float("nan")]
            middle = statistics.median(values)
            print(f"{name:18} {what:8} {middle * 1e3:8.1f} {min(values) * 1e3:8.1f} "
                  f"{(middle - base[i]) * 1e3:+8.1f} {(min(values) - least[i]) * 1e3:+8.1f}")


# cuInit and a context, of a process that does no more.
BEGIN = """import ctypes, time
begin = time.perf_counter()
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
cuda.cuInit(0)
middle = time.perf_counter()
cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
print("RESULT", [middle - begin, time.perf_counter() - begin])
"""


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
    if sys.argv[1:2] == ["turns"]:
        sys.exit(turns(*sys.argv[2:]))
    if sys.argv[1:2] == ["play"]:
        player_run(sys.argv[2], [int(number) for number in sys.argv[3:5]])
    run("profiler" in sys.argv, [name for name in sys.argv if name in PROGRAMS])
