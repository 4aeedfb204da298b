#!/usr/bin/env python3
"""page_test.py VIA SOURCES FOLDER [--update] PAGE...: what these pages of the documents show is so.

Their C++ stands in src/lab/design, the first block as a whole file; their TOML becomes a machine's
file; their commands are run in FOLDER, and each line below one is a part of what it prints. Every
file pictures/... that a page names is there afterwards, and what it links is the same (a picture
if it was drawn by the same gnuplot). --update: a line that is not printed gives way to the one
that is most like it, and linked pictures to those that were drawn; what a page says of them is for
people to read again."""
import difflib
import re
import shutil
import subprocess
import sys
from pathlib import Path

via, sources, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
updates = sys.argv[4] == "--update"
pages = [sources / page for page in sys.argv[5 if updates else 4:]]
faults = []


def check_code(block, first):
    design = sources / "src/lab/design"
    files = [design / "register.cpp"] if first else sorted(design.glob("*.?pp"))
    same = [file for file in files
            if (block == file.read_text() if first else block.rstrip("\n") in file.read_text())]
    if not same:
        faults.append(f"this is not in src/lab/design:\n{block}")


def check_command(page, block):
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
        if line in done.stdout:
            continue
        printed = [part for whole in done.stdout.split("\n")
                   for part in [whole, *re.split(r"(?<=;) ", whole)]]
        like = difflib.get_close_matches(line, printed, 1)
        if updates and like:
            page.write_text(page.read_text().replace(f"\n{line}\n", f"\n{like[0].rstrip()}\n", 1))
        else:
            faults.append(f"{command}: does not print: {line}\n{done.stdout}")


def drawn_alike(one, other):
    """What two versions of gnuplot draw differs; the columns beside a picture do not."""
    drawers = [re.findall(rb"<desc>.*?</desc>", file) for file in (one, other)]
    return one == other or drawers[0] != drawers[1]


def check_pictures(page, text):
    for name in sorted(set(re.findall(r"[`(](pictures/[\w.-]+)[`)]", text))):
        made = folder / name
        if not made.is_file():
            faults.append(f"{page}: no command leaves {name}")
        elif f"]({name})" in text and not drawn_alike(made.read_bytes(),
                                                      (page.parent / name).read_bytes()):
            if updates:
                shutil.copyfile(made, page.parent / name)
                continue
            faults.append(f"{page}: {name} is not what its command leaves, {made}")


def check_page(page):
    text = page.read_text()
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    if not any(block.startswith("$ via ") for kind, block in blocks if kind == ""):
        faults.append(f"{page} has lost its commands")
    for kind, block in blocks:
        if kind == "toml":
            (folder / "faster.toml").write_text(block)
    code = [block for kind, block in blocks if kind == "cpp"]
    for number, block in enumerate(code):
        check_code(block, number == 0)
    for kind, block in blocks:
        if kind == "" and block.startswith("$"):
            check_command(page, block)
    check_pictures(page, text)
    return len(blocks)


shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
(folder / "examples").symlink_to(sources / "examples")
count = sum(check_page(page) for page in pages)
print("\n".join(faults) or f"{count} blocks are so")
sys.exit(1 if faults or count == 0 else 0)
