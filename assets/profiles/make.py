#!/usr/bin/env python3
"""Writes the example traces beside it, in the Chrome trace format of PyTorch's profiler, from the recorded runs of
tilestep's own lesson `launches` (assets/recordings): decode steps of a small model, as a stream of kernels and as a
CUDA graph. All times of calls and kernels are the recording's, on the GPU that it names. Between the steps, whose
clocks each begin at 0, 50 µs were put. Shapes and grids are those of the lesson's sources.

python3 assets/profiles/make.py
"""
import datetime
import json
import pathlib

HERE = pathlib.Path(__file__).resolve().parent
RECORDINGS = HERE.parent / "recordings" / "nvidia-h200"
WIDTH, INNER, THREADS = 64, 128, 128
PAUSE_US = 50
CALLS = {"copy in": "cudaMemcpyAsync", "launch": "cudaLaunchKernel", "record": "cudaEventRecord",
         "wait": "cudaStreamWaitEvent", "begin capture": "cudaStreamBeginCapture",
         "end capture": "cudaStreamEndCapture", "instantiate": "cudaGraphInstantiate",
         "update": "cudaGraphExecUpdate", "replay": "cudaGraphLaunch", "synchronize": "cudaStreamSynchronize"}
ROWS = {"gate": (INNER, WIDTH), "up": (INNER, WIDTH), "down": (WIDTH, INNER)}


def operands(kernel, batch):
    """Input Dims and Input type of an operator."""
    if kernel in ROWS:
        rows, k = ROWS[kernel]
        return [[batch, k], [rows, k]], ["float", "c10::BFloat16"]
    if kernel in ("act", "add"):
        numbers = INNER if kernel == "act" else WIDTH
        return [[batch, numbers]] * 2, ["float", "float"]
    return ([[batch], [256, WIDTH]], ["int", "float"]) if kernel == "embed" else ([[batch, WIDTH], [WIDTH]],
                                                                                   ["float", "float"])


def blocks(kernel, batch):
    if kernel in ROWS:
        return ROWS[kernel][0] // (THREADS // 32)
    if kernel in ("act", "add"):
        return -(-batch * (INNER if kernel == "act" else WIDTH) // THREADS)
    return batch


def trace_of(file, with_operators):
    recording = json.loads((RECORDINGS / file).read_text())
    run = recording["run"]
    trace = run["trace"]
    day = datetime.datetime.fromisoformat(recording["recorded_at"]).replace(tzinfo=datetime.timezone.utc)
    events = [{"ph": "M", "name": "process_name", "pid": 1, "tid": 1, "args": {"name": "tilestep"}},
              {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "tilestep"}}]

    def add(category, name, pid, tid, begin, end, args):
        events.append({"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": round(begin, 3),
                       "dur": round(end - begin, 3), "args": args})

    at = 0
    for number, step in enumerate(trace["steps"], 1):
        beats = range(step["first_beat"], step["last_beat"] + 1)
        ends = [0]
        for index, call in enumerate(trace["calls"]):
            if call["beat"] not in beats:
                continue
            begin, end = at + call["begin_us"], at + call["end_us"]
            ends.append(call["end_us"])
            args = {"correlation": index + 1}
            if with_operators and call["kind"] == "launch":
                args["External id"] = index + 1
                kernel = call["what"].split()[0]
                dims, types = operands(kernel, step["rows"])
                add("cpu_op", f"launches::{kernel}", 1, 1, begin, end,
                    {"External id": index + 1, "Input Dims": dims, "Input type": types})
            add("cuda_runtime", CALLS[call["kind"]], 1, 1, begin, end, args)
        for work in trace["works"]:
            if work["beat"] not in beats or work["end_us"] <= work["begin_us"]:
                continue  # copies have no times in the recording
            stream = 7 + work["stream"]
            args = {"device": 0, "context": 1, "stream": stream, "correlation": work["call"] + 1,
                    "grid": [blocks(work["kernel"], step["rows"]), 1, 1], "block": [THREADS, 1, 1]}
            if with_operators:
                args["External id"] = work["call"] + 1
            add("kernel", f"tilestep::launches::{work['kernel']}", 0, stream, at + work["begin_us"],
                at + work["end_us"], args)
            ends.append(work["end_us"])
        add("user_annotation", f"ProfilerStep#{number}", 1, 1, at, at + max(ends), {})
        at += max(ends) + PAUSE_US
    device = run["device"]
    return {"comment": f"Decode steps of tilestep's lesson launches ({trace['mode']}), recorded on {device['name']} on "
                       f"{recording['recorded_at']} by tilestep with CUPTI, and written in this format by "
                       "assets/profiles/make.py; not a run of PyTorch. The clocks of host and device agree within "
                       f"{trace['clocks_us']} µs. Between steps 50 µs were put.",
            "recordedBy": "tilestep's lesson launches",
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": device["name"], "numSms": device["multiprocessors"]}],
            "baseTimeNanoseconds": int(day.timestamp()) * 10 ** 9, "traceEvents": events}


def write(name, trace):
    text = json.dumps({**trace, "traceEvents": None}, ensure_ascii=False)
    events = ",\n".join(json.dumps(event) for event in trace["traceEvents"])
    (HERE / f"{name}.json").write_text(text.replace("null", f"[\n{events}\n]") + "\n")


write("decode", trace_of("launches.json", True))
write("decode-graph", trace_of("launches/graph.json", False))
