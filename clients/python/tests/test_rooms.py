"""Modules import one way, and only runtime.py makes clocks, ids and timers."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import redis_ratelimit

PACKAGE = Path(redis_ratelimit.__file__).parent
# What a room may import from. What stands in no room is opened first, and may import from all.
ROOMS = {
    "call": {"call"},
    "decide": {"call", "decide"},
    "wire": {"call", "decide", "wire"},
    "taken": {"call", "decide", "wire", "taken", "runtime"},
    "local": {"call", "decide", "taken", "local"},
    "gate": {"call", "decide", "wire", "taken", "local", "gate", "limiter"},
    "web": {"call", "decide", "wire", "taken", "gate", "web", "limiter"},
    "limits": {"limits"},
}
REAL = re.compile(r"\bmonotonic\(|\buuid4\b|\basyncio\.sleep\b|^(from|import) (time|random)\b", re.MULTILINE)
REAL_ONES = ("runtime", "limits/")  # the library `limits` asks for the time of day


def imported(path: Path) -> set[str]:
    """The modules of the package that a file imports, also only for types."""
    place, found = path.relative_to(PACKAGE).parent.parts, set[str]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = [*place[: len(place) + 1 - node.level], *(node.module.split(".") if node.module else [])]
            for name in (*(each.name for each in node.names), ""):
                file = "/".join([*base, name] if name else base)
                found |= {file} if (PACKAGE / f"{file}.py").exists() else set()
    return found


FILES = {str(path.relative_to(PACKAGE).with_suffix("")): path for path in PACKAGE.rglob("*.py")}
IMPORTS = {name: imported(path) for name, path in FILES.items()}


def test_rooms_import_one_way() -> None:
    for name, others in IMPORTS.items():
        room = name.partition("/")[0]
        for other in others if "/" in name else ():
            assert other.partition("/")[0].removesuffix("_threads") in ROOMS[room], f"{name} imports {other}"


def test_modules_do_not_import_one_another_in_circles() -> None:
    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, f"a circle: {' -> '.join([*way, name])}"
        if name not in done:
            for other in IMPORTS[name]:
                visit(other, (*way, name))
            done.add(name)

    for name in IMPORTS:
        visit(name, ())


def test_clocks_ids_and_timers_are_arguments() -> None:
    for name, path in FILES.items():
        found = REAL.search(path.read_text(encoding="utf-8"))
        assert found is None or name.startswith(REAL_ONES), f"{name} has {found[0]}"
