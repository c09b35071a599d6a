"""How a kernel is called: plain data, so that the child that runs it never sees the reference.

* ``function``: ``kernel(*inputs)``, in task order.
* ``module``: ``ModelNew(*init)``, then the reference's parameters and buffers copied in, then ``module(*inputs)``.
* ``data``: ``custom_kernel(data)`` with the nested structure rebuilt (GPU MODE).
* ``keywords``: ``run(**inputs)``; ``destination``: the same with the outputs passed in as well (flashinfer-bench).
"""

from __future__ import annotations

from typing import Any, Literal

from .tensors import Model


class Calling(Model):
    """``init``: tree of the constructor's arguments (tensors named ``init.*``, sent with the state). ``structure``:
    tree of the positional arguments over input names; None: the inputs in order. ``seed``: set before construction."""

    style: Literal["function", "module", "data", "keywords", "destination"] = "function"
    init: dict[str, Any] | None = None
    structure: dict[str, Any] | None = None
    outputs: tuple[dict[str, Any], ...] = ()
    seed: int = 0
