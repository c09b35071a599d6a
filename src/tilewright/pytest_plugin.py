"""pytest: ``from tilewright.pytest_plugin import assert_accepted``.

    def test_my_kernel(): assert_accepted("tasks/softmax.py", "kernels/softmax.py")

Options: ``--tilewright-strict``, ``--tilewright-ledger``, ``--tilewright-sandbox``, ``--tilewright-seed``. A rejected
kernel fails the test with the smallest case and the command that runs it again; an incomplete one fails too, unless
``allow_incomplete=True``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from .kernel import Kernel
    from .prove.verdict import Verdict

_options: dict[str, Any] = {}


def pytest_addoption(parser: Any) -> None:
    """The ``--tilewright-*`` options."""
    group = parser.getgroup("tilewright", "Tilewright: checks of GPU kernels")
    group.addoption("--tilewright-strict", action="store_true", help="promise everything that the reference does")
    group.addoption("--tilewright-ledger", metavar="FILE", help="ledger file or database URL")
    group.addoption(
        "--tilewright-sandbox", choices=("require", "best", "none"), help="isolation of the code under test"
    )
    group.addoption("--tilewright-seed", type=int, metavar="N", help="fix the secret seed")


def pytest_configure(config: Any) -> None:
    """Read the options once."""
    given = {n: config.getoption(f"--tilewright-{n}", None) for n in ("strict", "ledger", "sandbox", "seed")}
    _options.clear()
    _options.update({n: v for n, v in given.items() if v})


def assert_accepted(task: str | Path, kernel: str | Path | Kernel, *, allow_incomplete: bool = False,
                    **options: Any) -> Verdict:  # fmt: skip
    """Check ``kernel`` before ``task``; AssertionError unless it is accepted. Options as of ``tilewright.check``."""
    __tracebackhide__ = True
    from .api import check

    verdict = check(task, kernel, **{**_options, **options})
    if verdict.verdict == "accept" or (allow_incomplete and verdict.verdict == "incomplete"):
        return verdict
    raise AssertionError(explain(verdict))


def explain(verdict: Verdict) -> str:
    """A verdict that is no accept, for a test's failure message."""
    lines = [f"{verdict.verdict}: {verdict.kernel} against {verdict.task}", f"  because {verdict.reason}"]
    for g in verdict.gates:
        if g.role == "advisory":
            continue
        for f in g.findings:
            lines.append(f"  {g.name}: {f.summary}")
            lines.append(f"    expected {f.expected}, got {f.got} at {f.where}")
            lines.append(f"    again: tilewright replay {f.id}")
    return "\n".join(lines)
