"""Which node of a cluster has which slot, and which of them gets a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from threading import RLock
from typing import NamedTuple, cast

from redis import exceptions as errors
from redis.crc import key_slot

from ..call.call import Call
from ..call.values import Key
from ..decide.fork import after_fork
from ..decide.replies import text
from .source import Address

SLOTS = 16_384
REFRESH = 1.0
"""Seconds between two looks at the slots, unless none are known."""
REST = 1.0
"""For how many seconds a replica that did not answer is not asked."""
SEEDS = 32
"""The most nodes that are asked for the slots."""


class Shard(NamedTuple):
    """The nodes that have a slot."""

    primary: Address
    replicas: tuple[Address, ...] = ()


class SlotMap:
    """The nodes of all slots, as far as they are known.

    Args:
        seeds: Nodes to ask first.
        remap: How an address is reached, if otherwise than the cluster tells.
        replicas: Whether replicas answer probes.
        timeout: For how many seconds a call is sent again whose keys are moving.
        clock: The seconds of a monotonic clock.
    """

    def __init__(
        self,
        seeds: Sequence[Address],
        remap: Callable[[Address], Address] | None,
        replicas: bool,
        timeout: float,
        clock: Callable[[], float],
    ) -> None:
        self.timeout, self.clock = timeout, clock
        self._seeds = list(seeds)
        self._remap = remap
        self._replicas = replicas
        self._shards: dict[int, Shard] = {}
        self._suspected = False
        self._looked_at: float | None = None
        self._resting: dict[Address, float] = {}
        self._turn = count()
        self.forked()
        after_fork(self)

    def forked(self) -> None:
        """Makes a new lock."""
        self._lock = RLock()

    def primaries(self) -> list[Address]:
        """Returns the primaries that have slots."""
        return list(dict.fromkeys(shard.primary for shard in self._shards.values()))

    def where(self, call: Call) -> str:
        """Returns the name of the node that will get a call. Of several replicas it is the first."""
        nodes = self._nodes_of(call)
        return named(nodes[0]) if nodes else "the cluster"

    def node(self, call: Call) -> Address:
        """Returns the node that gets a call."""
        if call.key is None:
            return (self.primaries() or self._seeds)[0]
        nodes = self._nodes_of(call)
        if not nodes:
            self.suspect()
            raise errors.SlotNotCoveredError(f"no node is known to have slot {slot_of(call.key)}")
        return nodes[0] if len(nodes) == 1 else nodes[next(self._turn) % len(nodes)]

    def instead(self, address: Address, call: Call) -> Address | None:
        """Returns the primary if a replica did not answer. That replica rests for a while."""
        shard = None if call.key is None else self._shards.get(slot_of(call.key))
        if shard is None or address not in shard.replicas:
            return None
        self._resting[address] = self.clock() + REST
        return shard.primary

    def keys_of_all(self, name: Callable[[], Key]) -> list[Key]:
        """Returns a key of each primary, among those that `name` makes."""
        primaries, keys = self.primaries(), dict[Address, Key]()
        for _ in range(500):
            if len(keys) == len(primaries):
                break
            shard = self._shards.get(slot_of(key := name()))
            if shard is not None:
                keys.setdefault(shard.primary, key)
        return [keys[primary] for primary in primaries if primary in keys]

    def suspect(self, address: Address | None = None) -> None:
        """Notes that the map may be wrong. A node that did not answer is the last one to ask for the slots."""
        with self._lock:
            self._suspected = True
            if address in self._seeds:
                self._seeds = [*(seed for seed in self._seeds if seed != address), address]

    def wants_refresh(self) -> bool:
        """Whether it is time to look at the slots. Of several callers at a time one is told so, if slots are known."""
        if not self._shards:
            return True
        if not self._suspected:
            return False
        with self._lock:
            now = self.clock()
            wants = self._looked_at is None or now >= self._looked_at + REFRESH
            if wants:
                self._looked_at = now
            return wants

    def moved(self, slot: int, address: Address) -> None:
        """Notes the new primary of a slot, which knows more than the node that the map is from."""
        self._shards[slot] = Shard(address)
        self.suspect()
        with self._lock:
            self._seeds = [address, *(seed for seed in self._seeds if seed != address)]

    def reached(self, address: Address, host: object, port: object) -> Address:
        """Returns the address that another one told. Without a host it is the host of the one that was asked."""
        told = (text(host) if host else address[0], int(cast(int, port)))
        return self._remap(told) if self._remap else told

    def replace(self, address: Address, reply: object) -> None:
        """Takes over the reply of CLUSTER SLOTS."""
        shards: dict[int, Shard] = {}
        for low, high, *nodes in cast(Sequence[tuple[int, int, Sequence[object]]], reply):
            primary, *replicas = [self.reached(address, node[0], node[1]) for node in nodes]
            shards |= dict.fromkeys(range(low, high + 1), Shard(primary, tuple(replicas)))
        if shards:
            self._shards = shards
            known = [node for shard in dict.fromkeys(shards.values()) for node in (shard.primary, *shard.replicas)]
            with self._lock:
                self._seeds = _rotated(self._seeds, known, address)
                self._suspected = False

    def seeds(self) -> list[Address]:
        """Returns the nodes to ask for the slots: all if none are known, else one."""
        return self._seeds[:1] if self._shards else list(self._seeds)

    def _nodes_of(self, call: Call) -> tuple[Address, ...]:
        """The nodes that may get the call of a key, if they are known: replicas that answer, or else the primary."""
        shard = None if call.key is None else self._shards.get(slot_of(call.key))
        if shard is None:
            return ()
        replicas = self._awake(shard.replicas) if self._replicas and call.on_replica else ()
        return replicas or (shard.primary,)

    def _awake(self, replicas: tuple[Address, ...]) -> tuple[Address, ...]:
        if not self._resting:
            return replicas
        now = self.clock()
        return tuple(replica for replica in replicas if now >= self._resting.get(replica, now))


def _rotated(seeds: Sequence[Address], nodes: Sequence[Address], asked: Address) -> list[Address]:
    """The nodes of the cluster, those that were asked longest ago first. A node with an old map is not asked twice."""
    kept = [seed for seed in seeds if seed in nodes]
    first = [node for node in dict.fromkeys([*kept, *nodes]) if node != asked]
    return list(dict.fromkeys([*first, asked, *seeds]))[:SEEDS]


def named(address: Address) -> str:
    """Returns how errors and the log call a node."""
    return f"{address[0]}:{address[1]}"


def slot_of(key: Key) -> int:
    """Returns the slot of a key."""
    return key_slot(key if isinstance(key, bytes) else key.encode())
