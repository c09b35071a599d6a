"""What the database refuses among attempts: runs of ``bench`` that ended too noisy or refused. They are kept, and they
are no measurements: what they saw claims nothing.

1. An attempt is never updated, deleted or replaced.
2. It answers ``too noisy`` or ``refused``, and says why.
3. It needs what a measurement needs, but for a variation below the cap: an accepted verdict of the same kernel, task,
   contract and class of device, a registered protocol, a known machine and its state.
"""

from __future__ import annotations

from . import append_only
from .append_only import MARK

KEYS: dict[str, tuple[tuple[str, ...], ...]] = {"attempts": (("seq",), ("id",))}
TRIGGERS = {"attempts_lawful"}
ANSWERS = ("too noisy", "refused")
CLAIM = "an attempt is too noisy or refused; what has an answer is a measurement"
SILENT = "an attempt without a reason"
LICENCE = "an attempt needs an accepted verdict of the same kernel, task, contract and device class"
PROTOCOL = "the protocol hash is not registered"
MACHINE = "the machine is not registered"
STATE = "the machine state is missing"

_CASES = (
    ("NEW.answer IS NULL OR NEW.answer NOT IN ('too noisy', 'refused')", CLAIM),
    ("NEW.reason IS NULL OR trim(NEW.reason) = ''", SILENT),
    ("""NOT EXISTS (SELECT 1 FROM verdicts v WHERE v.id = NEW.verdict AND v.verdict = 'accept'
  AND v.kernel = NEW.kernel AND v.task = NEW.task AND v.contract = NEW.contract
  AND v.device_class = NEW.device_class)""", LICENCE),
    ("NOT EXISTS (SELECT 1 FROM protocols p WHERE p.sha256 = NEW.protocol)", PROTOCOL),
    ("NOT EXISTS (SELECT 1 FROM machines m WHERE m.sha256 = NEW.machine)", MACHINE),
)  # fmt: skip
_STATELESS = ("NEW.state IS NULL OR json_valid(NEW.state) = 0 OR json_type(NEW.state) <> 'object' "
              "OR json(NEW.state) = '{}'")  # fmt: skip


def law(dialect: str) -> list[str]:
    """The statements that schema 0005 adds, for ``sqlite`` or ``postgresql``."""
    return _postgresql() if dialect == "postgresql" else _sqlite()


def _sqlite() -> list[str]:
    whens = " ".join(f"WHEN {when} THEN RAISE(ABORT, '{MARK}: {why}')" for when, why in (*_CASES, (_STATELESS, STATE)))
    return [
        *append_only.sqlite(KEYS),
        f"CREATE TRIGGER attempts_lawful BEFORE INSERT ON attempts BEGIN SELECT CASE {whens} END; END",
    ]


def _postgresql() -> list[str]:
    body = " ".join(f"IF {when} THEN RAISE EXCEPTION '{MARK}: {why}'; END IF;" for when, why in _CASES)
    return [
        f"""CREATE FUNCTION tilewright_attempt() RETURNS trigger LANGUAGE plpgsql AS $law$
DECLARE given jsonb;
BEGIN
  {body}
  BEGIN given = NEW.state::jsonb; EXCEPTION WHEN others THEN given = NULL; END;
  IF given IS NULL OR jsonb_typeof(given) <> 'object' OR given = '{{}}'::jsonb THEN
    RAISE EXCEPTION '{MARK}: {STATE}';
  END IF;
  RETURN NEW;
END $law$""",
        *append_only.postgresql(KEYS),
        "CREATE TRIGGER attempts_lawful BEFORE INSERT ON attempts FOR EACH ROW EXECUTE FUNCTION tilewright_attempt()",
    ]
