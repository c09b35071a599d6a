"""The decode loop of examples/10_sampling: the same words in any batch, and options that do what they say."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
import torch

FILE = Path(__file__).parents[2] / "examples" / "10_sampling" / "decode.py"


@pytest.fixture(scope="module")
def decode():
    spec = importlib.util.spec_from_file_location("sampling_example", FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def model(decode):
    return decode.trained("cpu")


def test_a_row_writes_the_same_in_any_batch(decode, model):
    seeds = torch.arange(6) * decode.STEPS
    whole, _ = decode.write(model, seeds, temperature=1.0, top_p=0.95)
    assert len(set(whole)) > 1
    for row in range(6):
        assert decode.write(model, seeds[row : row + 1], temperature=1.0, top_p=0.95)[0] == whole[row : row + 1]


def test_greedy_rows_are_alike_and_penalties_change_them(decode, model):
    seeds = torch.arange(4) * decode.STEPS
    greedy, _ = decode.write(model, seeds, temperature=0.0)
    assert len(set(greedy)) == 1
    other, _ = decode.write(model, seeds, temperature=0.0, frequency=50.0)
    assert len(set(other[0])) == decode.STEPS, "with so high a penalty no letter comes twice"


def test_it_learnt_its_text(decode, model):
    texts, _ = decode.write(model, torch.arange(50) * decode.STEPS, temperature=0.3)
    known = {decode.TEXT[i : i + 3] for i in range(len(decode.TEXT) - 2)}
    threes = [t[i : i + 3] for t in texts for i in range(len(t) - 2)]
    assert sum(t in known for t in threes) > 0.95 * len(threes)


def test_it_runs_from_the_shell():
    done = subprocess.run([sys.executable, str(FILE), "--device", "cpu", "--words", "2"], capture_output=True, text=True,
                          timeout=300, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("log-probability") == 8
