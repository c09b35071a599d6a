"""Each rule of the tripwire sees its pattern, and stays silent on an honest kernel."""

from __future__ import annotations

import pytest
from trial import RIGHT

from tilewright.prove import tripwire

SUSPECTS = {
    "import torch\ntorch.allclose = lambda *a: True": ("odd", "assigns to torch.allclose"),
    "import torch\nsetattr(torch.cuda, 'Event', None)": ("odd", "sets an attribute of torch.cuda"),
    "import sys\nf = sys._getframe(1)": ("odd", "calls sys._getframe"),
    "open('/proc/self/cmdline')": ("odd", "names /proc/self/cmdline"),
    "import os\nos._exit(0)": ("odd", "calls os._exit"),
    "import tilewright": ("odd", "names tilewright"),
    "import importlib\nimportlib.import_module('tilewright.prove')": ("odd", "names tilewright"),
    "import torch\nclass L(torch.Tensor): pass": ("odd", "class L subclasses Tensor"),
    "def k(x):\n    try:\n        return f(x)\n    except Exception:\n        return g(x)": (
        "check",
        "swallows every exception",
    ),
    "import threading\nthreading.Thread(target=f).start()": ("check", "starts threading.Thread"),
    "def k(x):\n    return kept[x.data_ptr()]": ("check", "looks something up by address"),
    "def k(x):\n    return kept.get((id(x), 1))": ("check", "looks something up by address"),
    "def k(x):\n    return a if x.is_cuda else b": ("check", "branches on the device (x.is_cuda)"),
    "import torch\ntorch.manual_seed(0)": ("note", "calls torch.manual_seed"),
    "def k(x):\n    global n\n    n += 1": ("note", "keeps n at module level"),
}

HONEST = {
    "settings": "import torch\ntorch.backends.cuda.matmul.allow_tf32 = False",
    "reraise": "def k(x):\n    try:\n        return f(x)\n    except Exception as e:\n"
    "        raise ValueError('x') from e",
    "narrow": "def k(x):\n    try:\n        import triton\n    except ImportError:\n        triton = None",
    "own attribute": "class K:\n    def __init__(self):\n        self.n = 1",
    "kernel": RIGHT,
    "no python": "void kernel(float *x) {}",
}


@pytest.mark.parametrize("text", SUSPECTS)
def test_sees(text):
    tier, what = SUSPECTS[text]
    assert (tier, what) in {(h.tier, h.what) for h in tripwire.scan(text)}


@pytest.mark.parametrize("name", HONEST)
def test_silent(name):
    assert tripwire.scan(HONEST[name]) == []


def test_gravest_first_with_its_line():
    hints = tripwire.scan("import torch\ntorch.manual_seed(0)\ntorch.equal = None\n")
    assert [str(h) for h in hints] == ["line 3 assigns to torch.equal", "line 2 calls torch.manual_seed"]
