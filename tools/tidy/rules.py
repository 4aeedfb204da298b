"""Every rule of docs/vipl.md has a test. With --write, the table of rules, code and tests.

A test names its rules (Vipl_4_13_..., Vipl_4_16_and_4_17_...); the header's tests and code cite
them (VIPL 4.6 to 4.8, VIPL 3, 4.18)."""

import argparse
import re
from pathlib import Path

from common import Report, is_code, is_test, project_files, project_root, read_text

RULE = re.compile(r"^(\d+\.\d+) ", re.M)
SECTION = re.compile(r"^## (\d+) ", re.M)
TEST = re.compile(r"\bVipl_(\d+(?:_\d+)?)((?:_and_\d+_\d+)*)_?(\w*)")
CITED = re.compile(r"VIPL (\d[\d., ]*(?:(?:to|and) \d[\d., ]*)*)")


def order(rule):
    return [int(part) for part in rule.split(".")]


def read_rules(text):
    """Numbered rules; of a section without numbers the section itself."""
    rules = set(RULE.findall(text))
    sections = {section for section in SECTION.findall(text)}
    rules |= {section for section in sections
              if not any(rule.startswith(section + ".") for rule in rules)}
    return sorted(rules, key=order)


def rules_of_test(match, known):
    """4_13_done_... is rule 4.13; 3_... and 5_... are sections."""
    named = [match[1]] + match[2].replace("_and_", " ").split()
    for name in named:
        rule = name.replace("_", ".")
        yield rule if rule in known else rule.split(".")[0]


def rules_of_citation(text, known):
    for part in re.split(r",| and ", text):
        ends = [end.strip(" .") for end in part.split(" to ")]
        if len(ends) == 2 and all(end in known for end in ends):
            first, last = (known.index(end) for end in ends)
            yield from known[first:last + 1]
        else:
            yield from (end for end in ends if end in known)


def collect(root, known):
    code = {rule: set() for rule in known}
    tests = {rule: set() for rule in known}
    unknown = []
    for path in project_files(root):
        if not is_code(path):
            continue
        text = read_text(root / path) or ""
        if is_test(path):
            for match in TEST.finditer(text):
                for rule in rules_of_test(match, known):
                    if rule in tests:
                        tests[rule].add((str(path), match[0]))
                    else:
                        unknown.append((path, match[0]))
        header = path.parts[:2] == ("tests", "header")
        for match in CITED.finditer(text):
            for rule in rules_of_citation(match[1], known):
                if header:
                    tests[rule].add((str(path), "compiled and run in every language mode"))
                elif not is_test(path):
                    code[rule].add(str(path))
    return code, tests, unknown


def table(known, code, tests):
    lines = ["# Rules, code and tests", "",
             "Written by `./dev docs` from docs/vipl.md, the sources and the tests.", "",
             "| rule | code | tests |", "|---|---|---|"]
    for rule in known:
        files = "<br>".join(sorted(code[rule])) or "-"
        names = "<br>".join(f"{name} ({path})" for path, name in sorted(tests[rule])) or "**none**"
        lines.append(f"| {rule} | {files} | {names} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    root, report = project_root(), Report("rules")
    page = root / "docs/vipl.md"
    known = read_rules(page.read_text()) if page.exists() else []
    code, tests, unknown = collect(root, known)
    for path, name in unknown:
        report.fault(path, f"{name} names no rule of docs/vipl.md")
    for rule in known:
        if not tests[rule]:
            report.fault("docs/vipl.md", f"rule {rule} has no test")
    if arguments.write:
        arguments.write.parent.mkdir(parents=True, exist_ok=True)
        arguments.write.write_text(table(known, code, tests))
        print(f"{arguments.write} is written")
    report.finish(len(known))


if __name__ == "__main__":
    main()
