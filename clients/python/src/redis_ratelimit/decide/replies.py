"""From replies of the server, in RESP2 or RESP3, to values. A reply of another form than that of its command is an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec, TypeAlias, TypeVar, cast

from ..call.call import Call
from ..call.errors import RateLimitError
from ..call.limit import Limiter
from .decision import AskDecision, Decision, Info, LeaseDecision, MultiDecision, SettledDecision, ShedReply, TopEntry

Five: TypeAlias = Sequence[int]


D = TypeVar("D", bound=Decision)
P = ParamSpec("P")
T = TypeVar("T")


def _formed(reader: Callable[Concatenate[object, P], T]) -> Callable[Concatenate[object, P], T]:
    """Makes one error of all that a reader raises about a reply of another form, such as that of a proxy or of a stand-in."""

    @wraps(reader)
    def read(reply: object, /, *more: P.args, **named: P.kwargs) -> T:
        try:
            return reader(reply, *more, **named)
        except (TypeError, ValueError, LookupError) as error:
            raise RateLimitError(f"a reply of an unknown form: {reply!r}") from error

    return read


def read(kind: type[D], reply: object, limiters: Sequence[Limiter], costs: Sequence[int] | int = 0) -> D:
    """Returns the decision of this kind. `costs` are what the call charges if it is allowed."""
    if kind is MultiDecision:
        return cast(D, multi(reply, limiters, () if isinstance(costs, int) else costs))
    cost, limiter = costs if isinstance(costs, int) else 0, limiters[0] if limiters else None
    if kind is LeaseDecision:
        return cast(D, lease(reply, cost))
    return cast(D, ask(reply, cost) if kind is AskDecision else decision(reply, limiter, cost))


@_formed
def decision(reply: object, limiter: Limiter | None = None, cost: int = 0) -> Decision:
    """Five integers: limited, limit, remaining, retry_after and reset_after in ms. A sixth is what was granted."""
    five = _integers(reply)
    granted = five[5] if len(five) > 5 else None
    charged = 0 if five[0] else cost if granted is None else granted
    return Decision(*_five(five), granted, limiter=limiter, charged=charged)


@_formed
def lease(reply: object, cost: int = 0) -> LeaseDecision:
    """Five integers, and with FENCE the token of the lease. No lease has the token 0."""
    five = _integers(reply)
    return LeaseDecision(*_five(five), charged=0 if five[0] else cost, fence=five[5] or None if len(five) > 5 else None)


@_formed
def settled(reply: object) -> SettledDecision:
    """Five integers, and whether something was held."""
    five = _integers(reply, 6)
    return SettledDecision(*_five(five), settled=five[5] == 1)


@_formed
def multi(reply: object, limiters: Sequence[Limiter] = (), costs: Sequence[int] = ()) -> MultiDecision:
    """The five integers for all, those of each pair, and after a settlement the number of keys that held."""
    five, each, *held = _array(reply)
    settled = _integer(held[0]) if held else None
    return MultiDecision(*_five(_integers(five)), each=_each(_array(each), limiters, costs), settled=settled)


@_formed
def ask(reply: object, cost: int = 0) -> AskDecision:
    """Six integers, the sixth of which is the pair that binds. With FULL, the five integers of each pair too."""
    six, each = _full(reply)
    charged = 0 if six[0] else cost
    return AskDecision(*_five(six), binding=six[5] or None, each=_each(each), charged=charged)


@_formed
def asksettled(reply: object) -> AskDecision:
    """As of RL.ASK, but the sixth integer is the number of keys that held."""
    six, each = _full(reply)
    return AskDecision(*_five(six), each=_each(each), settled=six[5])


def has_ended(call: Call, reply: object) -> bool:
    """Whether a release released something, or a settlement, of any kind, settled something. Other replies say neither."""
    try:
        if call.command.endswith("RELEASE"):
            return int_(reply) > 0
        if call.command == "RL.MULTISETTLE":
            return bool(multi(reply).settled)
        return bool(asksettled(reply).settled)
    except RateLimitError:
        return False


@_formed
def throttle(reply: object) -> Decision:
    """The five integers of redis-cell, in seconds. A retry_after of -1 stands for no wait, and for never."""
    limited, limit, remaining, retry, reset = _integers(reply)
    retry_after = float(retry) if retry >= 0 else None if limited else 0.0
    return Decision(not limited, limit, remaining, retry_after, float(reset))


@_formed
def bool_(reply: object) -> bool:
    """1 or 0."""
    return _integer(reply) == 1


@_formed
def int_(reply: object) -> int:
    """A number."""
    return _integer(reply)


@_formed
def length(reply: object) -> int | None:
    """A length, or None if the elements do not fit."""
    return None if reply is None else _integer(reply)


@_formed
def id_(reply: object) -> str | None:
    """The id of an entry, or None if it does not fit."""
    return None if reply is None else _word(reply)


@_formed
def shed(reply: object) -> ShedReply:
    """Whether the call is shed, and the chance of that."""
    limited, chance = _array(reply)
    return ShedReply(_integer(limited) == 1, float(cast("bytes | str | float", chance)))


@_formed
def top(reply: object) -> list[TopEntry]:
    """The keys that are refused most."""
    return [TopEntry(text(key), *map(_integer, numbers)) for key, *numbers in map(_array, _array(reply))]


@_formed
def info(reply: object) -> Info | None:
    """What a key holds, or None if there is no key."""
    return None if reply is None else _mapping(reply)


def map_(reply: object) -> Info | None:
    """Names and values, or None if there is no policy."""
    return info(reply)


@_formed
def policies(reply: object) -> dict[str, int]:
    """The version of each policy."""
    return {name: _integer(version) for name, version in _mapping(reply).items()}


@_formed
def help_(reply: object) -> list[str]:
    """Lines."""
    return [text(line) for line in _array(reply)]


@_formed
def ok(reply: object) -> None:
    """Nothing: any other reply than OK is an error."""
    if _word(reply) != "OK":
        raise ValueError("not OK")


def text(reply: object) -> str:
    """Text, from bytes too. Bytes that are no UTF-8 stay as surrogates."""
    return reply.decode(errors="surrogateescape") if isinstance(reply, bytes) else str(reply)


def _five(five: Five) -> tuple[bool, int, int, float | None, float]:
    limited, limit, remaining, retry, reset = five[:5]
    return not limited, limit, remaining, None if retry < 0 else retry / 1000, reset / 1000


def _each(
    each: Sequence[object], limiters: Sequence[Limiter] = (), costs: Sequence[int] = ()
) -> tuple[Decision, ...]:
    known = [*limiters, *[None] * (len(each) - len(limiters))]
    charged = [*costs, *[0] * (len(each) - len(costs))]
    return tuple(decision(five, limiter, cost) for five, limiter, cost in zip(each, known, charged, strict=True))


def _full(reply: object) -> tuple[Five, Sequence[object]]:
    first, *rest = _array(reply)
    return (_integers(reply, 6), ()) if isinstance(first, int) else (_integers(first, 6), _array(rest[0]))


def _array(reply: object) -> Sequence[object]:
    if not isinstance(reply, (list, tuple)):
        raise TypeError("no array")
    return cast(Sequence[object], reply)


def _word(reply: object) -> str:
    if not isinstance(reply, (bytes, str)):
        raise TypeError("no text")
    return text(reply)


def _integer(reply: object) -> int:
    if not isinstance(reply, int):
        raise TypeError("no integer")
    return reply


def _integers(reply: object, least: int = 5) -> Five:
    integers = _array(reply)
    if len(integers) < least or not all(isinstance(each, int) for each in integers):
        raise TypeError("no integers")
    return cast(Five, integers)


def _mapping(reply: object) -> dict[str, object]:
    """A map, which RESP2 sends as a flat list. A list in a list in it is a map."""
    if isinstance(reply, Mapping):
        pairs = list(cast(Mapping[object, object], reply).items())
    else:
        flat = _array(reply)
        pairs = list(zip(flat[::2], flat[1::2], strict=True))
    return {text(name): _value(value) for name, value in pairs}


def _value(value: object) -> object:
    if isinstance(value, list):
        items = cast(list[object], value)
        return [_value(item) if isinstance(item, (bytes, str, int)) else _mapping(item) for item in items]
    return text(value) if isinstance(value, (bytes, str)) else value
