"""``benchmarks/h200/ops``: what is timed is the operator and its true gradient, the plan is what it says, a run goes on from
where it stopped, and with host memory in the device's place it reaches evidence."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from tilewright.errors import UserError
from tilewright.kernel import read
from tilewright.task import TensorSpec
from tilewright.task.values import draw

HERE = Path(__file__).resolve().parents[2] / "benchmarks" / "h200" / "ops"
SET_A = {
    "softmax", "log_softmax", "rms_norm", "rms_norm_residual", "layer_norm", "group_norm", "swiglu", "swiglu_packed",
    "geglu", "geglu_packed", "relu_squared", "rope", "cross_entropy", "linear_cross_entropy", "kl_divergence",
    "js_divergence", "linear_kl_divergence", "linear_js_divergence",
}  # fmt: skip
LONG = pytest.mark.skipif("TILEWRIGHT_LONG" not in os.environ, reason="a run of minutes: make test-long")


@pytest.fixture(scope="module")
def run() -> Iterator[ModuleType]:
    path = list(sys.path)
    sys.path.insert(0, str(HERE))
    spec = importlib.util.spec_from_file_location("h200_ops", HERE / "run.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = path


@pytest.fixture(scope="module")
def cases(run: ModuleType) -> dict[str, Any]:
    return {c.name: c for c in run.plan.cases()}


def inputs(task: Any, dtype: str | None = None, seed: int = 5) -> dict[str, torch.Tensor]:
    """Inputs at the first small workload, all floats in ``dtype`` if one is given."""
    g, dims = torch.Generator().manual_seed(seed), task.workloads[0].dims
    found = {}
    for n, spec in task.inputs.items():
        assert isinstance(spec, TensorSpec)
        own = dtype if dtype and spec.dtypes[0] != "int64" else spec.dtypes[0]
        found[n] = draw(spec, spec.sizes(dims), own, g, dims)
    return found


def many(results: Any) -> tuple[torch.Tensor, ...]:
    return results if isinstance(results, tuple) else (results,)


def test_every_function_of_the_set_is_timed_both_ways(run: ModuleType, cases: dict[str, Any]) -> None:
    assert {c.function for c in cases.values()} >= SET_A
    for f in SET_A:
        assert {f"{f}.forward"} < {n for n in cases if n.startswith(f"{f}.")}, f"{f} has no gradient's task"
    assert "rope_" in run.plan.untimed(cases.values())
    assert not SET_A & set(run.plan.untimed(cases.values()))


def test_each_grid_has_two_large_workloads_and_three_more_within_the_contract(cases: dict[str, Any]) -> None:
    for c in cases.values():
        assert (len(c.grid["headline"]), len(c.grid["more"])) == (2, 3), c.name
        for dims in c.grid["headline"] + c.grid["more"]:
            assert all(c.task.dims[n].allows(v) for n, v in dims.items()), f"{c.name} {dims}"


def test_references_take_their_inputs_and_kernels_are_there(
    run: ModuleType, cases: dict[str, Any], tmp_path: Path
) -> None:
    for c in cases.values():
        results = many(c.task.reference(**inputs(c.task)))
        assert all(r.isfinite().all() for r in results), c.name
        kernel = read(run.plan.kernel(c, tmp_path))
        assert kernel.language == "triton", c.name
        assert kernel.text.startswith(c.source.read_text()[:200]), "the operator's own file comes first"


def test_functions_of_other_packages_that_are_called_through_adapters_exist(
    run: ModuleType, cases: dict[str, Any]
) -> None:
    adapters = importlib.import_module("h200_peers")
    names = [b.removeprefix("vendor=") for c in cases.values() for b in c.task.baselines]
    for name in names:
        module, _, function = name.rpartition(".")
        assert module != "h200_peers" or callable(getattr(adapters, function)), name
    assert len(set(names)) == len(names)


def test_a_step_is_the_loss_and_its_gradient(cases: dict[str, Any]) -> None:
    steps = [c for c in cases.values() if c.direction == "step"]
    assert len(steps) == 6
    for c in steps:
        given = inputs(c.task, "float64")
        loss, *gradients = c.task.reference(**given)
        wanted = ("x", "weight") if "weight" in given else (next(iter(given)),)
        for n in wanted:
            given[n].requires_grad_()
        forward = cases[f"{c.function}.forward"].task.reference(**given)
        torch.testing.assert_close(loss.double(), forward.detach().double(), rtol=1e-5, atol=1e-6)  # loss in float32
        own = torch.autograd.grad(forward, [given[n] for n in wanted])
        for got, true in zip(gradients, own, strict=True):
            torch.testing.assert_close(got, true, rtol=1e-6, atol=1e-9, msg=lambda m, c=c: f"{c.name}: {m}")


def rms(x: torch.Tensor) -> torch.Tensor:
    return torch.rsqrt(x.square().mean(-1) + 1e-6)


def moments(x: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    return torch.stack((x.mean(-1), torch.rsqrt(x.var(-1, unbiased=False) + eps)), -1)


def groups(x: torch.Tensor) -> torch.Tensor:
    return moments(x.reshape(x.shape[0] * 32, -1))


SAVED = {
    "softmax": lambda given, results: {"y": results[0]},
    "log_softmax": lambda given, results: {"y": results[0]},
    "rms_norm": lambda given, results: {**given, "scale": rms(given["x"])},
    "rms_norm_residual": lambda given, results: {**given, "total": results[1], "scale": rms(results[1])},
    "layer_norm": lambda given, results: {**given, "stats": moments(given["x"])},
    "group_norm": lambda given, results: {**given, "stats": groups(given["x"])},
}


def test_a_backward_is_what_autograd_gives(cases: dict[str, Any]) -> None:
    backwards = [c for c in cases.values() if c.direction == "backward"]
    assert len(backwards) == 12
    for c in backwards:
        forward = cases[f"{c.function}.forward"].task
        given = inputs(forward, "float64")
        differentiable = [n for n in given if n not in ("cos", "sin")]
        for n in differentiable:
            given[n].requires_grad_()
        results = many(forward.reference(**given))
        sent = [torch.randn(r.shape, dtype=r.dtype, generator=torch.Generator().manual_seed(i)) for i, r in
                enumerate(results)]  # fmt: skip
        true = torch.autograd.grad(results, [given[n] for n in differentiable], sent)
        detached = {n: t.detach() for n, t in given.items()}
        known = SAVED.get(c.function, lambda given, _: given)(detached, [r.detach() for r in results])
        if c.function == "rope":  # results lie with their heads first, as they are read
            known |= dict(zip(("dq", "dk"), (s.transpose(1, 2) for s in sent), strict=True))
            true = tuple(t.transpose(1, 2) for t in true)
        known |= dict(zip(("dy", "dtotal"), sent, strict=False))
        got = many(c.task.reference(**{n: known[n] for n in c.task.inputs}))
        unique = true[:1] + true[2:] if c.function == "rms_norm_residual" else true  # input and residual share one
        for g, t in zip(got, unique, strict=True):
            torch.testing.assert_close(g, t, rtol=1e-9, atol=1e-9, msg=lambda m, c=c: f"{c.name}: {m}")


def test_the_plan_says_bytes_and_floor(run: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert run.main(["--list", "--only", "softmax.backward"]) == 0
    lines = capsys.readouterr().out.splitlines()
    copied = json.loads((HERE.parent / "machine.json").read_text())["copy_"]["4294967296"]
    moved = 3 * 8192 * 8192 * 2
    assert lines[0].split()[0] == "softmax.backward.M8192-N8192"
    assert f"{moved / 1e6:.1f} MB" in lines[0]
    assert f"{moved / copied * 1e6:.1f} us" in lines[0]
    assert "2 measurements" in lines[-1]


def test_large_workloads_of_all_come_before_the_others(run: ModuleType, cases: dict[str, Any]) -> None:
    found = run.plan.points(cases.values(), "all")
    assert len(found) == 5 * len(cases)
    assert [p.headline for p in found] == sorted((p.headline for p in found), reverse=True)
    assert {p.case.name for p in found[: len(cases)]} == set(cases), "one of each first"


def test_a_name_that_is_not_there(run: ModuleType) -> None:
    assert run.main(["--list", "--only", "sofmax"]) == 2
    with pytest.raises(UserError, match="no 'sofmax'"):
        run.plan.cases(["sofmax"])


def test_what_a_kernel_imports_is_part_of_its_identity(run: ModuleType, cases: dict[str, Any], tmp_path: Path,
                                                       monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    c, folder = cases["linear_cross_entropy.step"], tmp_path / "cross_entropy"
    folder.mkdir()
    for name in ("kernel.py", "linear.py"):
        (folder / name).write_text((c.source.parent / name).read_text())
    monkeypatch.setattr(run.plan, "OPERATORS", tmp_path)
    before = read(run.plan.kernel(c, tmp_path)).sha256()
    assert read(run.plan.kernel(c, tmp_path)).sha256() == before
    (folder / "kernel.py").write_text((folder / "kernel.py").read_text() + "\n# changed\n")
    assert read(run.plan.kernel(c, tmp_path)).sha256() != before


def test_a_run_goes_on_where_it_was_stopped(run: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                            capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    sys.path.insert(0, str(HERE.parents[2] / "tests" / "report"))
    samples, asked = importlib.import_module("test_ops_page"), []

    def measured(problem: str, kernel: str, **more: Any) -> Any:
        asked.append((problem.partition("::")[2], more["options"]))
        (w,) = more["options"].workloads
        answer = "too noisy" if len(asked) == 1 else "faster"
        return run.room.Benched(None, samples.measurement(1.5, answer, w.dims))

    monkeypatch.setattr(run.room, "bench", measured)
    told = ["--only", "swiglu", "--out", str(tmp_path / "out"), "--work", str(tmp_path / "work")]
    assert run.main([*told, "--minutes", "0"]) == 1
    assert "time is over: 4 left" in capsys.readouterr().out
    assert run.main(told) == 0
    assert [a[0] for a in asked] == ["FORWARD", "BACKWARD", "FORWARD", "BACKWARD"]
    assert {"max-autotune", "peers"} <= set(asked[0][1].kinds)
    assert "vendor" not in asked[0][1].kinds
    assert asked[0][1].cold
    assert run.main(told) == 0
    assert len(asked) == 4, "what is there is not measured again"
    assert "4 of 4 are there" in capsys.readouterr().out
    assert run.main([*told, "--again", "--no-cold"]) == 0
    assert len(asked) == 5, "only what was too noisy"
    assert not asked[4][1].cold
    assert run.main([*told, "--workloads", "all"]) == 0
    assert len(asked) == 11
    assert "max-autotune" not in asked[5][1].kinds
    e = json.loads((tmp_path / "out" / "swiglu.forward.M8192-N11008.json").read_text())
    assert (e["headline"], e["operator_sha256"]) == (True, run.plan.sha256(run.plan.cases(["swiglu"])[0]))


def test_what_fails_is_told_and_the_next_one_begins(run: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                    capsys: pytest.CaptureFixture[str]) -> None:  # fmt: skip
    def failing(problem: str, kernel: str, **more: Any) -> Any:
        raise UserError("no device") if "FORWARD" in problem else ValueError("a fault of the script")

    monkeypatch.setattr(run.room, "bench", failing)
    assert run.main(["--only", "swiglu", "--out", str(tmp_path / "out"), "--work", str(tmp_path / "work")]) == 1
    out = capsys.readouterr()
    assert "swiglu.forward.M8192-N11008: error: no device" in out.out
    assert "swiglu.backward.M8192-N14336: failed" in out.out
    assert "a fault of the script" in out.err
    assert not (tmp_path / "out").exists()


@LONG
def test_from_a_task_to_evidence_without_a_gpu(tmp_path: Path) -> None:
    import subprocess

    told = ["--device", "host", "--most", "64", "--no-cold", "--only", "swiglu.forward", "--gate-seconds", "1"]
    done = subprocess.run([sys.executable, str(HERE / "run.py"), *told, "--work", str(tmp_path)], capture_output=True,
                          text=True, timeout=600, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    e = json.loads((tmp_path / "host" / "swiglu.forward.M64-N64.json").read_text())
    assert {"eager", "compile"} <= {a["name"] for a in e["figures"][0]["arms"]}
    assert {b["name"] for b in e["baselines"] if b["status"] == "unavailable"} >= {"graph"}
