"""benchmarks/h200/patch/run.py: a dry run on the CPU, what it says of missing arms, and which way its ratios point."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from tilewright import ops

HERE = Path(__file__).resolve().parents[2] / "benchmarks" / "h200" / "patch"
sys.path.append(str(HERE))
import arms  # noqa: E402
import plain  # noqa: E402


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("patch_run", HERE / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_dry_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "patch.json"
    tiny = ["--device", "cpu", "--tiny", "--dtype", "float32", "--blocks", "2", "--calls", "1", "--out", str(out)]
    assert script().main([*tiny, "--arms", "unpatched", "unpatched again", "patched", "liger"]) == 0
    found = json.loads(out.read_text())
    assert set(found["arms"]) == {"unpatched", "unpatched again", "patched"}
    assert found["missing"] == {"liger": "liger_kernel is not installed"}
    assert set(found["ratios of step times"]) == {"unpatched / unpatched again", "unpatched / patched"}
    patched = found["arms"]["patched"]
    assert "10 replaced, 0 left alone" in patched["what"]
    assert patched["peak above weights, MiB"] is None
    assert patched["error"]["gradients"] < 1e-5
    assert len(patched["blocks"]) == 2
    assert found["versions"]["torch"] == torch.__version__
    assert found["tiny"]
    assert "liger: not measured" in capsys.readouterr().out


def test_a_wrong_arm_shows_in_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    model = arms.build("plain", plain.TINY, torch.float32, "cpu")
    right = arms.loss_of(model)
    found = script().accuracy(
        model, {"wrong": lambda t: right(t) * 1.01}, torch.zeros((1, 5), dtype=torch.int64), "cpu"
    )
    assert found["wrong"]["gradients"] == pytest.approx(0.01, rel=0.01)
    assert found["wrong"]["loss"] == pytest.approx(0.01, rel=0.01)


@pytest.mark.parametrize(("first", "second", "answer"), [
    (2.0, 1.0, "the second is faster"), (1.0, 2.0, "the first is faster"), (1.0, 1.01, "no measurable difference"),
])  # fmt: skip
def test_ratios_point_from_the_first_to_the_second(first: float, second: float, answer: str) -> None:
    got = script().ratio([[first]] * 8, [[second]] * 8)
    assert got["median"] == first / second
    assert got["answer"] == answer
    assert "too noisy" in script().ratio([[1.0], [2.0]] * 4, [[1.0]] * 8)["answer"]


def test_arms_share_weights_and_patch_alone_is_undone() -> None:
    model = arms.build("plain", plain.TINY, torch.float32, "cpu")
    twin = arms.shared(model)
    assert all(a is b for a, b in zip(model.parameters(), twin.parameters(), strict=True))
    arms.patched(model)
    assert not any("forward" in m.__dict__ for m in model.modules())


def test_liger_by_hand_calls_what_the_plain_model_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins of the right semantics for Liger's functions: the same loss and gradients come out."""
    forms: dict[str, Any] = {
        "LigerRMSNormFunction": lambda x, w, eps, offset, mode, in_place: ops.rms_norm(x, w, eps=eps, offset=offset),
        "LigerSiLUMulFunction": ops.swiglu,
        "LigerRopeFunction": lambda q, k, c, s: ops.rope(q, k, *(t[..., : t.shape[-1] // 2] for t in (c, s))),
        "LigerFusedLinearCrossEntropyFunction": lambda x, w, t: (F.cross_entropy(F.linear(x, w), t), None),
    }
    library = SimpleNamespace(**{n: SimpleNamespace(apply=f) for n, f in forms.items()})
    monkeypatch.setattr(arms.importlib, "import_module", lambda name: library)
    model = arms.build("plain", plain.TINY, torch.float32, "cpu")
    tokens = torch.randint(97, (2, 6), generator=torch.Generator().manual_seed(1))
    wanted, got = arms.loss_of(model)(tokens), arms.loss_of(arms.by_hand(arms.shared(model)))(tokens)
    torch.testing.assert_close(got, wanted)
    given = list(model.parameters())
    torch.testing.assert_close(torch.autograd.grad(got, given), torch.autograd.grad(wanted, given))
