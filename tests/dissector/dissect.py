"""Runs tshark with our dissector over a capture, and compares what it says with what is expected:
one line of each datagram, and the name, place, length and bytes of each field.
Over one of damaged datagrams it must not fail.
  dissect.py TSHARK DISSECTOR CAPTURE EXPECTED DAMAGED"""

import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path


def expected_of(path):
    datagrams = []
    for line in path.read_text().splitlines():
        word, _, rest = line.partition(" ")
        if word == "datagram":
            datagrams.append({"info": None, "fields": []})
        elif word == "info":
            datagrams[-1]["info"] = rest
        else:
            datagrams[-1]["fields"].append(rest)
    return datagrams


def run(tshark, dissector, capture, *more):
    command = [tshark, "-X", f"lua_script:{dissector}", "-r", capture, *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    if done.returncode != 0 or "Lua" in done.stderr:
        sys.exit(f"{' '.join(command)}: {done.returncode}\n{done.stderr}")
    return done.stdout


def infos(tshark, dissector, capture):
    """Of each datagram, or None for one that is not ours."""
    columns = 'gui.column.format:"Protocol","%p","Info","%i"'
    lines = run(tshark, dissector, capture, "-o", columns).splitlines()
    found = [line.strip().partition(" ") for line in lines]
    return [info.strip() if name == "OpenVIA" else None for name, _, info in found]


def described(field):
    """As in the file of what is expected."""
    text = [field.get(key) for key in ("name", "pos", "size", "value")]
    name, bracket, _ = field.get("showname", "").rpartition(" (")
    if bracket and field.get("show", "").isdigit():
        text.append(name.rpartition(": ")[2])
    return " ".join(text)


def is_of_the_table(name):
    """Not what the dissector has besides: bits of flags, payload, private data, complaints."""
    others = ("openvia.frame.payload", "openvia.sealed.text", "openvia.connect.private_data",
              "openvia.frame.flags.", "openvia.malformed", "openvia.wrong_checksum")
    return name.startswith("openvia.") and not name.startswith(others)


def fields(tshark, dissector, capture):
    tree = xml.fromstring(run(tshark, dissector, capture, "-T", "pdml"))
    return [[described(field) for field in packet.iter("field")
             if is_of_the_table(field.get("name", ""))] for packet in tree.iter("packet")]


def bits(tshark, dissector, capture, name):
    """Numbers of datagrams with a frame that has the flag."""
    wanted = f"openvia.frame.flags.{name} == 1"
    return run(tshark, dissector, capture, "-Y", wanted, "-T", "fields", "-e", "frame.number")


def compare(what, got, wanted):
    if got == wanted:
        return 0
    print(f"{what}:\n  expected {wanted}\n  got      {got}")
    return 1


def main():
    tshark, dissector, capture, wanted_file, damaged = sys.argv[1:]
    wanted = expected_of(Path(wanted_file))
    got_infos = infos(tshark, dissector, capture)
    got_fields = fields(tshark, dissector, capture)
    faults = compare("datagrams", (len(got_infos), len(got_fields)), (len(wanted),) * 2)
    for number, (info, found, datagram) in enumerate(zip(got_infos, got_fields, wanted), 1):
        faults += compare(f"datagram {number}", info, datagram["info"])
        got, expected = sorted(found), sorted(datagram["fields"])
        if got != expected:
            faults += compare(f"fields of datagram {number}, where they differ",
                              [field for field in got if field not in expected],
                              [field for field in expected if field not in got])
    for value, name in enumerate(("first", "last", "immediate", "extent", "remote"), 0):
        having = [number for number, datagram in enumerate(wanted, 1)
                  if any(field.startswith("openvia.frame.flags ") and
                         int(field.split()[3], 16) >> value & 1 for field in datagram["fields"])]
        got = bits(tshark, dissector, capture, name).split()
        faults += compare(f"flag {name}", [int(number) for number in got], having)
    said = run(tshark, dissector, damaged, "-V", "-O", "openvia")
    failed = [line for line in said.splitlines() if "Lua Error" in line]
    faults += compare("damaged datagrams", failed[:5], [])
    faults += compare("damaged datagrams that were looked at", said.count("\nOpenVIA") > 0, True)
    count = sum(len(datagram["fields"]) for datagram in wanted)
    print(f"{len(wanted)} datagrams, {count} fields: {faults} differ")
    sys.exit(1 if faults or count == 0 else 0)


if __name__ == "__main__":
    main()
