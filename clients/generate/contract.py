"""The catalog of the module for the generators: clients/contract/catalog.json, which a test of the module writes."""

import json
import re
from pathlib import Path

UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
CATALOG = Path(__file__).parent.parent / "contract" / "catalog.json"


def loaded():
    """The methods, one for each form of a command, and the limiters with the arguments of their own commands."""
    catalog = json.loads(CATALOG.read_text(encoding="utf-8"))
    methods = [{**command, **form} for command in catalog["commands"] for form in command["forms"]]
    for limiter in catalog["limiters"]:
        own = next(method for method in methods if method["command"] == f"RL.{limiter['name']}")
        arguments = [each for each in own["arguments"] if each["name"] in limiter["parameters"]]
        # The call brings the id of a lease, where a policy has the limit.
        arguments = [{**each, "optional": True} if each["name"] == "id" else each for each in arguments]
        limiter |= {"summary": own["summary"], "arguments": arguments}
    return methods, catalog["limiters"]


def split(arguments):
    """The arguments that a call must have, and those that it may have."""
    return [each for each in arguments if not each.get("optional")], [each for each in arguments if each.get("optional")]


def number(bound):
    """The number that bounds a range, in milliseconds if it is a duration. None if it is no number."""
    match = re.fullmatch(rf"(\d+)({'|'.join(UNITS)})?", bound)
    return match and int(match[1]) * UNITS[match[2] or "ms"]


def one_of(param):
    """The words that an argument takes, such as those for the units of a calendar. None if it takes others too."""
    words = re.findall(r"\b[A-Z]{3,}\b", param["meaning"])
    return words if param["name"] == "unit" else None


def sentence(text):
    text = text if text.startswith("`") else text[0].upper() + text[1:]
    return text if text.endswith((".", "!")) else text + "."


def write(path, text):
    """Writes a file. An unchanged one keeps its time."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
