#!/usr/bin/env python3
"""Conformance on every machine of the laboratory: each pair of alternatives of two parts in some
design first, then every design that the parts allow.

lab_designs.py VIA TEST_CONFORMANCE_LAB LOG [--pairs] [--processes N] [--seconds N] [MACHINE...]

LOG has a line for each design that was run; the same again goes on where it was ended, unless the
test program is another one.
"""
import argparse
import concurrent.futures
import hashlib
import itertools
import json
import os
import random
import re
import subprocess
import sys
import threading

# Designs of an adapter are all combinations of these; pairs are of the others, too.
PARTS = ('at', 'doorbell', 'descriptors', 'cq', 'payload', 'rdma')
MORE_PARTS = ('cbh', 'pch', 'miss')
KERNEL_PARTS = ('stack', 'processors')
REFUSED = 2  # exit code: a design that cannot be, which is said before any test


def words_of(via):
    """Of each part the alternatives, as `via lab list` has them."""
    said = subprocess.run([via, 'lab', 'list'], check=True, capture_output=True, text=True).stdout
    words = {}
    for part, word in re.findall(r'^  ([a-z]+)=([a-z0-9]+) ', said, re.MULTILINE):
        words.setdefault(part, []).append(word)
    return words


def machines_of(via):
    said = subprocess.run([via, 'lab', 'list', '--json'], check=True, capture_output=True,
                          text=True).stdout
    return [json.loads(line)['machine'] for line in said.splitlines()]


class Tests:
    """The test program, and what is known of its runs."""

    def __init__(self, program, log, seconds):
        self.program, self.seconds = program, seconds
        with open(program, 'rb') as file:
            mark = 'of ' + hashlib.sha256(file.read()).hexdigest()
        lines = []
        if os.path.exists(log):
            with open(log, encoding='utf-8') as file:
                lines = file.read().splitlines()
        self.done = {}
        fresh = not lines or lines[0] != mark
        for line in [] if fresh else lines[1:]:
            result, machine, design = line.split(' ', 3)[:3]
            if result != 'FAILED':
                self.done[machine, design] = result
        self.log = open(log, 'w' if fresh else 'a', encoding='utf-8')
        self.lock = threading.Lock()
        if fresh:
            print(mark, file=self.log, flush=True)

    def run(self, machine, design, *arguments):
        """Exit code, and what was said; no code: it did not end in time."""
        environment = dict(os.environ, VIA_TEST_MACHINE=machine, VIA_TEST_DESIGN=design,
                           VIA_TEST_SECONDS=str(self.seconds))
        try:
            ran = subprocess.run([self.program, *arguments], env=environment, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 errors='replace', timeout=self.seconds, check=False)
            return ran.returncode, ran.stdout
        except subprocess.TimeoutExpired as late:
            return None, (late.stdout or b'').decode(errors='replace')

    def can_be(self, machine, design):
        return self.run(machine, design, '--gtest_filter=none')[0] != REFUSED

    def test(self, machine, design):
        """passed, refused or FAILED."""
        known = self.done.get((machine, design))
        if known:
            return known
        code, said = self.run(machine, design)
        result = {0: 'passed', REFUSED: 'refused'}.get(code, 'FAILED')
        why = []
        if result == 'FAILED':
            if code is None:
                begun = re.findall(r'^\[ RUN +\] (.*)', said, re.MULTILINE)
                why = [f'not done in {self.seconds} s: {begun[-1] if begun else "no test begun"}']
            telling = r'^(?:\[  FAILED.*|.*(?:[Ff]ailure|deadlock|ssert|do not end).*)'
            why += re.findall(telling, said, re.MULTILINE)[:6]
        line = f'{result} {machine} {design}'
        with self.lock:
            print(line, *why, file=self.log, sep=' | ' if why else '', flush=True)
            if result != 'refused':
                print(line, *why, sep='\n    ', flush=True)
        return result


def pairs_in(design):
    return set(itertools.combinations(sorted(design), 2))


def covering(words, parts, can_be, shuffled):
    """Designs that can be, until each pair of two parts' alternatives is in one of them. What was
    tried without success for a pair is that no design with it can be."""
    everything = [[(part, word) for word in words[part]] for part in parts]
    open_pairs = {tuple(sorted(pair)) for one, other in itertools.combinations(everything, 2)
                  for pair in itertools.product(one, other)}
    while open_pairs:
        pair = min(open_pairs)
        for _ in range(12):
            best = max(
                ([dict(pair).get(part) and (part, dict(pair)[part]) or shuffled.choice(choices)
                  for part, choices in zip(parts, everything)] for _ in range(40)),
                key=lambda design: len(pairs_in(design) & open_pairs))
            if can_be(','.join(f'{part}={word}' for part, word in best)):
                open_pairs -= pairs_in(best)
                yield ','.join(f'{part}={word}' for part, word in best)
                break
        open_pairs.discard(pair)


def designs_of(machine, words, tests, pairs_alone):
    # Where hosts may have a switch VIA is the kernel's; a cable would join two of them.
    if tests.can_be(machine, 'wiring=switch'):
        for choice in itertools.product(*(words[part] for part in KERNEL_PARTS)):
            parts = zip(KERNEL_PARTS, choice)
            yield ','.join(f'{part}={word}' for part, word in parts) + ',wiring=switch'
        return
    if tests.can_be(machine, 'processors=2'):
        yield 'processors=2'
    yield from covering(words, PARTS + MORE_PARTS, lambda design: tests.can_be(machine, design),
                        random.Random(machine))
    if not pairs_alone:
        for choice in itertools.product(*(words[part] for part in PARTS)):
            yield ','.join(f'{part}={word}' for part, word in zip(PARTS, choice))


def asked():
    parser = argparse.ArgumentParser()
    parser.add_argument('via')
    parser.add_argument('program')
    parser.add_argument('log')
    parser.add_argument('--pairs', action='store_true')
    parser.add_argument('--processes', type=int, default=os.cpu_count())
    parser.add_argument('--seconds', type=int, default=600)
    parser.add_argument('machines', nargs='*')
    return parser.parse_intermixed_args()


def main():
    wanted = asked()
    words = words_of(wanted.via)
    tests = Tests(wanted.program, wanted.log, wanted.seconds)
    results = {}
    with concurrent.futures.ThreadPoolExecutor(wanted.processes) as pool:
        for machine in wanted.machines or machines_of(wanted.via):
            designs = dict.fromkeys(designs_of(machine, words, tests, wanted.pairs))
            results[machine] = list(pool.map(lambda of, on=machine: tests.test(on, of), designs))
    whole = True
    for machine, found in results.items():
        print(f'{machine}: {found.count("passed")} designs passed, {found.count("FAILED")} failed, '
              f'{found.count("refused")} cannot be')
        whole = whole and 'passed' in found and 'FAILED' not in found
    return 0 if whole else 1


if __name__ == '__main__':
    sys.exit(main())
