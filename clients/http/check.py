"""Real requests to six applications behind the middleware, each failing open and closed, on a Redis of their own.

    check.py module [folder of the Node.js applications] [--only name]...

Prints a row for each application and check. Without the folder only the Python applications are checked. All processes are
stopped at the end, however it comes. LOG names a file for what they write."""

from __future__ import annotations

import argparse
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

import httpx
import redis
from checks import Application, until

HERE = Path(__file__).parent
UVICORN = [sys.executable, "-m", "uvicorn", "--no-access-log", "--port"]
# A thread for each of fifty callers, and for those that stream.
GUNICORN = [sys.executable, "-m", "gunicorn", "--threads", "60", "--bind"]
PYTHON: dict[str, Callable[[int], list[str]]] = {
    "fastapi": lambda port: [*UVICORN, str(port), "fastapi_app:app"],
    "flask": lambda port: [*GUNICORN, f"127.0.0.1:{port}", "flask_app:app"],
    "django": lambda port: [*GUNICORN, f"127.0.0.1:{port}", "django_app:app"],
    "django-asgi": lambda port: ["env", "ASYNC=1", *UVICORN, str(port), "django_app:app"],
}
NODE = ("express", "fastify", "hono")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Processes:
    """A Redis with the module, and the applications."""

    def __init__(self, module: str, log: IO[str]) -> None:
        self._module, self._log = module, log
        self._started: list[subprocess.Popen[bytes]] = []
        self.port = free_port()
        self.db: Any = redis.Redis(port=self.port)

    def start(self, command: Sequence[str | Path], **environment: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            list(map(str, command)), cwd=HERE, env={**os.environ, **environment}, stdout=self._log, stderr=self._log
        )
        self._started.append(process)
        return process

    def server(self) -> subprocess.Popen[bytes]:
        command = ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--dir", "/tmp"]
        process = self.start([*command, "--loadmodule", self._module])
        until(self.db.ping, "a start of Redis")
        return process

    def application(self, name: str, fail: str, folder: Path | None) -> str:
        """Starts an application, and returns its address."""
        port = free_port()
        # Room for fifty callers at once on a slow machine. A service would wait for less.
        slow = "2" if name in PYTHON else "2000"
        environment = {"REDIS": f"redis://127.0.0.1:{self.port}", "FAIL": fail, "UTILIZATION": "0.75"}
        # The one that fails closed has a proxy in front. By default uvicorn trusts one on the same machine, so the other says no.
        environment |= {"PROXY": "1", "FORWARDED_ALLOW_IPS": "127.0.0.1"} if fail == "closed" else {"FORWARDED_ALLOW_IPS": ""}
        command = PYTHON[name](port) if name in PYTHON else ["node", f"{folder}/{name}.mjs"]
        self.start(command, **environment, TIMEOUT=slow, PORT=str(port))
        url = f"http://127.0.0.1:{port}"
        until(lambda: httpx.get(url, headers={"x-api-key": "start"}), f"a start of {name}")
        return url

    def stop(self, but: subprocess.Popen[bytes] | None = None) -> None:
        stopped = [process for process in self._started if process is not but]
        for process in stopped:
            process.terminate()
        for process in stopped:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._started = [but] if but else []


def check(processes: Processes, names: Sequence[str], folder: Path | None) -> int:
    redis_server = processes.server()
    print(f"{'app':<11} {'check':<48} {'':<7} told")
    failed = passed = 0
    for name in names:
        url, other = (processes.application(name, fail, folder) for fail in ("open", "closed"))
        app = Application(name, url, other, processes.db)
        app.exactly_the_limit()
        app.honest()
        app.plans()
        app.costs()
        app.shedding()
        app.leases()
        app.budget()
        app.failures()
        app.addresses()
        app.hanging(redis_server)
        redis_server.kill()
        redis_server.wait()
        app.without_redis()
        redis_server = processes.server()
        app.back()
        processes.stop(but=redis_server)
        passed, failed = passed + sum(app.rows), failed + app.rows.count(False)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


def main() -> int:
    arguments = argparse.ArgumentParser(description="Sends real requests to applications behind the middleware.")
    arguments.add_argument("module")
    arguments.add_argument("folder", type=Path, nargs="?", help="of the Node.js applications")
    arguments.add_argument("--only", action="append", choices=[*PYTHON, *NODE])
    given = arguments.parse_args()
    names = given.only or [*PYTHON, *(NODE if given.folder else ())]
    # A time-out's SIGTERM ends in `finally` too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with open(os.environ.get("LOG", os.devnull), "w") as log:
        processes = Processes(given.module, log)
        try:
            return check(processes, names, given.folder)
        finally:
            processes.stop()


if __name__ == "__main__":
    sys.exit(main())
