"""Skills for C: what they do to the text, that the result computes the same, and where they refuse."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from tilewright.kernel.languages.native import compile_c
from tilewright.search.proposers._declared import read
from tilewright.search.skills._c import Source, loop, loops
from tilewright.search.skills._poly import Poly, poly
from tilewright.search.skills._skill import EXAMPLES, Skill, all_skills

SKILLS = {s.name: s for s in all_skills("native")}
NAIVE, ROWS, SOFTMAX = ((EXAMPLES / f"{n}.c").read_text() for n in ("naive", "rows", "softmax"))
HEAD = "#include <math.h>\n#include <stdint.h>\n\nvoid kernel(const float *x, float *y, int64_t M, int64_t N)\n{\n"


def body(text: str) -> str:
    return HEAD + text + "\n}\n"


def spelled(text: str) -> str:
    """``@J`` and ``@K`` are the usual loops over N and M, ``@IJ`` is both."""
    loops_ = {"@IJ": "for (int64_t i = 0; i < M; i++) @J", "@J": "for (int64_t j = 0; j < N; j++)",
              "@K": "for (int64_t k = 0; k < M; k++)"}  # fmt: skip
    for short, long in loops_.items():
        text = text.replace(short, long)
    return text


def run(text: str, tmp_path: Path, *shape: int, seed: int = 0) -> np.ndarray:
    """What a kernel of one input (M N) or two (M K, K N) computes."""
    rng = np.random.default_rng(seed)
    sizes = [(shape[0], shape[1]), (shape[1], shape[2])] if len(shape) == 3 else [shape]
    inputs = [rng.standard_normal(s).astype(np.float32) for s in sizes]
    out = np.full((shape[0], shape[-1]), np.nan, np.float32)
    function = ctypes.CDLL(compile_c(text, "kernel.c")).kernel
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*inputs, out)]
    function(*pointers, *(ctypes.c_int64(n) for n in shape))
    return out


SHAPES = {"matmul.py": [(1, 1, 1), (5, 7, 9), (33, 70, 65)], "row_softmax.py": [(1, 1), (3, 17), (4, 100)]}


@pytest.mark.parametrize("name", sorted(SKILLS))
def test_the_result_computes_what_the_example_did(name: str, tmp_path: Path) -> None:
    skill = SKILLS[name]
    text = (EXAMPLES / skill.example[1]).read_text()
    sites = skill.sites(text)
    assert sites, f"{name} finds nothing in its example"
    for site in sites:
        for values in some(site.text):
            changed = read(site.text, "native").apply(values)
            for shape in SHAPES[skill.example[0]]:
                want, got = run(text, tmp_path, *shape), run(changed, tmp_path, *shape)
                exact = skill.keeps.startswith("every bit") and "another order" not in site.title
                loose = 1e-6 * float(np.abs(want).max())  # sums that cancel
                np.testing.assert_allclose(got, want, rtol=0 if exact else 3e-6, atol=0 if exact else loose)


def some(text: str) -> list[dict[str, int]]:
    """The values as they stand, and the smallest of each parameter that a skill brought."""
    space = read(text, "native")
    return [{}, {k.name: k.choices[0] for k in space.knobs}] if space.knobs else [{}]  # type: ignore[dict-item]


@pytest.mark.parametrize("name", sorted(SKILLS))
def test_it_says_what_it_does_and_why(name: str) -> None:
    skill = SKILLS[name]
    for words in (skill.what, skill.holds, skill.keeps, skill.source):
        assert len(words) > 5
    assert all((EXAMPLES / f).is_file() for f in skill.example)


@pytest.mark.parametrize("name", sorted(SKILLS))
def test_applied_again_and_again_it_comes_to_an_end_and_stays_right(name: str, tmp_path: Path) -> None:
    skill: Skill = SKILLS[name]
    text = first = (EXAMPLES / skill.example[1]).read_text()
    shape = SHAPES[skill.example[0]][1]
    for _ in range(4):
        sites = skill.sites(text)
        if not sites:
            break
        text = sites[-1].text
        assert Source(text).readable
        np.testing.assert_allclose(run(text, tmp_path, *shape), run(first, tmp_path, *shape), rtol=1e-5, atol=1e-6)


def test_skills_work_on_what_others_made(tmp_path: Path) -> None:
    text = NAIVE
    for name in ("c-rows", "c-restrict", "c-target", "c-ivdep", "c-unroll"):
        sites = SKILLS[name].sites(text)
        assert sites, name
        text = sites[0].text
    np.testing.assert_array_equal(run(text, tmp_path, 13, 21, 37), run(NAIVE, tmp_path, 13, 21, 37))


REFUSED = [
    ("c-interchange", "for (int64_t i = 1; i < M; i++) @J y[i * N + j] = y[i * N + j - N] + 1;",
     "also used at another place"),
    ("c-interchange", "for (int64_t i = 0; i < M; i++) for (int64_t j = 0; j < i; j++) y[i * N + j] = 1;", "depend on 'i'"),
    ("c-interchange", "float s = 0; @IJ s = s * 2 + x[i * N + j];",
     "'s' is carried"),
    ("c-interchange", "@IJ y[i + j] = x[i * N + j];",
     "may be the same element"),
    ("c-interchange", "for (int64_t i = 0; i < M; i++) for (int64_t j = 0; j < N + 1; j++) y[i * N + j] = 1;",
     "may be the same element"),
    ("c-interchange", "@IJ y[0] = x[i * N + j];",
     "the order of i and j decides"),
    ("c-interchange", "@IJ { if (x[j] > 0) break; y[i * N + j] = 1; }",
     "leaves the straight path"),
    ("c-interchange", "@IJ y[i * N + j] = unknown(x[j]);",
     "'unknown' is called"),
    ("c-interchange", "@IJ *y++ = x[j];", "not a name with one subscript"),
    ("c-interchange", "@IJ y[(int64_t)x[i] + j] = 1;", "changes inside the loops"),
    ("c-interchange", "volatile int v = 0; @IJ y[i * N + j] = v;",
     "'volatile' forbids"),
    ("c-tile", "for (int64_t i = 0; i < M; i += 2) @J y[i * N + j] = 1;", "step by one"),
    ("c-tile", "for (int64_t i = 0; i < M; i++) for (int64_t j = 1; j < N; j++) y[i * N + j] += y[i * N + j - 1];",
     "also used at another place"),
    ("c-rows", "@J { double s = 0; @K s += x[k * N + j]; y[j] = s; }",
     "rounding would change"),
    ("c-rows", "@J { float s = 0; for (int64_t k = 0; k < j; k++) s += x[k]; y[j] = s; }",
     "the bounds of 'k' depend on 'j'"),
    ("c-rows", "@J { float s = 0; @K s += y[k]; y[j] = s; }",
     "'y' is read while"),
    ("c-rows", "@J { float s = 0; @K s += x[k]; y[0] = s; }",
     "is not another element"),
    ("c-lanes", "float s = 0; @J s += x[j] * s; y[0] = s;", "depends on 's'"),
    ("c-lanes", "int s = 0; @J s += x[j] > 0; y[0] = s;", "not a local float"),
    ("c-lanes", "float s = 0; for (int64_t j = 0; j < N; j += 3) s += x[j]; y[0] = s;", "does not step by one"),
    ("c-lanes", "float s = 0; for (int64_t j = 0; j < 8; j++) s += x[j]; y[0] = s;", "the loop is short"),
    ("c-split-k", "float s = 0; @J s += x[j]; y[0] = s;", "no product of two elements"),
    ("c-split-k", "float s = 0; @J s += 2 * x[j]; y[0] = s;", "no product of two elements"),
    ("c-split-k", "float s = 0; @J s += x[j] * x[0]; y[0] = s;", "a factor does not depend on 'j'"),
    ("c-split-k", "float s = 0; for (int64_t j = 1; j < N; j++) s += x[j] * x[j]; y[0] = s;", "does not begin at 0"),
    ("c-split-k", "float s = 0; for (int64_t j = 0; j < N; j += 2) s += x[j] * x[j]; y[0] = s;", "does not step by one"),
    ("c-split-k", "float s = 0; for (int64_t j = 0; j < 8; j++) s += x[j] * x[j]; y[0] = s;", "the loop is short"),
    ("c-split-k", "int s = 0; @J s += x[j] * x[j]; y[0] = s;", "not a local float"),
    ("c-ivdep", "for (int64_t j = 1; j < N; j++) y[j] = y[j - 1] + x[j];", "also used at another place"),
    ("c-ivdep", "@J y[0] += x[j];", "meets in one element"),
    ("c-unroll", "for (int64_t j = N; j > 0; j--) y[j - 1] = 1;", "not by '<'"),
    ("c-unroll", "@J { y[j] = 1; j += 1; }", "changes 'j'"),
    ("c-reciprocal", "float s = 2; @J { s += 1; y[j] = x[j] / s; }", "changes 's'"),
    ("c-reciprocal", "int s = 2; @J y[j] = (int)x[j] / s;", "not a local float"),
    ("c-reciprocal", "@J y[j] = x[j] / x[0];", "no plain variable"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "words"), REFUSED, ids=[f"{n}: {w}" for n, _, w in REFUSED])
def test_it_refuses_where_its_conditions_do_not_hold(name: str, text: str, words: str) -> None:
    whole = body(spelled(text))
    assert SKILLS[name].sites(whole) == []
    reasons = [r.reason for r in SKILLS[name].refusals(whole)]
    assert any(words in r for r in reasons), reasons


STORE, LAST = "y[i * N + j] = expf(row[j] - m) / s", "for (int64_t j = 0; j < N; j++)\n            y"
CHANGES: list[tuple[str, str, str, str]] = [
    ("c-keep-exp", STORE, "y[i * N + j] = expf(row[j] - m) * y[i * N + j]", "is read as well"),
    ("c-keep-exp", LAST, LAST.replace("j = 0", "j = 1"), "different elements"),
    ("c-keep-exp", "float *y", "double *y", "differ in type"),
    ("c-online-softmax", "double s = 0;", "double s = 1;", "does not start at 0"),
    ("c-online-softmax", "float m = row[0]", "float m = row[1]", "start at different elements"),
    ("c-online-softmax", "s += expf(row[j] - m)", "s += expf(row[j] - 1)", "the sum is not over"),
    ("c-exp2", "#include <math.h>", "float expf(float);", "not the one of math.h"),
    ("c-fast-exp", "#include <math.h>", "static float expf(float v) { return v; }", "not the one of math.h"),
    ("c-restrict", "float m = row[0];", "float m = row[0]; x[i] = m;", "'x' is const and written"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new", "words"), CHANGES, ids=[f"{n}: {w}" for n, _, _, w in CHANGES])
def test_softmax_skills_refuse_where_one_line_is_another(name: str, old: str, new: str, words: str) -> None:
    text = SOFTMAX.replace(old, new)
    assert text != SOFTMAX
    assert SKILLS[name].sites(text) == []
    assert any(words in r.reason for r in SKILLS[name].refusals(text)), SKILLS[name].refusals(text)


def test_what_is_not_plain_c_is_refused_as_a_whole() -> None:
    for skill in SKILLS.values():
        assert skill.sites("void kernel( { for (;;") == []
        assert "not plain C" in skill.refusals("void kernel( { for (;;")[0].reason


def test_infinities_and_nan_come_out_of_one_pass_as_of_two(tmp_path: Path) -> None:
    online = SKILLS["c-online-softmax"].sites(SOFTMAX)[0].text
    for bad in ([-np.inf, 1, 2], [1, np.inf, 2], [np.nan, 1, 2], [1, np.nan, 2], [-np.inf] * 3, [3, -np.inf, 5]):
        x = np.array([bad], np.float32)
        results = []
        for text in (SOFTMAX, online):
            out = np.zeros_like(x)
            ctypes.CDLL(compile_c(text, "k.c")).kernel(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(out.ctypes.data),
                                                       ctypes.c_int64(1), ctypes.c_int64(3))  # fmt: skip
            results.append(out)
        np.testing.assert_allclose(results[1], results[0], rtol=1e-6, err_msg=str(bad))


def test_polynomials_and_loops_are_read() -> None:
    source = Source(body("for (int64_t j = 0; j < N; j += 2) y[(j + 1) * N - 2 * j * N + (int64_t)3] = 0;"))
    node = loops(source)[0]
    found = loop(source, node)
    assert not isinstance(found, str)
    assert (found.var, found.low, found.high, found.step) == ("j", "0", "N", "2")
    index = next(n for n in walk(node) if n.type == "subscript_expression").child_by_field_name("index")
    got = poly(source, index)
    assert got == Poly.of({("N",): 1, ("N", "j"): -1, (): 3})
    assert got is not None
    assert got.step("j") == Poly.of({("N",): -1})


def walk(node: object) -> list:  # type: ignore[type-arg]
    from tilewright.search.skills._c import walk as inner

    return list(inner(node))  # type: ignore[arg-type]
