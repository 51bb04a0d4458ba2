"""The methods of the storages, for asyncio."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, cast

from . import calls
from .calls import Call, Steps, T


class AsyncMethods:
    """What a storage does with its client."""

    def _client(self, readonly: bool = False) -> Any:  # redis-py leaves most of its types open
        raise NotImplementedError

    def _key(self, key: str) -> str:
        """Returns the key with the prefix of the storage."""
        raise NotImplementedError

    async def _run(self, steps: Steps[T]) -> T:
        try:
            asked = next(steps)
            while True:
                asked = steps.send(await self._send(asked))
        except StopIteration as end:
            return cast(T, end.value)

    async def _send(self, asked: Sequence[Call]) -> list[object]:
        client = self._client(readonly=calls.only_looks(asked))
        if len(asked) == 1:
            return [await client.execute_command(*asked[0])]
        pipeline = client.pipeline(transaction=False)
        for call in asked:
            pipeline.execute_command(*call)
        replies: list[object] = await pipeline.execute()
        return replies

    async def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Adds `amount` to the counter, whose window ends `expiry` seconds after its first hit. Returns the count."""
        return await self._run(calls.incr(self._key(key), expiry, amount))

    async def get(self, key: str) -> int:
        """Returns the count of the open window."""
        return (await self._run(calls.fixed_window(self._key(key))))[0]

    async def get_expiry(self, key: str) -> float:
        """Returns the Unix time at which the open window ends."""
        return time.time() + (await self._run(calls.fixed_window(self._key(key))))[1]

    async def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Adds `amount` entries to the moving window of `expiry` seconds if they fit."""
        return await self._run(calls.acquire_entry(self._key(key), limit, expiry, amount))

    async def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """Returns the Unix time at which the moving window starts, and the number of entries in it."""
        return await self._run(calls.moving_window(self._key(key), limit, expiry))

    async def acquire_sliding_window_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Adds `amount` to the current window if the weighted count stays within the limit."""
        return await self._run(calls.acquire_sliding_window_entry(self._key(key), limit, expiry, amount))

    async def get_sliding_window(self, key: str, expiry: int) -> tuple[int, float, int, float]:
        """Returns count and seconds to live of the previous window, and of the current one."""
        return await self._run(calls.sliding_window(self._key(key), expiry))

    async def clear(self, key: str) -> None:
        """Resets the limits of `key`."""
        await self._client().unlink(*calls.keys(self._key(key)))

    async def clear_sliding_window(self, key: str, expiry: int) -> None:
        """Resets the limits of `key`."""
        await self.clear(key)

    async def check(self) -> bool:
        """Returns whether the server replies and has the module."""
        try:
            return await self._run(calls.check())
        except Exception:  # noqa: BLE001, as limits' own storage does
            return False

    async def reset(self) -> int | None:
        """Deletes all keys with the prefix, a thousand at a time. Returns their number."""
        deleted, batch = 0, list[bytes | str]()
        async for key in self._client().scan_iter(calls.pattern(self._key("")), 1000):
            batch.append(key)
            if len(batch) == 1000:
                deleted += await self._client().unlink(*batch)
                batch = []
        return deleted + (await self._client().unlink(*batch) if batch else 0)
