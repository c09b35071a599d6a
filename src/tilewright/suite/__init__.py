"""Suites: many problems and kernels at once, checked, measured and scored.

``readers/`` lists the problems of a benchmark's folder, ``pairing`` finds the kernels that answer them, ``run`` checks
and measures what is not yet in the ledger, ``scores`` says what came out.
"""

from .pairing import Entry, Pairing, pair
from .problem import Facts, Problem, Suite, read_facts
from .readers import read_suite
from .run import Done, data, run_suite

__all__ = [
    "Done",
    "Entry",
    "Facts",
    "Pairing",
    "Problem",
    "Suite",
    "data",
    "pair",
    "read_facts",
    "read_suite",
    "run_suite",
]
