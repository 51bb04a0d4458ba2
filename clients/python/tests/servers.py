"""Servers with the module, on free ports, for tests."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import redis

from redis_ratelimit import Gcra

ROOT = Path(__file__).resolve().parents[3]
MODULE = os.environ.get("RATELIMIT_MODULE") or str(ROOT / "target" / "release" / "libredis_ratelimit.so")
BINARY = os.environ.get("REDIS_SERVER") or "redis-server"
PATIENCE = 30.0
BUCKET = Gcra(99, 100, "100d")
"""100 at once, and one more each day: what a test sees is what was charged."""


def free_port() -> int:
    """A port that was free a moment ago, and whose cluster bus port exists."""
    while True:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            port = int(listener.getsockname()[1])
        if port < 55_000:
            return port


def eventually(holds: Callable[[], object], what: str = "it") -> None:
    """Waits until the condition holds, and fails if it does not in time."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"{what} did not happen"
        time.sleep(0.02)


def leases(server: Server, key: str) -> int:
    """How many leases are held now."""
    return 100 - int(server.client.execute_command("RL.PEEK", key, "CONCURRENT", 100, "1m", "nobody")[2])


def remaining(server: Server, key: str) -> int:
    """How much of BUCKET is left."""
    return int(server.client.execute_command("RL.PEEK", key, *BUCKET.words)[2])


class Server:
    """A server with the module, on a port of 127.0.0.1."""

    def __init__(self, *settings: str, module: bool = True) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="redis-ratelimit-")
        load = ["--loadmodule", MODULE] if module else []
        for attempt in range(5):  # another program may take the port, or that of its cluster bus, first
            self.port = free_port()
            common = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", self._directory.name]
            common += ["--logfile", "server.log", "--enable-debug-command", "yes"]
            self._process = subprocess.Popen([BINARY, *common, *settings, *load], stdout=subprocess.DEVNULL)
            self.client: Any = redis.Redis(port=self.port, decode_responses=True, protocol=3)
            try:
                return eventually(self._answers, "the start of a server")
            except BaseException:
                self._end()
                if attempt == 4 or self._process.returncode in (None, -signal.SIGKILL):
                    self._directory.cleanup()
                    raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @contextmanager
    def frozen(self) -> Generator[None]:
        """The server takes calls, and executes them when it goes on."""
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self._end()
        self._directory.cleanup()

    def info(self, section: str, field: str) -> Any:
        return self.client.info(section).get(field, 0)

    def calls(self, command: str) -> int:
        """How often a command was called, such as `command|getkeys`."""
        statistics = self.client.info("commandstats").get(f"cmdstat_{command}", {})
        return int(statistics.get("calls", 0))

    def cluster(self, field: str) -> str:
        """A field of CLUSTER INFO."""
        text = str(self.client.execute_command("CLUSTER", "INFO"))
        found = re.search(rf"cluster_{field}['\"]?: ?['\"]?(\w+)", text)
        assert found is not None, text
        return found[1]

    def waiting(self) -> int:
        """How many callers wait in lines."""
        return int(self.client.info("ratelimit")["ratelimit_waiting"])

    def _end(self) -> None:
        self.client.close()
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait()

    def _answers(self) -> bool:
        assert self._process.poll() is None, "the server does not start: is the module built?"
        try:
            return bool(self.client.ping())
        except redis.RedisError:
            return False


class Proxy:
    """Stands before a server, and can hold calls up. A call that is held up arrives even if its caller has gone.

    Args:
        port: The port of the server.
        held: Calls with this text are held up until `let_go`.
        delay: The seconds by which each reply is late.

    Attributes:
        holds: Is set when a call is held up.
    """

    def __init__(self, port: int, held: bytes | None = None, delay: float = 0.0) -> None:
        self._server, self._held, self._delay = port, held, delay
        self._gate, self.holds = threading.Event(), threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._sockets: list[socket.socket] = [self._listener]
        self._silent: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._gate.set()
        for each in self._sockets:
            each.close()

    @property
    def connections(self) -> int:
        """How many connections were opened."""
        return len(self._sockets) // 2

    def let_go(self) -> None:
        self._gate.set()

    def lead_to(self, port: int) -> None:
        """Connections from now on lead to the server at this port."""
        self._server = port

    def silence(self) -> None:
        """What is sent over the connections until now is lost from now on, and they stay open. Later ones work."""
        self._silent |= set(self._sockets)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server))
                self._sockets += (caller, server)
                threading.Thread(target=self._forward, args=(caller, server, self._held, 0.0), daemon=True).start()
                threading.Thread(target=self._forward, args=(server, caller, None, self._delay), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, held: bytes | None, delay: float) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if held is not None and held in data:
                    self.holds.set()
                    self._gate.wait(PATIENCE)
                time.sleep(delay)
                if source not in self._silent:
                    target.sendall(data)


class Cluster:
    """Three primaries, each with a replica.

    Args:
        patience: For how many milliseconds a node may be silent before its replica takes over.
    """

    def __init__(self, patience: int = 5000) -> None:
        self._patience = patience
        self.nodes: list[Server] = []
        try:
            for _ in range(6):
                self.nodes.append(self._node())
            self.primaries, self.replicas = self.nodes[:3], self.nodes[3:]
            self._join()
        except BaseException:
            self.stop()
            raise

    @property
    def port(self) -> int:
        return self.nodes[0].port

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()

    def moved(self) -> int:
        """How many calls got MOVED or ASK since the last reset."""
        errors = [node.client.info("errorstats") for node in self.nodes]
        return sum(each.get(f"errorstat_{name}", {}).get("count", 0) for each in errors for name in ("MOVED", "ASK"))

    def calls(self, command: str) -> int:
        return sum(node.calls(command) for node in self.nodes)

    def reset(self) -> None:
        for node in self.nodes:
            node.client.config_resetstat()

    def _node(self) -> Server:
        return Server(
            "--cluster-enabled",
            "yes",
            "--cluster-node-timeout",
            str(self._patience),
            "--repl-diskless-sync-delay",
            "0",
            "--ratelimit.top",
            "100",
        )

    def _join(self) -> None:
        first = self.nodes[0].client
        for number, node in enumerate(self.primaries):
            low, high = number * 16384 // 3, (number + 1) * 16384 // 3 - 1
            node.client.execute_command("CLUSTER", "ADDSLOTSRANGE", low, high)
            node.client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
        for node in self.nodes[1:]:
            first.execute_command("CLUSTER", "MEET", "127.0.0.1", node.port)
        eventually(lambda: all(self._knows(node) == 6 for node in self.nodes), "the meeting of the nodes")
        for primary, replica in zip(self.primaries, self.replicas, strict=True):
            name = primary.client.execute_command("CLUSTER", "MYID")
            eventually(lambda: self._replicates(replica, name), "replication")
        self.settle()

    def settle(self) -> None:
        """Waits until all nodes know that all slots are where they were at the start."""
        eventually(lambda: all(self._ready(node) for node in self.nodes), "the order of the cluster")

    def _knows(self, node: Server) -> int:
        return int(node.cluster("known_nodes"))

    def _replicates(self, replica: Server, name: str) -> bool:
        try:
            return bool(replica.client.execute_command("CLUSTER", "REPLICATE", name))
        except redis.ResponseError:
            return False

    def _ready(self, node: Server) -> bool:
        state = node.cluster("state") == "ok"
        slots: Any = node.client.execute_command("CLUSTER", "SLOTS")
        linked = node in self.primaries or node.client.info("replication")["master_link_status"] == "up"
        begin = {number * 16384 // 3: primary.port for number, primary in enumerate(self.primaries)}
        known = {first: nodes[0][1] for first, _, *nodes in slots} == begin and all(len(each) == 4 for each in slots)
        return state and linked and known
