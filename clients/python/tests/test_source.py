"""A limiter's own connections have the address and the credentials of the application's client, and settings of their own."""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
import redis.asyncio
from redis.asyncio.sentinel import Sentinel as AsyncSentinel
from redis.sentinel import Sentinel

from redis_ratelimit import AsyncRateLimiter, RateLimiter
from redis_ratelimit.wire.source import own_settings
from servers import BINARY, Server, eventually, free_port


async def both(make: Any, options: dict[str, Any], key: str) -> AsyncIterator[Any]:
    """The answers of limiters with clients of both kinds."""
    with RateLimiter(make(redis.Redis, **options), timeout=5.0) as limiter:
        yield limiter.limit(key, "10/h")
    async with AsyncRateLimiter(make(redis.asyncio.Redis, **options), timeout=5.0) as limiter:
        yield await limiter.limit(key, "10/h")


def made(kind: Any, **options: Any) -> Any:
    return kind(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"decode_responses": True, "protocol": 3},
        {"decode_responses": True, "protocol": 2},
        {"db": 3, "health_check_interval": 1, "client_name": "app"},
        {"socket_timeout": 0.000001},
        {"single_connection_client": True},
        {"username": "someone", "password": "secret"},
    ],
    ids=str,
)
async def test_the_clients_settings_are_taken_or_replaced(server: Server, key: str, options: dict[str, Any]) -> None:
    server.client.execute_command("ACL", "SETUSER", "someone", "on", ">secret", "~*", "+@all")
    if options.pop("single_connection_client", False):
        client = redis.Redis(port=server.port, single_connection_client=True)
        with RateLimiter(client, timeout=5.0) as limiter:
            assert limiter.limit(key, "10/h").answered
        client.close()
        return
    answers = [each async for each in both(made, {"port": server.port, **options}, key)]
    assert [each.remaining for each in answers] == [9, 8]
    with redis.Redis(port=server.port, db=options.get("db", 0)) as client:
        assert client.exists(key) == 1


async def test_a_client_from_a_url(server: Server, key: str) -> None:
    def from_url(kind: Any, url: str) -> Any:
        return kind.from_url(url)

    url = f"redis://127.0.0.1:{server.port}/2?protocol=3&socket_timeout=9"
    assert [each.remaining async for each in both(from_url, {"url": url}, key)] == [9, 8]


async def test_a_unix_socket(tmp_path: Path, key: str) -> None:
    path = str(tmp_path / "redis.sock")
    with Server("--unixsocket", path):
        answers = [each async for each in both(made, {"unix_socket_path": path}, key)]
    assert [each.remaining for each in answers] == [9, 8]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl")
    directory = tmp_path_factory.mktemp("tls")
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    files = ["-keyout", str(directory / "key.pem"), "-out", str(directory / "cert.pem")]
    subprocess.run([*new, *files], check=True, capture_output=True)
    return directory


async def test_tls(certificate: Path, key: str) -> None:
    port, cert, private = free_port(), str(certificate / "cert.pem"), str(certificate / "key.pem")
    settings = ["--tls-port", str(port), "--tls-cert-file", cert, "--tls-key-file", private, "--tls-ca-cert-file", cert]
    with Server(*settings, "--tls-auth-clients", "no"):
        options = {"host": "127.0.0.1", "port": port, "ssl": True, "ssl_ca_certs": cert}
        assert [each.remaining async for each in both(made, options, key)] == [9, 8]
        context = ssl.create_default_context(cafile=cert)
        assert context.check_hostname


@pytest.fixture
def sentinel(server: Server, tmp_path: Path) -> Iterator[int]:
    port, file = free_port(), tmp_path / "sentinel.conf"
    file.write_text(f"port {port}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 {server.port} 1\n")
    process = subprocess.Popen([BINARY, str(file), "--sentinel"], stdout=subprocess.DEVNULL)
    try:
        eventually(lambda: answers(port), "the start of Sentinel")
        yield port
    finally:
        process.kill()
        process.wait()


# redis-py leaves their types open.
SENTINEL: Any = Sentinel
ASYNC_SENTINEL: Any = AsyncSentinel


def answers(port: int) -> bool:
    try:
        return bool(SENTINEL([("127.0.0.1", port)]).discover_master("main"))
    except redis.RedisError:
        return False


async def test_sentinel(sentinel: int, key: str) -> None:
    with RateLimiter(SENTINEL([("127.0.0.1", sentinel)]).master_for("main"), timeout=5.0) as limiter:
        assert limiter.limit(key, "10/h").remaining == 9
        assert limiter.limit(key, "10/h", wait="1s").remaining == 8
    client: redis.asyncio.Redis = ASYNC_SENTINEL([("127.0.0.1", sentinel)]).master_for("main")
    async with AsyncRateLimiter(client, timeout=5.0) as limiter:
        assert (await limiter.limit(key, "10/h")).remaining == 7
        assert (await limiter.limit(key, "10/h", wait="1s")).remaining == 6
    await client.aclose()


def test_the_applications_connections_are_left_alone(server: Server, key: str) -> None:
    client: Any = redis.Redis(port=server.port, max_connections=1)
    client.ping()
    with RateLimiter(client, timeout=5.0) as limiter:
        assert limiter.limit(key, "10/h").answered
    assert client.ping()
    kept = own_settings(client.connection_pool.connection_kwargs)
    assert kept["port"] == server.port and not {"retry", "socket_timeout", "himport_registry"} & set(kept)


def test_threads_share_a_limiter(server: Server, key: str) -> None:
    with RateLimiter(redis.Redis(port=server.port), timeout=5.0) as limiter:

        async def ask() -> int:
            calls = [asyncio.to_thread(limiter.limit, key, "50/d") for _ in range(100)]
            return sum(each.allowed for each in await asyncio.gather(*calls))

        assert asyncio.run(ask()) == 50
        assert limiter.counters["asked"] == 100
