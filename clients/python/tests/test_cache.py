"""The memory of refusals leaves nothing behind."""

from __future__ import annotations

from redis_ratelimit import Decision, RefusalCache
from redis_ratelimit.call.questions import Place
from redis_ratelimit.decide.refusals import Refusals


def test_a_key_that_goes_leaves_nothing_behind() -> None:
    kept = Refusals(RefusalCache(keys=2))
    places = [Place((b"all", b"user:%d" % number), b"", ("q",)) for number in range(100)]
    for place in places:
        kept.keep(place, Decision(False, 1, 0, 30.0, 60.0), 0.0)
    assert len(kept) == 2 and kept.find(places[-1], Decision, 1.0) is not None
    kept.forget(b"all")
    assert [kept.find(place, Decision, 1.0) for place in places] == [None] * 100
    assert len(kept) == 0


def test_what_is_known_of_few_keys_is_taken_for_all_others() -> None:
    kept = Refusals(RefusalCache(keys=2))
    before, place = kept.generation, Place((b"e",), b"", ("q",))
    for key in (b"a", b"b", b"c"):
        kept.forget(key)
    kept.keep(place, Decision(False, 1, 0, 30.0, 60.0), 6.0, before)
    assert kept.find(place, Decision, 6.0) is None
