"""Calls of the Linux kernel that Python has no name for, through ctypes."""

from __future__ import annotations

import ctypes
import os
from typing import Any

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_CAPBSET_DROP = 1, 4, 8, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 36, 38, 47
CAP_DAC_READ_SEARCH, LAST_CAP = 2, 63

libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int, what: str) -> int:
    """The result of a C function; raises OSError with its errno where it is negative."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def syscall(number: int, *arguments: Any, what: str = "syscall") -> int:
    """A raw system call; integers go as longs. Raises OSError."""
    given = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return checked(libc.syscall(ctypes.c_long(number), *given), what)


def prctl(option: int, *arguments: int) -> int:
    """``prctl(2)``. Raises OSError."""
    padded = [ctypes.c_ulong(a) for a in (*arguments, 0, 0, 0, 0)[:4]]
    return checked(libc.prctl(option, *padded), f"prctl({option})")


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """``mount(2)``. Raises OSError."""
    words = [w.encode() if w is not None else None for w in (source, target, kind, data)]
    checked(libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]), f"mount {target}")


class _CapHeader(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]


class _CapData(ctypes.Structure):
    _fields_ = [("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32)]


def set_capabilities(*kept: int) -> None:
    """Keep these capabilities (numbers below 32) in every set, and no other. Raises OSError."""
    header, data = _CapHeader(0x20080522, 0), (_CapData * 2)()
    bits = sum(1 << c for c in kept)
    data[0].effective = data[0].permitted = data[0].inheritable = bits
    checked(libc.capset(ctypes.byref(header), ctypes.byref(data)), "capset")


def drop_bounding_set(*kept: int) -> None:
    """No program executed from here on can gain a capability. Raises OSError where that is not ours to do."""
    for c in range(LAST_CAP + 1):
        if c in kept:
            continue
        try:
            prctl(PR_CAPBSET_DROP, c)
        except OSError as e:
            if e.errno == 22:  # past the last capability that this kernel knows
                return
            raise
