"""Checks that every room has its README and that links in Markdown lead to files that exist."""

import re
from urllib.parse import unquote

from common import Report, project_files, project_root, read_text, room_of

LINK = re.compile(r"\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\s*\[[^\]]+\]:\s+(\S+)", re.M)
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
    report.finish(looked_at)


if __name__ == "__main__":
    main()
