"""Finding proposers and strategies by listing their folders: one file, one thing, no table to edit."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from typing import Any

from ..errors import UserError
from .tree import Proposer, Strategy


def names(folder: str) -> list[str]:
    """Names of the plug-ins in ``proposers`` or ``strategies``; with dashes, as people write them."""
    package = importlib.import_module(f"{__package__}.{folder}")
    return sorted(i.name.replace("_", "-") for i in pkgutil.iter_modules(package.__path__) if i.name[0] != "_")


def proposer(name: str, options: Mapping[str, str] | None = None) -> Proposer:
    """The proposer of that name. Raises UserError for an unknown one."""
    made: Proposer = _module("proposers", name).make(dict(options or {}))
    return made


def strategy(name: str, **options: Any) -> Strategy:
    """The strategy of that name. Raises UserError for an unknown one or an unknown option."""
    kind = _module("strategies", name).Strategy
    known = list(inspect.signature(kind).parameters)
    if wrong := sorted(set(options) - set(known)):
        raise UserError(f"strategy '{name}' does not take '{wrong[0]}'",
                        remedy=f"it takes {', '.join(known) or 'no options'}")  # fmt: skip
    made: Strategy = kind(**options)
    return made


def _module(folder: str, name: str) -> Any:
    known = names(folder)
    if name not in known:
        raise UserError(f"no {'strategy' if folder == 'strategies' else 'proposer'} '{name}'",
                        remedy=f"use one of {', '.join(known)}")  # fmt: skip
    return importlib.import_module(f"{__package__}.{folder}.{name.replace('-', '_')}")
