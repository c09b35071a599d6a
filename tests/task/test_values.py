import math

import pytest
import torch

from tilewright.errors import TaskError
from tilewright.task import TensorSpec, Values, integers, normal, uniform
from tilewright.task.values import FAMILIES, draw, generator

DIMS = {"M": 64, "N": 100, "V": 7}


def make(values, shape="M N", dtype="float32", seed=3, dims=DIMS):
    spec = TensorSpec(shape, dtypes=(dtype,), values=values)
    return draw(spec, spec.sizes(dims), dtype, generator(seed), dims)


def test_normal_and_uniform_have_the_stated_moments():
    x = make(normal(3, 2))
    assert abs(x.mean() - 3) < 0.1
    assert abs(x.std() - 2) < 0.1
    u = make(uniform(-1, 3), dtype="float64")
    assert u.min() >= -1
    assert u.max() < 3
    assert abs(u.mean() - 1) < 0.1


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_uniform_stays_below_its_upper_bound_in_every_dtype(dtype):
    x = make(uniform(0, 1), shape="200 1000", dtype=dtype)
    assert (x < 1).all()
    assert (x >= 0).all()


def test_draws_stay_finite_in_narrow_dtypes():
    for dtype in ("float16", "float8_e5m2"):
        assert make(normal(0, 1e6), dtype=dtype).float().isfinite().all()


def test_integers_take_bounds_over_dims():
    x = make(integers(0, "V"), dtype="int64")
    assert set(x.unique().tolist()) == set(range(7))


def test_empty_range_says_so():
    with pytest.raises(TaskError, match=r"integers in \[3, 3\) leave nothing"):
        make(integers(3, 3), dtype="int64")


def test_other_kinds():
    assert make(Values(kind="bool", p=0.25), dtype="bool").float().mean() < 0.4
    assert (make(Values(kind="constant", value=2.5)) == 2.5).all()
    assert torch.equal(make(Values(kind="permutation"), dtype="int64").sort(-1).values[3], torch.arange(100))
    p = make(Values(kind="probabilities"))
    assert torch.allclose(p.sum(-1), torch.ones(64))
    assert torch.allclose(make(Values(kind="log_probabilities")).exp().sum(-1), torch.ones(64))
    offsets = make(Values(kind="sorted", low=0, high="N"), shape="M", dtype="int32")
    assert offsets[0] == 0
    assert offsets[-1] == 100
    assert (offsets.diff() >= 0).all()


def test_custom_is_refused():
    with pytest.raises(TaskError, match="made by the task's own code"):
        make(Values(kind="custom", generator="mine"))


def test_same_seed_same_values_and_other_seed_other_values():
    assert torch.equal(make(normal(), seed=5), make(normal(), seed=5))
    assert not torch.equal(make(normal(), seed=5), make(normal(), seed=6))


@pytest.mark.parametrize("shape", ["0 N", "M 0", "", "1"])
@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_families_take_odd_shapes(name, shape):
    spec = TensorSpec(shape)
    assert FAMILIES[name](spec, spec.sizes(DIMS), "float32", generator(1), DIMS).shape == torch.Size(spec.sizes(DIMS))


@pytest.mark.parametrize("name", sorted(FAMILIES))
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float8_e4m3fn", "int8", "bool", "complex64"])
def test_families_keep_dtype_and_stay_finite(name, dtype):
    spec = TensorSpec("M N", dtypes=(dtype,))
    x = FAMILIES[name](spec, (64, 100), dtype, generator(1), DIMS)
    assert x.dtype == getattr(torch, dtype)
    if x.is_floating_point():
        assert x.float().isfinite().all()


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_families_keep_domains(name):
    def family(values, dtype, **more):
        spec = TensorSpec("M N", dtypes=(dtype,), values=values)
        return FAMILIES[name](spec, (64, 100), dtype, generator(2), DIMS, **more)

    index = family(integers(0, "V"), "int64")
    assert index.min() >= 0
    assert index.max() < 7
    p = family(Values(kind="probabilities"), "float64")
    assert torch.allclose(p.sum(-1), torch.ones(64, dtype=torch.float64))
    assert (p >= 0).all()
    offsets = family(Values(kind="sorted", low=0, high="N"), "int64")
    assert (offsets.diff() >= 0).all()
    inside = family(uniform(0.5, 2), "float32")
    assert inside.min() >= 0.5
    assert inside.max() < 2


def test_families_are_what_their_names_say():
    def family(name, values=None):
        spec = TensorSpec("M N", values=values or normal())
        return FAMILIES[name](spec, (64, 100), "float32", generator(2), DIMS, bounded=False)

    assert (family("all_negative", uniform(0, 1)) < 0).all(), "bounds of an inferred contract are no domain"
    assert family("large").abs().mean() > 300
    assert family("tiny").abs().max() < 1e-2
    assert (family("constant_rows") == family("constant_rows")[:, :1]).all()
    assert (family("one_hot").sum(-1) == 1).all()
    assert family("all_equal").unique().numel() == 1
    assert set(family("small_integers").unique().tolist()) == {-2, -1, 0, 1, 2}
    assert abs(family("shifted_100").mean() - 100) < 1
    wide = family("wide_range").abs()
    assert math.log10(wide.max() / wide.min()) > 6
