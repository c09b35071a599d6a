"""The files that take longest come first, so that no worker is left with one at the end. Ctrl-C is heard: tests send it."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path

import pytest

LONG = ("ops/test_hazards.py", "prove/child/test_forgeries_sealed.py", "cli/test_bad_input.py", "prove/test_script.py",
        "measure/test_timing_cheats.py", "search/test_real.py", "search/test_proposers/test_admission.py",
        "prove/test_forgeries.py", "cli/test_audit.py", "cli/test_check.py", "search/test_run.py",
        "prove/child/test_escapes.py", "cli/test_new.py")  # fmt: skip
HERE = Path(__file__).parent
PLACE = {str(HERE / name): i for i, name in enumerate(LONG)}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: PLACE.get(str(item.path), len(LONG)))


if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):  # started in the background, as by nohup: children would inherit it
    with contextlib.suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, signal.default_int_handler)
