"""docs/design/assertions.md has each assertion of the library, by file and function, and what it
names is there: the functions assert something, the tests and fuzz targets exist."""

import re
from pathlib import Path

from common import Report, is_code, is_test, module_of, project_files, project_root, read_text

TABLE = "docs/design/assertions.md"
# Their own are about who writes a world or a machine.
NOT_THE_LIBRARY = {"sim", "sim/host", "device/sim", "lab", "lab/design", "lab/file", "lab/study"}
LINE = re.compile(r"^## (.+)$|^\| (.+) \| (.+) \| (.+) \|$", re.M)
QUOTED = re.compile(r"`([^`]+)`")
NOT_A_HEADER = re.compile(r"(public|private|protected|case .*|default|\w+):$|[})#/]|template <")
HEADER = re.compile(r"([\w~:]+)\(")


def indent(line):
    return len(line) - len(line.lstrip(" "))


def function_of(lines, at):
    """The function that line `at` stands in: the outermost one but for classes and namespaces."""
    depth, name = indent(lines[at]), None
    for line in reversed(lines[:at]):
        text = line.strip()
        if not text or indent(line) >= depth or NOT_A_HEADER.match(text):
            continue
        depth = indent(line)
        if re.match(r"(class|struct|namespace)\b", text):
            break
        found = HEADER.search(re.sub(r"\[\[.*?\]\]|alignas\(\w+\)", "", text))
        if found:
            name = found.group(1).split("::")[-1]
    return name


def asserted(root, files):
    """File (without "src/") and function of every assertion of the library."""
    found = set()
    for path in files:
        if path.parts[0] != "src" or not is_code(path) or is_test(path) or len(path.parts) < 3:
            continue
        if module_of(path.parts[1:]) in NOT_THE_LIBRARY or path.name == "assert.hpp":
            continue
        lines = (read_text(root / path) or "").splitlines()
        for at, line in enumerate(lines):
            if "VIA_ASSERT(" in line.split("//")[0]:
                found.add(f"{path.relative_to('src')}:{function_of(lines, at)}")
    return found


def is_there(name, root, files, tests):
    """A fuzz target, a file (of tests), or a test or suite."""
    if name.startswith("fuzz."):
        return Path("tests/fuzz", name.removeprefix("fuzz.") + ".cpp") in files
    if "/" in name:
        return (root / "src" / name).is_file()
    return any(path.stem == name for path in files if is_test(path)) or all(
        re.search(rf"\b{part}\b", tests) for part in name.split("."))


def main():
    root, report = project_root(), Report("assertions")
    files = project_files(root)
    in_code, in_table, current = asserted(root, files), set(), ""
    tests = "".join(read_text(root / path) or "" for path in files
                    if is_code(path) and is_test(path))
    table = root / TABLE
    for module, _, places, shown in LINE.findall(read_text(table) if table.is_file() else ""):
        current = module or current
        if module or places == "asserted in":
            continue
        in_table |= {f"{current}/{place}" for place in QUOTED.findall(places)}
        if not QUOTED.search(shown):
            report.fault(TABLE, f"nothing shows that no bytes reach {places}")
        for name in QUOTED.findall(shown):
            if not is_there(name, root, files, tests):
                report.fault(TABLE, f"there is no test or fuzz target {name}")
    for place in sorted(in_code - in_table):
        report.fault(TABLE, f"no line has the assertion in {place}")
    for place in sorted(in_table - in_code):
        report.fault(TABLE, f"nothing is asserted in {place}")
    report.finish(len(in_code))


if __name__ == "__main__":
    main()
