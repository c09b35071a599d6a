"""KernelBench-like files: dims, values, workloads, and the calls."""

import pytest
import torch

from tilewright.errors import TaskError
from tilewright.task import Workload
from tilewright.task import tree as wire
from tilewright.task.readers import read

LINEAR = """
class Model(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.lin = nn.Linear(in_features, out_features)

    def forward(self, x):
        return torch.relu(self.lin(x))

batch_size = 4096
in_features = 8192
out_features = 16384

def get_inputs():
    return [torch.rand(batch_size, in_features)]

def get_init_inputs():
    return [in_features, out_features]
"""


def module(text, names="x", inputs="torch.rand(16, 512)", forward="x", init="", body="", constants=""):
    return f"""
class Model(nn.Module):
    def __init__(self{", " + init if init else ""}):
        super().__init__()
        {body or "pass"}

    def forward(self, {names}):
        return {forward}

{constants}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return [{init}]
{text}
"""


def test_gigabytes_are_understood_without_allocating_and_reported(write):
    sheet = read(write("p.py", LINEAR)).sheet
    assert sheet.source == "kernelbench"
    assert sheet.given == {"batch_size": 4096, "in_features": 8192, "out_features": 16384}
    assert set(sheet.dims) == set(sheet.given)
    assert sheet.inputs["x"].shape == ("batch_size", "in_features")
    assert sheet.inputs["x"].values.kind == "uniform"
    assert sheet.outputs["out"].shape == ("batch_size", "out_features")
    assert sheet.module_state
    assert sheet.contract.inferred
    note = next(n for n in sheet.notes if "not run here" in n)
    assert "batch_size=4096" in note
    assert "MB" in note
    for w in sheet.workloads:
        assert w.dims["batch_size"] * w.dims["in_features"] * 4 < 8 << 20


def test_inputs_state_and_reference_follow_the_workload(write):
    source = read(write("p.py", LINEAR))
    w = Workload(dims={"batch_size": 3, "in_features": 5, "out_features": 7})
    inputs, state = source.inputs(w, 1), source.state(w, 1)
    assert inputs["x"].shape == (3, 5)
    assert {k: tuple(v.shape) for k, v in state.items()} == {"lin.weight": (7, 5), "lin.bias": (7,)}
    out = source.reference(inputs, w, state, dtype=None)
    assert torch.equal(out, torch.relu(inputs["x"] @ state["lin.weight"].T + state["lin.bias"]))
    exact = source.reference(
        {"x": inputs["x"].double()}, w, {k: v.double() for k, v in state.items()}, dtype=torch.float64
    )
    assert exact.dtype == torch.float64
    assert torch.allclose(exact.float(), out, atol=1e-6)
    assert torch.equal(source.inputs(w, 1)["x"], inputs["x"])
    assert not torch.equal(source.inputs(w, 2)["x"], inputs["x"])


def test_gradients_reach_parameters_given_as_inputs(write):
    source = read(write("p.py", LINEAR))
    w = Workload(dims={"batch_size": 3, "in_features": 5, "out_features": 7})
    inputs, state = source.inputs(w, 1), source.state(w, 1)
    weight = state["lin.weight"].clone().requires_grad_(True)
    source.reference({**inputs, "state.lin.weight": weight}, w, state, dtype=None).sum().backward()
    assert weight.grad is not None
    assert weight.grad.abs().sum() > 0


def test_literals_that_must_agree_are_one_symbol(write):
    text = module("", names="x, y", inputs="torch.rand(16, 512), torch.rand(16, 512)", forward="x + y")
    sheet = read(write("p.py", text)).sheet
    assert sheet.inputs["x"].shape == sheet.inputs["y"].shape == ("x_0", "x_1")
    assert sheet.given == {"x_0": 16, "x_1": 512}
    assert sheet.extra["bindings"]["x_0"] != sheet.extra["bindings"]["x_1"]
    assert all(len(k) == 2 for k in sheet.extra["bindings"].values())


def test_matmul_dims_stay_apart_even_when_equal(write):
    text = module("", names="a, b", inputs="torch.rand(64, 64), torch.rand(64, 64)", forward="a @ b")
    sheet = read(write("p.py", text)).sheet
    assert len(sheet.dims) == 3
    (m, k), (k2, n) = sheet.inputs["a"].shape, sheet.inputs["b"].shape
    assert k == k2
    assert len({m, k, n}) == 3


def test_parameters_of_the_constructor_are_no_dims(write):
    text = module(
        "", init="cin, cout, k, stride", body="self.conv = nn.Conv2d(cin, cout, k, stride=stride)",
        inputs="torch.rand(B, cin, 32, 24)", forward="self.conv(x)",
        constants="B, cin, cout, k, stride = 4, 3, 8, 3, 2",
    )  # fmt: skip
    sheet = read(write("p.py", text)).sheet
    assert set(sheet.dims) == {"B", "cin", "cout", "x_2", "x_3"}
    assert sheet.dims["x_2"].low == 3, "smaller than the kernel is refused"
    assert sheet.outputs is None or sheet.outputs["out"].shape[1] == "cout"


def test_a_group_count_shows_as_a_multiple(write):
    text = module(
        "", init="groups, channels", body="self.gn = nn.GroupNorm(groups, channels)", forward="self.gn(x)",
        inputs="torch.rand(4, channels, 32)", constants="groups = 8\nchannels = 64",
    )  # fmt: skip
    dim = read(write("p.py", text)).sheet.dims["channels"]
    assert dim.multiple_of == 8
    assert dim.low == 8


def test_dims_that_the_reference_ties_do_not_vary_alone(write):
    text = module("", inputs="torch.rand(8, T)", forward="x.view(8, H, T // H) if T == 6 * 32 else x.nothing",
                  constants="T = 192\nH = 6")  # fmt: skip
    sheet = read(write("p.py", text)).sheet
    assert "T" not in sheet.dims


@pytest.mark.parametrize(
    ("made", "kind", "fields"),
    [
        ("torch.rand(4, 8)", "uniform", {"low": 0, "high": 1}),
        ("torch.rand(4, 8) * 2 - 1", "uniform", {"low": -1, "high": 1}),
        ("1 - torch.rand(4, 8)", "uniform", {"low": 0, "high": 1}),
        ("torch.randn(4, 8) * 3 + 1", "normal", {"mean": 1, "std": 3}),
        ("torch.randn(4, 8).softmax(-1)", "probabilities", {}),
        ("F.log_softmax(torch.randn(4, 8), dim=-1)", "log_probabilities", {}),
        ("torch.ones(4, 8)", "constant", {"value": 1}),
        ("torch.full((4, 8), 2.5)", "constant", {"value": 2.5}),
        ("torch.empty(4, 8).uniform_(2, 3)", "uniform", {"low": 2, "high": 3}),
        ("torch.empty(4, 8).normal_(0, 2)", "normal", {"std": 2}),
        ("torch.randint(0, 9, (4, 8))", "integers", {"low": 0, "high": 9}),
        ("torch.randint(9, (4, 8)).int()", "integers", {"low": 0, "high": 9}),
        ("torch.randint(0, 2, (4, 8)).bool()", "bool", {"p": 0.5}),
        ("torch.rand(4, 8) > 0.25", "bool", {"p": 0.75}),
        ("torch.rand(4, 8).to(torch.float16).reshape(8, 4)", "uniform", {}),
        ("torch.randperm(32)", "permutation", {}),
        ("torch.arange(32.0)", "custom", {}),
        ("torch.rand(4, 8).tril()", "custom", {}),
        ("torch.rand(4, 8).long()", "custom", {}),
        ("filled()", "custom", {}),
        ("torch.rand(4, 8).T", "custom", {}),
    ],
)
def test_values_are_followed(write, made, kind, fields):
    extra = "def filled():\n    x = torch.zeros(4, 8)\n    x[0] = 1\n    return x\n"
    values = read(write("p.py", module(extra, inputs=made, forward="x * 1"))).sheet.inputs["x"].values
    assert values.kind == kind
    for name, value in fields.items():
        assert getattr(values, name) == pytest.approx(value)


def test_index_bound_follows_its_dim(write):
    text = module(
        "", init="vocab, width", body="self.emb = nn.Embedding(vocab, width)", forward="self.emb(x)",
        inputs="torch.randint(0, vocab, (4, 16))", constants="vocab = 1000\nwidth = 32",
    )  # fmt: skip
    source = read(write("p.py", text))
    values = source.sheet.inputs["x"].values
    assert values.high == "vocab"
    assert source.sheet.inputs["x"].dtypes == ("int64",)
    small = source.inputs(Workload(dims={**source.sheet.given, "vocab": 3}), 0)["x"]
    assert small.max() < 3


def test_a_literal_bound_and_the_size_it_indexes_move_together(write):
    text = module("", names="p, t", inputs="torch.randn(64, 10), torch.randint(0, 10, (64,))",
                  forward="F.cross_entropy(p, t)")  # fmt: skip
    sheet = read(write("p.py", text)).sheet
    assert sheet.inputs["t"].values.high == sheet.inputs["p"].shape[1]


def test_calling_is_data_that_builds_the_kernel_elsewhere(write):
    text = module(
        "", names="x, pair, scale", init="n", body="self.w = nn.Parameter(torch.randn(n))",
        inputs="torch.rand(4, n), (torch.rand(n), torch.rand(n)), 2.0",
        forward="x * self.w + pair[0] - pair[1] * scale",
        constants="n = 8",
    )  # fmt: skip
    source = read(write("p.py", text))
    assert list(source.sheet.inputs) == ["x", "pair.0", "pair.1", "scale"]
    w = Workload(dims={**source.sheet.given, "n": 5})
    how, tensors = source.calling(w, 1)
    assert how.style == "module"
    assert wire.unflatten(how.init, tensors) == [5]
    x, pair, scale = wire.unflatten(how.structure, source.inputs(w, 1))
    assert x.shape == (4, 5)
    assert pair[1].shape == (5,)
    assert scale == 2.0


def test_an_unknown_dim_is_named(write):
    source = read(write("p.py", LINEAR))
    with pytest.raises(TaskError, match="no dim 'K'"):
        source.inputs(Workload(dims={"K": 3}), 0)


def test_contract_file_beside_the_problem_is_used(write):
    path = write("p.py", LINEAR)
    write("p.contract.toml", "[contract]\ndeterminism = 'none'\n[dims.in_features]\nmultiple_of = 16\n")
    sheet = read(path).sheet
    assert sheet.contract.determinism == "none"
    assert sheet.dims["in_features"].multiple_of == 16


def test_a_sheet_survives_json(write):
    sheet = read(write("p.py", LINEAR)).sheet
    assert type(sheet).model_validate_json(sheet.model_dump_json()) == sheet


def test_another_dtype_is_given_to_inputs_and_state(write):
    source = read(write("p.py", LINEAR))
    w = Workload(dims={"batch_size": 3, "in_features": 5, "out_features": 7}, dtype="bfloat16")
    inputs, state = source.inputs(w, 1), source.state(w, 1)
    assert inputs["x"].dtype == state["lin.weight"].dtype == torch.bfloat16
    assert source.reference(inputs, w, state, dtype=None).dtype == torch.bfloat16


def test_a_hidden_size_is_a_dim_and_a_kernel_size_is_not(write):
    text = module(
        "", init="n, hidden, k", inputs="torch.rand(4, n)", constants="n, hidden, k = 64, 128, 3",
        body="self.a, self.b, self.c = nn.Linear(n, hidden), nn.Linear(hidden, n), nn.Conv1d(1, 1, k, padding='same')",
        forward="self.c(self.b(torch.relu(self.a(x)))[:, None])",
    )  # fmt: skip
    assert set(read(write("p.py", text)).sheet.dims) == {"x_0", "n", "hidden"}


def test_when_time_runs_out_it_is_said_and_the_problem_is_still_read(write):
    from tilewright.task.readers import Budget

    sheet = read(write("p.py", LINEAR), budget=Budget(seconds=1e-9)).sheet
    assert any("time for trials ran out" in n for n in sheet.notes)
    assert any("not run here" in n for n in sheet.notes)


def test_a_size_that_is_also_a_plain_argument_stays_as_given(write):
    text = module("", names="x, n", inputs="torch.rand(n, 6), n", forward="x[:n] * 2", constants="n = 8")
    sheet = read(write("p.py", text)).sheet
    assert "n" not in sheet.dims
    assert any("no expression fits the number 'n'" in note for note in sheet.notes)
