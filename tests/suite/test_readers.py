"""Suites are read, and kernels find their problems."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.errors import UserError
from tilewright.suite import pair, read_facts, read_suite

from .conftest import solution, write


def test_kernelbench_checkout(kernelbench: Path) -> None:
    suite = read_suite(kernelbench)
    assert suite.format == "kernelbench"
    assert [p.name for p in suite.problems] == ["level1/1_Relu", "level1/10_Twice", "level2/1_Relu"]
    assert [p.category for p in suite.problems] == ["level 1", "level 1", "level 2"]
    assert [p.name for p in read_suite(kernelbench / "KernelBench").problems] == [p.name for p in suite.problems]
    assert [p.name for p in read_suite(kernelbench / "KernelBench/level1").problems] == [
        "level1/1_Relu",
        "level1/10_Twice",
    ]


def test_kernelbench_kernels_by_the_names_of_its_scripts(kernelbench: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    write(runs / "level_1_problem_10_sample_0_kernel.py", "")
    write(runs / "level_1_problem_10_sample_1_kernel.py", "")
    write(runs / "level_1_problem_1_sample_0_kernel.py", "")
    write(runs / "level_3_problem_1_sample_0_kernel.py", "")
    write(runs / "readme_helper.py", "")
    found = pair(read_suite(kernelbench), runs)
    assert {(e.problem.name, e.method) for e in found.entries} == {
        ("level1/10_Twice", "sample 0"), ("level1/10_Twice", "sample 1"), ("level1/1_Relu", "sample 0")}  # fmt: skip
    assert (
        found.strays[runs / "level_3_problem_1_sample_0_kernel.py"] == "'level_3_problem_1' is no problem of this suite"
    )
    assert found.strays[runs / "readme_helper.py"] == "no part of its name is a problem's"
    suite = read_suite(kernelbench)
    assert [p.name for p in found.missing(suite, "sample 1")] == ["level1/1_Relu", "level2/1_Relu"]


def test_a_name_that_two_problems_bear_is_a_stray(kernelbench: Path, tmp_path: Path) -> None:
    write(tmp_path / "k/1_Relu.py", "")
    write(tmp_path / "k/level2/1_Relu.py", "")
    write(tmp_path / "k/ada/level1/1_Relu.py", "")
    found = pair(read_suite(kernelbench), tmp_path / "k")
    assert {(e.problem.name, e.method) for e in found.entries} == {
        ("level2/1_Relu", "kernels"),
        ("level1/1_Relu", "ada"),
    }
    assert found.strays[tmp_path / "k/1_Relu.py"] == \
        "'1_Relu' may be level1/1_Relu or level2/1_Relu: put it into a folder of that name"  # fmt: skip


def test_flashinfer_data_set_with_its_own_solutions(flashinfer: Path) -> None:
    suite = read_suite(flashinfer)
    assert suite.format == "flashinfer_bench"
    assert suite.kernels == flashinfer / "solutions"
    assert [(p.name, p.category) for p in suite.problems] == [("twice_n16", "elementwise")]
    found = pair(suite, flashinfer / "solutions")
    assert [(e.problem.name, e.method) for e in found.entries] == [("twice_n16", "ada")]
    assert list(found.strays.values()) == ["its definition 'absent' is not in the suite"]


def test_two_solutions_of_one_author_stay_apart(flashinfer: Path) -> None:
    write(flashinfer / "solutions/ada/other.json", solution("twice_n16", "ada"))
    found = pair(read_suite(flashinfer), flashinfer / "solutions")
    assert {e.method for e in found.entries} == {"ada/twice", "ada/other"}


def test_gpu_mode_folders(gpumode: Path, tmp_path: Path) -> None:
    suite = read_suite(gpumode)
    assert suite.format == "gpumode"
    assert [(p.name, p.category) for p in suite.problems] == [("bioml/trimul", "bioml"), ("pmpp/vectoradd_py", "pmpp")]
    assert [p.name for p in read_suite(gpumode / "bioml/trimul").problems] == ["trimul"]
    write(tmp_path / "k/trimul/submission.py", "")
    write(tmp_path / "k/vectoradd.ada.py", "")
    found = pair(suite, tmp_path / "k")
    assert {(e.problem.name, e.method) for e in found.entries} == {
        ("bioml/trimul", "kernels"),
        ("pmpp/vectoradd_py", "ada"),
    }


def test_folders_with_problem_files() -> None:
    examples = Path(__file__).parents[2] / "examples"
    suite = read_suite(examples)
    found = pair(suite, examples)
    assert suite.format == "folders"
    assert {"right", "wrong"} <= set(found.methods)
    assert not [e for e in found.entries if e.kernel.name == "problem.py"]


def test_what_is_no_suite_is_told_with_the_formats(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no suite that Tilewright can read") as e:
        read_suite(tmp_path)
    assert "kernelbench: KernelBench checkout" in str(e.value)
    with pytest.raises(UserError, match="is not a folder"):
        read_suite(tmp_path / "absent")


def test_no_kernel_fits(kernelbench: Path, tmp_path: Path) -> None:
    write(tmp_path / "k/thing.py", "")
    with pytest.raises(UserError, match=r"no kernel below .* is named after a problem") as e:
        pair(read_suite(kernelbench), tmp_path / "k")
    assert "thing.py: no part of its name is a problem's" in str(e.value)
    assert "1_Relu.py" in str(e.value)


def test_facts_weigh_and_sort(kernelbench: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "facts.toml", '10_Twice = 0.25\n["level2/1_Relu"]\nweight = 3\ncategory = "fused"\n')
    suite = read_suite(kernelbench).weighed(read_facts(file))
    assert {p.name: (p.weight, p.category) for p in suite.problems} == {
        "level1/1_Relu": (0.0, "level 1"), "level1/10_Twice": (0.25, "level 1"),
        "level2/1_Relu": (3.0, "fused")}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), [
    ("a = -1\n", "greater than or equal to 0"), ("a = {wieght = 1}\n", "wieght"), ("a = \n", "not TOML"),
])  # fmt: skip
def test_bad_facts_are_told_with_their_place(tmp_path: Path, text: str, message: str) -> None:
    file = write(tmp_path / "facts.toml", text)
    with pytest.raises(UserError, match=message) as e:
        read_facts(file)
    assert str(file) in str(e.value)


def test_facts_about_nothing(kernelbench: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "facts.toml", "softmax = 1\n")
    with pytest.raises(UserError, match="no problem of this suite: softmax"):
        read_suite(kernelbench).weighed(read_facts(file))


def test_a_part_of_a_suite(kernelbench: Path) -> None:
    assert [p.name for p in read_suite(kernelbench).only("Relu").problems] == ["level1/1_Relu", "level2/1_Relu"]
    with pytest.raises(UserError, match=r"no problem of .* has 'softmax' in its name"):
        read_suite(kernelbench).only("softmax")
