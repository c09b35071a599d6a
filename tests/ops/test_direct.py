"""The short way of a plain call: the same values, gradients and refusals as through the registered operator, and taken only
where nothing watches."""

import pytest
import torch
from test_builder import operator

from tilewright.ops._builder import Built, Like, direct


def built(name, **change):
    """An operator on the kernel's route whatever the device, that notes each launch; two public results and a kept one."""
    launches = []

    def forward(x, w, s):
        launches.append("forward")
        return x * w * s, x + s, x * s

    def backward(grads, saved, options, needs):
        launches.append("backward")
        dy, dz = grads
        of_x = torch.zeros_like(saved["kept"])
        if dy is not None:
            of_x += dy * saved["w"] * options["s"]
        if dz is not None:
            of_x += dz
        found = {"x": of_x, "w": (dy * saved["kept"]).contiguous() if dy is not None else torch.zeros_like(of_x)}
        return {n: found[n] for n in needs}

    like = lambda x, *_: Like(tuple(x.shape), x.dtype)  # noqa: E731
    parts = {
        "schema": "(Tensor x, Tensor w, float s) -> (Tensor, Tensor, Tensor)", "forward": forward, "backward": backward,
        "reference": lambda x, w, s: (x * w * s, x + s), "results": lambda *given: [like(*given)] * 3, "public": 2,
        "result_names": ("y", "z", "kept"), "differentiable": ("x", "w"), "saves": ("kept", "w"),
        "gradient_like": {"x": "kept"},
    }  # fmt: skip
    made = Built(operator(name, **parts | change))
    made.route = lambda arguments: "kernel"
    return made, launches


MADE, LAUNCHES = built("direct_toy")


def through(path, monkeypatch):
    monkeypatch.setattr(direct, "watched", lambda arguments: path == "registered")


@pytest.mark.parametrize("needs", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("used", ["y", "z", "both"])
def test_the_same_values_and_gradients(needs, used, monkeypatch):
    torch.manual_seed(1)
    x, w = torch.randn(3, 4), torch.randn(3, 4)
    found = []
    for path in ("direct", "registered"):
        through(path, monkeypatch)
        given = [t.clone().requires_grad_(n) for t, n in zip((x, w), needs, strict=True)]
        y, z = MADE(*given, 2.0)
        total = {"y": (y * y).sum(), "z": (z * z).sum(), "both": (y * y).sum() + z.sum()}[used]
        if total.requires_grad:
            total.backward()
        found.append((y.detach(), z.detach(), y.requires_grad, z.requires_grad, *(t.grad for t in given)))
    for a, b in zip(*found, strict=True):
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
            assert torch.equal(a, b)
        else:
            # The registered operator gives zeros where no gradient flows, or nothing: either stands for none.
            assert a == b or not any(t.any() for t in (a, b) if isinstance(t, torch.Tensor))


def test_a_plain_call_goes_the_short_way(monkeypatch):
    monkeypatch.setattr(MADE, "call", lambda *_: pytest.fail("went through the registered operator"))
    x = torch.ones(2, requires_grad=True)
    assert MADE(x, x, 1.0)[0].grad_fn.name().startswith("tilewright_direct_toy")
    with torch.no_grad():
        assert MADE(x, x, 1.0)[0].grad_fn is None


def test_gradients_of_gradients_are_refused_in_the_same_words():
    x, w = torch.ones(2, requires_grad=True), torch.ones(2)
    first = torch.autograd.grad(MADE(x, w, 1.0)[0].square().sum(), x, create_graph=True)[0]
    with pytest.raises(NotImplementedError, match="direct_toy: gradients of gradients are not supported"):
        first.sum().backward()


class Marked(torch.Tensor):
    pass


def modes():
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    class Function(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    return {"dispatch": Dispatch, "function": Function, "forward derivative": torch.autograd.forward_ad.dual_level}


@pytest.mark.parametrize("name", ["dispatch", "function", "forward derivative"])
def test_what_watches_sees_the_operator(name):
    x = torch.ones(2)
    assert not direct.watched((x, None, 1.0))
    with modes()[name]():
        assert direct.watched((x, None, 1.0))
    assert not direct.watched((x, None, 1.0))


def test_subclasses_and_transforms_are_watched():
    assert direct.watched((torch.ones(2).as_subclass(Marked),))
    assert not direct.watched((torch.nn.Parameter(torch.ones(2)),))
    seen = []
    torch.func.vmap(lambda t: (seen.append(direct.watched((t,))), t)[1])(torch.ones(3, 2))
    torch.jit.trace(lambda t: (seen.append(direct.watched((t,))), t + 1)[1], torch.ones(2), check_trace=False)
    assert seen
    assert all(seen)


def test_a_compiled_call_holds_the_operator():
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph.print_readable(print_output=False))
        return graph.forward

    torch.compile(lambda x, w: MADE(x, w, 2.0), backend=backend, fullgraph=True)(torch.ones(2), torch.ones(2))
    assert "tilewright.direct_toy" in graphs[0]
