"""From the cases' logs to the evidence: one row a function, the reasons of the rest, and the page."""

from __future__ import annotations

import base64
import csv
import datetime
import hashlib
import json
import os
import platform
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import inventory

HERE = Path(__file__).resolve().parent
EVIDENCE = HERE.parent / "third_party.json"
PAGE = HERE.parent.parent / "docs" / "evidence" / "third-party.md"
STATES = ("evaluated", "unsupported", "failed", "not reached")


def modified(site: Path) -> list[str]:
    """Files whose hash is not the one in their wheel's record."""
    found = []
    for record in site.glob("*.dist-info/RECORD"):
        for name, digest, _ in csv.reader(record.read_text().splitlines()):
            if name.endswith(".py") and digest.startswith("sha256="):
                raw = hashlib.sha256((site / name).read_bytes()).digest()
                if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() != digest.removeprefix("sha256="):
                    found.append(name)
    return found


def write(site: Path, work: Path) -> None:
    """Evidence and page from what the work folder holds."""
    evidence = gather(site, work)
    EVIDENCE.write_text(json.dumps(evidence, indent=1) + "\n")
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(evidence))
    print({s: sum(f["state"] == s for f in evidence["functions"]) for s in STATES})


def gather(site: Path, work: Path) -> dict[str, Any]:
    """Functions with their states, comparisons, failures."""
    rules = tomllib.loads((HERE / "reasons.toml").read_text())
    launches, compares, failures, cases = read(work)
    functions = [row(f, launches, rules["reason"]) for f in inventory.functions(site)]
    import torch
    import triton

    return {
        "packages": versions(site), "machine": f"{platform.machine()}, {os.cpu_count()} cores, no GPU", "python": platform.python_version(),
        "torch": torch.__version__, "triton": triton.__version__, "date": datetime.date.today().isoformat(), "target": "cuda sm_90",
        "counts": {s: sum(f["state"] == s for f in functions) for s in STATES},
        "notes": {n["case"]: n["text"] for n in rules.get("note", [])}, "functions": functions, "compared": compares, "failed_calls": failures, "cases": cases,
    }  # fmt: skip


def versions(site: Path) -> dict[str, str]:
    found = dict(d.name.removesuffix(".dist-info").rsplit("-", 1) for d in site.glob("*.dist-info"))
    return {n.replace("_", "-"): v for n, v in sorted(found.items())}


def read(work: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]:
    """Launches, comparisons, calls that failed, cases, each with the case's name."""
    by: dict[str, list[dict[str, Any]]] = {"launch": [], "compare": [], "failed": [], "case": []}
    for log in sorted(work.glob("*.jsonl")):
        package, case = log.name.split(".")[:2]
        for line in log.read_text().splitlines():
            entry = json.loads(line)
            if entry["kind"] in by:
                by[entry["kind"]].append(
                    {"case": f"{package}/{case}", **{k: v for k, v in entry.items() if k != "kind"}}
                )
    return by["launch"], by["compare"], by["failed"], by["case"]


def row(f: inventory.Function, launches: list[dict[str, Any]], reasons: list[dict[str, str]]) -> dict[str, Any]:
    """What became of one function."""
    own = [x for x in launches if x["file"] == f.file and x["function"].rpartition(".")[2] == f.name and not f.twins]
    inside = [x for x in launches if x not in own and any(within(s, f) for s in x.get("lines", ()))]
    out: dict[str, Any] = {"package": f.package, "file": f.file, "line": f.line, "name": f.name}
    done = [x for x in own if x["machine"] == "evaluated"]
    if done:
        out |= {
            "state": "evaluated",
            "how": "launched",
            "launches": len(done),
            "real": domain(done, "real"),
            "field": domain(done, "field"),
        }
        found = sorted({s for x in done for s in (*x.get("faults", ()), *x.get("races", ()))})
        return out | ({"found": found[:3]} if found else {})
    callers = [x for x in inside if x["machine"] == "evaluated"]
    if callers:
        return out | {
            "state": "evaluated",
            "how": "within " + ", ".join(sorted({x["function"] for x in callers})[:3]),
            "launches": len(callers),
        }
    if own or inside:
        said = (own or inside)[0]["machine"]
        return out | {"state": "unsupported" if said.startswith("unsupported") else "failed", "why": said}
    return out | {"state": "not reached", "why": why(f, reasons)}


def within(place: str, f: inventory.Function) -> bool:
    file, _, line = place.rpartition(":")
    return file == f.file and line.isdigit() and f.line <= int(line) <= f.end


def domain(launches: list[dict[str, Any]], name: str) -> str:
    said = [x.get(name, "") for x in launches]
    return "evaluated" if "evaluated" in said else said[0]


def why(f: inventory.Function, reasons: list[dict[str, str]]) -> str:
    """Why nothing reached it: a rule of `reasons.toml`, or what its package's source tells."""
    for r in reasons:
        if f.file.startswith(r["file"]) and r.get("name", f.name) == f.name:
            return r["why"]
    if not f.mentioned:
        return "dead: no line of its package names it"
    return (
        "no case reaches it"
        if f.launched
        else "helper: no kernel that uses it was reached, or it left no operation of its own"
    )


def page(e: dict[str, Any]) -> str:
    """The evidence as a page."""
    functions = e["functions"]
    lines = [HEAD.format(total=len(functions), packages=", ".join(f"{n} {v}" for n, v in e["packages"].items() if n != "einops"),
                         machine=e["machine"], torch=e["torch"], triton=e["triton"], date=e["date"])]  # fmt: skip
    lines += [
        "| Package | Functions | Evaluated | Unsupported | Failed | Not reached |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for package in [*inventory.PACKAGES, None]:
        part = [f for f in functions if package in (None, f["package"])]
        counts = Counter(f["state"] for f in part)
        lines.append(f"| {package or '**all**'} | {len(part)} | " + " | ".join(str(counts[s]) for s in STATES) + " |")
    reached = [f for f in functions if f["state"] != "not reached"]
    refused = [f for f in reached if f["state"] == "unsupported"]
    lines += [
        "",
        f"Of {len(reached)} reached functions {len(refused)} ({share(len(refused), len(reached))}) are unsupported.",
    ]
    other = sum("Ascend" in f.get("why", "") for f in functions)
    lines.append(
        f"{other} are for another device; of the other {len(functions) - other}, "
        f"{len(reached)} ({share(len(reached), len(functions) - other)}) are reached."
    )
    launched = [f for f in functions if f.get("how") == "launched"]
    for name, word in (("real", "real arithmetic"), ("field", "the finite field")):
        ok = sum(f[name] == "evaluated" for f in launched)
        lines.append(
            f"Of {len(launched)} launched kernels {ok} ({share(ok, len(launched))}) are also evaluated in {word}."
        )
    lines += ["", "## Results against a reference", "", compared(e), "", "## Reached and not evaluated", ""]
    lines += [f"* `{f['file']}:{f['line']}` {f['name']}: {f['why']}" for f in reached if f["state"] != "evaluated"] or [
        "None."
    ]
    lines += ["", "## Not reached", "", "| Functions | Reason |", "|---:|---|"]
    lines += [
        f"| {n} | {w} |" for w, n in Counter(f["why"] for f in functions if f["state"] == "not reached").most_common()
    ]
    lines += ["", "## Why kernels don't reach the other domains", "", "| Kernels | Domain | Reason |", "|---:|---|---|"]
    said = Counter((n, bare(f[n])) for f in launched for n in ("real", "field") if f[n] != "evaluated")
    lines += [f"| {n} | {d} | {w} |" for (d, w), n in said.most_common()]
    found = [f for f in functions if f.get("found")]
    if found:
        lines += ["", "## Seen while evaluating", "", SEEN, ""]
        lines += [f"* `{f['name']}`: {f['found'][0]}" for f in found]
    bad = [f for f in e["failed_calls"] if not f["why"].startswith("unsupported")]
    if bad:
        lines += ["", "## Calls that failed otherwise", ""]
        lines += [f"* {f['case']}, {f['what']}: {f['why']}" for f in bad]
    return "\n".join(lines) + "\n"


def compared(e: dict[str, Any]) -> str:
    rows = e["compared"]
    wrong = [r for r in rows if not r["ok"]]
    text = f"{len(rows)} calls were compared with a torch reference, outputs and gradients; {len(rows) - len(wrong)} agree within their tolerance."
    return "\n".join([text, *(["", "These don't:", ""] if wrong else []),
                      *(f"* {r['case']}, {r['what']}: {max(r['errors']):.2g} of the largest value (tolerance {r['tolerance']})"
                        + (f": {e['notes'][r['case']]}" if r["case"] in e["notes"] else "") for r in wrong)])  # fmt: skip


def bare(reason: str) -> str:
    """A reason without its place."""
    kind, _, text = reason.partition(": ")
    place, _, rest = text.partition(": ")
    return f"{kind}: {rest}" if ".py:" in place and rest else reason


def share(a: int, b: int) -> str:
    return f"{100 * a / b:.1f} %" if b else "–"


SEEN = (
    "Reads and writes outside an argument's storage, and programs that write one place, as the evaluator reports them. The small "
    "inputs of these cases may break a precondition of the package, so an entry is a lead, not a verdict."
)
HEAD = """# Kernels of public packages

Written by `benchmarks/third_party/run.py` from `benchmarks/third_party.json`; don't edit it.

{packages}, files unmodified (checked against the wheels' own hashes), on a machine without a GPU ({machine}; torch {torch},
Triton {triton}, {date}), for the declared target H200. The denominator is every function under `@triton.jit` in the
packages' source, {total} in all, whether anything uses it or not. A function is *evaluated* when a call of the package's public
functions on small inputs launched it (or a kernel that it is inlined into) and the launch was computed from its Triton IR in the
machine domain; *unsupported* when the evaluator refused it; *not reached* when no call came to it.
"""
