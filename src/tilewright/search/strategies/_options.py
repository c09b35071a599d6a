"""Options of strategies, which come as words from the command line."""

from __future__ import annotations

import math

from ...errors import UserError


def whole(strategy: str, name: str, value: object, least: int = 1) -> int:
    """An integer of at least ``least``. Raises UserError."""
    try:
        found = int(str(value))
    except ValueError:
        found = least - 1
    if found < least:
        raise UserError(f"option '{name}' of strategy '{strategy}' is '{value}'",
                        remedy=f"give a whole number from {least} on, {strategy}:{name}={max(least, 3)}")  # fmt: skip
    return found


def amount(strategy: str, name: str, value: object, most: float = math.inf) -> float:
    """A finite number from 0 to ``most``. Raises UserError."""
    try:
        found = float(str(value))
    except ValueError:
        found = -1.0
    if not (0 <= found <= most and math.isfinite(found)):
        upper = f"to {most:g}" if math.isfinite(most) else "on"
        raise UserError(f"option '{name}' of strategy '{strategy}' is '{value}'",
                        remedy=f"give a number from 0 {upper}, {strategy}:{name}=0.5")  # fmt: skip
    return found
