#!/usr/bin/env python3
"""What a killed process left unread is read by its peer, and by a program that the peer starts.

    killed.py ACTOR LIBRARY
"""
import os
import sys

from fuzz import Actor


def left_by_killed(library):
    environment = dict(os.environ, OPENVIA_SOCKETS='after=1')
    if library:
        environment['LD_PRELOAD'] = library
    one, other = (Actor(sys.argv[1], environment) for _ in range(2))
    port = other.ask('listen 4')
    one.ask(f'connect 1 {port} 4')
    other.ask('accept 1')
    for at in range(0, 600, 100):
        for sender, receiver, seed in ((one, other, 5), (other, one, 6)):
            sender.ask(f'send 1 {seed} {at} 100 write')
            receiver.ask('recv 1 100 read')
    one.ask('send 1 5 600 5000 write')
    one.kill()
    asked = ('ended 1', 'unread 1', 'recv 1 1000 read', 'program 1 4000', 'recv 1 10 dontwait')
    said = [other.ask(line) for line in asked]
    other.kill()
    return said


kernel, ours = left_by_killed(None), left_by_killed(sys.argv[2])
assert kernel[1] == '0 5000', kernel
assert kernel == ours, (kernel, ours)
