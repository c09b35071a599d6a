"""Run a command under each set of privileges that sealed children must hold under.

* ``root``: as root, namespaces allowed (skipped when the tests don't run as root);
* ``other``: as a user without any privilege;
* ``forbidden``: new namespaces and mounts are refused, as in a default container;
* ``other-forbidden``: both.

>>> run("forbidden", [sys.executable, "-m", "pytest", "tests/prove/test_forgeries.py"])     # doctest: +SKIP
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tilewright.prove.child import namespaces, seccomp, syscalls

REGIMES = ("root", "other", "forbidden", "other-forbidden")
NOBODY = 65534
ROOT = Path(__file__).resolve().parents[2]


def unavailable(name: str) -> str | None:
    """Why this regime can't be had here."""
    if name == "root" and os.geteuid() != 0:
        return "needs root"
    if "forbidden" in name and not seccomp.supported():
        return "needs a system call filter"
    return None


def run(name: str, command: list[str], *, timeout: float = 300.0, env: dict[str, str] | None = None,
        **options: Any) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """Run a command under a regime, with a home of its own. Skips the test where the regime can't be had."""
    if why := unavailable(name):
        pytest.skip(f"regime '{name}': {why}")
    with tempfile.TemporaryDirectory(prefix="regime-") as home:
        os.chmod(home, 0o755)
        return subprocess.run(command, **_prepared(name, home, env), timeout=timeout, text=True, capture_output=True,
                              **options)  # fmt: skip


def popen(name: str, command: list[str], home: str, **options: Any) -> subprocess.Popen[str]:
    """The same, without waiting."""
    if why := unavailable(name):
        pytest.skip(f"regime '{name}': {why}")
    return subprocess.Popen(command, **_prepared(name, home, None), text=True, **options)


def call(name: str, function: Callable[..., Any], *arguments: Any, timeout: float = 300.0) -> Any:
    """The JSON-like result of ``function(*arguments)`` in a fresh Python under a regime. The function is found again by
    its file and name, so it must stand at the top level of a file that imports no more than it may."""
    file = sys.modules[function.__module__].__file__
    code = _CALL.format(file=file, name=function.__name__, arguments=json.dumps(arguments))
    done = run(name, [sys.executable, "-c", code], timeout=timeout)
    marked = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    assert done.returncode == 0, f"regime {name}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert marked, f"regime {name}: no result\n{done.stdout}\n{done.stderr}"
    return json.loads(marked[-1].removeprefix("RESULT "))


_CALL = """
import importlib.util, json, sys
sys.path[:0] = [{file!r}.rpartition("/")[0], {file!r}.rpartition("/tests/")[0] + "/tests/prove"]
spec = importlib.util.spec_from_file_location("under_regime", {file!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
out = getattr(module, {name!r})(*json.loads({arguments!r}))
print("RESULT " + json.dumps(out), flush=True)
from tilewright.prove.child import pool
pool.shutdown()
"""


def _prepared(name: str, home: str, env: dict[str, str] | None) -> dict[str, Any]:
    ready = {**os.environ, "OMP_NUM_THREADS": "1", "HOME": home, "TMPDIR": home, "PYTHONDONTWRITEBYTECODE": "1",
             "TILEWRIGHT_LEDGER": f"{home}/ledger.sqlite", **(env or {})}  # fmt: skip
    options: dict[str, Any] = {"env": ready, "cwd": str(ROOT)}
    other = "other" in name and os.geteuid() == 0
    if other:
        os.chown(home, NOBODY, NOBODY)

    def become() -> None:
        if other:
            become_other()
        if "forbidden" in name:
            forbid_namespaces()

    return {**options, "preexec_fn": become}


def forbid_namespaces() -> None:
    """From here on, unshare, setns, mount and clone with new namespaces answer EPERM."""
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    seccomp.install(seccomp.namespaces_forbidden())


def become_other() -> None:
    """Become a user without privileges, who can read the checkout and Python wherever they lie."""
    if syscalls.libc.unshare(namespaces.NEWNS) == 0:
        syscalls.mount("none", "/", None, namespaces.MS_REC | namespaces.MS_PRIVATE)
        for path in (ROOT, Path(sys.prefix), Path(sys.base_prefix)):
            for folder in (*reversed(path.parents), path):
                if not folder.stat().st_mode & stat.S_IXOTH:
                    _expose(str(folder))
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def _expose(folder: str) -> None:
    """Put a folder that anyone may enter over one that they may not, with the same entries, in this mount namespace."""
    held = {n: os.open(f"{folder}/{n}", os.O_PATH | os.O_NOFOLLOW) for n in os.listdir(folder)}
    syscalls.mount("exposed", folder, "tmpfs", 0, "size=1m,mode=755")
    for name, fd in held.items():
        target, mode = f"{folder}/{name}", os.fstat(fd).st_mode
        if stat.S_ISLNK(mode):
            os.symlink(os.readlink("", dir_fd=fd), target)
        elif stat.S_ISDIR(mode):
            os.mkdir(target)
            syscalls.mount(f"/proc/self/fd/{fd}", target, None, namespaces.MS_BIND | namespaces.MS_REC)
        elif stat.S_ISREG(mode):
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
            syscalls.mount(f"/proc/self/fd/{fd}", target, None, namespaces.MS_BIND)
        os.close(fd)
