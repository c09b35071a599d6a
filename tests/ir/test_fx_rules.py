"""Rules for torch operations: they agree with torch on float64, in the field with each other, and mutants don't."""

import math

import pytest
import torch

from tilewright.errors import Unsupported
from tilewright.ir.domains.field import Field
from tilewright.ir.domains.real import Real
from tilewright.ir.readers import fx
from tilewright.ir.torch_ops.calls import Calls, base_name, functional
from tilewright.ir.torch_ops.context import Expected, Value
from tilewright.ir.values import struct

aten = torch.ops.aten


def randn(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def run(domain, op, *args, **kwargs):
    """Results of an operation in a domain, next to torch's own on the same arguments."""
    truth = op(*args, **kwargs)
    truths = truth if isinstance(truth, tuple | list) else (truth,)
    out = tuple(Expected(tuple(t.shape), t.dtype) for t in truths)
    calls = Calls(domain)

    def lift(v):
        if isinstance(v, torch.Tensor):
            return Value(calls.exact(v) if v.is_floating_point() else v, v.dtype)
        return [lift(x) for x in v] if isinstance(v, list | tuple) else v

    return calls.call(op, [lift(a) for a in args], {k: lift(v) for k, v in kwargs.items()}, out), truths


INDEX = torch.tensor([[0, 2, 1], [1, 1, 0]])
CASES = {
    "add with alpha": (aten.add.Tensor, randn(3, 4), randn(4, seed=1), {"alpha": 3}),
    "rsub": (aten.rsub.Scalar, randn(3), 2.0),
    "softmax": (aten._softmax.default, randn(3, 7), -1, False),
    "log_softmax": (aten._log_softmax.default, randn(3, 7), 0, False),
    "layer norm": (aten.native_layer_norm.default, randn(3, 8), [8], randn(8, seed=1), randn(8, seed=2), 1e-5),
    "group norm": (aten.native_group_norm.default, randn(2, 4, 5), randn(4, seed=1), randn(4, seed=2), 2, 4, 5, 2,
                   1e-5),
    "batch norm": (aten.native_batch_norm.default, randn(4, 3, 2), randn(3, seed=1), randn(3, seed=2), None, None,
                   True, 0.1, 1e-5),
    "var": (aten.var.correction, randn(3, 5), [1], {"correction": 1}),
    "mean of two dims": (aten.mean.dim, randn(2, 3, 4), [0, 2], True),
    "sum": (aten.sum.default, randn(7)),
    "amax": (aten.amax.default, randn(3, 5), [1], False),
    "max with places": (aten.max.dim, randn(3, 5), 1, True),
    "cumsum": (aten.cumsum.default, randn(3, 13), 1),
    "cumprod": (aten.cumprod.default, randn(3, 5), 1),
    "logsumexp": (aten.logsumexp.default, randn(3, 5), [1]),
    "addmm": (aten.addmm.default, randn(4), randn(3, 5, seed=1), randn(5, 4, seed=2), {"beta": 2, "alpha": 0.5}),
    "bmm": (aten.bmm.default, randn(2, 3, 70), randn(2, 70, 4, seed=1)),
    "convolution": (aten.convolution.default, randn(2, 4, 9, 8), randn(6, 2, 3, 2, seed=1), randn(6, seed=2), [2, 1],
                    [1, 0], [1, 2], False, [0, 0], 2),
    "transposed convolution": (aten.convolution.default, randn(2, 4, 5), randn(4, 3, 3, seed=1), None, [2], [1], [1],
                               True, [1], 1),
    "avg_pool2d": (aten.avg_pool2d.default, randn(1, 2, 7, 6), [3, 2], [2, 2], [1, 1], False, True),
    "max_pool2d": (aten.max_pool2d_with_indices.default, randn(1, 2, 7, 6), [3, 2], [2, 2], [1, 1]),
    "adaptive pool": (aten._adaptive_avg_pool2d.default, randn(1, 2, 7, 6), [3, 4]),
    "distances": (aten._cdist_forward.default, randn(3, 5), randn(4, 5, seed=1), 2.0, None),
    "gather": (aten.gather.default, randn(2, 3), 1, INDEX),
    "scatter_add": (aten.scatter_add.default, randn(2, 3), 1, INDEX, randn(2, 3, seed=1)),
    "index_put": (aten.index_put.default, randn(4, 3), [torch.tensor([1, 1, 3])], randn(3, 3, seed=1), True),
    "embedding": (aten.embedding.default, randn(4, 3), INDEX),
    "cat": (aten.cat.default, [randn(2, 3), randn(1, 3, seed=1)], 0),
    "pad": (aten.constant_pad_nd.default, randn(2, 3), [1, 2], 7.0),
    "tril": (aten.tril.default, randn(4, 4), -1),
    "where": (aten.where.self, randn(3) > 0, randn(3, seed=1), randn(3, seed=2)),
    "clamp": (aten.clamp.default, randn(9), -0.5, 0.5),
    "gelu": (aten.gelu.default, randn(9)),
    "tanh gelu": (aten.gelu.default, randn(9), {"approximate": "tanh"}),
    "topk": (aten.topk.default, randn(3, 9), 4),
    "sort": (aten.sort.default, randn(3, 9), 1, True),
    "attention": (aten._scaled_dot_product_flash_attention_for_cpu.default, randn(1, 2, 5, 4),
                  randn(1, 2, 5, 4, seed=1), randn(1, 2, 5, 4, seed=2), 0.0, True),
}  # fmt: skip


def split(case):
    op, *args = case
    kwargs = args.pop() if args and isinstance(args[-1], dict) else {}
    return op, args, kwargs


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_torch_in_float64(name):
    op, args, kwargs = split(CASES[name])
    got, wanted = run(Real(), op, *args, **kwargs)
    for value, truth in zip(got, wanted, strict=False):
        torch.testing.assert_close(value.data, truth, rtol=1e-11, atol=1e-12)


EXACT = (
    "add with alpha", "rsub", "mean of two dims", "sum", "cumsum", "cumprod", "addmm", "bmm", "convolution",
    "gather", "transposed convolution", "avg_pool2d", "scatter_add", "index_put", "embedding", "cat", "pad",
    "tril", "where", "var",
)  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_agrees_with_torch_in_the_field(name):
    """On small integers torch's result is exact, and so must be the field's."""
    op, args, kwargs = split(CASES[name])

    def whole(v):
        if isinstance(v, torch.Tensor) and v.is_floating_point():
            return (v * 4).round()
        return [whole(x) for x in v] if isinstance(v, list) else v

    if name == "var":
        args = [torch.tensor([[0.0, 4.0, 8.0, 12.0, 16.0]], dtype=torch.float64), [1]]
    if name == "avg_pool2d":
        args = [randn(1, 2, 8, 8), [2, 2], [2, 2], [0, 0], False, True]
    if name == "mean of two dims":
        args = [randn(2, 3, 4), [0, 2], True]
    domain = Field(5)
    got, wanted = run(domain, op, *[whole(a) for a in args], **kwargs)
    assert bool(domain.equal(got[0].data, domain.exact(wanted[0])).all())
    assert not bool(domain.equal(got[0].data, domain.exact(wanted[0] + 1e-6)).any())  # the least difference shows


def symbols(domain, *shapes):
    return [Value(struct(domain.random((math.prod(s),)), lambda t, s=s: t.reshape(s)), torch.float32) for s in shapes]


def call(domain, op, args, *shapes, **kwargs):
    return Calls(domain).call(op, list(args), kwargs, tuple(Expected(s, torch.float32) for s in shapes))[0]


LOWERED = {
    "softmax backward": (aten._softmax_backward_data.default, [(3, 5), (3, 5)], [1, torch.float32], [(3, 5)]),
    "silu backward": (aten.silu_backward.default, [(7,), (7,)], [], [(7,)]),
    "layer norm backward": (aten.native_layer_norm_backward.default, None, None, [(3, 8), (8,), (8,)]),
    "hardswish": (aten.hardswish.default, [(7,)], [], [(7,)]),
    "mse": (aten.mse_loss.default, [(7,), (7,)], [1], [()]),
}


@pytest.mark.parametrize("name", LOWERED)
def test_composite_operations_are_lowered(name):
    op, shapes, rest, out = LOWERED[name]
    domain = Field(3)
    if shapes is None:
        grad, x, mean, scale, w, b = symbols(domain, (3, 8), (3, 8), (3, 1), (3, 1), (8,), (8,))
        args = [grad, x, [8], mean, scale, w, b, [True, True, True]]
    else:
        args = [*symbols(domain, *shapes), *rest]
    got = Calls(domain).call(op, args, {}, tuple(Expected(s, torch.float32) for s in out))
    assert [tuple(v.shape) for v in got] == out


def test_a_lowered_operation_equals_the_formula_and_a_mutant_does_not():
    domain = Field(11)
    y, grad = symbols(domain, (3, 5), (3, 5))
    lowered = call(domain, aten._softmax_backward_data.default, [grad, y, 1, torch.float32], (3, 5)).data
    c = Calls(domain)

    def formula(extra):
        inner = c.fold("add", c.apply("mul", grad, y), [1], True)
        return c.apply("mul", y, c.apply("sub", grad, c.apply("add", inner, extra)))

    assert bool(domain.equal(lowered, formula(0.0)).all())
    assert not bool(domain.equal(lowered, formula(1e-6)).any())


def test_softmax_rule_and_mutant():
    domain = Field(2)
    (x,) = symbols(domain, (4, 9))
    c = Calls(domain)
    whole = call(domain, aten._softmax.default, [x, 1, False], (4, 9)).data
    e = c.apply("exp", x)
    plain = c.apply("div", e, c.fold("add", e, [1], True))
    cut = c.apply("div", e, c.apply("add", c.fold("add", e, [1], True), 1e-6))
    assert bool(domain.equal(whole, plain).all())
    assert not bool(domain.equal(whole, cut).any())


def test_unknown_operations_name_themselves():
    domain = Field(1)
    (x,) = symbols(domain, (4, 4))
    calls = Calls(domain)
    calls.where = "kernel.py:7"
    with pytest.raises(Unsupported, match="linalg_inv_ex") as e:
        calls.call(aten.linalg_inv_ex.default, [x], {}, (Expected((4, 4), torch.float32),))
    assert "kernel.py:7" in str(e.value)
    with pytest.raises(Unsupported, match="random numbers"):
        calls.call(aten.bernoulli.default, [x], {}, (Expected((4, 4), torch.float32),))


def test_names_and_forms_without_side_effects():
    assert base_name(aten.add_.Tensor) == "add"
    assert functional(aten.add_.Tensor) is aten.add.Tensor
    assert functional(aten.mul.out) in (aten.mul.Tensor, aten.mul.Scalar)
    assert functional(aten.exp.default) is aten.exp.default


def test_graph_of_a_lowered_operation():
    meta = fx.Meta((3, 5), (5, 1), torch.float32)
    graph = fx.lower(aten.silu_backward.default, (meta, meta), {})
    names = {base_name(n.op) for n in graph.nodes}
    assert "silu_backward" not in names
    assert "mul" in names
    assert len(graph.outputs) == 1
