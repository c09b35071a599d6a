"""The start of commands that examine kernels: what takes long to import, beside the fork server that imports it too."""

from __future__ import annotations

import gc
import importlib

NEEDED = ("torch", "tilewright.prove.examine", "tilewright.ledger", "tilewright.report.terminal")


def ready() -> None:
    """Start the fork server and import what an examination takes. Nothing of it is garbage, so nobody looks."""
    from ..prove.child import pool

    pool.begin()
    gc.disable()
    try:
        for name in NEEDED:
            importlib.import_module(name)
        importlib.import_module("tilewright.prove.gates").all_gates()
    finally:
        gc.freeze()
        gc.enable()
