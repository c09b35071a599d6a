"""Skills for Triton: what they do to the text, and where they refuse. That results are right is in ``test_admission.py``."""

from __future__ import annotations

import ast

import pytest

from tilewright.search.proposers._declared import read
from tilewright.search.skills._skill import EXAMPLES, all_skills

SKILLS = {s.name: s for s in all_skills("triton")}
SOFTMAX, MATMUL, ADD = ((EXAMPLES / f"{n}_triton.py").read_text() for n in ("softmax", "matmul", "add"))
ATTENTION = """
import triton
import triton.language as tl

@triton.jit
def f(q_ptr, k_ptr, o_ptr, l_ptr, sm_scale, N, B: tl.constexpr, D: tl.constexpr):
    q = tl.load(q_ptr + tl.arange(0, B)[:, None] * D + tl.arange(0, D)[None, :])
    m = tl.zeros((B,), dtype=tl.float32) - float("inf")
    l = tl.zeros((B,), dtype=tl.float32)
    acc = tl.zeros((B, D), dtype=tl.float32)
    for start in range(0, N, B):
        k = tl.load(k_ptr + (start + tl.arange(0, B))[:, None] * D + tl.arange(0, D)[None, :])
        qk = tl.dot(q, tl.trans(k))
        qk *= sm_scale
        qk = tl.where((start + tl.arange(0, B))[None, :] < N, qk, -float("inf"))
        new = tl.maximum(m, tl.max(qk, 1))
        alpha = tl.exp(m - new)
        p = tl.exp(qk - new[:, None])
        l = l * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None] + tl.dot(p, k)
        m = new
    tl.store(o_ptr + tl.arange(0, B), l)
"""


@pytest.mark.parametrize("name", sorted(SKILLS))
def test_its_example_has_a_place_and_the_result_is_python(name: str) -> None:
    skill = SKILLS[name]
    text = (EXAMPLES / skill.example[1]).read_text()
    assert skill.sites(text)
    for site in skill.sites(text):
        ast.parse(site.text)
        read(site.text, "triton")
    for words in (skill.what, skill.holds, skill.keeps, skill.source):
        assert len(words) > 5


@pytest.mark.parametrize("name", sorted(SKILLS))
def test_applied_again_and_again_it_comes_to_an_end(name: str) -> None:
    text = (EXAMPLES / SKILLS[name].example[1]).read_text()
    for _ in range(6):
        sites = SKILLS[name].sites(text)
        if not sites:
            return
        text = sites[0].text
        ast.parse(text)
    pytest.fail(f"{name} never ends")


def test_the_scale_of_attention_takes_log2_e_in_once_for_all_exponentials() -> None:
    text = SKILLS["t-exp2"].sites(ATTENTION)[0].text
    assert "qk *= (sm_scale * 1.4426950408889634)" in text
    assert text.count("tl.exp2(") == 2
    assert "tl.exp(" not in text


def test_parameters_that_skills_bring_are_declared() -> None:
    text = SKILLS["t-launch"].sites(SKILLS["t-swizzle"].sites(MATMUL)[0].text)[0].text
    space = read(text, "triton")
    assert {k.name for k in space.knobs} == {"GROUP", "num_warps", "num_stages"}
    assert "tl.constexpr(2)  # knob" in space.apply({"GROUP": 2})


def test_masks_go_and_nothing_else_does() -> None:
    text = SKILLS["t-unmask"].sites(SOFTMAX)[0].text
    assert "x = tl.load(x_ptr + row * N + cols)\n" in text
    assert text.count("mask=cols < N") == SOFTMAX.count("mask=cols < N")
    assert "for start in range(0, N // BLOCK * BLOCK, BLOCK):" in text
    assert "for start in range(N // BLOCK * BLOCK, N, BLOCK):" in text


REFUSED = [
    ("t-exp2", ATTENTION, "o_ptr + tl.arange(0, B), l)", "l_ptr + tl.arange(0, B), m + tl.log(l))", "'m' carries the scale"),
    ("t-exp2", ATTENTION, 'qk, -float("inf")', "qk, -1.0e6", "a value that is not scaled"),
    ("t-exp2", ATTENTION, "tl.exp(m - new)", "tl.exp(m - N)", "'N' is not scaled"),
    ("t-exp2", ATTENTION, "p = tl.exp(qk - new[:, None])", "p = tl.sigmoid(qk) + tl.exp(qk)", "'qk' carries the scale"),
    ("t-unmask", SOFTMAX, "mask=cols < N", "mask=(cols < N) & (row > 3)", "says more than"),
    ("t-unmask", SOFTMAX, "range(0, N, BLOCK)", "range(BLOCK, N, BLOCK)", "bounds are not plain"),
    ("t-unmask", SOFTMAX, "cols = start + lanes", "cols = start + lanes + 1", "says more than"),
    ("t-unmask", SOFTMAX, "lanes = tl.arange(0, BLOCK)", "lanes = tl.arange(0, 2 * BLOCK)", "says more than"),
    ("t-unmask", SOFTMAX, "        cols = start + lanes", "        N += 0\n        cols = start + lanes", "changes inside"),
    ("t-persistent", SOFTMAX, "    lanes =", "    if N == 3:\n        return\n    lanes =", "returns early"),
    ("t-persistent", SOFTMAX, "    lanes =", "    other = tl.program_id(1)\n    lanes =", "more than once"),
    ("t-persistent", SOFTMAX, "[(M,)]", "[lambda meta: (M,)]", "not one plain expression"),
    ("t-persistent", SOFTMAX, "[(M,)]", "[(M, 2)]", "not one plain expression"),
    ("t-persistent", SOFTMAX, "[(M,)]", "[(count(),)]", "not one plain expression"),
    ("t-persistent", SOFTMAX, "    return y", "    _softmax[(M,)](x, y, N, BLOCK=64)\n    return y", "launched at 2 places"),
    ("t-persistent", SOFTMAX, "tl.store(y_ptr", "tl.atomic_add(y_ptr", "atomic_add"),
    ("t-swizzle", MATMUL, "j = tl.program_id(1)", "j = tl.program_id(1) + 1", "inside a larger expression"),
    ("t-swizzle", MATMUL, "j = tl.program_id(1)", "j = tl.program_id(2)", "other places"),
    ("t-swizzle", MATMUL, "    rows =", "    n = tl.num_programs(0)\n    rows =", "orders its tiles itself"),
    ("t-swizzle", MATMUL, "    j = tl.program_id(1)", "    more = 1\n    j = tl.program_id(1)", "one right after the other"),
    ("t-evict", SOFTMAX, "other=0.0)", 'other=0.0, eviction_policy="evict_last")', "its policy already"),
    ("t-launch", SOFTMAX, "BLOCK=64)", "BLOCK=64, num_warps=8)", "names its options already"),
    ("t-evict", SOFTMAX, "tl.load(x_ptr", "tl.load(tl.multiple_of(x_ptr, 8)", "points into is not clear"),
    ("t-launch", SOFTMAX, "    return y", "    _softmax[(M,)](x, y, N, BLOCK=64)\n    return y", "launched at 2 places"),
    ("t-launch", SOFTMAX, "@triton.jit", "@triton.autotune(configs=[], key=[])\n@triton.jit", "configured elsewhere"),
    ("t-epilogue", ADD, "    return torch.relu(z)", "    z += 1\n    return torch.relu(z)", "used for more"),
    ("t-epilogue", ADD, "    return torch.relu(z)", "    w = z * 2\n    return torch.relu(z)", "used for more"),
    ("t-epilogue", ADD, "torch.empty_like(x)", "torch.ones_like(x)", "not a fresh, empty tensor"),
    ("t-epilogue", ADD, "mask=at < N)\n\n", "mask=at < N)\n    tl.store(z_ptr + at, x, mask=at < 1)\n\n", "exactly once"),
]  # fmt: skip

PLUS, STORE = "        total += ", "    tl.store(c_ptr + rows * N + cols, total, "
SPLIT = [
    ("range(0, K, BK)", "range(BK, K, BK)", "bounds are not plain"),
    ("total += tl.dot", "total += total * tl.dot", "'total' goes from one round"),
    (PLUS, "        a = a + last\n        last = a\n" + PLUS, "'last' goes from one round"),
    (PLUS, "        if start > 3:\n            b = b * 2\n" + PLUS, "more than assign and add: 'if start > 3:'"),
    (STORE, STORE.replace("total", "tl.maximum(total, 0.0)"), "more than 'total' itself is stored"),
    (STORE, STORE.replace("total", "total.to(tl.float16)"), "more than 'total' itself is stored"),
    (STORE, "    total = total + 1.0\n" + STORE, "added to in more than one place"),
    (STORE, STORE.replace("rows * N", "start"), "used after the loop"),
    (STORE, STORE + "total)\n" + STORE, "stores more than its sum"),
    ("a_ptr + rows * K", "c_ptr + rows * K", "read as well"),
    ("triton.cdiv(N, 16))]", "triton.cdiv(N, 16), 2)]", "not a plain one"),
    ("torch.empty(", "torch.ones(", "not a fresh, empty tensor"),
    ("    return c", "    return c + 1", "not a fresh, empty tensor"),
    ("@triton.jit", "@triton.autotune(configs=[], key=[])\n@triton.jit", "configured elsewhere"),
]  # fmt: skip
REFUSED += [("t-split-k", MATMUL, *row) for row in SPLIT]


@pytest.mark.parametrize(("name", "text", "old", "new", "words"), REFUSED, ids=[f"{r[0]}: {r[4]}" for r in REFUSED])
def test_it_refuses_where_its_conditions_do_not_hold(name: str, text: str, old: str, new: str, words: str) -> None:
    changed = text.replace(old, new)
    assert changed != text
    assert SKILLS[name].sites(changed) == []
    reasons = [r.reason for r in SKILLS[name].refusals(changed)]
    assert any(words in r for r in reasons), reasons


def test_a_file_that_can_not_be_parsed_is_refused_as_a_whole() -> None:
    for skill in SKILLS.values():
        assert "can't be parsed" in skill.refusals("def f(:\n")[0].reason


LINES = {"_softmax[(M,)](x, y, N, BLOCK=64)": "_softmax[(M,)](\n        x, y, N,\n        BLOCK=64,  # knob: 32 64\n    )",
         "BM=16, BN=16, BK=16)": "BM=16, BN=16,\n            BK=16  # knob: 16 32\n        )"}  # fmt: skip


@pytest.mark.parametrize("name", ["t-launch", "t-persistent", "t-split-k"])
@pytest.mark.parametrize("text", [SOFTMAX, MATMUL], ids=["softmax", "matmul"])
def test_a_launch_whose_arguments_have_lines_and_comments_keeps_them(name: str, text: str) -> None:
    """What is added stands neither in a comment nor on the line of a declared parameter."""
    for old, new in LINES.items():
        text = text.replace(old, new)
    before = {k.name: k.choices for k in read(text, "triton").knobs}
    assert len(before) == 1
    for site in SKILLS[name].sites(text):
        ast.parse(site.text)
        after = {k.name: k.choices for k in read(site.text, "triton").knobs}
        assert before.items() <= after.items()
        assert len(after) > len(before)
