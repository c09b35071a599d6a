"""Messages between parent, fork server and child: a JSON head, and descriptors that ride on its first bytes.

    8 bytes   "TW" + version + number of descriptors, length of the head        (descriptors ride on these bytes)
    head      UTF-8 JSON object

Nothing is pickled, so a message can at worst be malformed: that is a ``ProtocolFault``, blamed on the sender. Without
torch, so that the fork server is on its way before the parent imports that.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import socket
import struct
import time
from collections.abc import Mapping
from typing import Any

HEAD = struct.Struct("!2sBBI")
MAX_HEAD = 64 << 20
MAX_FDS = 128


class ProtocolFault(Exception):
    """The other side sent something that is no message, or closed the connection."""


class Timeout(Exception):
    """No message came within the time allowed."""


def send(sock: socket.socket, head: Mapping[str, Any], fds: tuple[int, ...] = ()) -> None:
    """Send one message; ``fds`` are duplicated into the receiver."""
    body = json.dumps(head).encode()
    first = HEAD.pack(b"TW", 1, len(fds), len(body))
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    try:
        sock.sendmsg([first], rights)
        sock.sendall(body)
    except OSError as e:
        raise ProtocolFault(f"connection lost while sending ({e.strerror})") from None


def receive(sock: socket.socket, timeout: float | None = None) -> tuple[dict[str, Any], list[int]]:
    """Next message and its descriptors. Raises Timeout or ProtocolFault."""
    deadline = None if timeout is None else time.monotonic() + timeout
    fds: list[int] = []
    try:
        first = _read(sock, HEAD.size, deadline, fds)
        magic, version, count, length = HEAD.unpack(first)
        if magic != b"TW" or version != 1 or length > MAX_HEAD:
            raise ProtocolFault(f"not a message: {first!r}")
        body = _read(sock, length, deadline, fds)
        head = json.loads(body)
        if not isinstance(head, dict) or len(fds) != count:
            raise ProtocolFault("malformed message")
        return head, fds
    except (ValueError, UnicodeDecodeError, RecursionError) as e:
        close(fds)
        raise ProtocolFault(f"malformed message: {e}") from None
    except (ProtocolFault, Timeout):
        close(fds)
        raise


def _read(sock: socket.socket, size: int, deadline: float | None, fds: list[int]) -> bytes:
    chunks = bytearray()
    while len(chunks) < size:
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise Timeout
            sock.settimeout(left)
        else:
            sock.settimeout(None)
        try:
            data, rights, _, _ = sock.recvmsg(size - len(chunks), socket.CMSG_SPACE(MAX_FDS * 4))
        except TimeoutError:
            raise Timeout from None
        except OSError as e:
            raise ProtocolFault(f"connection lost ({e.strerror})") from None
        for level, kind, raw in rights:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.extend(array.array("i", raw[: len(raw) - len(raw) % 4]))
        if not data:
            raise ProtocolFault("the process closed its connection")
        chunks += data
    return bytes(chunks)


def close(fds: list[int]) -> None:
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)
