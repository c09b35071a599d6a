"""Tuned configurations: ``tuned/<card>.json`` in an operator's folder, used on that card alone and where they were proved.

```json
{"card": "NVIDIA H200", "kernel_sha256": "...", "versions": {"torch": "...", "triton": "..."},
 "entries": [{"launcher": "forward", "domain": {"N": [4097, 8192], "dtype": ["bfloat16"]}, "config": {"num_warps": 16},
              "spread": 0.011, "verdict": "sha256 of the verdict"}]}
```

``domain``: for each fact a range ``[low, high]`` of numbers or a list of words. No entry, another card, another kernel text:
None, and the launcher's own safe configuration runs. Nothing is ever tuned at a call.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ...errors import TilewrightError

Facts = Mapping[str, int | str]


class BadTuning(TilewrightError):
    """A file of tuned configurations that can't be used."""


def file_name(card: str) -> str:
    """``nvidia-h200.json`` for ``NVIDIA H200``."""
    return "-".join(card.lower().split()) + ".json"


@functools.cache
def entries(folder: Path, card: str) -> tuple[dict[str, Any], ...]:
    """The entries for a card; none where there is no file, or where it is for another text of the kernel."""
    path = folder / "tuned" / file_name(card)
    if not path.is_file():
        return ()
    try:
        data = json.loads(path.read_text())
        if data["card"] != card:
            raise ValueError(f"it says it is for '{data['card']}'")
        if data["kernel_sha256"] != hashlib.sha256((folder / "kernel.py").read_bytes()).hexdigest():
            return ()
        return tuple({"launcher": e["launcher"], "domain": e["domain"], "config": e["config"]} for e in data["entries"])
    except (ValueError, KeyError, TypeError) as e:
        raise BadTuning(
            f"{path} is no file of tuned configurations: {e}", remedy="see docs/ops.md, or delete it"
        ) from e


def covers(domain: Mapping[str, list[Any]], facts: Facts) -> bool:
    """Whether a call lies in the domain that a configuration was proved on; a fact that it does not name is not covered."""
    return set(domain) == set(facts) and all(_within(domain[n], v) for n, v in facts.items())


def _within(allowed: list[Any], value: int | str) -> bool:
    if isinstance(value, str):
        return value in allowed
    return len(allowed) == 2 and allowed[0] <= value <= allowed[1]


def find(folder: Path, launcher: str, device: torch.device, **facts: int | str) -> dict[str, Any] | None:
    """The tuned configuration of a launcher for a call with these facts, or None."""
    if device.type != "cuda":
        return None
    return lookup(folder, launcher, _card(device.index or 0), tuple(sorted(facts.items())))


@functools.lru_cache(maxsize=4096)
def lookup(folder: Path, launcher: str, card: str, facts: tuple[tuple[str, int | str], ...]) -> dict[str, Any] | None:
    """``find`` on a named card."""
    for e in entries(folder, card):
        if e["launcher"] == launcher and covers(e["domain"], dict(facts)):
            return dict(e["config"])
    return None


@functools.cache
def _card(index: int) -> str:
    return torch.cuda.get_device_name(index)
