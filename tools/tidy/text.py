"""Checks plain form: line length, tabs, line ends, marks of unfinished work, length of a module's
README, names that a source or a test has for itself."""

import re

from common import Report, is_code, is_script, project_files, project_root, read_text

LINE_LENGTH_MAX = 100
README_LINES_MAX = 60
FRONT_PAGE_LINES_MAX = 120
UNFINISHED = re.compile(r"\b(FIX" r"ME|XX" r"X|TO" r"DO|HA" r"CK)\b")
FOREIGN = {"LICENSE"}
USING = re.compile(r"^\s*using (?:\w+::)+(\w+);", re.M)
COMMENT = re.compile(r"//.*")
GOOGLE_TEST = re.compile(r"^(?:TYPED_)?TEST(?:_F|_P)?\(", re.M)


def check(path, text, report):
    lines = text.split("\n")
    if text and lines[-1] != "":
        report.fault(path, "the last line has no end")
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}"
        if "\t" in line:
            report.fault(where, "a tab; use spaces")
        if line.endswith("\r"):
            report.fault(where, "a carriage return")
        if len(line) > LINE_LENGTH_MAX and path.suffix != ".md":
            report.fault(where, f"{len(line)} columns; at most {LINE_LENGTH_MAX}")
        if line != line.rstrip() and path.suffix != ".md":
            report.fault(where, "blanks at the end of the line")
        if UNFINISHED.search(line):
            report.fault(where, f"{UNFINISHED.search(line).group()}: finish it, or file an issue")
    if path.suffix == ".hpp" and "#pragma once" not in text:
        report.fault(path, "#pragma once is missing")
    if path.suffix == ".cpp":
        code = COMMENT.sub("", text)
        for name in USING.findall(code):
            if len(re.findall(rf"\b{name}\b", code)) == 1:
                report.fault(path, f"the using-declaration of {name} is of no use")
        if path.stem.endswith("_test") and GOOGLE_TEST.search(code) and not re.search(
                rf"^namespace (?:\w+::)*{path.stem} {{$", code, re.M):
            report.fault(path, f"its tests are not in a namespace named {path.stem}; others of the "
                         "program are compiled with it")
    lines_in_all = text.count("\n")
    if path.name == "README.md" and path.parts[0] == "src" and lines_in_all > README_LINES_MAX:
        report.fault(path,
                     f"{lines_in_all} lines; a module's README has at most {README_LINES_MAX}")
    if path.as_posix() == "README.md" and lines_in_all > FRONT_PAGE_LINES_MAX:
        report.fault(path, f"{lines_in_all} lines; at most {FRONT_PAGE_LINES_MAX}")


def main():
    root, report, looked_at = project_root(), Report("text"), 0
    for path in project_files(root):
        if str(path) in FOREIGN or not (is_code(path) or is_script(path) or path.suffix == ".md"):
            continue
        text = read_text(root / path)
        if text is None:
            report.fault(path, "holds a zero byte")
            continue
        looked_at += 1
        check(path, text, report)
    report.finish(looked_at)


if __name__ == "__main__":
    main()
