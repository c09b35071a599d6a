"""Sampling from the softmax of a linear layer as two operators: for a whole vocabulary, and for a shard of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from .._builder import Call, Like, Operator, Pair, build
from .._builder import arguments as a
from .._builder.rows import rows
from . import reference

NAME = "linear_sample"
FOLDER = Path(__file__).parent
DTYPES = ("float32", "float16", "bfloat16", "float64")
OF_ROWS = ("temperature", "top_k", "top_p", "min_p", "repetition", "frequency", "presence")
INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
ARGUMENTS = (
    "Tensor x, Tensor weight, Tensor seed, Tensor? bias, Tensor? temperature, Tensor? top_k, Tensor? top_p, Tensor? min_p, "
    "Tensor? counts, Tensor? repetition, Tensor? frequency, Tensor? presence, Tensor? allowed, int samples"
)


def check(name: str, x: Any, weight: Any, seed: Any, bias: Any, *rest: Any) -> None:
    """``x`` has two dims here: api.py flattens."""
    a.floating(name, "x", x, DTYPES)
    given = dict(zip((*OF_ROWS[:4], "counts", *OF_ROWS[4:], "allowed"), rest, strict=False))
    samples, first = rest[len(given)], rest[len(given) + 1] if len(rest) > len(given) + 1 else 0
    for n, t in (("weight", weight), ("bias", bias)):
        a.same_dtype(name, n, t, x, "x")
    for n, t in (("weight", weight), ("seed", seed), ("bias", bias), *given.items()):
        a.same_device(name, n, t, x, "x")
    if weight.dim() != 2 or weight.shape[1] != x.shape[-1] or not 1 <= weight.shape[0] < 1 << 31:
        raise a.wrong(name, "weight", f"of shape {tuple(weight.shape)}",
                      f"(vocabulary, {x.shape[-1]}) for x with {x.shape[-1]} features",
                      "weight.t() if the features come first")  # fmt: skip
    if seed.dtype != torch.int64:
        raise a.wrong(name, "seed", f"a tensor of {a.short(seed.dtype)}", "int64", "seed.long()")
    a.shape(name, "seed", seed, x.shape[:1], "one for each row of x")
    if bias is not None:
        a.shape(name, "bias", bias, weight.shape[:1], "one for each vocabulary entry")
    _options(name, x, weight.shape[0], given)
    if not 1 <= samples <= 1024:
        raise a.wrong(name, "samples", samples, "1 to 1024", "several calls with other seeds")
    if first < 0 or first % 4:
        raise a.wrong(name, "first", first, "a multiple of 4 (four entries share a word of noise)",
                      "shards whose sizes are multiples of 4")  # fmt: skip


def _options(name: str, x: torch.Tensor, entries: int, given: dict[str, Any]) -> None:
    for n in OF_ROWS:
        t, wanted = given[n], torch.int64 if n == "top_k" else torch.float32
        if t is not None and t.dtype != wanted:
            raise a.wrong(name, n, f"a tensor of {a.short(t.dtype)}", a.short(wanted), f"{n}.to({wanted})")
        if t is not None:
            a.shape(name, n, t, x.shape[:1], "one for each row of x")
    for n, dtypes, words in (("counts", INTEGERS, "integers"), ("allowed", (torch.bool,), "bool (True: may be drawn)")):
        t = given[n]
        if t is not None and t.dtype not in dtypes:
            raise a.wrong(
                name, n, f"a tensor of {a.short(t.dtype)}", words, f"{n}.bool()" if n == "allowed" else f"{n}.int()"
            )
        if t is not None:
            a.shape(name, n, t, (x.shape[0], entries), "rows of x, vocabulary entries")
    penalties = [n for n in ("repetition", "frequency", "presence") if given[n] is not None]
    if penalties and given["counts"] is None:
        raise a.wrong(name, "counts", "None", f"a tensor, since there is {penalties[0]}",
                      "how often each row has seen each entry")  # fmt: skip


def _outside(x: torch.Tensor, *_: Any) -> str | None:
    return "the kernel computes in float32, x is float64" if x.dtype == torch.float64 else None


def _forward(*arguments: Any) -> tuple[torch.Tensor, ...]:
    from . import kernel

    x, *rest = arguments
    return kernel.forward(rows(NAME, "x", x), *rest)


def _sizes(x: torch.Tensor, *rest: Any, samples: int) -> list[Like]:
    wide = torch.promote_types(x.dtype, torch.float32)
    return [Like((x.shape[0], samples), torch.int64), Like((x.shape[0], samples), wide)]


def example(dtype: torch.dtype, device: str, *, row_count: int = 5, entries: int = 300, **more: Any) -> dict[str, Any]:
    """Arguments for the hazards."""
    given = {"x": torch.randn(row_count, 12, device=device), "weight": torch.randn(entries, 12, device=device)}
    return {n: t.to(dtype) for n, t in given.items()} | {
        "seed": torch.randint(1 << 62, (row_count,), device=device),
        **more,
    }


def options(name: str, rows_: int, device: str) -> torch.Tensor:
    """One option of each row."""
    low, high = {"temperature": (0.3, 2.0), "top_p": (0.2, 1.1), "min_p": (0.0, 0.2), "repetition": (0.5, 2.0),
                 "frequency": (-1.0, 1.0), "presence": (-1.0, 1.0)}[name]  # fmt: skip
    return torch.rand(rows_, device=device) * (high - low) + low


def _everything(dtype: torch.dtype, device: str) -> dict[str, Any]:
    entries = 300
    more: dict[str, Any] = {n: options(n, 5, device) for n in OF_ROWS if n != "top_k"}
    more |= {"top_k": torch.tensor([0, 1, 5, 50, 400], device=device), "samples": 3}
    more["counts"] = torch.randint(3, (5, entries), device=device)
    more["allowed"] = torch.rand(5, entries, device=device) < 0.8
    return example(dtype, device, bias=torch.randn(entries, device=device).to(dtype), **more)


def _calls(shard: bool = False) -> tuple[Call, ...]:
    def of(**more: Any) -> Any:
        own = {"first": 8} if shard else {}
        return lambda dtype, device: example(dtype, device, **more, **own)

    def heat(dtype: torch.dtype, device: str) -> dict[str, Any]:
        return example(dtype, device, temperature=torch.tensor([0.0, 0.5, 1.0, 2.0, 9.0], device=device),
                       **({"first": 8} if shard else {}))  # fmt: skip

    plain = (Call("plain", of()), Call("heat", heat), Call("several", of(samples=5)))
    return plain if shard else (*plain, Call("everything", _everything), Call("none", of(row_count=0)))


MEMORY = (
    "12 bytes a row, sample and tile of 128 entries, and 8 a row and tile; with a filter also 64 a row and tile and 32 KiB "
    "a row (vocabulary 128,256: 63 KiB of kept logits a row, where all would be 501 KiB); the logits are in no memory"
)
NOTES = (
    "of equal scores the first entry wins; logits equal to the smallest one that the filters keep are all kept",
    "a logit that is NaN wins, the first of them, and one of +inf; the log-probability is NaN then",
    "noise has 32 bits: an entry of probability below 2**-33 is never drawn, and probabilities are off by that much at most",
)

LINEAR_SAMPLE = build(Operator(
    name=NAME, summary="samples of softmax(x @ weight.T) with temperature, filters, penalties and mask; no logits in "
    "memory; a seed a row, the same draw in any batch",
    schema=f"({ARGUMENTS}) -> (Tensor, Tensor)", reference=reference.linear_sample,
    results=lambda x, *rest: _sizes(x, samples=rest[-1]), forward=lambda *given: _forward(*given, 0)[:2],
    check=lambda *given: check(NAME, *given), outside=_outside, result_names=("token", "logprob"), public=2, dtypes=DTYPES,
    folder=FOLDER, calls=_calls(), function=NAME, memory=MEMORY, notes=NOTES,
    copies="an option of one number a row that is not contiguous",
    pairs=(Pair("task.py", "plain"), Pair("task_penalised.py", "penalised"), Pair("task_filtered.py", "filtered")),
))  # fmt: skip

LINEAR_SAMPLE_SHARD = build(Operator(
    name="linear_sample_shard", summary="the same for a part of a vocabulary that is spread over devices",
    schema=f"({ARGUMENTS}, int first) -> (Tensor, Tensor, Tensor, Tensor)", reference=reference.linear_sample_shard,
    results=lambda x, *rest: [*_sizes(x, samples=rest[-2]), _sizes(x, samples=rest[-2])[1],
                              Like((x.shape[0],), torch.promote_types(x.dtype, torch.float32))],
    forward=_forward, check=lambda *given: check("linear_sample_shard", *given), outside=_outside,
    result_names=("token", "logprob", "score", "total"), public=4, dtypes=DTYPES, folder=FOLDER, calls=_calls(shard=True),
    function="linear_sample_shard", memory=MEMORY, notes=NOTES, pairs=(Pair("task.py", "plain"),),
    copies="an option of one number a row that is not contiguous",
))  # fmt: skip
