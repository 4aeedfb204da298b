"""The project speaks of itself alone: no path of one machine, no host of a package registry."""

import re

from common import Report, project_files, project_root, read_text

# Put together from parts, so that this file passes its own check.
HOSTS = [".".join(parts) for parts in (
    ("debian", "org"), ("ubuntu", "com"), ("pypi", "org"), ("pythonhosted", "org"),
    ("npmjs", "org"), ("crates", "io"), ("golang", "org"), ("rubygems", "org"), ("maven", "org"),
    ("docker", "io"),
    ("ghcr", "io"), ("conan", "io"))]
HOST = re.compile(r"\b(?:[\w-]+\.)*(?:" + "|".join(map(re.escape, HOSTS)) + r")\b", re.I)
MACHINE_PATH = re.compile(r"(?<![\w.}>)\]-])/(?:work|root|home/\w+|Users/\w+)\b")


def main():
    root, report, looked_at = project_root(), Report("names"), 0
    for path in project_files(root):
        text = read_text(root / path)
        if text is None or str(path) == "LICENSE":
            continue
        looked_at += 1
        for number, line in enumerate(text.splitlines(), 1):
            for pattern, what in ((HOST, "host of a registry"),
                                  (MACHINE_PATH, "path of one machine")):
                match = pattern.search(line)
                if match:
                    report.fault(f"{path}:{number}", f"{what}: {match.group()}")
    report.finish(looked_at)


if __name__ == "__main__":
    main()
