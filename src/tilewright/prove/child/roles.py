"""Roles of a sealed child, and the dispatch of requests to them.

A role is an object with methods ``on_<request>(head, bundles) -> (answer, [Bundle])``. An exception in it becomes
``{"error": ...}`` with the place in the user's file.
"""

from __future__ import annotations

import importlib
import os
import traceback
from importlib.util import find_spec
from typing import Any

from ...errors import EnvironmentProblem
from . import ends, transport
from .transport import Bundle

STDLIB = os.path.dirname(os.__file__) + os.sep
ROLES = {
    "reference": "role_reference",
    "kernel": "role_kernel",
    "evaluator": "role_evaluator",
    "algebra": "role_algebra",
    "escapes": "escapes",
    "timing": "role_timing",
    "judge": "role_judge",
    "device": "role_device",
    "compiler": "role_compiler",
}


def preload() -> None:
    """Import every role, so that a child need not import Tilewright once it is sealed."""
    for module in ROLES.values():
        importlib.import_module(f"{__package__}.{module}")
    if find_spec("z3") is not None:
        importlib.import_module("tilewright.ir.domains.index_launch")


def create(name: str, others: list[Any]) -> Any:
    return importlib.import_module(f"{__package__}.{ROLES[name]}").Role(others)


def answer(role: Any, head: dict[str, Any], fds: list[int]) -> tuple[dict[str, Any], list[Bundle]]:
    """One request to its answer, which carries the request's ticket."""
    reply, out = _answer(role, head, fds)
    return {**reply, "ticket": head.get("ticket")}, out


def _batch(role: Any, head: dict[str, Any], fds: list[int]) -> tuple[dict[str, Any], list[Bundle]]:
    """Several requests in one message, answered in order; each has its own bundles and its own error."""
    replies, out = [], []
    for request in head["requests"]:
        count = len(request["bundles"])
        reply, made = _answer(role, request, fds[:count])
        fds = fds[count:]
        replies.append({**reply, "made": len(made)})
        out += made
    return {"answers": replies, "bundles": [b.head for b in out]}, out


def _answer(role: Any, head: dict[str, Any], fds: list[int]) -> tuple[dict[str, Any], list[Bundle]]:
    if head.get("do") == "batch":
        return _batch(role, head, fds)
    bundles: list[Bundle] = []
    try:
        bundles = [Bundle.open(h, fd) for h, fd in zip(head.get("bundles", []), fds, strict=True)]
        reply, out = getattr(role, f"on_{head['do']}")(head, bundles)
        return {**reply, "bundles": [b.head for b in out]}, out
    except SystemExit as e:
        return {"error": {"kind": "exit", "type": "SystemExit", "message": f"SystemExit({e.code!r})", **_where(e)}}, []
    except BaseException as e:
        return {"error": describe(e)}, []
    finally:
        for b in bundles:
            b.close()


def describe(e: BaseException) -> dict[str, Any]:
    """An exception as data: type, message, the last place in a user's file, the tail of the traceback."""
    kind = "environment" if isinstance(e, EnvironmentProblem) else getattr(e, "tilewright_kind", ends.kind_of(e))
    return {"kind": kind, "type": type(e).__name__, "message": str(getattr(e, "what", None) or e)[:4000], **_where(e)}


def _where(e: BaseException) -> dict[str, Any]:
    frames = traceback.extract_tb(e.__traceback__)
    ours = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    others = (ours, STDLIB, "<frozen")
    user = [f for f in frames if not f.filename.startswith(others) and "site-packages" not in f.filename]
    if isinstance(e, SyntaxError) and e.filename:
        where = f"{e.filename}:{e.lineno}"
    else:
        where = f"{user[-1].filename}:{user[-1].lineno}" if user else ""
    given = getattr(e, "where", None)
    return {"where": given or where, "trace": "".join(traceback.format_exception(e))[-4000:],
            "user_code": bool(user), "remedy": getattr(e, "remedy", None) or ends.remedy_for(e),
            "detail": getattr(e, "detail", None) or ""}  # fmt: skip


transport_fault = transport.ProtocolFault
