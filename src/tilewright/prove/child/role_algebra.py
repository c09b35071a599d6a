"""The child that replays traces: kernel and reference in the same domain, on the same symbolic or concrete inputs.

Neither candidate nor reference runs here. Requests come from the parent alone; launches are compiled from the source
that the parent read.
"""

from __future__ import annotations

import time
from typing import Any

from ...errors import Unsupported
from ...ir.domains.ball import Late
from ...ir.domains.symbolic_words import Words
from .. import equivalence
from ..element import Enclosure
from .device_source import DeviceSource
from .transport import Bundle


class Role:
    """Requests: ``start``, ``pair``, ``explains``, ``field``, ``real``, ``climb``, ``flips``, ``enclose``, ``words``,
    ``bound``."""

    def __init__(self, others: list[Any]):
        self.sources: DeviceSource | None = None
        self.pair: equivalence.Pair | None = None

    def on_start(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """``files``: path and text of the candidate's source."""
        self.sources = DeviceSource(head["files"])
        return {}, []

    def on_pair(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """The two traces to look at from now on, with the inputs of the traced call."""
        inputs = bundles[0].tensors(copy=True)
        self.pair = equivalence.Pair(head["kernel"], head["reference"], inputs, self.sources, head.get("seconds"))
        return {}, []

    def on_explains(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Whether the kernel's trace gives the results of the traced call."""
        assert self.pair is not None
        try:
            return {"why": self.pair.explains(bundles[0].tensors(copy=True), head["unit"])}, []
        except Unsupported as e:
            return {"why": f"{e.where.rpartition('/')[2]}: {e.what}" if e.where else e.what}, []

    def on_field(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Both in the field, one draw for each of ``seeds``."""
        assert self.pair is not None
        try:
            seen = self.pair.field(head["seeds"])
        except Unsupported as e:
            seen = equivalence.Agreement("unsupported", reason=e.what, where=e.where or "")
        return {"field": {**vars(seen), "work": self.pair.work}}, []

    def on_real(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Both in real arithmetic on each bundle's inputs."""
        assert self.pair is not None
        try:
            seen = [self.pair.real(b.tensors(copy=True), head["unit"], i) for i, b in enumerate(bundles)]
            return {"real": [vars(s) for s in seen]}, []
        except Unsupported as e:
            return {"real": [], "reason": e.what, "where": e.where or ""}, []

    def on_enclose(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """One element enclosed on each bundle's inputs: the furthest apart, or the one that ``picks`` names. After
        ``seconds`` the rest is left undecided."""
        assert self.pair is not None
        found = []
        deadline = time.monotonic() + head["seconds"]
        for i, b in enumerate(bundles):
            left = deadline - time.monotonic()
            try:
                if left <= 0:
                    raise Late(f"terms that take longer than {head['seconds']:g} s to enclose")
                elements = self.pair.elements(b.tensors(copy=True), seconds=left)
                seen = elements.picked(head["picks"][i]) if head["picks"] else elements.worst(head["least"])
            except Unsupported as e:
                seen = Enclosure("undecided", reason=e.what, late=isinstance(e, Late))
            found.append(vars(seen))
        return {"found": found}, []

    def on_words(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """The first terms that differ at one element; or, with ``own``, the kernel's element in words."""
        assert self.pair is not None
        at = head["output"], tuple(head["index"])
        try:
            elements = self.pair.elements(bundles[0].tensors(copy=True), alone=head["own"])
            words = Words(elements.formula(*at)) if head["own"] else elements.words(*at)
        except Unsupported as e:
            return {"text": "", "where": "", "reason": e.what}, []
        return {"text": words.text, "where": words.where, "reason": ""}, []

    def on_bound(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """The kernel's float results without roundings, and a bound on what its roundings do to them."""
        assert self.pair is not None
        try:
            found = self.pair.bound(bundles[0].tensors(copy=True))
        except Unsupported as e:
            return {"reason": f"{e.where.rpartition('/')[2]}: {e.what}" if e.where else e.what}, []
        return {"reason": ""}, [Bundle.pack({n: v for n, (v, _) in found.items()}),
                                Bundle.pack({n: e for n, (_, e) in found.items()})]  # fmt: skip

    def on_flips(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Inputs on which the kernel's comparisons come out otherwise, and the lines of those."""
        assert self.pair is not None
        try:
            found = self.pair.flips(head["bounds"])
        except Unsupported:
            found = []
        return {"where": [w for w, _ in found]}, [Bundle.pack(inputs) for _, inputs in found]

    def on_climb(self, head: dict[str, Any], bundles: list[Bundle]) -> tuple[dict[str, Any], list[Bundle]]:
        """Gradient ascent on the difference from each bundle's inputs; the best inputs found, and their ratios."""
        assert self.pair is not None
        found, ratios = [], []
        for b in bundles:
            inputs, ratio = self.pair.climb(
                b.tensors(copy=True), head["unit"], head["steps"], head["seconds"], head["bounds"]
            )
            found.append(Bundle.pack(inputs))
            ratios.append(ratio)
        return {"ratios": ratios}, found
