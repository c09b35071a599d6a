"""linear_sample on a device: the tokens of the reference, in any batch; filters by passes; shards; the distribution."""

from __future__ import annotations

import pytest
import torch

from tilewright import ops
from tilewright.ops._builder import REGISTRY, find
from tilewright.ops._hazards import Case
from tilewright.ops.linear_sample import reference
from tilewright.prove.examine import check

CALLS = [call.name for call in find("linear_sample").op.calls]
FLOATS = [torch.float32, torch.float16, torch.bfloat16]


def example(rows: int, entries: int, features: int, dtype: torch.dtype = torch.bfloat16) -> dict[str, torch.Tensor]:
    torch.manual_seed(rows + entries)
    given = {
        "x": torch.randn(rows, features, device="cuda"),
        "weight": torch.randn(entries, features, device="cuda") / 16,
    }
    return {n: t.to(dtype) for n, t in given.items()} | {"seed": torch.randint(1 << 62, (rows,), device="cuda")}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("call", CALLS)
def test_kernel_route_is_the_reference(call: str, dtype: torch.dtype) -> None:
    built = REGISTRY["linear_sample"]
    case = Case(built, next(c for c in built.op.calls if c.name == call), dtype=dtype, device="cuda")
    token, logprob = case.public(**case.arguments())
    wanted = case.reference(**case.arguments())
    assert torch.equal(token, wanted[0])
    torch.testing.assert_close(logprob, wanted[1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("options", [{}, {"top_k": 50}, {"top_p": 0.95}, {"top_k": 100, "top_p": 0.9, "min_p": 0.001}])
@pytest.mark.parametrize("dtype", FLOATS)
def test_large_vocabularies_give_the_tokens_of_the_reference(options: dict[str, float], dtype: torch.dtype) -> None:
    given = example(33, 128_256, 256, dtype)
    token, logprob = ops.linear_sample(**given, temperature=0.8, **options)
    rows = {n: torch.full((33,), v, device="cuda", dtype=torch.int64 if n == "top_k" else torch.float32)
            for n, v in options.items()}  # fmt: skip
    wanted = reference.linear_sample(**given, temperature=torch.full((33,), 0.8, device="cuda"), **rows)
    assert (token == wanted[0]).double().mean() > 0.97  # sums in another order decide near ties
    same = token == wanted[0]
    torch.testing.assert_close(logprob[same], wanted[1][same], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("options", [{}, {"top_k": 40, "top_p": 0.9}, {"top_p": 0.999, "temperature": 3.0}])
@pytest.mark.parametrize("rows", [2, 16, 17, 64, 65, 200])
def test_a_row_draws_the_same_in_any_batch(options: dict[str, float], rows: int) -> None:
    given = example(200, 5000, 512)
    whole = ops.linear_sample(**given, samples=2, **options)
    part = {"x": given["x"][:rows], "weight": given["weight"], "seed": given["seed"][:rows]}
    for got, wanted in zip(ops.linear_sample(**part, samples=2, **options), whole, strict=True):
        assert torch.equal(got, wanted[:rows])


def test_shards_draw_what_the_whole_draws() -> None:
    given = example(16, 8192, 512)
    parts = [ops.linear_sample_shard(given["x"], given["weight"][a : a + 2048], given["seed"], first=a, samples=3)
             for a in range(0, 8192, 2048)]  # fmt: skip
    token, logprob = ops.merge_samples(*(torch.stack(p) for p in zip(*parts, strict=True)))
    wanted = ops.linear_sample(**given, samples=3)
    assert torch.equal(token, wanted[0])
    torch.testing.assert_close(logprob, wanted[1], rtol=1e-5, atol=1e-5)


def test_draws_follow_the_distribution() -> None:
    draws, entries = 1 << 20, 64
    y = torch.randn(1, entries, device="cuda")
    given = {"x": torch.ones(draws // 64, 1, device="cuda"), "weight": y.t().contiguous()}
    token = ops.linear_sample(**given, seed=torch.arange(draws // 64, device="cuda"), samples=64)[0]
    p = torch.softmax(y.double(), -1)[0]
    share = torch.bincount(token.flatten(), minlength=entries).double() / draws
    assert float(((share - p).abs() / (p * (1 - p) / draws).sqrt()).max()) < 5.5


@pytest.mark.parametrize("pair", find("linear_sample").op.pairs, ids=lambda p: p.entry)
def test_kernels_are_accepted(pair: object) -> None:
    folder = find("linear_sample").op.folder
    verdict, _ = check(
        str(folder / pair.task), f"{folder / pair.kernel}::{pair.entry}", device="cuda", gate_seconds=6.0
    )
    assert verdict.verdict == "accept", (verdict.reason, [(g.name, g.status, g.reason) for g in verdict.gates])
