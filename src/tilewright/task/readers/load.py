"""Executing a problem file, and saying which line of it is at fault. Only ever used inside a sealed child."""

from __future__ import annotations

import ast
import hashlib
import itertools
import sys
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...errors import TaskError, TilewrightError, brief
from ..syntax import shown
from . import constants
from .device import NO_CUDA, on_this_machine

_count = itertools.count()


@contextmanager
def user_code(path: Path, what: str) -> Iterator[None]:
    """Turn what user code raises into a TaskError with ``file:line`` of the user's own frame.

    ``what`` names the part: "the reference", "get_inputs()". CUDA that this machine lacks is said as such.
    """
    try:
        yield
    except TilewrightError:
        raise
    except (Exception, SystemExit) as e:
        text = str(e).strip()
        first = brief(text.splitlines()[0], f"run {path.name} by itself") if text else ""
        where = frame_of(e, path)
        if any(sign in text for sign in NO_CUDA):
            raise TaskError(f"{what} needs CUDA, which this machine does not have", where=where, detail=first,
                            remedy="build tensors on the device of the inputs, without device='cuda', or run this "
                            "where a CUDA device is present") from e  # fmt: skip
        raise TaskError(f"{what} raised {type(e).__name__}: {first}", where=where,
                        detail=shown(e) if isinstance(e, SyntaxError) else None,
                        remedy="make the problem file run by itself first") from e  # fmt: skip


def frame_of(error: BaseException, path: Path) -> str:
    """``file:line`` of the innermost frame that lies in the problem's folder; for a syntax error its own line."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    best, tb = str(path), error.__traceback__
    while tb is not None:
        name = tb.tb_frame.f_code.co_filename
        if name == str(path) or (path.parent != Path("/") and Path(name).is_absolute()
                                 and Path(name).is_relative_to(path.parent.resolve())
                                 and "site-packages" not in name and "tilewright" not in Path(name).parts):  # fmt: skip
            best = f"{name}:{tb.tb_lineno}"
        tb = tb.tb_next
    return best


class UserModule:
    """A problem file: parsed once, executed as often as needed with some integer constants changed.

    ``folders``: where its own imports are looked for (the file's folder first). ``files`` grows by the hashes of what
    it imports from there.
    """

    def __init__(self, path: str | Path, *, text: str | None = None, folders: tuple[Path, ...] = ()):
        self.path = Path(path)
        if text is None:
            if not self.path.is_file():
                raise TaskError(f"problem file '{path}' does not exist", remedy="check the path")
            raw = self.path.read_bytes()
            try:
                text = raw.decode()
            except UnicodeDecodeError as e:
                raise TaskError(f"problem file '{path}' is not UTF-8 text (byte {e.start})") from None
        else:
            raw = text.encode()
        self.text = text
        self.files = {self.path.name: hashlib.sha256(raw).hexdigest()}
        self.folders = (self.path.resolve().parent, *folders)
        try:
            self.tree = ast.parse(text, filename=str(self.path))
        except SyntaxError as e:
            raise TaskError(f"syntax error: {e.msg}", where=f"{self.path}:{e.lineno}", detail=shown(e),
                            remedy="repair that line of the problem file") from None  # fmt: skip
        except ValueError as e:  # a null byte
            raise TaskError(f"problem file '{path}' is no Python source: {e}") from None
        self.constants = constants.find(self.tree)
        self._imported = False

    def defines(self, name: str) -> bool:
        """Whether the module's top level defines ``name``."""
        return name in self.names()

    def names(self) -> set[str]:
        """Names bound at the top level."""
        names: set[str] = set()
        for n in self.tree.body:
            if isinstance(n, ast.FunctionDef | ast.ClassDef):
                names.add(n.name)
            elif isinstance(n, ast.Assign | ast.AnnAssign):
                targets = n.targets if isinstance(n, ast.Assign) else [n.target]
                names |= {t.id for target in targets for t in ast.walk(target) if isinstance(t, ast.Name)}
            elif isinstance(n, ast.ImportFrom):
                names |= {a.asname or a.name for a in n.names}
        return names

    def execute(self, values: Mapping[str, int] | None = None) -> dict[str, Any]:
        """Namespace of a fresh execution with the constants in ``values`` changed. Raises TaskError with the line."""
        self._import_once()
        tree = constants.substitute(self.tree, self.constants, values or {})
        name = f"tilewright_problem_{next(_count)}"
        module = types.ModuleType(name)
        module.__file__ = str(self.path)
        sys.modules[name] = module
        try:
            with self._own_imports(), user_code(self.path, "the problem file"), on_this_machine():
                exec(compile(tree, str(self.path), "exec", dont_inherit=True), module.__dict__)
        finally:
            # Thousands of trials must not pile up.
            del sys.modules[name]
        return module.__dict__

    def _import_once(self) -> None:
        """Import third-party modules outside of fake tensors, or their module-level tensors stay fake for ever."""
        if self._imported:
            return
        self._imported = True
        imports = [n for n in self.tree.body if isinstance(n, ast.Import | ast.ImportFrom)]
        code = compile(ast.Module(list(imports), []), str(self.path), "exec", dont_inherit=True)
        with self._own_imports(), user_code(self.path, "an import of the problem file"), on_this_machine():
            exec(code, {"__name__": "tilewright_imports", "__file__": str(self.path)})

    @contextmanager
    def _own_imports(self) -> Iterator[None]:
        """Let the file import its neighbours, and forget them afterwards: two problems may both have a ``utils``."""
        aside = self._namesakes()
        for name in aside:
            del sys.modules[name]
        before, path = set(sys.modules), list(sys.path)
        sys.path[:0] = [str(f) for f in self.folders]
        try:
            yield
        finally:
            sys.path[:] = path
            for name in set(sys.modules) - before:
                file = getattr(sys.modules[name], "__file__", None)
                folder = Path(file).resolve().parent if file else None
                if file and folder in self.folders:
                    self.files.setdefault(Path(file).name, hashlib.sha256(Path(file).read_bytes()).hexdigest())
                    del sys.modules[name]
            sys.modules.update(aside)

    def _namesakes(self) -> dict[str, types.ModuleType]:
        """Loaded modules that hide a neighbour of the problem; installed packages are left in place."""
        neighbours = {p.stem for folder in self.folders for p in folder.glob("*.py")}
        found = {}
        for name in neighbours & set(sys.modules):
            file = getattr(sys.modules[name], "__file__", None)
            if file and not any(Path(file).is_relative_to(p) for p in (sys.prefix, sys.base_prefix)):
                found[name] = sys.modules[name]
        return found
