"""What callers wait for while another one fetches: for threads and for asyncio."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress


class Signal:
    """Something that happens once."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def wait(self, seconds: float) -> None:
        """Waits until it has happened, at most for some seconds."""
        self._event.wait(seconds)

    def set(self) -> None:
        """Lets all callers go on."""
        self._event.set()


class AsyncSignal:
    """Something that happens once."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    async def wait(self, seconds: float) -> None:
        """Waits until it has happened, at most for some seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()

    def set(self) -> None:
        """Lets all callers go on."""
        self._event.set()
