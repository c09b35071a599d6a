"""The parent's side of a sealed child: open it, ask it, learn how it ended.

>>> with KernelSession(kernel) as k:                     # doctest: +SKIP
...     k.build(calling, state)
...     outcome = k.call(inputs)
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ...errors import EnvironmentProblem
from ...kernel import Kernel
from ...task import tree
from ...task.calling import Calling
from ...task.task import TaskSheet, Workload
from . import ends, transport
from .pool import ForkServer, server
from .transport import Bundle

Inputs = Mapping[str, Any]


@dataclass(frozen=True)
class Limits:
    """What a child may use: seconds per request, bytes of memory, of one file and of all its files, processes."""

    seconds: float = 60.0
    memory_bytes: int = 8 << 30
    file_bytes: int = 2 << 30
    processes: int = 64
    scratch_bytes: int = 1 << 30


@dataclass(frozen=True)
class Trouble:
    """Why there is no result. ``kind``: ``exception``, ``exit``, ``crash``, ``timeout``, ``memory``, ``protocol``,
    ``interface``, ``launch``, ``forged``, ``unsupported``."""

    kind: str
    message: str
    where: str = ""
    trace: str = ""
    type: str = ""
    output: str = ""
    user_code: bool = True
    remedy: str | None = None
    detail: str = ""

    def __str__(self) -> str:
        at = f" at {Path(self.where).name}" if self.where else ""
        return f"{self.type or self.kind}: {self.message}{at}" if self.kind == "exception" else f"{self.message}{at}"


@dataclass
class Outcome:
    """What a call gave: ``outputs`` by leaf name, ``tree`` their structure, and what the parent itself saw.

    ``changed``: inputs whose bytes changed. ``damage``: guard zones written, with the number of bytes. ``alias``:
    output to input that shares its memory. ``launches``: the evaluator's own log. ``seen``: torch operations that the
    child reports. ``places``: where outputs lie, by the child's word (storage as launches number it).
    ``stale``: outputs kept from earlier calls that this one changed. ``patched``: functions that the
    candidate replaced. ``late``: outputs that changed after the call. ``grads_again``: of a second backward.
    """

    trouble: Trouble | None = None
    outputs: dict[str, torch.Tensor] = field(default_factory=dict)
    grads: dict[str, torch.Tensor] = field(default_factory=dict)
    tree: dict[str, Any] = field(default_factory=dict)
    inputs_after: dict[str, torch.Tensor] = field(default_factory=dict)
    changed: tuple[str, ...] = ()
    damage: tuple[tuple[str, int], ...] = ()
    alias: dict[str, str] = field(default_factory=dict)
    odd: dict[str, str] = field(default_factory=dict)
    stale: tuple[int, ...] = ()
    seen: dict[str, Any] = field(default_factory=dict)
    threads: int = 0
    requires_grad: dict[str, bool] = field(default_factory=dict)
    launches: list[dict[str, Any]] = field(default_factory=list)
    patched: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    grads_again: dict[str, torch.Tensor] = field(default_factory=dict)
    cotangents_changed: tuple[str, ...] = ()
    places: dict[str, Any] = field(default_factory=dict)
    tuned: dict[str, list[list[str]]] = field(default_factory=dict)
    trace: dict[str, Any] | None = None

    @property
    def ok(self) -> bool:
        return self.trouble is None


@dataclass
class LawAnswer:
    """Where a law stands: decided (``ok``), or waiting for the kernel's result on ``inputs`` (``gradient``: the names
    whose gradients it wants, for ``cotangents``)."""

    ok: bool | None = None
    message: str = ""
    inputs: dict[str, Any] = field(default_factory=dict)
    gradient: tuple[str, ...] = ()
    cotangents: dict[str, torch.Tensor] = field(default_factory=dict)
    trouble: Trouble | None = None


class Session:
    """One sealed child. ``role`` as in ``worker.py``."""

    def __init__(self, role: str, *, limits: Limits | None = None, sandbox: str = "best", interpret: bool = False,
                 others: tuple[socket.socket, ...] = (), name: str = "", reads: tuple[str, ...] = ()):  # fmt: skip
        self.limits = limits or Limits()
        self.server: ForkServer = server(interpret=interpret)
        self.output = os.memfd_create("tw-output", os.MFD_CLOEXEC)
        ours, theirs = socket.socketpair()
        request = {"role": role, "sandbox": sandbox, "limits": vars(self.limits), "name": name,
                   "reads": list(reads)}  # fmt: skip
        self.pid = self.server.spawn(request, (theirs.fileno(), self.output, *(s.fileno() for s in others)))
        theirs.close()
        self.channel = ours
        self.dead: Trouble | None = None
        self.sealed: dict[str, Any] = {}
        answer, _ = self.ask_raw({}, wait_only=True)
        if "error" in answer:
            failed = trouble(answer["error"])
            self.close()
            raise EnvironmentProblem(
                f"the sealed child for the {role} did not start: {failed.message}",
                remedy=failed.remedy or "run 'tilewright doctor'",
                detail=failed.output or None,
            )
        self.sealed = answer.get("sealed", {})

    def ask_raw(
        self,
        head: dict[str, Any],
        bundles: tuple[Bundle, ...] = (),
        *,
        wait_only: bool = False,
        seconds: float | None = None,
    ) -> tuple[dict[str, Any], list[Bundle]]:
        """Send a request and wait for the answer. A child that dies, hangs or talks nonsense gives ``{"error": ...}``
        and stays dead."""
        if self.dead is not None:
            return {"error": vars(self.dead)}, []
        ticket = secrets.token_hex(8)  # an answer without it is not the answer to this request
        try:
            if not wait_only:
                transport.send(self.channel, {**head, "ticket": ticket, "bundles": [b.head for b in bundles]},
                               tuple(b.fd for b in bundles))  # fmt: skip
            answer, fds = transport.receive(self.channel, seconds or self.limits.seconds)
            if not wait_only and answer.get("ticket") != ticket:
                transport.close(fds)
                raise transport.ProtocolFault("an answer that was not asked for")
            return answer, [Bundle.open(h, fd) for h, fd in zip(answer.get("bundles", []), fds, strict=True)]
        except transport.Timeout:
            self.server.kill(self.pid)
            self._die("timeout", f"no answer within {seconds or self.limits.seconds:g} s")
        except (transport.ProtocolFault, ValueError) as e:
            self._died(str(e))
        assert self.dead is not None
        return {"error": vars(self.dead)}, []

    def _died(self, why: str) -> None:
        ended = self.server.ended(self.pid, 2.0)
        if ended is None:
            self.server.kill(self.pid)
            self._die("protocol", f"the process sent something that is no message ({why})")
        elif ended.code < 0:
            self._die(*ends.explain(ended, self.printed()))
        else:
            self._die("exit", f"the process {ended} in the middle of a call")

    def _die(self, kind: str, message: str) -> None:
        self.dead = Trouble(kind=kind, message=message, output=self.printed())

    def printed(self) -> str:
        """The tail of what the child wrote to stdout and stderr."""
        size = os.fstat(self.output).st_size
        return os.pread(self.output, 4000, max(0, size - 4000)).decode(errors="replace")

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.channel.close()
        with contextlib.suppress(OSError):
            os.close(self.output)
        self.server.kill(self.pid)
        self.dead = self.dead or Trouble("exit", "the session was closed")

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def trouble(error: dict[str, Any]) -> Trouble:
    """A Trouble from a child's words."""
    known = {k: v for k, v in error.items() if k in Trouble.__dataclass_fields__}
    return Trouble(**{"kind": "exception", "message": "", **known})


def split(inputs: Inputs) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Tensors, and the other arguments as trees."""
    tensors = {n: v for n, v in inputs.items() if isinstance(v, torch.Tensor)}
    return tensors, {n: tree.flatten(v)[0] for n, v in inputs.items() if n not in tensors}


def folders(*files: str | None) -> tuple[str, ...]:
    """Folders of files that a child must be able to read (``file.py::name`` is taken as ``file.py``)."""
    return tuple(str(Path(f.partition("::")[0]).resolve().parent) for f in files if f)


class ReferenceSession(Session):
    """The reference in its sealed child."""

    def __init__(self, **options: Any):
        self.lock = threading.Lock()  # the truth of a case may be asked for from another thread
        super().__init__("reference", name="reference", **options)

    def request(
        self, head: dict[str, Any], bundles: tuple[Bundle, ...] = (), seconds: float | None = None
    ) -> tuple[dict[str, Any], list[Bundle]]:
        with self.lock:
            answer, out = self.ask_raw(head, bundles, seconds=seconds)
        for b in bundles:
            b.close()
        return answer, out

    def describe(self, path: str, *, overrides: str | None = None, reference: str | None = None) -> TaskSheet | Trouble:
        """Read the problem."""
        answer, _ = self.request({"do": "describe", "path": path, "overrides": overrides, "reference": reference})
        return trouble(answer["error"]) if "error" in answer else TaskSheet.model_validate(answer["sheet"])

    def inputs(self, workload: Workload, seed: int) -> dict[str, Any] | Trouble:
        """Inputs as the problem makes them."""
        answer, out = self.request({"do": "inputs", "workload": workload.model_dump(mode="json"), "seed": seed})
        if "error" in answer:
            return trouble(answer["error"])
        tensors = out[0].tensors(copy=True)
        out[0].close()
        return {n: tensors[n] if n in tensors else tree.unflatten(answer["scalars"][n], {}) for n in answer["order"]}

    def state(self, workload: Workload, seed: int) -> tuple[Calling, dict[str, torch.Tensor]] | Trouble:
        """How a kernel is called at this workload, and the tensors that it starts from."""
        answer, out = self.request({"do": "state", "workload": workload.model_dump(mode="json"), "seed": seed})
        if "error" in answer:
            return trouble(answer["error"])
        tensors = out[0].tensors(copy=True)
        out[0].close()
        return Calling.model_validate(answer["calling"]), tensors

    def run(self, inputs: Inputs, workload: Workload, **options: Any) -> Outcome:
        """The reference's result on ``inputs``. Options: ``state``, ``dtype`` ("float64": the oracle),
        ``requires_grad``, ``cotangents``, ``seed``, ``observe``."""
        return self.run_many([{"inputs": inputs, "workload": workload, **options}])[0]

    def check(self, inputs: Inputs, outcome: Outcome) -> tuple[bool | None, str]:
        """What the problem's own checker says of a result; None: it says nothing."""
        tensors, scalars = split(inputs)
        head = {"do": "check", "order": list(inputs), "scalars": scalars, "tree": outcome.tree}
        answer, _ = self.request(head, (Bundle.pack(tensors), Bundle.pack(outcome.outputs)))
        if "error" in answer:
            return None, str(trouble(answer["error"]))
        return answer["ok"], str(answer["message"])

    def run_many(self, runs: list[dict[str, Any]]) -> list[Outcome]:
        """Several runs in one message; each is a dict of the arguments of ``run``."""
        requests = [self._request(**r) for r in runs]
        heads = [{**head, "bundles": [b.head for b in bundles]} for head, bundles in requests]
        answer, out = self.request(
            {"do": "batch", "requests": heads}, tuple(b for _, bundles in requests for b in bundles)
        )
        if "error" in answer:
            return [Outcome(trouble=trouble(answer["error"])) for _ in runs]
        outcomes = []
        for one in answer["answers"]:
            outcomes.append(self._result(one, out[: one["made"]]))
            for b in out[: one["made"]]:
                b.close()
            out = out[one["made"] :]
        return outcomes

    def _request(
        self, *, inputs: Inputs, workload: Workload, state: Mapping[str, torch.Tensor] | None = None,
        dtype: str | None = None, requires_grad: tuple[str, ...] = (),
        cotangents: Mapping[str, torch.Tensor] | None = None, seed: int = 0, observe: bool = False,
        trace: bool = False, mutated: tuple[str, ...] = (),
    ) -> tuple[dict[str, Any], list[Bundle]]:  # fmt: skip
        tensors, scalars = split(inputs)
        bundles = [Bundle.pack(tensors)]
        bundles += [Bundle.pack(state)] if state is not None else []
        bundles += [Bundle.pack(cotangents)] if cotangents is not None else []
        head = {
            "do": "reference",
            "order": list(inputs),
            "scalars": scalars,
            "workload": workload.model_dump(mode="json"),
            "dtype": dtype,
            "has_state": state is not None,
            "has_cotangents": cotangents is not None,
            "requires_grad": list(requires_grad),
            "seed": seed,
            "observe": observe,
            "trace": trace,
            "mutated": list(mutated),
        }
        return head, bundles

    def _result(self, answer: dict[str, Any], out: list[Bundle]) -> Outcome:
        if "error" in answer:
            return Outcome(trouble=trouble(answer["error"]))
        return Outcome(
            outputs=out[0].tensors(copy=True), inputs_after=out[1].tensors(copy=True), tree=answer["tree"],
            grads=out[2].tensors(copy=True) if len(out) > 2 else {}, seen=answer["seen"],
            requires_grad=answer["requires_grad"], alias=dict(answer["alias"]), trace=answer.get("trace"),
        )  # fmt: skip

    def law(self, name: str, inputs: Inputs, workload: Workload, results: list[Outcome], *, seed: int = 0,
            itself: bool = False) -> LawAnswer:  # fmt: skip
        """Go on with a law of the task, given the results of the runs that it asked for so far (gradients stand in
        ``grads``). ``itself``: on the reference instead."""
        tensors, scalars = split(inputs)
        given = [o.grads or o.outputs for o in results]
        trees = [{"dict": {n: {"$": n} for n in o.grads}} if o.grads else o.tree for o in results]
        head = {"do": "law", "name": name, "order": list(inputs), "scalars": scalars, "results": trees, "self": itself,
                "workload": workload.model_dump(mode="json"), "seed": seed}  # fmt: skip
        answer, out = self.request(head, (Bundle.pack(tensors), *(Bundle.pack(g) for g in given)))
        if "error" in answer:
            return LawAnswer(trouble=trouble(answer["error"]))
        if "need" not in answer:
            return LawAnswer(ok=bool(answer["ok"]), message=str(answer["message"]))
        need, found = answer["need"], out[0].tensors(copy=True)
        asked = {n: found[n] if n in found else tree.unflatten(need["scalars"][n], {}) for n in need["order"]}
        cotangents = out[1].tensors(copy=True) if need["gradient"] else {}
        return LawAnswer(inputs=asked, gradient=tuple(need["gradient"]), cotangents=cotangents)


class KernelSession(Session):
    """The candidate in its sealed child, with its evaluator beside it where launches are evaluated elsewhere."""

    def __init__(self, kernel: Kernel, *, engine: str = "ir", **options: Any):
        self.kernel = kernel
        options["reads"] = (*options.get("reads", ()), str(Path(kernel.path).resolve().parent))
        self.engine = engine
        self.evaluator: Session | None = None
        self._held: Bundle | None = None
        others: tuple[socket.socket, ...] = ()
        ends: tuple[socket.socket, ...] = ()
        if kernel.language == "triton":
            a, b = socket.socketpair()
            ends = (a, b)
            self.evaluator = Session(
                "evaluator", interpret=engine == "interpreter", others=(b,), name="evaluator", **options
            )
            others = (a,)
        super().__init__("kernel", others=others, name="kernel", **options)
        for s in ends:
            s.close()
        self.load_trouble = self._load()

    def _load(self) -> Trouble | None:
        path = str(Path(self.kernel.path).resolve())
        if self.evaluator is not None:
            answer, _ = self.evaluator.ask_raw(
                {"do": "start", "files": {path: self.kernel.text}, "engine": self.engine}
            )
            if "error" in answer:
                return trouble(answer["error"])
        sheet = {"path": path, "text": self.kernel.text, "entry": self.kernel.entry}
        answer, _ = self.ask_raw({"do": "load", "language": self.kernel.language, "kernel": sheet})
        return trouble(answer["error"]) if "error" in answer else None

    def build(self, how: Calling, state: Mapping[str, torch.Tensor]) -> Trouble | None:
        """Make the callable."""
        if self.load_trouble:
            return self.load_trouble
        bundle = Bundle.pack(state)
        answer, _ = self.ask_raw({"do": "build", "calling": how.model_dump(mode="json")}, (bundle,))
        bundle.close()
        return trouble(answer["error"]) if "error" in answer else None

    def update(self, state: Mapping[str, torch.Tensor]) -> bool | Trouble:
        """Change a module's parameters and buffers in place; False where the kernel is no module."""
        bundle = Bundle.pack(state)
        answer, _ = self.ask_raw({"do": "update"}, (bundle,))
        bundle.close()
        return trouble(answer["error"]) if "error" in answer else bool(answer["updated"])

    def call(
        self,
        inputs: Inputs,
        *,
        requires_grad: tuple[str, ...] = (),
        cotangents: Mapping[str, torch.Tensor] | None = None,
        poison: int | None = 0xFF,
        guard: int = 0xFF,
        place: str = "start",
        observe: bool = False,
        keep: bool = False,
        mode: str = "normal",
        seconds: float | None = None,
        seed: int = 0,
        reuse: bool = False,
        twice: bool = False,
        only: int | None = None,
        salt: int = 0,
        order: int = 0,
        seal: dict[str, Any] | None = None,
        trace: bool = False,
        mutated: tuple[str, ...] = (),
        config: int = 0,
        tune: bool = False,
        binary: bool = False,
    ) -> Outcome:
        """One call. ``mode``, ``only``, ``salt`` and ``order`` are for the evaluator (``role_evaluator.py``). ``reuse``:
        the inputs take the addresses of the last call with ``reuse``, if their layouts agree. ``twice``: run backward
        twice. ``seal``: unreadable pages around the inputs (``pages.protect``). ``trace``: record what
        the call does (``prove/trace.py``), with the inputs ``mutated`` among its results.
        ``config``, ``tune``: which configuration of tuned kernels, and whether all are tried first (``_launches.py``).
        ``binary``: compile launches for the target too (``binaries.py``)."""
        tensors, scalars = split(inputs)
        bundle, held = self._inputs(tensors, guard, place, reuse)
        before = bundle.bytes().clone()
        bundles = [bundle] + ([Bundle.pack(cotangents)] if cotangents is not None else [])
        if self.evaluator is not None:
            self.evaluator.ask_raw(
                {"do": "mode", "mode": mode, "only": only, "salt": salt, "order": order, "binary": binary}
            )
        head = {
            "do": "call",
            "order": list(inputs),
            "scalars": scalars,
            "requires_grad": list(requires_grad),
            "poison": poison,
            "observe": observe,
            "keep": keep,
            "seed": seed,
            "held": held,
            "twice": twice,
            "seal": seal,
            "trace": trace,
            "mutated": list(mutated),
            "config": config,
            "tune": tune,
        }
        answer, out = self.ask_raw(head, tuple(bundles), seconds=seconds)
        launches: list[dict[str, Any]] = []
        if self.evaluator is not None:
            launches = self.evaluator.ask_raw({"do": "report"})[0].get("launches", [])
        outcome = self._outcome(answer, out, bundle, before, tensors)
        outcome.launches = launches
        if cotangents is not None:
            now = bundles[1].tensors()
            outcome.cotangents_changed = tuple(n for n, t in cotangents.items() if not same_bits(t, now[n]))
        for b in (*bundles, *out):
            if b is not self._held:
                b.close()
        return outcome

    def virtual(self, tensors: Mapping[str, list[Any]], scalars: dict[str, Any], order: list[str],
                probing: dict[str, Any], seconds: float | None = None) -> Outcome:  # fmt: skip
        """A call at sizes beyond memory (``virtual.py``, ``probes.py``): only ``trouble`` and ``launches`` are set."""
        assert self.evaluator is not None
        self.evaluator.ask_raw({"do": "mode", "mode": "normal", "probing": probing})
        head = {"do": "virtual", "virtual": dict(tensors), "scalars": scalars, "order": order}
        answer, _ = self.ask_raw(head, seconds=seconds)
        launches = self.evaluator.ask_raw({"do": "report"})[0].get("launches", [])
        return Outcome(trouble=trouble(answer["error"]) if "error" in answer else None, launches=launches)

    def _inputs(self, tensors: dict[str, torch.Tensor], guard: int, place: str, reuse: bool) -> tuple[Bundle, str]:
        """The bundle of a call, and what the child is to do with its memory."""
        fresh = Bundle.pack(tensors, guard=guard, place=place)
        if not reuse:
            return fresh, ""
        if self._held is not None and self._held.head == fresh.head:
            self._held.bytes().copy_(fresh.bytes())
            fresh.close()
            return self._held, "again"
        self._held = fresh
        return fresh, "first"

    def _outcome(self, answer: dict[str, Any], out: list[Bundle], bundle: Bundle, before: torch.Tensor,
                 tensors: dict[str, torch.Tensor]) -> Outcome:  # fmt: skip
        after = bundle.tensors(copy=True)
        seen = Outcome(
            inputs_after=after, damage=tuple(bundle.damage(before)),
            changed=tuple(n for n, t in tensors.items() if not same_bits(t, after[n])),
        )  # fmt: skip
        if "error" in answer:
            seen.trouble = trouble(answer["error"])
            return seen
        try:
            seen.tree, seen.odd = answer["tree"], dict(answer["odd"])
            if seen.odd:
                return seen
            seen.outputs = out[0].tensors(copy=True)
            seen.grads = out[1].tensors(copy=True) if len(out) > 1 else {}
            seen.grads_again = out[2].tensors(copy=True) if len(out) > 2 else {}
            seen.patched, seen.late = tuple(map(str, answer["patched"])), tuple(map(str, answer["late"]))
            seen.places = dict(answer.get("places", {}))
            seen.tuned = dict(answer.get("tuned", {}))
            seen.alias, seen.stale = dict(answer["alias"]), tuple(answer["stale"])
            seen.seen, seen.threads = dict(answer["seen"]), int(answer["threads"])
            seen.requires_grad = dict(answer["requires_grad"])
            seen.trace = answer.get("trace")
        except (KeyError, TypeError, ValueError, IndexError, transport.ProtocolFault) as e:
            seen.trouble = Trouble("protocol", f"the process sent a malformed answer ({e!r})")
        return seen

    def close(self) -> None:
        super().close()
        if self.evaluator is not None:
            self.evaluator.close()


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Equal bit for bit (NaN equals itself), by element."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.numel() == 0:
        return True
    x, y = (t.detach().reshape(-1).clone(memory_format=torch.contiguous_format).view(torch.uint8) for t in (a, b))
    return torch.equal(x, y)
