"""Finds dead sources: a .c or .cpp that no target compiles and no script names, a header that
nobody includes."""

import argparse
import json
from pathlib import Path

from common import Report, is_code, is_script, project_files, project_root, read_text
from includes import includes


def compiled_files(path):
    """What the compiler is given, and what CMake's files that hold several of a target include."""
    entries = json.loads(Path(path).read_text())
    given = {(Path(entry["directory"]) / entry["file"]).resolve() for entry in entries}
    together = {file for file in given if "Unity" in file.parts}
    return given.union(*({Path(name).resolve() for _, _, name in includes(file.read_text())}
                         for file in together))


def included_ends(texts):
    """The last two parts of every path that is included: enough to tell headers apart."""
    return {Path(name).parts[-2:] for text in texts.values() for _, _, name in includes(text)}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compile-commands", required=True)
    compiled = compiled_files(parser.parse_args().compile_commands)
    root, report, looked_at = project_root(), Report("sources"), 0
    files = project_files(root)
    texts = {path: read_text(root / path) or "" for path in files if is_code(path)}
    scripts = "\n".join(read_text(root / path) or "" for path in files if is_script(path))
    included = included_ends(texts)
    for path in texts:
        looked_at += 1
        if path.name in scripts:
            continue
        if path.suffix in (".c", ".cpp"):
            if (root / path).resolve() not in compiled:
                report.fault(path, "no target compiles it")
        elif path.parts[0] != "include":
            if path.parts[-2:] not in included and path.parts[-1:] not in included:
                report.fault(path, "nobody includes it")
    report.finish(looked_at)


if __name__ == "__main__":
    main()
