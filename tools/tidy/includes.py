"""Checks every #include against the module table of src/CMakeLists.txt, and the deterministic zone
against the headers and names that bring in an operating system."""

import argparse
import re
from pathlib import PurePosixPath

from common import (Report, is_code, is_test, project_files, project_root, read_table, read_text,
                    module_of)

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.M)
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)

# What the deterministic zone may include from outside: pure parts of the standard library, and
# the processor's own instructions. <mutex> is for lock_guard; std::mutex itself is refused below.
PURE = set("""
algorithm array atomic bit bitset cassert cctype charconv cinttypes climits cmath compare
concepts coroutine cstdarg cstddef cstdint cstdio cstdlib cstring deque exception expected
functional initializer_list iomanip ios iosfwd iterator limits list map memory memory_resource
mutex new numeric optional ostream queue ranges set span sstream stdexcept string string_view
tuple type_traits typeinfo unordered_map unordered_set utility variant vector version
assert.h limits.h stdarg.h stdbool.h stddef.h stdint.h string.h
immintrin.h emmintrin.h xmmintrin.h arm_neon.h arm_acle.h
""".split())

# Names that need no header of their own, or hide behind an innocent one.
IMPURE_NAMES = re.compile(
    r"\b(thread_local|__thread|getenv|secure_getenv|__rdtscp?|_rdrand\w*|_rdseed\w*|"
    r"__builtin_ia32_rd\w+|std::(?:(?:recursive_|shared_|timed_)?mutex|thread|jthread|"
    r"condition_variable|random_device|call_once|async|chrono::\w+_clock))\b")
# Above the agent all waiting goes through its Waiter, so that the simulator can turn the world.
ABOVE_AGENT = {"api", "compose", "sim"}
BLOCKING_HEADERS = {"shared_mutex", "condition_variable", "thread", "future", "semaphore",
                    "latch", "barrier", "stop_token", "pthread.h", "threads.h", "semaphore.h"}
BLOCKING_NAMES = re.compile(r"\b(thread_local|__thread|std::(?:recursive_|shared_|timed_)?mutex)\b")

PUBLIC_HEADERS = re.compile(r"^(via/|vipl\.h$|vip[a-z_]*\.h$)")
SEES_PUBLIC = {"api", "compose"}

# A module's names begin with its namespace, so that one which came along with another's header
# shows. Of device/NAME the namespaces are further inside; base's names are of no inner namespace.
NAMESPACES = ("posix", "memory", "queue", "wire", "engine", "device", "tap", "nic", "agent", "api",
              "sim", "lab", "secure", "relay")
FOREIGN_NAME = re.compile(rf"(?<![\w:.])(?:via::)?({'|'.join(NAMESPACES)})::\w+")

# Modules that folders outside src/ may include; the others stand on the public headers alone.
OUTSIDE = {"examples": set(), "adapters": set(), "tools/cli/bench": set(),
           "tools/viad": {"agent", "base", "device/datagram", "device/udp", "lab/file", "relay",
                          "wire"},
           "tools/cli": {"base", "agent", "device", "lab", "lab/carrier", "lab/design", "lab/exec",
                         "lab/file", "lab/kernel", "lab/study", "relay", "secure",
                         "secure/ipsec_mb", "secure/libcrypto", "wire"}}


def check_inside(path, text, modules, report):
    below = PurePosixPath(*path.parts[1:])
    if len(below.parts) == 1:
        report.fault(path, "a source belongs into a module's folder")
        return
    module = modules.get(module_of(below.parts))
    if module is None:
        report.fault(path,
                     f"module {module_of(below.parts)} is not in the table of src/CMakeLists.txt")
        return
    test = is_test(path)
    allowed = module.depends | (module.test_depends if test else set())
    for line, quote, name in includes(text):
        where = f"{path}:{line}"
        target = included_module(name)
        if target in modules:
            check_module_include(where, quote, name, target, module, allowed, modules, report)
        elif PUBLIC_HEADERS.match(name):
            if module.name not in SEES_PUBLIC and not test:
                report.fault(where, f"{module.name} must not see the public header {name}")
        elif quote == '"':
            if not (module.name == "compose" and name == "media.inc"):
                report.fault(where, f'"{name}": write "module/file.hpp", or <...> for the system')
        else:
            check_system_include(where, name, module, test, report)
    check_namespaces(path, text, module, allowed, report)
    if not test:
        check_names(path, text, module, report)


def check_module_include(where, quote, name, target, module, allowed, modules, report):
    if quote == "<":
        report.fault(where, f'<{name}> is ours: write "{name}"')
    if target == module.name:
        return
    if target not in allowed:
        report.fault(where, f"{module.name} must not include {target} ({name}); it may include: "
                            f"{', '.join(sorted(allowed)) or 'nothing'}")
    narrowed = {header for header in module.narrow
                if module_of(PurePosixPath(header).parts) == target}
    if narrowed and name not in narrowed:
        only = ", ".join(sorted(narrowed))
        report.fault(where, f"{module.name} may include of {target} only {only}")


def check_system_include(where, name, module, test, report):
    if test:
        return
    if module.zone and name not in PURE:
        report.fault(where, f"{module.name} is in the deterministic zone: no <{name}>")
    elif module.name in ABOVE_AGENT and name in BLOCKING_HEADERS:
        report.fault(where, f"{module.name} blocks through the agent's Waiter only: no <{name}>")


def check_names(path, text, module, report):
    plain = COMMENT.sub(lambda match: "\n" * match.group().count("\n"), text)
    for names, applies, why in (
            (IMPURE_NAMES, module.zone, "is in the deterministic zone"),
            (BLOCKING_NAMES, module.name in ABOVE_AGENT, "blocks through the agent's Waiter only")):
        for match in names.finditer(plain) if applies else ():
            line = plain.count("\n", 0, match.start()) + 1
            report.fault(f"{path}:{line}", f"{module.name} {why}: no {match.group()}")


def check_namespaces(path, text, module, allowed, report):
    """What a file names, it has the right to include, whichever header brings it along."""
    known = {name.split("/")[0] for name in allowed | {module.name}}
    plain = COMMENT.sub(lambda match: "\n" * match.group().count("\n"), text)
    for match in FOREIGN_NAME.finditer(plain):
        if match.group(1) not in known:
            line = plain.count("\n", 0, match.start()) + 1
            report.fault(f"{path}:{line}", f"{module.name} must not use {match.group()}: it may "
                                           f"not include {match.group(1)}")


def check_outside(path, text, modules, report):
    for folder, allowed in OUTSIDE.items():
        if not path.is_relative_to(folder):
            continue
        for line, _, name in includes(text):
            target = included_module(name)
            if target in modules and target not in allowed:
                report.fault(f"{path}:{line}", f"{folder} must not include {target} ({name}); it "
                             f"may include the public headers"
                             f"{' and ' + ', '.join(sorted(allowed)) if allowed else ''}")


def included_module(name):
    """The folder that an include names, or None: <memory> is the standard library's."""
    return module_of(PurePosixPath(name).parts) if "/" in name else None


def includes(text):
    for match in INCLUDE.finditer(text):
        yield text.count("\n", 0, match.start(1)) + 1, match.group(1), match.group(2)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", required=True, help="modules.txt in the build folder")
    modules = read_table(parser.parse_args().table)
    root, report, looked_at = project_root(), Report("includes"), 0
    for module in modules:
        if not (root / "src" / module).is_dir():
            report.fault("src/CMakeLists.txt", f"module {module} has no folder")
    for path in project_files(root):
        if not is_code(path):
            continue
        looked_at += 1
        if path.parts[0] == "src":
            check_inside(path, read_text(root / path) or "", modules, report)
        else:
            check_outside(path, read_text(root / path) or "", modules, report)
    report.finish(looked_at)


if __name__ == "__main__":
    main()
