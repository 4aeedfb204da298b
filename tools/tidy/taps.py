"""A tap passes on every call of the device interface, and one that takes room away or watches what
is sent does so on every way to send."""

import re
from collections import Counter

from common import Report, is_code, is_test, project_files, project_root, read_text

VIRTUAL = re.compile(r"\bvirtual\s[^;{(~]*?\b(\w+)\(")
OVERRIDE = re.compile(
    r"\b(\w+)\((?:[^;{}()]|\([^()]*\))*\)\s*(?:const\s*)?override\s*(;|\{[^}]*\})")
CLASS = re.compile(r"\b(?:class|struct)\s+(\w+)[^;{]*?(?::\s*public\s+([\w:]+)[^{;]*)?\{")
WAYS_TO_SEND = {"reserve", "send_small", "send_pieces"}


def classes(text):
    """Name, base and body of each class."""
    text = re.sub(r"//[^\n]*", "", text)
    for match in CLASS.finditer(text):
        depth, end = 1, match.end()
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        yield match.group(1), (match.group(2) or "").split("::")[-1], text[match.end():end]


def main():
    root, report, looked_at = project_root(), Report("taps"), 0
    found = {}
    for path in project_files(root):
        if path.parts[0] == "src" and is_code(path) and not is_test(path):
            for name, base, body in classes(read_text(root / path) or ""):
                if name in ("Device", "Tap") or base == "Tap":
                    found.setdefault(name, (path, base, body))
    for name in ("Device", "Tap"):
        if name not in found:
            report.fault("src", f"there is no class {name}")
            report.finish(1)
    tap_path, _, tap = found["Tap"]
    passed_on = Counter(match.group(1) for match in OVERRIDE.finditer(tap)
                        if f"below_->{match.group(1)}(" in match.group(2))
    for function, times in Counter(VIRTUAL.findall(found["Device"][2])).items():
        looked_at += 1
        if passed_on[function] != times:
            report.fault(tap_path, f"Tap does not pass on {function}()")
    for name, (path, base, body) in found.items():
        ways = WAYS_TO_SEND & {match.group(1) for match in OVERRIDE.finditer(body)}
        if base == "Tap" and ways and ways != WAYS_TO_SEND:
            missing = ", ".join(f"{way}()" for way in sorted(WAYS_TO_SEND - ways))
            report.fault(path, f"{name} is not about {missing}, which go past it")
    report.finish(looked_at)


if __name__ == "__main__":
    main()
