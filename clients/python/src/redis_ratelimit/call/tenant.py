"""Tenants, which share a limit fairly."""

from __future__ import annotations

from .errors import ConfigurationError
from .values import Word, integer, text

MOST_WEIGHT = 1000


def tenant_words(tenant: str | None, weight: int | None) -> list[Word]:
    """Returns the words for a tenant, whose calls take turns with those of other tenants, and for its share."""
    if tenant is None:
        if weight is not None:
            raise ConfigurationError("weight needs a tenant")
        return []
    text("tenant", tenant, 256)
    return ["TENANT", tenant, *(() if weight is None else ("WEIGHT", integer("weight", weight, 1, MOST_WEIGHT)))]
