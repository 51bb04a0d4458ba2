"""A fork has none of its parent's threads, so a lock that one of them held would stay locked for ever."""

from __future__ import annotations

import os
import sys
from typing import Protocol
from weakref import WeakSet


class Forked(Protocol):
    """What has a lock."""

    def forked(self) -> None:
        """Makes new locks, in the child."""
        ...


_KNOWN: WeakSet[Forked] = WeakSet()


def after_fork(each: Forked) -> None:
    """Calls `forked` in each child process from now on. Keeps only a weak reference."""
    _KNOWN.add(each)


def _forked() -> None:
    for each in list(_KNOWN):
        each.forked()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forked)
