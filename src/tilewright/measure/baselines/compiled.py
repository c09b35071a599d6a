"""The reference through torch.compile, for the shapes at hand."""

import importlib.util
import os
import shutil

from . import Context, Offer

NAME = "compile"


def offer(context: Context) -> list[Offer]:
    missing = lacks(context)
    source = None if missing else context.itself(NAME, "compile")
    return [Offer(NAME, "compile", source, missing)]


def lacks(context: Context) -> str:
    """Why torch.compile can't work here; empty if it can."""
    if importlib.util.find_spec("torch._inductor") is None:
        return "this build of torch has no compiler"
    if not context.device.startswith("cuda"):
        names = (os.environ.get("CXX"), "g++", "clang++")
        if not any(n and shutil.which(n) for n in names):
            return "torch.compile needs a C++ compiler on the CPU, and there is none (g++, clang++)"
    return ""
