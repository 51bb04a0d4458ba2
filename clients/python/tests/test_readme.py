"""The code of the README runs."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from servers import Server

README = Path(__file__).resolve().parents[1] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


async def run(code: str, names: dict[str, object]) -> None:
    compiled = compile(code, str(README), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result: object = eval(compiled, names)
    if inspect.isawaitable(result):
        await result


async def test_the_quick_start_is_short_and_refuses_the_fourth(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    code = BLOCKS[0].replace("6379", str(server.port))
    assert len(code.strip().splitlines()) <= 10
    await run(code, {})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" ", 2)[:2] for line in lines] == [["True", "2"], ["True", "1"], ["True", "0"], ["False", "0"]]
    shown = re.search(r"^False 0 (.*)$", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert shown is not None
    assert re.sub(r"\d+", "n", lines[3].removeprefix("False 0 ")) == re.sub(r"\d+", "n", shown[1])


async def test_every_block_runs(server: Server) -> None:
    names: dict[str, object] = {}
    for block in BLOCKS[1:]:
        await run(block.replace("6379", str(server.port)), names)
