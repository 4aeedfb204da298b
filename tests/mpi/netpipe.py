#!/usr/bin/env python3
"""Measures MPI over VIA and over Open MPI's other ways with NetPIPE (NPopenmpi), on one host and
between two network namespaces, and draws the curves:

  netpipe.py --out docs/benchmarks             five rounds, in which all ways take turns
  netpipe.py --out docs/benchmarks --add       more rounds to those that are there
  netpipe.py --out docs/benchmarks --rounds 0 --add      only draws again

Writes mpi.txt (all rounds) and mpi-PLACE-WHAT.svg (medians, and the span of the middle half).
Between the namespaces it needs the administrator.
"""

import argparse
import collections
import os
import statistics
import subprocess
import sys
import tempfile

from run import Hosts

MPIRUN = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none"]
# What a way is called, is started with, and may need in the environment; VIA first.
ONE_HOST = {
    "MPI over VIA (shm)": (None, {"FI_VIA_DEVICE": "shm"}),
    "Open MPI shared memory (vader)": (["--mca", "pml", "ob1", "--mca", "btl", "self,vader"], {}),
    "Open MPI TCP": (["--mca", "pml", "ob1", "--mca", "btl", "self,tcp",
                      "--mca", "btl_tcp_if_include", "lo"], {}),
}
TWO_HOSTS = {
    "MPI over VIA (udp)": (None, {"FI_VIA_DEVICE": "udp:via0"}),
    "Open MPI TCP": (["--mca", "pml", "ob1", "--mca", "btl", "self,tcp",
                      "--mca", "btl_tcp_if_include", "via0"], {}),
    "libfabric tcp (tcp;ofi_rxm)": (["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca",
                                     "mtl_ofi_provider_include", "tcp;ofi_rxm"], {}),
}
PLACES = {"one-host": ("on one host", ONE_HOST), "two-hosts": ("between two hosts", TWO_HOSTS)}
COLOURS = ["#e0383e", "#2f81d6", "#e08a00"]  # those of via bench's pictures; the first one is ours
STYLE = ("<style>svg{color:#24292f;background:#fff}@media(prefers-color-scheme:dark)"
         "{svg{color:#d0d7de;background:#16191d}}</style>")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--via", default="build/release/bin/via", help="the command via")
    parser.add_argument("--out", required=True, help="folder of mpi.txt and the pictures")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=100, help="messages of a size in a round")
    parser.add_argument("--most", type=int, default=4 << 20, help="bytes of the longest message")
    parser.add_argument("--add", action="store_true", help="to the rounds that are there")
    return parser.parse_args()


def measure(options, folder, hosts, way):
    """Seconds one way by size, of one run."""
    chosen, variables = way
    output = os.path.join(folder, "np.out")
    line = [os.path.abspath(options.via), "mpirun", "--bind-to", "none"] if chosen is None else (
        MPIRUN + (["--allow-run-as-root"] if os.geteuid() == 0 else []) + chosen)
    if hosts is not None:
        line += ["-H", ",".join(f"{name}:1" for name in hosts.names),
                 "--mca", "plm_rsh_agent", hosts.agent(folder)]
        line = hosts.inside(hosts.names[0]) + line
    line += ["-np", "2", "NPopenmpi", "-o", output, "-p", "0", "-l", "1", "-u", str(options.most),
             "-n", str(options.repeat)]
    subprocess.run(line, env=os.environ | variables, cwd=folder, timeout=600, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open(output, encoding="ascii") as file:
        rows = [row.split() for row in file]
    return {int(row[0]): float(row[2]) for row in rows}


def measure_all(options, found):
    """Adds rounds to {(place, way): {size: [seconds]}}."""
    with tempfile.TemporaryDirectory(prefix="via-netpipe-") as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        # The provider tcp is dealt out by interface, so its hosts have more of them.
        with Hosts("tcp;ofi_rxm") as hosts:
            for number in range(options.rounds):
                for place, (_, ways) in PLACES.items():
                    for name, way in ways.items():
                        print(f"round {number + 1}: {place}: {name}", file=sys.stderr)
                        there = hosts if place == "two-hosts" else None
                        times = measure(options, folder, there, way)
                        for size, seconds in times.items():
                            found[place, name][size].append(seconds)


def write(found, path):
    with open(path, "w", encoding="ascii") as file:
        file.write("# place | way | bytes | microseconds one way, of each round\n")
        for (place, name), sizes in found.items():
            for size, seconds in sorted(sizes.items()):
                times = " ".join(f"{one * 1e6:.4g}" for one in seconds)
                file.write(f"{place} | {name} | {size} | {times}\n")


def read(path):
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    with open(path, encoding="ascii") as file:
        for row in file:
            if not row.startswith("#"):
                place, name, size, times = row.strip().split(" | ")
                found[place, name][int(size)] = [float(one) / 1e6 for one in times.split()]
    return found


def span(times):
    """Median, and between what the middle half lies, in microseconds."""
    ordered = sorted(one * 1e6 for one in times)
    quarter = len(ordered) // 4
    return statistics.median(ordered), ordered[quarter], ordered[len(ordered) - 1 - quarter]


def tics(sizes):
    def text(size):
        return f"{size >> 20}M" if size >> 20 else f"{size >> 10}K" if size >> 10 else str(size)
    return ", ".join(f'"{text(4 ** n)}" {4 ** n}' for n in range(12) if 4 ** n <= max(sizes))


def draw(found, place, what, path):
    """what: latency or bandwidth."""
    title, ways = PLACES[place]
    curves, plots = "", []
    for number, name in enumerate(ways):
        rows = found[place, name]
        of = {"latency": lambda size, time: time, "bandwidth": lambda size, time: size / time}[what]
        chosen = {size: span(row) for size, row in rows.items()
                  if what == "bandwidth" or size <= 65536}
        curves += f"$d{number} << END\n" + "".join(
            f"{size} {of(size, row[0]):.4g} {of(size, row[1]):.4g} {of(size, row[2]):.4g}\n"
            for size, row in sorted(chosen.items())) + "END\n"
        width, point = (3, 7) if number == 0 else (1.5, 4 + 2 * number)
        plots.append(f"$d{number} using 1:2 with linespoints lc rgb '{COLOURS[number]}' lw {width} "
                     f"pt {point} ps 0.4 title \"{name}\"")
        plots.append(f"$d{number} using 1:3:4 with filledcurves fc rgb '{COLOURS[number]}' fs "
                     "transparent solid 0.18 noborder notitle")
    label = "one way, us" if what == "latency" else "MB/s"
    inside = os.path.basename(path)[:-4].replace("-", "_")
    script = f"""set terminal svg size 760,400 font 'sans-serif,13' noenhanced name '{inside}'
set output '{path}'
set title "{'Latency' if what == 'latency' else 'Bandwidth'} of MPI {title}, NetPIPE"
set grid lc rgb '#909090' lw 0.5 dt 3
set border 3
set tics nomirror
set key outside bottom center horizontal
set xlabel "bytes"
set ylabel "{label}"
set logscale x 2
set xtics ({tics(chosen)})
{"set logscale y 10" if what == "latency" else ""}
set format y '%g'
{curves}
plot {", ".join(plots)}
"""
    subprocess.run(["gnuplot"], input=script, text=True, check=True)
    with open(path, encoding="utf-8") as file:
        picture = file.read()
    # Drawn in the reader's colours, on white or on black.
    picture = picture.replace('fill="#ffffff"', 'fill="none"').replace("fill = 'black'", "")
    for black in ("rgb(  0,   0,   0)", "black"):
        picture = picture.replace(black, "currentColor")
    head = picture.index(">", picture.index("<svg")) + 1
    with open(path, "w", encoding="utf-8") as file:
        file.write(picture[:head] + "\n" + STYLE + picture[head:])


def main():
    options = arguments()
    os.makedirs(options.out, exist_ok=True)  # before rounds are measured for nothing
    table = os.path.join(options.out, "mpi.txt")
    found = read(table) if options.add else collections.defaultdict(
        lambda: collections.defaultdict(list))
    measure_all(options, found)
    write(found, table)
    for place in PLACES:
        for what in ("latency", "bandwidth"):
            draw(found, place, what, os.path.join(options.out, f"mpi-{place}-{what}.svg"))


if __name__ == "__main__":
    main()
