"""Servers of others, each with a client: see programs.py."""
import hashlib
import os
import pwd
import sys

import scripts
from kit import free_port, need, same, some_bytes


def python_http(place):
    content = some_bytes(3_000_000)
    place.path('file', content)
    port = free_port()
    server = place.server(sys.executable, '-m', 'http.server', str(port), '--bind', '127.0.0.1')
    place.wait_for_port(port, server)
    address = f'http://127.0.0.1:{port}/file'
    same(place.client(need('curl'), '-sS', address, address), content * 2)


def redis(place):
    server, cli, benchmark = need('redis-server', 'redis-cli', 'redis-benchmark')
    port = free_port()
    process = place.server(server, '--port', str(port), '--save', '', '--bind', '127.0.0.1')
    place.wait_for_port(port, process)
    words = [cli, '-p', str(port)]
    value = some_bytes(1_000_000).replace(b'\n', b' ')
    assert place.client(*words, '-x', 'SET', 'large', input=value) == b'OK\n'
    same(place.client(*words, '--raw', 'GET', 'large'), value + b'\n')
    many = b''.join(b'*3\r\n$3\r\nSET\r\n$%d\r\n%d\r\n$%d\r\n%d\r\n' %
                    (len(str(at)), at, len(str(at * at)), at * at) for at in range(3000))
    piped = place.client(*words, '--pipe', input=many)
    assert b'errors: 0, replies: 3000' in piped, piped
    wanted = [str(at) for at in range(0, 3000, 11)]
    got = place.client(*words, 'MGET', *wanted).split()
    assert [int(one) for one in got] == [int(one) ** 2 for one in wanted], got
    out = place.client(sys.executable, '-c', scripts.REDIS_CLIENT, str(port), '50', '3000')
    assert out == b'checked\n', out
    for more in (['-c', '1'], ['-c', '50'], ['-c', '10', '-P', '16', '-d', '3000']):
        out = place.client(benchmark, '-p', str(port), '-n', '3000', '-q', '-t', 'set,get', *more)
        assert b'GET: ' in out and b'rror' not in out, out


def memcached(place):
    server = need('memcached')
    port = free_port()
    # As root it wants to be told whose rights it shall have.
    user = ['-u', 'root'] if os.getuid() == 0 else []
    process = place.server(server, '-p', str(port), '-l', '127.0.0.1', '-U', '0', *user)
    place.wait_for_port(port, process)
    out = place.client(sys.executable, '-c', scripts.MEMCACHED_CLIENT, str(port))
    assert out == b'checked\n', out


NGINX = '''
daemon off;
{user}
worker_processes 3;
pid {folder}/nginx.pid;
error_log stderr;
events {{ worker_connections 200; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    keepalive_requests 100000;
    server {{
        listen 127.0.0.1:{port};
        root {folder};
        location /sent {{ sendfile on; alias {folder}/file; }}
    }}
}}
'''


def start_nginx(place):
    program = need('nginx')
    port = free_port()
    user = 'user root;' if os.getuid() == 0 else ''
    path = place.path('nginx.conf',
                      NGINX.format(folder=place.folder, port=port, user=user))
    process = place.server(program, '-c', path, '-p', place.folder)
    place.wait_for_port(port, process)
    return process, port


def nginx(place):
    bench, curl = need('ab', 'curl')
    content = some_bytes(2_000_000)
    place.path('file', content)
    place.path('small', some_bytes(500))
    process, port = start_nginx(place)
    address = f'http://127.0.0.1:{port}'
    same(place.client(curl, '-sS', f'{address}/file', f'{address}/sent', f'{address}/file'),
         content * 3)
    clean = place.client(bench, '-q', '-k', '-n', '2000', '-c', '20', f'{address}/small')
    assert b'Failed requests:        0\n' in clean and b'Non-2xx' not in clean, clean
    # Without -k: who closes an idle connection while a request comes answers it with a reset.
    load = place.start_client(bench, '-q', '-n', '1500', '-c', '10', f'{address}/small')
    for _ in range(3):
        process.send_signal(1)
        same(place.client(curl, '-sS', f'{address}/file'), content)
    clean = place.finish(load)
    assert b'Failed requests:        0\n' in clean and b'Non-2xx' not in clean, clean


def wrk(place):
    program, content = need('wrk'), some_bytes(3000)
    place.path('small', content)
    script = place.path('check.lua', scripts.WRK_CHECK)
    _, port = start_nginx(place)
    address = f'http://127.0.0.1:{port}/small'
    for connections in ('1', '50'):
        out = place.client(program, '-t', '1', '-c', connections, '-d', '1', '-s', script, address)
        right, wrong = (int(word) for word in out.split(b'checked ')[1].split()[:2])
        assert right > 0 and wrong == 0, out


HAPROXY = '''
global
    maxconn 200
defaults
    timeout connect 30s
    timeout client 60s
    timeout server 60s
listen texts
    mode http
    bind 127.0.0.1:{http}
    server one 127.0.0.1:{behind}
listen bytes
    mode tcp
    bind 127.0.0.1:{tcp}
    server one 127.0.0.1:{behind}
'''


def haproxy(place):
    program, bench, curl = need('haproxy', 'ab', 'curl')
    content = some_bytes(2_000_000)
    place.path('file', content)
    place.path('small', some_bytes(500))
    _, behind = start_nginx(place)
    ports = {'http': free_port(), 'tcp': free_port()}
    path = place.path('haproxy.conf', HAPROXY.format(behind=behind, **ports))
    process = place.server(program, '-db', '-f', path)
    for port in ports.values():
        place.wait_for_port(port, process)
        address = f'http://127.0.0.1:{port}'
        same(place.client(curl, '-sS', f'{address}/file', f'{address}/file'), content * 2)
        clean = place.client(bench, '-q', '-k', '-n', '500', '-c', '10', f'{address}/small')
        assert b'Failed requests:        0\n' in clean and b'Non-2xx' not in clean, clean


def node(place):
    program = need('node')
    place.path('file', some_bytes(700_000))
    port = free_port()
    process = place.server(program, place.path('server.js', scripts.NODE_SERVER), str(port))
    place.wait_for_port(port, process)
    out = place.client(program, place.path('client.js', scripts.NODE_CLIENT), str(port))
    assert out == b'checked\n', out


VSFTPD = '''
listen=YES
listen_address=127.0.0.1
listen_port={port}
background=NO
anonymous_enable=YES
anon_root={folder}/public
no_anon_password=YES
anon_upload_enable=YES
anon_umask=022
write_enable=YES
secure_chroot_dir={folder}/empty
run_as_launching_user={unprivileged}
xferlog_enable=NO
seccomp_sandbox=NO
'''


def vsftpd(place):
    program, curl = need('vsftpd', 'curl')
    content = some_bytes(2_000_000)
    for folder in ('public', 'public/incoming', 'empty'):
        os.mkdir(place.path(folder))
    os.chmod(place.folder, 0o755)
    os.chmod(place.path('public/incoming'), 0o777)
    place.path('public/file', content)
    port = free_port()
    path = place.path('vsftpd.conf', VSFTPD.format(
        port=port, folder=place.folder,
        unprivileged='NO' if os.getuid() == 0 else 'YES'))
    process = place.server(program, path)
    place.wait_for_port(port, process)
    address = f'ftp://127.0.0.1:{port}'
    same(place.client(curl, '-sS', f'{address}/file', f'{address}/file'), content * 2)
    place.client(curl, '-sS', '-T', place.path('public/file'), f'{address}/incoming/sent')
    with open(place.path('public/incoming/sent'), 'rb') as sent:
        same(sent.read(), content)


def postgres(place):
    """Initialises a database, lets pgbench work on it, and sums up what it has done."""
    folders = '/usr/lib/postgresql'
    version = max(os.listdir(folders), key=int) if os.path.isdir(folders) else ''
    binaries = os.path.join(folders, version, 'bin')
    if not version:
        need('postgres')
    wrap = []
    if os.getuid() == 0:  # which it refuses to be
        owner = pwd.getpwnam('postgres')
        os.chown(place.folder, owner.pw_uid, owner.pw_gid)
        wrap = [need('setpriv'), f'--reuid={owner.pw_uid}', f'--regid={owner.pw_gid}',
                '--clear-groups']
    port = free_port()
    data = place.path('data')
    place.server_under, under = False, place.server_under
    made = place.server(os.path.join(binaries, 'initdb'), '-D', data, '-A', 'trust', '--no-sync',
                        '-U', 'postgres', wrap=wrap)
    assert made.wait(100) == 0, place.log()
    place.server_under = under
    process = place.server(os.path.join(binaries, 'postgres'), '-D', data, '-p', str(port), '-h',
                           '127.0.0.1', '-k', place.folder, '-c', 'fsync=off', wrap=wrap)
    place.wait_for_port(port, process)
    to = ['-h', '127.0.0.1', '-p', str(port), '-U', 'postgres']
    pgbench, psql = os.path.join(binaries, 'pgbench'), os.path.join(binaries, 'psql')
    while b'accepting' not in place.client(os.path.join(binaries, 'pg_isready'), *to, fails=True):
        pass
    place.client(pgbench, *to, '-i', '-q', 'postgres', wrap=wrap)
    place.client(pgbench, *to, '-c', '6', '-j', '2', '-t', '100', 'postgres', wrap=wrap)
    sums = place.client(psql, *to, '-At', '-c', '''select (select sum(delta) from pgbench_history)
        = all(array[(select sum(abalance) from pgbench_accounts),
        (select sum(bbalance) from pgbench_branches), (select sum(tbalance) from pgbench_tellers)]),
        (select count(*) from pgbench_history)''', 'postgres', wrap=wrap)
    assert sums == b't|600\n', sums
    texts = place.client(psql, *to, '-At', '-c', "select repeat(md5(n::text), 300) from "
                         'generate_series(1, 300) n', 'postgres', wrap=wrap)
    same(texts, b''.join(hashlib.md5(b'%d' % n).hexdigest().encode() * 300 + b'\n'
                         for n in range(1, 301)))
