"""A workload on stage on a device: the same rules; inputs are described, memory and limits are the device's."""

from __future__ import annotations

from typing import Any

import torch

from ..prove.device.machine import Device
from .device_hand import DeviceArena, DeviceHand, capture, memory
from .feed import Given
from .hand import Hand, Source, TimingSession
from .stage import Player, Stage, words


class DeviceStage(Stage):
    """As ``Stage``, with its arms on ``place``. Why an arm can't be captured stands in ``uncaptured``."""

    def __init__(self, *args: Any, place: Device):
        self.place = place
        self.uncaptured: dict[str, str] = {}
        super().__init__(*args)

    def _arena(self) -> DeviceArena:
        return DeviceArena(self.feed, self.outputs, self.protocol.slots)

    def _open(self, source: Source, reads: tuple[str, ...]) -> TimingSession:
        return TimingSession(source, device=self.place.kind, limits=self.place.limits(self.exam.limits),
                             sandbox=self.exam.sandbox, reads=reads)  # fmt: skip

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
