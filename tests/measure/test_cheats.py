"""What a candidate could do to its times, tried behind the back of the check: each is refused by the timing itself."""

import pytest

CHEATS = [
    ("address.c", "output of a timed call is wrong"),
    ("phase.c", "output of a timed call is wrong"),
    ("prefix.c", "output of a timed call is wrong"),
    ("later.c", "1 thread running beside the timed calls"),
    ("helper.c", "1 process running beside the timed calls"),
    ("inputs.c", "a timed call changed its input 'x'"),
    ("crash.c", "killed by SIG"),
    ("lazy.py", "another than in the check"),
]


@pytest.mark.parametrize(("kernel", "why"), CHEATS, ids=[c[0] for c in CHEATS])
def test_it_is_refused(timed, kernel, why):
    result = timed(f"cheats/{kernel}").result
    assert result.answer == "refused", result
    assert why in result.reason


def test_clocks_in_its_process_are_of_no_use(timed):
    """The parent keeps the time, and the child's clock was taken hold of before."""
    result = timed("cheats/clocks.py").result
    assert "clock" not in result.reason
    arm = result.figure.arm("candidate")
    assert all(t > 1e-7 for block in arm.blocks for t in block)
    assert all(t > 1e-7 for t in arm.cross)


def test_an_honest_kernel_is_not_refused(timed):
    result = timed("right.c").result
    assert result.answer != "refused", result.reason
    arm = result.figure.arm("candidate")
    assert arm.checked >= 2
    assert all(t > 0 for block in arm.blocks for t in block)
