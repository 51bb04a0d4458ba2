"""The checks of an application: what its responses say, and what Redis counts meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from typing import Any

import httpx
import redis


# The window of /short, in seconds.
SHORT = 1.5


def until(question: Callable[[], object], what: str) -> None:
    for _ in range(400):
        with contextlib.suppress(redis.RedisError, httpx.HTTPError):
            if question():
                return
        time.sleep(0.05)
    raise SystemExit(f"{what} did not happen in 20 s")


class Application:
    """The checks of an application that fails open. `other` is the one that fails closed."""

    def __init__(self, name: str, url: str, other: str, db: Any) -> None:
        self.name, self.url, self.other, self.db = name, url, other, db
        self.rows: list[bool] = []

    def row(self, what: str, passed: bool, told: str) -> None:
        self.rows.append(passed)
        print(f"{self.name:<11} {what:<48} {'passed' if passed else 'FAILED':<7} {told}", flush=True)

    def ask(self, path: str, key: str, **headers: str) -> httpx.Response:
        return httpx.get(self.url + path, headers={"x-api-key": f"{self.name}:{key}", **headers}, timeout=30)

    def hang_up(self, path: str, key: str, read: bool = True) -> tuple[socket.socket, bytes]:
        """A caller that reads the head of the response at most. Close the socket to let it go away."""
        caller = socket.create_connection(("127.0.0.1", int(self.url.rsplit(":", 1)[1])))
        caller.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nx-api-key: {self.name}:{key}\r\n\r\n".encode())
        return caller, caller.recv(4096) if read else b""

    def left(self, name: str, *limit: str | int) -> int:
        return int(self.db.execute_command("RL.PEEK", name, *limit, "COST", 0)[2])

    # Each check prints a row.

    def exactly_the_limit(self) -> None:
        before = time.monotonic()
        answers = asyncio.run(crowd(self.url, "/", 300, 50, f"{self.name}:crowd"))
        took = time.monotonic() - before
        passed = [answer for answer in answers if answer.status_code == 200]
        refused = [answer for answer in answers if answer.status_code == 429]
        right = len(passed) == 100 and len(refused) == 200 and took < 10
        told = f"{len(passed)} × 200, {len(refused)} × 429 in {took:.1f} s"
        self.row("50 callers, 300 requests, 100 per 10 s", right, told)

        right_headers = sum(map(has_right_headers, answers))
        remaining = sorted(number(r'"default";r=(\d+);.*', answer.headers["ratelimit"])[0] for answer in passed)
        right = right_headers == 300 and remaining == list(range(100))
        self.row("headers of all 300", right, f"{right_headers} right; the admitted ones' r is 99 … 0, each once")
        if refused:
            fields = refused[0].headers
            print(f"{'':<11} {POLICY}  {fields['ratelimit']}  Retry-After: {fields['retry-after']}")

    def honest(self) -> None:
        for attempt in range(5):
            began = time.monotonic()
            caller = f"honest:{attempt}"
            first = [self.ask("/short", caller).status_code for _ in range(2)]
            refused = self.ask("/short", caller)
            wait = int(refused.headers.get("retry-after", 0))
            time.sleep(max(wait - 1, 0))
            early = self.ask("/short", caller).status_code
            # On a busy machine the early request may have come too late to say anything.
            if time.monotonic() - began < SHORT:
                break
        time.sleep(1)
        late = self.ask("/short", caller).status_code
        right = (first, refused.status_code, early, late) == ([200, 200], 429, 429, 200)
        right = right and refused.headers.get("ratelimit") == f'"short";r=0;t={wait}'
        self.row("Retry-After is honest: 2 per 1.5 s", right, f"told {wait} s: {early} a second sooner, {late} then")

    def plans(self) -> None:
        told = {
            plan: [self.ask("/plan", f"plan:{plan}", **{"x-plan": plan}) for _ in range(8)] for plan in ("free", "pro", "staff")
        }
        admitted = {plan: sum(answer.status_code == 200 for answer in answers) for plan, answers in told.items()}
        policy = told["pro"][0].headers.get("ratelimit-policy", "")
        right = admitted == {"free": 3, "pro": 6, "staff": 8} and policy.endswith('"plan";q=6;w=10')
        right = right and '"plan"' not in told["staff"][0].headers.get("ratelimit-policy", "")
        self.row("plans: 3, 6 or no limit per 10 s", right, ", ".join(f"{plan} {count}" for plan, count in admitted.items()))

    def costs(self) -> None:
        answers = [self.ask(f"/items?n={n}", "costs") for n in (4, 0, 5, 2, 1)]
        codes = [answer.status_code for answer in answers]
        remaining = [number(r'.*"items";r=(\d+);.*', answer.headers.get("ratelimit", "")) for answer in answers]
        # The refused request is charged no limit: four of a hundred are.
        total = self.left(f"default:{self.name}:costs", "SLIDINGLOG", 100, "10s")
        right = codes == [200, 200, 200, 429, 200] and remaining == [[6], [6], [1], [1], [0]] and total == 96
        self.row("costs of 4, 0, 5, 2 and 1, of 10 per 10 s", right, f"{codes}, 0 left")

    def shedding(self) -> None:
        self.db.delete("fleet")
        # Each report at 1 counts for at most the 200 ms of DELAY: a tenth of the ramp of 2 s. Six lead from -0.1 to 0.5.
        self.db.execute_command("RL.SHED", "fleet", 1, "DELAY", "200ms", "RAMP", "2s")
        for _ in range(6):
            time.sleep(0.21)
            self.db.execute_command("RL.SHED", "fleet", 1, "DELAY", "200ms", "RAMP", "2s")
        told = {path: [self.ask(path, path) for _ in range(20)] for path in ("/report", "/page", "/pay")}
        codes = {path: {answer.status_code for answer in answers} for path, answers in told.items()}
        retry = {answer.headers.get("retry-after") for answer in told["/report"]}
        right = codes == {"/report": {503}, "/page": {200}, "/pay": {200}} and retry == {"5"}
        counted = ", ".join(f"20 × {min(codes[path])} {path}" for path in codes)
        self.row("half of the load shed: tier 1, tier 2, not asked", right, f"{counted}, Retry-After: {min(retry, key=str)}")
        self.db.delete("fleet")

    def leases(self) -> None:
        lease = f"streams:{self.name}:streams"

        def held() -> int:
            return 5 - self.left(lease, "CONCURRENT", 5, "1m", "nobody")

        callers = [self.hang_up("/stream", "streams") for _ in range(5)]
        full, refused = held(), self.ask("/stream", "streams")
        for caller, _ in callers:
            caller.close()
        gone = time.monotonic()
        until(lambda: held() == 0, "the return of the leases")
        took = time.monotonic() - gone
        # And some that do not even wait for the first byte.
        for _ in range(5):
            self.hang_up("/stream", "streams", read=False)[0].close()
        time.sleep(0.5)
        until(lambda: held() == 0, "the return of the hasty ones' leases")
        fields = refused.headers
        right = (
            all(b" 200 " in head for _, head in callers)
            and (full, refused.status_code, fields.get("retry-after")) == (5, 429, "1")
            and fields.get("ratelimit") == '"streams";r=0'
            and '"streams";q=5;qu="concurrent-requests"' in fields.get("ratelimit-policy", "")
            and took < 5
        )
        told = f"{full} held, {refused.status_code}, 0 held {took:.1f} s later"
        self.row("leases: 5 streams, a sixth, all hang up; 5 hasty", right, told)

    def failures(self) -> None:
        """Ten logins that succeed and three that fail, of three failures in 10 s; then a handler that raises, and a preflight."""
        good = [self.ask("/login?ok=1", "login").status_code for _ in range(10)]
        bad = [self.ask("/login?ok=0", "login").status_code for _ in range(4)]
        told = f"{good.count(200)} × 200, then {' '.join(map(str, bad))}"
        self.row("10 good logins, 3 bad ones of 3, one more", (good, bad) == ([200] * 10, [401, 401, 401, 429]), told)

        broken = self.ask("/boom", "boom")
        left = self.left(f"default:{self.name}:boom", "SLIDINGLOG", 100, "10s")
        shown = "with" if "ratelimit" in broken.headers else "without"
        self.row("a handler that raises", (broken.status_code, left) == (500, 99), f"500 {shown} RateLimit, {left} of 100 left")

        fields = {"x-api-key": f"{self.name}:preflight", "access-control-request-method": "GET"}
        codes = {httpx.options(f"{self.url}/short", headers=fields, timeout=30).status_code for _ in range(5)}
        left = self.left(f"short:{self.name}:preflight", "SLIDINGLOG", 2, "1500ms")
        self.row("5 preflights to a path with 2 requests", (codes, left) == ({200}, 2), f"{codes}, {left} of 2 left")

    def addresses(self) -> None:
        """Two of an address per minute. Two clients of a network, a third, and one of another network."""
        clients = ("2001:db8:1:2::5", "2001:db8:1:2::6", "2001:db8:1:2::7", "2001:db8:1:3::5")
        for what, url, right, key in (
            ("no proxy, so X-Forwarded-For changes nothing", self.url, [200, 200, 429, 429], "127.0.0.1"),
            ("behind a proxy: a /64 is a client, forged or not", self.other, [200, 200, 429, 200], "2001:db8:1:2::/64"),
        ):
            self.db.delete(*(f"address:{one}" for one in ("127.0.0.1", "2001:db8:1:2::/64", "2001:db8:1:3::/64")))
            # What clients write comes first.
            caller = {"x-api-key": f"{self.name}:address"}
            fields = [{**caller, "x-forwarded-for": f"203.0.113.{i}, {one}"} for i, one in enumerate(clients)]
            codes = [httpx.get(f"{url}/address", headers=each, timeout=30).status_code for each in fields]
            left = self.left(f"address:{key}", "SLIDINGLOG", 2, "1m")
            self.row(what, (codes, left) == (right, 0), f"{' '.join(map(str, codes))}, the key is {key}")

    def budget(self) -> None:
        bucket, requests = f"tokens:{self.name}:budget", f"default:{self.name}:budget"

        def tokens() -> int:
            return self.left(bucket, "TOKENBUCKET", 1000, 1000, "1d")

        def held() -> bool:
            return any(b"holds" in (self.db.execute_command("RL.INFO", name) or []) for name in (bucket, requests))

        def settled(what: str) -> int:
            until(lambda: not held(), f"a settlement of {what}")
            return tokens()

        whole = self.ask("/chat?tokens=100", "budget").headers.get("ratelimit", "")
        told = [settled("an answer")]
        with contextlib.suppress(httpx.RemoteProtocolError):  # of an answer that breaks off
            self.ask("/chat?tokens=100&fail=50", "budget")
        told.append(settled("what failed"))
        callers = [self.hang_up("/chat?tokens=400", "budget") for _ in range(2)]
        during, refused = tokens(), self.ask("/chat?tokens=1", "budget").status_code
        for caller, _ in callers:
            caller.close()
        after = settled("hang-ups")
        admitted = 100 - self.left(requests, "SLIDINGLOG", 100, "10s")
        right = '"tokens";r=600;' in whole and told == [900, 850] and (during, refused, admitted) == (50, 429, 4)
        self.row(
            "budget of 1,000: whole, broken off, two hang up",
            right and 450 < after < 850,
            f"{told[0]}, {told[1]}; {during} and {refused} meanwhile, then {after}",
        )

    def hanging(self, process: subprocess.Popen[bytes]) -> None:
        """Redis accepts connections and answers nothing: the middleware's own limit of time."""
        key = {"x-api-key": f"{self.name}:hanging"}
        process.send_signal(signal.SIGSTOP)
        try:
            before = time.monotonic()
            codes = [httpx.get(url, headers=key, timeout=30).status_code for url in (self.url, self.other)]
            took = (time.monotonic() - before) / 2
        finally:
            process.send_signal(signal.SIGCONT)
        # The shedder and the limits are a call each.
        told = f"fail open: {codes[0]}, closed: {codes[1]}; {took:.1f} s each"
        self.row("Redis hangs, time-out of 2 s", codes == [200, 503] and took < 6, told)

    def without_redis(self) -> None:
        key = {"x-api-key": f"{self.name}:away"}
        before = time.monotonic()
        passing = [httpx.get(self.url, headers=key).status_code for _ in range(10)]
        refusing = [httpx.get(self.other, headers=key) for _ in range(10)]
        took = (time.monotonic() - before) / 20 * 1000
        self.row("Redis killed, fail open", passing == [200] * 10, f"{passing.count(200)} × 200")
        codes = [(answer.status_code, answer.headers.get("retry-after")) for answer in refusing]
        told = f"{codes.count((503, '1'))} × 503, Retry-After: 1; {took:.0f} ms each"
        self.row("Redis killed, fail closed", codes == [(503, "1")] * 10, told)

    def back(self) -> None:
        for fail, url in (("open", self.url), ("closed", self.other)):
            before = time.monotonic()
            until(lambda: "ratelimit" in httpx.get(url, headers={"x-api-key": f"{self.name}:back"}).headers, "a way back")
            self.row(f"Redis back, after fail {fail}", True, f"limits again {time.monotonic() - before:.1f} s later")


POLICY = '"default";q=100;w=10'


def number(pattern: str, text: str) -> list[int]:
    found = re.fullmatch(pattern, text)
    return [int(group) for group in found.groups()] if found else [-1]


def has_right_headers(answer: httpx.Response) -> bool:
    fields = answer.headers
    left = number(r'"default";r=(\d+);t=(\d+)', fields.get("ratelimit", ""))
    if left == [-1] or fields.get("ratelimit-policy") != POLICY:
        return False
    if answer.status_code == 200:
        return left[0] < 100 and left[1] == 10 and "retry-after" not in fields
    retry, problem = int(fields.get("retry-after", 0)), answer.json()
    named = problem["violated-policies"] == ["default"] and fields["content-type"].startswith("application/problem+json")
    return left == [0, retry] and 1 <= retry <= 10 and named


async def crowd(url: str, path: str, calls: int, callers: int, key: str) -> list[httpx.Response]:
    """Answers to `calls` requests by `callers` at a time."""
    async with httpx.AsyncClient(timeout=30, limits=httpx.Limits(max_connections=callers)) as client:
        await asyncio.gather(*(client.get(f"{url}/warm", headers={"x-api-key": f"w{i}"}) for i in range(callers)))
        return await asyncio.gather(*(client.get(url + path, headers={"x-api-key": key}) for _ in range(calls)))
