"""Compares the dissector's tables with what a program says that they are, or writes them anew.
  tables.py [--update] DISSECTOR PROGRAM"""

import subprocess
import sys
from pathlib import Path

BEGIN, END = "-- begin fields", "-- end fields\n"


def main():
    arguments = sys.argv[1:]
    update = arguments[0] == "--update"
    path = Path(arguments[-2])
    wanted = subprocess.run([arguments[-1]], check=True, capture_output=True, text=True).stdout
    text = path.read_text()
    begin = text.index("\n", text.index(BEGIN)) + 1
    end = text.index(END)
    if text[begin:end] == wanted:
        return
    if not update:
        sys.exit(f"{path}: its tables are not those of src/wire/fields.hpp;\n"
                 "'cmake --build BUILD --target update_dissector' writes them anew")
    path.write_text(text[:begin] + wanted + text[end:])


if __name__ == "__main__":
    main()
