"""Fifteen ways to be accepted without computing the answer. Each is rejected, as what it is.

``sandbox`` is a fixture, so that the same kernels can be run under another way of sealing.
"""

from __future__ import annotations

import pytest
from trial import RIGHT, trial

GATES = ("interface", "values", "purity", "honesty")


@pytest.fixture
def sandbox() -> str:
    return "best"


FORGERIES = {
    "prints accept": (
        """
def kernel(x):
    print('{"verdict": "accept"}', flush=True)
    return torch.zeros_like(x)
""",
        {"wrong"},
    ),
    "writes to inherited descriptors": (
        """
import json, os, stat, struct
def kernel(x):
    body = json.dumps({"tree": {"$": "out"}, "odd": {}, "verdict": "accept", "bundles": []}).encode()
    for fd in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                os.write(fd, struct.pack("!2sBBI", b"TW", 1, 0, len(body)) + body)
        except OSError:
            pass
    return launch(x)
""",
        {"cheat"},
    ),
    "patches torch.allclose": (
        """
torch.allclose = lambda *a, **k: True
def kernel(x):
    return launch(x)
""",
        {"cheat"},
    ),
    "ends the process with success": (
        """
import os
def kernel(x):
    os._exit(0)
""",
        {"wrong"},
    ),
    "raises SystemExit(0)": (
        """
def kernel(x):
    raise SystemExit(0)
""",
        {"wrong"},
    ),
    "keeps results by address": (
        """
kept = {}
def kernel(x):
    key = (x.data_ptr(), x.shape)
    if key not in kept:
        kept[key] = launch(x)
    return kept[key].clone()
""",
        {"cheat"},
    ),
    "keeps results by content sample": (
        """
kept = {}
def kernel(x):
    key = (x.shape, float(x.flatten()[0]), float(x.flatten()[-1]))
    if key not in kept:
        kept[key] = launch(x)
    return kept[key].clone()
""",
        {"cheat"},
    ),
    "goes astray after some calls": (
        """
calls = 0
def kernel(x):
    global calls
    calls += 1
    return launch(x) if calls % 10 else torch.zeros_like(x)
""",
        {"wrong"},
    ),
    "answers from the seed": (
        """
def kernel(x):
    torch.manual_seed(torch.initial_seed())
    return torch.softmax(torch.randn(x.shape), -1)
""",
        {"wrong"},
    ),
    "right under the expected seed only": (
        """
def kernel(x):
    return launch(x) if torch.initial_seed() > 100000 else torch.zeros_like(x)
""",
        {"cheat"},
    ),
    "computes later in a thread": (
        """
import threading, time
def kernel(x):
    y = launch(x)
    def later():
        time.sleep(0.02)
        y.add_(0)
        time.sleep(1)
    threading.Thread(target=later, daemon=True).start()
    return y
""",
        {"cheat"},
    ),
    "subclasses Tensor": (
        """
class Lazy(torch.Tensor):
    pass
def kernel(x):
    return launch(x).as_subclass(Lazy)
""",
        {"cheat"},
    ),
    "catches its own failure and calls torch": (
        """
def kernel(x):
    try:
        return launch(x)
    except Exception:
        return torch.softmax(x, -1)
""",
        {"cheat"},
    ),
    "its launch fails and torch answers": (
        """
@triton.jit
def broken(x_ptr, n: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, n), undefined_name)
def kernel(x):
    try:
        broken[(1,)](x, n=16)
    except Exception:
        pass
    return torch.softmax(x, -1)
""",
        {"cheat"},
    ),
    "launches for show": (
        """
def kernel(x):
    launch(x)
    return torch.softmax(x, -1)
""",
        {"cheat"},
    ),
    "launches a copy for show": (
        """
@triton.jit
def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)
def kernel(x):
    s, y = torch.softmax(x, -1), torch.empty_like(x)
    copy[(triton.cdiv(x.numel(), 64),)](s, y, x.numel(), BLOCK=64)
    return y
""",
        {"cheat"},
    ),
    "computes one row and lets torch do the rest": (
        """
def kernel(x):
    y = torch.softmax(x, -1)
    y[:1] = launch(x[:1])
    return y
""",
        {"cheat"},
    ),
    "copies from freed memory": (
        """
def kernel(x):
    return torch.empty_like(x)
""",
        {"wrong"},
    ),
    "patches the launch hook": (
        """
from triton.runtime.jit import JITFunction
def run(self, x, y, n, **options):
    y.copy_(torch.softmax(x, -1))
JITFunction.run = run
def kernel(x):
    return launch(x)
""",
        {"cheat"},
    ),
    "patches the recorder": (
        """
from triton.runtime.jit import JITFunction
recorder = next(c.cell_contents for c in JITFunction.run.__closure__)
def fake(fn, grid, args, kwargs):
    args[1].copy_(torch.softmax(args[0], -1))
recorder.launch = fake
def kernel(x):
    return launch(x)
""",
        {"cheat"},
    ),
    "forges a launch record": (
        """
import hashlib, json, os, struct
from triton.runtime.jit import JITFunction
channel = next(c.cell_contents for c in JITFunction.run.__closure__).evaluator.channel
def kernel(x):
    text = open(__file__, "rb").read()
    body = json.dumps({"do": "launch", "function": "imagined", "grid": [1], "arguments": {}, "options": {},
                       "globals": {},
                       "file": {"path": os.path.realpath(__file__), "sha256": hashlib.sha256(text).hexdigest()},
                       "bundle": {"storages": [], "tensors": {}, "size": 0, "guard": 255}}).encode()
    fd = os.memfd_create("x")
    import array, socket
    channel.sendmsg([struct.pack("!2sBBI", b"TW", 1, 1, len(body))],
                    [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
    channel.sendall(body)
    channel.recv(65536)
    return torch.softmax(x, -1)
""",
        {"cheat"},
    ),
    "sends a malformed launch record": (
        """
from triton.runtime.jit import JITFunction
channel = next(c.cell_contents for c in JITFunction.run.__closure__).evaluator.channel
def kernel(x):
    channel.sendall(b"launch 1 accepted")
    return torch.softmax(x, -1)
""",
        {"cheat"},
    ),
    "swaps its source on disk": (
        """
def kernel(x):
    text = open(__file__).read()
    try:
        with open(__file__, "w") as f:
            f.write(text + "\\n# another kernel\\n")
    except OSError:
        return torch.softmax(x, -1)
    return launch(x)
""",
        {"cheat"},
    ),
    "launches from a file that it writes": (
        """
import importlib.util, os, tempfile
def kernel(x):
    path = os.path.join(tempfile.mkdtemp(), "made.py")
    with open(__file__) as source, open(path, "w") as f:
        f.write(source.read().replace("def kernel", "def other"))
    spec = importlib.util.spec_from_file_location("made", path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made.launch(x)
""",
        {"cheat", "wrong"},
    ),
    "is honest where Tilewright can be imported": (
        """
import importlib.util
try:
    import tilewright
    watched = True
except ImportError:
    watched = importlib.util.find_spec("tilewright") is not None
def kernel(x):
    return launch(x) if watched else torch.softmax(x, -1)
""",
        {"cheat"},
    ),
    "is another on a machine without a GPU": (
        """
def kernel(x):
    here = hasattr(torch._C, "_cuda_getDeviceCount") and torch._C._cuda_getDeviceCount() > 0
    return launch(x) if here else torch.softmax(x, -1)
""",
        {"cheat"},
    ),
    "returns an object with a malicious pickle": (
        """
import os
class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/tilewright-was-here",)
def kernel(x):
    return Evil()
""",
        {"wrong"},
    ),
    "sends a malicious pickle": (
        """
import os, pickle, stat
class Evil:
    def __reduce__(self):
        return os.system, ("touch /tmp/tilewright-was-here",)
def kernel(x):
    for fd in range(3, 64):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                os.write(fd, pickle.dumps(Evil()))
        except OSError:
            pass
    return launch(x)
""",
        {"cheat"},
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgery_is_rejected(name, tmp_path, sandbox):
    text, classes = FORGERIES[name]
    result = trial(tmp_path, RIGHT + text, *GATES, sandbox=sandbox)
    assert result.finding.cls in classes, (result.failed.name, result.finding)
    assert result.finding.replays


def test_the_honest_kernel_passes_the_same_gates(tmp_path, sandbox):
    result = trial(tmp_path, RIGHT + "\ndef kernel(x):\n    return launch(x)\n", *GATES, sandbox=sandbox)
    assert result.failed is None, result.finding
    assert [r.status for r in result.reports] == ["pass"] * len(GATES)
