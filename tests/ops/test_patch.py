"""patch: what it finds in models, what it leaves, and that training goes on as before."""

from __future__ import annotations

import copy
import importlib
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tilewright import ops
from tilewright.errors import UserError
from tilewright.ops.patching.pending import Pending

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks" / "h200" / "patch"))
import plain

SMALL = {"vocab_size": 61, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 32, "head_dim": 8, "pad_token_id": 0}  # fmt: skip
STEPS, BOUND = 12, 2e-5
"""Losses of twelve AdamW steps in float32, patched and unpatched, lie this near to each other, relative to the loss. Seen:
below 1e-6."""
FAMILIES = {
    "llama": "Llama",
    "qwen2": "Qwen2",
    "qwen3": "Qwen3",
    "mistral": "Mistral",
    "gemma": "Gemma",
    "gemma2": "Gemma2",
}


def family(name: str, **more: Any) -> nn.Module:
    pytest.importorskip("transformers")
    kind = FAMILIES[name]
    config = getattr(importlib.import_module(f"transformers.models.{name}.configuration_{name}"), f"{kind}Config")
    model = getattr(importlib.import_module(f"transformers.models.{name}.modeling_{name}"), f"{kind}ForCausalLM")
    torch.manual_seed(3)
    made: nn.Module = model(config(**SMALL, **more)).train()
    return made


def decoder() -> nn.Module:
    torch.manual_seed(3)
    return plain.Decoder(plain.TINY).train()


def batch(count: int = 61, seed: int = 0) -> torch.Tensor:
    return torch.randint(count, (2, 9), generator=torch.Generator().manual_seed(seed))


def loss_of(model: nn.Module, tokens: torch.Tensor, **more: Any) -> torch.Tensor:
    out = model(input_ids=tokens, labels=tokens, **more)
    return out[0] if isinstance(out, tuple) else out.loss


def losses(model: nn.Module, steps: int = STEPS) -> list[float]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    found = []
    for i in range(steps):
        loss = loss_of(model, batch(seed=i % 3))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def kinds(report: ops.patching.Patch) -> set[str]:
    return {r.by.partition("(")[0] for r in report.replaced}


@pytest.mark.parametrize("name", FAMILIES)
def test_training_converges_as_before(name: str) -> None:
    model = family(name)
    twin = copy.deepcopy(model)
    report = ops.patch(twin)
    gate = "geglu, tanh" if name.startswith("gemma") else "swiglu"
    assert kinds(report) == {"rms_norm", gate, "rope", "linear_cross_entropy"}
    assert report.left == []
    before, after = losses(model), losses(twin)
    assert before[-1] < 0.9 * before[0], "nothing was learned, so nothing was compared"
    assert max(abs(a - b) / b for a, b in zip(after, before, strict=True)) < BOUND


def test_each_module_is_there() -> None:
    report = ops.patch(family("gemma"))
    assert len(report.replaced) == 2 + 2 + 5 + 1
    text = repr(report)
    for words in ("10 replaced, 0 left", "2 x model.layers.*.self_attn: GemmaAttention -> rope",
                  "rms_norm(eps=1e-06, offset=1)", "lm_head: Linear -> linear_cross_entropy"):  # fmt: skip
        assert words in text


def test_plain_pytorch_by_structure() -> None:
    model = decoder()
    twin = copy.deepcopy(model)
    report = ops.patch(twin)
    assert kinds(report) == {"rms_norm", "swiglu", "rope", "linear_cross_entropy"}
    assert len(report.replaced) == 10
    tokens = batch(97)
    a, b = (loss_of(m, tokens) for m in (model, twin))
    torch.testing.assert_close(b, a)
    wanted = torch.autograd.grad(a, list(model.parameters()))
    torch.testing.assert_close(torch.autograd.grad(b, list(twin.parameters())), wanted, rtol=1e-4, atol=1e-6)


def test_logits_are_not_formed_until_someone_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    model = decoder()
    plainly = model(batch(97))
    ops.patch(model)
    calls: list[int] = []
    old = ops.patching.pending.linear_cross_entropy
    monkeypatch.setattr(ops.patching.pending, "linear_cross_entropy", lambda *a, **k: calls.append(1) or old(*a, **k))
    _loss, logits = model(batch(97), batch(97))
    assert calls == [1]
    assert isinstance(logits, Pending)
    assert logits._formed == []
    torch.testing.assert_close(logits + 0.0, plainly)
    torch.testing.assert_close(torch.softmax(logits, -1), plainly.softmax(-1))
    assert logits.argmax(-1).shape == (2, 9)


def test_without_a_loss_or_training_logits_are_tensors() -> None:
    model = decoder()
    ops.patch(model)
    assert type(model(batch(97))) is torch.Tensor
    assert type(model.eval()(batch(97), batch(97))[1]) is torch.Tensor
    with torch.no_grad():
        assert type(model.train()(batch(97), batch(97))[1]) is torch.Tensor


def test_undo_and_with() -> None:
    model = decoder()
    before = {n: dict(m.__dict__) for n, m in model.named_modules()}
    with ops.patch(model) as report:
        assert any("forward" in m.__dict__ for m in model.modules())
    assert not any("forward" in m.__dict__ for m in model.modules())
    assert {n: m.training for n, m in model.named_modules()} == {n: d["training"] for n, d in before.items()}
    assert "undone" in repr(report)
    report.undo()


def test_probes_leave_random_state_gradients_and_mode_alone() -> None:
    model = decoder()
    model.layers[0].eval()
    torch.manual_seed(1)
    state = torch.get_rng_state()
    ops.patch(model)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(p.grad is None and p.requires_grad for p in model.parameters())
    assert not model.layers[0].training
    assert model.layers[1].training


def test_a_copy_has_its_own_layers() -> None:
    model = decoder()
    ops.patch(model)
    twin = copy.deepcopy(model)
    for p in twin.parameters():
        p.data.zero_()
    torch.testing.assert_close(loss_of(twin, batch(97)), torch.tensor(97.0).log())


def test_token_counts_and_softcap_of_transformers() -> None:
    model = family("gemma2", final_logit_softcapping=3.0)
    twin = copy.deepcopy(model)
    ops.patch(twin)
    tokens = batch()
    for more in ({}, {"num_items_in_batch": torch.tensor(5)}):
        a, b = (loss_of(m, tokens, **more) for m in (model, twin))
        torch.testing.assert_close(b, a)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision(dtype: torch.dtype) -> None:
    model = decoder().to(dtype)
    twin = copy.deepcopy(model)
    report = ops.patch(twin)
    assert len(report.replaced) == 10, report
    a, b = (loss_of(m, batch(97)) for m in (model, twin))
    torch.testing.assert_close(b, a, rtol=0.01, atol=0.0)


def test_autocast() -> None:
    model = decoder()
    twin = copy.deepcopy(model)
    ops.patch(twin)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        a, b = (loss_of(m, batch(97)) for m in (model, twin))
    torch.testing.assert_close(b, a, rtol=0.01, atol=0.0)
    b.backward()
    assert twin.head.weight.grad.dtype == torch.float32


# --- what is left alone --------------------------------------------------------------------------------------------


class Centred(plain.Norm):
    """Looks as an RMS norm does, and is none."""

    def forward(self, x: Any) -> Any:
        return super().forward(x - x.mean(-1, keepdim=True))


class Almost(plain.Norm):
    """An eps that is not the constant that it keeps."""

    def forward(self, x: Any) -> Any:
        return self.gain * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 3 * self.eps)


class Relu(plain.Gated):
    def forward(self, x: Any) -> Any:
        return self.c(F.relu(self.a(x)) * self.b(x))


class Dropping(plain.Gated):
    def forward(self, x: Any) -> Any:
        return self.c(F.dropout(F.silu(self.a(x)) * self.b(x), 0.5, self.training))


@pytest.mark.parametrize("kind", [Centred, Almost])
def test_what_is_no_rms_norm_is_left(kind: type) -> None:
    model = decoder()
    model.last = kind(32)
    report = ops.patch(model)
    (left,) = report.left
    assert left.path == "last"
    assert "no RMS norm" in left.why
    assert "1e-05" in left.why
    assert "forward" not in model.last.__dict__


@pytest.mark.parametrize("kind", [Relu, Dropping])
def test_what_is_no_gated_unit_is_left(kind: type) -> None:
    model = decoder()
    model.layers[1].gated = kind(plain.TINY)
    (left,) = ops.patch(model).left
    assert left.path == "layers.1.gated"
    assert "swiglu" in left.why
    assert "left 1 x layers.*.gated" in repr(ops.patch(decoder_with(kind)))


def decoder_with(kind: type) -> nn.Module:
    model = decoder()
    model.layers[1].gated = kind(plain.TINY)
    return model


def test_tables_whose_copies_differ_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    model = decoder()
    real = torch.cat
    monkeypatch.setattr(
        torch, "cat", lambda t, d=0: real((t[0], t[1] * 0.5) if t[0] is t[1] and t[0].dim() == 2 else t, d)
    )
    report = ops.patch(model, only=("rope",))
    assert report.replaced == []
    assert all("copies of an angle" in f.why for f in report.left)


def test_a_wrong_kernel_is_caught_when_patching(monkeypatch: pytest.MonkeyPatch) -> None:
    old = ops.patching.norms.rms_norm
    monkeypatch.setattr(ops.patching.norms, "rms_norm", lambda x, w, **k: old(x, w, **k) * (1 + 1e-4))
    report = ops.patch(decoder(), only=("rms_norm",))
    assert report.replaced == []
    assert len(report.left) == 5


def test_a_wrong_loss_is_caught_when_patching(monkeypatch: pytest.MonkeyPatch) -> None:
    old = ops.patching.pending.linear_cross_entropy
    monkeypatch.setattr(ops.patching.pending, "linear_cross_entropy", lambda *a, **k: old(*a, **k) * (1 + 1e-4))
    model = decoder()
    (left,) = ops.patch(model, only=("loss",)).left
    assert "differs from the old forward by 1.0e-04" in left.why
    assert "forward" not in model.head.__dict__
    assert "forward" not in model.__dict__


def test_loss_that_is_no_cross_entropy_is_left() -> None:
    class Squared(plain.Decoder):
        def forward(self, input_ids: Any, labels: Any = None) -> Any:
            return super().forward(input_ids).square().mean()

    (left,) = ops.patch(Squared(plain.TINY), only=("loss",)).left
    assert "no cross entropy" in left.why


def test_hooks_and_foreign_forwards_are_left() -> None:
    model = decoder()
    model.head.register_forward_hook(lambda m, i, o: None)
    model.last.forward = model.last.forward
    report = ops.patch(model)
    assert {f.path: f.why for f in report.left} == {
        "last": "its forward was replaced before", "head": "it has forward hooks, which would get no logits",
    }  # fmt: skip


def test_patching_twice_says_so() -> None:
    model = decoder()
    ops.patch(model)
    again = ops.patch(model)
    assert again.replaced == []
    assert {f.why for f in again.left} >= {"its forward was replaced before"}


def test_no_example_is_named_and_can_be_given() -> None:
    class Other(plain.Decoder):
        def forward(self, tokens: Any, wanted: Any) -> Any:
            return super().forward(tokens, wanted)

    report = ops.patch(Other(plain.TINY), only=("loss", "rope"))
    assert {f.why for f in report.left} == {"no example call is known (give patch(model, example={...}))"}
    given = {"tokens": batch(97), "wanted": batch(97)}
    assert len(ops.patch(Other(plain.TINY), only=("loss", "rope"), example=given).replaced) == 3


def test_the_example_of_the_docs_runs_and_prints_what_stands_there(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers")
    text = (Path(__file__).resolve().parents[2] / "docs" / "patch.md").read_text()
    (code,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    (printed,) = re.findall(r"^```text\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    exec(compile(code, "docs/patch.md", "exec"), {})
    numbers = r"\d\.\de[+-]\d\d(?=\))"
    assert re.sub(numbers, "", capsys.readouterr().out) == re.sub(numbers, "", printed)


def test_refusals() -> None:
    with pytest.raises(UserError, match=r"meta device(.|\n)*load the weights first"):
        ops.patch(nn.Linear(2, 2, device="meta"))
    with pytest.raises(UserError, match=r"names norms, which is not one of rms_norm"):
        ops.patch(decoder(), only=("norms",))


def test_compiled_whole() -> None:
    """``fullgraph``: the operators are in the graph, the fused loss and the rotary embedding too."""
    model = decoder()
    ops.patch(model)
    graphs: list[Any] = []

    def backend(graph: Any, example: Any) -> Any:
        graphs.append(graph)
        return graph

    loss, _ = torch.compile(model, fullgraph=True, backend=backend)(batch(97), batch(97))
    torch.testing.assert_close(loss, model(batch(97), batch(97))[0])
    targets = {str(n.target) for n in graphs[0].graph.nodes}
    for name in ("rms_norm", "swiglu", "rope", "linear_cross_entropy"):
        assert f"tilewright.{name}.default" in targets, targets
