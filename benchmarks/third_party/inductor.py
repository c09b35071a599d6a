"""Triton that TorchInductor generates, read and evaluated without a GPU.

    python benchmarks/third_party/inductor.py [--only PART ...]     (with OMP_NUM_THREADS=1)
    python benchmarks/third_party/inductor.py --check CASE ...      fails unless these are equal, writes nothing

Inductor writes Triton for host tensors where its ``cpu_backend`` is ``triton``; a stand-in for Triton's driver answers
what it asks while writing. The generated wrapper then runs as it is, except that a kernel is not compiled and launched
but evaluated from its Triton IR, in the machine domain (in place) and once more in the real and the field domain. The
result is compared with eager float64. Writes `benchmarks/inductor.json` and `docs/evidence/inductor.md`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", tempfile.mkdtemp(prefix="inductor-"))

import torch
import torch._inductor.config as config
import torch.nn.functional as F
import triton
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.codecache import PyCodeCache
from torch._inductor.runtime.triton_heuristics import GridExpr
from triton.backends.compiler import GPUTarget

from tilewright.errors import TilewrightError
from tilewright.ir import launch
from tilewright.ir.domains.field import Field
from tilewright.ir.domains.machine import Machine
from tilewright.ir.domains.real import Real

HERE = Path(__file__).resolve().parent
EVIDENCE = HERE.parent / "inductor.json"
PAGE = HERE.parent.parent / "docs" / "evidence" / "inductor.md"
TOLERANCE = 2e-5


class Driver:
    """What Inductor asks of Triton's driver while it writes code."""

    utils = types.SimpleNamespace(get_device_properties=lambda d: {
        "multiprocessor_count": 132, "max_shared_mem": 232448, "warpSize": 32, "max_num_regs": 65536})  # fmt: skip

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, *_: Any) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        return torch.cpu

    def is_active(self) -> bool:
        return True


class Evaluated:
    """A generated kernel whose launches are evaluated. ``seen`` collects a row for each kernel."""

    seen: list[dict[str, Any]] = []

    def __init__(self, name: str, source: str):
        self.name, self.tuner = name, getattr(PyCodeCache.load(source), name)

    def run(self, *args: Any, stream: Any = None, **rest: Any) -> None:
        """One launch: in the other domains first, since the machine domain writes in place. Unsupported where that one
        refuses it."""
        meta = dict(self.tuner.configs[0].kwargs)
        named = {**dict(zip([n for n in self.tuner.fn.arg_names if n not in meta], args, strict=True)), **meta}
        grid = GridExpr.from_meta(self.tuner.inductor_meta, meta).eval_slow(named)
        row = {"kernel": self.name}
        Evaluated.seen.append(row)
        for domain in (Field(1), Real(), Machine()):
            try:
                launch.run(self.tuner.fn, grid, (), named, domain=domain, track=False)
                row[domain.name] = "evaluated"
            except TilewrightError as e:
                row[domain.name] = f"unsupported: {e.what}"
                if domain.name == "machine":
                    raise


def prepare() -> None:
    """Inductor writes Triton, and its kernels are evaluated."""
    triton.runtime.driver.set_active(Driver())
    config.cpu_backend = "triton"
    config.compile_threads = 1
    config.fx_graph_cache = False
    AsyncCompile.triton = lambda self, name, source, device_str="cpu": Evaluated(name, source)


def rms(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def adam(p: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 1e-3 * m / (v.abs().sqrt() + 1e-8), m, v


def quantize(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scale = x.abs().amax(-1, keepdim=True) / 127
    return (x / scale).round().clamp(-128, 127).to(torch.int8), scale


CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "softmax": (lambda x, w: torch.softmax(x * w, -1), ((33, 100), (100,))),
    "log softmax": (lambda x: torch.log_softmax(x, -1), ((17, 300),)),
    "softmax of long rows": (lambda x: torch.softmax(x, -1), ((3, 5000),)),
    "layer norm": (lambda x, w, b: F.layer_norm(x, (100,), w, b), ((33, 100), (100,), (100,))),
    "layer norm of long rows": (lambda x: F.layer_norm(x, (4500,)), ((3, 4500),)),
    "group norm": (lambda x: F.group_norm(x, 4), ((2, 8, 9, 9),)),
    "batch norm": (lambda x: F.batch_norm(x, None, None, training=True), ((5, 7, 9),)),
    "rms norm": (rms, ((33, 100), (100,))),
    "gelu": (lambda x: F.gelu(x), ((1000,),)),
    "gelu by tanh": (lambda x: F.gelu(x, approximate="tanh"), ((1000,),)),
    "swiglu": (lambda x, y: F.silu(x) * y, ((33, 70), (33, 70))),
    "rope": (rope, ((2, 5, 32), (5, 16), (5, 16))),
    "cross entropy": (lambda x: F.cross_entropy(x, torch.arange(33) % 100), ((33, 100),)),
    "adam": (adam, ((1000,),) * 4),
    "sum of all": (lambda x: x.sum(), ((30000,),)),
    "mean and variance": (lambda x: torch.var_mean(x, -1), ((33, 700),)),
    "largest and where": (lambda x: x.max(-1), ((33, 70),)),
    "prefix sums": (lambda x: x.cumsum(-1), ((5, 300),)),
    "transpose and add": (lambda x, y: x.T + y, ((37, 65), (65, 37))),
    "concatenate and pad": (lambda x, y: F.pad(torch.cat([x, y], -1), (1, 2)), ((9, 13), (9, 20))),
    "embedding": (lambda w: F.embedding(torch.arange(50).remainder(20), w), ((20, 33),)),
    "quantize": (quantize, ((33, 70),)),
    "max pooling": (lambda x: F.max_pool2d(x, 2), ((2, 3, 10, 10),)),
    "dropout mask given": (lambda x, m: torch.where(m > 0, x / 0.9, 0.0), ((33, 70), (33, 70))),
    "float16": (lambda x, y: torch.softmax((x.half() * y.half()).float(), -1), ((9, 100), (9, 100))),
    "bfloat16": (lambda x: F.layer_norm(x.bfloat16(), (100,)).float(), ((9, 100),)),
    "gradient of softmax": (lambda x, g: torch.autograd.grad(torch.softmax(x.requires_grad_(), -1), x, g)[0], ((9, 70),) * 2),
}  # fmt: skip
LOOSE = {"float16": 2e-3, "bfloat16": 2e-2}


def case(name: str) -> dict[str, Any]:
    """One function compiled and run; the kernels it took."""
    fn, shapes = CASES[name]
    torch.manual_seed(0)
    inputs = [torch.randn(s) for s in shapes]
    Evaluated.seen = []
    torch._dynamo.reset()
    row: dict[str, Any] = {"case": name}
    try:
        got = torch.compile(fn)(*[t.clone() for t in inputs])
    except Exception as e:
        text = next((line for line in str(e).splitlines() if line.strip()), type(e).__name__)
        return {**row, "result": f"failed: {text[:200]}", "kernels": Evaluated.seen}
    wanted = fn(*[t.clone() if name in LOOSE else t.double() for t in inputs])
    pairs = list(zip(*(v if isinstance(v, tuple | list) else (v,) for v in (got, wanted)), strict=True))
    error = max(float(((a.double() - b.double()).abs() / (b.double().abs().max() + 1e-30)).max()) for a, b in pairs)
    near = error <= LOOSE.get(name, TOLERANCE)
    return {**row, "result": "equal" if near else f"differs by {error:.2g} of the largest value", "error": error,
            "kernels": Evaluated.seen}  # fmt: skip


def good(row: dict[str, Any]) -> bool:
    """Whether a case gives what eager torch gives, by kernels that were evaluated."""
    return row["result"] == "equal" and bool(row["kernels"])


def page(e: dict[str, Any]) -> str:
    """The table."""
    rows = e["rows"]
    kernels = [k for r in rows.values() for k in r["kernels"]]
    count = {d: sum(k.get(d) == "evaluated" for k in kernels) for d in ("machine", "real", "field")}
    equal = sum(r["result"] == "equal" for r in rows.values())
    lines = [
        HEAD.format(
            n=len(kernels), cases=len(rows), equal=equal, **count, **{k: e[k] for k in ("torch", "triton", "date")}
        )
    ]
    lines += ["| Function | Kernels | Result | Machine | Real | Field |", "|---|---|---|---|---|---|"]
    for name, r in rows.items():
        said = [
            ", ".join(dict.fromkeys(k.get(d, "not reached") for k in r["kernels"]))
            for d in ("machine", "real", "field")
        ]
        made = "<br>".join(f"`{k['kernel']}`" for k in r["kernels"]) or "none"
        lines.append(f"| {name} | {made} | {r['result'].replace('|', '/')} | {' | '.join(s or 'none' for s in said)} |")
    return "\n".join(lines) + "\n"


HEAD = """# Kernels that TorchInductor generates

Written by `benchmarks/third_party/inductor.py` from `benchmarks/inductor.json`; don't edit it.

TorchInductor's Triton can be had without a GPU: with `cpu_backend = "triton"` it writes Triton for host tensors, and asks
Triton's driver for no more than a target, which a stand-in answers. Its wrapper runs as generated, but each kernel is
evaluated from its Triton IR through the readers that serve every other kernel (first configuration of its tuner). The code is
what Inductor writes for the CPU device: its choices of tiles are not those for an H200, and there are no templates for
matrix products, which on this device are calls of torch.

{cases} functions gave {n} kernels ({date}, torch {torch}, Triton {triton}): {machine} evaluated in the machine domain, {real} in
real arithmetic, {field} in the finite field. {equal} of {cases} functions give what eager torch gives in float64, within rounding.
"""


def main() -> None:
    """Run, and write evidence and page."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", nargs="*", default=[], help="cases whose name contains one of these")
    options.add_argument("--check", nargs="*", default=None, metavar="CASE")
    given = options.parse_args()
    prepare()
    if given.check is not None:
        found = {n: case(n) for n in given.check or CASES}
        raise SystemExit("\n".join(f"{n}: {r['result']}" for n, r in found.items() if not good(r)) or 0)
    held = json.loads(EVIDENCE.read_text())["rows"] if EVIDENCE.is_file() else {}
    for name in CASES:
        if not given.only or any(part in name for part in given.only):
            held[name] = case(name)
            print(name, held[name]["result"], [k.get("field") for k in held[name]["kernels"]], flush=True)
    evidence = {"machine": f"{platform.machine()}, no GPU", "python": platform.python_version(),
                "torch": torch.__version__, "triton": triton.__version__, "date": datetime.date.today().isoformat(),
                "rows": {n: held[n] for n in CASES if n in held}}  # fmt: skip
    EVIDENCE.write_text(json.dumps(evidence, indent=1) + "\n")
    PAGE.write_text(page(evidence))


if __name__ == "__main__":
    main()
