"""Launches that do nothing, fail, or give something else on purpose."""

from __future__ import annotations

import types
from collections.abc import Iterator

import pytest
import torch

from tilewright.kernel.languages import _cuda_extension
from tilewright.prove.device.experiments import Experiments, LaunchFailed


@pytest.fixture
def module() -> Iterator[tuple[Experiments, _cuda_extension.Watched]]:
    """A module as an extension is, whose functions are watched."""
    inner = types.ModuleType("inner")
    inner.double = lambda x: x * 2  # type: ignore[attr-defined]
    inner.double_ = lambda x: x.mul_(2)  # type: ignore[attr-defined]
    inner.VERSION = 3  # type: ignore[attr-defined]
    experiments = Experiments()
    _cuda_extension.AROUND = experiments.around
    yield experiments, _cuda_extension.Watched("inner", inner)
    _cuda_extension.AROUND = None


def test_calls_are_counted_and_left_as_they_are(module: tuple[Experiments, _cuda_extension.Watched]) -> None:
    experiments, watched = module
    experiments.begin(watched=True)
    x = torch.ones(4)
    assert watched.double(x).tolist() == [2.0] * 4
    assert watched.double_(x).tolist() == [2.0] * 4
    assert experiments.seen == [{"function": "double", "wrote": {"0": 0}}, {"function": "double_", "wrote": {"0": 4}}]
    assert watched.VERSION == 3


def test_a_launch_that_is_refused_raises(module: tuple[Experiments, _cuda_extension.Watched]) -> None:
    experiments, watched = module
    experiments.begin("fail")
    with pytest.raises(LaunchFailed, match="too many resources"):
        watched.double(torch.ones(4))
    assert experiments.seen[0]["error"]["kind"] == "launch"


@pytest.mark.parametrize("mode", ["perturb", "scramble"])
def test_what_a_launch_wrote_is_scaled(module: tuple[Experiments, _cuda_extension.Watched], mode: str) -> None:
    experiments, watched = module
    experiments.begin(mode, salt=5)
    x = torch.ones(64)
    assert not torch.equal(watched.double(x), torch.full((64,), 2.0))
    assert torch.equal(x, torch.ones(64))
    assert not torch.equal(watched.double_(x), torch.full((64,), 2.0))


def test_only_the_named_launch_is_changed(module: tuple[Experiments, _cuda_extension.Watched]) -> None:
    experiments, watched = module
    experiments.begin("perturb", only=1, salt=5)
    x = torch.ones(8)
    first, second = watched.double(x), watched.double(x)
    assert first.tolist() == [2.0] * 8
    assert second.tolist() != [2.0] * 8


def test_a_launch_that_does_nothing_leaves_its_arguments(module: tuple[Experiments, _cuda_extension.Watched]) -> None:
    experiments, watched = module
    experiments.begin("noop")
    x = torch.ones(8)
    watched.double_(x)
    assert x.tolist() == [1.0] * 8
    assert watched.double(x).tolist() != [2.0] * 8
    assert experiments.around("k", lambda: 1, (), lambda: "skipped") == "skipped"
