"""Values as callers write them, and as they stand in a command: keys, durations, numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from functools import lru_cache
from typing import TypeAlias
from zoneinfo import available_timezones

from .errors import ConfigurationError

Key: TypeAlias = str | bytes
"""A key of the server."""

Word: TypeAlias = str | bytes | int | float
"""A word of a command."""

Duration: TypeAlias = str | timedelta
"""A whole number with a unit (`ms`, `s`, `m`, `h`, `d` or `w`, as in `"90s"`), or a timedelta. Only `"0"` needs no unit."""

UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_NAMES = (
    ("ms", "millisecond milliseconds"),
    ("s", "sec secs second seconds"),
    ("m", "min mins minute minutes"),
    ("h", "hr hrs hour hours"),
    ("d", "day days"),
    ("w", "week weeks"),
)
NAMED_UNITS = {name: unit for unit, names in _NAMES for name in (unit, *names.split())}
"""The units and their English names."""
_OF_CALENDAR = re.compile(r"[0-9\s]*(M|(?i:mo|months?|quarters?|years?))\s*", re.ASCII)
_CALENDAR = {"m": "month", "q": "quarter", "y": "year"}
LONGEST = 3_153_600_000_000
_OFFSET = re.compile(r"[+-](?:(?:0[0-9]|1[0-3]):[0-5][0-9]|14:00)", re.ASCII)
_DURATION = re.compile(r"([0-9]{1,20})(ms|[smhdw])?", re.ASCII)
_NAMED = re.compile(r"\s*([0-9]{0,20})\s*([A-Za-z]+)\s*", re.ASCII)
SHOWN = 40


def milliseconds(name: str, duration: Duration) -> int:
    """Returns a duration in milliseconds."""
    if isinstance(duration, timedelta):
        whole, rest = divmod(duration, timedelta(milliseconds=1))
        if rest:
            raise ConfigurationError(f"{name} must be whole milliseconds, not {duration!r}")
        return whole
    match = _DURATION.fullmatch(duration) if isinstance(duration, str) else None
    if match and (match[2] or int(match[1]) == 0):
        return int(match[1]) * UNITS[match[2] or "ms"]
    if match or _is_count(duration):
        raise ConfigurationError(f"{name} needs a unit: '{duration}ms', '{duration}s' or '{duration}m'")
    such = "a whole number with ms, s, m, h, d or w, such as '90s'"
    raise ConfigurationError(f"{name} must be {such}, not {quoted(duration)}{_meant(name, duration)}")


def quoted(value: object) -> str:
    """Returns a value as an error shows it: the beginning of a text, and nothing of a URL, which may have a password."""
    if not isinstance(value, str):
        return repr(value)
    return "a URL" if "://" in value else repr(value if len(value) <= SHOWN else f"{value[:SHOWN]}…")


def _meant(name: str, duration: object) -> str:
    """What the writer of a wrong duration may have meant."""
    if not isinstance(duration, str):
        return ""
    if unit := calendar_unit(duration):
        return of_calendar(unit) if name == "window" else f": m is a minute; a {unit} has no fixed length: write days, such as '30d'"
    match = _NAMED.fullmatch(duration)
    unit = NAMED_UNITS.get(match[2].lower()) if match else None
    return f": write '{match[1] or 1}{unit}'" if match and unit else ""


def calendar_unit(text: str) -> str | None:
    """Returns the unit of a text such as `"3 months"`, if it is one of a calendar."""
    match = _OF_CALENDAR.fullmatch(text)
    return match and _CALENDAR[match[1][0].lower()]


def of_calendar(unit: str) -> str:
    """A hint for a rate or a window with such a unit."""
    word = unit.upper()
    return f": m is a minute, and a {unit} is that of a calendar: Calendar(1000, '{word}'), which is RL.CALENDAR … {word}"


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def duration_word(duration: Duration) -> str:
    """Returns a duration as it stands in a command. The server checks it, and its error names the argument."""
    return f"{milliseconds('duration', duration)}ms" if isinstance(duration, timedelta) else str(duration)


def shortest(word: str) -> str:
    """Returns a duration in its largest unit, such as `"1m"` for `"60s"`, and any other word as it is."""
    match = _DURATION.fullmatch(word)
    if match is None or match[2] is None:
        return word
    whole = milliseconds("duration", word)
    unit = max((unit for unit in UNITS if whole % UNITS[unit] == 0), key=UNITS.__getitem__)
    return f"{whole // UNITS[unit]}{unit}"


def float_word(number: float) -> str:
    """Returns a number as it stands in a command, without an exponent and without zeros at the end."""
    text = format(Decimal(repr(float(number))), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def check_duration(name: str, duration: Duration, least: int, most: int = LONGEST) -> int:
    """Returns a duration in milliseconds, if it is within the bounds."""
    return integer(name, milliseconds(name, duration), least, most, " ms")


def integer(name: str, number: object, least: int | None = None, most: int | None = None, unit: str = "") -> int:
    """Returns the number, if it is an integer within the bounds."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise ConfigurationError(f"{name} must be an integer, not {number!r}")
    if (least is not None and number < least) or (most is not None and number > most):
        bounds = f"at least {least}" if most is None else f"between {least} and {most}"
        raise ConfigurationError(f"{name} must be {bounds}{unit}, not {number}")
    return number


def decimal(name: str, number: object, least: float, most: float) -> None:
    """Checks that a number is within the bounds."""
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not least <= number <= most:
        raise ConfigurationError(f"{name} must be a number between {least:g} and {most:g}, not {number!r}")


def text(name: str, value: object, longest: int | None = None) -> None:
    """Checks that a value is text or bytes, neither empty nor too long."""
    such = "text that is not empty" if longest is None else f"text of 1 to {longest} bytes"
    if not isinstance(value, (str, bytes)) or not value:
        raise ConfigurationError(f"{name} must be {such}, not {value!r}")
    encoded = _encoded(name, value)
    if longest is not None and len(encoded) > longest:
        raise ConfigurationError(f"{name} must be {such}, not of {len(encoded)}")


def function(name: str, value: object) -> None:
    """Checks a function of the application, which may be left out."""
    if value is not None and not callable(value):
        raise ConfigurationError(f"{name} must be a function, not {value!r}")


def flags(**given: object) -> None:
    """Checks that each is True or False. Text such as `"no"` would be taken for True."""
    for name, value in given.items():
        if not isinstance(value, bool):
            raise ConfigurationError(f"{name} must be True or False, not {value!r}")


def one_of(name: str, value: object, *words: str) -> None:
    """Checks that a value is one of these words, in upper or lower case as the server takes it."""
    if not isinstance(value, str) or value.upper() not in words:
        raise ConfigurationError(f"{name} must be {', '.join(words[:-1])} or {words[-1]}, not {value!r}")


def time_zone(name: str, zone: object) -> None:
    """Checks a time zone. Its name is looked up in the database of this machine, if it has one."""
    if not isinstance(zone, str) or not _is_zone(zone):
        such = "UTC, an offset such as +02:00, or an IANA name such as Europe/Berlin"
        raise ConfigurationError(f"{name} must be {such}, not {zone!r}")


def _is_zone(zone: str) -> bool:
    if zone.startswith(("+", "-")):
        return _OFFSET.fullmatch(zone) is not None
    if zone.upper() == "UTC":
        return True
    known = _zones()
    return zone.lower() in known if known else bool(zone)


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    return frozenset(map(str.lower, available_timezones()))


def prefixed(prefix: str, key: Key) -> Key:
    """Returns the key with a prefix."""
    if not isinstance(key, (str, bytes)) or not key:
        raise ConfigurationError(f"a key must be text or bytes, and not empty, such as 'user:1', not {key!r}")
    if isinstance(key, bytes):
        return prefix.encode() + key
    _encoded("a key", name := prefix + key)
    return name


def key_bytes(key: Key) -> bytes:
    """Returns a key as the server has it."""
    return key.encode() if isinstance(key, str) else key


def _encoded(name: str, value: str | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise ConfigurationError(f"{name} must be text that UTF-8 can encode, not {value!r}") from error


def prefixed_keys(prefix: str, keys: Sequence[Key]) -> list[Key]:
    """Returns the keys of a call, each with a prefix."""
    if isinstance(keys, (str, bytes)) or not isinstance(keys, Sequence):
        raise ConfigurationError(f"keys must be a list of keys, not {keys!r}")
    integer("the number of keys", len(keys), 1, 64)
    return [prefixed(prefix, key) for key in keys]


Seconds: TypeAlias = float | str | timedelta
"""A time in seconds, a duration with a unit such as `"100ms"`, or a timedelta."""


def seconds(name: str, value: Seconds) -> float:
    """Returns a time in seconds, which must be above 0."""
    if isinstance(value, (str, timedelta)):
        value = milliseconds(name, value) / 1000
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise ConfigurationError(f"{name} must be a number of seconds above 0, not {value!r}")
    return float(value)
