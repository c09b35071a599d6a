"""What goes into and comes out of a task: dims, values, tensors, scalars.

Shapes are written with symbolic dims: ``TensorSpec("M N")`` is a 2-d tensor ``(M, N)``; an entry may be an
integer or an expression over dims (``"2*H"``, ``"N//2"``), without blanks inside.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ..errors import TaskError
from .syntax import expression

DTYPES: tuple[str, ...] = (
    "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
    "int64", "int32", "int16", "int8", "uint8", "bool", "complex64", "complex128",
)  # fmt: skip
FLOATS = frozenset(d for d in DTYPES if d.startswith(("float", "bfloat")))
INTEGERS = frozenset(d for d in DTYPES if d.startswith(("int", "uint")))

_OPS: dict[type[ast.AST], Callable[..., int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow, ast.USub: operator.neg,
}  # fmt: skip


def evaluate(expr: str | int, dims: Mapping[str, int]) -> int:
    """Value of an integer expression over dims: ``evaluate("2*H+1", {"H": 4}) == 9``.

    Allowed: integers, dim names, ``+ - * // % **``, parentheses, ``min`` and ``max``.
    Raises TaskError for anything else, or for a dim without a value.
    """
    if isinstance(expr, int):
        return expr

    def walk(node: ast.AST) -> int:
        match node:
            case ast.Constant(value=int() as v):
                return v
            case ast.Name(id=name):
                if name not in dims:
                    raise TaskError(f"dim '{name}' in '{expr}' has no value; known dims: {', '.join(dims) or 'none'}")
                return dims[name]
            case ast.BinOp(left=a, op=op, right=b) if type(op) in _OPS:
                return _OPS[type(op)](walk(a), walk(b))
            case ast.UnaryOp(op=ast.USub(), operand=a):
                return -walk(a)
            case ast.Call(func=ast.Name(id="min" | "max" as f), args=args, keywords=[]):
                return (min if f == "min" else max)(walk(a) for a in args)
        raise TaskError(f"'{expr}' is not an integer expression over dims", remedy="use + - * // % ** min() max()")

    try:
        return walk(expression(expr))
    except SyntaxError as e:
        raise TaskError(f"'{expr}' is not an expression: {e.msg}") from None


class Model(BaseModel):
    """Frozen record: unknown fields are an error. As JSON, NaN and infinities stay what they are."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class Dim(Model):
    """Range of a symbolic size. ``multiple_of`` is a promise of the contract; ``sizes`` lists the only legal ones."""

    low: int = 1
    high: int = 1 << 20
    multiple_of: int = 1
    sizes: tuple[int, ...] | None = None

    def __init__(self, low: int = 1, high: int = 1 << 20, **data: Any):
        super().__init__(**{"low": low, "high": high, **data})

    @model_validator(mode="after")
    def _ordered(self) -> Dim:
        if self.low > self.high:
            raise ValueError(f"low {self.low} is above high {self.high}")
        return self

    def allows(self, size: int) -> bool:
        if self.sizes is not None:
            return size in self.sizes
        return self.low <= size <= self.high and size % self.multiple_of == 0


class Values(Model):
    """How values are drawn. The parent draws them from a secret seed; user code does not.

    * ``normal(mean, std)``, ``uniform(low, high)``: floats.
    * ``integers(low, high)``: high exclusive, may be an expression over dims (``"V"``).
    * ``bool(p)``; ``constant(value)``; ``permutation`` of ``range(size)`` along the last axis.
    * ``probabilities``: rows of softmax; ``log_probabilities``: rows of log-softmax.
    * ``sorted``: ascending integers from ``low`` to ``high`` (offsets, ``cu_seqlens``), first ``low`` and last ``high``.
    * ``custom``: the function ``generator`` of the task file, called as ``generator(dims, seed) -> tensor``.
    """

    kind: Literal[
        "normal",
        "uniform",
        "integers",
        "bool",
        "constant",
        "permutation",
        "probabilities",
        "log_probabilities",
        "sorted",
        "custom",
    ] = "normal"
    mean: float = 0.0
    std: float = 1.0
    low: float | str = 0.0
    high: float | str = 1.0
    p: float = 0.5
    value: float = 0.0
    generator: str | None = None


def normal(mean: float = 0.0, std: float = 1.0) -> Values:
    """Normal values."""
    return Values(kind="normal", mean=mean, std=std)


def uniform(low: float = 0.0, high: float = 1.0) -> Values:
    """Uniform values in [low, high)."""
    return Values(kind="uniform", low=low, high=high)


def integers(low: float | str, high: float | str) -> Values:
    """Integers in [low, high); bounds may be expressions over dims."""
    return Values(kind="integers", low=low, high=high)


class TensorSpec(Model):
    """One tensor of a task.

    ``shape``: entries over dims. ``dtypes``: the dtypes that the contract promises; all inputs marked with the same
    ``dtype_group`` change together. ``mutated``: written in place by contract. ``requires_grad``: differentiable.
    """

    shape: tuple[str | int, ...]
    dtypes: tuple[str, ...] = ("float32",)
    values: Values = Values()
    requires_grad: bool = False
    mutated: bool = False
    dtype_group: str = "main"
    layouts: Literal["contiguous", "any"] | None = None

    def __init__(self, shape: str | tuple[str | int, ...] = (), **data: Any):
        entries = tuple(int(s) if s.isdigit() else s for s in shape.split()) if isinstance(shape, str) else shape
        if isinstance(data.get("dtypes"), str):
            data["dtypes"] = (data["dtypes"],)
        if data.get("optional") is False:  # in sheets of older ledgers
            data.pop("optional")
        super().__init__(**{"shape": entries, **data})

    @model_validator(mode="after")
    def _known(self) -> TensorSpec:
        for d in self.dtypes:
            if d not in DTYPES:
                raise ValueError(f"unknown dtype '{d}'; known: {', '.join(DTYPES)}")
        return self

    def sizes(self, dims: Mapping[str, int]) -> tuple[int, ...]:
        """Concrete shape at ``dims``."""
        return tuple(evaluate(s, dims) for s in self.shape)


class Scalar(Model):
    """A non-tensor argument: the values that the contract promises (the first is the default)."""

    values: tuple[Any, ...] = Field(min_length=1)

    def __init__(self, *values: Any, **data: Any):
        super().__init__(**{"values": values, **data})


Input = TensorSpec | Scalar
