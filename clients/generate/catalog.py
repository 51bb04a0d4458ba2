"""Describes every command of the module as JSON, for the generators of the packages.

    catalog.py port > catalog.json

The server on this port of 127.0.0.1 has the module loaded. Names, order and tokens come from COMMAND DOCS; ranges, units
and the sentences about the reply come from RL.HELP. What neither of them says, the kind of each reply, stands below. A
command that is missing there is an error, so that no command is left out of a package."""

import json
import re
import subprocess
import sys

# The kind of each command's reply.
REPLIES = {
    "decision": "CALENDAR CONCURRENT FIXEDWINDOW GCRA LEAKYBUCKET PEEK PENALTY REFUND SKETCH SLIDINGLOG SLIDINGWINDOW "
    "SMOOTH TOKENBUCKET UNIFORM",
    "multi": "MULTI MULTIPEEK MULTIREFUND MULTISETTLE",
    "ask": "ASK ASKPEEK ASKREFUND",
    "settled": "SETTLE",
    "asksettled": "ASKSETTLE",
    "throttle": "THROTTLE CL.THROTTLE",
    "bool": "RELEASE RENEW",
    "int": "MULTIRELEASE",
    "length": "LPUSH RPUSH",
    "id": "XADD",
    "shed": "SHED",
    "top": "TOP",
    "info": "INFO",
    "help": "HELP",
    "ok": "APPLY",
}
REPLY_OF = {name: reply for reply, names in REPLIES.items() for name in names.split()}
# The replies of alternatives that begin with a word of their own.
ALTERNATIVES = {
    ("POLICY", "SET"): "int",
    ("POLICY", "GET"): "map",
    ("POLICY", "DEL"): "bool",
    ("POLICY", "LIST"): "policies",
    ("POLICY", "STATS"): "map",
    ("POLICY", "LOAD"): "int",
    ("POLICY", "SAVE"): "int",
    ("POLICY", "HELP"): "help",
    ("TOP", "RESET"): "ok",
}
# Names of classes, and of methods where the command's own would not do.
CLASSES = {
    "TOKENBUCKET": "TokenBucket",
    "LEAKYBUCKET": "LeakyBucket",
    "FIXEDWINDOW": "FixedWindow",
    "SLIDINGWINDOW": "SlidingWindow",
    "SLIDINGLOG": "SlidingLog",
}
METHODS = {"CL.THROTTLE": "cl_throttle"}
# Options that all limiters share. They belong to a call, not to a limit.
OF_THE_CALL = {"cost", "at", "partial", "force", "reserve", "maxwait", "hold", "block"}


def words(command):
    """The snake_case name of a command: GCRA is gcra, TOKENBUCKET is token_bucket, ASKPEEK is ask_peek."""
    compound = r"(token|leaky|fixed|sliding|multi|ask)(?=.)"
    return re.sub(compound, r"\1_", command.lower())


class Server:
    def __init__(self, port):
        self.port = port

    def ask(self, *call):
        command = ["redis-cli", "-h", "127.0.0.1", "-p", self.port, "-3", "--json", *call]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout)


def explained(lines):
    """What RL.HELP says: (label, text) of each argument, the sentences on the reply, and the example."""
    sections, name = {"": []}, ""
    for line in lines:
        if line in ("Arguments:", "Reply:", "Example:"):
            name = line
            sections[name] = []
        else:
            sections[name].append(line.strip())
    arguments = [line.split(None, 1) for line in sections.get("Arguments:", [])]
    return arguments, sections["Reply:"], sections.get("Example:", [""])[0]


def range_of(summary, label, arguments):
    """What stands in brackets behind an argument's summary."""
    for found, text in arguments:
        if found == label and text.startswith(summary):
            bracketed = re.fullmatch(r" \((.*)\)", text[len(summary) :])
            if bracketed or text == summary:
                return bracketed[1] if bracketed else None
    raise SystemExit(f"RL.HELP does not explain {label}: {summary}")


def kind(argument, span):
    if argument["type"] == "string" and span and span.startswith("duration"):
        return "duration"
    kinds = {"key": "key", "integer": "int", "double": "float", "string": "string", "pure-token": "flag"}
    return kinds[argument["type"]]


def parameter(argument, arguments, optional):
    label = argument.get("token", argument["name"])
    span = range_of(argument["summary"], label, arguments)
    described = {"name": argument["name"], "type": kind(argument, span), "doc": argument["summary"]}
    if "token" in argument:
        described["token"] = argument["token"]
    if optional or described["type"] == "flag":
        described["optional"] = True
    if span:
        described["range"] = span.removeprefix("duration, ")
    return described


def group(name, kind, doc, **more):
    return {"name": name, "type": kind, "doc": doc, **more}


def parameters(nodes, arguments, optional=False):
    """The parameters of a list of arguments in COMMAND DOCS. Groups that belong together become one parameter."""
    result, i = [], 0
    while i < len(nodes):
        node = nodes[i]
        following = nodes[i + 1] if i + 1 < len(nodes) else {"name": ""}
        flags, inner = node.get("flags", []), node.get("arguments", [])
        maybe = optional or "optional" in flags
        i += 1
        if node["name"] == "numkeys":
            result.append(group("keys", "keys", "the keys, named after what is limited, such as user:1", range="1 to 64"))
            i += 1
        elif node["name"] == "limiter" and following["name"] == "parameter":
            result.append(group("limiter", "limiter", "the limiter with its parameters"))
            i += 1
        elif inner and inner[0].get("token") == "LIMIT":
            result.append(group("limits", "limits", "the limits, each for all keys or for one of them", range="1 to 64"))
        elif inner and inner[0].get("token") == "HOLD":
            result.append(group("hold", "hold", inner[0]["summary"], optional=True))
        elif inner and inner[0].get("token") == "KEYS":
            result.append(group("more_keys", "more_keys", inner[0]["summary"], optional=True, token="KEYS"))
        elif inner and inner[0]["type"] == "key":
            result.append(group("pairs", "pairs", "keys, and a payload for each"))
        elif inner and inner[0]["name"] == "field":
            result.append(group("fields", "fields", "the names of the fields, and the value of each"))
        elif "multiple" in flags:
            result.append(group("elements", "elements", node["summary"]))
        elif inner:
            result += parameters(inner, arguments, maybe or node["type"] == "oneof")
        else:
            result.append(parameter(node, arguments, maybe))
    return result


def renamed(params, command):
    """One name for each thing: the id of a lease beside that of a hold, and the id that RL.ASK passes on."""
    for param in params:
        if param.get("token") == "ID":
            param["name"] = "lease_id"
        elif param["name"] == "timeout" and param.get("token") == "BLOCK":
            param["name"] = "block"
        elif param["name"] == "id" and "SETTLE" in command:
            param["name"] = "hold_id"
    names = [param["name"] for param in params]
    if len(names) != len(set(names)):
        raise SystemExit(f"two parameters of {command} have one name: {names}")
    return params


def alternatives(command, nodes):
    """(word, arguments) of each form of a command: those that begin with a word of their own, and the rest under None."""
    if len(nodes) != 1 or nodes[0]["type"] != "oneof":
        return [(None, nodes)]
    forms = []
    for form in nodes[0]["arguments"]:
        inner = form.get("arguments", [])
        head, *rest = inner or [form]
        word = head.get("token")
        if (command, word) not in ALTERNATIVES:
            forms.append((None, inner))
        elif head["type"] == "pure-token":
            forms.append((word, rest))
        else:
            # GET name: the word stands before the first argument.
            forms.append((word, [{key: head[key] for key in head if key != "token"}, *rest]))
    return forms


def methods(name, docs, arguments, reply_doc, example, readonly):
    command = name.removeprefix("RL.")
    for word, nodes in alternatives(command, docs.get("arguments", [])):
        reply = ALTERNATIVES[command, word] if word else REPLY_OF.get(command)
        if reply is None:
            raise SystemExit(f"{name} has no kind of reply: add it to {__file__}")
        of_word = "POLICY" if name == "RL.POLICY" else command
        base = METHODS.get(name, words(of_word))
        yield {
            "method": f"{base}_{word.lower()}" if word else base,
            "command": name,
            "subcommand": word,
            "summary": summary_of(docs, word),
            "complexity": docs["complexity"],
            "reply": reply,
            "reply_doc": reply_doc,
            "example": example,
            "readonly": readonly,
            "params": renamed(parameters(nodes, labelled(arguments, word), False), command),
        }


def summary_of(docs, word):
    """The summary of a command, or of the alternative that begins with this word."""
    for form in docs["arguments"][0].get("arguments", []) if word else []:
        for node in (form, *form.get("arguments", [])[:1]):
            if node.get("token") == word:
                return node["summary"][0].upper() + node["summary"][1:]
    return docs["summary"]


def labelled(arguments, word):
    """RL.HELP has the token for a label, where the argument behind it has a name."""
    return arguments + [("name", text) for label, text in arguments if label == word]


def main(port):
    server = Server(port)
    names = sorted(name.upper() for name in server.ask("COMMAND", "LIST", "FILTERBY", "MODULE", "ratelimit"))
    catalog = {"methods": [], "limiters": []}
    for name in names:
        docs = server.ask("COMMAND", "DOCS", name)[name.lower()]
        flags = server.ask("COMMAND", "INFO", name)[0][2]
        arguments, reply_doc, example = explained(server.ask("RL.HELP", name))
        described = list(methods(name, docs, arguments, reply_doc, example, "readonly" in flags))
        catalog["methods"] += described
        command = name.removeprefix("RL.")
        if REPLY_OF.get(command) == "decision" and command not in ("PEEK", "REFUND"):
            own = [param for param in described[0]["params"][1:] if param["name"] not in OF_THE_CALL - maxwait(command)]
            # The call brings the id of a lease, where a policy has the limit.
            params = [{**param, "optional": True} if param["name"] == "id" else param for param in own]
            class_ = CLASSES.get(command, command.capitalize())
            limiter = {"name": command, "class": class_, "summary": docs["summary"], "params": params}
            catalog["limiters"].append(limiter)
    json.dump(catalog, sys.stdout, indent=1)
    print()


def maxwait(command):
    """RL.SMOOTH always books ahead, so its MAXWAIT belongs to the limit."""
    return {"maxwait"} if command == "SMOOTH" else set()


if __name__ == "__main__":
    main(sys.argv[1])
