"""What the tests with programs of others have in common: a folder, processes, ports and checks."""
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time

LIMIT_S = 100


class Missing(Exception):
    """A program that is not installed."""


class Place:
    """One run of a pair of programs: which sides are under `via sockets`, and all that it makes."""

    def __init__(self, via, server_under, client_under):
        self.via = via
        self.server_under, self.client_under = server_under, client_under
        self.folder = tempfile.mkdtemp(prefix='via-programs-')
        self.started = []

    def path(self, name, content=None):
        path = os.path.join(self.folder, name)
        if content is not None:
            with open(path, 'wb' if isinstance(content, bytes) else 'w') as file:
                file.write(content)
        return path

    def _under(self, wanted, command):
        return [self.via, 'sockets', '--', *command] if wanted else list(command)

    def server(self, *command, wrap=(), **more):
        """Runs until the end; its output goes to the file 'server.log' unless told otherwise."""
        with open(self.path('server.log'), 'ab') as log:
            more = {'stdout': log, 'stderr': log, 'stdin': subprocess.DEVNULL, **more}
            process = subprocess.Popen([*wrap, *self._under(self.server_under, command)],
                                       start_new_session=True, cwd=self.folder, **more)
        self.started.append(process)
        return process

    def client(self, *command, wrap=(), fails=False, **more):
        """Runs to its end, and returns what it printed."""
        process = subprocess.Popen([*wrap, *self._under(self.client_under, command)],
                                   start_new_session=True, cwd=self.folder,
                                   stdin=subprocess.PIPE if 'input' in more else subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   **{name: value for name, value in more.items()
                                      if name != 'input'})
        self.started.append(process)
        out, err = process.communicate(more.get('input'), timeout=LIMIT_S)
        assert fails or process.returncode == 0, \
            f'{command[0]} ended with {process.returncode}: {out[-2000:]!r} {err[-2000:]!r}\n' \
            f'{self.log()}'
        return out

    def start_client(self, *command, **more):
        """One that is waited for with finish()."""
        process = subprocess.Popen(self._under(self.client_under, command), cwd=self.folder,
                                   start_new_session=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
        self.started.append(process)
        return process

    def finish(self, process):
        out, _ = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 0, f'{process.args}: {out[-2000:]!r}\n{self.log()}'
        return out

    def wait_for_port(self, port, process, family=socket.AF_INET):
        until = time.monotonic() + LIMIT_S
        while time.monotonic() < until:
            assert process.poll() is None, f'{process.args} has ended\n{self.log()}'
            with contextlib.suppress(OSError), socket.socket(family) as probe:
                probe.connect(('127.0.0.1', port))
                return
            time.sleep(0.02)
        raise AssertionError(f'{process.args} does not listen\n{self.log()}')

    def log(self):
        with contextlib.suppress(OSError), open(self.path('server.log'), errors='replace') as file:
            return file.read()[-3000:]
        return ''

    def close(self):
        # What it started is in its session, and so in its group, unless it left that by itself.
        for process in reversed(self.started):
            if process.poll() is None:
                process.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(10)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def free_port():
    """Below those that the system gives away by itself."""
    while True:
        port = random.randrange(12000, 32000)
        with contextlib.suppress(OSError), socket.create_server(('127.0.0.1', port)):
            return port


def need(*programs):
    """Paths of them; servers of Debian are in sbin."""
    found = []
    for program in programs:
        path = shutil.which(program) or shutil.which(program, path='/usr/sbin:/sbin')
        if path is None:
            raise Missing(f'{program} is not installed')
        found.append(path)
    return found if len(found) > 1 else found[0]


def some_bytes(count, seed=7):
    return random.Random(seed).randbytes(count)


def same(got, sent):
    if got == sent:
        return
    right = next((at for at, (one, two) in enumerate(zip(got, sent)) if one != two), len(got))
    raise AssertionError(f'{len(got)} bytes of {len(sent)}, the first {right} right')
