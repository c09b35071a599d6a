"""``tilewright new op``: what it leaves runs the hazards and fails one of them, until there is a kernel; what is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.cli import main
from tilewright.errors import UserError
from tilewright.ops._builder import new

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = {
    '    """To be written: one row, or a part of one, a program."""': """
    program = tl.program_id(0).to(tl.int64)
    row, blocks = program // tl.cdiv(N, BLOCK), tl.cdiv(N, BLOCK)
    cols = program % blocks * BLOCK + tl.arange(0, BLOCK)
    ACC: tl.constexpr = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
    x = tl.load(x_ptr + row * sxm + cols * sxn, mask=cols < N, other=0.0).to(ACC)
    y = x * tl.cast(scale, ACC)
    tl.store(y_ptr + row * N + cols, y.to(y_ptr.dtype.element_ty), mask=cols < N)
""",
    '    raise NotImplementedError("halved: forward is not written yet; launch the kernel here")': """
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    if M and N:
        _rows[(M * triton.cdiv(N, 1024),)](x, y, M, N, *x.stride(), float(scale), BLOCK=1024)
    return y
""",
    '    raise NotImplementedError("halved: backward is not written yet; launch the kernel here")': """
    return forward(dy, scale)
""",
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A copy of the package without its caches, in which an operator may be begun."""
    shutil.copytree(ROOT / "src" / "tilewright", tmp_path / "tilewright", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "tests" / "ops" / "test_hazards.py", tmp_path)
    return tmp_path


def run(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(place), "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, *words], cwd=place, env=env, capture_output=True, text=True, timeout=500,
                          check=False)  # fmt: skip


def hazards(place: Path) -> str:
    return run(
        place, "-m", "pytest", "test_hazards.py", "-q", "-n", "0", "-k", "halved", "-p", "no:cacheprovider"
    ).stdout


def check(place: Path) -> tuple[int, str]:
    done = run(place, "-m", "tilewright", "ops", "check", "halved", "--ledger", str(place / "l.sqlite"))
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def test_from_a_name_to_an_accepted_operator(place: Path) -> None:
    made = run(place, "-m", "tilewright", "new", "op", "halved")
    assert made.returncode == 0, made.stderr
    assert "tilewright ops check halved" in made.stdout
    told = hazards(place)
    assert "the kernel of forward is not written: halved: forward is not written yet" in told
    failed = [line for line in told.splitlines() if line.startswith("FAILED")]
    assert failed
    assert all("kernel_written" in line for line in failed), "all that needs no kernel holds already"
    code, said = check(place)
    assert code == 1, said
    assert "REJECT" in said
    assert "not written yet" in said
    kernel = place / "tilewright" / "ops" / "halved" / "kernel.py"
    text = kernel.read_text()
    for old, written in WRITTEN.items():
        assert old in text
        text = text.replace(old, written)
    kernel.write_text(text)
    assert " failed" not in hazards(place)
    code, said = check(place)
    assert code == 0, said
    assert "ACCEPT" in said


@pytest.mark.parametrize(("name", "words"), [
    ("Halved", "is no name for an operator"), ("class", "is no name for an operator"), ("_own", "is no name"),
    ("softmax", "there is already"), ("log_softmax", "has a function 'log_softmax' already"),
])  # fmt: skip
def test_names_that_are_refused(name: str, words: str) -> None:
    with pytest.raises(UserError, match=words) as e:
        new.make(name)
    assert e.value.remedy
    assert name == "softmax" or not (new.ROOM / name).exists()


def test_nothing_else_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["new", "gate", "x"])
    assert ended.value.code == 2
    assert "tilewright new op NAME" in capsys.readouterr().err


def test_a_room_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="can't be written"):
        new.make("halved", tmp_path / "none")
