"""The parent's side of the child that replays traces (``role_algebra.py``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from ...errors import Unsupported
from ...ir.domains.symbolic_words import Words
from ...kernel import Kernel
from ..element import Enclosure
from ..equivalence import Agreement, Difference
from .session import Session, trouble
from .transport import Bundle

Tensors = Mapping[str, torch.Tensor]
ENCLOSE_S = 10.0


class AlgebraSession(Session):
    """Answers about one pair of traces at a time. Trouble of the child is Unsupported: it tells nothing of a kernel."""

    def __init__(self, kernel: Kernel, **options: Any):
        super().__init__("algebra", name="algebra", reads=(str(Path(kernel.path).resolve().parent),), **options)
        path = str(Path(kernel.path).resolve())
        self._ask({"do": "start", "files": {path: kernel.text}})

    def _ask(self, head: dict[str, Any], tensors: Sequence[Tensors] = ()) -> tuple[dict[str, Any], list[Bundle]]:
        bundles = tuple(Bundle.pack(t) for t in tensors)
        answer, out = self.ask_raw(head, bundles)
        for b in bundles:
            b.close()
        if "error" in answer:
            t = trouble(answer["error"])
            raise Unsupported(f"the replay ended: {t.type or t.kind}: {t.message.splitlines()[0] if t.message else ''}",
                              where=t.where or None, detail=t.trace or None)  # fmt: skip
        return answer, out

    def pair(self, kernel: dict[str, Any], reference: dict[str, Any], inputs: Tensors, seconds: float) -> None:
        """The traces to look at from now on."""
        self._ask({"do": "pair", "kernel": kernel, "reference": reference, "seconds": seconds}, [inputs])

    def explains(self, results: Tensors, unit: float) -> str:
        """Why the kernel's trace can't have given these results, or nothing."""
        return str(self._ask({"do": "explains", "unit": unit}, [results])[0]["why"])

    def field(self, seeds: Sequence[int]) -> Agreement:
        """Agreement in the field, one draw a seed."""
        return Agreement(**self._ask({"do": "field", "seeds": list(seeds)})[0]["field"])

    def real(self, starts: Sequence[Tensors], unit: float) -> list[Difference]:
        """Differences in real arithmetic on each start. Raises Unsupported where either trace can't be followed."""
        answer, _ = self._ask({"do": "real", "unit": unit}, starts)
        if not answer["real"]:
            raise Unsupported(answer["reason"], where=answer["where"] or None)
        return [Difference(**d) for d in answer["real"]]

    def enclose(self, starts: Sequence[Tensors], least: float = 0.0, picks: Sequence[int] = (),
                seconds: float = ENCLOSE_S) -> list[Enclosure]:  # fmt: skip
        """On each start the element furthest apart (by more than ``least``), or the one picked, enclosed; undecided where
        ``seconds`` are over."""
        answer, _ = self._ask({"do": "enclose", "least": least, "picks": list(picks), "seconds": seconds}, starts)
        return [Enclosure(**{**e, "index": tuple(e["index"])}) for e in answer["found"]]

    def words(self, inputs: Tensors, output: str, index: Sequence[int], own: bool = False) -> Words:
        """The first terms that differ at one element (``own``: the kernel's element itself); empty where none can be
        told."""
        head = {"do": "words", "output": output, "index": list(index), "own": own}
        answer, _ = self._ask(head, [inputs])
        return Words(answer["text"], answer["where"])

    def bound(self, inputs: Tensors) -> tuple[Tensors, Tensors]:
        """The kernel's float results without roundings, and a bound on the error of its roundings, by name. Raises
        Unsupported where the trace can't be followed."""
        answer, out = self._ask({"do": "bound"}, [inputs])
        if answer["reason"]:
            raise Unsupported(answer["reason"])
        values, errors = (b.tensors(copy=True) for b in out)
        for b in out:
            b.close()
        return values, errors

    def flips(self, bounds: Mapping[str, list[float]]) -> list[tuple[str, dict[str, torch.Tensor]]]:
        """Inputs on which comparisons of the kernel come out otherwise, with their lines."""
        answer, out = self._ask({"do": "flips", "bounds": dict(bounds)})
        found = [b.tensors(copy=True) for b in out]
        for b in out:
            b.close()
        return list(zip(answer["where"], found, strict=True))

    def climb(self, starts: Sequence[Tensors], unit: float, steps: int, seconds: float,
              bounds: Mapping[str, list[float]]) -> list[tuple[dict[str, torch.Tensor], float]]:  # fmt: skip
        """Gradient ascent from each start: the best inputs in float64 and their ratios."""
        head = {"do": "climb", "unit": unit, "steps": steps, "seconds": seconds, "bounds": dict(bounds)}
        answer, out = self._ask(head, starts)
        found = [b.tensors(copy=True) for b in out]
        for b in out:
            b.close()
        return list(zip(found, answer["ratios"], strict=True))
