"""What ``tilewright.ops.patch`` changes in a training step: time, memory, error.

    python benchmarks/h200/patch/run.py --out benchmarks/h200/patch.json

One model with random weights (``--model plain``: plain PyTorch, beside this file; or a family of transformers, where that is
installed) takes steps of forward, backward and AdamW several ways over the same weights: as it is, as it is once more (what
differs there is noise), patched, with Liger's kernels, compiled. Turns are interleaved, ABBA, arms in random order in each
block; a block counts once, by its median; intervals are bootstrapped over blocks. An arm that can't be had is named with its
reason. ``--device cpu --tiny`` runs it all in seconds, for a test of the script: its times say nothing.
"""

from __future__ import annotations

import argparse
import copy
import importlib.metadata
import importlib.util
import json
import random
import statistics as plain_statistics
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import arms
import plain
import torch

from tilewright.measure import gpu_state, state, statistics
from tilewright.measure.protocol import Protocol

PROTOCOL = Protocol()
PAIRS = (("unpatched", "unpatched again"), ("unpatched", "patched"), ("liger", "patched"), ("compiled", "patched"))
EXTRA = ("liger_kernel", "transformers")


def main(arguments: list[str] | None = None) -> int:
    """Exit code: 0 measured, 1 an arm failed in a way that was not foreseen (the evidence says how)."""
    a = options(arguments)
    sizes = (
        plain.TINY if a.tiny else plain.Sizes(**{k: v for k in vars(plain.Sizes()) if (v := getattr(a, k)) is not None})
    )
    dtype = getattr(torch, a.dtype)
    model = arms.build(a.model, sizes, dtype, a.device)
    batches = [torch.randint(sizes.vocabulary, (sizes.batch, sizes.length), device=a.device) for _ in range(4)]
    losses, about, missing = ready(model, a.arms, batches[0])
    errors = accuracy(model, losses, batches[0], a.device)
    step = stepper(model, a.device)
    peaks = {name: memory(lambda f=f: step(f, batches[0]), model, a.device) for name, f in losses.items()}
    blocks = measure(losses, step, batches, a)
    a.out.write_text(json.dumps(report(a, sizes, about, missing, errors, peaks, blocks), indent=1) + "\n")
    print(told(json.loads(a.out.read_text())))
    return int(any(m.startswith("failed") for m in missing.values()))


def options(arguments: list[str] | None) -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=Path, default=HERE.parent / "patch.json")
    p.add_argument("--device", default="cuda")
    p.add_argument("--tiny", action="store_true", help="a model of two small layers, few turns")
    p.add_argument("--model", default="plain", choices=["plain", *arms.FAMILIES])
    p.add_argument("--dtype", default="bfloat16", choices=["float32", "float16", "bfloat16"])
    p.add_argument("--arms", nargs="+", choices=list(arms.ARMS), default=list(arms.ARMS))
    p.add_argument("--blocks", type=int, default=None, help=f"default {PROTOCOL.blocks_least}, {3} with --tiny")
    p.add_argument("--calls", type=int, default=3, help="steps a turn")
    for name in vars(plain.Sizes()):
        p.add_argument(f"--{name}", type=int)
    a = p.parse_args(arguments)
    a.blocks = a.blocks or (3 if a.tiny else PROTOCOL.blocks_least)
    return a


def ready(model: Any, names: list[str], tokens: Any) -> tuple[dict[str, arms.Loss], dict[str, str], dict[str, str]]:
    """Arms that there are, what each is, and why the others are missing."""
    losses: dict[str, arms.Loss] = {}
    about: dict[str, str] = {}
    missing: dict[str, str] = {}
    for name in names:
        try:
            losses[name], about[name] = arms.ARMS[name](model)
            losses[name](tokens).backward()
        except arms.Missing as e:
            missing[name] = str(e)
        except Exception as e:  # another package's: the others go on
            missing[name] = f"failed: {type(e).__name__}: {str(e).splitlines()[0][:300]}"
            losses.pop(name, None)
        model.zero_grad(set_to_none=True)
    return losses, about, missing


def stepper(model: Any, device: str) -> Any:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=device.startswith("cuda"))

    def step(loss: arms.Loss, tokens: torch.Tensor) -> None:
        optimizer.zero_grad(set_to_none=True)
        loss(tokens).backward()
        optimizer.step()

    return step


def measure(losses: dict[str, arms.Loss], step: Any, batches: list[torch.Tensor], a: argparse.Namespace) -> Any:
    """Of each arm one list of milliseconds a block."""
    order, drawn = list(losses), random.Random(statistics.SEED)
    for name in order * 2:
        clocked(lambda name=name: step(losses[name], batches[0]), a.device)
    blocks: dict[str, list[list[float]]] = {n: [] for n in order}
    for _ in range(a.blocks):
        drawn.shuffle(order)
        for name in order:
            blocks[name].append([])
        for name in [*order, *reversed(order)]:
            for i in range(a.calls):
                tokens = batches[i % len(batches)]
                blocks[name][-1].append(clocked(lambda: step(losses[name], tokens), a.device))
    return blocks


def clocked(call: Any, device: str) -> float:
    """Milliseconds of one call: between events on a GPU, of the wall elsewhere."""
    if not device.startswith("cuda"):
        began = time.perf_counter()
        call()
        return 1e3 * (time.perf_counter() - began)
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    first.record()
    call()
    last.record()
    torch.cuda.synchronize()
    return first.elapsed_time(last)


def memory(call: Any, model: Any, device: str) -> float | None:
    """MiB at the peak of a second step above what lies there between steps, without gradients; None on the CPU."""
    if not device.startswith("cuda"):
        return None
    call()
    model.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    call()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def accuracy(
    model: Any, losses: dict[str, arms.Loss], tokens: torch.Tensor, device: str
) -> dict[str, dict[str, float]]:
    """Of each arm: how far loss and gradients are from those of the unpatched model in a wider dtype, relative, in norm."""
    wide = (
        torch.float32
        if device.startswith("cuda") and next(model.parameters()).dtype != torch.float32
        else torch.float64
    )
    truth = copy.deepcopy(model).to(wide)
    wanted = arms.loss_of(truth)(tokens)
    wanted.backward()
    found = {}
    for name, loss in losses.items():
        model.zero_grad(set_to_none=True)
        got = loss(tokens)
        got.backward()
        pairs = list(zip(model.parameters(), truth.parameters(), strict=True))
        off = sum(float((p.grad.to(wide) - t.grad).square().sum()) for p, t in pairs)
        size = sum(float(t.grad.square().sum()) for _, t in pairs)
        found[name] = {"loss": abs(got.item() - wanted.item()) / abs(wanted.item()), "gradients": (off / size) ** 0.5}
    model.zero_grad(set_to_none=True)
    return found


def report(a: argparse.Namespace, sizes: Any, about: Any, missing: Any, errors: Any, peaks: Any, blocks: Any) -> Any:
    arms_ = {n: {"what": about[n], "step, ms": spread(statistics.block_medians(b)), "peak above weights, MiB": peaks[n],
                 "error": errors[n], "blocks": [plain_statistics.median(x) for x in b]} for n, b in blocks.items()}  # fmt: skip
    ratios = {f"{x} / {y}": ratio(blocks[x], blocks[y]) for x, y in PAIRS if x in blocks and y in blocks}
    seen = gpu_state.snapshot(a.device) if a.device.startswith("cuda") else state.snapshot(a.device)
    extra = {n: importlib.metadata.version(n.replace("_", "-")) for n in EXTRA if importlib.util.find_spec(n)}
    return {"what": "a training step: forward, backward, AdamW", "model": a.model, "dtype": a.dtype, "device": a.device,
            "tiny": a.tiny, "sizes": vars(sizes), "blocks": a.blocks, "calls a turn": a.calls,
            "level": PROTOCOL.level, "machine": seen, "versions": state.versions() | extra, "arms": arms_,
            "ratios of step times": ratios, "missing": missing}  # fmt: skip


def spread(values: Any) -> dict[str, float]:
    return statistics.interval(values, PROTOCOL).model_dump()


def ratio(x: Any, y: Any) -> dict[str, Any]:
    """Step time of ``x`` over that of ``y``, block by block; above 1, ``y`` is faster."""
    paired = statistics.paired(y, x)
    noise, found = statistics.variation(paired), spread(paired)
    margin = PROTOCOL.smallest_effect
    answer = "no measurable difference"
    if noise > PROTOCOL.variation_cap:
        answer = f"too noisy: block ratios vary by {noise:.1%}"
    elif found["low"] > 1 + margin or found["high"] < 1 - margin:
        answer = "the second is faster" if found["low"] > 1 else "the first is faster"
    return found | {"variation": noise, "answer": answer}


def told(found: dict[str, Any]) -> str:
    lines = [f"{n}: {a['step, ms']['median']:.2f} ms, {peak(a['peak above weights, MiB'])}, "
             f"gradients off by {a['error']['gradients']:.1e}" for n, a in found["arms"].items()]  # fmt: skip
    lines += [f"{n}: {r['median']:.3f} ({r['low']:.3f} to {r['high']:.3f}), {r['answer']}"
              for n, r in found["ratios of step times"].items()]  # fmt: skip
    return "\n".join([*lines, *(f"{n}: not measured, {why}" for n, why in found["missing"].items())])


def peak(mib: float | None) -> str:
    return "memory not measured" if mib is None else f"peak {mib:.0f} MiB above weights"


if __name__ == "__main__":
    sys.exit(main())
