"""linear_cross_entropy holds the logits of one chunk and no more, forward and backward; seen by what lives."""

import os
import subprocess
import sys
from importlib.metadata import version

import pytest

SEEN = """
import gc, importlib, sys, weakref
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

class Peak(TorchDispatchMode):
    live, most = 0, 0
    known, of, sizes = set(), {}, []
    interpreting = False

    def __torch_dispatch__(self, f, types, args=(), kwargs=None):
        out = f(*args, **(kwargs or {}))
        for t in tree_leaves(out):
            if isinstance(t, torch.Tensor):
                self.note(t.untyped_storage())
        return out

    def note(self, s):
        key, size = s._cdata, s.nbytes()
        if key in self.known or not size or Peak.interpreting:
            return
        if size > 8192:
            gc.collect()  # the interpreter's launches lie in cycles and hold their arguments
        self.known.add(key)
        Peak.of[key] = size
        Peak.live += size
        if Peak.live > Peak.most:
            Peak.most, Peak.sizes = Peak.live, sorted(Peak.of.values())[-8:]
        weakref.finalize(s, self.gone, key, size)

    def gone(self, key, size):
        self.known.discard(key)
        Peak.of.pop(key, None)
        Peak.live -= size

def call(self, *args, **kwargs):
    Peak.interpreting = True  # the copies are the interpreter's
    try:
        return old(self, *args, **kwargs)
    finally:
        Peak.interpreting = False

from triton.runtime import interpreter
old, interpreter.GridExecutor.__call__ = interpreter.GridExecutor.__call__, call
new = lambda *s: torch.randn(s, dtype=torch.bfloat16)

def measure(name, reduction):
    linear = importlib.import_module(f"tilewright.ops.{name}.linear")
    M, K, V = 256, 2, 256
    linear.CHUNK, linear.NARROWEST = (32 if name == "cross_entropy" else 16), 8
    x, weight = new(M, K), new(V, K)
    if name == "cross_entropy":
        rest, wanted = (torch.randint(V, (M,)), None, None), (True, True, False)
        options = (-100, 0.0, 0.0, 0.0, reduction)
    else:
        rest, wanted = (new(M, K), new(V, K)), (True, True)
        options = ((0.5,) if name == "js_divergence" else ()) + (2.0, reduction)
    up = torch.ones(M if reduction == "none" else ())
    Peak.live = Peak.most = 0
    Peak.known, Peak.of = set(), {}
    with Peak():
        loss, stats, dx = linear.forward(x, weight, *rest, *options, True)
        forward = Peak.most
        found = linear.backward(up, x, weight, *rest, stats, dx, *options, wanted)
    print(name, reduction, forward, Peak.most, *Peak.sizes)

for name in ("cross_entropy",):
    for reduction in ("mean",):
        measure(name, reduction)
        gc.collect()
"""
CHUNK, REST = 16 << 10, 12 << 10
"""Bytes of 32 rows of 256 bfloat16 logits, or of 16 rows twice; and of all else: results, and numbers for each row."""


def test_one_chunk_of_logits_at_a_time() -> None:
    if version("triton") < "3.7":
        pytest.skip("the interpreter of this Triton fails with a current NumPy")
    done = subprocess.run([sys.executable, "-c", SEEN], env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True,
                          text=True, timeout=300, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    lines = done.stdout.splitlines()
    assert len(lines) == 1
    for line in lines:
        name, reduction, *numbers = line.split()
        forward, most, *sizes = map(int, numbers)
        assert forward >= CHUNK, f"{name}, {reduction}: nothing was seen"
        assert most <= CHUNK + REST, f"{name}, {reduction}: {most / CHUNK:.2f} chunks; the largest: {sizes}"
