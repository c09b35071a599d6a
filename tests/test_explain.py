"""``tilewright explain``: the facts, and what is said of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilewright.cli import run
from tilewright.errors import KernelError, UserError
from tilewright.explain import ceilings, explain
from tilewright.explain.facts import Access, Launch
from tilewright.explain.obstacles import of_all, of_launch

EXAMPLE = Path(__file__).parents[1] / "examples" / "01_softmax"
PROBLEM, RIGHT = str(EXAMPLE / "problem.py"), str(EXAMPLE / "right.py")


def test_facts_of_the_softmax_example() -> None:
    x = explain(PROBLEM, RIGHT, dims={"M": 64, "N": 1024})
    tensor = 64 * 1024 * 4
    assert x.compulsory == 2 * tensor
    assert (x.read, x.written) == (3 * tensor, tensor), "three sweeps"
    assert x.bound == "memory"
    assert x.floor == pytest.approx(2 * tensor / ceilings()["copy"])
    (launch,) = x.launches
    assert (launch.function, launch.grid, launch.spills) == ("softmax_kernel", (64,), 0)
    assert all(a.width == 16 for a in launch.accesses)
    assert all(a.used == 1.0 for a in launch.accesses)
    assert any("asked for 3 times" in o for o in launch.obstacles)
    assert any("64 of 132 multiprocessors" in o for o in launch.obstacles)
    assert not x.torch_ops


def test_as_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", PROBLEM, RIGHT, "--dims", "M=8,N=100"]) == 0
    out = capsys.readouterr().out
    for words in ("must move", "asks for", "launch 1  softmax_kernel", "what stands in the way", "H200"):
        assert words in out
    assert run(["explain", PROBLEM, RIGHT, "--dims", "M=8,N=100", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["dims"] == {"M": 8, "N": 100}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--dims", "M=x"], "is no size"),
        (["--dims", "Q=4"], "no dim 'Q'"),
        (["--dims", "N=100000"], "promises M"),
        (["--dtype", "int8"], "promises no int8"),
        (["--dims", "M=1000000"], "too much to evaluate"),
    ],
)
def test_errors_say_what_to_do(options: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", PROBLEM, RIGHT, *options]) == 2
    assert words in " ".join(capsys.readouterr().err.split())


def test_only_triton() -> None:
    folder = EXAMPLE.parent / "03_native"
    with pytest.raises(KernelError, match="no Triton kernel"):
        explain(str(folder / "problem.py"), str(folder / "right.c"))


def test_unknown_dims() -> None:
    with pytest.raises(UserError, match="its dims are M, N"):
        explain(PROBLEM, RIGHT, dims={"K": 3})


def access(**changes: object) -> Access:
    base = {
        "where": "k.py:3",
        "kind": "load",
        "argument": "x",
        "dtype": "float32",
        "bytes": 4096,
        "masked": 0.0,
        "width": 16,
        "used": 1.0,
        "step": 1,
        "repeats": 1.0,
    }
    return Access(**{**base, **changes})


def launch(*accesses: Access, **changes: object) -> Launch:
    base = {
        "function": "f",
        "where": "k.py:1",
        "grid": (1000,),
        "programs": 1000,
        "read": 4096,
        "written": 4096,
        "dot_flops": 0,
        "tensor_cores": (),
        "occupancy": 1.0,
        "accesses": accesses,
    }
    return Launch(**{**base, **changes})


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (
            launch(access(used=0.125, step=64)),
            "uses 12% of the memory that it fetches: neighbours lie 64 elements apart",
        ),
        (launch(access(width=2)), "2 bytes a thread at once where 16 are possible"),
        (launch(access(masked=0.5)), "50% of the lanes"),
        (launch(access(repeats=8)), "asked for 8 times"),
        (launch(spills=24), "24 bytes a thread spill"),
        (launch(dot_flops=100), "without tensor cores"),
        (launch(programs=1), "1 program keeps at most 1 of 132"),
        (launch(occupancy=0.12, limited_by="registers"), "registers leave room for 12% of the warps"),
        (launch(waves=2.2), "the last of 2.2 waves"),
    ],
)
def test_each_obstacle(x: Launch, words: str) -> None:
    assert any(words in o for o in of_launch(x, 132))
    assert of_launch(launch(access()), 132) == ()


def test_obstacles_over_all_launches() -> None:
    assert of_all((launch(),), 8192, {}) == ()
    found = " ".join(of_all((launch(), launch()), 8192, {"sum at k.py:9": 1}))
    assert "2 times the bytes" in found
    assert "2 launches" in found
    assert "sum at k.py:9" in found
