"""A workload on stage on a device: the same rules; inputs are described, memory and limits are the device's."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from ..errors import EnvironmentProblem
from ..prove.child.judge_session import JudgeSession
from ..prove.child.session import Outcome, Trouble, folders, split
from ..prove.child.transport import Bundle
from ..prove.device.machine import Device
from ..prove.gate import Check
from .device_hand import DeviceArena, DeviceHand, capture, memory
from .feed import Given
from .hand import Hand, Source, TimingSession
from .stage import Player, Stage, words

AT_ONCE = 4  # arms that are opened side by side


class DeviceStage(Stage):
    """As ``Stage``, with its arms on ``place``. Why an arm can't be captured stands in ``uncaptured``."""

    def __init__(self, *args: Any, place: Device):
        self.place = place
        self.uncaptured: dict[str, str] = {}
        self.opened: dict[str, tuple[TimingSession, Trouble | None, float]] = {}
        super().__init__(*args)

    def _truth(self) -> tuple[dict[str, torch.Tensor], float]:
        """The outputs' forms, from the judge, which sits on the device; it has memory of its own, since the timed children
        can write to theirs."""
        opened = self.exam.sheet.extra.get("opened", {})
        self.told = DeviceArena(self.feed, {}, 1)
        self.bench = JudgeSession(self.place.kind, limits=self.place.limits(self.exam.limits), sandbox=self.exam.sandbox,
                                  reads=folders(self.problem, *opened.values()))  # fmt: skip
        head = {"order": self.told.order, "sets": len(self.feed.cases), "scalars": split(self.told.scalars)[1],
                "workload": self.workload.model_dump(mode="json"), "strict": self.exam.strict,
                "calling": self.feed.case.calling.model_dump(mode="json"), "seed": self.exam.seed}  # fmt: skip
        failed = self.bench.seat(self.problem, opened, head, self.told.bundle, dict(self.feed.case.state))
        if failed is not None:
            raise self._no_result(str(failed))
        self._form()  # pays for the start of the device
        began = time.perf_counter()
        return self._form(), time.perf_counter() - began

    def _form(self) -> dict[str, torch.Tensor]:
        self.told.describe(self.feed.choose())
        found = self.bench.form()
        if isinstance(found, Trouble):
            raise self._no_result(str(found))
        return found

    def _look(self, given: Given, outcome: Outcome, bundle: Bundle | None = None) -> Check:
        began = time.perf_counter()
        self.told.describe(given)
        found = self.bench.judge(outcome, bundle)
        self.truth_s = time.perf_counter() - began
        if bundle is not None:
            self.arena.free.append(bundle)
        if isinstance(found, Trouble):
            raise EnvironmentProblem(f"the judge of timed calls failed: {found}", detail=found.trace or found.output or None,
                                     remedy="is the device's memory full? See nvidia-smi")  # fmt: skip
        return found

    def _arena(self) -> DeviceArena:
        return DeviceArena(self.feed, self.outputs, self.protocol.slots)

    def _open(self, source: Source, reads: tuple[str, ...]) -> TimingSession:
        return TimingSession(source, device=self.place.kind, limits=self.place.limits(self.exam.limits),
                             sandbox=self.exam.sandbox, reads=reads)  # fmt: skip

    def prepare(self, sources: Mapping[str, Source]) -> None:
        """Open the arms side by side, each with a first call that compiles; those that tune follow one by one, since they
        time things."""
        self.arena.describe(self.tries[0])
        alone = {n: s for n, s in sources.items() if s.transform == "max-autotune"}
        with ThreadPoolExecutor(AT_ONCE) as pool:
            futures = {n: pool.submit(self._begun, n, s) for n, s in sources.items() if n not in alone}
        self.opened = {n: f.result() for n, f in futures.items()} | {n: self._begun(n, s) for n, s in alone.items()}

    def _begun(self, name: str, source: Source) -> tuple[TimingSession, Trouble | None, float]:
        began = time.perf_counter()
        session, failed, _ = super()._opened(name, source)
        failed = failed or session.attempt(0)[0]
        return session, failed, time.perf_counter() - began

    def _opened(self, name: str, source: Source) -> tuple[TimingSession, Trouble | None, float]:
        return self.opened.pop(name, None) or super()._opened(name, source)

    def _give(self, slot: int, given: Given) -> Given:
        self.arena.describe(given)
        return given

    def _after(self, slot: int) -> dict[str, torch.Tensor]:
        return {}

    def _memory(self, player: Player) -> None:
        if player.session is not None and player.ready:
            player.peak_bytes, player.extra_bytes = memory(player.session)
            if player.extra_bytes is not None:
                player.extra_bytes = max(0, player.extra_bytes - self.output_bytes)

    def captured(self, player: Player) -> bool:
        """Capture the arm's call, once; what refuses it is kept."""
        assert player.session is not None
        if player.name not in self.uncaptured:
            failed = capture(player.session, self.protocol.graph_warmups)
            self.uncaptured[player.name] = words(failed) if failed is not None else ""
        return not self.uncaptured[player.name] and player.session.dead is None

    def hand(self, player: Player, *, cold: bool = False, graph: bool = False) -> Hand:
        assert player.session is not None
        return DeviceHand(player.session, self.arena, self.feed, cold=cold, graph=graph)

    def close(self) -> None:
        super().close()
        for session, _, _ in self.opened.values():
            session.close()
        self.bench.close()
        self.told.close()
