#!/usr/bin/env python3
"""A decode step without attention by PyTorch, as a peer that a bench measures itself beside: one request a line in, one
answer a line out.

Request (JSON): {"rung": "eager" | "compile" | "graphs", "width": 2048, "inner": 8192, "layers": 16, "batch": 1,
"settle_ms": 150, "samples": 20}
Answer: {"ms": [...], "name": "PyTorch 2.11.0", "kernels": 112, "first_s": 3.1, "again_s": 1.2}: milliseconds of each
step by CUDA events once settle_ms are over; the kernels of a step, null where the profiler cannot say; seconds until the
result of the first step was there, and of the first one with a token more, compiler's caches off.

Or {"rung": ..., "width": 64, "check": {"h": [...], "gains": [...], "gate": [...], "up": [...], "down": [...]}}: numbers, and
bit patterns of BF16 for the matrices of all layers. Answer: {"h": [...]}.

What cannot be done is answered with {"error": "..."}. Try it:
echo '{"rung": "eager", "width": 2048, "inner": 8192, "layers": 16, "batch": 1, "settle_ms": 150, "samples": 20}' |
python3 launches.py
"""
import array
import json
import os
import sys
import time
import types

os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"  # a shape that was compiled in an earlier run is new here too

RUNGS = ("eager", "compile", "graphs")
COUNTS = ("width", "inner", "layers", "batch", "settle_ms", "samples")
EPSILON = 1e-5

try:
    import torch
except ImportError as error:
    print(json.dumps({"error": f"PyTorch is not installed ({error})"}), flush=True)
    sys.exit(3)


class Layers(torch.nn.Module):
    """Weights as parameters: a graph reads them where they lie, and copies its other inputs before each replay."""

    def __init__(self, gains, gate, up, down):
        super().__init__()
        for name, stack in (("gains", gains), ("gate", gate), ("up", up), ("down", down)):
            one_each = [torch.nn.Parameter(one.clone(), requires_grad=False) for one in stack]
            setattr(self, name, torch.nn.ParameterList(one_each))


def step(h, layers):
    linear, silu = torch.nn.functional.linear, torch.nn.functional.silu
    for gain, gate, up, down in zip(layers.gains, layers.gate, layers.up, layers.down):
        n = torch.nn.functional.rms_norm(h, h.shape[-1:], gain, EPSILON)
        h = h + linear(silu(linear(n, gate)) * linear(n, up), down)
    return h


def made(rung):
    """The step as a rung has it, with code of its own, so that nothing of it is compiled yet."""
    if rung == "eager":
        return step
    own = types.FunctionType(step.__code__.replace(co_name="step_" + rung), globals())
    return torch.compile(own, dynamic=False, mode="reduce-overhead" if rung == "graphs" else None)


def check(request):
    if not isinstance(request, dict) or request.get("rung") not in RUNGS:
        raise ValueError("rung must be one of " + ", ".join(RUNGS))
    for key in ("width",) if "check" in request else COUNTS:
        if not isinstance(request.get(key), (int, float)) or request[key] < 1:
            raise ValueError(f"{key} must be a number from 1 on")


def bits_of(numbers):
    """A BF16 tensor on the GPU from bit patterns."""
    return torch.frombuffer(bytearray(array.array("H", numbers).tobytes()), dtype=torch.bfloat16).cuda()


def checked(request):
    width, given = request["width"], request["check"]
    h, gains = (torch.tensor(given[name], device="cuda").to(torch.bfloat16).view(-1, width) for name in ("h", "gains"))
    gate, up = (bits_of(given[name]).view(len(gains), -1, width) for name in ("gate", "up"))
    down = bits_of(given["down"]).view(len(gains), width, -1)
    return {"h": made(request["rung"])(h, Layers(gains, gate, up, down)).float().flatten().tolist()}


class Model:
    def __init__(self, width, inner, layers):
        def random(*shape):
            return torch.randn(shape, device="cuda", dtype=torch.bfloat16)

        self.width = width
        gains = 1 + 0.25 * random(layers, width)
        gate, up = (random(layers, inner, width) / width**0.5 for _ in range(2))
        self.layers = Layers(gains, gate, up, random(layers, width, inner) / inner**0.5)
        self.kept = {}

    def tokens(self, batch):
        return torch.randn((batch, self.width), device="cuda", dtype=torch.bfloat16)

    def once(self, run, h):
        torch.compiler.cudagraph_mark_step_begin()
        return run(h, self.layers)

    def begun(self, rung, batch):
        """The rung's step, compiled for a batch and the next one, the seconds that these took, and its kernels."""
        if (rung, batch) not in self.kept:
            run, seconds = made(rung), []
            for tokens in (batch, batch + 1):
                h = self.tokens(tokens)
                begin = time.monotonic()
                self.once(run, h)
                torch.cuda.synchronize()
                seconds.append(time.monotonic() - begin)
            h = self.tokens(batch)
            for _ in range(3):  # a graph is captured once the step has run
                self.once(run, h)
            self.kept[rung, batch] = run, *seconds, kernels_of(lambda: self.once(run, h))
        return self.kept[rung, batch]

    def measured(self, rung, batch, settle_ms, samples):
        run, first, again, kernels = self.begun(rung, batch)
        h = self.tokens(batch)
        begin = time.monotonic()
        while (time.monotonic() - begin) * 1e3 < settle_ms:
            for _ in range(4):
                self.once(run, h)
            torch.cuda.synchronize()
        events = []
        for _ in range(int(samples)):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            self.once(run, h)
            end.record()
            events.append((start, end))
        torch.cuda.synchronize()
        ms = [start.elapsed_time(end) for start, end in events]
        return {"ms": ms, "first_s": first, "again_s": again, "kernels": kernels}


def kernels_of(once):
    try:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            once()
            torch.cuda.synchronize()
        on_gpu = [event.name for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
        # "##" are notes of torch.compile; copies and fills are no kernels
        return sum(not name.startswith(("##", "Mem")) for name in on_gpu) or None
    except Exception:  # another program may have the profiler
        return None


@torch.no_grad()
def main():
    last, model = None, None
    version = torch.__version__.split("+")[0]
    for line in sys.stdin:
        try:
            request = json.loads(line)
            check(request)
            rung = request["rung"]
            if "check" in request:
                answer = checked(request)
            else:
                shape = tuple(int(request[key]) for key in ("width", "inner", "layers"))
                if shape != last:
                    model = None  # its memory goes before the next one's comes
                    torch.cuda.empty_cache()
                    model, last = Model(*shape), shape
                answer = model.measured(rung, int(request["batch"]), request["settle_ms"], request["samples"])
                answer["name"] = f"PyTorch {version}"
        except Exception as error:  # whatever it is, the caller is told, and goes on with another case
            last, model = None, None
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
