"""FX: a composite torch operation as elementary ones, through make_fx and the decompositions that torch ships.

Only sizes, strides and dtypes of the arguments are needed (FakeTensor). Nothing of the user's runs here: what is
lowered are single aten operations, as a trace names them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch

from ...errors import Unsupported


@dataclass(frozen=True)
class Meta:
    """A tensor argument: what lowering may depend on."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype


@dataclass(frozen=True)
class Ref:
    """The tensor of this number: arguments first, then results of nodes (``part``: of several results)."""

    number: int
    part: int | None = None


@dataclass(frozen=True)
class Node:
    """``op`` is the aten overload; tensors among the arguments are Refs. ``out``: sizes and dtypes of the results."""

    op: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    number: int
    out: tuple[tuple[tuple[int, ...], torch.dtype], ...]


@dataclass(frozen=True)
class Graph:
    """``nodes`` in order; ``outputs`` are Refs, in the order of the operation's results. ``constants``: tensors that
    the decomposition itself makes, by number."""

    nodes: tuple[Node, ...]
    outputs: tuple[Ref | None, ...]
    constants: Mapping[int, torch.Tensor]


@lru_cache(maxsize=1)
def table() -> dict[Any, Callable[..., Any]]:
    """The decompositions: core aten's, and those of what core aten keeps whole."""
    from torch._decomp import core_aten_decompositions, get_decompositions

    aten = torch.ops.aten
    more = [aten._softmax, aten._log_softmax, aten.native_layer_norm, aten.native_layer_norm_backward, aten.gelu,
            aten.gelu_backward, aten._softmax_backward_data, aten._log_softmax_backward_data, aten.native_group_norm,
            aten.native_group_norm_backward, aten.native_batch_norm_backward, aten.addcdiv, aten.addcmul,
            aten.binary_cross_entropy, aten.binary_cross_entropy_backward, aten.binary_cross_entropy_with_logits,
            aten.nll_loss_forward, aten.nll_loss_backward, aten.silu_backward, aten.mse_loss, aten.mse_loss_backward,
            aten.smooth_l1_loss, aten.smooth_l1_loss_backward, aten.huber_loss, aten.huber_loss_backward, aten.elu,
            aten.elu_backward, aten.hardswish, aten.hardswish_backward, aten.hardsigmoid, aten.hardsigmoid_backward,
            aten.leaky_relu, aten.leaky_relu_backward, aten.mish, aten.mish_backward, aten.softplus,
            aten.softplus_backward, aten.threshold_backward, aten.sigmoid_backward, aten.tanh_backward,
            aten._prelu_kernel, aten._prelu_kernel_backward, aten.xlogy, aten.logit, aten.logit_backward, aten.glu,
            aten.glu_backward, aten.soft_margin_loss, aten.log_sigmoid_forward, aten.log_sigmoid_backward,
            aten._scaled_dot_product_flash_attention_for_cpu, aten.std_mean, aten.norm, aten.linalg_vector_norm,
            aten.upsample_nearest2d, aten.upsample_bilinear2d, aten.grid_sampler_2d, aten.select_backward,
            aten.slice_backward, aten.unfold_backward, aten.embedding_dense_backward, aten.logaddexp,
            aten.sinc, aten.heaviside, aten.frac, aten.trace, aten.celu, aten.relu6, aten.rrelu_with_noise,
            aten._fused_rms_norm, aten._fused_rms_norm_backward]  # fmt: skip
    found = [op for op in more if hasattr(op, "overloads")]
    out = dict(core_aten_decompositions())
    for op in found:
        try:
            out.update(get_decompositions([op]))
        except (RuntimeError, KeyError):
            continue
    return out


def lower(op: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Graph:
    """The operation on arguments with Meta in place of tensors, lowered. Raises Unsupported if it stays whole."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    metas: list[Meta] = []
    slots = tuple(_slot(a, metas) for a in args)
    named = {k: _slot(v, metas) for k, v in kwargs.items()}

    def call(*tensors: torch.Tensor) -> Any:
        return op(*(_fill(a, tensors) for a in slots), **{k: _fill(v, tensors) for k, v in named.items()})

    try:
        with FakeTensorMode(), torch.no_grad():
            fakes = [torch.empty_strided(m.shape, m.strides, dtype=m.dtype) for m in metas]
            traced = make_fx(call, decomposition_table=table(), _allow_non_fake_inputs=True)(*fakes)

    except Exception as e:
        raise Unsupported(
            f"{op} (its decomposition fails: {type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''})"
        ) from e
    graph = read(traced, len(metas))
    if any(n.op is op for n in graph.nodes):
        raise Unsupported(f"{op}")
    return graph


def _slot(v: Any, metas: list[Meta]) -> Any:
    if isinstance(v, Meta):
        metas.append(v)
        return Ref(len(metas) - 1)
    return [_slot(x, metas) for x in v] if isinstance(v, list | tuple) else v


def _fill(v: Any, tensors: tuple[Any, ...]) -> Any:
    if isinstance(v, Ref):
        return tensors[v.number]
    return [_fill(x, tensors) for x in v] if isinstance(v, list | tuple) else v


def read(module: torch.fx.GraphModule, inputs: int) -> Graph:
    """A traced module as a Graph; ``getitem`` becomes a part of a Ref."""
    refs: dict[Any, Ref] = {}
    nodes: list[Node] = []
    constants: dict[int, torch.Tensor] = {}
    outputs: tuple[Ref | None, ...] = ()
    count = 0
    for node in module.graph.nodes:
        if node.op == "placeholder":
            refs[node] = Ref(count)
            count += 1
        elif node.op == "get_attr":
            refs[node] = Ref(count)
            constants[count] = getattr(module, node.target)
            count += 1
        elif node.op == "call_function" and node.target.__name__ == "getitem":
            refs[node] = Ref(refs[node.args[0]].number, node.args[1])
        elif node.op == "call_function":
            args = tuple(_refs(a, refs) for a in node.args)
            kwargs = {k: _refs(v, refs) for k, v in node.kwargs.items()}
            nodes.append(Node(node.target, args, kwargs, count, _meta(node.meta.get("val"))))
            refs[node] = Ref(count)
            count += 1
        elif node.op == "output":
            results = node.args[0] if isinstance(node.args[0], list | tuple) else (node.args[0],)
            outputs = tuple(None if r is None else refs[r] for r in results)
        else:
            raise Unsupported(f"a lowered operation with '{node.op}'")
    return Graph(tuple(nodes), outputs, constants)


def _refs(v: Any, refs: Mapping[Any, Ref]) -> Any:
    if isinstance(v, torch.fx.Node):
        return refs[v]
    return [_refs(x, refs) for x in v] if isinstance(v, list | tuple) else v


def _meta(value: Any) -> tuple[tuple[tuple[int, ...], torch.dtype], ...]:
    values = value if isinstance(value, list | tuple) else [value]
    return tuple((tuple(int(n) for n in v.shape), v.dtype) for v in values if isinstance(v, torch.Tensor))
