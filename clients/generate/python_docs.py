"""Docstrings of the Python package, from what the server says about its commands."""

import json
import re
import textwrap

from contract import sentence, split

WIDTH = 120
SAMPLES = {"name": '"api"', "limits": '["10/s"]'}  # for examples of commands that have none
# What is returned for each kind of reply.
RESULTS = {
    "decision": "The decision.",
    "multi": "The decision of all limits, and `each` limit's own on each key.",
    "ask": "The decision of all limits, and which of them binds.",
    "settled": "How the limit stands, and whether something was held.",
    "asksettled": "How the limits stand, and on how many keys something was held.",
    "throttle": "The decision.",
    "shed": "Whether the call is shed, and the chance of that.",
    "top": "The keys, in descending order.",
    "policies": "The version of each policy.",
    "help": "Lines of text.",
}
# What is returned where the server speaks of integers: by the word behind the command, or by the command.
RETURNS = {
    "RL.RELEASE": "Whether the lease was held.",
    "RL.RENEW": "Whether the lease was held.",
    "RL.MULTIRELEASE": "The number of keys that held the lease.",
    "RL.XADD": "The id of the entry, or None if it does not fit.",
    "RL.LPUSH": "The length of the list, or None if the elements do not all fit.",
    "RL.RPUSH": "The length of the list, or None if the elements do not all fit.",
    "RL.INFO": "What the key holds, or None if it is missing.",
    "RL.MULTIPEEK": "What `multi` would return.",
    "RL.MULTISETTLE": "How the limits stand. `settled` is the number of keys that held one of the limits.",
    "RL.MULTIREFUND": "How the limits stand.",
    "RL.PENALTY": "The decision. It is refused during a ban, and `limit` is the number of strikes. `remaining` is the "
    "number of strikes up to and including the one that bans. `retry_after` is when the ban ends.",
    "SET": "The version.",
    "DEL": "Whether there was one.",
    "LOAD": "The number of policies.",
    "SAVE": "The number of policies.",
    "GET": "The version and the limits, or None if there is no such policy.",
    "TRY": "What the calls would have been by the policy and by the limits, as `docs/policies.md` explains.",
    "STATS": "The version and the counters, or None if there is no such policy.",
}
# Sentences of the server's that a decision says in another way, and those that it does not need.
SAID = {
    "With PARTIAL a sixth integer: granted.": "With PARTIAL, `granted` is how much was granted.",
    "With FULL two elements: these integers, and an array with the five integers of each pair.": "With FULL, `each` is the "
    "decision of each pair.",
    "An error if the setting ratelimit.top is 0. RESET: OK.": "An error if the setting ratelimit.top is 0.",
}
INTEGERS = re.compile(r"(The )?(five|two|three|1 |an array|a map|ok\b|id of|length of|number of)", re.IGNORECASE)


def plain(sentence, params):
    """A sentence of the server with the names of Python for the tokens of the wire."""
    for param in params:
        token = param.get("token")
        if token:
            sentence = re.sub(rf"\b{token}\b", f"`{param['name']}`", sentence)
    return re.sub(r"\b(retry_after|reset_after)\b", r"`\1`", sentence)


def described(param, params):
    """The line of a parameter in a docstring."""
    about = sentence(plain(param["meaning"], params))
    more = {
        "hold": " The id (1 to 256 bytes), and how long the charge can be settled; then it stands.",
        "limiter": ' Or a rate such as `"10/s"`.',
        "limits": ' Or limiters, or rates such as `"10/s"`.',
    }.get(param["kind"], "")
    span = param.get("range")
    if span and param["kind"] == "duration":
        span = f"a duration, {span}"
    span = f" ({plain(span, params)})" if span else ""
    return f"{param['name']}: {about[:-1]}{span}.{more}"


def wrapped(text, indent, hanging=0):
    """Lines of text for a docstring that stands up to eight columns further to the right."""
    wrapper = textwrap.TextWrapper(WIDTH - 8, break_on_hyphens=False, break_long_words=False)
    wrapper.initial_indent, wrapper.subsequent_indent = " " * indent, " " * (indent + hanging)
    return wrapper.wrap(text)


def returned(method):
    """What a method returns, in sentences."""
    *_, word = method["words"]
    said = [RETURNS.get(word) or RESULTS.get(method["reply"], "")]
    more = [] if word != method["command"] else [SAID.get(line, line) for line in method["reply_text"]]
    said += [plain(line, method["arguments"]) for line in more if not INTEGERS.match(line)]
    return " ".join(each for each in said if each)


def docstring(method, limiters, awaited):
    params = method["arguments"]
    lines = [f'"""{sentence(method["summary"])}', ""]
    lines += [*wrapped(f"Sends `{' '.join(method['words'])}`. Complexity: {method['complexity']}.", 0)]
    if params:
        required, optional = split(params)
        lines += ["", "Args:", *(line for p in [*required, *optional] for line in wrapped(described(p, params), 4, 4))]
    text = returned(method)
    if text:
        lines += ["", "Returns:", *wrapped(text, 4)]
    example = python_example(method, limiters)
    if example is not None:
        name = f"commands.{method['name']}"
        lines += ["", "Example:", f"    {'await ' if awaited else ''}{name}({', '.join(example)})"]
    return [*[f"        {line}".rstrip() for line in lines], '        """']


def python_example(method, limiters):
    """The arguments of the example, as Python writes them. None if there is no example."""
    words, first = method.get("example", "").split(), method["words"]
    if words[: len(first)] == first:
        return arguments(method["arguments"], parsed(words[len(first) :], method["arguments"], limiters))
    required, _ = split(method["arguments"])
    samples = [SAMPLES.get(p["name"]) for p in required]
    return samples if all(samples) else None


def arguments(params, values):
    required, optional = split(params)
    named = [f"{p['name']}={values[p['name']]}" for p in optional if p["name"] in values]
    return [values[p["name"]] for p in required] + named


def literal(param, value):
    if param["kind"] in ("int", "float") or (param["kind"] == "duration" and value.isdigit()):
        return value
    return json.dumps(value)


def parsed(words, params, limiters, stop=()):
    """The values of the words. Options stand anywhere between the arguments that have no token."""
    values, options = {}, {p["token"]: p for p in params if "token" in p}
    positional = [p for p in params if "token" not in p and p["kind"] != "hold"]
    while words and words[0] not in stop:
        if words[0] in options:
            param = options[words.pop(0)]
            values[param["name"]] = "True" if param["kind"] == "flag" else literal(param, words.pop(0))
            continue
        if not positional:
            break
        param = positional.pop(0)
        values[param["name"]] = consumed(param, words, limiters)
    return values


def consumed(param, words, limiters):
    """Takes the words of an argument without a token."""
    if param["kind"] == "keys":
        count = int(words.pop(0))
        return "[" + ", ".join(json.dumps(words.pop(0)) for _ in range(count)) + "]"
    if param["kind"] == "elements":
        rest, words[:] = list(words), []
        return json.dumps(rest)
    if param["kind"] == "fields":
        rest, words[:] = list(words), []
        return json.dumps(dict(zip(rest[::2], rest[1::2], strict=True)))
    if param["kind"] == "limiter":
        return limiter_call(words, limiters)
    if param["kind"] == "limits":
        return "[" + ", ".join(limit_calls(words, limiters)) + "]"
    return literal(param, words.pop(0))


def limiter_call(words, limiters):
    limiter = limiters[words.pop(0)]
    values = parsed(words, limiter["arguments"], limiters, stop=("LIMIT", "ON", "COST", "SHADOW"))
    return f"{limiter['class']}({', '.join(arguments(limiter['arguments'], values))})"


def limit_calls(words, limiters):
    while words and words.pop(0) == "LIMIT":
        call, more = limiter_call(words, limiters), []
        while words and words[0] in ("ON", "COST", "SHADOW"):
            option = words.pop(0).lower()
            more.append(f"{option}=True" if option == "shadow" else f"{option}={words.pop(0)}")
        yield f"Limit({', '.join([call, *more])})" if more else call
