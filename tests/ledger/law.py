"""Statements that break the ledger's law, one by one; the same for every database."""

import json

from tilewright.ledger import attempt_law
from tilewright.ledger.lawfulness import KEYS, LICENCE, MACHINE, PROTOCOL, STATE, VARIATION

TABLES = tuple(KEYS)
COLUMNS = ("id", "verdict", "kernel", "task", "contract", "device_class", "machine", "state", "protocol", "variation",
           "body", "created")  # fmt: skip
PROTOCOL_SHA = "p" * 64

# what is changed in an otherwise lawful measurement, and what the database answers
UNLAWFUL = [
    ({"verdict": "REJECTED"}, LICENCE),
    ({"verdict": "STRICT"}, LICENCE),
    ({"verdict": "0" * 12}, LICENCE),
    ({"verdict": None}, LICENCE),
    ({"kernel": "OTHER_KERNEL"}, LICENCE),
    ({"task": "t" * 64}, LICENCE),
    ({"contract": "c" * 64}, LICENCE),
    ({"device_class": "sm_90"}, LICENCE),
    ({"protocol": "q" * 64}, PROTOCOL),
    ({"protocol": None}, PROTOCOL),
    ({"machine": "m" * 64}, MACHINE),
    ({"machine": None}, MACHINE),
    ({"state": None}, STATE),
    ({"state": ""}, STATE),
    ({"state": "{}"}, STATE),
    ({"state": "{   }"}, STATE),
    ({"state": "null"}, STATE),
    ({"state": "[1, 2]"}, STATE),
    ({"state": "not json"}, STATE),
    ({"variation": 0.0501}, VARIATION),
    ({"variation": -0.01}, VARIATION),
    ({"variation": float("inf")}, VARIATION),
    ({"variation": float("nan")}, VARIATION),
    ({"variation": None}, VARIATION),
]

# the same for an otherwise lawful attempt
ATTEMPT_COLUMNS = (*COLUMNS, "answer", "reason")
UNLAWFUL_ATTEMPTS = [
    *((change, attempt_law.LICENCE if why == LICENCE else why) for change, why in UNLAWFUL if why != VARIATION),
    ({"answer": "faster"}, attempt_law.CLAIM),
    ({"answer": "no measurable gain"}, attempt_law.CLAIM),
    ({"answer": "Refused"}, attempt_law.CLAIM),
    ({"answer": None}, attempt_law.CLAIM),
    ({"reason": ""}, attempt_law.SILENT),
    ({"reason": "  "}, attempt_law.SILENT),
    ({"reason": None}, attempt_law.SILENT),
]


def attempted(row):
    """An attempt that the law allows, from a measurement that it allows: noisier than the cap."""
    return row | {"id": "fedcba543210", "answer": "too noisy", "reason": "block ratios vary by 9%", "variation": 0.09}


def name_of(case):
    return " ".join(f"{k}={str(v)[:12]}" for k, v in case[0].items())


def lawful(ledger, sample, other) -> tuple[dict, dict]:
    """A row for ``measurements`` that the law allows, and what the names in ``UNLAWFUL`` stand for."""
    accepted = sample.record(ledger, "accept")
    names = {
        "REJECTED": sample.record(ledger, "reject").id,
        "STRICT": sample.record(ledger, "accept", mode="strict").id,
    }
    other.record(ledger, "reject")
    names["OTHER_KERNEL"] = other.kernel.sha256()
    record = ledger.verdict(accepted.id)
    with ledger.store.read() as c:
        machine = c.exec_driver_sql("SELECT sha256 FROM machines").scalar()
    values = ("abcdef012345", accepted.id, sample.kernel.sha256(), sample.sheet.sha256(), record.contract, "cpu",
              machine, json.dumps({"load": 0.1}), PROTOCOL_SHA, 0.01, "{}", "2026-01-01T00:00:00+00:00")  # fmt: skip
    return dict(zip(COLUMNS, values, strict=True)), names


def search(ledger, kind="measured"):
    """A run with a row in every table of a search."""
    from tilewright.search.store import RunStore
    from tilewright.search.tree import Failure, Node, Proposal

    run = RunStore.create(ledger, key={"k": 1}, kind=kind, problem="p.py", kernel_path="k.c", options={})
    proposal = Proposal(source="int x;", proposer="start")
    run.proposed(0, proposal)
    run.told(Node(number=0, parent=None, proposal=proposal, failure=Failure(kind="compile", message="no")))
    return run


def spend(ledger, times=1, purpose="a search"):
    """Hidden workloads spent on something."""
    from tilewright.ledger import measurements

    return [measurements.spend_hidden(ledger.store, purpose, "k" * 64, "t" * 64, {}) for _ in range(times)]
