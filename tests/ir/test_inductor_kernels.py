"""Kernels that TorchInductor generates are read and evaluated without a GPU (in a process of their own)."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "third_party" / "inductor.py"


RUN = """
import sys
sys.argv = ["x", "--check", {cases}]
sys.path.insert(0, {folder!r})
import inductor
{before}
inductor.main()
"""


def check(*cases, before="", **env):
    run = RUN.format(cases=", ".join(map(repr, cases)), folder=str(SCRIPT.parent), before=before)
    return subprocess.run([sys.executable, "-W", "ignore", "-c", run], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "OMP_NUM_THREADS": "1", **env})  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _here():
    pytest.importorskip("torch._inductor.runtime.triton_heuristics")


def test_generated_kernels_give_what_eager_torch_gives(tmp_path):
    done = check("softmax", "prefix sums", TORCHINDUCTOR_CACHE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_kernel_evaluated_on_the_wrong_grid_is_told(tmp_path):
    fault = "inductor.GridExpr.eval_slow = lambda self, meta: (1, 1, 1)"
    done = check("swiglu", before=fault, TORCHINDUCTOR_CACHE_DIR=str(tmp_path))
    assert done.returncode == 1
    assert "swiglu: differs by" in done.stderr
