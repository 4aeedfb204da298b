#!/usr/bin/env python3
"""mechanisms_test.py VIA PAGE: PAGE's table is what 'via lab without' finds, and each mechanism is
in it."""
import json
import subprocess
import sys

via, page = sys.argv[1:]
said = subprocess.run([via, 'lab', 'without', '--json'], check=True, capture_output=True, text=True)
changes = [json.loads(line) for line in said.stdout.splitlines()]
wanted = [f"| {one['without']} | {one['machine']} | {one['figure']} | {one['ours']} | {one['then']}"
          f"{', still within' if one['reproduced'] else ''} |" for one in changes]
with open(page, encoding='utf-8') as file:
    lines = file.read().splitlines()
begin = next(n for n, line in enumerate(lines) if line.startswith('|---'))
told = [line for line in lines[begin + 1:] if line.startswith('| ')]
if told != wanted:
    print(f'{page}: its table is to be', *wanted, sep='\n')
    sys.exit(1)
helped = subprocess.run([via, 'lab', 'without', '--help'], check=True, capture_output=True,
                        text=True).stdout
names = helped.split('{', 1)[1].split('}', 1)[0].split(',')
missing = set(names) - {one['without'] for one in changes}
if missing or len(names) < 2:
    print(f'of {names} no row depends on {missing}')
    sys.exit(1)
