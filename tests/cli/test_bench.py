"""``tilewright bench`` and ``machine`` from the command line: exit codes, output, JSON, and going on after a stop."""

import json
from pathlib import Path

import pytest

from tilewright import cli
from tilewright.ledger import Ledger, measurements
from tilewright.measure import bench, protocol
from tilewright.measure.record import Measurement, WorkloadResult
from tilewright.measure.workload import Played
from tilewright.task.task import Workload

HERE = Path(__file__).parents[1] / "measure"
PROBLEM, RIGHT, SLOW = (str(HERE / n) for n in ("problem.py", "right.c", "slow.c"))
WRONG = "#include <stdint.h>\nvoid kernel(const float *x, float *y, int64_t M, int64_t N)\n{\n    y[0] = 1;\n}\n"


@pytest.fixture(autouse=True)
def short(monkeypatch, tmp_path):
    from tests.measure.conftest import FAST

    monkeypatch.setattr(protocol, "quick", lambda: FAST)
    monkeypatch.setenv("TILEWRIGHT_LEDGER", str(tmp_path / "ledger.sqlite"))


@pytest.fixture
def decided(monkeypatch):
    """A machine that does other work must not decide a test: no cap on how much ratios vary, and time enough for all
    blocks. What varies more than the ledger takes is recorded as if it varied by as much as it takes."""
    from tests.measure.conftest import FAST

    calm = FAST.model_copy(update={"variation_cap": 10.0, "blocks_least": 6, "blocks_most": 8, "figure_seconds": 30.0})
    monkeypatch.setattr(protocol, "quick", lambda: calm)
    keep = measurements.record
    monkeypatch.setattr(measurements, "record", lambda store, m, machine: keep(
        store, m.model_copy(update={"variation": min(m.variation, 0.05)}), machine))  # fmt: skip


def test_a_kernel_that_is_not_accepted_is_not_timed(tmp_path, capsys):
    wrong = tmp_path / "wrong.c"
    wrong.write_text(WRONG)
    assert cli.run(["bench", PROBLEM, str(wrong), "--quick"]) == 1
    out = capsys.readouterr().out
    assert "REJECT" in out
    assert "not timed: only an accepted kernel is" in out


def test_a_triton_kernel_needs_a_gpu(capsys):
    triton = Path(__file__).parents[2] / "examples" / "01_softmax" / "right.py"
    assert cli.run(["bench", str(triton.with_name("problem.py")), str(triton)]) == 2
    said = capsys.readouterr().err
    assert "a kernel in 'triton' can't be timed on the CPU" in said
    assert "--device cuda" in said


def test_an_unknown_kind_of_baseline(capsys):
    assert cli.run(["bench", PROBLEM, RIGHT, "--baselines", "eagre"]) == 2
    assert "there is no kind of baseline 'eagre'" in capsys.readouterr().err


def test_measured(tmp_path, capsys, monkeypatch, decided):
    """Accepted once, then timed; the second run finds the verdict in the ledger and is stopped, the third goes on."""
    out = tmp_path / "out.json"
    command = ["bench", PROBLEM, RIGHT, "--quick", "--baselines", "eager", "--baseline", RIGHT, "--hidden", "1"]
    code = cli.run([*command, "--json", str(out)])
    found = Measurement.model_validate_json(out.read_text())
    assert (code, found.answer) == (0, "no measurable gain"), found.reason
    assert {b.name: b.status for b in found.baselines} == {"eager": "right", "right.c": "right"}
    assert [w.kind for w in found.workloads] == ["develop", "hidden"]
    assert found.transfer.spent == 1
    assert found.protocol == protocol.quick().sha256()
    assert found.state["before"]["load"]
    assert Ledger.open().find(found.id).kind == "measurement"
    shown = capsys.readouterr().out
    assert found.answer.upper() in shown
    assert "protocol 1-quick" in shown

    checked = []
    monkeypatch.setattr(bench, "examine_and_record", lambda *a, **k: checked.append(a))
    played = []
    monkeypatch.setattr(bench, "play", lambda setting, w: played.append(w) or (_ for _ in ()).throw(KeyboardInterrupt))
    assert cli.run(command) == 2
    assert (len(checked), len(played)) == (0, 1)


@pytest.mark.parametrize(("answer", "reason"), [("too noisy", "block ratios vary by 9.0%, above the cap of 5%"),
                                               ("refused", "two clocks disagree")])  # fmt: skip
def test_what_claims_nothing_is_kept_and_has_an_id(answer, reason, tmp_path, capsys, monkeypatch):
    result = WorkloadResult(name="M=32, N=200", dims={"M": 32, "N": 200}, answer=answer, reason=reason)
    monkeypatch.setattr(bench, "play", lambda setting, w: Played(result, (), 0.1))
    out = tmp_path / "out.json"
    assert cli.run(["bench", PROBLEM, RIGHT, "--quick", "--baselines", "eager", "--json", str(out)]) == 3
    found = Measurement.model_validate_json(out.read_text())
    shown = capsys.readouterr().out
    assert f"({found.id})" in shown
    assert f"as an attempt, which claims nothing: tilewright report {found.id}" in " ".join(shown.split())
    kept = Ledger.open().find(found.id)
    assert (kept.kind, kept.record["answer"]) == ("attempt", answer)
    assert reason in kept.record["reason"]
    for command in (["report", found.id], ["report", found.id, "--html", str(tmp_path / "r.html")], ["show", found.id]):
        assert cli.run(command) == 0
    assert reason in (tmp_path / "r.html").read_text()
    assert reason in capsys.readouterr().out


def test_an_interrupted_run_goes_on(monkeypatch, tmp_path):
    verdict = []
    monkeypatch.setattr(measurements, "attempt", lambda store, made, machine: made)
    monkeypatch.setattr(bench, "licensed", lambda *a, **k: verdict[0])
    monkeypatch.setattr(bench.ceilings, "ceilings", lambda device: None)
    verdict.append(_accepted())
    calls = []

    def play(setting, w):
        calls.append(w.dims["M"])
        if calls == [2, 3]:
            raise KeyboardInterrupt
        return Played(WorkloadResult(name="w", dims=w.dims, answer="too noisy", reason="made up"), (), 0.1)

    monkeypatch.setattr(bench, "play", play)
    options = bench.Options(kinds=("eager",), workloads=tuple(Workload(dims={"M": m, "N": 5}) for m in (2, 3, 4)))
    with pytest.raises(KeyboardInterrupt):
        bench.bench(PROBLEM, RIGHT, options=options)
    bench.bench(PROBLEM, RIGHT, options=options)
    assert calls == [2, 3, 3, 4]


def _accepted():
    from tilewright.prove.verdict import Verdict

    return Verdict(verdict="accept", id="")


def test_machine(tmp_path, capsys, monkeypatch):
    from tilewright.measure import ceilings

    monkeypatch.setattr(ceilings, "SETS", (1 << 16, 1 << 18))
    out = tmp_path / "machine.json"
    assert cli.run(["machine", "--json", str(out)]) == 0
    found = json.loads(out.read_text())
    assert set(found["read"]) == {"65536", "262144"}
    assert found["rates"]["float32"] > 1e8
    shown = capsys.readouterr().out
    assert "working set" in shown
    assert "Gop/s" in shown


def test_machine_without_a_gpu(capsys):
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is one")
    assert cli.run(["machine", "--device", "cuda"]) == 2
    assert "no CUDA device" in capsys.readouterr().err


def test_against_ten_times_the_work(tmp_path, decided):
    """Both ways round: the answer is certain, whatever else the machine does."""
    tenfold = tmp_path / "tenfold.c"
    tenfold.write_text(Path(SLOW).read_text().replace("k < 60", "k < 10"))
    out = tmp_path / "out.json"
    command = ["bench", PROBLEM, "--quick", "--baselines", "eager", "--json", str(out), "-q"]
    assert cli.run([*command, str(tenfold), "-b", RIGHT]) == 0
    found = Measurement.model_validate_json(out.read_text())
    assert (found.answer, found.workloads[0].figures[0].ratio("right.c").answer) == ("slower", "slower"), found.reason
    assert cli.run([*command, RIGHT, "-b", str(tenfold)]) == 0
    found = Measurement.model_validate_json(out.read_text())
    assert found.workloads[0].figures[0].ratio("tenfold.c").answer == "faster"
