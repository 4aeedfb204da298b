"""Checks what the compiled modules of the deterministic zone ask of the rest of the world: nothing
but modules of the zone that they depend on, and the pure functions listed in zone_symbols.txt."""

import argparse
import re
import subprocess
from pathlib import Path

from common import Report, project_root, read_table

BINDINGS = {"GLOBAL", "WEAK", "UNIQUE"}


def symbols(archive):
    """(defined, undefined) mangled names. readelf, as nm would show the optimiser's symbols."""
    output = subprocess.run(["readelf", "-sW", archive], check=True, capture_output=True, text=True)
    defined, undefined = set(), set()
    for line in output.stdout.splitlines():
        fields = line.split()
        if len(fields) < 8 or not fields[0].endswith(":") or fields[4] not in BINDINGS:
            continue
        name = fields[7].split("@")[0]
        (undefined if fields[6] == "UND" else defined).add(name)
    return defined, undefined - defined


def demangle(names):
    names = sorted(names)
    output = subprocess.run(["c++filt"], check=True, capture_output=True, text=True,
                            input="\n".join(names))
    return dict(zip(names, output.stdout.splitlines()))


def read_rules(path):
    """Lines "allow|deny [module,...:] regular expression"; deny is stronger."""
    rules = {"allow": [], "deny": []}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        match = re.fullmatch(r"(allow|deny)(?: \[([\w/,]+)\])? (\S.*)", line)
        if not match:
            raise SystemExit(f"{path}:{number}: not a rule: {line}")
        kind, modules, expression = match.groups()
        rules[kind].append((set(modules.split(",")) if modules else None, re.compile(expression)))
    return rules


def matches(rules, module, name):
    return any((modules is None or module in modules) and expression.fullmatch(name)
               for modules, expression in rules)


def closure(name, modules):
    """The zone's modules that module `name` stands on."""
    found, open_ends = set(), [name]
    while open_ends:
        module = modules.get(open_ends.pop())
        if module and module.zone and module.name not in found:
            found.add(module.name)
            open_ends.extend(module.depends)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", required=True, help="modules.txt in the build folder")
    parser.add_argument("--archives", required=True, help="folder of the modules' libraries")
    options = parser.parse_args()
    modules, report, root = read_table(options.table), Report("symbols"), project_root()
    rules = read_rules(Path(__file__).resolve().with_name("zone_symbols.txt"))

    known = {}
    for name in (name for name, module in modules.items() if module.zone):
        archive = Path(options.archives) / f"libvia_{name.replace('/', '_')}.a"
        sources = [path for path in (root / "src" / name).glob("*.cpp")
                   if not path.stem.endswith("_test")]
        if not sources:
            continue  # a module of headers: what it asks for shows in those that include it
        if not archive.exists():
            report.fault(name, f"{archive} is missing; build first")
            continue
        known[name] = symbols(archive)

    for name, (_, undefined) in known.items():
        defined = set().union(*(known[module][0] for module in closure(name, modules)
                                if module in known))
        for mangled, plain in demangle(undefined - defined).items():
            if matches(rules["deny"], name, plain) or not matches(rules["allow"], name, plain):
                report.fault(name, f"deterministic zone, but it needs {plain}"
                             + (f" ({mangled})" if plain != mangled else ""))
    report.finish(len(known))


if __name__ == "__main__":
    main()
