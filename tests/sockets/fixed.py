#!/usr/bin/env python3
"""Scripts that once went another way than over the kernel.

    fixed.py ACTOR LIBRARY
"""
import argparse
import sys

from fuzz import perform, watch


def steps(text):
    """Lines of a side and what it does."""
    for line in text.strip().splitlines():
        side, command = line.split(maxsplit=1)
        yield int(side), command


def connected(number=1):
    yield from steps(f"""
        1 listen 4
        0 connect {number} PORT 4
        1 accept {number}""")


def met():
    """A connection whose ends have met."""
    yield from connected()
    for at in range(0, 600, 100):
        yield from steps(f"""
            0 send 1 5 {at} 100 write
            1 recv 1 100 read
            1 send 1 6 {at} 100 write
            0 recv 1 100 read""")


def sent_after_end_of_reading():
    """shutdown(SHUT_RD) woke a reader; what was sent then never came."""
    yield from met()
    yield from steps("""
        0 reader 1 1
        0 shutdown 1 0
        0 joined 1
        0 send 1 5 600 100 write
        1 recv 1 100 read""")


def limit_of_a_sender_that_has_not_read():
    """SO_SNDTIMEO never ended a call, as long as bytes lay in the kernel."""
    yield from connected()
    for at in range(0, 600, 100):
        yield from steps(f"""
            1 send 1 6 {at} 100 write
            0 send 1 5 {at} 100 write
            1 recv 1 100 read""")
    yield from steps("""
        0 flood 1 5 600 limit
        1 swallow 1 5 600 FLOOD
        0 recv 1 600 all""")


def peer_without_memory():
    """It could start no thread that helps: a peer that handed back waited for ever."""
    yield 1, 'listen 4'
    for number in (2, 3):  # each knows the other's memory, but the ends have not met
        yield 0, f'connect {number} PORT 4'
        yield 1, f'accept {number}'
        for at in range(0, 24, 8):
            yield 0, f'send {number} 5 {at} 8 write'
            if number == 2:
                yield 1, f'recv {number} 8 read'
    yield from steps("""
        0 memory 1
        0 connect 1 PORT 4
        1 accept 1
        1 send 1 6 0 8 write
        0 send 1 5 0 5000 write
        0 await 1 8
        1 send 1 6 8 8 write
        1 recv 1 5000 read
        0 recv 1 16 peek
        0 send 1 5 5000 5000 write
        1 await 1 5000
        0 recv 1 16 peek
        0 send 1 5 10000 10000 write
        1 recv 1 15000 read
        0 send 1 5 20000 1 write
        1 send 1 6 16 1000 mmsg""")


def shut_down_by_a_system_call():
    """syscall(SYS_shutdown) said no word of the FIN: what the peer sent then never came."""
    yield from met()
    yield from steps("""
        0 send 1 5 600 100 write
        0 shutdown 1 1 raw
        1 ended 1
        1 recv 1 100 read
        1 recv 1 1 all
        1 send 1 6 600 100 write
        0 recv 1 100 read
        1 send 1 6 700 100 raw
        0 recv 1 100 raw""")


def child_of_a_waiting_parent():
    """A child that sent changed what its parent had asked its epoll set for."""
    yield from connected(8)
    yield from steps("""
        0 send 8 5 0 6000 write
        1 crowd_recv 8 3 2000
        0 epoll second add 8 5
        1 send 8 6 0 1000 sendmsg
        0 send 8 5 6000 1 dontwait
        0 epoll first add 8 2147483649
        1 recv 8 1 readv
        0 fork recv 8 644 readv
        1 send 8 6 1000 64 mmsg
        1 send 8 6 1064 8 writev
        0 send 8 5 6001 1 write
        0 fork send 8 5 6002 1000 more
        1 send 8 6 1072 1 dontwait
        0 await 8 429
        0 epoll second wait 0""")


def closed_when_there_was_no_memory():
    """It was forgotten before it was closed: its set then told the next socket of that number what
    the program had said of this one."""
    yield from connected()
    yield from steps("""
        0 memory 1
        0 epoll first add 1 8193
        0 dup 1 2
        0 close 1
        0 close 2
        1 ended 1""")
    yield from connected(3)
    yield from steps("""
        0 epoll first add 3 5
        0 fork send 3 5 0 100 write
        1 recv 3 100 read
        0 epoll first wait 0""")


def ended_before_it_was_read():
    """Both had sent a FIN, of which the kernel told no more: the last byte was missing."""
    yield from connected()
    yield from steps("""
        1 send 1 6 0 1 dontwait
        1 send 1 6 1 100 quiet
        0 recv 1 1 recvmsg
        0 flood 1 5 0
        1 swallow 1 5 0 FLOOD
        0 shutdown 1 1
        1 ended 1
        1 kill
        0 recv 1 100 read
        0 ended 1""")


def closed_before_it_was_handed_back():
    """What a peer had closed before its part was done lay in memory; a program with no descriptor
    left then had nothing of it."""
    yield from connected()
    yield from steps("""
        0 send 1 5 0 8 write
        1 recv 1 8 read
        1 reader 1 1
        1 send 1 6 0 5000 write
        0 send 1 5 8 1 write
        1 joined 1
        1 send 1 6 5000 1 write
        0 await 1 5001
        1 send 1 6 5001 100 write
        0 descriptors 1
        0 recv 1 1 read
        1 close 1
        0 ended 1
        0 recv 1 64 raw
        0 recv 1 100 read
        0 await 1 4936""")


# After how many calls with bytes the ends look for each other.
SCRIPTS = {sent_after_end_of_reading: 1, limit_of_a_sender_that_has_not_read: 1,
           peer_without_memory: 3, shut_down_by_a_system_call: 1, child_of_a_waiting_parent: 1,
           closed_when_there_was_no_memory: 1, ended_before_it_was_read: 2,
           closed_before_it_was_handed_back: 2}


def main():
    for script, after in SCRIPTS.items():
        arguments = argparse.Namespace(actor=sys.argv[1], options=f'after={after}')
        watch(40)
        kernel = perform(arguments, list(script()), [None, None])
        ours = perform(arguments, list(script()), [sys.argv[2]] * 2)
        assert len(kernel) == len(list(script())), (script.__name__, kernel)
        assert kernel == ours, (script.__name__, kernel, ours)


main()
