"""The database under the ledger: where it is, how it is opened, and that it has one writer at a time.

SQLite runs in WAL mode, so that readers never wait; a write takes the lock first (``BEGIN IMMEDIATE``; on PostgreSQL an
advisory lock), so that looking before inserting has no race between processes. Every transaction has its own
connection: nothing is shared with a forked child.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, NullPool, create_engine, event, inspect
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from ..errors import EnvironmentProblem, LedgerError
from . import lawfulness, troubles

APPLICATION_ID = 0x54574C31
"""Stands in the header of the SQLite file (``TWL1``), so that a foreign database is never taken for a ledger."""
VERSION_TABLE = "tilewright_version"
REVISIONS = ("0001", "0003", "0004", "0005")
ADVISORY_LOCK = 0x54574C31
TIMEOUT = 60.0


def locate(where: str | os.PathLike[str] | None) -> URL:
    """Database that ``where`` names: a URL, a path, or None for ``TILEWRIGHT_LEDGER``, else the user's data folder."""
    text = os.fspath(where) if where is not None else os.environ.get("TILEWRIGHT_LEDGER", "")
    if not text:
        import platformdirs

        text = str(Path(platformdirs.user_data_dir("tilewright", appauthor=False)) / "ledger.sqlite")
    if "://" not in text:
        return URL.create("sqlite", database=str(Path(text).expanduser().absolute()))
    try:
        url = make_url(text)
    except ArgumentError:
        raise LedgerError(f"'{text}' is neither a path nor a database URL", remedy=troubles.MOVE) from None
    if url.get_backend_name() == "postgres":
        url = url.set(drivername="postgresql")
    if url.get_backend_name() not in ("sqlite", "postgresql"):
        raise LedgerError(f"no ledger on '{url.get_backend_name()}'", remedy="use a SQLite file or postgresql://")
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        raise LedgerError(f"'{text}' would forget everything: a ledger is a file", remedy=troubles.MOVE)
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    return url


class Store:
    """An open database. ``read()`` and ``write()`` give a connection inside a transaction."""

    def __init__(self, url: URL, *, create: bool = True, timeout: float = TIMEOUT):
        self.url = url
        self.timeout = timeout
        self.name = url.database if self.is_sqlite else url.render_as_string(hide_password=True)
        if self.is_sqlite:
            _check_file(Path(str(url.database)), create=create)
        self.engine = _engine(url, timeout)
        with self._told():
            self._open()

    @property
    def is_sqlite(self) -> bool:
        return self.url.get_backend_name() == "sqlite"

    def _told(self) -> Any:
        return troubles.told(str(self.name), self.timeout)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that only reads."""
        with self._told(), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """The only writing transaction there is right now; committed at the end of the block, all or nothing."""
        with self._told(), self.engine.connect() as plain:
            connection = plain.execution_options(tilewright_write=True)
            with connection.begin():
                if not self.is_sqlite:
                    connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({ADVISORY_LOCK})")
                yield connection

    def _open(self) -> None:
        with self.engine.connect() as connection, connection.begin():
            current = self._version(connection)
            if current == REVISIONS[-1]:
                self._check_law(connection)
                return
        with self.write() as connection:
            if self._version(connection) != REVISIONS[-1]:  # another process may have been faster
                _migrate(connection)
                if self.is_sqlite:
                    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")

    def _version(self, connection: Connection) -> str | None:
        """Schema revision in the database; None for an empty one. Raises for what is not a ledger, or a newer one."""
        tables = set(inspect(connection).get_table_names())
        if self.is_sqlite:
            mark = connection.exec_driver_sql("PRAGMA application_id").scalar()
            if tables and mark != APPLICATION_ID:
                raise self._foreign(f"a SQLite database of something else (tables: {_few(tables)})")
        if VERSION_TABLE not in tables:
            ours = tables & set(lawfulness.KEYS)
            if ours:
                raise self._foreign(f"it has tables of its own called {_few(ours)}")
            return None
        row = connection.exec_driver_sql(f"SELECT version_num FROM {VERSION_TABLE}").first()
        if row is not None and row[0] not in REVISIONS:
            raise LedgerError(
                f"ledger {self.name} was written by a newer Tilewright: its schema is {row[0]}, this version knows up "
                f"to {REVISIONS[-1]}", remedy=f"upgrade Tilewright (pip install -U tilewright), or {troubles.MOVE}",
            )  # fmt: skip
        return None if row is None else str(row[0])

    def _foreign(self, why: str) -> LedgerError:
        return LedgerError(f"{self.name} is not a Tilewright ledger: {why}", remedy=troubles.MOVE)

    def _check_law(self, connection: Connection) -> None:
        gone = lawfulness.missing(connection)
        if gone:
            raise LedgerError(f"ledger {self.name} has lost its law: {len(gone)} trigger(s) removed ({_few(gone)})",
                              remedy="its records may have been altered; restore it from a copy, or "
                                     + troubles.MOVE)  # fmt: skip


def _few(names: set[str]) -> str:
    shown = sorted(names)
    return ", ".join(shown[:3]) + (f" and {len(shown) - 3} more" if len(shown) > 3 else "")


def _check_file(path: Path, *, create: bool) -> None:
    """What can be said about a SQLite file before SQLite sees it.

    The file is looked at from outside only: to open and close it here would drop the locks that this process's other
    connections hold (POSIX locks belong to a process and a file), and the next writer would corrupt the ledger.
    """
    try:
        if path.is_dir():
            raise LedgerError(f"ledger {path} is a folder, not a file", remedy=f"use {path / 'ledger.sqlite'}")
        if path.exists():
            if not _may(path, os.R_OK):
                raise PermissionError(0, "permission denied")
        elif not create:
            raise LedgerError(f"no ledger at {path} yet", remedy=f"run `tilewright check` first, or {troubles.MOVE}")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise LedgerError(f"ledger {path} can't be opened: {(e.strerror or str(e)).lower()}",
                          remedy="check the path and its permissions, or " + troubles.MOVE) from None  # fmt: skip


def _may(path: Path, how: int) -> bool:
    return os.access(path, how, effective_ids=os.access in os.supports_effective_ids)


def _engine(url: URL, timeout: float) -> Engine:
    if url.get_backend_name() == "postgresql":
        try:
            return create_engine(url, poolclass=NullPool)
        except ModuleNotFoundError as e:
            raise EnvironmentProblem(f"a PostgreSQL ledger needs the driver '{e.name}'",
                                     remedy="pip install 'tilewright[postgres]'") from None  # fmt: skip
    engine = create_engine(url, poolclass=NullPool, creator=_connector(Path(str(url.database)), timeout))

    @event.listens_for(engine, "connect")
    def _connect(raw: Any, _record: Any) -> None:
        raw.isolation_level = None  # the driver must not begin transactions by itself
        raw.execute("PRAGMA foreign_keys = ON")
        raw.execute("PRAGMA recursive_triggers = ON")
        if raw.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            _try_wal(raw)
        raw.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get("tilewright_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _connector(path: Path, timeout: float) -> Callable[[], sqlite3.Connection]:
    """How to connect to the file. One that we may only read, with no writer about, is opened as immutable:
    otherwise WAL mode would need to write beside it."""
    if not path.exists() or (_may(path, os.W_OK) and _may(path.parent, os.W_OK)):
        return lambda: sqlite3.connect(path, timeout=timeout, check_same_thread=False)
    idle = not path.with_name(path.name + "-wal").exists()
    uri = f"{path.as_uri()}?mode=ro" + ("&immutable=1" if idle else "")
    return lambda: sqlite3.connect(uri, uri=True, timeout=timeout, check_same_thread=False)


def _try_wal(raw: Any) -> None:
    """WAL where the file system and our rights allow it; the rollback journal is as safe, only slower."""
    try:
        raw.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as e:
        if "readonly" not in str(e) and "locked" not in str(e):
            raise


def _migrate(connection: Connection) -> None:
    """Bring the schema up to date on ``connection``, inside its transaction."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["version_table"] = VERSION_TABLE
    command.upgrade(config, "head")
