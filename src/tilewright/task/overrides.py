"""What an author adds to an inferred contract, from a TOML or Python file beside the problem.

::

    # contract.toml
    [contract]
    nan = "unspecified"
    tolerance = { atol = 1e-3 }
    [dims.N]
    high = 4096
    [inputs.x]
    values = { kind = "uniform", low = -1, high = 1 }
    [[workloads]]
    dims = { N = 100 }

A Python file (``contract.py``) defines the same as ``CONTRACT``, ``DIMS``, ``INPUTS``, ``OUTPUTS``, ``WORKLOADS``,
``WORK``, ``CONSTRAINTS``, ``BASELINES``, ``NAME``; it is user code and is only loaded inside a sealed child.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from ..errors import TaskError
from .contract import Contract
from .task import TaskSheet, Work, Workload
from .tensors import Dim, Scalar, TensorSpec

_TABLES: dict[str, type[BaseModel]] = {"contract": Contract, "work": Work}
_NAMED: dict[str, type[BaseModel]] = {"dims": Dim, "inputs": TensorSpec, "outputs": TensorSpec}
_PLAIN = ("name", "constraints", "baselines", "workloads")
KEYS = (*_TABLES, *_NAMED, *_PLAIN)


class Overrides:
    """Changes to a sheet: ``data`` as in the TOML file; ``where`` the file, for messages."""

    def __init__(self, data: Mapping[str, Any] | None = None, where: str = ""):
        self.data, self.where = dict(data or {}), where
        _known(self.data, KEYS, "key", where)

    def __bool__(self) -> bool:
        return bool(self.data)

    def apply(self, sheet: TaskSheet, *, new_names: bool = False) -> TaskSheet:
        """The sheet with these changes. ``new_names``: dims and inputs that the sheet doesn't have may be added.

        Raises TaskError for unknown keys (with near matches) and unlawful values.
        """
        changes: dict[str, Any] = {}
        for key, value in self.data.items():
            if key in _TABLES:
                changes[key] = self._merge(_TABLES[key], getattr(sheet, key), value, key)
            elif key in _NAMED:
                changes[key] = self._named(key, getattr(sheet, key) or {}, value, new_names or key == "outputs")
            elif key == "workloads":
                changes[key] = tuple(self._workload(w, i) for i, w in enumerate(value))
            else:
                changes[key] = tuple(value) if key != "name" else str(value)
        result = sheet.model_copy(update=changes)
        if "workloads" in changes and not new_names:
            for w in result.workloads:
                _known(w.dims, tuple(result.dims), "dim", self.where)
        return result

    def _named(self, key: str, old: Mapping[str, Any], value: Any, new_names: bool) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise TaskError(f"'{key}' must be a table of {key}", where=self.where)
        if not new_names:
            _known(value, tuple(old), key.removesuffix("s"), self.where)
        merged = dict(old)
        for name, fields in value.items():
            scalar = key == "inputs" and (
                isinstance(old.get(name), Scalar) or (isinstance(fields, Mapping) and "shape" not in fields
                                                      and isinstance(fields.get("values"), list | tuple))
            )  # fmt: skip
            merged[name] = self._merge(Scalar if scalar else _NAMED[key], old.get(name), fields, f"{key}.{name}")
        return merged

    def _workload(self, value: Any, index: int) -> Workload:
        if isinstance(value, Mapping) and value and all(isinstance(v, int) for v in value.values()):
            value = {"dims": value}
        made: Workload = self._merge(Workload, None, value, f"workloads[{index}]")
        return made

    def _merge(self, model: type[BaseModel], old: Any, value: Any, label: str) -> Any:
        """``old`` with the fields of ``value`` replaced, nested tables too."""
        if isinstance(value, BaseModel):
            return value
        if model is TensorSpec and isinstance(value, str):
            value = {"shape": value}
        if not isinstance(value, Mapping):
            raise TaskError(f"'{label}' must be a table", where=self.where)
        _known(value, tuple(model.model_fields), f"field of '{label}'", self.where)
        fields = {n: getattr(old, n) for n in model.model_fields} if isinstance(old, model) else {}
        for name, new in value.items():
            nested = fields.get(name)
            if nested is None and isinstance(new, Mapping):
                default = model.model_fields[name].default
                nested = default if isinstance(default, BaseModel) else None
            if isinstance(nested, BaseModel) and isinstance(new, Mapping):
                # A new kind of values starts afresh: the old kind's bounds mean nothing to it.
                nested = type(nested)() if "kind" in new else nested
                fields[name] = self._merge(type(nested), nested, new, f"{label}.{name}")
            else:
                fields[name] = tuple(new) if isinstance(new, list) else new
        try:
            return model(**fields)
        except ValidationError as e:
            first = e.errors()[0]
            field = ".".join(str(p) for p in first["loc"])
            raise TaskError(f"'{label}{'.' + field if field else ''}': {first['msg']} (got {first['input']!r})",
                            where=self.where) from None  # fmt: skip


def _known(given: Mapping[str, Any], allowed: tuple[str, ...], what: str, where: str) -> None:
    for key in given:
        if key not in allowed:
            near = difflib.get_close_matches(str(key), allowed, n=2, cutoff=0.5)
            raise TaskError(f"unknown {what} '{key}'", where=where or None,
                            remedy=f"did you mean {' or '.join(repr(n) for n in near)}?" if near
                            else f"known: {', '.join(allowed) or 'none'}")  # fmt: skip


def beside(problem: Path) -> Path | None:
    """The contract file that belongs to a problem: ``<problem>.contract.toml`` or ``.py``, else ``contract.toml`` or
    ``.py`` in its folder; for a folder, inside it."""
    folder = problem if problem.is_dir() else problem.parent
    names = [] if problem.is_dir() else [f"{problem.stem}.contract.toml", f"{problem.stem}.contract.py"]
    return next((folder / n for n in (*names, "contract.toml", "contract.py") if (folder / n).is_file()), None)


def load(path: Path) -> Overrides:
    """Read a contract file. A Python file is executed: only inside a sealed child. Raises TaskError."""
    if not path.is_file():
        raise TaskError(f"contract file '{path}' does not exist")
    if path.suffix == ".py":
        return _load_python(path)
    try:
        return Overrides(tomllib.loads(path.read_text()), str(path))
    except tomllib.TOMLDecodeError as e:
        raise TaskError(f"not TOML: {e}", where=str(path)) from None
    except UnicodeDecodeError:
        raise TaskError("not UTF-8 text", where=str(path)) from None


def _load_python(path: Path) -> Overrides:
    namespace: dict[str, Any] = {"__file__": str(path), "__name__": "tilewright_contract"}
    try:
        exec(compile(path.read_text(), str(path), "exec", dont_inherit=True), namespace)
    except (Exception, SystemExit) as e:
        tb, line = e.__traceback__, getattr(e, "lineno", None)
        while tb is not None:
            if tb.tb_frame.f_code.co_filename == str(path):
                line = tb.tb_lineno
            tb = tb.tb_next
        raise TaskError(f"the contract file raised {type(e).__name__}: {e}", where=f"{path}:{line or 1}") from e
    data = {k: namespace[k.upper()] for k in KEYS if k.upper() in namespace}
    return Overrides(data, str(path))
