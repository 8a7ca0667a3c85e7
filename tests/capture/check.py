# SPDX-License-Identifier: Apache-2.0
"""check.py KEEL LIBRARY DUMP CASE PROGRAM [ARGUMENTS]

Runs a program on the software GPU, alone and traced by LIBRARY, and compares: it prints and returns
the same, and the trace has each call and each kernel once, as often as the case says, with links
from kernels to calls and times in order. DUMP prints a trace."""
import collections
import os
import re
import sqlite3
import subprocess
import sys
import tempfile

BOOT = "2"  # the clock of times that a GPU told

MODULE = {"hipModuleLoad": 1, "hipModuleGetFunction": 1, "hipModuleUnload": 1}
PLAIN = {**MODULE, "hipModuleGetFunction": 2, "hipMalloc": 1, "hipMemcpy": 2, 
         "hipModuleLaunchKernel": 10, "hipDeviceSynchronize": 1, "hipFree": 1}

EXTENDED = ("_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_"
            "P11ihipEvent_tS6_j")

# Of each case: the calls; the call that each kernel add_one belongs to, and how many belong to one.
CASES = {
    "plain": (PLAIN, "hipModuleLaunchKernel", 1),
    "streams": ({**MODULE, "hipEventCreate": 2, "hipStreamCreate": 3, "hipMalloc": 3,
                 "hipMemcpy": 6, "hipEventRecord": 2, "hipModuleLaunchKernel": 16,
                 "hipStreamWaitEvent": 1, "hipStreamSynchronize": 3, "hipEventElapsedTime": 1,
                 "hipFree": 3, "hipStreamDestroy": 3, "hipEventDestroy": 2},
                "hipModuleLaunchKernel", 1),
    "threads": ({**MODULE, "hipMalloc": 4, "hipMemcpy": 8, "hipStreamCreate": 4,
                 "hipModuleLaunchKernel": 100, "hipStreamSynchronize": 4, "hipStreamDestroy": 4,
                 "hipFree": 4}, "hipModuleLaunchKernel", 1),
    "graph": ({**MODULE, "hipMalloc": 1, "hipMemcpy": 2, "hipStreamCreate": 1, "hipGraphCreate": 1,
               "hipGraphAddKernelNode": 8, "hipGraphInstantiate": 1, "hipGraphLaunch": 5,
               "hipStreamSynchronize": 1, "hipGraphExecDestroy": 1, "hipGraphDestroy": 1,
               "hipFree": 1, "hipStreamDestroy": 1}, "hipGraphLaunch", 8),
    "fork": ({**MODULE, "hipMalloc": 1, "hipMemcpy": 2, "hipModuleLaunchKernel": 10, "hipFree": 1},
             "hipModuleLaunchKernel", 1),
    "compiled": ({"hipMalloc": 1, "hipMemcpy": 2, "hipLaunchKernel": 6, "hipDeviceSynchronize": 1,
                  "hipFree": 1}, "hipLaunchKernel", 1),
    # By a name of C++.
    "extended": ({**MODULE, "hipMalloc": 1, "hipMemcpy": 2, EXTENDED: 6, "hipDeviceSynchronize": 1,
                  "hipFree": 1}, EXTENDED, 1),
    # Bound to HIP's own functions, so that HIP itself must report the calls.
    "private": (PLAIN, "hipModuleLaunchKernel", 1),
    # HIP tells the program of its calls.
    "counted": (PLAIN, "hipModuleLaunchKernel", 1),
    "python": ({"hipMalloc": 1, "hipMemcpy": 2, "hipModuleLoad": 1, "hipModuleGetFunction": 1,
                "hipModuleLaunchKernel": 4, "hipFree": 1}, "hipModuleLaunchKernel", 1),
}

Call = collections.namedtuple("Call", "name start end thread number result stream kernel domain")
Work = collections.namedtuple("Work", "name start end device queue call ticks clock")


def run(program, environment, folder=None):
    keel = [sys.argv[1], "sim", "--gpus=gfx90a", "--"]
    return subprocess.run(keel + program, env={**os.environ, **environment}, timeout=120,
                          cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def traced(program, folder, mode="hip", preload=True):
    library = sys.argv[2]
    environment = {"KEEL_TRACE": folder, "KEEL_TRACE_MODE": mode, "HSA_TOOLS_LIB": library}
    if preload:
        environment["LD_PRELOAD"] = library
    return run(program, environment)


class Trace:
    """What DUMP prints of a folder."""

    def __init__(self, folder):
        text = subprocess.run([sys.argv[3], folder], stdout=subprocess.PIPE, text=True,
                              check=True).stdout
        lines = [line.split("\t") for line in text.splitlines()]
        self.processes = [line[1:] for line in lines if line[0] == "process"]
        self.calls = [Call(line[1], int(line[2]), int(line[3]), line[4], line[5], int(line[6]),
                           *line[7:]) for line in lines if line[0] == "call"]
        self.kernels = [self.work(line) for line in lines if line[0] == "kernel"]
        self.copies = [self.work(line) for line in lines if line[0] == "copy"]
        self.spans = [line[1:] for line in lines if line[0] in ("span", "mark")]

    @staticmethod
    def work(line):
        return Work(line[1], int(line[2]), int(line[3]), line[4], line[5], line[6], int(line[-2]),
                    line[-1])

    def check_whole(self, processes=1):
        assert len(self.processes) == processes, self.processes
        for _, end, lost, unknown in self.processes:
            assert (end, lost, unknown) == ("ended", "0", "0"), self.processes

    def check_times(self):
        """Times are in order, and work begins after the call that it belongs to."""
        calls = {call.number: call for call in self.calls}
        assert len(calls) == len(self.calls), "two calls have one number"
        for call in self.calls:
            assert call.start <= call.end, call
        for work in self.kernels + self.copies:
            assert work.clock == BOOT, ("not timed", work)
            assert 0 < work.start <= work.end, work
            assert "gfx90a" in work.device, work
            if work.call != "0":
                assert calls[work.call].start <= work.start, (calls[work.call], work)
        return calls


def counted(items):
    return dict(collections.Counter(item.name for item in items))


def check_same(alone, with_trace):
    assert with_trace.stdout == alone.stdout, (alone.stdout, with_trace.stdout, with_trace.stderr)
    assert with_trace.returncode == alone.returncode, (alone.returncode, with_trace.returncode,
                                                       with_trace.stderr)


def compared(program, mode="hip", preload=True):
    """Runs a program alone and traced, which must not differ. How it ended, and the trace."""
    alone = run(program, {})
    assert alone.returncode == 7, alone
    with tempfile.TemporaryDirectory() as folder:
        result = traced(program, folder, mode, preload)
        trace = Trace(folder)
    check_same(alone, result)
    return result, trace


def check_case(case, program):
    calls, launch, each = CASES[case]
    result, trace = compared(program)
    trace.check_whole()
    assert counted(trace.calls) == calls, (counted(trace.calls), calls)
    by_number = trace.check_times()
    ours = [work for work in trace.kernels if work.name == "add_one"]
    assert len(ours) == calls[launch] * each, len(ours)
    assert all(work.call != "0" for work in trace.kernels + trace.copies), "not linked"
    links = collections.Counter(work.call for work in ours)
    assert len(links) == calls[launch] and set(links.values()) == {each}, links
    assert all(by_number[number].name == launch for number in links)
    for call in trace.calls:
        assert call.domain == "hip", call
        if "LaunchKernel" in call.name and case != "private":  # reports do not have the kernel
            assert call.kernel == "add_one", call
    # Each copy that succeeded moved something, by an engine or by a kernel.
    moved = {work.call for work in trace.copies + trace.kernels}
    for call in trace.calls:
        if call.name == "hipMemcpy" and call.result == 0:
            assert call.number in moved, call
    failed = [call for call in trace.calls if call.result != 0]
    assert len(failed) == (case in ("plain", "counted")), failed
    if case == "counted":
        check_told(result.stderr, calls)
    check_modes(case, program, len(ours), len(trace.copies))


def check_told(text, calls):
    """What HIP says of itself. It is asked after the module was loaded."""
    told = dict(line.split()[1:] for line in text.splitlines() if line.startswith("told"))
    for name, count in calls.items():
        assert name == "hipModuleLoad" or int(told.get(name, 0)) == count, (name, count, told)


def check_modes(case, program, kernels, copies):
    """Without HIP's calls there are the same kernels and copies; lite has no copies. Some versions
    of HIP copy by kernels."""
    if case != "plain":
        return
    for mode in ("standard", "lite"):
        _, trace = compared(program, mode, preload=mode == "lite")
        trace.check_whole()
        assert not trace.calls, trace.calls
        assert len(trace.copies) == (copies if mode == "standard" else 0), trace.copies
        ours = [work for work in trace.kernels if work.name == "add_one"]
        assert len(ours) == kernels, (mode, len(ours))


def check_hsa(program):
    """A program on ROCm's runtime: 5 dispatches that it times itself, 7 without signals, 4 beside
    each other with one signal for all, 6 with a signal that it uses again, 150 at once, 40 that
    wait for the program, and two pairs that wait for each other."""
    result, trace = compared(program, "standard", preload=False)
    trace.check_whole()
    numbers = {"add_one": 5 + 7 + 4 + 6 + 150 + 40, "meet": 4}
    assert counted(trace.kernels) == numbers, counted(trace.kernels)
    assert counted(trace.copies) == {"to-device": 1, "to-host": 1}, trace.copies
    untimed = [work for work in trace.kernels if work.clock != BOOT]
    assert len(untimed) <= 4, untimed  # those that have ended before the next is seen have times
    trace.kernels = [work for work in trace.kernels if work.clock == BOOT]
    trace.check_times()
    # What the program was told of its dispatches is what the trace has.
    told = [int(line.split()[1]) for line in result.stderr.splitlines() if line.startswith("took")]
    assert len(told) == 5, result.stderr
    first = sorted(trace.kernels, key=lambda work: work.start)[:5]
    assert [work.ticks for work in first] == told, (told, first)
    # The kernels of one queue with the barrier bit do not overlap.
    for before, after in zip(first, first[1:]):
        assert before.end <= after.start, (before, after)
    # A kernel runs beside the one that it waits for.
    pairs = sorted((work for work in trace.kernels if work.name == "meet"),
                   key=lambda work: work.start)
    assert len(pairs) == 4, pairs
    for one, other in (pairs[:2], pairs[2:]):
        assert other.start <= one.end, (one, other)
    check_late(program)


def check_late(program):
    """Kernels that are launched by an exit handler are in the trace, if the runtime ends after."""
    _, trace = compared(program + ["late"], "standard", preload=False)
    trace.check_whole()
    assert counted(trace.kernels) == {"crowd": 50}, counted(trace.kernels)
    trace.check_times()


def check_memory(trace):
    """One block is taken and given back: by arguments as rpd2tracing.py reads them, and counted."""
    args = dict(trace.execute("SELECT apiName, args FROM api WHERE args LIKE 'ptr(%'").fetchall())
    taken = re.fullmatch(r"ptr\((0x[0-9a-f]+)\) size\((0x[0-9a-f]+)\)", args["hipMalloc"])
    assert taken and args == {"hipMalloc": taken[0], "hipFree": f"ptr({taken[1]})"}, args
    values = trace.execute("SELECT value FROM rocpd_monitor WHERE monitorType = 'hip: memory' "
                           "ORDER BY start").fetchall()
    assert [float(value) for value, in values] == [int(taken[2], 16), 0], values


def check_copies(path):
    """Copies have the names that rocprofiler-sdk has for them."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        subprocess.run([sys.argv[1], "trace", "export", "-f", "rocpd3", "-o", out, path], check=True,
                       stdout=subprocess.DEVNULL)
        with sqlite3.connect(out) as trace:
            names = trace.execute("SELECT name FROM memory_copies ORDER BY name").fetchall()
        trace.close()
    assert names == [("MEMORY_COPY_DEVICE_TO_HOST",), ("MEMORY_COPY_HOST_TO_DEVICE",)], names


def check_rtl(program):
    """The environment of rocm-trace-lite: a database for each process, and no more."""
    alone = run(program, {})
    with tempfile.TemporaryDirectory() as folder:
        environment = {"RTL_OUTPUT": folder + "/run_%p.db", "RTL_MODE": "hip",
                       "HSA_TOOLS_LIB": sys.argv[2], "LD_PRELOAD": sys.argv[2]}
        for runs in (1, 2):
            check_same(alone, run(program, environment))
            names = os.listdir(folder)
            assert len(names) == runs, names
        for name in names:
            number = name.removeprefix("run_").removesuffix(".db")
            with sqlite3.connect(os.path.join(folder, name)) as trace:
                ask = lambda question: trace.execute(question).fetchone()[0]
                assert ask("SELECT DISTINCT pid FROM rocpd_api") == int(number), name
                assert ask("SELECT value FROM rocpd_metadata WHERE tag = 'trace_complete'") == "1"
                assert ask("SELECT count(*) FROM op WHERE description = 'add_one'") == 10
                assert ask("SELECT count(*) FROM api") == sum(PLAIN.values())
                check_memory(trace)
            trace.close()
        check_copies(os.path.join(folder, names[0]))
        # One name for all: the second run is added to the first.
        environment["RTL_OUTPUT"] = "all.db"
        for runs in (1, 2):
            check_same(alone, run(program, environment, folder))
            with sqlite3.connect(os.path.join(folder, "all.db")) as trace:
                count = trace.execute("SELECT count(*) FROM api").fetchone()[0]
            trace.close()
            assert count == runs * sum(PLAIN.values()), (runs, count)
        assert sorted(os.listdir(folder)) == sorted(names + ["all.db"]), os.listdir(folder)


def check_keel(saxpy):
    """All in one: keel trace of a program on Keel's own hip:// device, with the calls of HIP below
    it. What the GPU ran is there once: Keel does not time what is recorded below it."""
    alone = run([saxpy, "hip://0"], {})
    assert alone.returncode == 0, alone
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.db")
        result = run([sys.argv[1], "trace", "-o", path, "-m", "hip", "--", saxpy, "hip://0"], {})
        check_same(alone, result)
        with sqlite3.connect(path) as trace:
            ask = lambda question: trace.execute(question).fetchall()
            assert ask("SELECT value FROM rocpd_metadata WHERE tag = 'trace_complete'") == [("1",)]
            saxpys = ask("""SELECT D.name, A.apiName, O.start, O.end, A.start FROM op O
                JOIN keel_device D ON D.id = O.gpuId JOIN rocpd_api_ops L ON L.op_id = O.id
                JOIN api A ON A.id = L.api_id WHERE O.description = 'saxpy' ORDER BY D.name""")
            own = ask("""SELECT description FROM op JOIN keel_device D ON D.id = op.gpuId
                WHERE D.name = 'hip://0'""")
            submits = ask("SELECT count(*) FROM api WHERE apiName = 'keel_queue_submit'")
            waits = ask("SELECT count(*) FROM keel_wait WHERE on_id >= 0")
        trace.close()
    (device, launch, begin, end, call), = saxpys
    assert "gfx90a" in device and launch == "hipModuleLaunchKernel", saxpys
    assert call <= begin <= end, saxpys
    assert own == [] and submits == [(3,)], (own, submits)
    assert waits == [(2,)], waits


def check_table(program):
    """A program plays a HIP that hands its table over: two calls of one function pass through it."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"KEEL_TRACE": folder, "KEEL_TRACE_MODE": "hip"}
        result = subprocess.run(program, env={**os.environ, **environment}, timeout=60, text=True,
                                stderr=subprocess.PIPE, check=False)
        trace = Trace(folder)
    assert result.returncode == 0, result
    assert counted(trace.calls) == {"hipFree": 2}, trace.calls
    assert [call.result for call in trace.calls] == [0, 1], trace.calls
    for word in ("HIP 50000", "HIP 80000", "a second HIP"):
        assert word in result.stderr, result.stderr


def check_registered(program):
    """A HIP that is played hands its table over by rocprofiler-register: each call is there once,
    whether the program's linker bound it or the program went past this library. HIP 6 has less in
    its table, and HIP 8 is not known: calls past this library are not seen then."""
    both = {"hipMalloc": 4, "hipDrvLaunchKernelEx": 2}
    newer = {"hipLibraryGetKernel": 4, "hipKernelGetFunction": 2, "hipMemcpy3DBatchAsync": 2,
             "hipMemPrefetchAsync_v2": 2}
    def half(calls):
        return {name: count // 2 for name, count in calls.items()}
    for version, calls, failed in (("70152", {**both, **newer}, [1, 1, 500, 500]),
                                   ("60443", {**both, **half(newer)}, [1, 1, 500]),
                                   ("80000", half({**both, **newer}), [1, 500])):
        os.environ["PLAYED_HIP"] = version
        result, trace = compared(program)
        assert ("HIP 80000" in result.stderr) == (version == "80000"), result.stderr
        assert counted(trace.calls) == calls, (version, trace.calls)
        launches = [call for call in trace.calls if call.name == "hipDrvLaunchKernelEx"]
        assert "add_one" in [call.kernel for call in launches], (version, launches)
        assert sorted(call.result for call in trace.calls if call.result) == failed, trace.calls


def check_late_hip(program):
    """A function of HIP that was not there when it was asked for is found once HIP is."""
    _, trace = compared(program)
    assert counted(trace.calls) == {"hipMalloc": 2}, trace.calls


def check_roctx(program):
    """Ranges and a mark of two threads, without a GPU."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"KEEL_TRACE": folder, "LD_PRELOAD": sys.argv[2]}
        result = subprocess.run(program, env={**os.environ, **environment}, timeout=60, text=True,
                                stdout=subprocess.PIPE, check=True)
        trace = Trace(folder)
    trace.check_whole()
    assert result.stdout == "0 1 1 0 -1\n", result.stdout
    spans = {span[0]: (int(span[1]), int(span[2])) for span in trace.spans}
    assert len(spans) == len(trace.spans) == 4 + 100, trace.spans
    deep = [spans[f"deep {i}"] for i in range(100)]
    assert all(a[0] <= b[0] <= b[1] <= a[1] for a, b in zip(deep, deep[1:])), deep
    assert spans["outer"][0] <= spans["inner"][0] <= spans["inner"][1] <= spans["outer"][1], spans
    assert spans["across"][0] < spans["across"][1], spans
    assert spans["mark"][0] == spans["mark"][1], spans


def processor_time(program, environment):
    process = subprocess.Popen(program, env={**os.environ, **environment},
                               stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    assert status == 0, status
    return usage.ru_utime + usage.ru_stime


def check_startup(program):
    """What tracing adds to a small process, in processor time: the bar is 10 ms. The least of some
    runs counts, which other processes disturb least."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: sys.argv[2] for name in
                       ("LD_PRELOAD", "HSA_TOOLS_LIB", "CUDA_INJECTION64_PATH")}
        environment["KEEL_TRACE"] = folder
        alone = min(processor_time(program, {}) for _ in range(20))
        with_trace = min(processor_time(program, environment) for _ in range(20))
        assert os.listdir(folder), "nothing is recorded"
    print(f"{alone * 1000:.2f} ms alone, {with_trace * 1000:.2f} ms traced")
    assert with_trace - alone <= 0.010


if __name__ == "__main__":
    if sys.argv[4] == "hsa":
        check_hsa(sys.argv[5:])
    elif sys.argv[4] == "keel":
        check_keel(sys.argv[5])
    elif sys.argv[4] == "rtl":
        check_rtl(sys.argv[5:])
    elif sys.argv[4] == "registered":
        check_registered(sys.argv[5:])
    elif sys.argv[4] == "late":
        check_late_hip(sys.argv[5:])
    elif sys.argv[4] == "table":
        check_table(sys.argv[5:])
    elif sys.argv[4] == "startup":
        check_startup(sys.argv[5:])
    elif sys.argv[4] == "roctx":
        check_roctx(sys.argv[5:])
    else:
        check_case(sys.argv[4], sys.argv[5:])
