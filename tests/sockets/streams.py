"""Programs that carry a stream of bytes, and small pairs written here: see programs.py."""
import contextlib
import json
import os
import re
import subprocess
import sys
import time

import scripts
from kit import Missing, free_port, need, same, some_bytes


def echo(place):
    server = place.server(sys.executable, '-c', scripts.ECHO_SERVER, stdout=subprocess.PIPE)
    with server.stdout:
        port = server.stdout.readline().decode().strip()
    status = place.client(sys.executable, '-c', scripts.ECHO_CLIENT, port, place.via).decode()
    both = place.server_under and place.client_under
    assert bool(re.search(rf':{port}  memory  \d+ bytes', status)) == both, status
    if place.client_under and not place.server_under:
        assert 'the peer is not under via sockets' in status, status


def asyncio_streams(place):
    port = free_port()
    server = place.server(sys.executable, '-c', scripts.ASYNCIO_SERVER, str(port))
    place.wait_for_port(port, server)
    out = place.client(sys.executable, '-c', scripts.ASYNCIO_CLIENT, str(port))
    assert out == b'checked\n', out


def netcat(place):
    program = need('nc.openbsd')
    port = free_port()
    there, back = some_bytes(5_000_000), some_bytes(3_000_000, seed=8)
    # A probe would be its one connection, so the client is the one to wait.
    with open(place.path('back', back), 'rb') as given, open(place.path('got'), 'wb') as got:
        server = place.server(program, '-N', '-l', '127.0.0.1', str(port), stdin=given, stdout=got)
    until_it_listens(port, server)
    same(place.client(program, '-N', '127.0.0.1', str(port), input=there), back)
    assert server.wait(60) == 0, place.log()
    with open(place.path('got'), 'rb') as got:
        same(got.read(), there)


def until_it_listens(port, server):
    """Without a connection to it."""
    wanted = f'0100007F:{port:04X} 00000000:0000 0A'
    while server.poll() is None:
        with open('/proc/net/tcp') as table:
            if wanted in table.read():
                return
        time.sleep(0.01)
    raise AssertionError(f'{server.args} has ended')


def socat(place):
    """A program that it starts has the socket itself; and another socat stands between."""
    program = need('socat')
    content = some_bytes(2_000_000)
    behind, before = free_port(), free_port()
    listen = 'TCP-LISTEN:{},bind=127.0.0.1,fork,reuseaddr'
    server = place.server(program, listen.format(behind), 'EXEC:cat,nofork')
    # -t: for so long after the end of one direction it waits for the other's.
    relay = place.server(program, '-t', '60', listen.format(before), f'TCP:127.0.0.1:{behind}')
    until_it_listens(behind, server)
    until_it_listens(before, relay)
    for port in (behind, before, behind):
        same(place.client(program, '-t', '60', '-', f'TCP:127.0.0.1:{port}', input=content),
             content)


def iperf3(place):
    """It looks at no byte, but at how many came."""
    program = need('iperf3')
    for more in (['-n', '40M'], ['-n', '20M', '-R', '-P', '3'], ['-n', '2M', '-l', '100']):
        port = free_port()
        server = place.server(program, '-s', '-1', '-B', '127.0.0.1', '-p', str(port))
        until_it_listens(port, server)
        told = json.loads(place.client(program, '-c', '127.0.0.1', '-p', str(port), '-J', *more))
        sent, received = (told['end'][f'sum_{side}']['bytes'] for side in ('sent', 'received'))
        assert 0 < received <= sent, told['end']
        assert server.wait(60) == 0, place.log()


def sockperf(place):
    program = need('sockperf')
    port = free_port()
    server = place.server(program, 'server', '--tcp', '-i', '127.0.0.1', '-p', str(port))
    until_it_listens(port, server)
    for more in (['-m', '64'], ['-m', '1000', '--nonblocked']):
        told = place.client(program, 'ping-pong', '--tcp', '-i', '127.0.0.1', '-p', str(port), '-t',
                            '1', '--data-integrity', *more).decode()
        assert 'dropped messages = 0' in told and 'Summary' in told, told


def rpc(place):
    compiler = need('cc')
    program = place.path('pair')
    if not os.path.exists('/usr/include/tirpc/rpc/rpc.h'):
        raise Missing('libtirpc-dev is not installed')
    subprocess.run([compiler, '-O1', '-I/usr/include/tirpc', '-o', program,
                    place.path('pair.c', scripts.RPC_PAIR), '-ltirpc'], check=True)
    port = free_port()
    server = place.server(program, str(port))
    until_it_listens(port, server)
    out = place.client(program, str(port), 'client')
    assert out == b'checked\n', out


def java(place):
    program = need('java')
    source = place.path('Pair.java', scripts.JAVA_PAIR)
    port = free_port()
    server = place.server(program, source, 'serve', str(port))
    place.wait_for_port(port, server)
    out = place.client(program, source, 'ask', str(port))
    assert out == b'checked\n', out


SSHD = '''
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
'''


def ssh(place):
    server, client, keys = need('sshd', 'ssh', 'ssh-keygen')
    for name in ('host', 'key'):
        subprocess.run([keys, '-q', '-t', 'ed25519', '-N', '', '-f', place.path(name)], check=True)
    port = free_port()
    path = place.path('sshd.conf', SSHD.format(port=port, folder=place.folder))
    with separation_folder():
        process = place.server(server, '-D', '-e', '-f', path)
        place.wait_for_port(port, process)
        content = some_bytes(4_000_000)
        words = [client, '-F', 'none', '-i', place.path('key'), '-p', str(port), '-o',
                 'StrictHostKeyChecking=no', '-o', f'UserKnownHostsFile={place.path("known")}',
                 '-o', 'IdentitiesOnly=yes', '127.0.0.1']
        same(place.client(*words, 'cat', input=content), content)
        same(place.client(*words, 'cat', place.path('key.pub')),
             open(place.path('key.pub'), 'rb').read())


@contextlib.contextmanager
def separation_folder():
    """What sshd insists on when it is started by root."""
    made = os.getuid() == 0 and not os.path.isdir('/run/sshd')
    if made:
        os.mkdir('/run/sshd', 0o755)
    try:
        yield
    finally:
        if made:
            os.rmdir('/run/sshd')
