#!/usr/bin/env python3
"""Attention by PyTorch, as a peer that a bench measures itself beside: one request a line in, one answer a line out.

Request (JSON): {"backend": "cudnn" | "flash", "pass": "forward" | "backward", "length": 16384, "heads": 16,
"kv_heads": 16, "head_dim": 128, "causal": false, "dtype": "bf16" | "fp16", "settle_ms": 1600, "samples": 20}

Answer: {"ms": [...], "name": "PyTorch 2.11.0, cuDNN 9.19.0"}, milliseconds of each sample once settle_ms are over, or
{"error": "..."}. A backward pass is timed alone, its forward pass done before. The process holds its tensors until
the next request, so that a caller that takes turns with it needs no second set-up.
"""
import json
import sys
import time

KEYS = {"backend", "pass", "length", "heads", "kv_heads", "head_dim", "causal", "dtype", "settle_ms", "samples"}


def check(request):
    missing = KEYS - request.keys()
    if missing:
        raise ValueError("missing: " + ", ".join(sorted(missing)))
    for key, allowed in {"backend": ("cudnn", "flash"), "pass": ("forward", "backward"), "dtype": ("bf16", "fp16")}.items():
        if request[key] not in allowed:
            raise ValueError(f"{key} is {request[key]!r}; allowed: {', '.join(allowed)}")


class Case:
    """What is launched for a request, made ready once."""

    def __init__(self, torch, request):
        from torch.nn.attention import SDPBackend, sdpa_kernel

        self.torch = torch
        dtype = torch.bfloat16 if request["dtype"] == "bf16" else torch.float16
        backward = request["pass"] == "backward"

        def random(heads):
            shape = (1, heads, request["length"], request["head_dim"])
            return torch.randn(shape, device="cuda", dtype=dtype, requires_grad=backward)

        q, k, v = random(request["heads"]), random(request["kv_heads"]), random(request["kv_heads"])
        backend = SDPBackend.CUDNN_ATTENTION if request["backend"] == "cudnn" else SDPBackend.FLASH_ATTENTION
        grouped = request["heads"] != request["kv_heads"]

        def forward():
            with sdpa_kernel(backend):
                return torch.nn.functional.scaled_dot_product_attention(
                    q, k, v, is_causal=request["causal"], enable_gqa=grouped
                )

        if not backward:
            self.launch = forward
            return
        out = forward()
        gradient = torch.randn_like(out)
        self.launch = lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True)

    def times(self, settle_ms, samples):
        """Runs for settle_ms, then times single launches."""
        begin = time.monotonic()
        while (time.monotonic() - begin) * 1e3 < settle_ms:
            for _ in range(4):
                self.launch()
            self.torch.cuda.synchronize()
        events = []
        for _ in range(samples):
            start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            self.launch()
            end.record()
            events.append((start, end))
        self.torch.cuda.synchronize()
        return [start.elapsed_time(end) for start, end in events]


def name_of(torch, backend):
    name = "PyTorch " + torch.__version__.split("+")[0]
    if backend == "flash":
        return name + ", FlashAttention 2"
    version = torch.backends.cudnn.version() or 0
    return f"{name}, cuDNN {version // 10000}.{version // 100 % 100}.{version % 100}"


def main():
    try:
        import torch
    except ImportError as error:
        print(json.dumps({"error": f"PyTorch is not installed ({error})"}), flush=True)
        return 3
    last, case = None, None
    for line in sys.stdin:
        try:
            request = json.loads(line)
            check(request)
            key = {k: request[k] for k in KEYS - {"settle_ms", "samples"}}
            if key != last:
                case = None  # its memory goes before the next one's comes
                torch.cuda.empty_cache()
                case, last = Case(torch, request), key
            times = case.times(request["settle_ms"], request["samples"])
            answer = {"ms": times, "name": name_of(torch, request["backend"])}
        except Exception as error:  # whatever it is, the caller is told, and goes on with another case
            last, case = None, None
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
