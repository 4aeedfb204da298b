#!/usr/bin/env python3
"""Many connections, idle ones, and what stays behind of those that are gone.

    many.py LIBRARY idle CONNECTIONS
    many.py LIBRARY leftovers CONNECTIONS KILLS

A server and its clients run under libvia-sockets.so: this same file, called with a role.
"""
import atexit
import os
import re
import select
import socket
import subprocess
import sys
import time

SLACK_KB = 1024  # what allocators keep
ARENA = '/SYSV00000000'


def server():
    listener = socket.create_server(('127.0.0.1', 0), backlog=4096)
    print(listener.getsockname()[1], flush=True)
    ready = select.epoll()
    ready.register(listener, select.EPOLLIN)
    ready.register(sys.stdin, select.EPOLLIN)
    held = {}
    while True:
        for fd, _ in ready.poll():
            if fd == sys.stdin.fileno():  # whoever started it has ended
                return
            if fd == listener.fileno():
                one, _ = listener.accept()
                held[one.fileno()] = one
                ready.register(one, select.EPOLLIN)
                continue
            try:
                got = held[fd].recv(65536)
                if got:
                    held[fd].sendall(got)
                    continue
            except OSError:
                pass
            ready.unregister(fd)
            held.pop(fd).close()


def echo(one, times=3):
    for turn in range(times):
        sent = bytes([turn]) * 100
        one.sendall(sent)
        got = b''
        while len(got) < 100:
            part = one.recv(100 - len(got))
            assert part, 'ended early'
            got += part
        assert got == sent


def client(port):
    """Does what a line on standard input says, so often or for so many seconds, then says so."""
    held = []
    ready = select.epoll()
    for line in sys.stdin:
        what, count = line.split()
        count = int(count)
        if what == 'epoll':
            assert not ready.poll(count)
        elif what == 'poll':
            every = select.poll()
            for one in held:
                every.register(one, select.POLLIN)
            assert not every.poll(count * 1000)
        elif what == 'select':
            few = [one for one in held if one.fileno() < 1024]
            assert not select.select(few, [], [], count)[0]
        else:
            for _ in range(count):
                use(port, what, held, ready)
        print('done', flush=True)


def use(port, what, held, ready):
    if what == 'open':
        one = socket.create_connection(('127.0.0.1', port))
        echo(one)
        ready.register(one, select.EPOLLIN)
        held.append(one)
    elif what == 'close':
        one = held.pop()
        ready.unregister(one)
        one.close()
    elif what == 'use':
        echo(held[0], 100)


class Process:
    def __init__(self, library, *role):
        environment = dict(os.environ, OPENVIA_SOCKETS='after=1')
        if library:
            environment['LD_PRELOAD'] = library
        self.process = subprocess.Popen([sys.executable, '-I', '-S', '-B', __file__, *role],
                                        text=True, env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, bufsize=1)
        atexit.register(self.kill)

    def line(self):
        answer = self.process.stdout.readline()
        assert answer, 'a process has ended'
        return answer.strip()

    def begin(self, what, count=1):
        self.process.stdin.write(f'{what} {count}\n')

    def ask(self, what, count=1):
        self.begin(what, count)
        self.line()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def read(self, name):
        with open(f'/proc/{self.process.pid}/{name}', errors='replace') as file:
            return file.read()

    def run_ns(self):
        return sum(int(open(f'/proc/{self.process.pid}/task/{one}/schedstat').read().split()[0])
                   for one in os.listdir(f'/proc/{self.process.pid}/task'))

    def sleeps(self):
        """How often it has gone to sleep in the kernel."""
        return sum(int(re.search(r'^voluntary_ctxt_switches:\s+(\d+)',
                                 self.read(f'task/{one}/status'), re.M).group(1))
                   for one in os.listdir(f'/proc/{self.process.pid}/task'))

    def descriptors(self):
        return len(os.listdir(f'/proc/{self.process.pid}/fd'))

    def rings_kb(self):
        """Of memory shared with others, each page counted once by all that map it."""
        blocks = re.split(r'^(?=[0-9a-f]+-[0-9a-f]+ )', self.read('smaps'), flags=re.M)
        return sum(int(re.search(r'^Pss: +(\d+)', block, re.M).group(1)) for block in blocks
                   if ARENA in block.split('\n')[0])

    def own_kb(self):
        return int(re.search(r'RssAnon:\s+(\d+)', self.read('status')).group(1))

    def maps(self):
        return self.read('maps').count(ARENA)


class Pair:
    """A server and its client; over the kernel's sockets without a library."""

    def __init__(self, library):
        self.serving = Process(library, 'server')
        self.asking = Process(library, 'client', self.serving.line())
        self.both = (self.serving, self.asking)

    def run_ns(self):
        return sum(one.run_ns() for one in self.both)

    def sleeps(self):
        return sum(one.sleeps() for one in self.both)

    def wait(self, way, seconds):
        """Processor time of one wait, in ns, and the share of a processor in its midst."""
        before = self.run_ns()
        self.asking.begin(way, seconds)
        time.sleep(1)  # it sleeps by now, even on a busy machine
        begun, asleep = time.monotonic(), self.run_ns()
        time.sleep(seconds - 1.5)
        share = (self.run_ns() - asleep) / 1e9 / (time.monotonic() - begun)
        self.asking.line()
        return self.run_ns() - before, share


def idle(library, count):
    """What idle connections cost. How long the call takes that waits for them depends on the
    machine and is no cost of theirs, but is bounded by the kernel's for as many."""
    stored, kernel = Pair(library), Pair(None)
    stored.asking.ask('open', 10)
    before = [(one.rings_kb(), one.own_kb()) for one in stored.both]
    stored.asking.ask('open', count)
    kernel.asking.ask('open', count + 10)
    rings = sum(one.rings_kb() - was[0] for one, was in zip(stored.both, before))
    own = sum(one.own_kb() - was[1] for one, was in zip(stored.both, before))
    print(f'{count} idle: rings {rings / count:.1f} KB, other memory {own / count:.1f} KB each')
    assert rings >= count, 'they are the kernel\'s'
    assert rings / count <= 16, rings / count
    for way in ('epoll', 'poll', 'select'):
        sleeps = stored.sleeps()
        took, share = stored.wait(way, 4)
        sleeps = stored.sleeps() - sleeps
        kernels, _ = kernel.wait(way, 2)
        print(f'{way}: {share * 100:.2f} % of a processor while it waits, asleep {sleeps} times; '
              f'the call {took / 1e6:.1f} ms, of the kernel\'s {took / kernels:.1f}')
        most = 0.01 * max(1, count / 1000)
        assert share <= most, share
        assert took / 4e9 <= most or took <= 4 * kernels, (took, kernels)
        # One for the call, and one for each line that is told and answered. On a busy machine,
        # too, this tells of a clock that checks them all.
        assert sleeps <= 50, sleeps


def names_of_dead():
    """Their arena has gone with them. Other tests may kill somebody in this moment."""
    with open('/proc/sysvipc/shm') as table:
        there = {int(line.split()[1]) for line in table.readlines()[1:]}
    names = os.listdir(f'/dev/shm/openvia-sockets-{os.geteuid()}')
    return sum(int(name[:16], 16) & 0x7FFFFFFF not in there for name in names
               if re.fullmatch('[0-9a-f]{16}-[0-9a-f]+', name))


def names_of_all():
    return len(os.listdir(f'/dev/shm/openvia-sockets-{os.geteuid()}'))


def leftovers(library, turns, kills):
    serving = Process(library, 'server')
    port = serving.line()
    asking = Process(library, 'client', port)
    both = (serving, asking)

    def state():
        return [(one.descriptors(), one.maps(), one.rings_kb(), one.own_kb()) for one in both]

    def turn(count):
        for _ in range(count):
            asking.ask('open', 100)
            asking.ask('close', 100)

    def murder(count):
        for _ in range(count):
            other = Process(library, 'client', port)
            other.ask('open', 2)
            other.kill()

    def settle(count):
        """The other side closes a moment later."""
        until = time.monotonic() + 60
        while serving.descriptors() > count and time.monotonic() < until:
            time.sleep(0.02)

    few = serving.descriptors() + 1
    turn(3)
    murder(3)
    settle(few)
    before = state()
    turn(turns // 100)
    murder(kills)
    seen = names_of_all()
    turn(1)
    settle(few)
    others = max(seen, names_of_all()) - len(both)  # of other tests: who looks for peers maps them
    after = state()
    names = names_of_dead()
    print(f'after {turns} connections and {kills} kills: {before} became {after} '
          f'(descriptors, maps, KB of rings, KB of its own), {names} names of dead processes')
    assert names <= kills // 10 + 10, 'names'
    for was, now in zip(before, after):
        assert now[0] <= was[0] + 2, 'descriptors'  # the last killed are noticed soon
        assert now[1] <= was[1] + 2 + others, 'maps'
        assert now[2] <= was[2] + SLACK_KB, 'memory of rings'
        assert now[3] <= was[3] + SLACK_KB, 'memory'


def main():
    library, what, *numbers = sys.argv[1:]
    {'idle': idle, 'leftovers': leftovers}[what](library, *map(int, numbers))


if sys.argv[1] == 'server':
    server()
elif sys.argv[1] == 'client':
    client(int(sys.argv[2]))
else:
    main()
