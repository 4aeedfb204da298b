#!/usr/bin/env python3
"""A wait for an epoll set costs what is ready and not what is open: instructions of a message
beside 10 connections and beside 1,000, counted by callgrind.

    idle_costs.py PROGRAM LIBRARY
"""
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / 'counts'))
import counts  # noqa: E402

MOST_MORE = 300  # each 64 descriptors are a word more to look at, and there are 2,000


def main():
    program, library = sys.argv[1:]
    if not counts.shutil.which('valgrind'):
        counts.skip("valgrind is not installed ('./dev setup test' does it)")
    os.environ.update(LD_PRELOAD=library, OPENVIA_SOCKETS='after=1')
    found = counts.measure([program])
    few, many = found['beside_10'], found['beside_1000']
    print(f'instructions of a message: {few} beside 10 idle connections, {many} beside 1,000')
    assert many <= few + MOST_MORE, 'idle connections cost something'


main()
