"""The loop, and that a kill between any two of its states loses nothing but the trial in flight."""

import os
import signal
import time

import pytest

from tilewright.errors import EnvironmentProblem, InternalError
from tilewright.ledger import Ledger
from tilewright.search import plugins, replay, store
from tilewright.search.budget import Budget
from tilewright.search.memory import Memory
from tilewright.search.run import Run
from tilewright.search.tree import BaseProposer, Choice, Cost, Proposal, Strategy

from .spaces import BEST, grid, run

SPACE = grid()
TRIALS = 4


@pytest.fixture
def ledger(tmp_path):
    return Ledger.open(tmp_path / "ledger.sqlite")


def begin(ledger):
    return store.RunStore.create(ledger, key={}, kind="replayed", problem="p", kernel_path="k", options={})


def go_on(ledger, id):
    return store.RunStore(ledger, store.load(ledger, id))


def settled(tree):
    """Nodes without what a clock gave."""
    return list(tree)


class Stop(BaseException):
    """Not an Exception: nothing may catch it, as nothing catches SIGKILL."""


def stopping(book, at):
    """The book, whose owner dies after its ``at``-th write."""
    writes = [0]

    def after(method):
        def wrapped(*a):
            method(*a)
            writes[0] += 1
            if writes[0] == at:
                raise Stop

        return wrapped

    for name in ("event", "proposed", "told"):
        setattr(book, name, after(getattr(book, name)))
    return book


@pytest.mark.parametrize("name", plugins.names("strategies"))
def test_dies_after_any_write_and_goes_on_to_the_same_tree(name, tmp_path):
    whole = Ledger.open(tmp_path / "whole.sqlite")
    first = begin(whole)
    expected = run(SPACE, name, TRIALS, book=first, finalists=2, seed=4)
    conclusion = expected.go()
    writes = _events(whole, first.id)
    ledger = Ledger.open(tmp_path / "killed.sqlite")
    every = 1 if name == "bandit" else 9  # one strategy after every single write, the others at some
    for at in range(1, writes + 1, every):
        book = begin(ledger)
        with pytest.raises(Stop):
            run(SPACE, name, TRIALS, book=stopping(book, at), finalists=2, seed=4).go()
        again = run(SPACE, name, TRIALS, book=go_on(ledger, book.id), finalists=2, seed=4)
        ended = again.go()
        assert settled(again.tree) == settled(expected.tree), f"after write {at}"
        assert settled(store.tree_of(ledger, book.id)) == settled(expected.tree)
        assert ended.model_dump(exclude={"cost"}) == conclusion.model_dump(exclude={"cost"})
        assert _events(ledger, book.id) == writes, "nothing is recorded twice"


def _events(ledger, id):
    from sqlalchemy import func, select

    from tilewright.ledger.search_models import SearchEvent

    with ledger.store.read() as c:
        return c.execute(select(func.count()).where(SearchEvent.run == id)).scalar()


def test_a_real_kill(tmp_path):
    """SIGKILL at uneven moments, again and again, until the run is through."""
    path = tmp_path / "ledger.sqlite"
    expected = run(SPACE, "islands", 12, finalists=2, seed=9)
    expected.go()
    id = begin(Ledger.open(path)).id
    kills = 0
    while store.load(Ledger.open(path), id).ended is None:
        child = os.fork()
        if child == 0:
            search = run(SPACE, "islands", 12, book=go_on(Ledger.open(path), id), finalists=2, seed=9,
                         notify=lambda *_: time.sleep(0.005))  # fmt: skip
            search.go()
            os._exit(0)
        time.sleep(0.05 + 0.013 * (kills % 7) + 0.02 * kills)
        os.kill(child, signal.SIGKILL)
        kills += os.waitpid(child, 0)[1] == signal.SIGKILL
        assert kills < 100
    assert kills >= 2
    assert settled(store.tree_of(Ledger.open(path), id)) == settled(expected.tree)


def test_a_run_that_ended_says_so_again(ledger):
    book = begin(ledger)
    one = run(SPACE, "greedy", 3, book=book).go()
    two = run(SPACE, "greedy", 3, book=go_on(ledger, book.id)).go()
    assert one == two


def test_a_strategy_with_dice_of_its_own_is_found_out(ledger):
    class Dice(Strategy):
        name = "dice"

        def ask(self, tree, rng):
            return Choice(int.from_bytes(os.urandom(8)) % len(tree))

    def search(book):
        return Run(
            book, replay.subject(SPACE), replay.Recorded(SPACE), Dice(), replay.proposers(SPACE), Budget(trials=12)
        )

    book = begin(ledger)
    with pytest.raises(Stop):
        search(stopping(book, 40)).go()
    with pytest.raises(InternalError, match=r"strategy 'dice' chose .* where the recorded run\s+chose"):
        search(go_on(ledger, book.id)).go()


class Says(BaseProposer):
    """Proposes what it is given, one after the other."""

    name = "says"

    def __init__(self, *many):
        self.many = list(many)
        self.told = []
        self.contexts = []

    def propose(self, context):
        self.contexts.append(context)
        x = self.many.pop(0) if self.many else None
        if isinstance(x, Exception):
            raise x
        return x

    def tell(self, node):
        self.told.append(node.number)


def with_proposer(proposer, budget=None, book=None, **more):
    return Run(book or Memory(), replay.subject(SPACE), replay.Recorded(SPACE), plugins.strategy("greedy"),
               {"says": proposer}, budget or Budget(trials=3), finalists=0, patience=4, **more)  # fmt: skip


def entry(**at):
    return next(e.proposal for e in SPACE.entries.values() if e.proposal.parameters == at)


SECOND = entry(**BEST)


def test_the_same_code_twice_is_no_trial():
    costly = SECOND.model_copy(update={"cost": Cost(tokens=100), "proposer": "llm"})
    search = with_proposer(Says(SECOND, costly, SECOND))
    conclusion = search.go()
    assert len(search.tree) == 2
    assert search.declines[:2] == ["the same code as #1"] * 2
    assert conclusion.stopped == "nothing new to try: says has nothing to propose"
    assert search.cost.tokens == 100, "what it cost is counted all the same"


def test_a_proposer_that_breaks_does_not_break_the_run(ledger):
    book = begin(ledger)
    search = with_proposer(Says(ValueError("oh"), SECOND), book=book)
    search.go()
    assert search.declines[0] == "says raised ValueError: oh"
    assert len(search.tree) == 2
    step = store.read_steps(ledger, book.id)[1]
    assert step.states["declined"]["reason"] == "says raised ValueError: oh"


def test_a_missing_key_ends_the_process_not_the_run(ledger):
    book = begin(ledger)
    with pytest.raises(EnvironmentProblem, match="no key"):
        with_proposer(Says(EnvironmentProblem("no key")), book=book).go()
    assert store.load(ledger, book.id).ended is None
    again = with_proposer(Says(SECOND), book=go_on(ledger, book.id))
    again.go()
    assert len(again.tree) == 2


def test_budgets():
    many = [e.proposal.model_copy(update={"cost": Cost(tokens=10, money=0.5)}) for e in SPACE.entries.values()
            if e.proposal.sha256() != SPACE.start]  # fmt: skip
    for budget, trials, word in ((Budget(trials=5), 5, "trials"), (Budget(tokens=35), 4, "tokens"),
                                 (Budget(money=1.0), 2, "money")):  # fmt: skip
        search = with_proposer(Says(*many), budget)
        assert search.go().stopped == word
        assert len(search.tree) - 1 == trials


def test_what_a_proposer_is_told():
    proposer = Says(SECOND)
    search = with_proposer(proposer)
    search.go()
    assert proposer.told == [0, 1]
    context = proposer.contexts[1]
    assert context.parent.number == 1
    assert [n.number for n in context.lineage] == [0, 1]
    assert context.left.trials == 2
    assert not context.scratch.exists(), "emptied after the proposal"


def test_an_empty_proposal_is_a_failure_that_runs_nothing():
    search = with_proposer(Says(Proposal(source=" \n", proposer="says"), SECOND))
    search.go()
    assert search.tree[1].failure.kind == "compile"
    assert search.tree[1].score is None
