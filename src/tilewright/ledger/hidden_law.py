"""What the database refuses when hidden workloads are spent: they are counted for each purpose, and there are few.

1. A use is never updated, deleted or replaced.
2. Uses of one purpose are numbered from 1, without a gap.
3. A purpose (a search, or a kernel before a task) has no more than ``LIMIT`` of them.
"""

from __future__ import annotations

from . import append_only
from .append_only import MARK

KEYS: dict[str, tuple[tuple[str, ...], ...]] = {"hidden_uses": (("seq",), ("purpose", "number"))}
TRIGGERS = {"hidden_uses_counted"}
LIMIT = 8
"""Uses of hidden workloads for one purpose: each tells the one who asks a little about them."""
COUNTED = "uses of hidden workloads are numbered without a gap"
SPENT = f"hidden workloads were spent {LIMIT} times on this already"

_MISCOUNTED = "NEW.number <> 1 + (SELECT count(*) FROM hidden_uses u WHERE u.purpose = NEW.purpose)"
_SPENT = f"NEW.number > {LIMIT}"


def law(dialect: str) -> list[str]:
    """The statements that schema 0004 adds, for ``sqlite`` or ``postgresql``."""
    cases = ((_SPENT, SPENT), (_MISCOUNTED, COUNTED))
    if dialect == "postgresql":
        body = " ".join(f"IF {when} THEN RAISE EXCEPTION '{MARK}: {why}'; END IF;" for when, why in cases)
        return [
            f"CREATE FUNCTION tilewright_hidden_use() RETURNS trigger LANGUAGE plpgsql AS "
            f"$law$ BEGIN {body} RETURN NEW; END $law$",
            *append_only.postgresql(KEYS),
            "CREATE TRIGGER hidden_uses_counted BEFORE INSERT ON hidden_uses FOR EACH ROW "
            "EXECUTE FUNCTION tilewright_hidden_use()",
        ]
    whens = " ".join(f"WHEN {when} THEN RAISE(ABORT, '{MARK}: {why}')" for when, why in cases)
    return [
        *append_only.sqlite(KEYS),
        f"CREATE TRIGGER hidden_uses_counted BEFORE INSERT ON hidden_uses BEGIN SELECT CASE {whens} END; END",
    ]
