"""Checks that every module has its README, that links in Markdown lead to files that exist, that a
block of code behind <!-- from FILE --> is a part of that file, but for indentation, that places
written `FILE:FUNCTION` are there, and that no document, manual page, picture or message has the
glossary's older words."""

import re
from urllib.parse import unquote

from common import (Report, is_code, is_script, is_test, project_files, project_root, read_text,
                    module_of)

LINK = re.compile(r"\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\s*\[[^\]]+\]:\s+(\S+)", re.M)
QUOTE = re.compile(r"^<!-- from (\S+) -->\n(?:```.*\n((?:.*\n)*?)```)?", re.M)
PLACE = re.compile(r"`((?:src|tools|adapters|tests|include)/[\w./-]*\w\.\w+)(?::(~?\w+))?`")
# docs/glossary.md has the words that took their place; the diary and the figures are as they were.
OLD_WORDS = re.compile(r"\b(the seam|in vain|(a|the) walk of|walks? (home|the same way)|the C front"
                       r"|the fronts|short ways?|papers' questions"
                       r"|frames of our own|condemn(s|ed)|troubles|disorder(?!=)|slandered"
                       r"|a sixth (less|more)|dearer|mend(s|ed|ing)?)\b|^## Rooms\b", re.I | re.M)
# "Who asks waits" for "the one that asks waits": a sentence that begins so is a question.
NO_QUESTION = re.compile(r"(?:^|[.;:|] +)\W?\**(Who(?:ever)? [a-z][^.?]*)\.", re.M)
TEXT = re.compile(r'"((?:\\.|[^"\\\n])*)"')
AS_THEY_WERE = ("docs/diary/", "docs/benchmarks", "docs/glossary.md")
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


def check_places(path, text, root, report):
    for match in PLACE.finditer(text):
        where = f"{path}:{text.count(chr(10), 0, match.start()) + 1}"
        source, name = root / match.group(1), match.group(2)
        if re.search(r"\b(FILE|NAME|MODULE)\b", match.group(1)):
            continue  # stands for any
        if not source.is_file():
            report.fault(where, f"there is no {match.group(1)}")
        elif name and not re.search(rf"\b{name}\b", read_text(source) or ""):
            report.fault(where, f"there is no {name} in {match.group(1)}")


def check_words(path, text, report):
    def tell(match):
        line = text.count("\n", 0, match.start()) + 1
        report.fault(f"{path}:{line}", f"\"{match.group().strip()}\": docs/glossary.md has "
                     "another word")

    if str(path).startswith(AS_THEY_WERE):
        return
    if is_code(path) or is_script(path):
        if is_test(path) or path.parts[:2] == ("tools", "tidy"):
            return
        text = "\n".join(" ".join(part for part in TEXT.findall(line) if " " in part)
                         for line in text.split("\n"))
    for match in OLD_WORDS.finditer(text):
        tell(match)
    if path.parts[0] in ("docs", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"):
        for match in NO_QUESTION.finditer(text):
            tell(match)


def main():
    root, report, looked_at = project_root(), Report("docs"), 0
    files = project_files(root)
    modules = {module_of(path.parts[1:]) for path in files
             if path.parts[0] == "src" and len(path.parts) > 2}
    for module in sorted(modules):
        looked_at += 1
        if not (root / "src" / module / "README.md").is_file():
            report.fault(f"src/{module}", "the module has no README.md")
    for path in files:
        if path.suffix == ".md":
            looked_at += 1
            text = read_text(root / path) or ""
            check_links(path, text, root, report)
            check_quotes(path, text, root, report)
            check_places(path, text, root, report)
            check_words(path, text, report)
        elif (path.suffix == ".svg" or path.parts[0] == "packaging" or is_code(path)
              or is_script(path)):
            check_words(path, read_text(root / path) or "", report)
    report.finish(looked_at)


if __name__ == "__main__":
    main()
