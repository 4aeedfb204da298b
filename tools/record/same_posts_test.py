#!/usr/bin/env python3
"""same_posts_test.py VIA EXCHANGE: what a program posts to send, as it is recorded, is as
much and as long over shm without segments as over udp; with segments some of it is stored, and
record says so. 77: skipped."""
import gzip
import os
import subprocess
import sys
import tempfile

SKIPPED = 77
MAGIC = b"VIATRACE1\n"
END, FIRST_POST, FIRST_SENT, FIRST_RDMA = 255, 2, 3, 4

via, exchange = sys.argv[1:]
if subprocess.run(["unshare", "--net", "ip", "link", "set", "lo", "up"], check=False,
                  stderr=subprocess.DEVNULL).returncode != 0:
    print("skipped: no network namespaces here (they need the administrator, and ip)")
    sys.exit(SKIPPED)


def posts_of(path):
    """Kind and length of all that a trace's processes send, sorted; docs/design/lab.md has the
    format. How many receives are posted anew depends on which end is the first to leave."""
    with gzip.open(path) as file:
        data = file.read()
    assert data.startswith(MAGIC)
    at = len(MAGIC)

    def number():
        nonlocal at
        value = shift = 0
        while True:
            part = data[at]
            at += 1
            value |= (part & 127) << shift
            shift += 7
            if part < 128:
                return value

    number()
    for _ in range(2 * number()):
        number()
    posts = []
    while (kind := number() if data[at] < 128 else END) != END:
        number()
        if kind >= FIRST_POST:
            number()
        if kind >= FIRST_RDMA:
            number()
        length = sum((number(), number())[1] for _ in range(number()))
        if kind >= FIRST_SENT:
            posts.append((kind, length))
    return sorted(posts)


def recorded(folder, device, *options):
    """What record says, and the posts."""
    trace = os.path.join(folder, "trace")
    both = f"{exchange} answer {device} & {exchange} ask {device} && wait"
    said = subprocess.run(
        ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh",
         via, "lab", "record", "-o", trace, *options, "--", "sh", "-c", both],
        check=True, capture_output=True, text=True, timeout=60,
        env={**os.environ, "XDG_RUNTIME_DIR": folder}).stdout
    print(f"{device} {' '.join(options)}:\n{said}", end="")
    return said, posts_of(trace)


with tempfile.TemporaryDirectory() as scratch:
    said_net, network = recorded(scratch, "udp:lo")
    said_alone, alone = recorded(scratch, "shm", "--no-segments")
    said_memory, memory = recorded(scratch, "shm")
assert "imports" not in said_net and "imports" not in said_alone
assert "2 imports of segments: what was stored into these is not in the trace" in said_memory
assert alone == network, f"over shm {alone}, over udp {network}"
# How much else is posted there depends on who was faster.
stores = [said.splitlines().count("0 by stores") for said in (said_net, said_alone, said_memory)]
assert stores[:2] == [2, 2] and stores[2] < 2, f"of two ends, without stores: {stores}"
assert memory, "nothing was posted"
