"""The key of a client's address."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any

from ..call.errors import ConfigurationError
from ..call.values import integer

LONGEST = 64
"""The most characters of a key that is no address."""
_WITH_PORT = re.compile(r"\[([^\[\]]*)\](?::[0-9]{1,5})?|([^:\[\]]*):[0-9]{1,5}")


def client_address(request_or_text: object, *, v6: int = 64) -> str:
    """Returns the key of a client's address, for rules: `Rule("default", key=client_address, limit="100/m")`.

    A client of IPv6 has a whole network of addresses, and can take another one for each request. So the key is the network,
    such as `2001:db8:1:2::/64`. The key of IPv4 is the address, also if it is written as IPv6 (`::ffff:203.0.113.7`). Ports,
    brackets and zones are left out. What is no address, such as the name of a UNIX socket, is the key itself, cut at 64
    characters.

    Behind a proxy the address of a request is the proxy's, so that all clients would share one limit. Let the server take
    the client's from the headers of your own proxy, and of no other, since clients can send these headers too: uvicorn with
    `--proxy-headers --forwarded-allow-ips`, Flask with werkzeug's `ProxyFix`. Django has nothing of the kind: pass the text
    that your proxy has set.

    Args:
        request_or_text: A request of Starlette, FastAPI, Flask or Django, or the address as text.
        v6: The length of the network of IPv6 in bits (1 to 128). Providers give a client 64 bits, and many 56 or 48.

    Raises:
        ConfigurationError: There is no address, as on a UNIX socket, or `v6` is wrong.
    """
    integer("v6", v6, 1, 128)
    told = _told(request_or_text)
    text = told.strip() if isinstance(told, str) else ""
    if not text:
        raise ConfigurationError(
            f"there is no address of the client, but {told!r}: behind a proxy on a UNIX socket, pass the address that the proxy tells"
        )
    address = _parsed(text)
    if isinstance(address, IPv6Address):
        return str(address.ipv4_mapped or IPv6Network((address, v6), strict=False))
    return text[:LONGEST] if address is None else str(address)


def _told(given: Any) -> object:
    """The address as the framework tells it, by what its requests have."""
    if given is None or isinstance(given, str):
        return given
    if hasattr(given, "remote_addr"):  # Flask
        return given.remote_addr
    if hasattr(given, "META"):  # Django
        return given.META.get("REMOTE_ADDR")
    if hasattr(given, "client"):  # Starlette
        return getattr(given.client, "host", None)
    raise ConfigurationError(f"pass the address as text: {given!r} is no request of Starlette, Flask or Django")


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    """The address. As a whole at first, since `::1:80` has no port."""
    match = _WITH_PORT.fullmatch(text)
    for each in (text, (match[1] or match[2] or "") if match else ""):
        try:
            return ip_address(each.partition("%")[0])
        except ValueError:
            pass
    return None
