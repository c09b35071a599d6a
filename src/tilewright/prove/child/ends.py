"""What the end of a sealed child means, in words: which limit it ran into, or what the C library said."""

from __future__ import annotations

import errno
import re
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .pool import Ended

MEMORY_WORDS = re.compile(
    r"bad_alloc|MemoryError|not enough memory|can't allocate memory|cannot allocate memory|out of memory"
    r"|OpenBLAS.*(?:allocat|pthread_create)",
    re.IGNORECASE,
)
HEAP_WORDS = re.compile(
    r"^.*(?:double free|free\(\): |malloc\(\): |malloc_consolidate|realloc\(\): |corrupted|munmap_chunk|"
    r"stack smashing).*$",
    re.MULTILINE,
)
BY_SIGNAL = {
    signal.SIGKILL: "it was killed from outside or by itself; where memory ran out, by the system",
    signal.SIGXCPU: "it used up its processor time",
    signal.SIGXFSZ: "it wrote a file beyond the limit",
    signal.SIGSEGV: "it touched memory that is not its own",
    signal.SIGBUS: "it touched memory past the end of a file or buffer",
    signal.SIGFPE: "an integer division by zero or overflow",
    signal.SIGILL: "it ran an instruction that this processor does not have, or ran into a trap",
}
SEALED = "sealed children have no network, no other processes, and write only below $TMPDIR"
REMEDIES = {
    errno.EPERM: SEALED, errno.EACCES: SEALED, errno.EROFS: SEALED,
    errno.EAGAIN: "sealed children may start only so many processes and threads",
    errno.EFBIG: "files of sealed children are limited in size", errno.ENOSPC: "the scratch folder is limited in size",
    errno.EMFILE: "sealed children may have only so many files open",
}  # fmt: skip


def explain(ended: Ended, printed: str) -> tuple[str, str]:
    """Kind and message of the trouble of a child that died by a signal."""
    if said := HEAP_WORDS.search(printed):
        return "crash", f"the process was {ended}: its heap or stack is corrupted ({said.group().strip()[:200]})"
    if MEMORY_WORDS.search(printed):
        return "memory", f"the process was {ended}: it asked for more memory than its limit"
    why = BY_SIGNAL.get(signal.Signals(-ended.code)) if -ended.code in set(signal.Signals) else None
    return "crash", f"the process was {ended}" + (f": {why}" if why else "")


def kind_of(e: BaseException) -> str:
    """Kind of trouble that an exception of user code is: ``memory`` or ``exception``."""
    if isinstance(e, MemoryError) or (isinstance(e, OSError) and e.errno == errno.ENOMEM):
        return "memory"
    return "memory" if isinstance(e, RuntimeError) and MEMORY_WORDS.search(str(e)) else "exception"


def remedy_for(e: BaseException) -> str | None:
    """What to tell someone whose code ran into the seal."""
    if isinstance(e, RuntimeError) and "start new thread" in str(e):
        return REMEDIES[errno.EAGAIN]
    return REMEDIES.get(e.errno) if isinstance(e, OSError) and e.errno else None
