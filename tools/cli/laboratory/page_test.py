#!/usr/bin/env python3
"""page_test.py VIA SOURCES FOLDER: what docs/guide/laboratory.md shows is so.

Its C++ stands in src/lab/design, the first block as a whole file; its TOML becomes a machine's
file; its commands are run in FOLDER, and each line below one is a part of what it prints."""
import re
import subprocess
import sys
from pathlib import Path

via, sources, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
faults = []


def check_code(block, first):
    design = sources / "src/lab/design"
    files = [design / "register.cpp"] if first else sorted(design.glob("*.?pp"))
    same = [file for file in files
            if (block == file.read_text() if first else block.rstrip("\n") in file.read_text())]
    if not same:
        faults.append(f"this is not in src/lab/design:\n{block}")


def check_command(block):
    command, *expected = block.rstrip("\n").replace("\\\n", "").split("\n")
    words = command.removeprefix("$ ").split()
    if words[0] != "via":
        faults.append(f"no command of via: {command}")
        return
    done = subprocess.run([via, *words[1:]], cwd=folder, text=True, capture_output=True,
                          check=False)
    if done.returncode != 0:
        faults.append(f"{command}: {done.returncode}: {done.stderr}")
    for line in expected:
        if line not in done.stdout:
            faults.append(f"{command}: does not print: {line}\n{done.stdout}")


folder.mkdir(parents=True, exist_ok=True)
page = (sources / "docs/guide/laboratory.md").read_text()
blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
seen = {kind: sum(1 for block in blocks if block[0] == kind) for kind in ("cpp", "toml", "")}
if min(seen.values()) < 1:
    faults.append(f"the page has lost what was looked at: {seen}")
for kind, text in blocks:
    if kind == "toml":
        (folder / "faster.toml").write_text(text)
first_code = True
for kind, text in blocks:
    if kind == "cpp":
        check_code(text, first_code)
        first_code = False
    elif kind == "":
        check_command(text)
for name in ("compare.svg", "parts.svg", "compare.tsv", "timeline.svg"):
    if not (folder / "pictures" / name).is_file():
        faults.append(f"no pictures/{name}")
print("\n".join(faults) or f"{len(blocks)} blocks are so")
sys.exit(1 if faults else 0)
