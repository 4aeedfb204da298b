"""Wraps paragraphs and items of Markdown that have a line of more than 120 columns: './dev format'.
Tables, code, headings and the paragraphs whose lines are short enough stay as they are."""

import re
import sys
import textwrap

from common import project_files, project_root, read_text

COLUMNS = 120
LINE_BY_LINE = {"docs/vipl.md"}  # a rule each, as tools/tidy/rules.py reads them
ITEM = re.compile(r"( *)([-*+]|\d+\.) +")
FIXED = re.compile(r"\s*([|#<>!]|\[[^\]]+\]:|    )|\s*$")


def too_long(text):
    """Numbers of the lines that wrapping would shorten."""
    fenced, found = False, []
    for number, line in enumerate(text.split("\n")):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced and len(line) > COLUMNS and not FIXED.match(line):
            if " " in line.strip()[:COLUMNS]:
                found.append(number)
    return found


def wrap(text):
    """The text with such paragraphs wrapped anew."""
    lines, out, paragraph, fenced = text.split("\n"), [], [], False
    long = set(too_long(text))

    def close():
        if any(number in long for number, _ in paragraph):
            first = paragraph[0][1]
            item = ITEM.match(first)
            start = first[:item.end()] if item else first[:len(first) - len(first.lstrip())]
            words = " ".join(line.strip() for _, line in paragraph)[len(start.lstrip()):]
            rest = " " * len(start) if item else start
            out.extend(textwrap.wrap(words.strip(), COLUMNS, initial_indent=start,
                                     subsequent_indent=rest, break_long_words=False,
                                     break_on_hyphens=False))
        else:
            out.extend(line for _, line in paragraph)
        paragraph.clear()

    for number, line in enumerate(lines):
        fence = line.lstrip().startswith("```")
        fenced = fenced != fence
        inside = paragraph and ITEM.match(paragraph[0][1]) and line.startswith("  ")
        if fenced or fence or (FIXED.match(line) and not (inside and line.strip())):
            close()
            out.append(line)
        else:
            if ITEM.match(line) or (paragraph and paragraph[-1][1].endswith(("  ", "\\"))):
                close()
            paragraph.append((number, line))
    close()
    return "\n".join(out)


def main():
    root = project_root()
    for path in [path for path in project_files(root) if path.suffix == ".md"]:
        text = read_text(root / path) or ""
        if too_long(text) and str(path) not in LINE_BY_LINE:
            (root / path).write_text(wrap(text))
            print(f"wrapped: {path}")


if __name__ == "__main__":
    sys.exit(main())
