"""Tests of sealed children; ``regimes`` is shared with the tests of the gates."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
