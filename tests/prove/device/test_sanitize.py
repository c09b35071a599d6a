"""What compute-sanitizer's reports say in our words (reports in the form that the tool prints)."""

from __future__ import annotations

import pytest

from tilewright.prove.device import sanitize

MEMCHECK = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at row_softmax+0x510 in /tmp/x/wrong_tail.cu:41
=========     by thread (232,0,0) in block (127,0,0)
=========     Access at 0x7f5a1be7d000 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f5a1be00000 of size 512000 bytes
=========
========= ERROR SUMMARY: 24 errors
"""
RACECHECK = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at block_reduce(float, bool)+0x1a0 in wrong_barrier.cu:20
=========     and Read access at block_reduce(float, bool)+0x160 in wrong_barrier.cu:19 [896 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
TORCHS_OWN = """========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>>(int)+0x90
=========     by thread (0,0,0) in block (0,0,0)
=========
========= ERROR SUMMARY: 1 error
"""
CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"


def test_a_bad_access_names_kernel_and_line() -> None:
    (seen,) = sanitize.parse(MEMCHECK)
    assert seen == sanitize.Seen("invalid __global__ write of size 4 bytes", "row_softmax", "wrong_tail.cu:41")


def test_a_race_names_kernel_and_line() -> None:
    (seen,) = sanitize.parse(RACECHECK)
    assert (seen.words, seen.where) == ("race reported between Write access", "wrong_barrier.cu:20")
    assert seen.kernel == "block_reduce"


@pytest.mark.parametrize("report", [CLEAN, TORCHS_OWN])
def test_reports_of_others_are_left_out(report: str) -> None:
    assert sanitize.parse(report) == []


@pytest.mark.parametrize(
    ("report", "said", "words"),
    [
        (CLEAN, "called\n", ""),
        (MEMCHECK, "", ""),
        (CLEAN, "Traceback\nValueError: x", "the call ended without a result: ValueError: x"),
        ("========= COMPUTE-SANITIZER\n========= Device not supported.\n", "", "Device not supported."),
        ("", "", "status 1"),
    ],
)
def test_a_report_that_says_nothing_is_told_apart_from_a_clean_one(report: str, said: str, words: str) -> None:
    assert sanitize.broken({"report": report, "said": said, "status": 1}) == words
