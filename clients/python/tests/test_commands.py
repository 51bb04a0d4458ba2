"""Every command of the module is a method, with documentation whose example runs."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Iterator
from typing import Any, cast

import pytest
import redis
import redis.asyncio

import redis_ratelimit.types
from redis_ratelimit import Concurrent, SlidingLog, TokenBucket
from redis_ratelimit.commands import AsyncCommands, Commands
from redis_ratelimit.types import Limiter
from redis_ratelimit.call import limiters as generated
from servers import Server

METHODS = sorted(name for name in vars(Commands) if not name.startswith("_"))
# These need a file, or a payload that only another key has.
WITHOUT_EXAMPLE = {"apply", "policy_load", "policy_save"}
NAMES: dict[str, object] = {
    name: getattr(module, name) for module in (redis_ratelimit, redis_ratelimit.types) for name in module.__all__
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    file = tmp_path_factory.mktemp("policies") / "policies.conf"
    with Server("--ratelimit.policy-file", str(file), "--ratelimit.top", "100", "--ratelimit.record", "9") as server:
        yield server


def test_each_limiter_is_exported_with_its_facts() -> None:
    limiters = {name for name, value in vars(generated).items() if inspect.isclass(value) and value.__module__ == generated.__name__}
    assert limiters == set(generated.__all__) <= set(redis_ratelimit.__all__)
    for name in limiters:
        limiter = cast(type[Limiter], NAMES[name])
        named = {limiter.BURST, limiter.COUNT, limiter.PER} - {None}
        assert named <= set(inspect.signature(limiter).parameters), name


def test_an_option_changes_what_a_limiter_can_do() -> None:
    assert SlidingLog(5, "1m").can("refund") and not SlidingLog(5, "1m").can("counts_refused")
    counting = SlidingLog(5, "1m", countrefused=True)
    assert not counting.can("refund") and counting.can("counts_refused")


def sent_by(method: object) -> str:
    """The command in a method's documentation."""
    found = re.search(r"Sends `([A-Z. ]+)`", inspect.getdoc(method) or "")
    assert found is not None
    return found[1]


def example_of(method: object) -> str:
    return (inspect.getdoc(method) or "").partition("Example:\n")[2].strip()


def test_no_command_is_missing(server: Server) -> None:
    known = {name for name in server.client.command_list(module="ratelimit") if "|" not in name}
    assert {sent_by(getattr(Commands, name)).split()[0].lower() for name in METHODS} == known


def test_asyncio_has_the_same_methods() -> None:
    assert METHODS == sorted(name for name in vars(AsyncCommands) if not name.startswith("_"))
    for name in METHODS:
        one, other = getattr(Commands, name), getattr(AsyncCommands, name)
        assert inspect.signature(one) == inspect.signature(other)
        assert inspect.iscoroutinefunction(other)


@pytest.mark.parametrize("name", METHODS)
def test_each_argument_is_documented(name: str) -> None:
    method = getattr(Commands, name)
    documented = inspect.getdoc(method) or ""
    for parameter in list(inspect.signature(method).parameters)[1:]:
        assert re.search(rf"^    {parameter}: [A-Z`].*", documented, re.MULTILINE), parameter
    assert documented.partition("\n")[0].endswith(".")
    assert name == "apply" or ("Returns:" in documented) == (inspect.signature(method).return_annotation != "None")


@pytest.mark.parametrize("name", [name for name in METHODS if name not in WITHOUT_EXAMPLE])
@pytest.mark.parametrize(
    "options", [{"protocol": 2}, {"protocol": 3}, {"protocol": 3, "decode_responses": True}], ids=str
)
def test_the_example_runs(server: Server, name: str, options: dict[str, Any]) -> None:
    server.client.flushall()
    server.client.execute_command("RL.POLICY", "SET", "api", "LIMIT", "GCRA", "9", "10", "1s")
    with redis.Redis(port=server.port, **options) as client:
        reply = eval(example_of(getattr(Commands, name)), {"commands": Commands(client), **NAMES})
    kind = inspect.signature(getattr(Commands, name)).return_annotation
    assert is_a(reply, str(kind)), (reply, kind)


def is_a(reply: object, kind: str) -> bool:
    """Whether a reply is of the type that the signature says."""
    classes: dict[str, Any] = {"Info": dict, "int": int, "str": str, "bool": bool, "list": list, "dict": dict, **NAMES}
    parts = [re.sub(r"\[.*", "", part.strip()) for part in kind.split("|")]
    return any(reply is None if part == "None" else isinstance(reply, classes[part]) for part in parts)


@pytest.mark.parametrize("name", [name for name in METHODS if name not in WITHOUT_EXAMPLE])
async def test_the_example_runs_on_asyncio(server: Server, name: str) -> None:
    server.client.flushall()
    server.client.execute_command("RL.POLICY", "SET", "api", "LIMIT", "GCRA", "9", "10", "1s")
    example = example_of(getattr(AsyncCommands, name))
    assert example.startswith("await ")
    async with redis.asyncio.Redis(port=server.port) as client:
        reply: object = eval(example.removeprefix("await "), {"commands": AsyncCommands(client), **NAMES})
        assert inspect.isawaitable(reply)
        await reply


def test_policies_are_saved_and_loaded(server: Server) -> None:
    commands = Commands(redis.Redis(port=server.port))
    commands.policy_set("saved", ["10/s", Concurrent(3, "1m")])
    assert commands.policy_save() >= 1
    assert commands.policy_del("saved") is True
    assert commands.policy_del("saved") is False
    assert commands.policy_get("saved") is None
    assert commands.policy_load() >= 1
    assert commands.policy_list()["saved"] == 1
    assert commands.policy_get("saved") == {"version": 1, "limits": "LIMIT GCRA 9 10 1s LIMIT CONCURRENT 3 1m"}
    assert commands.ask("user:1", "saved", lease_id="x").allowed
    assert (commands.policy_stats("saved") or {})["admitted"] == 1

    async def on_asyncio() -> None:
        async with redis.asyncio.Redis(port=server.port) as client:
            commands = AsyncCommands(client)
            assert await commands.policy_save() >= 1
            assert await commands.policy_load() >= 1

    asyncio.run(on_asyncio())


def test_a_payload_is_applied(server: Server, key: str) -> None:
    client: Any = redis.Redis(port=server.port)
    with pytest.raises(redis.ResponseError):
        Commands(client).apply({key: b"no payload"})

    async def on_asyncio() -> None:
        async with redis.asyncio.Redis(port=server.port) as client:
            with pytest.raises(redis.ResponseError):
                await AsyncCommands(client).apply({key.encode(): b"no payload"})

    asyncio.run(on_asyncio())


def test_options_stand_in_the_call(server: Server, key: str) -> None:
    commands = Commands(redis.Redis(port=server.port))
    now = 1_700_002_800_000_000
    assert commands.token_bucket(key, 10, 10, "1m", cost=15, partial=True, at=now, hold=("h", "1m")).granted == 10
    assert commands.settle(key, "h", TokenBucket(10, 10, "1m"), 4, at=now).settled
    assert commands.refund(key, TokenBucket(10, 10, "1m"), cost=1, at=now).remaining == 7
    assert commands.gcra(key + ":2", 0, 1, "1m", at=now).allowed
    assert commands.gcra(key + ":2", 0, 1, "1m", reserve=True, maxwait="2m", at=now).retry_after == 60
    assert commands.gcra(key + ":2", 0, 1, "1m", force=True, at=now).allowed
    assert commands.gcra(key + ":3", 0, 1, "50ms", block="0").allowed
    assert commands.xadd(key + ":s", 1, "*", {"a": 1}) is not None
    assert commands.xadd(key + ":s", 1, "*", {"a": 1}) is None
    assert commands.shed(key + ":f", 1e-7, tier=1, tiers=2) == (False, 0.0)


def test_errors_are_those_of_redis_py(server: Server, key: str) -> None:
    commands = Commands(redis.Redis(port=server.port))
    with pytest.raises(redis.ResponseError, match="count must be an integer from 1 to 9007199254740991; got '0'"):
        commands.gcra(key, 1, 0, "1s")
    bare: Any
    for bare in (60, "60"):
        with pytest.raises(redis.ResponseError, match="period needs a unit: 60ms, 60s or 60m"):
            commands.gcra(key, 15, 30, bare)
        with pytest.raises(ValueError, match="block needs a unit: '60ms', '60s' or '60m'"):
            commands.gcra(key, 15, 30, "1m", block=bare)
    with pytest.raises(ValueError, match="the number of keys must be between 1 and 64"):
        commands.multi([], ["10/s"])
    with pytest.raises(ValueError, match="must be a list of keys"):
        commands.multi(key, ["10/s"])
    with pytest.raises(ValueError, match="needs the id of the lease"):
        commands.multi([key], [Concurrent(3, "1m")])
    with pytest.raises(ValueError, match="must be a redis.Redis"):
        Commands(redis.asyncio.Redis(port=server.port))  # type: ignore[arg-type] # pyright: ignore
    with pytest.raises(ValueError, match="must be a redis.asyncio.Redis"):
        AsyncCommands(redis.Redis(port=server.port))  # type: ignore[arg-type] # pyright: ignore
