"""What the database refuses among the records of a search.

1. A record is never updated, deleted or replaced.
2. In a run of kind ``measured``, a node with a speed ratio needs an accepted verdict of the same kernel.
3. A node other than the first has an earlier node of the same run as its parent.
4. A run that has ended takes no more records.
"""

from __future__ import annotations

from . import append_only
from .append_only import MARK

KEYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "search_runs": (("seq",), ("id",)),
    "search_proposals": (("seq",), ("run", "step")),
    "search_nodes": (("seq",), ("run", "number")),
    "search_failures": (("seq",), ("run", "number")),
    "search_events": (("seq",),),
}
CHILDREN = ("search_proposals", "search_nodes", "search_failures", "search_events")
TRIGGERS = {"search_nodes_lawful"} | {f"{table}_of_a_running_run" for table in CHILDREN}
LICENCE = "a node with a speed ratio needs an accepted verdict of the same kernel"
PARENT = "a node needs an earlier node of its run as its parent"
ENDED = "this run has ended"

_UNLICENSED = """NEW.ratio IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM search_runs r WHERE r.id = NEW.run AND r.kind IN ('replayed', 'synthetic'))
  AND NOT EXISTS (SELECT 1 FROM verdicts v WHERE v.id = NEW.verdict AND v.verdict = 'accept' AND v.kernel = NEW.kernel)"""
_ORPHAN = """NEW.number <> 0 AND (NEW.parent IS NULL OR NOT EXISTS
  (SELECT 1 FROM search_nodes n WHERE n.run = NEW.run AND n.number = NEW.parent AND n.number < NEW.number))"""
_OVER = "EXISTS (SELECT 1 FROM search_events e WHERE e.run = NEW.run AND e.state = 'ended')"


def law(dialect: str) -> list[str]:
    """The statements that schema 0003 adds, for ``sqlite`` or ``postgresql``."""
    return _postgresql() if dialect == "postgresql" else _sqlite()


def _sqlite() -> list[str]:
    def refuse(name: str, table: str, cases: tuple[tuple[str, str], ...]) -> str:
        whens = " ".join(f"WHEN {when} THEN RAISE(ABORT, '{MARK}: {why}')" for when, why in cases)
        return f"CREATE TRIGGER {name} BEFORE INSERT ON {table} BEGIN SELECT CASE {whens} END; END"

    return [
        *append_only.sqlite(KEYS),
        refuse("search_nodes_lawful", "search_nodes", ((_UNLICENSED, LICENCE), (_ORPHAN, PARENT))),
        *(refuse(f"{table}_of_a_running_run", table, ((_OVER, ENDED),)) for table in CHILDREN),
    ]


def _postgresql() -> list[str]:
    return [
        f"""CREATE FUNCTION tilewright_search_node() RETURNS trigger LANGUAGE plpgsql AS $law$
BEGIN
  IF {_UNLICENSED} THEN RAISE EXCEPTION '{MARK}: {LICENCE}'; END IF;
  IF {_ORPHAN} THEN RAISE EXCEPTION '{MARK}: {PARENT}'; END IF;
  RETURN NEW;
END $law$""",
        f"""CREATE FUNCTION tilewright_search_running() RETURNS trigger LANGUAGE plpgsql AS $law$
BEGIN
  IF {_OVER} THEN RAISE EXCEPTION '{MARK}: {ENDED}'; END IF;
  RETURN NEW;
END $law$""",
        *append_only.postgresql(KEYS),
        "CREATE TRIGGER search_nodes_lawful BEFORE INSERT ON search_nodes FOR EACH ROW "
        "EXECUTE FUNCTION tilewright_search_node()",
        *(f"CREATE TRIGGER {table}_of_a_running_run BEFORE INSERT ON {table} FOR EACH ROW "
          "EXECUTE FUNCTION tilewright_search_running()" for table in CHILDREN),
    ]  # fmt: skip
