import dataclasses
from typing import NamedTuple

import pytest
import torch

from tilewright.errors import TaskError, Unsupported
from tilewright.task import tree as wire
from tilewright.task.tree import equal, flatten_arguments, leaves, rebuild, structure, unflatten_arguments


class Pair(NamedTuple):
    a: int
    b: int


@dataclasses.dataclass
class Config:
    size: int
    inner: tuple[int, int]


TREES = [
    5, None, (1, 2), [1, (2, 3)], {"x": 1, "y": [2, None]}, Pair(1, 2),
    (Pair(1, 2), {"k": Config(3, (4, 5))}), (), {"e": []},
]  # fmt: skip


@pytest.mark.parametrize("tree", TREES)
def test_rebuild_inverts_leaves(tree):
    back = rebuild(leaves(tree), tree)
    assert back == tree
    assert type(back) is type(tree)


def test_names_are_paths():
    assert leaves((1, {"k": [2, 3]})) == {"out.0": 1, "out.1.k.0": 2, "out.1.k.1": 3}
    assert list(leaves(7)) == ["out"]
    assert list(flatten_arguments([1, (2, 3), 4], ["x", "pair"])) == ["x", "pair.0", "pair.1", "arg2"]


def test_structure_is_understood_by_the_wire_tree():
    args, names = [1, (2, {"k": 3})], ["x", "data"]
    found = flatten_arguments(args, names)
    assert wire.unflatten(structure(args, names), found) == args
    assert unflatten_arguments(found, args, names) == args


def test_what_cannot_travel_is_named():
    with pytest.raises(Unsupported, match="input 'data' is a Config"):
        structure([Config(1, (2, 3))], ["data"])


def test_a_missing_leaf_is_named():
    with pytest.raises(TaskError, match=r"no value for 'out\.1'"):
        rebuild({"out.0": 1}, (1, 2))


def test_equal_is_bitwise_but_for_nan():
    nan = torch.tensor([float("nan"), 1.0])
    assert equal((nan, 1), (nan.clone(), 1))
    assert not equal(nan, torch.tensor([0.0, 1.0]))
    assert not equal(torch.ones(2), torch.ones(2) + 1e-7)
    assert equal(torch.ones(2), torch.ones(2) + 1e-7, slack=1e-6)
    assert not equal(torch.ones(2), torch.ones(3))
    assert not equal((torch.ones(2),), torch.ones(2))


def test_the_wire_keeps_what_json_has_and_names_the_rest():
    x = torch.ones(2)
    made, tensors = wire.flatten((x, {"k": [torch.Size([2, 3]), float("inf"), None]}, Config(1, (2, 3)), torch.float16))
    assert made == {"tuple": [
        {"$": "out.0"},
        {"dict": {"k": {"list": [{"tuple": [{"=": 2}, {"=": 3}]}, {"float": "inf"}, {"=": None}]}}},
        {"?": "Config"}, {"dtype": "float16"},
    ]}  # fmt: skip
    assert list(tensors) == ["out.0"]
    with pytest.raises(ValueError, match="a value of type Config can't be passed"):
        wire.unflatten(made, tensors)
