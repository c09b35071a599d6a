"""Options of proposers, which come as words."""

from __future__ import annotations

import re


def listed(text: str) -> list[str]:
    """Several names in one option: ``a+b``. (On the command line a comma ends the option.)"""
    return [w.strip() for w in re.split(r"[+,]", text) if w.strip()]
