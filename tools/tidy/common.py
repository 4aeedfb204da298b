"""What the checks share: the project's files, the table of modules, reporting."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CODE_SUFFIXES = {".cpp", ".hpp", ".c", ".h"}
SCRIPT_SUFFIXES = {".py", ".sh", ".cmake", ".map", ".inc", ".def"}
SCRIPT_NAMES = {"CMakeLists.txt", "dev", "run"}


def project_root():
    return Path(os.environ.get("VIA_TIDY_ROOT") or Path(__file__).resolve().parents[2])


def project_files(root):
    """Every file of the project as a relative path; what git ignores is not the project."""
    has_git = (root / ".git").exists() and shutil.which("git")
    git = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard"],
        cwd=root, capture_output=True, text=True) if has_git else None
    if git is not None and git.returncode == 0:
        found = {Path(name) for name in git.stdout.split("\0") if name}
    else:  # an unpacked archive
        found = {path.relative_to(root) for path in root.rglob("*")}
        found = {path for path in found if not {"build", "__pycache__"} & set(path.parts)}
    return sorted(path for path in found if (root / path).is_file())


def read_text(path):
    """The file's text, or None if it is binary."""
    data = path.read_bytes()
    return None if b"\0" in data else data.decode("utf-8", errors="replace")


def is_code(path):
    return path.suffix in CODE_SUFFIXES


def is_script(path):
    return path.suffix in SCRIPT_SUFFIXES or path.name in SCRIPT_NAMES


def is_test(path):
    return path.stem.endswith("_test") or path.parts[0] == "tests"


def module_of(parts):
    """The module that a path below src/ (or an include) lies in: device/<medium>,
    secure/libcrypto, sim/host, lab/file, or its folder."""
    if parts[0] in ("device", "lab", "secure", "sim") and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0]


@dataclass
class Module:
    name: str
    zone: bool
    depends: set
    test_depends: set
    narrow: set


def read_table(path):
    """The table that CMake writes from src/CMakeLists.txt."""
    modules = {}
    for line in Path(path).read_text().splitlines():
        name, zone, depends, test_depends, narrow = line.split("|")
        modules[name] = Module(name, zone == "TRUE", set(depends.split()),
                           set(test_depends.split()), set(narrow.split()))
    if not modules:
        sys.exit(f"{path}: the table of modules is empty; configure the build again")
    return modules


class Report:
    def __init__(self, check):
        self.check = check
        self.faults = 0

    def fault(self, where, what):
        print(f"{where}: {what}")
        self.faults += 1

    def finish(self, looked_at):
        """Ends the program; looking at nothing is a fault too."""
        if looked_at == 0:
            self.fault(self.check, "found nothing to look at")
        print(f"{self.check}: {looked_at} looked at, {self.faults} faults")
        sys.exit(1 if self.faults else 0)
