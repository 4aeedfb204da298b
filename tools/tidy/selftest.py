"""Shows that every check can fail: each fault, planted into a small project, must be named, and the
project without it must pass."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TABLE = """base|TRUE|||
memory|TRUE|base||
agent|FALSE|memory base||
device|TRUE|base||
device/loopback|TRUE|device base||
sim|TRUE|agent base|memory|agent/agent.hpp
"""
DEVICE = """#pragma once
#include "base/a.hpp"
struct Device {
    virtual ~Device() = default;
    virtual bool reserve(int) = 0;
    virtual int send_small(int /*path*/) { return 0; }
    virtual int send_pieces(int) const { return 0; }
"""
TAP = """struct Tap : public Device {
    bool reserve(int n) override { return below_->reserve(n); }
    int send_small(int n) override { return below_->send_small(n); }
    int send_pieces(int n) const override {
        return below_->send_pieces(n);
    }
    Device* below_;
};
"""
# Of 60 member functions, and some that are none.
LARGE = """#pragma once
// Owns nothing: void no();
/// Owns what it is asked for.
template <class Of>
class Large final : public Base<Of> {
public:
    Large() = default;
    explicit Large(int n) : n_(n), m_{n} { if (n) m_ = call(n); }
    ~Large() override;
    Large& operator=(const Large&) = delete;
    bool operator()(int n) const { return n; }
    explicit operator bool() const noexcept(true);
    template <class T, std::size_t n = sizeof(T)>
    [[nodiscard]] std::array<T, 2> pair(T (&of)[n]) requires(n > 1) { return {}; }
    friend bool operator==(Large, Large);
    using Call = std::function<void(int)>;
    static_assert(sizeof(int) == 4);
    enum class Kind : unsigned char { one, two };
    struct Inner {
        void inner();
        int of(int n) { return n; }
    };
    void (*pointer)(int) = nullptr;
    Call call_ = make(");");
    std::function<void(int)> other_;
""" + "".join(f"    void f{number}();\n" for number in range(53))
LARGE_END = "    int n_ = take(1'000), m_{2};\n};\n"
ASSERTIONS = """## agent
| invariant | asserted in | what throws bytes at it |
|---|---|---|
| one holds | `agent.cpp:hold` | `Vipl_1_1_is_held` |
"""
CLEAN = {
    "src/CMakeLists.txt": "",
    "src/base/a.hpp": "#pragma once\nint number();\n",
    "src/base/a.cpp": '#include "base/a.hpp"\n#include <cstring>\nint number() { return 1; }\n',
    "src/memory/m.hpp": '#pragma once\n#include "base/a.hpp"\n',
    "src/memory/m.cpp": '#include "memory/m.hpp"\n#include <memory>\n'
                        "int twice() { return 2 * number(); }\n",
    "src/agent/agent.hpp": '#pragma once\n#include <mutex>\n#include "memory/m.hpp"\n',
    "src/agent/other.hpp": LARGE + LARGE_END,
    "src/agent/agent.cpp": '#include "agent/agent.hpp"\n#include "agent/other.hpp"\n'
                           "void hold() {\n    VIA_ASSERT(true);\n}\n",
    "docs/design/assertions.md": ASSERTIONS,
    "src/device/device.hpp": DEVICE + "};\n" + TAP,
    "src/device/loopback/l.cpp": '#include "device/device.hpp"\n',
    "src/sim/s.cpp": '#include "agent/agent.hpp"\n// std::mutex is a word here\n',
    "src/sim/s_test.cpp": '#include "memory/m.hpp"\n#include <thread>\n',
    "examples/e.c": "#include <stdio.h>\n",
    "README.md": "[a module](src/base/README.md)\n",
    "docs/quote.md": "<!-- from src/memory/m.cpp -->\n```cpp\n  #include <memory>\n```\n",
    "docs/vipl.md": "## 1 Types\n1.1 A type.\n\n## 2 Calls\nCalls.\n",
    "src/sim/rules_test.cpp": "Vipl_1_1_is_held Vipl_2_is_held\n",
    **{f"src/{module}/README.md": "A module.\n"
       for module in ("base", "memory", "agent", "device", "device/loopback", "sim")},
}

# check, path, text (None: take the file away), words of the complaint. Rows look alike: each is a
# case.
FAULTS = [
    ("includes", "src/base/b.cpp", '#include "memory/m.hpp"\n', "base must not include memory"),
    ("includes", "src/memory/n.cpp", '#include "agent/other.hpp"\n',
     "memory must not include agent"),
    ("includes", "src/device/d.hpp", '#include "device/loopback/l.hpp"\n',
     "device must not include device/loopback"),
    ("includes", "src/memory/n.cpp", '#include "m.hpp"\n', 'write "module/file.hpp"'),
    ("includes", "src/memory/n.cpp", '#include "../base/a.hpp"\n', 'write "module/file.hpp"'),
    ("includes", "src/memory/n.cpp", "#include <base/a.hpp>\n", "is ours"),
    ("includes", "src/memory/n.cpp", "#include <vipl.h>\n", "must not see the public header"),
    ("includes", "src/sim/t.cpp", '#include "agent/other.hpp"\n', "only agent/agent.hpp"),
    ("includes", "src/sim/t.cpp", '#include "memory/m.hpp"\n', "sim must not include memory"),
    ("includes", "src/sim/t.cpp", "int n = memory::number;  // agent::n\n",
     "sim must not use memory::number"),
    ("includes", "src/memory/n.cpp", "#include <thread>\n", "deterministic zone: no <thread>"),
    ("includes", "src/memory/n.cpp", "thread_local int number;\n", "zone: no thread_local"),
    ("includes", "src/memory/n.cpp", "std::mutex number;\n", "zone: no std::mutex"),
    ("includes", "src/extra/n.cpp", "", "module extra is not in the table"),
    ("includes", "src/n.cpp", "", "belongs into a module's folder"),
    ("includes", "examples/e.c", '#include "base/a.hpp"\n', "examples must not include base"),
    ("sources", "src/memory/n.cpp", "", "no target compiles it"),
    ("sources", "src/memory/n.hpp", "", "nobody includes it"),
    ("text", "src/memory/n.cpp", "int a;\tint b;\n", "a tab"),
    ("text", "src/memory/n.cpp", "//" + "a" * 99 + "\n", "101 columns"),
    ("text", "src/memory/n.cpp", "// FIX" "ME later\n", "finish it"),
    ("text", "src/memory/n.cpp", "int a; \n", "blanks at the end"),
    ("text", "src/memory/n.cpp", "int a;", "the last line has no end"),
    ("text", "src/memory/n.hpp", "int a;\n", "#pragma once is missing"),
    ("text", "src/memory/n.cpp", "using std::string;\n// a string\n", "of no use"),
    ("text", "src/memory/n_test.cpp", "namespace via {\nTEST(A, b) {}\n}\n",
     "not in a namespace named n_test"),
    ("text", "src/memory/README.md", "line\n" * 61, "at most 60"),
    ("taps", "src/device/device.hpp", DEVICE + "    virtual bool has_work(int n) = 0;\n};\n" + TAP,
     "does not pass on has_work()"),
    ("taps", "src/device/device.hpp",
     DEVICE + "};\n" + TAP.replace("return below_->send_small(n)", "return 0"),
     "does not pass on send_small()"),
    ("taps", "src/device/device.hpp", DEVICE + "};\n", "no class Tap"),
    ("taps", "src/memory/other.hpp", "class Other final : public tap::Tap {\n"
     "    bool reserve(int n) override;\n};\n", "Other is not about send_pieces(), send_small()"),
    ("assertions", "src/agent/other.cpp",
     "int A::odd(\n        int n) {\n    for (;;) {\n        VIA_ASSERT(n);\n    }\n}\n",
     "no line has the assertion in agent/other.cpp:odd"),
    ("assertions", "src/agent/agent.cpp", "", "nothing is asserted in agent/agent.cpp:hold"),
    ("assertions", "docs/design/assertions.md", ASSERTIONS.replace("_is_held", "_is_not"),
     "no test or fuzz target Vipl_1_1_is_not"),
    ("assertions", "docs/design/assertions.md", ASSERTIONS.replace("`Vipl_1_1_is_held`", "none"),
     "nothing shows that no bytes reach"),
    ("classes", "src/agent/other.hpp", LARGE + "    int more(int);\n" + LARGE_END,
     "Large has 61 member functions"),
    ("classes", "src/agent/other.hpp", LARGE + "    Large(const Large&) = delete;\n" + LARGE_END,
     "Large has 61 member functions"),
    ("classes", "src/agent/other.hpp", (LARGE + LARGE_END).replace("/// Owns", "/// Knows"),
     "does not say what it owns"),
    ("classes", "src/lab/adapter.hpp", "class Adapter {\n    void run();\n};\n",
     "Adapter needs no exception"),
    ("names", "README.md", "see /wo" "rk/notes\n", "path of one machine"),
    ("names", "README.md", "from deb.deb" "ian.org\n", "host of a registry"),
    ("docs", "src/memory/README.md", None, "the module has no README.md"),
    ("docs", "README.md", "[a module](src/bass)\n", "leads nowhere: src/bass"),
    ("docs", "docs/q.md", "<!-- from src/base/a.cpp -->\n```cpp\nint number() { return 2; }\n```\n",
     "this is not a part of src/base/a.cpp"),
    ("docs", "docs/q.md", "<!-- from src/base/a.cpp -->\n```cpp\nnumber();\n```\n", "not a part"),
    ("docs", "docs/q.md", "<!-- from src/base/b.cpp -->\n```cpp\nint i;\n```\n", "there is no"),
    ("docs", "docs/q.md", "<!-- from src/base/a.cpp -->\ntext\n", "no code follows"),
    ("docs", "docs/q.md", "See `src/base/b.cpp`.\n", "there is no src/base/b.cpp"),
    ("docs", "docs/q.md", "See `src/base/a.cpp:numbers`.\n", "no numbers in src/base/a.cpp"),
    ("docs", "docs/q.md", "It condemns the path.\n", "docs/glossary.md has another word"),
    ("docs", "docs/q.md", "It sleeps. Who polls\nfinds it.\n", "docs/glossary.md has another word"),
    ("docs", "src/memory/m.cpp", 'say("m", "it polled in vain");\n',
     "m.cpp:1: \"in vain\": docs/glossary.md has another word"),
    ("docs", "packaging/man/via.1", "dearer\n", "docs/glossary.md has another word"),
    ("rules", "src/sim/rules_test.cpp", "Vipl_1_1_is_held\n", "rule 2 has no test"),
    ("rules", "src/sim/s_test.cpp", "Vipl_7_nothing\n", "names no rule"),
    ("symbols", "src/memory/m.cpp", "#include <time.h>\nlong now() { return time(nullptr); }\n",
     "it needs time"),
    ("symbols", "src/base/a.cpp", "int twice(); int number() { return twice(); }\n",
     "it needs twice()"),
    ("symbols", "src/memory/m.cpp", "#include <random>\nunsigned seed() "
     "{ return std::random_device{}(); }\n", "it needs std::random_device"),
]


def write(root, files):
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def build(root):
    """Compiles the modules that the symbol check reads."""
    for module in ("base", "memory", "device/loopback", "sim"):
        objects = []
        for source in (root / "src" / module).glob("*.cpp"):
            if not source.stem.endswith("_test"):
                objects.append(source.with_suffix(".o"))
                subprocess.run(["c++", "-std=c++20", "-I", root / "src", "-c", source, "-o",
                                objects[-1]], check=True)
        archive = root / "build" / f"libvia_{module.replace('/', '_')}.a"
        archive.unlink(missing_ok=True)
        subprocess.run(["ar", "rc", archive, *objects], check=True)


def run(check, root):
    arguments = {
        "includes": ["--table", root / "build/modules.txt"],
        "symbols": ["--table", root / "build/modules.txt", "--archives", root / "build"],
        "sources": ["--compile-commands", root / "build/compile_commands.json"],
    }.get(check, [])
    if check == "symbols":
        build(root)
    return subprocess.run([sys.executable, "-B", HERE / f"{check}.py", *arguments],
                          env={**os.environ, "VIA_TIDY_ROOT": str(root)},
                          capture_output=True, text=True)


def trial(check, changes):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write(root, {**CLEAN, "build/modules.txt": TABLE})
        listed = [{"directory": str(root), "file": path} for path in CLEAN]
        write(root, {"build/compile_commands.json": json.dumps(listed)})
        for path, text in changes.items():
            (root / path).unlink() if text is None else write(root, {path: text})
        return run(check, root)


def main():
    failed = 0
    for check in sorted({fault[0] for fault in FAULTS}):
        result = trial(check, {})
        if result.returncode != 0:
            print(f"{check} complains about a clean project:\n{result.stdout}{result.stderr}")
            failed += 1
    for check, path, text, complaint in FAULTS:
        result = trial(check, {path: text})
        if result.returncode != 1 or complaint not in result.stdout:
            print(f'{check} does not say "{complaint}":\n{result.stdout}{result.stderr}')
            failed += 1
    print(f"selftest: {len(FAULTS)} faults planted, {failed} missed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
