#!/usr/bin/env python3
"""Programs of others under `via sockets`, with checked bytes; also with one side under it alone.

programs.py VIA quick|all|NAME...
"""
import os
import signal
import sys
import time

import servers
import streams
from kit import LIMIT_S, Missing, Place

# What is tried, and what of it takes long or needs packages that './dev test sockets' alone asks
# for. Each takes a Place, moves bytes through it and checks them.
QUICK = {
    'echo': streams.echo,
    'asyncio': streams.asyncio_streams,
    'http': servers.python_http,
    'netcat': streams.netcat,
    'socat': streams.socat,
    'iperf3': streams.iperf3,
    'redis': servers.redis,
    'memcached': servers.memcached,
    'nginx': servers.nginx,
    'haproxy': servers.haproxy,
    'rpc': streams.rpc,
}
LONG = {
    'sockperf': streams.sockperf,
    'ssh': streams.ssh,
    'vsftpd': servers.vsftpd,
    'postgres': servers.postgres,
    'node': servers.node,
    'java': streams.java,
    'wrk': servers.wrk,
}
SIDES = {'both sides': (True, True), 'the server alone': (True, False),
         'the client alone': (False, True)}


def try_one(via, name, program):
    for words, (server_under, client_under) in SIDES.items():
        place = Place(via, server_under, client_under)
        begun = time.monotonic()
        signal.alarm(LIMIT_S)
        try:
            program(place)
        except BaseException:
            print(f'{name}, {words} under via sockets:', flush=True)
            raise
        finally:
            signal.alarm(0)
            place.close()
        print(f'{name}, {words}: checked ({time.monotonic() - begun:.1f} s)', flush=True)


def end(number, _):
    raise TimeoutError(f'ended by {signal.Signals(number).name}')


def main():
    signal.signal(signal.SIGALRM, end)
    signal.signal(signal.SIGTERM, end)
    via, *asked = os.path.abspath(sys.argv[1]), *sys.argv[2:]
    programs = QUICK | LONG
    names = {'quick': list(QUICK), 'all': list(programs)}.get(asked[0], asked)
    missing = []
    for name in names:
        try:
            try_one(via, name, programs[name])
        except Missing as why:
            missing.append(f'{name}: {why}')
    print(*missing, sep='\n')
    sys.exit(77 if missing else 0)


main()
