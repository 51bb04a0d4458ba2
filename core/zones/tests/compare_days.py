#!/usr/bin/env python3
"""Compares days that begin at an hour with Python's zoneinfo: every zone of the machine's database, every change of its
clocks from 1970 to 2037, and each hour from 0 to 23. Prints how many windows were compared, and which differ.

    core/zones/tests/compare_days.py [ZONE ...]
"""

import subprocess
import sys
from datetime import datetime
from zoneinfo import ZoneInfo, available_timezones

FIRST, LAST = 0, 2_145_916_800  # 1970 and 2038
DAY = 86_400


def offsets(zone):
    """The spans of time with one offset from UTC: when each begins, and the offset."""

    def offset(at):
        return int(datetime.fromtimestamp(at, zone).utcoffset().total_seconds())

    spans = [(FIRST - 4 * DAY, offset(FIRST))]
    for at in range(FIRST, LAST, DAY // 2):
        low, high = at, at + DAY // 2
        while offset(low) != offset(high):
            begin, end = low, high
            while end - begin > 1:
                middle = (begin + end) // 2
                begin, end = (middle, end) if offset(middle) == offset(low) else (begin, middle)
            spans.append((end, offset(end)))
            low = end
    return spans


def begin(spans, name):
    """The first instant whose local time, in seconds since 1970, is at or after a name."""
    ends = [at for at, _ in spans[1:]] + [LAST + 9 * DAY]
    reached = (max(at, name - offset) for at, offset in spans)
    return next(reach for reach, end in zip(reached, ends) if reach < end)


def local(spans, at):
    return at + [offset for begins, offset in spans if begins <= at][-1]


def window(spans, hour, at):
    """The day that contains an instant. A date of which no instant exists has none."""

    def exists(day):
        return hour == 0 or local(spans, begin(spans, day * DAY)) // DAY == day

    days = range(local(spans, at) // DAY - 4, local(spans, at) // DAY + 5)
    starts = [begin(spans, day * DAY + hour * 3600) for day in days if exists(day)]
    return max(start for start in starts if start <= at), min(start for start in starts if start > at)


def main():
    questions, expected = [], []
    for name in sorted(sys.argv[1:] or available_timezones()):
        spans = offsets(ZoneInfo(name))
        for change, _ in spans[1:]:
            near = [span for span in spans if abs(span[0] - change) < 30 * DAY]
            before = [span for span in spans if span[0] < near[0][0]][-1:]
            for hour in range(24):
                for at in {change - 25 * 3600, change - 1, change, change + 25 * 3600}:
                    if 4 * DAY < at < LAST - 4 * DAY:
                        questions.append(f"{name} {hour} {at * 1_000_000}")
                        expected.append("%d000000 %d000000" % window(before + near, hour, at))
    command = ["cargo", "run", "--quiet", "--offline", "--locked", "--package", "ratelimit-zones", "--example", "windows"]
    told = subprocess.run(command, input="\n".join(questions), stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    differ = [(q, e, t) for q, e, t in zip(questions, expected, told, strict=True) if t not in (e, "unknown")]
    unknown = {q.split(" ")[0] for q, t in zip(questions, told) if t == "unknown"}
    zones = {q.split(" ")[0] for q in questions} - unknown
    print(f"{len(questions)} windows of {len(zones)} zones with changes, {len(unknown)} zones unknown: {sorted(unknown)}")
    print(f"{len(differ)} differ, of {sorted({q.split(' ')[0] for q, _, _ in differ})}")
    for row in differ[:20]:
        print(*row, sep=" | ")
    return bool(differ or unknown or not questions)


if __name__ == "__main__":
    sys.exit(main())
