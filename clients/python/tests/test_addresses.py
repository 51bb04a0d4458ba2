"""The address of a client, as the requests of each framework have it. The cases have the texts."""

from __future__ import annotations

from typing import Any

import pytest

from redis_ratelimit import ConfigurationError, client_address


def starlette(host: str | None) -> Any:
    requests = pytest.importorskip("starlette.requests")
    return requests.Request({"type": "http", "client": host and (host, 52100)})


def flask(host: str | None) -> Any:
    werkzeug = pytest.importorskip("werkzeug.local")
    request = pytest.importorskip("flask").Request({"REMOTE_ADDR": host} if host else {})
    return werkzeug.LocalProxy(lambda: request)


def django(host: str | None) -> Any:
    pytest.importorskip("test_django")  # configures Django
    request = pytest.importorskip("django.http").HttpRequest()
    request.META = {"REMOTE_ADDR": host or ""}
    return request


@pytest.mark.parametrize("request_of", [starlette, flask, django])
def test_a_request_has_an_address_unless_it_comes_through_a_unix_socket(request_of: Any) -> None:
    assert client_address(request_of("2001:db8:1:2::9"), v6=56) == "2001:db8:1::/56"
    with pytest.raises(ConfigurationError, match="pass the address that the proxy tells"):
        client_address(request_of(None))


def test_another_object_is_no_request() -> None:
    with pytest.raises(ConfigurationError, match="pass the address as text: {} is no request"):
        client_address({})
