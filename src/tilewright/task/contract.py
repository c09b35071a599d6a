"""What a kernel promises. After the parts of "Kernel Contracts" (2026): identifier, scope, preconditions, postcondition,
tolerance, oracle, measurement protocol; plus the policies of GPU kernels. What a violation looks like is not declared: the
classes of findings say it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator

from .tensors import Model


class Tolerance(Model):
    """Error budget as a ratio: ``k`` times the trusted baseline's error in the same dtype, plus ``floor_ulps``.

    ``k`` and ``floor_ulps`` None: the calibrated defaults of ``prove/compare.py``. ``atol``/``rtol``: only where an
    author insists on them; they widen the budget, and the task audit says what trivial kernels they let pass.
    """

    k: float | None = None
    floor_ulps: float | None = None
    atol: float | None = None
    rtol: float | None = None


Promise = Literal["promised", "advisory", "excluded"]


class Contract(Model):
    """The policies; scope (dtypes, dims, layouts) stands in the task's inputs.

    ``inferred``: read off a problem that states none; then only what DESIGN.md lists is promised.
    ``backward``: ``once`` lets a backward pass use up what the forward one saved (no second one with ``retain_graph``);
    ``in place`` also lets it overwrite the incoming gradients.
    ``preconditions``: what callers must ensure, in words; an accept repeats them.
    ``promised`` decides, ``advisory`` is tried and shown, ``excluded`` is not tried.
    """

    identifier: str = ""
    inferred: bool = False
    preconditions: tuple[str, ...] = ()
    postcondition: Literal["equal", "set_equal", "distribution", "checker"] = "equal"
    tolerance: Tolerance = Tolerance()
    algebra: Literal["exact", "claimed"] = "claimed"
    layouts: Promise = "promised"
    empty: Promise = "promised"
    special_values: Promise = "promised"
    other_dtypes: Promise = "excluded"
    nan: Literal["propagate", "ignore", "unspecified"] = "propagate"
    determinism: Literal["bitwise", "none"] = "bitwise"
    batch_invariant: tuple[str, ...] = ()
    aliasing: Literal["forbidden", "allowed"] = "forbidden"
    accumulate: str | None = None
    gradients: Promise = "excluded"
    backward: Literal["repeatable", "once", "in place"] = "repeatable"
    random: bool = False
    state: bool = False
    laws: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _retired(cls, data: Any) -> Any:
        """Sheets in older ledgers carry fields that nothing ever read, at their defaults."""
        old = {"ties": "first", "signature": ""}
        return {k: v for k, v in data.items() if k not in old or v != old[k]} if isinstance(data, dict) else data


INFERRED = Contract(
    inferred=True, layouts="advisory", empty="advisory", special_values="advisory", other_dtypes="advisory",
    determinism="none", gradients="advisory",
)  # fmt: skip


def strict(contract: Contract) -> Contract:
    """The same contract with its policies on values and layouts promised: what the reference does with NaN, strides and
    empty tensors, the kernel must do. Dtypes and gradients that nobody promised stay advisory
    (``docs/decisions/0007-strict-keeps-to-named-dtypes.md``)."""
    policies = ("layouts", "empty", "special_values")
    return contract.model_copy(update={p: "promised" for p in policies if getattr(contract, p) == "advisory"})
