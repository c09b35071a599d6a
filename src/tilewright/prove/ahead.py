"""What an examination has begun before it is asked for: the truth about cases, and plain calls of the kernel.

Parent, reference, kernel and evaluator are processes of their own, so while the parent compares one result, the kernel
can be at the next case. One call is under way at a time, in the order of the cases; whatever else wants the kernel
first waits for what was begun (``settle``) and drops it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, Generic, TypeVar

from ..kernel import Kernel
from .child.kernel_session import KernelSession
from .child.session import Limits

T = TypeVar("T")
QUICK_S = 1.0
WAIT_S = 5.0  # for a call whose result nobody wants any more; then its processes are killed


class Begun(Generic[T]):
    """Work on cases (or anything), one after the other, beside the caller's; ``name`` is the thread's."""

    def __init__(self, name: str):
        self._worker = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._futures: dict[int, tuple[Any, Future[T]]] = {}
        self._latest: Future[T] | None = None

    def begin(self, case: Any, work: Callable[..., T], *args: Any) -> None:
        """Unless it has begun."""
        if id(case) not in self._futures:
            self._latest = self._worker.submit(work, *args)
            self._futures[id(case)] = case, self._latest

    def take(self, case: Any) -> Future[T] | None:
        """What was begun on a case, out of the list; the caller waits for it."""
        held = self._futures.pop(id(case), None)
        return held[1] if held is not None and held[0] is case else None

    def rest(self) -> list[tuple[Any, Future[T]]]:
        """All that was begun and not taken, out of the list."""
        held, self._futures = list(self._futures.values()), {}
        return held

    def stop(self, sessions: Iterable[KernelSession] = ()) -> None:
        """Nothing more is begun; what runs is waited for, and if that needs ``sessions``, these are ended before."""
        self._worker.shutdown(wait=False, cancel_futures=True)
        if self._latest is not None and not self._latest.done():
            for session in sessions:
                kill(session)
        self._worker.shutdown()


class Children:
    """Children of a kernel. Of one in Triton, which has two processes and is soon called in a fresh one, the next is
    opened before it is asked for, unless the last did not load or was long about it."""

    def __init__(self, kernel: Kernel, limits: Limits, sandbox: str):
        self._open = partial(KernelSession, kernel, limits=limits, sandbox=sandbox)
        self._early = kernel is not None and kernel.language == "triton"
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="spare")
        self._next: Future[KernelSession] | None = None

    def take(self) -> KernelSession:
        """A child that did nothing yet."""
        started = time.monotonic()
        held, self._next = self._next, None
        session = held.result() if held is not None else self._open()
        if session.dead:
            session = self._open()
        if self._early and session.load_trouble is None and time.monotonic() - started < QUICK_S:
            self._next = self._worker.submit(self._open)
        return session

    def stop(self) -> None:
        """End the one that nobody took."""
        if self._next is not None and not self._next.cancel():
            with contextlib.suppress(Exception):
                self._next.result().close()
        self._worker.shutdown()


def drop(calls: Iterable[tuple[Any, Future[Any]]], sessions: Iterable[KernelSession]) -> None:
    """Wait for calls, or end them: those that did not start are cancelled, and one that takes longer than ``WAIT_S``
    loses its processes. Nobody wants their results."""
    for future in [f for _, f in calls if not f.cancel()]:
        try:
            future.exception(WAIT_S)
        except TimeoutError:
            for session in sessions:
                kill(session)
            future.exception()


def kill(session: KernelSession) -> None:
    """End the processes of a session at once; whoever waits for them learns that they died."""
    session.server.kill(session.pid)
    if session.evaluator is not None:
        session.evaluator.server.kill(session.evaluator.pid)
