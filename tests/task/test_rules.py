"""Written rules: randomness, state, in-place references, all forms of output, and references that can't be used."""

import pytest
import torch

from tilewright.errors import TaskError
from tilewright.task import Workload
from tilewright.task.readers import read
from tilewright.task.tree import leaves

PLAIN = """
N = 64
def get_inputs():
    return [{inputs}]
def get_init_inputs():
    return []
"""


def problem(forward, inputs="torch.randn(N, 32)", names="x", init="pass", top=""):
    return f"""
{top}
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, {names}):
        {forward}
{PLAIN.format(inputs=inputs)}"""


def test_dropout_makes_the_contract_random(write):
    sheet = read(write("p.py", problem("return F.dropout(x, 0.5, self.training)"))).sheet
    assert sheet.contract.random
    assert sheet.contract.postcondition == "distribution"
    assert not read(write("q.py", problem("return F.dropout(x, 0.5, False)"))).sheet.contract.random


def test_batch_norm_statistics_are_state_by_contract(write):
    text = problem("return self.bn(x)", init="self.bn = nn.BatchNorm1d(32)")
    source = read(write("p.py", text))
    assert source.sheet.contract.state
    assert source.sheet.extra["state_updated"] == ["bn.running_mean", "bn.running_var", "bn.num_batches_tracked"]
    w = source.sheet.workloads[0]
    state = source.state(w, 1)
    inputs = source.inputs(w, 1)
    source.reference(inputs, w, state, dtype=None)
    assert torch.allclose(state["bn.running_mean"], 0.1 * inputs["x"].mean(0), atol=1e-6)
    assert state["bn.num_batches_tracked"] == 1
    still = read(write("q.py", problem("return self.bn(x)", init="self.bn = nn.BatchNorm1d(32).eval()")))
    assert not still.sheet.contract.state


def test_lstm_weights_come_from_the_state(write):
    source = read(write("p.py", problem("return self.rnn(x)[0]", init="self.rnn = nn.LSTM(32, 8)")))
    w = source.sheet.workloads[0]
    state, inputs = source.state(w, 1), source.inputs(w, 1)
    first = source.reference(inputs, w, dict(state), dtype=None)
    second = source.reference(inputs, w, {k: v * 2 for k, v in state.items()}, dtype=None)
    assert not torch.allclose(first, second)
    exact = source.reference(
        {"x": inputs["x"].double()}, w, {k: v.double() for k, v in state.items()}, dtype=torch.float64
    )
    assert exact.dtype == torch.float64
    assert torch.allclose(exact.float(), first, atol=1e-5)


def test_an_in_place_reference_marks_its_input(write):
    sheet = read(
        write("p.py", problem("x.add_(y); return x", names="x, y", inputs="torch.randn(N, 8), torch.randn(N, 8)"))
    ).sheet
    assert sheet.inputs["x"].mutated
    assert not sheet.inputs["y"].mutated


def test_uninitialised_inputs_are_room_for_results(write):
    text = problem("return x * 2", names="x, out", inputs="torch.randn(N, 8), torch.empty(N, 8)")
    sheet = read(write("p.py", text)).sheet
    assert sheet.extra["buffers"] == ["out"]
    assert sheet.inputs["out"].mutated
    assert sheet.inputs["out"].values.value == 0


@pytest.mark.parametrize(
    ("value", "names", "dtypes"),
    [
        ("x.sum()", ["out"], ["float32"]),
        ("(x, x.argmax(-1))", ["out.0", "out.1"], ["float32", "int64"]),
        ("{'y': x, 'm': x > 0}", ["out.y", "out.m"], ["float32", "bool"]),
        ("(x, None, 3)", ["out.0"], ["float32"]),
        ("[(x, x), x]", ["out.0.0", "out.0.1", "out.1"], ["float32"] * 3),
        ("torch.max(x, -1)", ["out.0", "out.1"], ["float32", "int64"]),
        ("x > 0", ["out"], ["bool"]),
        ("x[:0]", ["out"], ["float32"]),
    ],
)
def test_all_forms_of_output(write, value, names, dtypes):
    source = read(write("p.py", problem(f"return {value}")))
    assert [s.dtypes[0] for s in source.sheet.outputs.values()] == dtypes
    assert list(source.sheet.outputs) == names
    w = source.sheet.workloads[0]
    out = leaves(source.reference(source.inputs(w, 1), w, None, dtype=None))
    assert [k for k, v in out.items() if isinstance(v, torch.Tensor)] == names


def test_an_identity_on_the_given_values_is_noted(write):
    sheet = read(write("p.py", problem("return torch.relu(x)", inputs="torch.rand(N, 8)"))).sheet
    assert any("a copy would pass" in n for n in sheet.notes)
    assert sheet.extra["copies"] == ["x"]
    zero = read(write("q.py", problem("return torch.relu(x)", inputs="-torch.rand(N, 8)"))).sheet
    assert any("a constant would pass" in n for n in zero.notes)


def fails(write, text, *parts, name="bad.py"):
    with pytest.raises(TaskError) as e:
        read(write(name, text))
    for part in parts:
        assert part in str(e.value), str(e.value)
    return e.value


def line_of(text, mark):
    from textwrap import dedent

    from .conftest import HEAD

    return next(i for i, line in enumerate((HEAD + dedent(text)).splitlines(), 1) if mark in line)


def test_a_non_deterministic_reference_is_refused(write):
    text = problem("COUNT.append(1); return x + len(COUNT)", top="import itertools\nimport math as COUNT_HOME\n")
    text = text.replace(
        "COUNT.append(1); return x + len(COUNT)",
        "return x + next(COUNTER.setdefault('c', __import__('itertools').count()))",
    )
    text = text.replace(
        "import itertools\n", "import builtins\nCOUNTER = builtins.__dict__.setdefault('_count_of_test', {})\n"
    )
    fails(
        write,
        text,
        "two results for one input under one seed",
        "bad.py:",
        "Try: draw random numbers from torch's generator",
    )


def test_a_raising_reference_is_told_with_the_users_line(write):
    text = problem("return x.reshape(3, 5, 7)  # here")
    error = fails(write, text, "the reference raised RuntimeError", "shape '[3, 5, 7]' is invalid")
    assert error.where.endswith(f"bad.py:{line_of(text, '# here')}")


def test_raising_get_inputs_and_constructor(write):
    text = problem("return x", inputs="torch.randn(N, 8) / nothing")
    assert fails(write, text, "get_inputs() raised NameError: name 'nothing'").where.endswith(
        f"bad.py:{line_of(text, '/ nothing')}"
    )
    fails(write, problem("return x", init="raise ValueError('no')"), "Model() raised ValueError: no")


@pytest.mark.parametrize("value", ["None", "3", "x.shape", "'text'"])
def test_no_tensor(write, value):
    fails(write, problem(f"return {value}"), "the reference returns no tensor", "Try: return a tensor")


def test_cuda_devices_are_mapped_to_the_cpu(write):
    text = problem(
        "return x.cuda() + torch.ones(1, device='cuda:0').to('cuda')",
        inputs="torch.randn(N, 8, device='cuda'), torch.randn(N, 8).cuda()", names="x, y",
        init="self.to('cuda'); self.g = torch.Generator(device='cuda')",
    )  # fmt: skip
    if torch.cuda.is_available():
        pytest.skip("CUDA is here")
    source = read(write("p.py", text))
    w = source.sheet.workloads[0]
    assert source.reference(source.inputs(w, 1), w, None, dtype=None).device.type == "cpu"


def test_what_cannot_be_mapped_says_that_cuda_is_missing(write):
    if torch.cuda.is_available():
        pytest.skip("CUDA is here")
    text = problem("return x", top="PROPERTIES = torch.cuda.get_device_properties(0)")
    fails(write, text, "needs CUDA, which this machine does not have", f"bad.py:{line_of(text, 'PROPERTIES')}")


def test_syntax_error_missing_import_and_missing_parts(write):
    fails(write, "class Model(nn.Module:\n    pass\n", "bad.py:5: syntax error")
    fails(write, problem("return x", top="import no_such_package"), "No module named 'no_such_package'", "bad.py:")
    fails(write, "class Model(nn.Module):\n    pass\n", "defines no 'get_inputs'")
    with pytest.raises(TaskError, match=r"problem 'nowhere.py' does not exist"):
        read("nowhere.py")
    fails(write, "x = 1\n", "is no problem that Tilewright can read", "kernelbench: KernelBench file")


def test_exiting_at_import_is_an_error_not_an_exit(write):
    fails(write, problem("return x", top="raise SystemExit(0)"), "the problem file raised SystemExit")


def test_values_that_fake_tensors_lack_are_really_run(write):
    source = read(write("p.py", problem("return x * 2 if x.sum().item() > -1e9 else x")))
    assert any("run with real tensors" in n for n in source.sheet.notes)
    assert source.sheet.dims
    big = problem("return x * 2 if x.sum().item() > 0 else x", inputs="torch.randn(N, 1 << 24)")
    fails(write, big, "can't be followed without values", "4.3 GB")


def test_derived_sizes_that_only_fail_on_values_are_noted_not_fatal(write):
    text = problem(
        "return x * x[:, self.last]", inputs="torch.randn(2048, 2048)", init="self.last = torch.tensor([2047])"
    )
    sheet = read(write("p.py", text)).sheet
    assert sheet.dims == {}
    assert sheet.workloads == (Workload(dims=sheet.given),)
    assert sum("refused" in n and "out of" in n for n in sheet.notes) == 2
    assert any("only the given are used" in n for n in sheet.notes)


def test_two_problems_may_have_neighbours_of_one_name(write):
    for folder, factor in (("a", 2), ("b", 3)):
        write(f"{folder}/utils.py", f"FACTOR = {factor}\n")
        write(f"{folder}/p.py", problem("return x * FACTOR", top="from utils import FACTOR"))
    root = write("x.txt", "").removesuffix("x.txt")
    for folder, factor in (("a", 2), ("b", 3)):
        source = read(f"{root}{folder}/p.py")
        w = source.sheet.workloads[0]
        inputs = source.inputs(w, 1)
        assert torch.equal(source.reference(inputs, w, None, dtype=None), inputs["x"] * factor)
        assert set(source.sheet.files) == {"p.py", "utils.py"}
