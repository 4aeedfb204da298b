#!/usr/bin/env python3
"""Programs on two hosts, which are two network namespaces: their connection is the kernel's, right
from the first byte, and `via sockets status` says so. What connects inside each of them with the
same addresses as in the other keeps to its own.

    hosts.py VIA
"""
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile

PORT, SAME_PORT, SOURCE_PORT = 5000, 5001, 6001
FEW, TURNS = 10, 60


def changed(sent, key):
    return bytes(byte ^ key for byte in sent)


def exactly(one, count):
    got = b''
    while len(got) < count:
        part = one.recv(count - len(got))
        assert part, 'ended early'
        got += part
    return got


def serve(host, port, key):
    """Gives back what comes, changed by a key of its own."""
    with socket.create_server((host, port)) as listener:
        print('listens', flush=True)
        one, _ = listener.accept()
        with one:
            while length := one.recv(4, socket.MSG_WAITALL):
                one.sendall(changed(exactly(one, int.from_bytes(length, 'big')), key))


def ask(host, port, key, source_port):
    with socket.create_connection((host, port), source_address=('', source_port)) as one:
        draw = random.Random(key)
        for turn in range(FEW + TURNS):
            sent = draw.randbytes(draw.choice([1, 64, 3000, 40000]) if turn >= FEW else 1)
            one.sendall(len(sent).to_bytes(4, 'big') + sent)
            assert exactly(one, len(sent)) == changed(sent, key)
            if turn == FEW:
                pause()
        pause()


def pause():
    print('right', flush=True)
    sys.stdin.readline()


class Hosts:
    """Two of them, with a wire between."""

    def __init__(self):
        self.names = [f'via-sockets-{os.getpid()}-{at}' for at in range(2)]
        self.started = []

    def __enter__(self):
        try:
            for name in self.names:
                subprocess.run(['ip', 'netns', 'add', name], check=True)
            one, other = self.names
            subprocess.run(['ip', 'link', 'add', 'via0', 'netns', one, 'type', 'veth', 'peer',
                            'name', 'via0', 'netns', other], check=True)
            for at, name in enumerate(self.names):
                inside = ['ip', '-n', name]
                subprocess.run([*inside, 'address', 'add', f'{address(at)}/24', 'dev', 'via0'],
                               check=True)
                for link in ('lo', 'via0'):
                    subprocess.run([*inside, 'link', 'set', link, 'up'], check=True)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in self.started:
            process.kill()
            process.communicate()
        for name in self.names:
            subprocess.run(['ip', 'netns', 'delete', name], check=False)

    def run(self, at, *words):
        return ['ip', 'netns', 'exec', self.names[at], *words]

    def start(self, at, via, *role, after=1, watched=()):
        process = subprocess.Popen(
            self.run(at, *watched, via, 'sockets', '--', sys.executable, '-B', __file__,
                     *map(str, role)),
            env=dict(os.environ, OPENVIA_SOCKETS=f'after={after}'), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.started.append(process)
        answer(process)
        return process

    def status(self, at, via):
        return subprocess.run(self.run(at, via, 'sockets', 'status'), check=True, text=True,
                              capture_output=True).stdout


def answer(process):
    line = process.stdout.readline()
    assert line in ('listens\n', 'right\n'), (process.args, line, process.wait())


def go_on(*processes):
    for process in processes:
        process.stdin.write('go on\n')
        process.stdin.flush()
    for process in processes:
        answer(process)


def address(at):
    return f'10.199.7.{at + 1}'


def end(*processes):
    for process in processes:
        process.communicate('')
        assert process.returncode == 0, process.args


def between(hosts, via):
    """The client's blocking calls ask the kernel for a moment before they sleep."""
    with tempfile.NamedTemporaryFile('r') as calls:
        watched = ['strace', '-f', '-o', calls.name, '-e', 'trace=recvfrom,recvmsg']
        between_watched(hosts, via, watched)
        assert 'MSG_DONTWAIT' in calls.read(), 'the client never busy polls'


def between_watched(hosts, via, watched):
    server = hosts.start(1, via, 'serve', address(1), PORT, 7)
    client = hosts.start(0, via, 'ask', address(1), PORT, 7, 0, watched=watched)
    go_on(client)
    for at, line in ((0, rf'{address(0)}:\d+ to {address(1)}:{PORT}'),
                     (1, rf'{address(1)}:{PORT} from {address(0)}:\d+')):
        told = hosts.status(at, via)
        assert re.search(line + '  kernel  the peer is on another host\n', told), told
    end(client, server)


def same_addresses(hosts, via):
    role = ('127.0.0.1', SAME_PORT)
    servers = [hosts.start(at, via, 'serve', *role, 20 + at) for at in range(2)]
    # Both servers are there to be found when the first client begins to look.
    clients = [hosts.start(at, via, 'ask', *role, 20 + at, SOURCE_PORT, after=3 * FEW)
               for at in range(2)]
    go_on(*clients)
    told = hosts.status(0, via)
    for line in (rf':{SOURCE_PORT} to 127.0.0.1:{SAME_PORT}  memory',
                 rf':{SAME_PORT} from 127.0.0.1:{SOURCE_PORT}  memory'):
        assert len(re.findall(line, told)) == 2, told
    end(*clients, *servers)


def late(*_):
    raise TimeoutError  # and take the hosts down


def main():
    signal.signal(signal.SIGALRM, late)
    signal.alarm(120)
    via = os.path.abspath(sys.argv[1])
    if os.geteuid() != 0 or subprocess.run(['unshare', '--net', 'true'], check=False).returncode:
        print('no right to make network namespaces')
        sys.exit(77)
    with Hosts() as hosts:
        between(hosts, via)
        same_addresses(hosts, via)


if sys.argv[1] in ('serve', 'ask'):
    globals()[sys.argv[1]](sys.argv[2], *map(int, sys.argv[3:]))
else:
    main()
