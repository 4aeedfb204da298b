#!/usr/bin/env python3
"""Conformance on every machine of the laboratory: each pair of alternatives of two parts in some
design first, then every design that the parts allow.

lab_designs.py VIA TEST_CONFORMANCE_LAB LOG [--pairs] [--plan] [--processes N] [--seconds N]
               [MACHINE...]

LOG has a line for each design that was run, and how long it took; the same again goes on where it
was ended (Ctrl-C, SIGTERM), unless the test program is another one. --plan runs nothing: it says
how many designs there are, which pairs no design can have and why, and how long the rest will take.
"""
import argparse
import concurrent.futures
import hashlib
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time

# Designs of an adapter are all combinations of these; pairs are of the others, too.
PARTS = ('at', 'doorbell', 'descriptors', 'cq', 'payload', 'rdma')
MORE_PARTS = ('cbh', 'pch', 'miss')
KERNEL_PARTS = ('stack', 'processors')
OWN = '-'  # in the log: the machine's own design
REFUSED = 2  # exit code: a design that cannot be, which is said before any test
# Of the races against a region's end, which take as long as all other tests together: each design
# has others, so a fifth of the usual number in each is still thousands.
RACE_ROUNDS = '4000'


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
        self.took = []  # seconds, of designs that passed
        self.ended = False  # from outside: what is under way says nothing
        self.running = set()
        fresh = not lines or lines[0] != mark
        for line in [] if fresh else lines[1:]:
            told = re.fullmatch(r'(passed|refused) (\S+) (\S+) ([0-9.]+) s', line)
            if not told:  # failed, or the end of it was not written
                continue
            self.done[told[2], '' if told[3] == OWN else told[3]] = told[1]
            if told[1] == 'passed':
                self.took.append(float(told[4]))
        self.log = open(log, 'w' if fresh else 'a', encoding='utf-8')
        self.lock = threading.RLock()  # end() may come while its own thread has it
        if fresh:
            print(mark, file=self.log, flush=True)

    def run(self, machine, design, *arguments):
        """Exit code, and what was said; no code: it did not end in time."""
        environment = dict(os.environ, VIA_TEST_MACHINE=machine, VIA_TEST_DESIGN=design,
                           VIA_TEST_SECONDS=str(self.seconds), VIA_RACE_ROUNDS=RACE_ROUNDS)
        # In a group of its own: what a terminal's Ctrl-C ends is decided by end() alone.
        with subprocess.Popen([self.program, *arguments], env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors='replace',
                              start_new_session=True) as ran:
            with self.lock:
                self.running.add(ran)
            if self.ended:
                self.kill(ran)
            try:
                said = ran.communicate(timeout=self.seconds)[0]
                return ran.returncode, said
            except subprocess.TimeoutExpired:
                self.kill(ran)
                return None, ran.communicate()[0]
            finally:
                with self.lock:
                    self.running.discard(ran)

    def end(self):
        self.ended = True
        with self.lock:
            for ran in list(self.running):
                self.kill(ran)

    @staticmethod
    def kill(ran):
        """With all that it has started."""
        if ran.poll() is None:
            os.killpg(ran.pid, signal.SIGKILL)

    def refusal(self, machine, design):
        """Why that design cannot be; "": it can."""
        code, said = self.run(machine, design, '--gtest_filter=none')
        return said.strip() if code == REFUSED else ''

    def test(self, machine, design):
        """passed, refused or FAILED."""
        known = self.done.get((machine, design))
        if known:
            return known
        if self.ended:
            return 'not run'
        begin = time.monotonic()
        code, said = self.run(machine, design)
        if self.ended:
            return 'not run'
        took = time.monotonic() - begin
        result = {0: 'passed', REFUSED: 'refused'}.get(code, 'FAILED')
        why = []
        if result == 'FAILED':
            if code is None:
                begun = re.findall(r'^\[ RUN +\] (.*)', said, re.MULTILINE)
                why = [f'not done in {self.seconds} s: {begun[-1] if begun else "no test begun"}']
            telling = r'^(?:\[  FAILED.*|.*(?:[Ff]ailure|deadlock|ssert|do not end).*)'
            why += re.findall(telling, said, re.MULTILINE)[:6]
        line = f'{result} {machine} {design or OWN} {took:.1f} s'
        with self.lock:
            print(line, *why, file=self.log, sep=' | ' if why else '', flush=True)
            if result == 'passed':
                self.took.append(took)
            if result != 'refused':
                print(line, *why, sep='\n    ', flush=True)
        return result

    def hours(self, designs, processes):
        """That so many will take, by those that are known; None: none is."""
        if not self.took:
            return None
        return sum(self.took) / len(self.took) * designs / processes / 3600


class Covering:
    """Designs that can be, until each pair of two parts' alternatives is in one of them. What was
    tried without success for a word or a pair is that no design with it can be: `excluded` says
    of these what the last one was refused for."""

    def __init__(self, words, parts, refusal, shuffled):
        self.words = {part: list(words[part]) for part in parts}
        self.refusal, self.shuffled = refusal, shuffled
        self.designs, self.excluded = [], {}
        self.open_pairs = set()
        for part, word in [(part, word) for part in parts for word in words[part]]:
            if any(design[part] == word for design in self.designs):
                continue
            why = self.search({part: word})
            if why:
                self.words[part].remove(word)
                self.excluded[f'{part}={word} is in no design'] = why
        for one, other in itertools.combinations(parts, 2):
            self.open_pairs.update(
                ((one, first), (other, second))
                for first, second in itertools.product(self.words[one], self.words[other]))
        for design in self.designs:
            self.open_pairs -= self.pairs_in(design)
        while self.open_pairs:
            pair = min(self.open_pairs)
            why = self.search(dict(pair))
            if why:
                told = ' is never with '.join('='.join(word) for word in pair)
                self.excluded[told] = why
            self.open_pairs.discard(pair)

    @staticmethod
    def text(design):
        return ','.join(f'{part}={word}' for part, word in design.items())

    def pairs_in(self, design):
        return set(itertools.combinations(design.items(), 2))

    def any_with(self, fixed):
        return {part: fixed.get(part) or self.shuffled.choice(choices)
                for part, choices in self.words.items() if choices or part in fixed}

    def tries(self, fixed):
        """With many open pairs; then near to what can be; then any: the first may be refused for
        what makes them have many."""
        for _ in range(6):
            yield max((self.any_with(fixed) for _ in range(40)),
                      key=lambda design: len(self.pairs_in(design) & self.open_pairs))
        for design in self.designs[-20:]:
            yield {**design, **fixed}
        for _ in range(40):
            yield self.any_with(fixed)

    def search(self, fixed):
        """Adds a design with these words, or says why there is none."""
        why = ''
        for design in self.tries(fixed):
            why = self.refusal(self.text(design))
            if not why:
                self.open_pairs -= self.pairs_in(design)
                self.designs.append(design)
                break
        return why


def designs_of(machine, words, tests, pairs_alone):
    """Designs to be tried, and the pairs that are in none of them."""
    def can_be(design):
        return not tests.refusal(machine, design)

    # Where hosts may have a switch VIA is the kernel's; a cable would join two of them.
    if can_be('wiring=switch'):
        choices = itertools.product(*(words[part] for part in KERNEL_PARTS))
        return [','.join(f'{part}={word}' for part, word in zip(KERNEL_PARTS, choice)) +
                ',wiring=switch' for choice in choices], {}
    if not can_be(f'doorbell={words["doorbell"][0]}'):  # its NIC is a library
        return [''], {}
    designs = ['processors=2'] if can_be('processors=2') else []
    pairs = Covering(words, PARTS + MORE_PARTS, lambda design: tests.refusal(machine, design),
                     random.Random(machine))
    designs += map(pairs.text, pairs.designs)
    if not pairs_alone:
        designs += (','.join(f'{part}={word}' for part, word in zip(PARTS, choice))
                    for choice in itertools.product(*(words[part] for part in PARTS)))
    return list(dict.fromkeys(designs)), pairs.excluded


def tell_plan(machine, designs, excluded, tests, processes):
    known = sum((machine, design) in tests.done for design in designs)
    hours = tests.hours(len(designs) - known, processes)
    rest = '' if hours is None else f', about {hours:.1f} h for the others that can be'
    print(f'{machine}: {len(designs)} designs, {known} of them known{rest}', flush=True)
    for never, why in sorted(excluded.items()):
        print(f'    {never}: {why}', flush=True)


def asked():
    parser = argparse.ArgumentParser()
    parser.add_argument('via')
    parser.add_argument('program')
    parser.add_argument('log')
    parser.add_argument('--pairs', action='store_true')
    parser.add_argument('--plan', action='store_true')
    parser.add_argument('--processes', type=int, default=os.cpu_count())
    parser.add_argument('--seconds', type=int, default=600)
    parser.add_argument('machines', nargs='*')
    return parser.parse_intermixed_args()


def main():
    wanted = asked()
    words = words_of(wanted.via)
    tests = Tests(wanted.program, wanted.log, wanted.seconds)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: tests.end())
    results = {}
    with concurrent.futures.ThreadPoolExecutor(wanted.processes) as pool:
        for machine in wanted.machines or machines_of(wanted.via):
            designs, excluded = designs_of(machine, words, tests, wanted.pairs)
            if tests.ended:
                break
            tell_plan(machine, designs, excluded, tests, wanted.processes)
            if not wanted.plan:
                results[machine] = list(pool.map(lambda of, on=machine: tests.test(on, of),
                                                 designs))
    whole = not tests.ended
    for machine, found in results.items():
        print(f'{machine}: {found.count("passed")} designs passed, {found.count("FAILED")} failed, '
              f'{found.count("refused")} cannot be, {found.count("not run")} were not run')
        whole = whole and 'passed' in found and 'FAILED' not in found
    if tests.ended:
        print(f'Ended; the same again goes on with what {wanted.log} does not have.')
    return 0 if whole else 1


if __name__ == '__main__':
    sys.exit(main())
