"""Scripts of C kernels: buffers between unreadable pages, so that an access out of range shows every time."""

import pytest
import torch
from stand_alone import Bench, run

from tilewright.task import Dim, TensorSpec

SHEET = {"outputs": {"y": TensorSpec("N")}, "dims": {"N": Dim(1, 10)}}


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


def scaled(bench, body: str, **more):
    """The script of a kernel that should give ``x * a``."""
    problem = bench.file("problem.py", """
        from tilewright.task import Dim, Scalar, Task, TensorSpec, normal

        TASK = Task(reference=lambda x, a: x * a, inputs={"x": TensorSpec("N", values=normal()), "a": Scalar(2.0)},
                    outputs={"y": TensorSpec("N")}, dims={"N": Dim(1, 10)})
    """)  # fmt: skip
    kernel = bench.file("kernel.c", f"""
        #include <stdint.h>
        void kernel(const float *x, float *y, double a, int64_t n) {{ {body} }}
    """)  # fmt: skip
    inputs = {"x": torch.tensor([1.0, 2.0, 3.0]), "a": 2.0}
    return bench.script(problem, kernel, inputs, sheet=SHEET, dims={"N": 3}, **more)


LOOP = "for (int64_t i = 0; {last}; i++) y[i] = x[i] * a;"


@pytest.mark.parametrize(("last", "code"), [("i < n", 0), ("i + 1 < n", 1)])
def test_values(bench, last, code):
    got, out = run(scaled(bench, LOOP.format(last=last)))
    assert got == code, out
    assert ("out[2]: got nan, expected 6" in out) == (code == 1)


RIGHT = LOOP.format(last="i < n")
OUTSIDE = {
    "reads past the end of 'x'": "if (x[n] > 3e38f) y[0] = 0;",
    "reads before the start of 'x'": "if (x[-1] > 3e38f) y[0] = 0;",
    "writes past the end of 'y'": "y[n] = 0;",
    "writes before the start of 'y'": "y[-1] = 0;",
}


@pytest.mark.parametrize("fault", OUTSIDE)
@pytest.mark.parametrize("mode", ["written", "values"])
def test_an_access_out_of_range_shows_every_time(bench, fault, mode):
    """What is read there changes no result, and what is written there belongs to nobody."""
    summary = f"{fault} (3,)"
    code, out = run(scaled(bench, f"{RIGHT} {OUTSIDE[fault]}", mode=mode, where=fault[-2], summary=summary))
    assert (code, out.splitlines()[-2:]) == (1, [f"the kernel {fault}", "STILL FAILS"]), out
    code, out = run(scaled(bench, RIGHT, mode=mode, where=fault[-2], summary=summary))
    assert (code, out) == (0, "the kernel is right on this input\nno longer fails\n")


def test_what_lies_just_past_the_end_is_nan(bench):
    """A kernel that takes a whole page too much reads NaN until it meets the fence; state is kept from call to call."""
    counts = "static int calls; for (int64_t i = 0; i < n; i++) y[i] = x[i] * a + (calls > 1); calls++;"
    code, out = run(scaled(bench, counts, mode="determinism", where="y"))
    assert code == 1
    assert "out: call 2 gives other bits than call 0 on the same input" in out


def test_a_crash_that_is_no_access_out_of_range(bench):
    code, out = run(scaled(bench, "*(volatile int *)8 = 1;", mode="values"))
    assert code == 1
    assert "the kernel crashes\nSTILL FAILS\n" in out
    assert "'x'" not in out


def test_vector_loads_of_an_unaligned_buffer_are_no_fault(bench):
    """At the end of a page three floats lie at an odd address: a crash there says nothing about bounds."""
    aligned = "if ((uintptr_t)x % 16) __builtin_trap();"
    code, out = run(scaled(bench, f"{aligned} {RIGHT}", mode="written", where="x", summary="reads past the end of 'x'"))
    assert (code, out) == (0, "the kernel is right on this input\nno longer fails\n")
