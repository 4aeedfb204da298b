#!/usr/bin/env python3
"""hosts.py VIA_SIM [-o FOLDER] [--seed N] [--most N] [--steps N] [--instructions]: what it costs to
simulate so many hosts of the laboratory with whole engines and checkers. A line for each number of
hosts: events, processor time, the most memory; with -o also hosts.tsv and, by gnuplot, hosts.svg.
With --instructions they are counted by callgrind (fifty times slower), and drawn."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

DRAWING = """set terminal svg size 800,400 font 'sans,12'
set output '{folder}/hosts.svg'
set logscale xy
set key left top
set xlabel 'hosts'
set xtics ({ticks})
set ylabel '{unit} an event'
set y2label 'KB a host'
set ytics nomirror
set y2tics
set logscale y2
plot '{folder}/hosts.tsv' skip 1 using 1:({cost}/$2) axes x1y1 \\
     with linespoints title '{unit} an event', \\
     '' skip 1 using 1:($4*1024/$1) axes x1y2 \\
     with linespoints title 'KB a host'
"""


def run(command):
    """What it prints, and the most memory that it had, in MB: of a child of our own alone."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(writer, 1)
        os.execvp(command[0], command)
    os.close(writer)
    with os.fdopen(reader) as file:
        text = file.read()
    _, status, usage = os.wait4(pid, 0)
    if status != 0:
        sys.exit(f"{' '.join(command)}: ended with {os.waitstatus_to_exitcode(status)}\n{text}")
    return text, usage


def measured(options, hosts):
    command = [options.via_sim, "--medium", "lab", "--seed", str(options.seed), "--nics",
               str(hosts), "--steps", str(hosts * options.steps), "--quiet"]
    text, usage = run(command)
    events = int(re.search(r"laboratory: (\d+) events", text)[1])
    instructions = 0
    if options.instructions:
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "callgrind.out")
            run(["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}", *command])
            with open(out, encoding="utf-8") as file:
                instructions = int(re.search(r"^(?:summary|totals): (\d+)", file.read(), re.M)[1])
    return [hosts, events, round(usage.ru_utime + usage.ru_stime, 2),
            round(usage.ru_maxrss / 1024, 1), instructions]


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("via_sim")
parser.add_argument("-o", "--output")
parser.add_argument("--seed", type=int, default=5)
parser.add_argument("--most", type=int, default=1024)
parser.add_argument("--steps", type=int, default=60, help="of each host's program")
parser.add_argument("--instructions", action="store_true")
wanted = parser.parse_args()
rows = [["hosts", "events", "seconds", "MB", "instructions"]]
number = 16
while number <= wanted.most:
    rows.append(measured(wanted, number))
    print(*rows[-1], sep="\t", flush=True)
    number *= 2
if wanted.output:
    os.makedirs(wanted.output, exist_ok=True)
    with open(os.path.join(wanted.output, "hosts.tsv"), "w", encoding="utf-8") as tsv:
        tsv.writelines("\t".join(map(str, row)) + "\n" for row in rows)
    if shutil.which("gnuplot"):
        drawing = DRAWING.format(
            folder=wanted.output, ticks=", ".join(str(row[0]) for row in rows[1:]),
            unit="instructions" if wanted.instructions else "microseconds",
            cost="$5" if wanted.instructions else "$3*1e6")
        subprocess.run(["gnuplot"], input=drawing, text=True, check=True)
