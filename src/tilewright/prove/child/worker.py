"""What runs in a sealed child, from the fork to the last answer. One child has one role:

* ``reference`` reads the problem file and runs its code: describe, inputs, state, reference.
* ``kernel`` loads the candidate and calls it.
* ``evaluator`` runs the candidate's device kernels, in a process that the candidate does not share.

A child answers with raw buffers and observations, never with a judgement. Everything it says about itself may be
forged; what decides is compared or measured by the parent or the evaluator.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
import threading
from typing import Any

import numpy
import torch

from . import preload, roles, sandbox, transport

if importlib.util.find_spec("triton"):
    import triton


roles.preload()
preload.preload()


def versions() -> dict[str, str]:
    """Versions of what a child runs with."""
    found = {"python": sys.version.split()[0], "torch": torch.__version__, "numpy": numpy.__version__}
    if "triton" in sys.modules:
        found["triton"] = triton.__version__
    return found


def enter(request: dict[str, Any], fds: list[int], scratch: str | None = None) -> int:
    """Seal this process and serve its role until the parent closes the connection. Returns the exit status."""
    os.setsid()
    channel_fd, output_fd, *more = fds
    os.dup2(output_fd, 1)
    os.dup2(output_fd, 2)
    keep = {0, 1, 2, channel_fd, *more}
    transport.close([int(fd) for fd in os.listdir("/proc/self/fd") if int(fd) not in keep])
    policy, limits = request.get("sandbox", "best"), request.get("limits", {})
    try:
        state = sandbox.enter(policy, limits, scratch=scratch, reads=tuple(request.get("reads", ())))
    except Exception as e:  # told, and then not run: a child that could not be sealed as asked serves nothing
        transport.send(socket.socket(fileno=channel_fd), {"error": {**roles.describe(e), "user_code": False}})
        return 0
    torch.set_num_threads(1)
    threading.excepthook = threading.__excepthook__
    channel = socket.socket(fileno=channel_fd)
    others = [socket.socket(fileno=fd) for fd in more]
    transport.send(channel, {"sealed": state})
    role = roles.create(request["role"], others)
    if hasattr(role, "serve"):
        return role.serve(channel)
    while True:
        try:
            head, received = transport.receive(channel)
        except transport.ProtocolFault:
            return 0
        answer, bundles = roles.answer(role, head, received)
        transport.send(channel, answer, tuple(b.fd for b in bundles))
        for b in bundles:
            b.close()
