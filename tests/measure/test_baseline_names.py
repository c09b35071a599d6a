"""Files as baselines: none hides another of the same name."""

import pytest

from tilewright.measure.baselines import Context, files, offers


@pytest.mark.parametrize(("given", "named"), [
    (["a/kernel.c", "right.c"], ["kernel.c", "right.c"]),
    (["a/kernel.c", "b/kernel.c", "right.c"], ["a/kernel.c", "b/kernel.c", "right.c"]),
    (["x/a/kernel.c", "y/a/kernel.c"], ["x/a/kernel.c", "y/a/kernel.c"]),
    (["k.py::first", "k.py::second"], ["k.py::first", "k.py::second"]),
])  # fmt: skip
def test_names(given, named):
    assert list(files.names(given).values()) == named


def test_two_files_of_one_name_are_two_baselines(tmp_path):
    given = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "kernel.c").write_text("void kernel(const float *x, float *y, long N) {}\n")
        given.append(str(tmp_path / folder / "kernel.c"))
    found = offers(Context(None, "problem.py", files=tuple(given)), ())
    assert [o.name for o in found] == ["a/kernel.c", "b/kernel.c"]
