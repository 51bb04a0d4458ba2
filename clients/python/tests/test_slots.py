"""The way of a call through a cluster, without a server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from time import monotonic

import pytest
from redis import exceptions as errors

from fakes import Clock, core
from redis_ratelimit import Breaker, Unavailable
from redis_ratelimit.call.call import Call
from redis_ratelimit.decide.failure import Redirected
from redis_ratelimit.wire.channel_threads import drive
from redis_ratelimit.wire.redirect import SLOTS, Hop, routed
from redis_ratelimit.wire.slots import SlotMap, slot_of

ONE, TWO, THREE = ("one", 1), ("two", 2), ("three", 3)
CALL = Call(["RL.GCRA", "k", 9, 10, "1s"], ["k"])
HALVES: list[object] = [
    [0, 8191, [b"one", 1, b"id1"], [b"three", 3, b"id3"]],
    [8192, 16383, [b"", 2, b"id2"]],
]


class Nodes:
    """Nodes that reply what a test says, in this order. Errors are raised."""

    def __init__(self, *replies: object) -> None:
        self.replies = list(replies)
        self.asked: list[Hop] = []

    def __call__(self, hop: Hop) -> object:
        self.asked.append(hop)
        reply = HALVES if hop.call is SLOTS and not isinstance(self.replies[0], Exception) else self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def addresses(self) -> list[tuple[str, int]]:
        return [hop.address for hop in self.asked]


def slots(
    *seeds: tuple[str, int],
    replicas: bool = False,
    remap: Callable[..., tuple[str, int]] | None = None,
    clock: Callable[[], float] = monotonic,
) -> SlotMap:
    return SlotMap(seeds or (ONE, TWO), remap, replicas, 0.1, clock)


def known(replicas: bool = False, clock: Callable[[], float] = monotonic) -> SlotMap:
    known = slots(replicas=replicas, clock=clock)
    known.replace(("two", 2), HALVES)
    return known


def key_in(low: int, high: int) -> str:
    return next(key for key in map(str, range(100_000)) if low <= slot_of(key) <= high)


FIRST, SECOND = key_in(0, 8191), key_in(8192, 16383)


def call(key: str | bytes, *, readonly: bool = False) -> Call:
    return Call(["RL.GCRA", key, 9, 10, "1s"], [key], readonly=readonly)


def test_the_slots_are_asked_once() -> None:
    way, nodes = slots(), Nodes("reply", "reply")
    assert drive(routed(way, call(FIRST)), nodes) == "reply"
    assert drive(routed(way, call(SECOND)), nodes) == "reply"
    # A node without a host in its own reply is the one that was asked.
    assert nodes.addresses() == [ONE, ONE, ("one", 2)]


def test_a_seed_that_does_not_answer_is_asked_last() -> None:
    way, nodes = slots(), Nodes(errors.ConnectionError(), "reply")
    assert drive(routed(way, call(FIRST)), nodes) == "reply"
    assert nodes.addresses() == [ONE, TWO, ONE]
    nobody = Nodes(errors.ConnectionError("first"), errors.TimeoutError("second"))
    with pytest.raises(errors.TimeoutError, match="second"):
        drive(routed(slots(), call(FIRST)), nobody)


def test_moved_is_followed_and_remembered() -> None:
    way = known()
    nodes = Nodes(errors.MovedError(f"{slot_of(FIRST)} three:3"), "reply", "again")
    assert drive(routed(way, call(FIRST)), nodes) == "reply"
    assert nodes.addresses() == [ONE, THREE]
    assert way.where(call(FIRST)) == "three:3"
    # The next call looks at the slots, and those say as before.
    assert drive(routed(way, call(FIRST)), nodes) == "again"
    assert nodes.asked[2].call is SLOTS and nodes.asked[3].address == ONE


def test_moved_to_nowhere_stays_on_the_host() -> None:
    nodes = Nodes(errors.MovedError(f"{slot_of(FIRST)} :7"), "reply")
    assert drive(routed(known(), call(FIRST)), nodes) == "reply"
    assert nodes.addresses() == [ONE, ("one", 7)]


def test_ask_is_followed_once() -> None:
    way = known()
    nodes = Nodes(errors.AskError(f"{slot_of(FIRST)} three:3"), "reply", "again")
    assert drive(routed(way, call(FIRST)), nodes) == "reply"
    assert nodes.asked[1] == Hop(THREE, nodes.asked[0].call, asking=True)
    assert drive(routed(way, call(FIRST)), nodes) == "again"
    assert nodes.asked[2].address == ONE


def test_endless_redirections_end() -> None:
    with pytest.raises(errors.ClusterError, match="redirected 5 times"):
        drive(routed(known(), call(FIRST)), Nodes(*[errors.MovedError(f"{slot_of(FIRST)} one:1")] * 5))


def test_a_lost_node_makes_the_slots_suspect() -> None:
    clock = Clock()
    way = known(clock=clock)
    nodes = Nodes(errors.ConnectionError(), errors.ConnectionError(), "reply", "reply")
    with pytest.raises(errors.ConnectionError):
        drive(routed(way, call(FIRST)), nodes)
    # The look fails too. The call goes where it was known to go, and the next look is a second later.
    assert drive(routed(way, call(FIRST)), nodes) == "reply"
    assert [hop.call is SLOTS for hop in nodes.asked] == [False, True, False]
    assert not way.wants_refresh()
    clock.now += 1.5
    assert drive(routed(way, call(FIRST)), nodes) == "reply"
    assert [hop.call is SLOTS for hop in nodes.asked[3:]] == [True, False]


def test_probes_go_to_replicas_if_asked_to() -> None:
    nodes = Nodes(*["reply"] * 4)
    drive(routed(known(), call(FIRST, readonly=True)), nodes)
    drive(routed(known(replicas=True), call(FIRST, readonly=True)), nodes)
    drive(routed(known(replicas=True), call(FIRST)), nodes)
    drive(routed(known(replicas=True), call(SECOND, readonly=True)), nodes)  # it has none
    assert nodes.addresses() == [ONE, THREE, ONE, TWO]


def test_a_slot_without_a_node_is_unavailable() -> None:
    way = slots()
    way.replace(ONE, [[0, 8191, [b"one", 1]]])
    with pytest.raises(errors.SlotNotCoveredError):
        drive(routed(way, call(SECOND)), Nodes())
    assert way.wants_refresh()
    way.replace(ONE, [])
    assert way.primaries() == [ONE]


def test_addresses_are_remapped() -> None:
    def outside(address: tuple[str, int]) -> tuple[str, int]:
        return "proxy", address[1] + 100

    way = slots(remap=outside)
    way.replace(ONE, HALVES)
    assert way.primaries() == [("proxy", 101), ("proxy", 102)]


def test_there_is_a_key_for_each_primary() -> None:
    numbers = count()
    keys = known().keys_of_all(lambda: f"ready:{next(numbers)}")
    assert {known().where(call(key)) for key in keys} == {"one:1", "two:2"} and len(keys) == 2
    tagged: Sequence[str | bytes] = known().keys_of_all(lambda: f"{{tag}}:{next(numbers)}")
    assert len(tagged) == 1


def test_where_nothing_is_known_it_is_the_cluster() -> None:
    assert slots().where(call("a")) == slots().where(call(b"a")) == slots().where(Call(["RL.HELP"])) == "the cluster"


def test_the_node_that_will_be_asked_has_a_name() -> None:
    way, probe = known(replicas=True), call(FIRST, readonly=True)
    assert [way.where(call(FIRST)), way.where(probe), way.where(call(SECOND, readonly=True))] == ["one:1", "three:3", "two:2"]
    way.instead(THREE, probe)
    assert way.where(probe) == "one:1"


def test_a_replica_that_does_not_answer_rests_and_the_primary_is_asked() -> None:
    clock = Clock()
    way, probe = known(replicas=True, clock=clock), call(FIRST, readonly=True)
    loading = Nodes(errors.BusyLoadingError("loading"), "reply")
    assert drive(routed(way, probe), loading) == "reply"
    assert loading.addresses() == [THREE, ONE]
    assert way.node(probe) == ONE
    clock.now += 1.5
    assert way.node(probe) == THREE


def test_replicas_do_not_answer_for_policies() -> None:
    assert known(replicas=True).node(Call(["RL.ASKPEEK", FIRST, "api"], [FIRST], readonly=True)) == ONE


def test_a_node_with_an_old_map_is_not_believed_for_ever() -> None:
    way, asked = slots(ONE), list[tuple[str, int]]()
    for _ in range(4):
        asked.append(way.seeds()[0])
        way.replace(asked[-1], [[0, 8191, [b"one", 1], [b"three", 3]], [8192, 16383, [b"two", 2]]])
    assert set(asked[1:]) == {ONE, TWO, THREE} and asked[0] == ONE


def test_a_suspected_node_is_asked_last() -> None:
    way = slots(ONE, TWO, THREE)
    way.suspect(ONE)
    assert way.seeds() == [TWO, THREE, ONE]


def test_the_slots_are_asked_once_a_second_at_most() -> None:
    clock = Clock()
    way, nodes = known(clock=clock), Nodes(*["reply"] * 20)
    for _ in range(10):
        way.suspect()
        drive(routed(way, call(FIRST)), nodes)
    assert sum(hop.call is SLOTS for hop in nodes.asked) == 1
    clock.now += 1.5
    way.suspect()
    drive(routed(way, call(FIRST)), nodes)
    assert sum(hop.call is SLOTS for hop in nodes.asked) == 2


def test_a_call_whose_keys_move_is_sent_again() -> None:
    moves = errors.TryAgainError("Multiple keys request during rehashing of slot")
    nodes = Nodes(moves, moves, "reply")
    assert drive(routed(known(), call(FIRST)), nodes) == "reply"
    assert [hop.pause for hop in nodes.asked] == [0.0, 0.01, 0.02]
    clock = Clock()

    def later(hop: Hop) -> object:
        clock.now += 0.06
        raise moves

    with pytest.raises(errors.TryAgainError, match="rehashing"):
        drive(routed(known(clock=clock), call(FIRST)), later)


def test_conditions_of_one_key_do_not_open_the_breaker() -> None:
    own, one = core(breaker=Breaker(failures=1)), call(FIRST)
    moved = [errors.MovedError(f"{slot_of(FIRST)} one:1")] * 5
    with pytest.raises(Redirected) as raised:
        drive(routed(known(), one), Nodes(*moved))
    one.asked = "one:1"
    missing = own.lost(one, "one:1", own.enter(one, "one:1"), raised.value)
    assert isinstance(missing, Unavailable) and missing.kind == "MOVED"
    own.enter(one, "one:1")
    assert own.counters.snapshot()["breaker_opened"] == 0
