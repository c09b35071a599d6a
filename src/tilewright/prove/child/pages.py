"""Protected pages: an access that is not allowed ends the process at once.

``protect``: unreadable pages on both sides of a buffer, for kernels in C. ``freeze``: inputs that can only be read.

The pages are those of a bundle's guard zones (``transport.Bundle``); data that begins or ends at a page's edge
(``place``) has no slack on that side.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Any

from .transport import GUARD, PAGE, Bundle

PROTECTION = {"none": 0, "read": 1}  # PROT_NONE, PROT_READ


def protect(bundle: Bundle, how: dict[str, Any]) -> None:
    """Protect the guard zones around the tensors ``how["names"]`` (None: all). ``how["access"]``: ``none``, or
    ``read``, where only writes fault. Raises OSError where the system refuses."""
    if bundle.map is None:
        return
    names, protection = how.get("names"), PROTECTION[how.get("access", "none")]
    start = bundle.bytes().data_ptr()
    for name, entry in bundle.head["tensors"].items():
        if names is None or name in names:
            storage = bundle.head["storages"][entry["storage"]]
            begin = storage["begin"] // PAGE * PAGE
            end = -(-(storage["begin"] + storage["nbytes"]) // PAGE) * PAGE
            for zone in (begin - GUARD, end):
                if 0 <= zone <= bundle.size - GUARD:
                    _mprotect(start + zone, GUARD, protection)


def freeze(bundle: Bundle, names: Sequence[str]) -> None:
    """Make the tensors ``names`` read-only in this process. What shares memory with another tensor stays as it is. Raises
    OSError where the system refuses."""
    if bundle.map is None:
        return
    start = bundle.bytes().data_ptr()
    others = {e["storage"] for n, e in bundle.head["tensors"].items() if n not in names}
    for storage in bundle.head["storages"]:
        if storage["index"] not in others and storage["nbytes"]:
            begin = storage["begin"] // PAGE * PAGE  # no page holds two storages
            _mprotect(start + begin, storage["begin"] + storage["nbytes"] - begin, PROTECTION["read"])


def _mprotect(address: int, length: int, protection: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(length), ctypes.c_int(protection)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"mprotect: {os.strerror(code)}")
