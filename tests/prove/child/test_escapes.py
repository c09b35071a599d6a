"""Every way out of a sealed child is closed, as root, as another user, and with namespaces forbidden."""

from __future__ import annotations

import pytest
from regimes import REGIMES, call

# Without a mount namespace there is no file system of our own whose size could be set.
OPEN = {"forbidden": {"fill the scratch folder"}, "other-forbidden": {"fill the scratch folder"}}
MEASURES = {
    "root": {"pid", "net", "mount", "ipc", "uts"}, "other": {"pid", "net", "mount", "ipc", "uts", "user"},
    "forbidden": set(), "other-forbidden": set(),
}  # fmt: skip


def tried(policy: str, only: str | None = None) -> dict[str, list[str]]:
    from tilewright.prove.child.trials import try_all

    return {t.name: [t.state, t.how] for t in try_all(policy, only)}


def sealed(policy: str) -> dict:
    from tilewright.errors import EnvironmentProblem
    from tilewright.prove.child.session import Session

    try:
        with Session("reference", sandbox=policy) as child:
            return child.sealed
    except EnvironmentProblem as e:
        return {"refused": str(e)}


@pytest.mark.parametrize("regime", REGIMES)
def test_every_way_out_is_closed(regime: str) -> None:
    found = call(regime, tried, "best")
    assert {n for n, (state, _) in found.items() if state == "open"} == OPEN.get(regime, set()), found
    assert len(found) > 20


def test_the_attempts_succeed_where_nothing_is_sealed() -> None:
    """So that "closed" above is the sandbox's doing. Needs root only for becoming root."""
    found = call("forbidden", tried, "none")
    for name in ("write in the home directory", "write outside its scratch folder", "connect to the network",
                 "read another process's memory", "trace another process", "signal another process",
                 "start too many processes", "take too much memory"):  # fmt: skip
        assert found[name][0] == "open", (name, found[name])


@pytest.mark.parametrize("regime", REGIMES)
def test_the_state_says_what_is_on(regime: str) -> None:
    state = call(regime, sealed, "best")
    assert set(state["namespaces"]) == MEASURES[regime]
    assert state["no_new_privs"]
    assert state["seccomp"]
    assert state["landlock"] >= 1
    assert state["uid"] != 0
    assert {"memory", "file", "processes", "open_files", "cpu"} <= set(state["rlimits"])


@pytest.mark.parametrize("regime", REGIMES)
def test_require_names_what_is_missing(regime: str) -> None:
    state = call(regime, sealed, "require")
    if MEASURES[regime]:
        assert state["policy"] == "require"
    else:
        assert "missing: pid namespace, net namespace, mount namespace, ipc namespace" in state["refused"]
        assert "Try: use --sandbox best" in state["refused"]
