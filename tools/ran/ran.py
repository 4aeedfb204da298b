#!/usr/bin/env python3
"""What ctest really ran: reads its JUnit report, and fails if a test was skipped, or ran nothing,
or less than its filter names, that tests/skips.toml does not allow on this system.

  ran.py --skips tests/skips.toml --preset release build/release/tests.xml

Prints how many ran and how many were skipped, the ten slowest, and which failed of those that ran
together in one program ("base.all", "conformance.all_sim"). Each of these counts by itself.
"""

import argparse
import fnmatch
import os
import re
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as xml
from dataclasses import dataclass

SLOWEST = 10
# GoogleTest's words in the output of a program that ctest sees as one test.
INNER = re.compile(r"^(?P<before>(?:.*\n){0,4}?)\[  SKIPPED \] (?P<name>\S+) \(", re.M)
FILTER = re.compile(r"^Note: Google Test filter = ([^-\n]*)", re.M)
BEGUN = re.compile(r"^\[ RUN      \] (\S+)", re.M)
ENDED = re.compile(r"\[(?P<how>       OK |  FAILED  )\] (?P<name>[^\s,]+).* \((?P<ms>\d+) ms\)$",
                   re.M)
CLOSED = re.compile(r"^\[=+\] (\d+) tests? from \d+ test suites? ran\.", re.M)
TOGETHER = re.compile(r"(?P<prefix>.+\.)all(_\w+)?")
NOTHING = re.compile(r"^\[=+\] 0 tests from 0 test|^Ran 0 tests in |^No tests were found", re.M)


@dataclass
class Skip:
    name: str
    reason: str


class Allowed:
    """The list of skips that are right, entry by entry."""

    KEYS = {"tests", "says", "where", "if", "why"}

    def __init__(self, path, preset):
        with open(path, "rb") as file:
            self.entries = tomllib.load(file).get("skip", [])
        for entry in self.entries:
            missing = {"tests", "says", "where", "why"} - entry.keys()
            if missing or entry.keys() - self.KEYS:
                sys.exit(f"{path}: an entry needs tests, says, where and why, and may have if: "
                         f"{entry}")
        self.environment = dict(os.environ, VIA_PRESET=preset)
        self.holds_here = {}

    def here(self, condition):
        """Does this system fulfil the entry's shell command?"""
        if condition not in self.holds_here:
            ended = subprocess.run(["sh", "-c", condition], env=self.environment, check=False,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.holds_here[condition] = ended.returncode == 0
        return self.holds_here[condition]

    def allows(self, skip):
        return any(re.fullmatch(entry["tests"], skip.name) and
                   re.search(entry["says"], skip.reason) and self.here(entry.get("if", "true"))
                   for entry in self.entries)


def name_of(case):
    """Without the value that GoogleTest's discovery puts behind a parameter's name."""
    return case.get("name").split("  # ")[0]


def never_met(said):
    """Patterns of GoogleTest's filter that no test has: whoever wrote them meant some."""
    names = BEGUN.findall(said)
    return [pattern for found in FILTER.findall(said) for pattern in found.split(":")
            if pattern and not fnmatch.filter(names, pattern)]


def words_of(case):
    """Its output, and what stands before the names of tests that it ran together, if it did."""
    together = TOGETHER.fullmatch(name_of(case))
    return case.findtext("system-out") or "", together and together["prefix"]


def seconds_of(case):
    """Each test of it that ran, or itself, with its seconds."""
    said, prefix = words_of(case)
    if not prefix:
        return [(name_of(case), float(case.get("time")))]
    return [(prefix + found["name"], int(found["ms"]) / 1000) for found in ENDED.finditer(said)]


def failed_of(case):
    """Which failed of the tests that it ran together; the last one if it did not end."""
    said, prefix = words_of(case)
    if not prefix or case.get("status") != "fail":
        return []
    failed = [found["name"] for found in ENDED.finditer(said) if "FAILED" in found["how"]]
    begun = BEGUN.findall(said)
    if begun and not CLOSED.search(said) and begun[-1] not in failed:
        failed.append(begun[-1])
    return [prefix + name for name in failed]


def skips_of(case):
    """What did not run of one test of ctest: itself, or tests within it."""
    name, (said, prefix) = name_of(case), words_of(case)
    skipped = case.find("skipped")
    if case.get("status") in ("notrun", "disabled") or skipped is not None:
        why = skipped.get("message", "") if skipped is not None else case.get("status")
        return [Skip(name, f"{why}\n{said}")]
    if case.get("status") == "fail":
        return []
    if NOTHING.search(said):
        return [Skip(name, "nothing in it ran")]
    inner = [Skip((prefix or f"{name}:") + found["name"], found["before"])
             for found in INNER.finditer(said)]
    if prefix:
        closed = CLOSED.search(said)
        whole = closed and int(closed[1]) == len(inner) + len(ENDED.findall(said))
        return inner if whole else [Skip(name, "it ended before the last of its tests")]
    return inner + [Skip(f"{name}:{pattern}", "no test has such a name")
                    for pattern in never_met(said)]


def last_line(text):
    """The reason for people: of GoogleTest's words the one before its own."""
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not re.match(r"\[|Note: |.*: Skipped$", line)]
    return lines[-1] if lines else "without a reason"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--skips", required=True)
    parser.add_argument("--preset", required=True)
    parser.add_argument("report")
    options = parser.parse_args()
    cases = xml.parse(options.report).getroot().findall("testcase")
    if not cases:
        sys.exit("no test ran")
    allowed = Allowed(options.skips, options.preset)
    skips = [skip for case in cases for skip in skips_of(case)]
    within = sum(":" in skip.name for skip in skips)
    wrong = [skip for skip in skips if not allowed.allows(skip)]

    tests = [test for case in cases for test in seconds_of(case)]
    skipped = {skip.name for skip in skips}
    ran = sum(name not in skipped for name, _ in tests)
    print(f"\n{sum(float(case.get('time')) for case in cases):.0f} s of tests, the slowest:")
    for name, seconds in sorted(tests, key=lambda test: test[1], reverse=True)[:SLOWEST]:
        print(f"{seconds:8.1f} s  {name}")
    print(f"{ran} tests ran, {len(skips) - within} skipped, and {within} within them")
    for case in cases:
        for name in failed_of(case):
            print(f"failed: {name}")
    for skip in wrong:
        print(f"skipped, which {options.skips} does not allow here: {skip.name}: "
              f"{last_line(skip.reason)}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
