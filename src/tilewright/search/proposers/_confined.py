"""A program that runs as ever, except that some paths are empty to it: ``python -m …_confined NOTE PATH… -- PROGRAM …``.

In a mount namespace of its own an empty folder (or an empty file) lies over each of the paths. Where this machine grants
no such namespace the program runs all the same. NOTE is a file that then holds ``hidden`` or ``open``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ...prove.child import namespaces, syscalls


def hide(paths: list[str]) -> bool:
    """Lay something empty over the paths, for this process and all that it starts. Whether that could be done."""
    flags = namespaces.MS_NOSUID | namespaces.MS_NODEV
    try:
        if not own_mounts():
            return False
        syscalls.mount("none", "/", None, namespaces.MS_REC | namespaces.MS_PRIVATE)
        for path in paths:
            if os.path.isdir(path):
                syscalls.mount("none", path, "tmpfs", flags, "size=64k,mode=755")
            elif os.path.exists(path):
                syscalls.mount(os.devnull, path, None, namespaces.MS_BIND)
    except OSError:
        return False
    return True


def own_mounts() -> bool:
    """A mount namespace; root needs no user namespace for it, and stays root, so that what it starts can seal its own."""
    if os.geteuid() == 0:
        return syscalls.libc.unshare(namespaces.NEWNS) == 0
    entered = namespaces.enter_user_namespace(os.geteuid(), os.getegid())
    return entered and syscalls.libc.unshare(namespaces.NEWNS) == 0


def main(words: list[str]) -> None:
    cut = words.index("--")
    note, paths, program = words[0], words[1:cut], words[cut + 1 :]
    Path(note).write_text("hidden" if hide(paths) else "open")
    try:
        os.execvp(program[0], program)
    except OSError as e:
        print(f"{program[0]}: {e.strerror}", file=sys.stderr)
        sys.exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])
