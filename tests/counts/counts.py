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
TOLERANCE = 0.025
# What the C++ API may cost beyond the C calls that it makes.
CPP_BEYOND_C = 0.03
# What a message with a receive of a shared queue may cost beyond one with a private receive.
SHARED_BEYOND_PRIVATE = 0.10
# Instructions that a count may differ by: who writes to a segment looks at the deadline of the
# NIC's own thread if that is asleep, and whether it is differs from run to run.
DIFFERENCE_ALLOWED = {"vipl_post_write_to_segment": 60}
# Instructions: a share of one short call says little, and a receive varies by 32 from run to run.
CPP_BEYOND_C_IN_ONE_CALL = 60
# The C library's string functions in the one form that every x86-64 processor has.
TUNABLES = ("glibc.cpu.hwcaps=-AVX512VL,-AVX2,-AVX2_Usable,-AVX,-AVX_Fast_Unaligned_Load,"
            "-ERMS,-FSRM,-SSSE3,-Fast_Unaligned_Copy")
# What four fifths of the phases stay at or below, beyond what one fifth does: the NIC's own threads
# are about in some and asleep in others, and that is all which may differ.
UNEVEN = 0.05
UNEVEN_INSTRUCTIONS = 100
RUNS_MORE = 2  # where a count is too high
PREFIX = "measured_"
NAME = re.compile(r"(?P<kind>c?fn)=\((?P<id>\d+)\)(?: (?P<name>.*))?$")


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def callgrind(program, folder):
    """The files that callgrind writes, one for each run through counted_phase()."""
    environment = dict(os.environ, GLIBC_TUNABLES=TUNABLES, LD_BIND_NOW="1",
                       XDG_RUNTIME_DIR=str(folder))
    run = subprocess.run(
        # Not fair: while the NIC's own thread gets its share it does a part of the work, and how
        # much differs from run to run. Who waits for it yields, so it comes when it is needed.
        ["valgrind", "--fair-sched=no", "--tool=callgrind", "--collect-atstart=no",
         "--toggle-collect=counted_phase",
         "--dump-after=counted_phase", f"--callgrind-out-file={folder}/out", program],
        env=environment, capture_output=True, text=True, timeout=600, check=False)
    if run.returncode != 0:
        sys.exit(f"{program} failed under callgrind:\n{run.stdout}{run.stderr}")
    return sorted(folder.glob("out.*"))


def instructions_of(file):
    """Instructions of one call of each measured function, all that they call included."""
    names, cost, calls, callee, times = {}, {}, {}, "", 0
    for line in file.read_text().splitlines():
        match = NAME.match(line)
        if match:
            names.setdefault(match["id"], match["name"])
            if match["kind"] == "cfn":
                callee = names[match["id"]]
        elif line.startswith("calls="):
            times = int(line.split()[0].removeprefix("calls="))
        elif times:  # the line behind it: where the calls are, and what they cost
            if callee.startswith(PREFIX):
                name = callee.removeprefix(PREFIX)
                calls[name] = calls.get(name, 0) + times
                cost[name] = cost.get(name, 0) + int(line.split()[-1])
            times = 0
    return {name: cost[name] / calls[name] for name in calls}


def measure(programs):
    """What a fifth of the phases stay at or below. A NIC's own threads come between now and then,
    and while they are about, a message costs more: in some runs for more than half of the phases,
    so that the median is one of two values by chance. Much more it may not cost: then something is
    done in some phases only, and the count would hide it."""
    result, faults = {}, 0
    for program in programs:
        found = {}
        with tempfile.TemporaryDirectory() as folder:
            for file in callgrind(program, Path(folder)):
                for name, instructions in instructions_of(file).items():
                    found.setdefault(name, []).append(instructions)
        if not found:
            sys.exit(f"callgrind saw no measured function in {program}")
        for name, phases in found.items():
            phases.sort()
            low, high = (round(phases[len(phases) * part // 5]) for part in (1, 4))
            result[name] = low
            if high - low > max(UNEVEN * low, UNEVEN_INSTRUCTIONS):
                print(f"{name:32} {low} in some phases, {high} in others")
                faults += 1
    if faults:
        sys.exit(f"{faults} operations do in some phases what they do not in others")
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


def differs(name, before, now):
    return abs(now - before) > max(TOLERANCE * before, DIFFERENCE_ALLOWED.get(name, 2))


def settle(programs, found, is_too_much):
    """In one run of many, on a machine that does other things, the NIC's own threads are about in
    nearly all phases. What is more only for that is less in another run; what code does is not."""
    for _ in range(RUNS_MORE):
        if not is_too_much():
            return
        for name, now in measure(programs).items():
            found[name] = min(found[name], now)


def compare(expected, found):
    faults = 0
    for name in sorted(expected.keys() | found.keys()):
        before, now = expected.get(name), found.get(name)
        if before is None or now is None:
            verdict = "is not in the table" if before is None else "is no longer counted"
            faults += 1
        else:
            verdict = f"{(now - before) / before:+.1%}"
            if differs(name, before, now):
                verdict += "  CHANGED"
                faults += 1
        print(f"{name:32} table {before}  now {now}  {verdict}")
    return faults


def compare_languages(found):
    """Every count of the C++ API beside that of the same calls in C."""
    pairs = {name: (found[name], found["vipl" + name.removeprefix("cpp")])
             for name in sorted(found) if name.startswith("cpp_")}
    faults = 0
    for name, (cpp, c) in pairs.items():
        allowed = CPP_BEYOND_C * c if "message" in name else CPP_BEYOND_C_IN_ONE_CALL
        excess = cpp - c > allowed
        faults += excess
        print(f"{name:32} C {c}  C++ {cpp}  {(cpp - c) / c:+.1%}{'  TOO MUCH' if excess else ''}")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--compiler", required=True, help="how the programs were compiled")
    parser.add_argument("--update", action="store_true")
    parser.add_argument("programs", nargs="+")
    arguments = parser.parse_args()
    if not shutil.which("valgrind"):
        skip("valgrind is not installed ('./dev setup test' does it)")
    table = read_table(arguments.table)
    found = measure(arguments.programs)
    if compare_languages(found):
        sys.exit(f"the C++ API costs more than {CPP_BEYOND_C:.0%} beyond the C calls of a message, "
                 f"or {CPP_BEYOND_C_IN_ONE_CALL} instructions beyond one call")
    sharing = lambda: found["vipl_message_shared"] / found["vipl_message"] - 1
    settle(arguments.programs, found, lambda: sharing() > SHARED_BEYOND_PRIVATE)
    if sharing() > SHARED_BEYOND_PRIVATE:
        sys.exit(f"a shared receive costs {sharing():.1%} of a message more than a private one; at "
                 f"most {SHARED_BEYOND_PRIVATE:.0%}")
    if arguments.compiler not in table and not arguments.update:
        print("\n".join(lines_of(arguments.compiler, found)))
        skip(f"the table knows nothing of {arguments.compiler}; the lines above would be its own")
    if arguments.update:
        table[arguments.compiler] = found
        write_table(arguments.table, table)
        print("\n".join(lines_of(arguments.compiler, found)))
        return
    expected = table[arguments.compiler]
    settle(arguments.programs, found,
           lambda: any(now > expected.get(name, now) and differs(name, expected[name], now)
                       for name, now in found.items()))
    faults = compare(expected, found)
    if faults:
        sys.exit(f"{faults} counts differ by more than {TOLERANCE:.1%}. If that is meant, the "
                 "target update_counts writes the table anew (README.md)")


if __name__ == "__main__":
    main()
