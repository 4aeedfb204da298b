"""Rare steps of a script: threads that share a socket, limits of time, faults, linger, death."""


def stream(seed, c, side):
    """Number of the bytes that a side sends."""
    return seed * 1000 + c.number * 2 + side


def sends(seed, c, side, at, length):
    yield side, f'send {at} {stream(seed, c, side)} {c.sent[side]} {length} write'
    c.sent[side] += length
    c.waiting[1 - side] += length


def crowd(seed, c, side, at, draw):
    """Which thread comes first nobody can say; the bytes of each call stay together."""
    other = 1 - side
    count, length = draw.choice([2, 3, 4]), draw.choice([1, 50, 700, 2000])
    if draw.random() < 0.5 and c.waiting[other] == 0 and not c.finished[side]:
        yield side, f'crowd_send {at} {count} {length}'
        yield other, f'crowd_told {c.copies[other][0]} {count} {length}'
    elif c.waiting[side] == 0 and not c.finished[other]:
        yield from sends(seed, c, other, c.copies[other][0], count * length)
        yield side, f'crowd_recv {at} {count} {length}'
        c.waiting[side] = 0


def reader(seed, c, side, at, draw):
    """One thread sleeps in recv() while another sends."""
    other = 1 - side
    if c.waiting[side] > 0 or c.nonblocking[side] or c.finished[other]:
        return
    length = draw.choice([1, 100, 5000])
    yield side, f'reader {at} {length}'
    if draw.random() < 0.5 and c.waiting[other] < 20000 and not c.finished[side]:
        yield from sends(seed, c, side, at, draw.choice([1, 100, 5000]))
    yield from sends(seed, c, other, c.copies[other][0], length)
    yield side, f'joined {at}'
    c.waiting[side] = 0


def torn(seed, c, side, at, draw):
    """shutdown() wakes another thread's recv(); what is sent afterwards goes on to arrive."""
    other = 1 - side
    if any(c.waiting) or any(c.finished) or c.nonblocking[side] or any(c.registered):
        return
    how = draw.choice([0, 0, 2])
    yield side, f'reader {at} 1'
    yield side, f'shutdown {at} {how}'
    yield side, f'joined {at}'
    if how == 0:
        yield from sends(seed, c, side, at, 100)
        yield other, f'recv {c.copies[other][0]} 100 read'
        c.waiting[other] = 0
    c.closed[side] = True
    for copy in c.copies[side]:
        yield side, f'close {copy}'
    yield other, f'ended {c.copies[other][0]}'


def limit(seed, c, side, at, _):
    """SO_SNDTIMEO, when nothing more goes."""
    other = 1 - side
    if (c.waiting[other] or c.nonblocking[other] or c.nonblocking[side] or c.finished[side]):
        return
    yield side, f'flood {at} {stream(seed, c, side)} {c.sent[side]} limit'
    yield other, f'swallow {c.copies[other][0]} {stream(seed, c, side)} {c.sent[side]} FLOOD'
    c.sent[side] += 1 << 32


def linger(_, c, side, at, draw):
    how = draw.choice(['0 0', '1 5', '1 0'])
    yield side, f'linger {at} {how}'
    if how != '1 0':
        return
    c.closed[side] = True  # with a reset
    for copy in c.copies[side]:
        yield side, f'close {copy}'
    c.registered[side] = {}
    yield 1 - side, f'ended {c.copies[1 - side][0]}'
    c.odd = c.waiting[1 - side] > 0
    c.reset = True


STEPS = (crowd, crowd, reader, reader, torn, torn, limit, linger)
