#!/usr/bin/env python3
"""lab_designs.py with a laboratory of three machines and a test program that are scripts: which
designs it tries, what it says of those that cannot be, and that it goes on where it was ended."""
import itertools
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

SCRIPT = pathlib.Path(__file__).with_name('lab_designs.py')
# Of each part two alternatives. The hosts of "kernel" have a switch; "library" has no parts.
PARTS = ('at', 'doorbell', 'descriptors', 'cq', 'payload', 'rdma', 'cbh', 'pch', 'miss', 'stack',
         'processors')
VIA = """#!/bin/sh
test "$3" = --json && {
    for name in card kernel library; do echo "{\\"machine\\":\\"$name\\"}"; done
    exit
}
for part in %s; do echo "  $part=1   one"; echo "  $part=2   another"; done
"""
PROGRAM = """#!/bin/sh
refuse() { echo "$1"; exit 2; }
case $VIA_TEST_MACHINE,$VIA_TEST_DESIGN in
    library,?*) refuse "no words" ;;
    kernel,*wiring*) ;;
    kernel,*|*wiring*|*processors*) refuse "not of this machine" ;;
    *pch=2*) refuse "there is no 2" ;;
    *at=1*doorbell=2*) refuse "1 cannot be rung by 2" ;;
esac
test "$1" && exit
echo "$VIA_TEST_MACHINE $VIA_TEST_DESIGN" >>"$0.runs"
test -p "$0.gate" && { echo >"$0.gate"; sleep 1000; }
case $VIA_TEST_DESIGN in *"${BROKEN:-none}"*) echo '[  FAILED  ] this'; exit 1 ;; esac
exit 0
"""


class Laboratory:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        for name, text in (('via', VIA % ' '.join(PARTS)), ('program', PROGRAM)):
            (self.folder / name).write_text(text)
            (self.folder / name).chmod(0o700)

    def command(self, *words):
        return [sys.executable, '-B', str(SCRIPT), *(str(self.folder / name) for name in
                                                     ('via', 'program', 'log')), *words]

    def run(self, *words, **environment):
        ran = subprocess.run(self.command(*words), capture_output=True, text=True, check=False,
                             env=dict(os.environ, **environment))
        if ran.stderr:
            sys.exit(ran.stderr)
        return ran.returncode, ran.stdout

    def runs(self):
        """Of the test program since the last time."""
        file = self.folder / 'program.runs'
        lines = file.read_text().splitlines() if file.exists() else []
        file.unlink(missing_ok=True)
        return lines


def check(what, found):
    if not what:
        sys.exit(f'not so: {found}')


def all_pairs_but_one(lab):
    code, said = lab.run('--pairs', '--plan')
    check(code == 0 and not lab.runs(), said)
    check('at=1 is never with doorbell=2: 1 cannot be rung by 2' in said, said)
    check('pch=2 is in no design: there is no 2' in said, said)
    check(said.count('is never with') == 1 and said.count('is in no design') == 1, said)
    code, said = lab.run('--pairs')
    runs = lab.runs()
    check(code == 0, said)
    check(runs.count('library ') == 1, runs)
    check(sum(line.startswith('kernel ') for line in runs) == 4, runs)
    cards = [set(re.findall(r'[a-z]+=[12]', line)) for line in runs if line.startswith('card ')]
    for one, other in itertools.combinations(PARTS[:9], 2):
        for pair in itertools.product((f'{one}=1', f'{one}=2'), (f'{other}=1', f'{other}=2')):
            check(any(set(pair) <= design for design in cards) ==
                  (pair != ('at=1', 'doorbell=2') and 'pch=2' not in pair), (pair, cards))


def the_whole_product(lab):
    (lab.folder / 'log').unlink()
    code, said = lab.run('card')
    check(code == 0 and len(lab.runs()) >= 48, said)  # of 64 those that can be
    check('16 cannot be' in said, said)
    code, said = lab.run('card')
    check(code == 0 and not lab.runs(), 'what the log has is not run again')


def a_failure_is_run_again(lab):
    (lab.folder / 'log').unlink()
    code, said = lab.run('--pairs', 'library', 'kernel', BROKEN='stack=2')
    check(code == 1 and 'kernel: 2 designs passed, 2 failed' in said, said)
    lab.runs()
    with open(lab.folder / 'log', 'a', encoding='utf-8') as log:
        log.write('passed ker')  # the disk was full
    code, said = lab.run('--pairs', 'library', 'kernel')
    check(code == 0 and len(lab.runs()) == 2, said)


def ended_and_gone_on_with(lab, number):
    (lab.folder / 'log').unlink()
    gate = lab.folder / 'program.gate'
    os.mkfifo(gate)
    with subprocess.Popen(lab.command('kernel', '--processes', '1'), text=True,
                          stdout=subprocess.PIPE) as begun:
        with open(gate, encoding='utf-8') as opened:  # until a design is under way
            opened.read()
        begun.send_signal(number)
        said = begun.communicate()[0]
    check(begun.returncode == 1 and 'goes on with' in said, said)
    check('4 were not run' in said and 'FAILED' not in said, said)
    gate.unlink()
    check(len(lab.runs()) == 1, 'nothing is begun any more')
    code, said = lab.run('kernel')
    check(code == 0 and len(lab.runs()) == 4, said)


def main():
    with tempfile.TemporaryDirectory() as folder:
        lab = Laboratory(folder)
        all_pairs_but_one(lab)
        the_whole_product(lab)
        a_failure_is_run_again(lab)
        for number in (signal.SIGINT, signal.SIGTERM):
            ended_and_gone_on_with(lab, number)


if __name__ == '__main__':
    main()
