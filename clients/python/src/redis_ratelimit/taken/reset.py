"""Deletes a key of the module."""

from __future__ import annotations

from collections.abc import Generator

from ..call import calls
from ..call.call import Call
from ..call.values import Key


def resetting(prefix: str, key: Key) -> Generator[Call, object, bool]:
    """Deletes the key, if it is of the module's type. Returns whether there was one."""
    look = calls.info(prefix, key)
    if (yield look) is None:  # an error if the key is of another type
        return False
    return (yield Call(["UNLINK", *look.keys], look.keys)) == 1
