"""``tilewright explain``: the facts, and what is said of them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tilewright.cli import run
from tilewright.errors import KernelError, UserError
from tilewright.explain import ceilings, explain, torch_work
from tilewright.explain.facts import Access, Intermediate, Launch, TorchOp
from tilewright.explain.formula import named
from tilewright.explain.obstacles import of_all, of_launch

EXAMPLE = Path(__file__).parents[1] / "examples" / "01_softmax"
CORPUS = EXAMPLE.parents[1] / "corpus"
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
    assert any("is loaded 3 times (at right.py:18, 26, 32)" in o for o in launch.obstacles)
    assert any("64 of 132 multiprocessors" in o for o in launch.obstacles)
    assert not x.torch_ops


def test_the_page_shows_what_the_command_prints(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes and bytes; the card's numbers are its own."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(EXAMPLE.parents[1])
    page = (EXAMPLE.parents[1] / "docs" / "explain.md").read_text().split("```")[1]
    assert run(["explain", "examples/01_softmax/problem.py", "examples/01_softmax/right.py"]) == 0
    printed = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    for line in page.strip().splitlines():
        assert " ".join(line.split()) in printed


def test_as_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", PROBLEM, RIGHT, "--dims", "M=8,N=100"]) == 0
    out = capsys.readouterr().out
    for words in ("must move", "moves", "launch 1  softmax_kernel", "what stands in the way", "H200"):
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


def test_other_languages_are_refused() -> None:
    folder = EXAMPLE.parent / "03_native"
    with pytest.raises(KernelError, match=r"right\.c' is a kernel in C: explain reads launches of Triton"):
        explain(str(folder / "problem.py"), str(folder / "right.c"))


def test_one_element_in_words_with_the_sizes_called_by_their_names() -> None:
    x = explain(PROBLEM, RIGHT, dims={"M": 8, "N": 100})
    assert x.formula == "out[1,1] = exp(x[1,1] - max_{j<N} x[1,j])/(sum_{k<N} exp(x[1,k] - max_{j<N} x[1,j]))"
    assert re.fullmatch(r"M=\d+, N=\d+ and at M=\d+, N=\d+", x.formula_read)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("max_{j<69} x[1,j]", "max_{j<N} x[1,j]"),
        ("(sum_{j<73} x[68,j])/72", "(sum_{j<M} x[68,j])/(M-1)"),
        ("x[1,69]*1/sqrt(73) + 0.69 + 69.5", "x[1,69]*1/sqrt(M) + 0.69 + 69.5"),
        ("sum_{j=1..68} x[j]", "sum_{j=1..68} x[j]"),
        ("3*x[1]", "3*x[1]"),
    ],
)
def test_sizes_by_name(text: str, words: str) -> None:
    assert named(text, {"M": 73, "N": 69, "B": 3}) == words


def test_a_size_of_two_dims_stays_a_number() -> None:
    assert named("sum_{j<64} x[1,j]", {"M": 64, "N": 64}) == "sum_{j<64} x[1,j]"


SPLIT = """
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec
TASK = Task(reference=lambda x: x[:, :40].sum(-1) + x[:, 3 * x.shape[1] // 4:].sum(-1), inputs={"x": TensorSpec("M N")},
            outputs={"y": TensorSpec("M")}, dims={"M": Dim(1, 512), "N": Dim(40, 512)},
            workloads=[{"M": 64, "N": 96}], contract=Contract())
"""


def test_a_formula_that_names_do_not_explain_stands_with_its_sizes(tmp_path: Path) -> None:
    (tmp_path / "problem.py").write_text(SPLIT)
    (tmp_path / "k.py").write_text(
        "def kernel(x):\n    return x[:, :40].sum(-1) + x[:, 3 * x.shape[1] // 4:].sum(-1)\n"
    )
    x = explain(str(tmp_path / "problem.py"), f"{tmp_path / 'k.py'}::kernel")
    assert re.fullmatch(r"M=\d+, N=\d+", x.formula_read)
    assert re.match(r"out\[1\] = sum_{\d+ j in 0..\d+} x\[1,j\]", x.formula)
    assert "N" not in x.formula


def test_brackets_of_a_formula_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    folder = CORPUS / "matmul" / "plain"
    assert run(["explain", str(folder / "problem.py"), str(folder / "right_grouped_swizzle.py")]) == 0
    assert "out[1,1] = sum_{j<K} a[1,j]*b[j,1]" in capsys.readouterr().out


def test_parameters_of_a_module_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    folder = EXAMPLE.parent / "02_kernelbench"
    x = explain(str(folder / "problem.py"), str(folder / "right.py"))
    assert "sum_{j<in_features} x[1,j]*linear.weight[1,j] + linear.bias[1]" in x.formula


def test_operations_that_nobody_counted_are_no_zero(capsys: pytest.CaptureFixture[str]) -> None:
    folder = CORPUS / "layer_norm" / "backward"
    assert run(["explain", str(folder / "problem.py"), str(folder / "right_partial_sums.py")]) == 0
    assert "not counted: the task states none" in capsys.readouterr().out


ATTENTION = """
import torch
from tilewright.task import Contract, Dim, Task, TensorSpec
TASK = Task(reference=lambda q, k: torch.softmax(q @ k.T, -1) @ k, inputs={"q": TensorSpec("M D"), "k": TensorSpec("N D")},
            outputs={"o": TensorSpec("M D")}, dims={"M": Dim(1, 512), "N": Dim(1, 512), "D": Dim(1, 64)},
            workloads=[{"M": 64, "N": 96, "D": 16}], contract=Contract())
"""
IN_TORCH = """
import torch
def kernel(q, k):
    s = q @ k.T
    e = torch.exp(s - s.amax(-1, keepdim=True))
    p = e.div_(e.sum(-1, keepdim=True))
    return p @ k
"""


def test_torch_operations(tmp_path: Path) -> None:
    (tmp_path / "problem.py").write_text(ATTENTION)
    (tmp_path / "k.py").write_text(IN_TORCH)
    x = explain(str(tmp_path / "problem.py"), f"{tmp_path / 'k.py'}::kernel")
    assert x.launches == ()
    first = x.operations[0]
    assert (first.name, first.where, first.shape) == ("mm", "k.py:4", "64x96")
    assert (first.read, first.written) == (4 * 16 * (64 + 96), 4 * 64 * 96)
    assert first.flops == 2 * 64 * 96 * 16
    assert [o.name for o in x.operations] == ["mm", "amax", "sub", "exp", "sum", "div_", "mm"]
    scores = next(i for i in x.intermediates if i.made == "mm at k.py:4")
    assert (scores.bytes, scores.shape, scores.read) == (4 * 64 * 96, "64x96", ("amax at k.py:5", "sub at k.py:5"))
    assert not any(i.made.startswith("mm at k.py:7") for i in x.intermediates), "the result is no intermediate"
    said = " ".join(x.obstacles)
    assert "intermediate tensors go through memory" in said
    assert "7 torch operations, none fused with another" in said
    assert "torch operations read and write" in said


@pytest.mark.parametrize("width", [80, 120])
def test_nothing_is_cut_off(
    tmp_path: Path, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    (tmp_path / "problem.py").write_text(ATTENTION)
    (tmp_path / "k.py").write_text(IN_TORCH)
    assert run(["explain", str(tmp_path / "problem.py"), f"{tmp_path / 'k.py'}::kernel"]) == 0
    out = capsys.readouterr().out
    assert "k.py:4" in out
    assert "in memory between steps: 64x96 float32 (24 KiB), made by mm at k.py:4" in " ".join(out.split())
    assert run(["explain", PROBLEM, RIGHT, "--dims", "M=8,N=100"]) == 0
    out += capsys.readouterr().out
    assert "load x_ptr float32" in out
    assert "…" not in out
    assert max(map(len, out.splitlines()[2:])) <= max(width, 100)


def test_bytes_of_what_is_repeated_by_a_stride_of_zero() -> None:
    assert torch_work.nbytes([0, 0, [64, 32], [1, 0], "float16"]) == 128
    assert torch_work.nbytes([0, 0, [0, 32], [0, 1], "float16"]) == 0


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
        (launch(access(repeats=8)), "each element of 'x' is loaded 8 times (at k.py:3)"),
        (launch(access(repeats=2)), "is loaded twice"),
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


def operation(**changes: object) -> TorchOp:
    base = {"name": "sum", "where": "k.py:9", "shape": "4", "dtype": "float32", "times": 1, "read": 0, "written": 0,
            "flops": 0}  # fmt: skip
    return TorchOp(**{**base, **changes})


def test_obstacles_over_all_steps() -> None:
    assert of_all((launch(),), 8192, (), ()) == ()
    found = " ".join(of_all((launch(), launch()), 8192, (operation(),), ()))
    assert "launches and torch operations load and store 2 times the bytes" in found
    assert "2 launches" in found
    assert "sum at k.py:9" in found
    left = Intermediate(bytes=4096, shape="32x32", dtype="float32", made="mm at k.py:3", read=("exp at k.py:4",))
    alone = " ".join(of_all((), 8192, (operation(times=3),), (left,)))
    assert "1 intermediate tensor goes through memory (4 KiB), the largest 32x32 float32, made by mm at k.py:3" in alone
    assert "3 torch operations" in alone
