"""A system call filter, built by hand: what a kernel or a reference never needs answers "not permitted".

The answer is an error and not a kill, since libraries probe. ``clone3`` answers "no such call": its flags lie in
memory, where a filter can't look, and libc then falls back to ``clone``, whose flags can be checked.
Method: classic BPF over ``struct seccomp_data`` (Linux, Documentation/userspace-api/seccomp_filter.rst).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket

from . import syscalls

# name: (x86_64, aarch64); None where the architecture lacks the call
NUMBERS: dict[str, tuple[int | None, int | None]] = {
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201), "accept": (43, 202),
    "accept4": (288, 242), "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "process_madvise": (440, 440), "kcmp": (312, 272), "pidfd_open": (434, 434), "pidfd_getfd": (438, 438),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "mknod": (133, None), "mknodat": (259, 33),
    "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "fanotify_init": (300, 262),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225),
    "acct": (163, 89), "quotactl": (179, 60), "quotactl_fd": (443, 443), "syslog": (103, 116), "vhangup": (153, 58),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "sethostname": (170, 161), "setdomainname": (171, 162), "iopl": (172, None), "ioperm": (173, None),
    "modify_ldt": (154, None), "memfd_secret": (447, 447), "migrate_pages": (256, 238), "move_pages": (279, 239),
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424), "clone": (56, 220), "clone3": (435, 435),
    "personality": (135, 92), "prctl": (157, 167), "ioctl": (16, 29),
}  # fmt: skip
SIGNALS = frozenset({"kill", "tgkill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal"})
CONDITIONAL = frozenset({"clone", "clone3", "personality", "prctl", "ioctl"}) | SIGNALS
DENIED = tuple(n for n in NUMBERS if n not in CONDITIONAL)
LOCAL = ("socket", "bind", "listen", "accept", "accept4")
NEW_NAMESPACES = 0x7E020080  # CLONE_NEW{USER,PID,NET,IPC,UTS,CGROUP,NS,TIME}
NAMESPACES_ONLY = ("unshare", "setns")

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_LOAD, _JEQ, _JGE, _JSET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _ARCH, _ARG0 = 0, 4, 16
_TIOCSTI = 0x5412

Instruction = tuple[int, int, int, int]


class _Filter(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32)]


class _Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_uint16), ("filter", ctypes.POINTER(_Filter))]


def supported() -> bool:
    """Whether the filter is known for this machine's architecture."""
    return platform.machine() in _ARCHITECTURES and ctypes.sizeof(ctypes.c_void_p) == 8


def program(
    *, signals_to: int | None = None, machine: str | None = None, local_sockets: bool = False
) -> list[Instruction]:
    """The filter. ``signals_to``: the only process id that may be signalled (0, its own group, may too); None where
    a process namespace or Landlock already holds signals in. ``local_sockets``: UNIX sockets may be made and bound, as
    CUDA's driver does when it starts; connecting and datagrams stay forbidden."""
    column, arch = _ARCHITECTURES[machine or platform.machine()]
    rules = [(n, _deny()) for n in DENIED if not (local_sockets and n in LOCAL)]
    rules += [("socket", _local())] if local_sockets else []
    rules.append(("clone3", _answer(errno.ENOSYS)))
    rules.append(("clone", [(_LOAD, 0, 0, _ARG0), (_JSET, 0, 1, NEW_NAMESPACES), *_deny(), (_RETURN, 0, 0, _ALLOW)]))
    rules.append(("personality", _only(0, 0xFFFFFFFF)))
    rules.append(("prctl", _never(0, syscalls.PR_SET_PDEATHSIG)))
    rules.append(("ioctl", _never(1, _TIOCSTI)))
    if signals_to is not None:
        for name in ("kill", "tgkill"):
            rules.append((name, _only(0, signals_to, *((0,) if name == "kill" else ()))))
        rules += [(n, _deny()) for n in ("tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal")]
    return _assemble(rules, column, arch)


def namespaces_forbidden(machine: str | None = None) -> list[Instruction]:
    """The filter of a machine that forbids new namespaces, as a default container does; for trying that out."""
    column, arch = _ARCHITECTURES[machine or platform.machine()]
    rules = [(n, _deny()) for n in (*NAMESPACES_ONLY, "mount", "mount_setattr")]
    rules.append(("clone3", _answer(errno.ENOSYS)))
    rules.append(("clone", [(_LOAD, 0, 0, _ARG0), (_JSET, 0, 1, NEW_NAMESPACES), *_deny(), (_RETURN, 0, 0, _ALLOW)]))
    return _assemble(rules, column, arch)


def _answer(code: int) -> list[Instruction]:
    return [(_RETURN, 0, 0, _ERRNO | code)]


def _deny() -> list[Instruction]:
    return _answer(errno.EPERM)


def _only(argument: int, *values: int) -> list[Instruction]:
    """Permitted with one of these values in the low half of an argument."""
    tests: list[Instruction] = []
    for i, v in enumerate(values):
        tests.append((_JEQ, len(values) - i, 0, v & 0xFFFFFFFF))
    return [(_LOAD, 0, 0, _ARG0 + 8 * argument), *tests, *_deny(), (_RETURN, 0, 0, _ALLOW)]


def _local() -> list[Instruction]:
    """A UNIX socket that sends nothing before it is connected: a stream (1) or packets in sequence (5), no datagrams."""
    datagram = 0b1010
    return [(_LOAD, 0, 0, _ARG0), (_JEQ, 1, 0, socket.AF_UNIX), *_deny(), (_LOAD, 0, 0, _ARG0 + 8),
            (_JSET, 0, 1, datagram), *_deny(), (_RETURN, 0, 0, _ALLOW)]  # fmt: skip


def _never(argument: int, value: int) -> list[Instruction]:
    """Forbidden with this value in the low half of an argument."""
    return [(_LOAD, 0, 0, _ARG0 + 8 * argument), (_JEQ, 0, 1, value), *_deny(), (_RETURN, 0, 0, _ALLOW)]


def _assemble(rules: list[tuple[str, list[Instruction]]], column: int, arch: int) -> list[Instruction]:
    """Each rule's body ends in a return, so a call whose number differs jumps over it."""
    out: list[Instruction] = [(_LOAD, 0, 0, _ARCH), (_JEQ, 1, 0, arch), (_RETURN, 0, 0, _KILL), (_LOAD, 0, 0, _NUMBER)]
    if column == 0:  # the x32 table of x86_64
        out += [(_JGE, 0, 1, 0x40000000), *_deny()]
    for name, body in rules:
        number = NUMBERS[name][column]
        if number is not None:
            out += [(_JEQ, 0, len(body), number), *body]
    return [*out, (_RETURN, 0, 0, _ALLOW)]


def install(code: list[Instruction]) -> None:
    """Put a filter on this thread and all it will start. Needs no_new_privs or root. Raises OSError."""
    table = (_Filter * len(code))(*(_Filter(*i) for i in code))
    wrapped = _Program(len(code), table)
    syscalls.checked(syscalls.libc.prctl(22, 2, ctypes.byref(wrapped), 0, 0), "seccomp")


def run(code: list[Instruction], number: int, arguments: tuple[int, ...] = (), arch: int | None = None) -> int:
    """What a filter answers to a call, computed here: for tests, and for the other architecture."""
    a, at = 0, 0
    words = {_NUMBER: number, _ARCH: arch if arch is not None else _ARCHITECTURES[os.uname().machine][1]}
    for i, value in enumerate(arguments):
        words[_ARG0 + 8 * i], words[_ARG0 + 8 * i + 4] = value & 0xFFFFFFFF, value >> 32 & 0xFFFFFFFF
    while True:
        op, yes, no, k = code[at]
        at += 1
        if op == _LOAD:
            a = words.get(k, 0)
        elif op == _RETURN:
            return k
        else:
            at += yes if {_JEQ: a == k, _JGE: a >= k, _JSET: bool(a & k)}[op] else no
