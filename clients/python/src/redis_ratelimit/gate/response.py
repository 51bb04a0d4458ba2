"""The responses of the middleware to requests that do not go on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import TypeAlias

from ..decide.decision import Decision
from .cors import EXPOSE

Fields: TypeAlias = Iterable[tuple[str, str]]
"""The headers that a response has."""
PROBLEM = "https://iana.org/assignments/http-problem-types#"
TITLES = {
    "quota-exceeded": "Request cannot be satisfied as assigned quota has been exceeded",
    "temporary-reduced-capacity": "Request cannot be satisfied due to temporary server capacity constraints",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """The response to a request that does not go on.

    Attributes:
        status: 429, or 503 for a shed request and for a limiter that fails closed.
        violated: The names of the rules that refuse.
        headers: All headers of the response.
        body: The problem, as JSON.
        retry_after: The seconds until this request would be admitted, or None if it never will be.
        decisions: What the server or this process has decided, under the names of rules.
    """

    status: int
    violated: list[str]
    headers: dict[str, str]
    body: bytes
    retry_after: float | None = None
    decisions: Mapping[str, Decision] = field(default_factory=dict[str, Decision])


def over_quota(answers: Sequence[tuple[str, Decision]], headers: dict[str, str]) -> Refusal:
    """A 429, with the rules that refuse."""
    decisions = answered(answers)
    waits = {name: each.retry_after for name, each in decisions.items() if not each.allowed}
    known = [wait for wait in waits.values() if wait is not None]
    return _problem(429, "quota-exceeded", list(waits), headers, max(known) if len(known) == len(waits) else None, decisions)


def out_of_capacity(retry_after: float, more: Mapping[str, str]) -> Refusal:
    """A 503, with more headers."""
    headers = {"Retry-After": str(ceil(retry_after)), **more}
    return _problem(503, "temporary-reduced-capacity", [], headers, retry_after, {})


def stacked(headers: Mapping[str, str], present: Fields, *, refused: bool) -> dict[str, str]:
    """Returns the headers to set where a response has those of another gate already, which stands behind this one.

    The fields of the draft are lists, and have the policies of both. Of a gate that admits a request which another one
    refuses, only the policies belong to the response.

    Args:
        headers: The headers of this gate.
        present: The headers of the response.
        refused: Whether the other gate refuses the request.
    """
    known = {name.lower(): value for name, value in present}
    fields: dict[str, str] = {}
    for name, value in headers.items():
        if refused and name != "RateLimit-Policy":
            continue
        before = known.get(name.lower())
        if before is None:
            fields[name] = value
        elif name.startswith("RateLimit") or (name == EXPOSE and value not in before):
            fields[name] = f"{before}, {value}"
    return fields


def unset(headers: Mapping[str, str], present: Fields) -> dict[str, str]:
    """Returns the headers of a refusal that the application's own answer lacks."""
    known = {"content-type", *(name.lower() for name, _ in present)}
    return {name: value for name, value in headers.items() if name.lower() not in known}


def answered(answers: Sequence[tuple[str, Decision]]) -> dict[str, Decision]:
    """Returns the answers that are decisions of the server or of this process."""
    return {name: each for name, each in answers if each.answered}


def _problem(
    status: int,
    problem: str,
    violated: list[str],
    headers: dict[str, str],
    retry_after: float | None,
    decisions: Mapping[str, Decision],
) -> Refusal:
    details = {"type": PROBLEM + problem, "title": TITLES[problem], "status": status, "violated-policies": violated}
    body = json.dumps(details).encode()
    headers = {"Content-Type": "application/problem+json", **headers}
    return Refusal(status, violated, headers, body, retry_after, decisions)
