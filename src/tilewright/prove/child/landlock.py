"""What a sealed child may read and write, held by Landlock: it needs no privilege and works inside containers.

Reading is allowed for everything but secrets: dot entries of home directories, ``/etc`` but for what libraries look up
there, ``/run`` (where clusters mount tokens), other children's scratch folders. Writing is allowed in the child's own
scratch folder and to a few devices. Landlock only grants, so the granted paths are listed around the secrets.
Method: Landlock (Salaün, Linux 5.13; signals and abstract sockets since 6.12).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import stat
import sys
from collections.abc import Sequence
from pathlib import Path

from . import syscalls

CREATE, ADD_RULE, RESTRICT = 444, 445, 446
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
FS_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}  # by ABI; device ioctls (ABI 5) are left alone
NET_RIGHTS = 3  # bind and connect of TCP, ABI 4
SCOPES = 3  # abstract UNIX sockets and signals, ABI 6
READ = EXECUTE | READ_FILE | READ_DIR
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | 1 << 14

DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
ACCELERATORS = ("nvidia", "kfd", "dri")
APART = frozenset({"proc", "sys", "dev", "run", "var", "home", "root", "boot", "lost+found"})
ETC = ("alternatives", "ca-certificates", "debian_version", "gai.conf", "group", "host.conf", "hosts", "ld.so.cache",
       "ld.so.conf", "ld.so.conf.d", "localtime", "locale.alias", "locale.conf", "mime.types", "nsswitch.conf",
       "nvidia", "OpenCL", "os-release", "passwd", "pki/tls/certs", "protocols", "services", "ssl/certs",
       "ssl/openssl.cnf", "timezone")  # fmt: skip
HOME_KEPT = (".venv", ".local/lib", ".local/bin", ".local/share/uv", ".cache/uv", ".pyenv", ".conda", ".asdf")


class _Ruleset(ctypes.Structure):
    _fields_ = [("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = [("allowed", ctypes.c_uint64), ("fd", ctypes.c_int32)]


def abi() -> int:
    """Version that this kernel offers; 0 where there is none."""
    try:
        return syscalls.syscall(CREATE, None, 0, 1, what="landlock")
    except OSError:
        return 0


def homes() -> set[str]:
    """Home directories of whoever runs this: by environment and by password file."""
    found = {os.path.realpath(os.path.expanduser("~"))}
    with contextlib.suppress(KeyError):
        found.add(os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir))
    return {h for h in found if h not in ("/", "") and os.path.isdir(h)}


def secret_folders() -> list[str]:
    """Folders that hold tokens and keys, for a kernel without Landlock."""
    dots = [e for h in _all_homes() for e in _entries(h) if os.path.basename(e).startswith(".")]
    kept = tuple(f"/{k.split('/')[0]}" for k in HOME_KEPT)
    needed = _imports()
    return [d for d in dots if not d.endswith(kept) and not any(n.startswith(d) for n in needed)] + ["/run/secrets"]


def readable(extra: tuple[str, ...] = ()) -> list[str]:
    """Paths to grant for reading; ``extra`` are folders that the work needs wherever they lie."""
    own = _all_homes()
    out: list[str] = []
    for entry in _entries("/"):
        holds_a_home = any(h == entry or h.startswith(entry + "/") for h in own)
        if os.path.basename(entry) not in APART and not holds_a_home:
            out += [f"/etc/{name}" for name in ETC] if entry == "/etc" else [entry]
    for parent in {os.path.dirname(h) for h in own} | {"/home"}:
        out += [e for e in _entries(parent) if parent != "/" and e not in own]
    for home in own:
        out += [e for e in _entries(home) if not os.path.basename(e).startswith(".")]
        out += [f"{home}/{k}" for k in HOME_KEPT]
    out += ["/proc", "/sys", "/var/lib", "/var/cache", "/run/nvidia-persistenced"]
    out += _imports() + [os.path.realpath(p) for p in extra]
    return list(dict.fromkeys(out))


def _all_homes() -> set[str]:
    found = homes()
    if os.getuid() == 0:  # root may read them all, so all are filtered
        found |= {"/root"} | set(_entries("/home"))
    return {h for h in found if os.path.isdir(h)}


def _entries(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, n) for n in os.listdir(folder)]
    except OSError:
        return []


def _imports() -> list[str]:
    """Where Python imports from, with links followed."""
    paths = [p for p in (*sys.path, sys.prefix, sys.base_prefix, sys.executable) if p]
    torch = sys.modules.get("torch")
    paths += [str(Path(torch.__file__).resolve().parent)] if torch is not None and torch.__file__ else []
    home = homes()
    return [p for p in dict.fromkeys(os.path.realpath(p) for p in paths) if p not in home and p != "/"]


def devices() -> list[str]:
    """Device files that may be written: the harmless ones and accelerators."""
    return [f"/dev/{d}" for d in DEVICES] + [e for e in _entries("/dev")
                                              if os.path.basename(e).startswith(ACCELERATORS)]  # fmt: skip


def restrict(read: list[str], write: list[str], *, version: int | None = None, also: Sequence[str] = ()) -> int:
    """Hold this thread and all it will start to these paths, without TCP, without signals to the outside where the
    kernel can. ``also``: folders whose files may be read and written, none made or removed. Needs no_new_privs. Returns
    the ABI used, 0 where there is none. Raises OSError."""
    have = abi() if version is None else version
    if have < 1:
        return 0
    rights = FS_RIGHTS[min(have, 3)]
    wanted = _Ruleset(rights, NET_RIGHTS if have >= 4 else 0, SCOPES if have >= 6 else 0)
    size = 24 if have >= 6 else 16 if have >= 4 else 8
    ruleset = syscalls.syscall(CREATE, ctypes.byref(wanted), size, 0, what="landlock")
    try:
        for paths, allowed in ((read, READ), (write, rights)):
            for path in paths:
                _grant(ruleset, path, allowed & rights)
        for path in (*devices(), *also):
            _grant(ruleset, path, (READ_FILE | WRITE_FILE | READ_DIR | 1 << 14) & rights)
        syscalls.syscall(RESTRICT, ruleset, 0, what="landlock")
    finally:
        os.close(ruleset)
    return have


def _grant(ruleset: int, path: str, allowed: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # not there, or out of reach anyway
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            allowed &= FILE_RIGHTS
        rule = _Beneath(allowed, fd)
        syscalls.syscall(ADD_RULE, ruleset, 1, ctypes.byref(rule), 0, what="landlock")
    finally:
        os.close(fd)
