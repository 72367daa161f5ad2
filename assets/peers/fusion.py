#!/usr/bin/env python3
"""Residual + RMSNorm + FP8 with a scale per row, by PyTorch and by Triton, as peers that a bench measures itself beside:
one request a line in, one answer a line out.

Request (JSON): {"rung": "copy" | "eager" | "compile" | "triton", "rows": 16, "width": 4096, "slices": 64,
"settle_ms": 150, "samples": 14}
Answer: {"ms": [...], "name": "PyTorch 2.11.0", "kernels": 1}: milliseconds of each sample once settle_ms are over, by
CUDA events around the replay of a CUDA graph that has the operator once for each slice of the inputs, L2 flushed
before. "kernels" is what the profiler counts for one slice, null where it cannot. "copy" is the device's own copy of as
many bytes as the operator moves.

Or {"rung": ..., "width": 4096, "check": {"x": [...], "residual": [...], "gain": [...]}}, bit patterns of BF16.
Answer: {"sum": [...], "codes": [...], "scale": [...]}, as bit patterns but for the scales.

What cannot be done is answered with {"error": "..."}. Try it:
echo '{"rung": "eager", "rows": 8192, "width": 4096, "slices": 4, "settle_ms": 150, "samples": 20}' | python3 fusion.py
"""
import array
import json
import sys
import time

RUNGS = ("copy", "eager", "compile", "triton")
COUNTS = ("rows", "width", "slices", "settle_ms", "samples")
EPSILON = 1e-5
FLUSHED_BYTES = 256 << 20  # more than an L2 cache holds

try:
    import torch
    import triton
    import triton.language as tl
except ImportError as error:
    print(json.dumps({"error": f"PyTorch and Triton are not both installed ({error})"}), flush=True)
    sys.exit(3)


# [rung: eager]
def eager(x, residual, gain):
    h = x + residual
    n = torch.nn.functional.rms_norm(h, h.shape[-1:], gain, EPSILON)
    scale = n.abs().amax(-1, keepdim=True).float() / 448
    return h, (n.float() / scale).to(torch.float8_e4m3fn), scale
# [end]


# [rung: compile]
compiled = torch.compile(eager, dynamic=False)
# [end]


# [rung: triton]
@triton.jit
def chain(x, residual, gain, sums, codes, scales, width, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    here = column < width
    at = row * width + column
    a = tl.load(x + at, here, 0.0).to(tl.float32)
    b = tl.load(residual + at, here, 0.0).to(tl.float32)
    g = tl.load(gain + column, here, 0.0).to(tl.float32)
    stored = (a + b).to(tl.bfloat16)
    tl.store(sums + at, stored, here)
    h = stored.to(tl.float32)
    inverse = 1.0 / tl.sqrt_rn(tl.sum(h * h, 0) / width + epsilon)
    n = (h * g * inverse).to(tl.bfloat16).to(tl.float32)
    largest = tl.max(tl.abs(n), 0)
    tl.store(codes + at, (n * (448.0 / largest)).to(tl.float8e4nv), here)
    tl.store(scales + row, largest / 448.0)


def by_triton(x, residual, gain):
    sums, codes = torch.empty_like(x), torch.empty_like(x, dtype=torch.float8_e4m3fn)
    scales = torch.empty((*x.shape[:-1], 1), device=x.device)
    rows, width = x.shape
    block = triton.next_power_of_2(width)
    chain[(rows,)](x, residual, gain, sums, codes, scales, width, EPSILON, block, num_warps=max(1, min(16, block // 512)))
    return sums, codes, scales
# [end]


RUN = {"eager": eager, "compile": compiled, "triton": by_triton}


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
    x, residual, gain = (bits_of(request["check"][name]) for name in ("x", "residual", "gain"))
    width = request["width"]
    h, codes, scale = RUN[request["rung"]](x.view(-1, width), residual.view(-1, width), gain)
    return {
        "sum": [bits & 0xFFFF for bits in h.flatten().view(torch.int16).tolist()],
        "codes": codes.flatten().view(torch.uint8).tolist(),
        "scale": scale.flatten().tolist(),
    }


class Inputs:
    """Random rows for each slice, and the rungs' graphs over them."""

    def __init__(self, rows, width, slices):
        def random(*shape):
            return torch.randn(shape, device="cuda", dtype=torch.bfloat16)

        self.x, self.residual = random(slices, rows, width), random(slices, rows, width)
        self.gain = 1 + 0.25 * random(width)
        self.flushed = torch.empty(FLUSHED_BYTES, device="cuda", dtype=torch.uint8)
        self.graphs, self.kept = {}, {}

    def once(self, rung, part):
        return RUN[rung](self.x[part], self.residual[part], self.gain)

    def all(self, rung):
        if rung == "copy":  # half of the bytes each way: 7 per number
            count = self.x.numel() * 7 // 2
            half = self.flushed.new_empty(2 * count) if "copy" not in self.kept else self.kept["copy"]
            half[:count].copy_(half[count:])
            return half
        # All outputs are kept, so that each is written where no other is.
        return [self.once(rung, part) for part in range(len(self.x))]

    def graph(self, rung):
        if rung not in self.graphs:
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                self.kept[rung] = self.all(rung)  # compiles, and allocates
            torch.cuda.current_stream().wait_stream(stream)
            if rung != "copy":
                del self.kept[rung]
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.kept[rung] = self.all(rung)
            self.graphs[rung] = graph
        return self.graphs[rung]

    def times(self, rung, settle_ms, samples):
        graph = self.graph(rung)
        begin = time.monotonic()
        while (time.monotonic() - begin) * 1e3 < settle_ms:
            for _ in range(4):
                graph.replay()
            torch.cuda.synchronize()
        events = []
        for _ in range(int(samples)):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            self.flushed.zero_()
            start.record()
            graph.replay()
            end.record()
            events.append((start, end))
        torch.cuda.synchronize()
        return [start.elapsed_time(end) for start, end in events]

    def kernels(self, rung):
        if rung == "copy":
            return 1
        try:
            self.once(rung, 0)
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
                self.once(rung, 0)
                torch.cuda.synchronize()
            on_gpu = [event.name for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA]
            return sum(not name.startswith("##") for name in on_gpu) or None  # "##" are notes of torch.compile
        except Exception:  # another program may have the profiler
            return None


def main():
    last, inputs, counted = None, None, {}
    version = torch.__version__.split("+")[0]
    for line in sys.stdin:
        try:
            request = json.loads(line)
            check(request)
            rung = request["rung"]
            if "check" in request:
                answer = checked(request)
            else:
                shape = tuple(int(request[key]) for key in ("rows", "width", "slices"))
                if shape != last:
                    inputs = None  # its memory goes before the next one's comes
                    torch.cuda.empty_cache()
                    inputs, last = Inputs(*shape), shape
                ms = inputs.times(rung, request["settle_ms"], request["samples"])
                if rung not in counted:
                    counted[rung] = inputs.kernels(rung)
                name = f"Triton {triton.__version__}" if rung == "triton" else f"PyTorch {version}"
                answer = {"ms": ms, "name": name, "kernels": counted[rung]}
        except Exception as error:  # whatever it is, the caller is told, and goes on with another case
            last, inputs = None, None
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
