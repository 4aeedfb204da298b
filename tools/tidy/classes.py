"""No class has more than 60 member functions, and one of more than 45 in the library says above
itself what it owns. Counted are all that a class body declares, also constructors and what is
defaulted or deleted; not those of classes within it."""

import re

from common import Report, is_code, is_test, project_files, project_root, read_text

MOST = 60
SAYS_WHAT_IT_OWNS = 45
# Class and file, and why it may be larger.
EXCEPTIONS = {
    ("Adapter", "src/lab/adapter.hpp"):
        "the firmware of a modelled NIC: its steps are the member functions, and all of them take "
        "the time of one processor",
}
PARTED = ("src/engine", "src/nic", "src/device", "src/agent", "adapters")

COMMENT = r"//[^\n]*|/\*.*?\*/"
NOISE = re.compile(COMMENT + r'|R"(\w*)\(.*?\)\1"|"(?:[^"\\\n]|\\.)*"' + r"|'(?:[^'\\\n]|\\.)+'"
                   r"|^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.S | re.M)
CLASS = re.compile(r"(?<!enum )\b(?:class|struct)\s+(?:\[\[[^\]]*\]\]\s*|alignas\([^)]*\)\s*)*"
                   r"([\w:]+)(?:<[^;{}()]*>)?\s*(?:final\s*)?(?::(?!:)[^;{}()]*)?\{")
OTHERS = re.compile(r"(friend|using|typedef|static_assert|enum|class|struct|union|concept)\b")
BEFORE = re.compile(r"\b(?:public|private|protected)\s*:(?!:)|\[\[.*?\]\]"
                    r"|\b(?:alignas|decltype|noexcept|explicit|requires)\s*"
                    r"\((?:[^()]|\([^()]*\))*\)", re.S)
ARGUMENTS = re.compile(r"<[^<>;{}]*>")
OPERATOR = re.compile(r"\boperator\b\s*(?:\(\)|[^\s\w(]+|\"\"\s*\w+)")
DOC = re.compile(r"\s*(///|template\b|\[\[)")


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def without_noise(text):
    """The same without comments, literals and preprocessor's lines, each character in its place."""
    return NOISE.sub(blank, re.sub(r"(?<=\d)'(?=\d)", "0", text))


def declarations(text, at):
    """What the class body that begins at `at` declares, without what braces hold."""
    depth, begin, found = 1, at, []
    for match in re.compile(r"[{};]").finditer(text, at):
        if match.group() == "{":
            if depth == 1:
                found.append(text[begin:match.start()] + "{")
            depth += 1
        elif match.group() == "}":
            depth -= 1
            if depth == 0:
                return found
            begin = match.end()
        elif depth == 1:
            found.append(text[begin:match.start()])
            begin = match.end()
    return found


def function_in(declaration):
    """Its name, or None: something else is declared."""
    text = OPERATOR.sub("operator_of", BEFORE.sub(" ", declaration))
    before = None
    while before != text:
        before, text = text, ARGUMENTS.sub(" ", text)
    text = re.sub(r"^\s*template\b", "", text).strip()
    found = re.search(r"(~?\b\w+)\s*\((?!\s*\*)", re.split(r"[{=]", text)[0])
    return None if OTHERS.match(text) or not found else found.group(1)


def doc_above(lines, at):
    """The comment of documentation above line `at`."""
    doc = []
    while at > 0 and DOC.match(lines[at - 1]):
        at -= 1
        doc.insert(0, lines[at])
    return " ".join(doc)


def classes(text):
    """Name, comment above, and member functions of each class."""
    lines, bare = text.splitlines(), without_noise(text)
    for match in CLASS.finditer(bare):
        functions = [function_in(one) for one in declarations(bare, match.end())]
        yield (match.group(1), doc_above(lines, bare.count("\n", 0, match.start())),
               [name for name in functions if name])


def main():
    root, report, looked_at, large = project_root(), Report("classes"), 0, set()
    for path in project_files(root):
        if path.parts[0] not in ("src", "adapters", "tools", "include") or not is_code(path) or \
                path.suffix in (".c", ".h") or is_test(path):
            continue
        for name, doc, functions in classes(read_text(root / path) or ""):
            looked_at += 1
            where = (name, str(path))
            if len(functions) > MOST:
                large.add(where)
                if where not in EXCEPTIONS:
                    report.fault(path, f"{name} has {len(functions)} member functions; "
                                       f"{MOST} are the most: part it by what it owns")
            elif len(functions) > SAYS_WHAT_IT_OWNS and str(path).startswith(PARTED) and \
                    not re.search(r"\b[Oo]wns\b", doc):
                report.fault(path, f"the comment above {name} does not say what it owns")
    for name, path in sorted(EXCEPTIONS.keys() - large):
        if (root / path).is_file():
            report.fault(path, f"{name} needs no exception any more")
    report.finish(looked_at)


if __name__ == "__main__":
    main()
