#!/usr/bin/env python3
"""Holds the ledgers of the processes of one job against each other: what each VI received must be
what one VI sent, all of it, once and in order, but for what was under way when the job ended.

  compare.py FOLDER

Prints what was found; 1: a fault, or nothing to compare."""

import sys
from pathlib import Path

# Digests that a ledger keeps of the end of each direction (ledger.hpp).
KEPT = 4096


class Ledgers:
    def __init__(self):
        self.sent, self.received, self.faults = [], [], []
        self.processes = self.given_back = 0

    def read(self, path):
        lines = path.read_text(encoding="utf-8").splitlines()
        if not lines or not lines[-1].startswith("given back "):
            self.faults.append(f"{path.name}: not written to its end")
            return
        self.processes += 1
        self.given_back += int(lines[-1].split()[2])
        for line in lines[:-1]:
            kind, *rest = line.split()
            if kind == "sent":
                self.sent.append((int(rest[0]), rest[1:]))
            elif kind == "received":
                self.received.append((int(rest[0]), rest[1]))
            else:
                self.faults.append(f"{path.name}: {line}")

    def pair(self):
        """Messages that arrived, and those of the same connections that were under way."""
        ends = {}  # (count, digest) of each end that a receiver may have seen: whose
        for number, (count, digests) in enumerate(self.sent):
            for back, digest in enumerate(digests):
                ends.setdefault((count - back, digest), []).append(number)
        arrived, under_way, taken = 0, 0, set()
        for count, digest in sorted(self.received, reverse=True):
            free = [number for number in ends.get((count, digest), []) if number not in taken]
            if not free:
                self.faults.append(f"nobody sent the {count} messages that a VI received")
                continue
            # Two that sent the same: the one that sent less fits better.
            best = min(free, key=lambda number: self.sent[number][0])
            taken.add(best)
            arrived += count
            under_way += self.sent[best][0] - count
        for number, (count, _) in enumerate(self.sent):
            if number in taken:
                continue
            if count >= KEPT:
                self.faults.append(f"nobody received the {count} messages that a VI sent")
            under_way += count
        return arrived, under_way


def compare(folder):
    """Faults, and a line about what was compared."""
    ledgers = Ledgers()
    for path in sorted(Path(folder).glob("*.ledger")):
        ledgers.read(path)
    arrived, under_way = ledgers.pair()
    if not ledgers.given_back:
        ledgers.faults.append("no ledger tells of a descriptor")
    return ledgers.faults, (
        f"witness: {ledgers.processes} processes, {len(ledgers.received)} directions: "
        f"{arrived} messages as sent, once and in order, {under_way} under way at the end; "
        f"{ledgers.given_back} descriptors given back")


def main():
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    faults, summary = compare(sys.argv[1])
    print(summary)
    for fault in faults:
        print(f"witness: {fault}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
