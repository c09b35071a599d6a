"""A trace replayed in real arithmetic gives what the call gave: views, in-place work, aliasing, constants, paths."""

import pytest
import torch

from tilewright.errors import Unsupported
from tilewright.ir.domains.field import Field
from tilewright.ir.domains.real import Real
from tilewright.ir.torch_ops.context import TORCH_FLOATS, Value
from tilewright.ir.values import struct
from tilewright.prove.replay_trace import Replay
from tilewright.prove.trace import Trace

TABLE = torch.tensor([0.5, 2.0, -1.0], dtype=torch.float64)


def traced(f, **inputs):
    """The call's results and its trace."""
    trace = Trace(inputs)
    with trace:
        out = f(**inputs)
    results = {f"out.{i}": t for i, t in enumerate(out if isinstance(out, tuple) else (out,))}
    return results, trace.finish(results)


def values(domain, inputs):
    return {
        n: Value(t.clone() if t.dtype not in TORCH_FLOATS else t.double().clone(), t.dtype) for n, t in inputs.items()
    }


def writes_through_views(x):
    y = x.clone()
    y[1:, ::2] *= 3
    y.t()[0] += 1
    y.view(-1)[5:7].fill_(9)
    return y


def output_arguments(x):
    out = torch.empty(4, 6, dtype=x.dtype)
    torch.add(x, x, out=out)
    torch.sum(out, 1, out=(s := torch.empty(4, dtype=x.dtype)))
    return out, s


def one_storage_for_two_results(x):
    both = torch.empty(2, 4, 6, dtype=x.dtype)
    both[0].copy_(x.exp())
    torch.mul(both[0], 2, out=both[1])
    return both[0], both[1]


def strided_scratch(x):
    y = torch.empty_strided((4, 6), (1, 4), dtype=x.dtype)
    y.copy_(x)
    return y.as_strided((3, 4), (4, 1)).cos()


def rows_by_index(x):
    index = torch.tensor([2, 0, 2])
    y = torch.zeros(4, 6, dtype=x.dtype).index_add_(0, index, x[:3])
    y[index] = x[1:] * TABLE[:, None]
    return y, torch.cat([x[index], y]).cumsum(0)


def whole_numbers(x):
    n = torch.arange(6) * 3 % 5
    return x * n + (n > 2), n.sum()


def swapped_in_place(x):
    a, b = x[:2], x[2:]
    kept = a.clone()
    a.copy_(b)
    b.copy_(kept)
    return x


def expanded(x):
    return (x[:, :1].expand(4, 6) + x.mean(0)).masked_fill(x > 0, -2.0).sort(1)[0]


CALLS = [writes_through_views, output_arguments, one_storage_for_two_results, strided_scratch, rows_by_index, whole_numbers,
         swapped_in_place, expanded]  # fmt: skip


@pytest.mark.parametrize("call", CALLS, ids=lambda f: f.__name__)
def test_replay_gives_the_call_s_results(call):
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    inputs = {"x": x.clone()}
    given = values(Real(), inputs)
    results, trace = traced(call, **inputs)
    got = Replay(Real()).run(trace, given)
    for name, truth in results.items():
        torch.testing.assert_close(got[name].data, truth, rtol=1e-12, atol=1e-12, check_dtype=False)


def test_a_lost_step_of_the_trace_shows():
    """The replay rests on every step: without the in-place one the result is another."""
    x = torch.randn(4, 6, dtype=torch.float64)
    results, trace = traced(writes_through_views, x=x)
    trace["steps"] = [s for s in trace["steps"] if s.get("op") != "aten.mul_.Tensor"]
    got = Replay(Real()).run(trace, values(Real(), {"x": x}))
    assert not torch.allclose(got["out.0"].data, results["out.0"])


def field_value(domain, t):
    return Value(struct(domain.random((t.numel(),)), lambda p: p.reshape(t.shape)), t.dtype)


def test_in_place_and_fresh_are_the_same_formula_in_the_field():
    x = torch.randn(4, 6)
    _, fresh = traced(lambda x: torch.softmax(x, -1) * 2, x=x)
    _, in_place = traced(lambda x: (e := x.exp()).div_(e.sum(-1, keepdim=True)).mul_(2), x=x)
    _, other = traced(lambda x: (e := x.exp()).div_(e.sum(-1, keepdim=True)).mul_(2.000001), x=x)
    domain = Field(4)
    given = {"x": field_value(domain, x)}
    a, b, c = (Replay(domain).run(t, given)["out.0"].data for t in (fresh, in_place, other))
    assert bool(domain.equal(a, b).all())
    assert not bool(domain.equal(a, c).any())


def test_what_is_never_read_may_be_unknown():
    def call(x):
        torch.rand(3)
        scratch = torch.randn(4, 6)
        return scratch.copy_(x) + 1

    x = torch.randn(4, 6)
    results, trace = traced(call, x=x)
    got = Replay(Real()).run(trace, values(Real(), {"x": x}))
    torch.testing.assert_close(got["out.0"].data.float(), results["out.0"])


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda x: x + torch.rand(6), "random numbers"),
        (lambda x: x.view(torch.int32).abs().float(), "memory written as torch.float32 and read as torch.int32"),
        (lambda x: torch.fft.rfft(x).abs(), "aten|complex"),
        (lambda x: x * float(x.sum()), "a float taken out of a tensor"),
    ],
    ids=["random", "bits", "complex", "item"],
)
def test_limits_raise_with_their_name_and_line(call, what):
    x = torch.randn(4, 6)
    _, trace = traced(call, x=x)
    domain = Field(1)
    with pytest.raises(Unsupported, match=what) as e:
        Replay(domain).run(trace, {"x": field_value(domain, x)})
    assert "test_algebra_replay.py:" in str(e.value)


def test_paths_are_noted():
    x = torch.randn(4, 6)
    _, trace = traced(lambda x: x + 1 if (x < 100).all() else x, x=x)
    replay = Replay(Real())
    replay.run(trace, values(Real(), {"x": x}))
    (line,) = replay.conditions
    assert "test_algebra_replay.py:" in line
