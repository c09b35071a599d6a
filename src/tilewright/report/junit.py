"""JUnit XML: one suite a kernel, one case a gate."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence

from ..prove.verdict import GateReport, Verdict

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render(results: Sequence[tuple[str, Verdict | str]]) -> str:
    """XML text of named verdicts; a string in place of a verdict is an error message."""
    root = ET.Element("testsuites", name="tilewright")
    for name, v in results:
        suite = ET.SubElement(root, "testsuite", name=_clean(name))
        if isinstance(v, str):
            case = ET.SubElement(suite, "testcase", classname=_clean(name), name="check")
            ET.SubElement(case, "error", message=_clean(v.splitlines()[0] if v else "error")).text = _clean(v)
            suite.attrib.update(tests="1", failures="0", errors="1", skipped="0")
            continue
        for g in v.gates:
            _case(suite, name, g)
        kinds = [_kind(g) for g in v.gates]
        suite.attrib.update(tests=str(len(kinds)), failures=str(kinds.count("failure")), errors="0",
                            skipped=str(kinds.count("skipped")), time=f"{v.seconds:.3f}")  # fmt: skip
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _kind(g: GateReport) -> str:
    """What a gate is in JUnit's words. An advisory failure is no failure of the suite."""
    if g.status == "fail" and g.role != "advisory":
        return "failure"
    if g.status == "inconclusive" and g.role == "core":
        return "failure"
    return "passed" if g.status == "pass" else "skipped"


def _case(suite: ET.Element, name: str, g: GateReport) -> None:
    case = ET.SubElement(suite, "testcase", classname=_clean(name), name=g.name, time=f"{g.seconds:.3f}")
    kind = _kind(g)
    if kind == "passed":
        return
    text = g.reason or g.meaning
    element = ET.SubElement(case, kind, message=_clean(f"{g.status}: {text}" if kind == "skipped" else text))
    if kind == "failure":
        element.attrib["type"] = g.findings[0].cls if g.findings else g.status
        element.text = _clean("\n".join(f"{f.summary}\n  expected {f.expected}, got {f.got}\n  tilewright replay {f.id}"
                                        for f in g.findings))  # fmt: skip


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("�", text)
