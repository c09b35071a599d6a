"""``tilewright ops``: the list, a sheet, what is refused, and a check of an operator's own kernels."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from tilewright.cli import build as app

RUN = CliRunner()


def test_the_list_names_every_operator():
    found = json.loads(RUN.invoke(app(), ["ops", "list", "--json", "-"]).output)
    names = {r["name"] for r in found}
    assert {"softmax", "log_softmax", "rms_norm", "layer_norm", "swiglu", "rope", "cross_entropy"} <= names
    assert all(r["summary"] for r in found)


def test_a_sheet_says_how_to_check_the_kernels():
    found = json.loads(RUN.invoke(app(), ["ops", "show", "softmax", "--json", "-"]).output)
    assert found["gradients"] == ["x"]
    entries = [k["kernel"].rpartition("::")[2] for k in found["kernels"]]
    assert entries[0] == "softmax"
    assert len(entries) == 4, "plain, masked, causal, backward"
    told = RUN.invoke(app(), ["ops", "show", "softmax"]).output
    assert "tilewright check --strict" in told
    assert "no time was measured" in " ".join(told.split())


@pytest.mark.parametrize(("given", "words"), [
    (["ops", "show", "sofmax"], "there is no operator 'sofmax'"),
    (["ops", "show"], "'show' needs the name of an operator"),
    (["ops", "tell"], "there is no action 'tell'"),
])  # fmt: skip
def test_what_is_refused(given, words, capsys):
    from tilewright.cli import main

    with pytest.raises(SystemExit) as ended:
        main(given)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_a_check_examines_each_pair(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = RUN.invoke(app(), ["ops", "check", "relu_squared", "--json", "out.json", "--ledger", "l.sqlite"])
    assert ended.exit_code == 0, ended.output
    (verdict,) = json.loads((tmp_path / "out.json").read_text())
    assert (verdict["verdict"], verdict["mode"]) == ("accept", "strict")
