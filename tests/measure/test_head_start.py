"""The head start that a device is given before each call: long enough for the slowest host, the same for all arms."""

import numpy
import pytest

from tilewright.measure.hand import Turn
from tilewright.measure.pairing import Lane, Pairing
from tilewright.measure.protocol import PROTOCOL


class Feed:
    def choose(self):
        return None


class Hand:
    """A call takes the device 10 µs; if the host comes later than the head start lasts, what it is late by as well."""

    feed = Feed()

    def __init__(self, host):
        self.host, self.head_start = host, PROTOCOL.head_start

    def turn(self, calls, settle, judged, given=None):
        time = 1e-5 + max(0.0, self.host - self.head_start)
        return Turn(times=[time] * calls, inner=[time] * calls, clean=[True] * calls, host=[self.host] * calls)


def played(**hosts):
    lanes = [Lane(n, Hand(h)) for n, h in hosts.items()]
    pairing = Pairing(lanes, PROTOCOL, lambda kept, name: "", numpy.random.default_rng(1))
    pairing.run()
    return pairing


@pytest.mark.parametrize("host", [20e-6, 240e-6, 700e-6])
def test_the_device_s_time_does_not_show_the_host_s(host):
    pairing = played(candidate=20e-6, eager=host)
    for lane in pairing.lanes:
        assert {round(t * 1e6, 3) for b in lane.blocks for t in b} == {10.0}
        assert lane.hand.head_start == pairing.lanes[0].hand.head_start
    assert pairing.lanes[0].hand.head_start >= PROTOCOL.head_start_margin * host


def test_a_host_that_gets_slower_has_its_block_taken_again():
    lanes = [Lane("candidate", Hand(20e-6)), Lane("eager", Hand(20e-6))]
    pairing = Pairing(lanes, PROTOCOL, lambda kept, name: "", numpy.random.default_rng(1))
    for lane in lanes:
        pairing._size(lane)
    assert not pairing._give_head_start([x.host for x in lanes])
    lanes[1].hand.host = 900e-6
    pairing._block()
    assert (len(lanes[0].blocks), pairing.late) == (0, 1)
    pairing._block()
    assert (len(lanes[0].blocks), len(lanes[1].blocks), pairing.late) == (1, 1, 1)
    assert max(lanes[1].blocks[0]) == pytest.approx(1e-5)


def test_past_the_most_the_host_s_time_shows():
    pairing = played(candidate=20e-6, eager=5e-3)
    assert pairing.lanes[1].hand.head_start == PROTOCOL.head_start_most
    assert min(pairing.lanes[1].blocks[0]) == pytest.approx(1e-5 + 3e-3)
