"""A user with the rights of a row in docs/clients.md can do what the row says, and needs each of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest
import redis
from redis.exceptions import NoPermissionError, RedisClusterException

from redis_ratelimit import ConfigurationError
from redis_ratelimit.errors import RateLimitError
from rights import PAGE, ROWS, denied, limiter_of, set_policies, table, user_of
from servers import Cluster, Server

RIGHTS = table()


@pytest.fixture(scope="module")
def stocked(server: Server) -> Iterator[Server]:
    set_policies(server)
    yield server


def tried(server: Server, what: str, rights: list[str]) -> set[str]:
    """Does what a row says with these rights. Returns the commands that were denied."""
    with user_of(server, rights) as client, limiter_of(client) as limiter:
        server.client.config_resetstat()
        ROWS[what](limiter, server)
    return denied(server)


def test_the_page_and_the_test_have_the_same_rows() -> None:
    assert list(RIGHTS) == list(ROWS)


@pytest.mark.parametrize("what", ROWS)
def test_the_rights_of_a_row_suffice(stocked: Server, what: str) -> None:
    assert tried(stocked, what, RIGHTS[what]) == set()


@pytest.mark.parametrize(("what", "right"), [(what, right) for what, rights in RIGHTS.items() for right in rights])
def test_each_right_of_a_row_is_needed(stocked: Server, what: str, right: str) -> None:
    rest = [each for each in RIGHTS[what] if each != right]
    with user_of(stocked, rest) as client, suppress(RateLimitError, NoPermissionError), limiter_of(client) as limiter:
        stocked.client.config_resetstat()
        ROWS[what](limiter, stocked)
    assert right.removeprefix("+") in denied(stocked)


def test_a_missing_right_is_named(stocked: Server) -> None:
    with user_of(stocked, ["+rl.ask"]) as client, limiter_of(client) as limiter:
        with pytest.raises(ConfigurationError, match="policy 'api': RL.ASKPEEK .*'rl.askpeek'"):
            limiter.ready(policies=["api"])
        with pytest.raises(ConfigurationError, match="limit 1, .*: RL.PEEK .*'rl.peek'"):
            limiter.ready("10/s")


def test_on_a_cluster_the_client_needs_two_more(cluster: Cluster) -> None:
    rights = ["+rl.gcra", "+cluster|slots", "+command"]
    assert "needs `+cluster|slots`, and redis-py `+command`" in PAGE.read_text(encoding="utf-8")
    for missing in (None, *rights):
        for node in cluster.nodes:
            user_of(node, [right for right in rights if right != missing]).close()
        allowed = False
        with suppress(RateLimitError, redis.RedisError, RedisClusterException):
            client = redis.RedisCluster(port=cluster.port, host="127.0.0.1", username="app", password="secret")
            with client, limiter_of(client) as limiter:
                allowed = limiter.limit("key", "10/s").answered
        assert allowed == (missing is None), missing
