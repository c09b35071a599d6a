"""The builder: what it refuses in an op.py, tuned configurations, in-place operators; hazards that see planted faults."""

import json
from pathlib import Path

import pytest
import torch

from tilewright.errors import InternalError, UserError
from tilewright.ops import _hazards
from tilewright.ops._builder import ArgumentError, Built, Call, Like, Operator, tuned

HAZARDS = _hazards.load("cpu")


def operator(name, **change):
    parts = {
        "name": name, "summary": "", "schema": "(Tensor x, float s) -> Tensor", "reference": lambda x, s: x * s,
        "results": lambda x, s: [Like(tuple(x.shape), x.dtype)], "forward": lambda x, s: (x * s,), "function": name,
        "folder": Path("here"), "differentiable": ("x",), "saves": ("x",),
        "backward": lambda grads, saved, options, needs: {"x": grads[0] * options["s"]},
        "calls": (Call("rows", lambda dtype, device: {"x": torch.randn(3, 4).to(dtype), "s": 2.0}),),
    }  # fmt: skip
    return Operator(**parts | change)


@pytest.mark.parametrize(("change", "words"), [
    ({"saves": ("z",)}, ["saves names 'z'", "['x', 'y']"]),
    ({"differentiable": ("s",)}, ["differentiable names 's'"]),
    ({"saves": ("y",)}, ["neither saves nor gradient_like has 'x'"]),
    ({"mutates": ("x",)}, ["writes in place"]),
])  # fmt: skip
def test_an_operator_whose_parts_do_not_fit_is_refused(change, words):
    with pytest.raises(UserError) as e:
        Built(operator("misfit", **change))
    for word in ["misfit", "op.py", "Try: ", *words]:
        assert word in str(e.value)


def test_a_backward_that_forgets_a_gradient_is_told():
    built = Built(operator("forgets", backward=lambda *_: {}))
    built.route = lambda arguments: "kernel"
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(InternalError, match="no gradient of x"):
        built(x, 2.0).sum().backward()


def in_place(name):
    return Built(operator(
        name, schema="(Tensor(a!) x, float s) -> ()", results=lambda *_: [], mutates=("x",), public=0, result_names=(),
        backward=None, differentiable=(), saves=(),
    ))  # fmt: skip


def test_an_operator_in_place_writes_and_tells_autograd():
    built = in_place("doubles_it")
    x = torch.ones(3)
    before = x._version
    assert built(x, 2.0) is x
    assert torch.equal(x, torch.full((3,), 2.0))
    assert x._version > before
    for wrong, words in (
        (torch.ones(3, requires_grad=True), "requires a gradient"),
        (torch.ones(1).expand(3), "expanded"),
    ):
        with pytest.raises(ArgumentError, match=words):
            built(wrong, 2.0)


FAULTS = {
    "strided_inputs": {"reference": lambda x, s: x.as_strided(x.shape, (x.shape[-1], 1)) * s},
    "inputs_unchanged": {"reference": lambda x, s: x.mul_(s) * 1},
    "special_values": {"reference": lambda x, s: x.nan_to_num() * s},
    "foreign_dtype": {},
    "fake_strides": {"results": lambda x, s: [Like((*x.shape, 1), x.dtype)]},
    "opcheck": {"results": lambda x, s: [Like((*x.shape, 1), x.dtype)]},
    "autocast": {"reference": lambda x, s: x.mm(torch.eye(4)) * s},
}  # fmt: skip


@pytest.mark.parametrize("hazard", FAULTS)
def test_a_hazard_sees_a_planted_fault(hazard, monkeypatch):
    built = Built(operator(f"faulty_{hazard}", **FAULTS[hazard]))
    case = _hazards.Case(built, built.op.calls[0])
    monkeypatch.setattr(type(case), "function", property(lambda c: lambda x, s: c.built(x, s)))
    monkeypatch.setattr(type(case), "reference", lambda c, x, s: (x * s,))
    assert _hazards.tried(case, HAZARDS[hazard])[0] == "fail"


def test_hazards_pass_where_nothing_is_wrong(monkeypatch):
    built = Built(operator("sound", check=_floats))
    case = _hazards.Case(built, built.op.calls[0])
    monkeypatch.setattr(type(case), "function", property(lambda c: lambda x, s: c.built(x, s)))
    for name, hazard in HAZARDS.items():
        verdict, why = _hazards.tried(case, hazard)
        assert verdict != "fail", f"{name}: {why}"


def _floats(x, s):
    from tilewright.ops._builder import arguments

    arguments.floating("sound", "x", x, ("float32", "float16", "bfloat16", "float64"))


def tuning(folder, **change):
    (folder / "kernel.py").write_text("# text\n")
    import hashlib

    data = {
        "card": "NVIDIA H200", "kernel_sha256": hashlib.sha256(b"# text\n").hexdigest(),
        "entries": [{"launcher": "forward", "domain": {"N": [100, 200], "dtype": ["bfloat16"]}, "config": {"num_warps": 2}}],
    } | change  # fmt: skip
    (folder / "tuned").mkdir(exist_ok=True)
    (folder / "tuned" / tuned.file_name("NVIDIA H200")).write_text(json.dumps(data))


def looked_up(folder, card="NVIDIA H200", **facts):
    return tuned.lookup(folder, "forward", card, tuple(sorted(facts.items())))


def test_a_tuned_configuration_is_used_where_it_was_proved_and_nowhere_else(tmp_path):
    tuning(tmp_path)
    assert looked_up(tmp_path, N=150, dtype="bfloat16") == {"num_warps": 2}
    assert looked_up(tmp_path, N=250, dtype="bfloat16") is None
    assert looked_up(tmp_path, N=150, dtype="float16") is None
    assert looked_up(tmp_path, N=150, dtype="bfloat16", causal=1) is None
    assert looked_up(tmp_path, "NVIDIA H100", N=150, dtype="bfloat16") is None
    assert tuned.find(tmp_path, "forward", torch.device("cpu"), N=150, dtype="bfloat16") is None


def test_a_tuned_configuration_of_another_text_of_the_kernel_is_void(tmp_path):
    tuning(tmp_path, kernel_sha256="0" * 64)
    assert looked_up(tmp_path, N=150, dtype="bfloat16") is None


def test_a_broken_file_of_tuned_configurations_says_so(tmp_path):
    tuning(tmp_path, card="NVIDIA H100")
    with pytest.raises(tuned.BadTuning, match="it says it is for 'NVIDIA H100'"):
        looked_up(tmp_path, N=150, dtype="bfloat16")
