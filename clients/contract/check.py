#!/usr/bin/env python3
"""Checks that each case in cases/ is one that README.md describes: no unknown field, no missing one, no name twice. And that
the page's table of files has those of both packages, the names in them, and the rooms that they import.

Prints how many cases each subject has. `tools/packages` runs it.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

LIMITER = {"prefix", "fail", "breaker", "cache", "hooks"}
# What each question may have, and each that charges.
TOLD = {"fail", "timeout"}
CHARGED = TOLD | {"cost", "wait", "critical", "hold", "force"}
TENANT = {"tenant", "weight"}
LEASE = {"key", "capacity", "ttl"}, TOLD | TENANT | {"cost", "reserved", "critical", "fence", "wait", "renew", "adapt"}
ADAPT = {"gradient", "floor", "start", "backoff", "slow"}
GATE = {"rules", "shed", "headers", "skip"}
# The required arguments of each call, and the others.
CALLS: dict[str, tuple[set[str], set[str]]] = {
    "new": (set(), LIMITER),
    "value": ({"limit"}, set()),
    "command": ({"name", "arguments"}, set()),
    "limit": ({"key", "limit"}, CHARGED | TENANT | {"partial", "reserve"}),
    "limits": ({"keys", "limits"}, CHARGED),
    "ask": ({"key", "policy"}, CHARGED | TENANT | {"lease_id", "keys", "full"}),
    "peek": ({"key"}, {"limit", "policy", "cost", "keys", "lease_id"}),
    "explain": ({"key"}, {"limit", "policy", "cost", "keys", "lease_id"}),
    "address": ({"text"}, {"v6"}),
    "refund": ({"key", "limit"}, TOLD | {"cost"}),
    "reset": ({"key"}, set()),
    "release": ({"keys", "id", "within"}, {"certain"}),
    "settle": ({"keys", "limits", "id", "within"}, {"cost", "certain"}),
    "settle_ask": ({"key", "policy", "id", "cost", "within"}, {"keys", "lease_id", "certain"}),
    "ready": (set(), {"limits", "policies", "required"}),
    "close": (set(), set()),
    "lease": LEASE,
    "work": (LEASE[0] | {"error"}, LEASE[1] | {"drops"}),
    "renew": ({"of"}, set()),
    "release_lease": ({"of"}, {"outcome"}),
    "look": ({"of"}, set()),
    "crosses": ({"of", "fraction"}, set()),
    "hold": ({"key", "estimate"}, TOLD | TENANT | {"limit", "policy", "ttl", "keys", "wait", "critical"}),
    "record": ({"of", "cost"}, set()),
    "end": ({"of"}, set()),
    "cancel": ({"of"}, set()),
    "cancel_call": ({"of"}, set()),
    "rules": (set(), GATE),
    "enter": ({"request"}, {"of", "websocket"}),
    "leave": ({"of"}, {"spent", "status"}),
    "local": ({"key", "limit"}, {"hold", "processes"}),
    "take": ({"of"}, {"cost"}),
    "try_take": ({"of"}, {"cost"}),
}
OUTCOMES: dict[str, set[str] | None] = {
    "reply": None,
    "error": None,
    "lost": {"timeout", "connection"},
    "unsent": {"connection", "crowded"},
    "pending": None,
}
RESULT = set(
    "allowed limit remaining retry_after_ms reset_after_ms granted fence answered each binding settled headers error held lost "
    "id estimate decision status violated wait_ms words source body value decisions".split()
)
ERROR = {"error", "kind", "command", "code", "node", "text", "says", "decision"}
ERRORS = {"RateLimitError", "ConfigurationError", "CallError", "Unavailable", "Refused", "Closed"}
WORK = {"Overload", "Trouble"}
COUNTERS = set(
    "asked allowed refused cached unavailable failed_open failed_closed wrong_calls misconfigured breaker_opened "
    "leases_lost releases_retried answered_locally fetches fetched forgotten insured_allowed insured_refused".split()
)
RULE = {"name", "key", "limit", "policy", "cost", "estimate", "counts", "spread", "websocket", "hold", "local"}
SHED = {"key", "utilization", "tier", "tiers", "good", "bad", "delay", "ramp", "retry_after"}
STEP = set("after call with as answer outcome sends gives throws of log told counters times".split())
# Where the packages are, which names a line defines, and from which room it imports.
PYTHON = (
    "python/src/redis_ratelimit",
    ".py",
    r"^(?:(?:async )?def|class) (?:async_|Async)?(\w+)|^([A-Z]\w+)(?:: \w+)? =",
    r"^ *from \.\.?(\w+)",
)
NODE = (
    "node/src",
    ".ts",
    r"^export (?:abstract |async )*(?:class|const|function|interface|type) (\w+)()",
    r" from '\.\.?/(\w+)/",
)
ROOMS = ("call", "decide", "wire", "taken", "local", "gate")
# What users import, and what is generated.
UNNAMED = set("asgi commands django flask gates index limits_storage types call/calls call/catalog call/limiters".split())
HERE = Path(__file__).parent
FORMS = {
    form["name"]: {argument["name"]: argument.get("optional", False) for argument in form["arguments"]}
    for command in json.loads((HERE / "catalog.json").read_text())["commands"]
    for form in command["forms"]
}


def wrong_fields(where: str, value: object, required: set[str], others: set[str]) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{where} is no object"
        return
    if missing := required - value.keys():
        yield f"{where} lacks {sorted(missing)}"
    if unknown := value.keys() - required - others:
        yield f"{where} has unknown {sorted(unknown)}"


def wrong_outcome(where: str, outcome: dict[str, object]) -> Iterator[str]:
    known = outcome.keys() & OUTCOMES.keys()
    if len(known) != 1:
        yield f"{where} has {len(known)} outcomes, not one"
    for name in known:
        words = OUTCOMES[name]
        if words is not None and outcome[name] not in words:
            yield f"{where} has unknown {name} {outcome[name]!r}"


def wrong_step(where: str, step: dict[str, object], known: set[str]) -> Iterator[str]:
    """Errors of a step. `known` are the names that earlier steps gave."""
    yield from wrong_fields(where, step, set(), STEP)
    if "call" in step:
        if step["call"] not in CALLS:
            yield f"{where} has unknown call {step['call']!r}"
            return
        required, others = CALLS[str(step["call"])]
        given = step.get("with", {})
        yield from wrong_fields(f"{where}: with", given, required, others)
        if isinstance(given, dict) and isinstance(given.get("adapt"), dict):
            yield from wrong_fields(f"{where}: adapt", given["adapt"], set(), ADAPT)
        if step["call"] == "command":
            form = FORMS.get(given["name"], {})
            required = {name for name, optional in form.items() if not optional}
            yield from wrong_fields(f"{where}: {given['name']}", given["arguments"], required, form.keys() - required)
        if isinstance(given, dict) and "of" in given and given["of"] not in known:
            yield f"{where} is of {given['of']!r}, which no step has named"
    elif "with" in step or "as" in step:
        yield f"{where} has no call"
    if ("answer" in step) != ("outcome" in step):
        yield f"{where} has half an answer"
    if "answer" in step:
        if step["answer"] not in known:
            yield f"{where} answers {step['answer']!r}, which is not pending"
        yield from wrong_outcome(f"{where}: outcome", step["outcome"])
    if "of" in step and step["of"] not in known:
        yield f"{where} is of {step['of']!r}, which no step has named"
    for number, sent in enumerate(step.get("sends", []), 1):
        yield from wrong_fields(f"{where}: sends {number}", sent, {"words"}, {"at", "times", *OUTCOMES})
        yield from wrong_outcome(f"{where}: sends {number}", sent)
        known |= {sent["pending"]} if "pending" in sent else set()
    known |= {step["as"]} if "as" in step else set()
    if "gives" in step and "throws" in step:
        yield f"{where} gives and throws"
    if isinstance(step.get("gives"), dict):
        yield from wrong_fields(f"{where}: gives", step["gives"], set(), RESULT)
    if "throws" in step:
        yield from wrong_fields(f"{where}: throws", step["throws"], {"error"}, ERROR)
        if step["throws"].get("error") not in ERRORS | WORK:
            yield f"{where} throws an unknown {step['throws'].get('error')!r}"
    if ("gives" in step or "throws" in step) and not {"call", "of"} & step.keys():
        yield f"{where} gives or throws, but not of a call"
    yield from wrong_fields(f"{where}: counters", step.get("counters", {}), set(), COUNTERS)


def wrong_case(where: str, case: dict[str, object]) -> Iterator[str]:
    yield from wrong_fields(where, case, {"name", "steps"}, {"limiter", "nodes", "gate"})
    limiter = case.get("limiter", {})
    yield from wrong_fields(f"{where}: limiter", limiter, set(), LIMITER)
    if isinstance(limiter.get("fail"), dict):
        yield from wrong_fields(f"{where}: fail", limiter["fail"], {"processes"}, {"otherwise"})
    for name, fields in (("breaker", {"failures", "cooldown"}), ("cache", {"keys", "longest", "cache_ask"})):
        yield from wrong_fields(f"{where}: {name}", limiter.get(name) or {}, set(), fields)
    gate = case.get("gate", {})
    yield from wrong_fields(f"{where}: gate", gate, set(), GATE)
    for rule in gate.get("rules", []):
        yield from wrong_fields(f"{where}: rule", rule, {"name", "key"}, RULE)
    yield from wrong_fields(f"{where}: shed", gate.get("shed") or {}, set(), SHED)
    known: set[str] = set()
    for number, step in enumerate(case["steps"], 1):
        yield from wrong_step(f"{where}, step {number}", step, known)


def wrong_files(rows: list[list[str]], package: tuple[str, str, str, str], number: int) -> Iterator[str]:
    """Errors of the table of files. `number` is that of the package: its names stand behind those of both packages."""
    folder, suffix, defines, imports = package
    source = HERE.parent / folder
    files = {path.relative_to(source).with_suffix("").as_posix(): path.read_text() for path in source.rglob(f"*{suffix}")}
    files = {file: text for file, text in files.items() if not file.endswith(("__init__", "_threads")) and file not in UNNAMED}
    for cells in rows:
        row, uses, both, own = cells[0], cells[1].split(" / "), cells[2], cells[3 + number]
        text = "\n".join(files.pop(file) for file in re.findall(r"`([\w/-]+)`", row) if file in files)
        known = {name for names in re.findall(defines, text, re.MULTILINE) for name in names}
        named = re.findall(r"`(\w+)`", both)
        if package is NODE:
            named = [re.sub(r"_(\w)", lambda letter: letter[1].upper(), name) for name in named]
        named += re.findall(r"`(\w+)`", own)
        yield from (f"{folder}, {row}: there is no {name}" for name in named if name not in known)
        rooms = {room for room in re.findall(imports, text, re.MULTILINE) if not row.startswith(f"`{room}/")}
        found = " ".join(room[0] for room in ROOMS if room in rooms) or "–"
        if text and found != uses[min(number, len(uses) - 1)]:
            yield f"{folder}, {row}: it uses {found}"
    yield from (f"{folder}: the table lacks {file}" for file in files)


def main() -> None:
    lines = re.findall(r"^\| `.*$", (HERE / "README.md").read_text(), re.MULTILINE)
    rows = [cells for line in lines if len(cells := [cell.strip() for cell in line.split("|")[1:-1]]) == 6]
    errors = [*wrong_files(rows, PYTHON, 0), *wrong_files(rows, NODE, 1)]
    for file in {file for row in rows for file in re.findall(r"`([\w/-]+)`", row[0])} - UNNAMED:
        if not any((HERE.parent / folder / f"{file}{suffix}").exists() for folder, suffix, *_ in (PYTHON, NODE)):
            errors.append(f"there is no file {file}")
    names: dict[str, str] = {}
    for path in sorted(HERE.glob("cases/*.json")):
        file = json.loads(path.read_text())
        errors += wrong_fields(path.name, file, {"subject", "cases"}, set())
        if file["subject"] != path.stem:
            errors.append(f"{path.name} has the subject {file['subject']!r}")
        for case in file["cases"]:
            name = case.get("name", "")
            if name in names:
                errors.append(f"{path.name} and {names[name]}: two cases have the name {name!r}")
            names[name] = path.name
            errors += wrong_case(f"{path.stem}: {name}", case)
        print(f"{len(file['cases']):4}  {path.stem}")
    print(f"{len(names):4}  in all")
    if errors:
        sys.exit("\n".join(errors))


if __name__ == "__main__":
    main()
