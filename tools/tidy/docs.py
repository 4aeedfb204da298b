"""Checks that every room has its README, that links in Markdown lead to files that exist, and that
a block of code behind <!-- from FILE --> is a part of that file, but for indentation."""

import re
from urllib.parse import unquote

from common import Report, project_files, project_root, read_text, room_of

LINK = re.compile(r"\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\s*\[[^\]]+\]:\s+(\S+)", re.M)
QUOTE = re.compile(r"^<!-- from (\S+) -->\n(?:```.*\n((?:.*\n)*?)```)?", re.M)
FENCE = re.compile(r"^```.*?^```", re.M | re.S)


def check_links(path, text, root, report):
    text = FENCE.sub(lambda match: "\n" * match.group().count("\n"), text)
    for match in LINK.finditer(text):
        target = unquote((match.group(1) or match.group(2)).split("#")[0])
        if not target or re.match(r"[a-z]+:", target):
            continue
        if not (root / path.parent / target).exists():
            line = text.count("\n", 0, match.start()) + 1
            report.fault(f"{path}:{line}", f"the link leads nowhere: {target}")


def bare(text):
    return "".join(line.strip() + "\n" for line in text.splitlines())


def check_quotes(path, text, root, report):
    for match in QUOTE.finditer(text):
        where = f"{path}:{text.count(chr(10), 0, match.start()) + 1}"
        source = root / match.group(1)
        if not (match.group(2) or "").strip():
            report.fault(where, "no code follows")
        elif not source.is_file():
            report.fault(where, f"there is no {match.group(1)}")
        elif "\n" + bare(match.group(2)) not in "\n" + bare(read_text(source) or ""):
            report.fault(where, f"this is not a part of {match.group(1)}")


def main():
    root, report, looked_at = project_root(), Report("docs"), 0
    files = project_files(root)
    rooms = {room_of(path.parts[1:]) for path in files
             if path.parts[0] == "src" and len(path.parts) > 2}
    for room in sorted(rooms):
        looked_at += 1
        if not (root / "src" / room / "README.md").is_file():
            report.fault(f"src/{room}", "the room has no README.md")
    for path in files:
        if path.suffix == ".md":
            looked_at += 1
            check_links(path, read_text(root / path) or "", root, report)
            check_quotes(path, read_text(root / path) or "", root, report)
    report.finish(looked_at)


if __name__ == "__main__":
    main()
