"""The contract of the packages: what is sent, decided, written and counted."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from replay import KINDS
from servers import ROOT

FILES = sorted((ROOT / "clients/contract/cases").glob("*.json"))
CASES: list[Any] = [
    pytest.param(case, id=f"{file.stem}: {case['name']}")
    for file in FILES
    for case in json.loads(file.read_text(encoding="utf-8"))["cases"]
]


def test_there_are_cases() -> None:
    assert len(CASES) > 200


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CASES)
async def test_case(case: dict[str, Any], kind: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "redis_ratelimit")
    replay = KINDS[kind](case)
    for number, step in enumerate(case["steps"], 1):
        for _ in range(step.get("times", 1)):
            caplog.clear()
            try:
                await replay.step(step)
                if "log" in step:
                    assert caplog.messages == step["log"]
                if "told" in step:
                    assert replay.told == step["told"]
                counters = replay.counters()
                assert {name: counters[name] for name in step.get("counters", {})} == step.get("counters", {})
            except BaseException as error:
                error.add_note(f"step {number}: {json.dumps(step, ensure_ascii=False)}")
                raise
