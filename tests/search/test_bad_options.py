"""Options and records that make no sense end with a sentence and exit code 2, never with a traceback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tilewright.cli import run as command
from tilewright.errors import UserError
from tilewright.search import plugins, start

from .spaces import grid

STRATEGIES = [
    ("beam:width=abc", "'width' of strategy 'beam' is 'abc'"),
    ("beam:width=0", "'width' of strategy 'beam' is '0'"),
    ("beam:width=1.5", "'width' of strategy 'beam' is '1.5'"),
    ("islands:islands=0", "'islands' of strategy 'islands' is '0'"),
    ("islands:tournament=0", "'tournament'"),
    ("islands:migration=-3", "'migration'"),
    ("map-elites:greed=2", "'greed' of strategy 'map-elites' is '2'"),
    ("map-elites:dimensions=0", "'dimensions'"),
    ("mcts:k=nan", "'k' of strategy 'mcts' is 'nan'"),
    ("mcts:a=-1", "'a'"),
    ("mcts:c=inf", "'c'"),
    ("bandit:spread=0", "'spread' of strategy 'bandit' is '0'"),
    ("bandit:fade=1.5", "'fade'"),
    ("beam:size=3", "does not take 'size'"),
    ("random:a=1", "it takes no options"),
    ("learned:weights=none.json", "none.json"),
]


@pytest.mark.parametrize(("text", "words"), STRATEGIES)
def test_an_option_of_a_strategy_that_makes_no_sense_is_told(text: str, words: str) -> None:
    name, options = start.split(text)
    with pytest.raises(UserError) as e:
        plugins.strategy(name, **options)
    assert words in str(e.value)


@pytest.mark.parametrize("name", plugins.names("strategies"))
def test_every_option_of_every_strategy_is_looked_at(name: str) -> None:
    """Whoever adds an option without a check is found here."""
    import inspect

    kind = type(plugins.strategy(name))
    for option in list(inspect.signature(kind.__init__).parameters)[1:] if "__init__" in vars(kind) else []:
        with pytest.raises(UserError):
            plugins.strategy(name, **{option: "nonsense"})


@pytest.mark.parametrize("text", ["beam:width=abc", "islands:islands=0"])
def test_the_command_says_it(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = Path(__file__).parents[2] / "examples" / "07_search_rowsum"
    arguments = ["search", str(folder / "problem.py"), str(folder / "kernel.c"), "--budget", "1trials", "-s", text]
    assert command([*arguments, "--ledger", str(tmp_path / "l.sqlite")]) == 2
    assert "of strategy" in capsys.readouterr().err


WHOLE = grid().dump()


def table(*points: str, start: str = '{"A": 1}') -> str:
    return f'{{"points": [{", ".join(points)}], "start": {start}}}'


def changed(**parts: object) -> str:
    return json.dumps({**WHOLE, **parts})


def entries(**parts: object) -> str:
    return changed(entries=[{**e, **parts} for e in WHOLE["entries"]])


ONE = '{"at": {"A": 1}, "ratio": 1}'
TWO = '{"at": {"A": 2}, "ratio": 3}'
NO_TIME = {"seconds": 1, "ratio": 0, "low": 0, "high": 0}
ODD = {
    "empty": "",
    "blank": " \n",
    "no spaces": "[]",
    "null": "null",
    "a number": "3",
    "a word": '"space"',
    "rows of numbers": "[1, 2]",
    "bytes": b"\xff\xfe\x00\x01",
    "deep": "[" * 100_000,
    "no points": '{"points": [], "start": {}}',
    "points are no list": '{"points": 5, "start": {"A": 1}}',
    "points are words": '{"points": ["a"], "start": {"A": 1}}',
    "a point without a place": table('{"ratio": 1}'),
    "a place that is a list": table('{"at": [1], "ratio": 1}'),
    "a start that is a list": table(ONE, start="[1]"),
    "a ratio of nothing": table('{"at": {"A": 1}, "ratio": 0}'),
    "a ratio below nothing": table('{"at": {"A": 1}, "ratio": -1}', TWO),
    "a ratio in words": table('{"at": {"A": 1}, "ratio": "fast"}'),
    "a ratio that is none": table('{"at": {"A": 1}, "ratio": NaN}', TWO),
    "an endless ratio": table(ONE, '{"at": {"A": 2}, "ratio": Infinity}'),
    "neither ratio nor failure": table(ONE, '{"at": {"A": 2}}'),
    "two points of unlike kind": table(ONE, '{"at": {"A": {"x": 1}}, "ratio": 2}'),
    "a start that is no entry": changed(start=1000),
    "a start before the first": changed(start=-1),
    "a move to nowhere": changed(moves={"0": [1000]}),
    "a move from nowhere": changed(moves={"x": [0]}),
    "no entries": changed(entries=[]),
    "entries are words": changed(entries=["a"]),
    "an entry without a time or a failure": entries(timing=None, failure=None),
    "a time that is none": entries(timing=NO_TIME),
    "moves are a list": changed(moves=[1]),
    "one entry": table(ONE),
}


@pytest.mark.parametrize("name", ODD)
def test_a_study_of_an_odd_file_says_what_is_wrong_with_it(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = ODD[name]
    (tmp_path / "odd.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    ledger = str(tmp_path / "l.sqlite")
    code = command(
        ["study", str(tmp_path / "odd.json"), "--seeds", "2", "--trials", "2", "-s", "random", "--ledger", ledger]
    )
    told = capsys.readouterr().err
    assert code == 2, told
    assert "Traceback" not in told
    assert "odd" in told or "made up" in told, "it names the file or the space"


def test_a_run_without_a_trial_is_no_space(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tilewright.ledger import Ledger
    from tilewright.search import store

    ledger = str(tmp_path / "l.sqlite")
    made = store.RunStore.create(
        Ledger.open(ledger), key={}, kind="replayed", problem="p", kernel_path="k.c", options={}
    )
    assert command(["study", made.id, "--ledger", ledger]) == 2
    assert "has no trial yet" in " ".join(capsys.readouterr().err.split())
