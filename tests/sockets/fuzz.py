#!/usr/bin/env python3
"""Random scripts of socket calls, done by two processes over the kernel and then under
libvia-sockets.so: every result has to be the same.

    fuzz.py ACTOR LIBRARY [--seeds FIRST:COUNT] [--steps N] [--one-side]

A script is drawn from a seed and a model of the connections, so that no call waits for what never
comes and no result depends on time: bytes are read when they are there. A difference prints the
seed and the script up to it.
"""
import argparse
import os
import signal
import subprocess
import sys
import time

from script import script


class Actor:
    def __init__(self, program, environment):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=environment, bufsize=1)

    def ask(self, line):
        self.process.stdin.write(line + '\n')
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f'the process ended at: {line} ({self.process.wait()})')
        return answer.rstrip('\n')

    def kill(self):
        self.process.kill()
        self.process.wait()


def perform(arguments, lines, libraries, expected=None):
    def start(library):
        environment = dict(os.environ, OPENVIA_SOCKETS=arguments.options)
        if library:
            environment['LD_PRELOAD'] = library
        return Actor(arguments.actor, environment)
    actors = [start(library) for library in libraries]
    said = []
    port = None
    flood = '0'
    try:
        for side, line in lines:
            line = line.replace('PORT', str(port)).replace('FLOOD', flood)
            if line == 'kill':
                actors[side].kill()
                actors[side] = start(libraries[side])
                said.append('killed')
                continue
            answer = told(line, actors[side].ask(line.removeprefix('~')))
            if line.startswith('listen'):
                port = answer
                answer = 'port'
            if line.startswith('flood'):  # how much fits is nobody's promise
                flood = answer
                answer = 'flooded' if int(answer) > 0 else answer
            said.append(answer)
            if expected and not same(expected[len(said) - 1], answer, line):
                break
    except (RuntimeError, TimeoutError) as error:
        said.append(str(error) or 'nothing, for a minute')
    for actor in actors:
        actor.kill()
    return said


def told(line, answer):
    """What must be the same where the kernel itself may answer two ways; docs/design/sockets.md
    lists them."""
    if not line.startswith('~'):
        return answer
    if line.startswith('~send') and answer in ('10', '-EPIPE', '-ECONNRESET'):
        return 'gone'
    return answer if line.startswith('~send') else 'any'


def same(kernel, ours, line):
    if line.endswith(' peek') and kernel.split()[0].isdigit() and ours.split()[0].isdigit():
        # What lies behind bytes that woke a sleeper is seen when those before it are read.
        return kernel == ours or 0 < int(ours.split()[0]) < int(kernel.split()[0])
    kernel, ours, line = (words.removeprefix(which) for words, which in
                          ((kernel, 'child '), (ours, 'child '), (line, 'fork ')))
    if line.startswith('epoll') and (' wait ' in line or ' poll ' in line):
        return same_events(kernel.split()[1:], ours.split()[1:], line)
    return kernel == ours


def same_events(kernel, ours, line):
    """An edge may be told once more, by the kernel also; it may not be forgotten."""
    words = line.split()[3:]
    edges = {word for word in words if not word.endswith('!')}
    any_time = {word[:-1] for word in words if word.endswith('!')}
    if ' poll ' in line or ' outer ' in line:
        return kernel == ours or bool(edges or any_time)
    kernel = [word for word in kernel if word.split(':')[0] not in any_time]
    ours = [word for word in ours if word.split(':')[0] not in any_time and
            (word.split(':')[0] not in edges or word in kernel)]
    return ours == kernel


def watch(process_seconds):
    def late(*_):
        raise TimeoutError
    signal.signal(signal.SIGALRM, late)
    signal.alarm(process_seconds)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('actor')
    parser.add_argument('library')
    parser.add_argument('--seeds', default='1:10')
    parser.add_argument('--steps', type=int, default=300)
    parser.add_argument('--one-side', action='store_true')
    parser.add_argument('--options', default='after=2', help='what OPENVIA_SOCKETS says')
    arguments = parser.parse_args()
    first, count = (int(word) for word in arguments.seeds.split(':'))
    begun = time.monotonic()
    steps = 0
    for seed in range(first, first + count):
        lines = list(script(seed, arguments.steps))
        steps += len(lines)
        libraries = [arguments.library, None if arguments.one_side else arguments.library]
        watch(200)  # of a script that takes a second: machines stand still, too
        kernel = perform(arguments, lines, [None, None])
        ours = perform(arguments, lines, libraries, kernel)
        for at, (one, two) in enumerate(zip(kernel, ours)):
            if same(one, two, lines[at][1]):
                continue
            for side, line in lines[max(0, at - 25):at + 1]:
                print(f'  {side}: {line}')
            print(f'seed {seed}, step {at}: the kernel says "{one}", ours "{two}"')
            return 1
        if len(kernel) != len(lines):
            print(f'seed {seed}: {kernel[-1]}')
            return 1
    print(f'{steps} steps of {count} seeds from {first} on, {time.monotonic() - begun:.1f} s')
    return 0


if __name__ == '__main__':
    sys.exit(main())
