"""What is recorded reads back the same; ids lead to it; sources come back as they were."""

import json
import random

import pytest
import torch

from tilewright.errors import InternalError, LedgerError
from tilewright.ledger import Ledger, contract_hash
from tilewright.prove.finding import CaseRecord, Finding, TensorRecord
from tilewright.prove.verdict import GateReport, Verdict
from tilewright.task import Contract


def test_blobs_come_back(ledger):
    noise = random.Random(0).randbytes(5000)
    shas = ledger.put_blobs([b"", b"a" * 100_000, noise, b""])
    assert shas[0] == shas[3]
    assert [ledger.get_blob(s) for s in shas] == [b"", b"a" * 100_000, noise, b""]
    with ledger.store.read() as c:
        rows = dict(c.exec_driver_sql("SELECT sha256, encoding FROM blobs").fetchall())
        stored = c.exec_driver_sql("SELECT sum(length(data)) FROM blobs").scalar()
    assert rows == {shas[0]: "raw", shas[1]: "zlib", shas[2]: "raw"}
    assert stored < 6000


def test_a_missing_and_a_damaged_blob(ledger):
    with pytest.raises(LedgerError, match="has no blob aaaaaaaaaaaa"):
        ledger.get_blob("a" * 64)
    with ledger.store.write() as c:
        c.exec_driver_sql("INSERT INTO blobs VALUES ('" + "b" * 64 + "', 3, 'zlib', x'616263')")
    with pytest.raises(LedgerError, match=r"blob bbbbbbbbbbbb .* is damaged"):
        ledger.get_blob("b" * 64)


def test_a_verdict_comes_back_whole(ledger, sample):
    recorded = sample.record(ledger)
    record = Ledger.open(ledger.name, create=False).verdict(recorded.id[:6])
    assert record.verdict == recorded
    assert record.kernel.model_dump() == sample.kernel.model_dump()
    assert record.sheet == sample.sheet
    assert record.contract == contract_hash(sample.sheet, "default")
    assert record.device_class == "cpu"
    assert record.machine["cores"] >= 1
    assert recorded.kernel_sha256 == sample.kernel.sha256()


def test_a_finding_comes_back_with_its_case(ledger, sample):
    tensor = TensorRecord(dtype="float32", shape=(2, 3), strides=(1, 2), offset=1, blob="c" * 64)
    case = CaseRecord(inputs={"z": tensor, "a": float("nan"), "b": float("-inf"), "l": [1, 2], "n": None},
                      state={"weight": tensor}, options={"times": 3})  # fmt: skip
    finding = Finding(cls="inaccurate", summary="off", case=case, largest_error=float("inf"))
    gate = GateReport(name="accumulation", role="deciding", status="fail", findings=(finding,))
    verdict = Verdict(verdict="reject", gates=(gate,))
    recorded = ledger.record_verdict(verdict, sample.kernel, sample.sheet, sample.files)
    found = ledger.finding(recorded.findings[0].id[:8])
    assert found.finding.gate == "accumulation"
    assert found.finding.largest_error == float("inf")
    inputs = found.finding.case.inputs
    assert list(inputs) == ["z", "a", "b", "l", "n"], "kernels are called with the inputs in order"
    assert inputs["z"] == tensor
    assert inputs["a"] != inputs["a"]
    assert (inputs["b"], inputs["l"], inputs["n"]) == (float("-inf"), [1, 2], None)
    assert found.finding.case.state["weight"] == tensor


def test_the_same_finding_in_two_verdicts_has_one_id(ledger, sample):
    first, second = sample.record(ledger), sample.record(ledger)
    assert first.id != second.id
    assert first.findings[0].id == second.findings[0].id
    found = ledger.finding(first.findings[0].id)
    assert found.seen_in == (second.id, first.id)
    assert found.verdict.id == second.id


def test_a_finding_that_two_gates_share_is_recorded_once(ledger, sample):
    verdict = sample.verdict()
    twice = verdict.model_copy(update={"gates": verdict.gates * 2})
    recorded = ledger.record_verdict(twice, sample.kernel, sample.sheet, sample.files)
    assert ledger.finding(recorded.findings[0].id).seen_in == (recorded.id,)


def test_strict_and_default_are_different_contracts(ledger, sample):
    promised = sample.sheet.model_copy(update={"contract": Contract(layouts="promised")})
    assert contract_hash(sample.sheet, "strict") != contract_hash(sample.sheet, "default")
    assert contract_hash(sample.sheet, "strict") == contract_hash(promised, "default")


def test_latest(ledger, sample):
    assert ledger.latest() is None
    sample.record(ledger)
    last = sample.record(ledger, "accept")
    assert ledger.latest().id == last.id


def test_find_names_the_kind(ledger, sample):
    recorded = sample.record(ledger)
    assert ledger.find(recorded.id).kind == "verdict"
    assert ledger.find(recorded.findings[0].id).record.verdict.id == recorded.id
    kernel = ledger.find(sample.kernel.sha256()[:10])
    assert kernel.kind == "kernel"
    assert kernel.record["verdicts"] == [recorded.id]
    assert kernel.record["files"] == sample.kernel.files
    assert ledger.find(sample.sheet.sha256()[:10]).kind == "task"
    audit = ledger.audit({}, {})
    assert ledger.find(audit.id).kind == "audit"
    assert ledger.find(next(iter(sample.kernel.files.values()))[:16]).kind == "blob"


def test_an_ambiguous_id_lists_what_it_may_mean(ledger, sample):
    for i in range(3):
        sample.record(ledger, id=f"abcd{i:08d}")
    with pytest.raises(LedgerError) as e:
        ledger.verdict("abcd")
    assert str(e.value) == (
        "id 'abcd' is ambiguous: 3 verdicts begin so\n  abcd00000000  verdict\n  abcd00000001  verdict\n"
        "  abcd00000002  verdict\nTry: give more digits"
    )


def test_an_unknown_id_lists_near_ones(ledger, sample):
    sample.record(ledger, id="abcd12345678")
    with pytest.raises(LedgerError) as e:
        ledger.verdict("abcd12345687")
    assert "has no verdict 'abcd12345687'\nNear: abcd12345678\nTry: check the id" in str(e.value)


def test_an_id_of_another_kind_says_so(ledger, sample):
    recorded = sample.record(ledger)
    with pytest.raises(LedgerError, match=f"'{recorded.id}' is no finding, but the verdict {recorded.id}"):
        ledger.finding(recorded.id)


@pytest.mark.parametrize("id", ["", "%", "_", "zz", "' OR 1=1"])
def test_nonsense_is_unknown(ledger, sample, id):
    sample.record(ledger)
    with pytest.raises(LedgerError, match="has no record"):
        ledger.find(id)


def test_an_id_can_be_recorded_only_once(ledger, sample):
    sample.record(ledger, id="abcd12345678")
    with pytest.raises(LedgerError, match="the ledger refused this record: verdicts already has this record"):
        sample.record(ledger, id="abcd12345678")


def test_bytes_that_were_not_given_are_our_fault_and_leave_no_trace(ledger, sample):
    with pytest.raises(InternalError, match="was not given the bytes of file"):
        ledger.record_verdict(sample.verdict(), sample.kernel, sample.sheet, {})
    with ledger.store.read() as c:
        assert c.exec_driver_sql("SELECT count(*) FROM kernels").scalar() == 0


def test_sources_come_back_when_the_files_have_changed(ledger, sample, tmp_path):
    recorded = sample.record(ledger)
    (tmp_path / "sources" / "kernel.py").write_text("changed")
    kernel, problem = ledger.restore(ledger.verdict(recorded.id), tmp_path / "again")
    assert kernel.read_bytes() == sample.files["kernel.py"]
    assert problem.read_bytes() == sample.files["problem.py"]


def test_sources_stay_in_their_folder(ledger, sample, tmp_path):
    sha = next(iter(sample.kernel.files.values()))
    evil = sample.kernel.model_copy(update={"files": {"kernel.py": sha, "../../evil.py": sha}})
    recorded = ledger.record_verdict(sample.verdict(), evil, sample.sheet, sample.files)
    with pytest.raises(LedgerError, match="leaves its folder"):
        ledger.restore(ledger.verdict(recorded.id), tmp_path / "again")
    assert not (tmp_path / "evil.py").exists()


def test_a_record_of_another_version_is_named(ledger, sample):
    recorded = sample.record(ledger)
    body = json.dumps(json.loads(recorded.model_dump_json()) | {"verdict": "perhaps"})
    columns = "kernel, kernel_path, task, task_path, contract, device_class, mode, verdict, versions, machine, created"
    with ledger.store.write() as c:
        c.exec_driver_sql(f"INSERT INTO verdicts (id, body, {columns}) SELECT 'aaaaaaaaaaaa', ?, {columns} "
                          "FROM verdicts", (body,))  # fmt: skip
    with pytest.raises(LedgerError, match="in a form that this version can't read") as e:
        ledger.verdict("aaaaaaaaaaaa")
    assert "use the version of Tilewright that recorded it: 0.1.0" in str(e.value)


def test_the_tensors_of_a_case_are_kept_under_the_finding_s_id(ledger, sample):
    """The gates describe tensors; their bytes come with the verdict, and the id that was printed stays."""
    x, w = torch.randn(4, 6)[:, 1:3], torch.ones(3, dtype=torch.float16)
    told = TensorRecord(dtype="float32", shape=(4, 2), strides=(6, 1), offset=1, storage_bytes=96, preview="told")
    case = CaseRecord(
        inputs={"x": told, "eps": 0.5}, state={"w": TensorRecord(dtype="float16", shape=(3,), strides=(1,))}
    )
    finding = Finding(cls="wrong", summary="off", case=case, gate="values").with_id("k", "t")
    gate = GateReport(name="values", role="core", status="fail", findings=(finding,))
    verdict = Verdict(verdict="reject", gates=(gate,))
    tensors = {finding.id: {"inputs": {"x": x, "eps": 0.5}, "state": {"w": w}}}
    recorded = ledger.record_verdict(verdict, sample.kernel, sample.sheet, sample.files, tensors=tensors)
    assert recorded.findings[0].id == finding.id
    found = ledger.finding(finding.id).finding
    assert found.case.inputs["x"].preview == "told"
    inputs, state, cotangents = ledger.load_case(found.case)
    assert torch.equal(inputs["x"], x)
    assert inputs["x"].stride() == (6, 1)
    assert (list(inputs), inputs["eps"], cotangents) == (["x", "eps"], 0.5, {})
    assert torch.equal(state["w"], w)


def test_a_case_too_large_says_what_was_not_kept(ledger, sample):
    big = torch.zeros(17 << 20)
    record = TensorRecord(dtype="float32", shape=tuple(big.shape), strides=(1,))
    finding = Finding(cls="wrong", summary="off", case=CaseRecord(inputs={"x": record}, note="as given"), gate="values")
    finding = finding.with_id("k", "t")
    gate = GateReport(name="values", role="core", status="fail", findings=(finding,))
    ledger.record_verdict(Verdict(verdict="reject", gates=(gate,)), sample.kernel, sample.sheet, sample.files,
                          tensors={finding.id: {"inputs": {"x": big}}})  # fmt: skip
    case = ledger.finding(finding.id).finding.case
    assert case.note == "as given; x (values not kept: 68.0 MiB is over the 64 MiB left for this case)"
    with pytest.raises(LedgerError, match="were not kept"):
        ledger.load_case(case)
