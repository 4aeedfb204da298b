"""Counts the instructions of the data path under callgrind and compares them with table.txt.

A line of the table: compiler, what is counted, instructions of one call. With --update the table
gets the lines of this compiler anew."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
TOLERANCE = 0.02
# The C library's string functions in the one form that every x86-64 processor has.
TUNABLES = ("glibc.cpu.hwcaps=-AVX512VL,-AVX2,-AVX2_Usable,-AVX,-AVX_Fast_Unaligned_Load,"
            "-ERMS,-FSRM,-SSSE3,-Fast_Unaligned_Copy")
INCLUSIVE = re.compile(r"^\s*([\d,]+)\s.*[:\s]measured_(\w+)\b")


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def callgrind(program, folder):
    """Inclusive instructions of every measured function."""
    out = folder / "callgrind.out"
    environment = dict(os.environ, GLIBC_TUNABLES=TUNABLES, LD_BIND_NOW="1",
                       XDG_RUNTIME_DIR=str(folder))
    run = subprocess.run(
        ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=counted_phase",
         f"--callgrind-out-file={out}", program],
        env=environment, capture_output=True, text=True, timeout=600, check=False)
    if run.returncode != 0:
        sys.exit(f"{program} failed under callgrind:\n{run.stdout}{run.stderr}")
    listing = subprocess.run(["callgrind_annotate", "--inclusive=yes", "--threshold=100", out],
                             capture_output=True, text=True, check=True).stdout
    found = {}
    for line in listing.splitlines():
        match = INCLUSIVE.match(line)
        if match:
            found[match[2]] = int(match[1].replace(",", ""))
    return found, calls(out)


def calls(out):
    """How often each measured function was called, from callgrind's file."""
    names, count, callee = {}, {}, None
    for line in out.read_text().splitlines():
        match = re.match(r"c?fn=\((\d+)\)(?: (.*))?$", line)
        if match:
            if match[2]:
                names[match[1]] = match[2]
            if line.startswith("cfn="):
                callee = names[match[1]]
        elif line.startswith("calls=") and callee and callee.startswith("measured_"):
            name = callee.removeprefix("measured_").split("'")[0]
            count[name] = count.get(name, 0) + int(line.split()[0].removeprefix("calls="))
    return count


def measure(programs):
    result = {}
    for program in programs:
        with tempfile.TemporaryDirectory() as folder:
            found, count = callgrind(program, Path(folder))
        if not found:
            sys.exit(f"callgrind saw no measured function in {program}")
        for name, instructions in found.items():
            result[name] = round(instructions / count[name])
    return result


def read_table(path):
    table = {}
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            compiler, name, instructions = line.split()
            table.setdefault(compiler, {})[name] = int(instructions)
    return table


def lines_of(compiler, counts):
    return [f"{compiler:32} {name:32} {counts[name]:6}" for name in sorted(counts)]


def write_table(path, table):
    head = [line for line in path.read_text().splitlines() if line.startswith("#")]
    body = [line for compiler in sorted(table) for line in lines_of(compiler, table[compiler])]
    path.write_text("\n".join(head + body) + "\n")


def compare(expected, found):
    faults = 0
    for name in sorted(expected.keys() | found.keys()):
        before, now = expected.get(name), found.get(name)
        if before is None or now is None:
            verdict = "is not in the table" if before is None else "is no longer counted"
            faults += 1
        else:
            verdict = f"{(now - before) / before:+.1%}"
            if abs(now - before) > max(TOLERANCE * before, 2):
                verdict += "  CHANGED"
                faults += 1
        print(f"{name:32} table {before}  now {now}  {verdict}")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--compiler", required=True, help="how the programs were compiled")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("programs", nargs="+")
    arguments = parser.parse_args()
    if not shutil.which("valgrind") or not shutil.which("callgrind_annotate"):
        skip("valgrind is not installed ('./dev setup test' does it)")
    table = read_table(arguments.table)
    if arguments.compiler not in table and not arguments.update:
        found = measure(arguments.programs)
        print("\n".join(lines_of(arguments.compiler, found)))
        skip(f"the table knows nothing of {arguments.compiler}; the lines above would be its own")
    found = measure(arguments.programs)
    if arguments.update:
        table[arguments.compiler] = found
        write_table(arguments.table, table)
        print("\n".join(lines_of(arguments.compiler, found)))
        return
    faults = compare(table[arguments.compiler], found)
    if faults:
        sys.exit(f"{faults} counts differ by more than {TOLERANCE:.0%}. If that is meant, "
                 "'./dev counts --update' writes the table anew")


if __name__ == "__main__":
    main()
