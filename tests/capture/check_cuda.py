# SPDX-License-Identifier: Apache-2.0
"""check_cuda.py KEEL DUMP CUPTI CASE PROGRAM [ARGUMENTS]

Runs a program on the software CUDA driver, alone and by `keel trace -m cuda`, with the software
CUPTI in the folder CUPTI, and compares: it prints and returns the same, and the trace has each call
and each kernel once, as often as the case says, with links from kernels to calls and times in
order. Cases that begin with `lite` are traced by `keel trace -m lite`, and counts compared. DUMP prints the parts of a trace."""
import collections
import csv
import os
import sqlite3
import subprocess
import sys
import tempfile

KEEL, DUMP, CUPTI, CASE = sys.argv[1:5]
PROGRAM = sys.argv[5:]

BEGIN = {"cuDevicePrimaryCtxRetain": 1, "cuModuleLoad": 1}
PLAIN = {**BEGIN, "cuMemAlloc_v2": 1, "cuMemcpyHtoD_v2": 1, "cuMemsetD32Async": 1,
         "cuLaunchKernel": 10, "cuCtxSynchronize": 1, "cuMemcpyDtoH_v2": 1, "cuMemFree_v2": 2}

# Of each case: the calls; the call that each kernel belongs to, and how many belong to one; copies.
CASES = {
    "plain": (PLAIN, "cuLaunchKernel", 1, 3),
    "threads": ({**BEGIN, "cuStreamCreate": 4, "cuMemAlloc_v2": 4, "cuMemsetD32Async": 4,
                 "cuLaunchKernel": 40, "cuStreamSynchronize": 4, "cuMemcpyDtoH_v2": 4,
                 "cuMemFree_v2": 4, "cuStreamDestroy_v2": 4}, "cuLaunchKernel", 1, 8),
    "graph": ({**BEGIN, "cuStreamCreate": 1, "cuMemAlloc_v2": 1, "cuMemsetD32Async": 1,
               "cuGraphCreate": 1, "cuGraphAddKernelNode_v2": 8,
               "cuGraphInstantiateWithFlags": 1, "cuGraphLaunch": 5, "cuStreamSynchronize": 1,
               "cuMemcpyDtoH_v2": 1, "cuGraphExecDestroy": 1, "cuGraphDestroy": 1,
               "cuMemFree_v2": 1, "cuStreamDestroy_v2": 1}, "cuGraphLaunch", 8, 2),
    "fork": (PLAIN, "cuLaunchKernel", 1, 3),
}


def run(program, **environment):
    where = os.pathsep.join([CUPTI, os.environ.get("LD_LIBRARY_PATH", "")]).rstrip(os.pathsep)
    environment = {**os.environ, "LD_LIBRARY_PATH": where, **environment}
    for name in ("CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"):
        environment.pop(name, None)
    return subprocess.run(program, env=environment, timeout=120, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)


def traced(folder, mode, *options, **environment):
    path = os.path.join(folder, mode + ".db")
    result = run([KEEL, "trace", "-f", "-o", path, "-m", mode, *options, "--", *PROGRAM],
                 **environment)
    return path, result


def check_same(alone, result):
    assert result.stdout == alone.stdout, (alone.stdout, result.stdout, result.stderr)
    assert result.returncode == alone.returncode, (result.returncode, result.stderr)


def ask(path, question):
    database = sqlite3.connect(path)
    rows = database.execute(question).fetchall()
    database.close()
    return rows


def complete(path):
    return ask(path, "SELECT value FROM rocpd_metadata WHERE tag = 'trace_complete'") == [("1",)]


def check_case(folder, mode):
    calls, launch, each, copies = CASES[CASE]
    alone = run(PROGRAM)
    assert alone.returncode == 7, alone
    path, result = traced(folder, mode)
    check_same(alone, result)
    assert complete(path), result.stderr
    seen = dict(ask(path, "SELECT apiName, count(*) FROM api WHERE apiName <> 'UserMarker' "
                          "GROUP BY apiName"))
    assert seen == calls, (seen, calls)
    kernels = ask(path, """SELECT K.kernelName, K.start, K.end, K.gridX, K.workgroupX, D.name,
        A.id, A.apiName, A.start, U.string FROM kernel K
        JOIN keel_device D ON D.id = K.gpuId JOIN rocpd_api_ops L ON L.op_id = K.id
        JOIN api A ON A.id = L.api_id JOIN keel_op O ON O.op_id = K.id
        JOIN rocpd_ustring U ON U.id = O.args_id""")
    assert len(kernels) == calls[launch] * each, len(kernels)
    for name, start, end, grid, group, device, _, api, called, _ in kernels:
        assert (name, grid, group, api) == ("scale", 256, 64, launch), kernels[0]
        assert device.startswith("gpu 0 (") and called <= start <= end, kernels[0]
    links = collections.Counter(kernel[6] for kernel in kernels)
    assert len(links) == calls[launch] and set(links.values()) == {each}, links
    nodes = collections.Counter(kernel[9] for kernel in kernels)
    if CASE == "graph":  # each node ran once in each launch
        assert len(nodes) == 8 and set(nodes.values()) == {5}, nodes
        assert all(node.startswith("graph ") for node in nodes), nodes
    else:
        assert set(nodes) == {""}, nodes
    moved = ask(path, "SELECT opType, size FROM copyop "
                      "WHERE apiName LIKE 'cu%' AND kind IN (1, 2, 4)")
    assert len(moved) == copies and {size for _, size in moved} == {1024}, moved
    assert ("FillBuffer", 1024) in moved and ("CopyDeviceToHost", 1024) in moved, moved
    failed = ask(path, "SELECT apiName, args FROM api WHERE args LIKE 'returned%'")
    assert failed == [], failed  # the software driver's CUPTI knows of none
    check_memory(path)


def check_memory(path):
    used = [float(value) for value, in
            ask(path, "SELECT value FROM rocpd_monitor WHERE monitorType LIKE '%memory' "
                      "ORDER BY start, id")]
    assert used and max(used) >= 1024 and used[-1] == 0, used


def check_modes(folder):
    """Without calls there are the same kernels and copies."""
    path, _ = traced(folder, "standard")
    assert complete(path)
    assert ask(path, "SELECT count(*) FROM api WHERE apiName <> 'keel_process'") == [(0,)]
    assert ask(path, "SELECT count(*) FROM kernel") == [(10,)]
    assert ask(path, "SELECT count(*) FROM copyop") == [(3,)]


def check_all_calls(folder):
    """Calls that only tell something are recorded if that is asked for."""
    path, _ = traced(folder, "cuda", "--all-calls")
    assert complete(path)
    seen = dict(ask(path, "SELECT apiName, count(*) FROM api GROUP BY apiName"))
    told = {"cuCtxSetCurrent": 1, "cuModuleGetFunction": 1}
    assert {name: seen.get(name) for name in {**PLAIN, **told}} == {**PLAIN, **told}, seen


def check_nested(folder):
    """A call of the driver in one of the runtime is a part of that, with the same number."""
    path, _ = traced(folder, "cuda", KEEL_SIM_CUPTI="runtime")
    assert complete(path)
    seen = dict(ask(path, "SELECT apiName, count(*) FROM api GROUP BY apiName"))
    assert set(seen) == {"cudaPlayed"} and seen["cudaPlayed"] >= sum(PLAIN.values()), seen
    linked = ask(path, """SELECT count(*) FROM kernel K JOIN rocpd_api_ops L ON L.op_id = K.id
        JOIN api A ON A.id = L.api_id WHERE A.start <= K.start""")
    assert linked == [(10,)], linked


def check_late(folder):
    """Recording that starts when CUDA is in use has calls and kernels, from then on."""
    alone = run(PROGRAM)
    parts = os.path.join(folder, "cuda.db.parts")
    path, result = traced(folder, "cuda", "--delay", "3600", START=KEEL, PARTS=parts)
    check_same(alone, result)
    assert complete(path), result.stderr
    seen = dict(ask(path, "SELECT apiName, count(*) FROM api GROUP BY apiName"))
    assert "cuModuleLoad" not in seen and seen.get("cuLaunchKernel", 0) > 0, seen
    linked = ask(path, """SELECT count(*) FROM kernel K JOIN rocpd_api_ops L ON L.op_id = K.id
        JOIN api A ON A.id = L.api_id WHERE A.apiName = 'cuLaunchKernel'""")[0][0]
    assert linked > 0, seen


# Of each case: launches of each kernel by each thread, and launches of graphs.
LITE = {
    "lite-plain": ([("scale", 10)], 0),
    "lite-threads": ([("scale", 10)] * 4, 0),
    "lite-graph": ([], 5),
    "lite-fork": ([("scale", 10)], 0),
    "lite-killed": ([("scale", 10)], 0),
    "lite-opened": ([("empty", 3), ("empty", 16), ("small", 82)], 0),
}


def launches(path):
    """By thread."""
    return sorted(ask(path, "SELECT kernel, sum(launches) FROM keel_launches "
                            "GROUP BY track_id, kernel"))


def check_lite(folder):
    """Launches are counted, those that went well, without CUPTI; the program does what it does
    alone. Graphs are recorded."""
    alone = run(PROGRAM, KEEL_SIM_CUPTI="taken")
    path, result = traced(folder, "lite", KEEL_SIM_CUPTI="taken")
    assert "CUDA" not in result.stderr, result.stderr
    if CASE == "lite-killed":
        assert result.returncode == 128 + 9 and "INCOMPLETE" in result.stderr, result
    else:
        assert alone.returncode == 7, alone
        check_same(alone, result)
        assert complete(path), result.stderr
    counts, graphs = LITE[CASE]
    assert launches(path) == counts, (launches(path), counts)
    calls = ask(path, "SELECT apiName, count(*) FROM api WHERE apiName <> 'keel_process' "
                      "GROUP BY apiName")
    assert calls == ([("cuGraphLaunch", graphs)] if graphs else []), calls
    assert ask(path, "SELECT count(*) FROM rocpd_op") == [(0,)]
    for name in {name for name, _ in counts}:
        total = sum(count for kernel, count in counts if kernel == name)
        shown = [line.split() for line in result.stderr.splitlines() if line.endswith("  " + name)]
        assert [words[0] for words in shown] == [str(total)], (name, total, result.stderr)
    if CASE == "lite-plain":
        check_kept(folder, path)
        check_by_hand(folder)


def check_kept(folder, path):
    """A filter judges launches, and they stay as they are in a trace that is made of others."""
    whole, merged, table = (os.path.join(folder, name) for name in
                            ("whole.db", "merged.db", "all.csv"))
    os.rename(path, whole)
    filtered, _ = traced(folder, "lite", "--kernel-filter", "^none$")
    assert launches(filtered) == [], launches(filtered)
    for command in (["merge", "-o", merged, whole, filtered],
                    ["export", "-f", "csv", "-o", table, merged]):
        result = run([KEEL, "trace", *command])
        assert result.returncode == 0, result
    assert launches(merged) == launches(whole)
    with open(table, encoding="utf8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["kind"] == "launches"]
    assert [(row["name"], int(row["value"])) for row in rows] == launches(whole), rows


def check_by_hand(folder):
    """Launches cannot be counted if CUDA loads the library, which a line says."""
    library = os.path.join(os.path.dirname(KEEL), "libkeeltrace.so")
    environment = {**os.environ, "KEEL_TRACE": folder, "KEEL_TRACE_MODE": "lite"}
    for name, said in (("CUDA_INJECTION64_PATH", 1), ("LD_PRELOAD", 0)):
        result = subprocess.run(PROGRAM, env={**environment, name: library}, timeout=120,
                                stderr=subprocess.PIPE, text=True, check=False)
        assert result.returncode == 7, result
        assert result.stderr.count("must be in LD_PRELOAD") == said, result.stderr


def check_lite_late(folder):
    """While recording is stopped nothing is counted."""
    alone = run(PROGRAM)
    parts = os.path.join(folder, "lite.db.parts")
    path, result = traced(folder, "lite", "--delay", "3600", START=KEEL, PARTS=parts)
    check_same(alone, result)
    (name, count), = launches(path)
    assert name == "scale" and count >= 11, (name, count)  # one at least that made the file
    path, result = traced(folder, "lite", "--delay", "3600")
    check_same(alone, result)
    assert "has no records" in result.stderr and not os.path.exists(path), result.stderr


def check_killed(folder):
    """A program that is killed leaves all its calls."""
    path, result = traced(folder, "cuda")
    assert result.returncode == 128 + 9 and "INCOMPLETE" in result.stderr, result
    seen = dict(ask(path, "SELECT apiName, count(*) FROM api GROUP BY apiName"))
    assert seen == PLAIN, seen


def check_faults(folder):
    """What cannot be recorded is told, and the program goes on."""
    alone = run(PROGRAM)
    for setting, said in (("taken", "another profiler"), ("future", "version 150000")):
        path, result = traced(folder, "cuda", KEEL_SIM_CUPTI=setting)
        check_same(alone, result)
        assert said in result.stderr, result.stderr
    path, result = traced(folder, "cuda", KEEL_SIM_CUPTI="drop")
    check_same(alone, result)
    assert "INCOMPLETE" in result.stderr and not complete(path), result.stderr
    lost = ask(path, "SELECT sum(lost) FROM keel_process")[0][0]
    whole = sum(PLAIN.values()) + 10 + 3 + 2  # calls, kernels, copies, memory
    assert 0 < lost <= whole // 10 + 1, (lost, whole)
    # No CUPTI at all, or one that is installed, which does not know the software driver. A line says
    # so, once, and there is no trace.
    os.unlink(path)
    result = run([KEEL, "trace", "-o", path, "-m", "cuda", "--", *PROGRAM],
                 LD_LIBRARY_PATH="/nowhere", CUDA_HOME="", CUDA_PATH="")
    check_same(alone, result)
    assert result.stderr.count("CUDA is not traced") == 1, result.stderr
    assert "has no records" in result.stderr and not os.path.exists(path), result.stderr
    # While recording is stopped nothing is recorded, which is no fault.
    path, result = traced(folder, "cuda", "--delay", "1000")
    check_same(alone, result)
    assert "CUDA" not in result.stderr and "INCOMPLETE" not in result.stderr, result.stderr
    assert "has no records" in result.stderr and not os.path.exists(path), result.stderr


def check_keel(folder):
    """Keel's own cuda:// device: what the GPU ran is there once, by CUPTI, or counted."""
    alone = run(PROGRAM)
    path, result = traced(folder, "cuda")
    check_same(alone, result)
    assert complete(path), result.stderr
    saxpys = ask(path, """SELECT D.name, A.apiName FROM op O JOIN keel_device D ON D.id = O.gpuId
        JOIN rocpd_api_ops L ON L.op_id = O.id JOIN api A ON A.id = L.api_id
        WHERE O.description = 'saxpy'""")
    assert len(saxpys) == 1 and saxpys[0][0].startswith("gpu 0 ("), saxpys
    assert saxpys[0][1].startswith("cuLaunchKernel"), saxpys
    # Without CUPTI's records Keel has its own.
    path, result = traced(folder, "cuda", KEEL_SIM_CUPTI="taken")
    own = ask(path, """SELECT D.name FROM op O JOIN keel_device D ON D.id = O.gpuId
        WHERE O.description = 'saxpy'""")
    assert own == [("cuda://0",)] or own[0][0].startswith("cuda://0"), own
    path, result = traced(folder, "lite")
    check_same(alone, result)
    assert ("saxpy", 1) in launches(path), launches(path)
    assert ask(path, "SELECT 1 FROM op WHERE description = 'saxpy'") == []


def check_nvtx(folder):
    alone = run(PROGRAM)
    path, result = traced(folder, "cuda")
    check_same(alone, result)
    assert complete(path), result.stderr
    spans = {text: (start, end) for text, start, end in
             ask(path, "SELECT args, start, end FROM api WHERE apiName = 'UserMarker'")}
    assert set(spans) == {"outer", "inn\u00e9r", "registered", "across", "mark"}, spans
    outer, inner = spans["outer"], spans["inn\u00e9r"]
    assert outer[0] <= inner[0] <= inner[1] <= outer[1], spans
    assert spans["mark"][0] == spans["mark"][1] and spans["across"][0] < spans["across"][1], spans


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as where:
        if CASE == "nvtx":
            check_nvtx(where)
        elif CASE == "killed":
            check_killed(where)
        elif CASE == "late":
            check_late(where)
        elif CASE == "keel":
            check_keel(where)
        elif CASE == "faults":
            check_faults(where)
        elif CASE == "lite-late":
            check_lite_late(where)
        elif CASE.startswith("lite-"):
            check_lite(where)
        else:
            for chosen in ("cuda", "auto"):
                check_case(where, chosen)
            if CASE == "plain":
                check_modes(where)
                check_all_calls(where)
                check_nested(where)
