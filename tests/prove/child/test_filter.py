"""The system call filter's answers, computed for both architectures."""

from __future__ import annotations

import errno

import pytest

from tilewright.prove.child import seccomp

ALLOW, REFUSE, UNKNOWN = 0x7FFF0000, 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS
ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ORDINARY = {
    "x86_64": {"read": 0, "mmap": 9, "execve": 59, "futex": 202, "sendmsg": 46, "socketpair": 53},
    "aarch64": {"read": 63, "mmap": 222, "execve": 221, "futex": 98, "sendmsg": 211, "socketpair": 199},
}


def answer(machine: str, name: str, *arguments: int, signals_to: int | None = None) -> int:
    number = seccomp.NUMBERS[name][machine == "aarch64"]
    assert number is not None
    code = seccomp.program(signals_to=signals_to, machine=machine)
    return seccomp.run(code, number, arguments, ARCH[machine])


@pytest.mark.parametrize("machine", ARCH)
def test_denied_calls_are_refused_and_ordinary_ones_are_not(machine: str) -> None:
    for name in seccomp.DENIED:
        if seccomp.NUMBERS[name][machine == "aarch64"] is not None:
            assert answer(machine, name) == REFUSE, name
    code = seccomp.program(machine=machine)
    for name, number in ORDINARY[machine].items():
        assert seccomp.run(code, number, (), ARCH[machine]) == ALLOW, name


@pytest.mark.parametrize("machine", ARCH)
def test_calls_judged_by_their_arguments(machine: str) -> None:
    assert answer(machine, "clone", 0x1200011) == ALLOW  # fork
    assert answer(machine, "clone", 0x10000011) == REFUSE  # with a user namespace
    assert answer(machine, "clone3") == UNKNOWN
    assert answer(machine, "personality", 0xFFFFFFFF) == ALLOW
    assert answer(machine, "personality", 0x40000) == REFUSE
    assert answer(machine, "prctl", 1) == REFUSE
    assert answer(machine, "prctl", 15) == ALLOW
    assert answer(machine, "ioctl", 0, 0x5412) == REFUSE
    assert answer(machine, "ioctl", 0, 0x5401) == ALLOW


@pytest.mark.parametrize("machine", ARCH)
def test_a_child_with_a_gpu_may_bind_local_sockets_and_reach_nobody(machine: str) -> None:
    code = seccomp.program(machine=machine, local_sockets=True)

    def asked(name: str, *arguments: int) -> int:
        number = seccomp.NUMBERS[name][machine == "aarch64"]
        assert number is not None
        return seccomp.run(code, number, arguments, ARCH[machine])

    stream, datagram, raw, packets, cloexec = 1, 2, 3, 5, 0o2000000
    assert [asked("socket", 1, kind | cloexec) for kind in (stream, packets)] == [ALLOW, ALLOW]
    assert [asked("socket", 1, kind) for kind in (datagram, raw)] == [REFUSE, REFUSE]
    assert [asked("socket", family, stream) for family in (2, 10, 16)] == [REFUSE] * 3
    assert asked("bind") == asked("listen") == asked("accept4") == ALLOW
    assert asked("connect") == REFUSE


@pytest.mark.parametrize("machine", ARCH)
def test_signals_to_others_where_nothing_else_holds_them(machine: str) -> None:
    assert answer(machine, "kill", 4321, signals_to=77) == REFUSE
    assert answer(machine, "kill", 0xFFFFFFFF, signals_to=77) == REFUSE  # -1: everyone
    assert answer(machine, "kill", 77, signals_to=77) == ALLOW
    assert answer(machine, "kill", 0, signals_to=77) == ALLOW
    assert answer(machine, "tgkill", 77, signals_to=77) == ALLOW
    assert answer(machine, "tgkill", 0, signals_to=77) == REFUSE
    assert answer(machine, "kill", 4321) == ALLOW  # a namespace or Landlock holds them


def test_another_table_of_calls_is_no_way_round() -> None:
    code = seccomp.program(machine="x86_64")
    assert seccomp.run(code, 41, (), 0x40000003) == 0x80000000  # 32-bit: killed
    assert seccomp.run(code, 0x40000000 | 41, (), ARCH["x86_64"]) == REFUSE  # x32
