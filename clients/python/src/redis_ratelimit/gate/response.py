"""The responses of the middleware to requests that do not go on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from ..decide.decision import Decision
from ..decide.headers import combined_headers

PROBLEM = "https://iana.org/assignments/http-problem-types#"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The response to a request that does not go on.

    Attributes:
        status: 429, or 503 for a shed request and for a limiter that fails closed.
        violated: The names of the rules that refuse.
        headers: All headers of the response.
        body: The problem, as JSON.
    """

    status: int
    violated: list[str]
    headers: dict[str, str]
    body: bytes


def over_quota(answers: Sequence[tuple[str, Decision]]) -> Refusal:
    """A 429, with the rules that refuse."""
    violated = [name for name, each in answers if each.answered and not each.allowed]
    return _problem(429, "quota-exceeded", violated, combined_headers(answers, allowed=False))


def refused(answers: Sequence[tuple[str, Decision]]) -> Refusal:
    """The response to a request that the last answer refuses."""
    return over_quota(answers) if answers[-1][1].answered else out_of_capacity(1)


def out_of_capacity(retry_after: float) -> Refusal:
    """A 503."""
    return _problem(503, "temporary-reduced-capacity", [], {"Retry-After": str(ceil(retry_after))})


def _problem(status: int, problem: str, violated: list[str], headers: dict[str, str]) -> Refusal:
    body = json.dumps({"type": PROBLEM + problem, "status": status, "violated-policies": violated}).encode()
    return Refusal(status, violated, {"Content-Type": "application/problem+json", **headers}, body)
