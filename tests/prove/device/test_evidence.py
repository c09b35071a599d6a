"""What docs/device.md says of a run on a card is what the run's file says."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_the_page_says_what_the_run_said() -> None:
    rows = json.loads((ROOT / "benchmarks/h200/device_check.json").read_text())["kernels"]
    page = (ROOT / "docs/device.md").read_text()
    corpus = [r for r in rows if r["kernel"].startswith("corpus/")]
    wrong = [r["verdict"] == "reject" for r in corpus if r["expected"] == "reject"]
    right = [r["verdict"] == "accept" for r in corpus if r["expected"] == "accept"]
    compared = [
        r["gates"]["device agreement"][1] for r in rows if r["gates"].get("device agreement", ["advisory"])[0] == "core"
    ]
    assert f"| wrong kernels of the corpus rejected | {sum(wrong)} of {len(wrong)} |" in page
    assert f"| right kernels of the corpus accepted | {sum(right)} of {len(right)} |" in page
    assert f"| {compared.count('pass')} of {len(compared)} kernels |" in page
    examples = {r["kernel"].rpartition("/")[2]: r["verdict"] for r in rows if "06_cuda_softmax" in r["kernel"]}
    assert examples["right.cu"] == "accept"
    assert [v for n, v in examples.items() if n.startswith("wrong")] == ["reject"] * 3
