#!/usr/bin/env python3
"""redis GET under `via sockets` beside the kernel's TCP and a Unix socket: rate, p50 and processor
time, medians of turns that alternate.

    rates.py VIA [--connections 1,50] [--requests N] [--turns N]

Figures of a machine that does something else besides are worthless.
"""
import argparse
import csv
import os
import resource
import statistics
import subprocess

from kit import Place, free_port, need

WAYS = ('sockets', 'tcp', 'unix')


class Server:
    def __init__(self, via, way):
        self.place = Place(via, way == 'sockets', way == 'sockets')
        self.socket = self.place.path('redis')
        self.port = free_port()
        self.process = self.place.server(
            need('redis-server'), '--port', str(self.port), '--unixsocket', self.socket, '--save',
            '', '--bind', '127.0.0.1')
        self.place.wait_for_port(self.port, self.process)
        self.where = ['-s', self.socket] if way == 'unix' else ['-p', str(self.port)]

    def processor_s(self):
        """Of the server, and of all clients that have ended."""
        with open(f'/proc/{self.process.pid}/stat') as file:
            words = file.read().rsplit(')', 1)[1].split()
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        return ((int(words[11]) + int(words[12])) / os.sysconf('SC_CLK_TCK') +
                ended.ru_utime + ended.ru_stime)

    def measure(self, connections, requests):
        before = self.processor_s()
        out = self.place.client(need('redis-benchmark'), *self.where, '-t', 'get', '-P', '1', '-c',
                                str(connections), '-n', str(requests), '--csv').decode()
        told = next(csv.DictReader(out.splitlines()))
        return {'rate': float(told['rps']), 'p50_us': float(told['p50_latency_ms']) * 1000,
                'processor_us': (self.processor_s() - before) / requests * 1e6}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('via')
    parser.add_argument('--connections', default='1,50')
    parser.add_argument('--requests', type=int, default=100_000)
    parser.add_argument('--turns', type=int, default=5)
    arguments = parser.parse_args()
    servers = {}
    try:
        for way in WAYS:
            servers[way] = Server(os.path.abspath(arguments.via), way)
        for connections in arguments.connections.split(','):
            turns = [{way: server.measure(connections, arguments.requests)
                      for way, server in servers.items()} for _ in range(arguments.turns)]
            print(f'GET, {connections} connections: requests/s, p50, processor time per request')
            middle = {way: {what: statistics.median(turn[way][what] for turn in turns)
                            for what in turns[0][way]} for way in WAYS}
            tcp = middle['tcp']
            for way, one in middle.items():
                print(f'  {way:8} {one["rate"]:9.0f}  {one["p50_us"]:7.1f} us  '
                      f'{one["processor_us"]:6.2f} us  {one["rate"] / tcp["rate"]:.2f} of tcp\'s '
                      f'rate, {one["p50_us"] / tcp["p50_us"]:.2f} of its p50')
    finally:
        for server in servers.values():
            server.place.close()


if __name__ == '__main__':
    main()
