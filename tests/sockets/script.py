"""Random scripts for fuzz.py: which process does which call, drawn from a seed.

A model of the connections knows what is under way, so that no call waits for what never comes and
no result depends on time. Where the kernel itself may answer two ways, a line begins with '~', and
fuzz.py takes each of them: see told() there.
"""
import random

import rare

IN, OUT, RDHUP, ET, ONESHOT, EXCLUSIVE = 1, 4, 0x2000, 1 << 31, 1 << 30, 1 << 28


class Connection:
    """What the script knows: bytes under way to each side, who has ended what."""

    def __init__(self, number):
        self.number = number
        self.sent = [0, 0]       # by side
        self.waiting = [0, 0]    # to be read by side
        self.finished = [False, False]
        self.closed = [False, False]
        self.copies = [[number], [number]]
        self.nonblocking = [False, False]
        self.registered = [{}, {}]  # by set
        self.odd = False         # after an end that makes results depend on time
        self.killed = False      # the process of one side
        self.reset = False


def script(seed, steps):
    """Yields (side, line); is told nothing, for the model knows what comes."""
    draw = random.Random(seed)
    family = draw.choice('446')
    yield 1, f'listen {family}'
    connections = []
    number = 0
    few = [False, False]  # descriptors
    poor = [False, False]  # no more memory
    while steps > 0:
        steps -= 1
        if draw.random() < 0.004:
            killed = draw.randrange(2)
            few[killed] = poor[killed] = False
            yield from death(connections, killed, family, draw)
        alive = [c for c in connections if not (c.closed[0] and c.closed[1])]
        if not alive or (len(alive) < 4 and draw.random() < 0.02):
            for late in (0, 1):
                if few[late]:
                    few[late] = False
                    yield late, 'descriptors 0'
            number += 1
            connections.append(Connection(number))
            yield 0, f'connect {number} PORT {family}'
            yield 1, f'accept {number}'
            continue
        c = draw.choice(alive)
        side = draw.randrange(2)
        if c.closed[side]:
            side = 1 - side
        other = 1 - side
        at = draw.choice(c.copies[side])
        gone = c.closed[other]
        if c.reset:
            yield from farewell(c, side, at, draw)
            continue
        if draw.random() < 0.04:
            if draw.random() < 0.1:
                poor[side] = not poor[side]
                yield side, f'memory {int(poor[side])}'
            elif not gone and not poor[side]:  # a thread needs memory
                yield from draw.choice(rare.STEPS)(seed, c, side, at, draw)
            continue
        kind = draw.random()
        if kind < 0.34:
            if c.finished[side] or gone:
                if gone:
                    yield from farewell(c, side, at, draw)
                continue
            room = 30000 - c.waiting[other]
            if room <= 0:
                continue
            length = min(room, draw.choice([1, 8, 64, 100, 1000, 5000, draw.randrange(1, 20000)]))
            how = draw.choice(['write', 'writev', 'sendmsg', 'quiet', 'dontwait'] * 6 +
                              ['mmsg', 'sendfile', 'sendfile', 'splice', 'more', 'raw'])
            length = max(length, 2 if how == 'more' else 1)
            if few[side] and how in ('sendfile', 'splice'):
                how = 'write'
            prefix = 'fork ' if draw.random() < 0.02 and not few[side] else ''
            yield side, (f'{prefix}send {at} {seed * 1000 + c.number * 2 + side} {c.sent[side]} '
                         f'{length} {how}')
            c.sent[side] += length
            c.waiting[other] += length
        elif kind < 0.70:
            waiting = c.waiting[side]
            if waiting == 0:
                if c.finished[other] or gone or draw.random() < 0.3:
                    yield side, f'recv {at} 10 dontwait'
                continue
            length = min(draw.choice([1, 11, 64, 1000, 30000, draw.randrange(1, 30000)]),
                         1 << 16)
            how = draw.choice(['read', 'readv', 'recvmsg', 'dontwait', 'all', 'peek', 'trunc'] * 6 +
                              ['mmsg', 'splice', 'raw'])
            length = min(length, waiting)  # a longer one may be answered in parts
            length -= length == 10  # ten are asked for where there is nothing
            if few[side] and how == 'splice':
                how = 'read'
            prefix = 'fork ' if draw.random() < 0.02 and not few[side] else ''
            yield side, f'{prefix}recv {at} {length} {how}'
            if how != 'peek':
                c.waiting[side] -= length
        elif kind < 0.78:
            yield from arrival(alive, side)
            numbers = ' '.join(str(x.number) for x in alive if not x.closed[side])
            yield side, f'poll {draw.choice(["poll", "select"])} {numbers}'
        elif kind < 0.88:
            name = 'first' if draw.random() < 0.8 or few[side] else 'second'
            of = c.registered[side]
            if name not in of:
                bits = draw.choice([IN, IN | RDHUP, IN | OUT, IN | ET, IN | OUT | ET | RDHUP,
                                    IN | EXCLUSIVE])
                yield side, f'epoll {name} add {c.number} {bits}'
                of[name] = bits
            elif draw.random() < 0.2 and not of[name] & EXCLUSIVE:
                bits = draw.choice([IN, IN | OUT, OUT, IN | ONESHOT, IN | ET, IN | OUT | ET])
                yield side, f'epoll {name} mod {c.number} {bits}'
                of[name] = bits
            elif draw.random() < 0.1:
                yield side, f'epoll {name} del {c.number}'
                del of[name]
            else:
                yield from arrival(alive, side)
                # When a FIN is acknowledged, which is told as an edge, is the kernel's affair.
                edges = ' '.join(str(x.number) + '!' * x.finished[side] for x in alive
                                 if x.registered[side].get(name, 0) & ET)
                if draw.random() < 0.03 and not few[side]:
                    yield side, f'epoll {name} copy {draw.choice(["copy", "first", "both"])}'
                if draw.random() < 0.01 and not (few[side] or poor[side]):
                    if draw.random() < 0.3 and not of[name] & EXCLUSIVE:
                        of[name] = draw.choice([IN, IN | OUT, OUT, IN | ONESHOT])
                        yield side, f'fork epoll {name} mod {c.number} {of[name]}'
                    else:
                        yield side, f'fork epoll {name} wait 0 {edges}'
                elif draw.random() < 0.1:
                    yield side, f'epoll {name} poll {edges}'
                elif draw.random() < 0.05 and name == 'first':
                    yield side, f'epoll outer {draw.choice(["wait 0", "poll"])} {edges}'
                else:
                    yield side, f'epoll {name} wait 0 {edges}'
        elif kind < 0.90:
            yield from arrival([c], side)
            yield side, f'unread {at}'
        elif kind < 0.91:
            yield side, f'nodelay {at} {draw.randrange(2)}'
        elif kind < 0.92:
            c.nonblocking[side] = not c.nonblocking[side]
            yield side, f'nonblock {at} {int(c.nonblocking[side])}'
        elif kind < 0.93:
            yield side, f'error {at}'
        elif kind < 0.94 and len(c.copies[side]) < 2 and not few[side]:
            number += 1
            c.copies[side].append(number)
            yield side, f'dup {at} {number}'
        elif kind < 0.95 and len(c.copies[side]) > 1 and not c.registered[side]:
            closed = c.copies[side].pop()
            yield side, f'close {closed}'
        elif kind < 0.952 and not c.nonblocking[side] and c.waiting[side] > 0 and not (
                few[side] or poor[side]):
            length = min(c.waiting[side], 3000)
            how = draw.choice(['program', 'spawn', 'vfork', 'pass'])
            yield side, (f'spawn {at} {length} {how}' if how in ('spawn', 'vfork') else
                         f'{how} {at} {length}')
            c.waiting[side] -= length
        elif kind < 0.954 and c.waiting[other] < 30000 and not (
                c.finished[side] or gone or few[side]):
            yield side, f'stdio {at}'
            # What it sends is no part of the pattern: read as it is.
            c.waiting[other] += len('through stdio')
        elif kind < 0.96 and not c.finished[side] and not gone:
            c.finished[side] = True
            yield side, f'shutdown {at} 1{draw.choice(["", "", " raw"])}'
            yield other, f'ended {c.copies[other][0]}'
        elif kind < 0.97:
            c.closed[side] = True
            for copy in c.copies[side]:
                yield side, f'close {copy}'
            c.registered[side] = {}
            if not gone:
                yield other, f'ended {c.copies[other][0]}'
            if c.waiting[side] > 0:
                c.odd = True
                yield from farewell(c, other, c.copies[other][0], draw) if not gone else ()
        elif kind < 0.972:
            yield side, 'signals 0'
        elif kind < 0.976 and c.waiting[side] == 0 and not (
                c.nonblocking[side] or c.finished[other] or gone):
            yield side, f'wait {at} {draw.choice(["limit", "signal", "poll"])}'
        elif kind < 0.978 and not (c.finished[side] or gone or c.waiting[other] or
                                   c.nonblocking[other]):
            yield side, f'flood {at} {seed * 1000 + c.number * 2 + side} {c.sent[side]}'
            if draw.random() < 0.3:
                yield side, f'urgent {at}'
            yield other, (f'swallow {c.copies[other][0]} {seed * 1000 + c.number * 2 + side} '
                          f'{c.sent[side]} FLOOD')
            c.sent[side] += 1 << 32  # the next bytes are others; nobody looks where they begin
        elif kind < 0.982:
            yield side, f'urgent {at}'
        elif kind < 0.984:
            few[side] = not few[side]
            yield side, f'descriptors {int(few[side])}'
            if few[side]:
                yield side, f'dup {at} 0'


def arrival(connections, side):
    """What was sent is a moment on its way; results shall not depend on it."""
    for c in connections:
        if c.waiting[side] > 0 and not c.closed[side]:
            yield side, f'await {c.copies[side][0]} {c.waiting[side]}'


def farewell(c, side, at, draw):
    """The other side has closed: whatever is there is read, and what a write says is looked at."""
    if c.closed[side]:
        return
    # A reset takes with it what the kernel kept back. And if Nagle kept back what the other side
    # never had, that one ended with a FIN: then it is EPIPE at once. Behind a FIN that came before,
    # Nagle may keep back these bytes, too: what would answer them with a reset never has them.
    before = c.finished[1 - side]
    any_way = '~' if c.odd else ''
    if draw.random() < 0.5 and not c.finished[side] and not c.killed:
        mark = '~' if c.odd or before else ''
        yield side, f'{mark}send {at} 1 0 10 write'
        if not mark:
            yield side, f'reset {at}'  # it is a moment on its way
        yield side, f'{"~" if before else ""}send {at} 1 0 10 write'
        yield side, f'{mark}signals 0'
    any_end = '~' if c.odd or c.killed or before else ''
    yield side, f'{"~" if c.killed or before else ""}poll poll {c.number}'
    if c.waiting[side] > 0:
        yield side, f'{any_way}recv {at} {c.waiting[side]} dontwait'
        c.waiting[side] = 0
    yield side, f'{any_end}recv {at} 10 dontwait'
    yield side, f'{any_end}recv {at} 10 dontwait'
    c.closed[side] = True
    for copy in c.copies[side]:
        yield side, f'close {copy}'


def death(connections, side, family, draw):
    """A process is killed, and another comes in its place."""
    yield side, 'kill'
    for c in connections:
        other = 1 - side
        if c.closed[side]:
            continue
        c.closed[side] = True
        if c.closed[other]:
            continue
        yield other, f'ended {c.copies[other][0]}'
        # Whether it ends with a FIN or a reset depends on what it had not read, bytes that wake
        # among it. What it had sent is there either way, unless Nagle kept it back.
        c.odd = c.waiting[side] > 0
        c.killed = True
        yield from farewell(c, other, c.copies[other][0], draw)
    if side == 1:
        yield 1, f'listen {family}'
