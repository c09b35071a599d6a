"""SARIF 2.1.0: findings where code-scanning services show them, at the kernel's line if it is known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from .. import __version__
from ..prove.finding import Finding
from ..prove.verdict import Verdict

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render(verdicts: Sequence[Verdict]) -> str:
    """SARIF text of all findings."""
    rules: dict[str, dict[str, Any]] = {}
    results = []
    for v in verdicts:
        for g in v.gates:
            for f in g.findings:
                rule = f"{f.gate or g.name}/{f.cls}".replace(" ", "-")
                rules.setdefault(rule, {"id": rule, "shortDescription": {"text": f"{g.name}: {f.cls}"}})
                results.append(_result(v, f, rule, decides=g.role != "advisory"))
    run = {
        "tool": {"driver": {"name": "tilewright", "version": __version__, "rules": list(rules.values())}},
        "results": results,
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _result(v: Verdict, f: Finding, rule: str, *, decides: bool) -> dict[str, Any]:
    name, _, line = f.where.rpartition(":")
    region = {"startLine": int(line)} if name and line.isdigit() and int(line) > 0 else {"startLine": 1}
    uri = PurePath(v.kernel).as_posix()
    return {
        "ruleId": rule, "level": "error" if decides else "note",
        "message": {"text": f"{f.summary}. Expected {f.expected or 'otherwise'}, got {f.got or 'this'}. "
                            f"Run again: tilewright replay {f.id}"},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}],
        "partialFingerprints": {"tilewright/v1": f.id},
    }  # fmt: skip
