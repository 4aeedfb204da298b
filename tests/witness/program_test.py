"""The witness before two processes that exchange a message: both write a ledger, and they agree.

  program_test.py LIBRARY HELLO"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from compare import compare  # noqa: E402


def main():
    library, program = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        environment = dict(os.environ, XDG_RUNTIME_DIR=folder, VIA_WITNESS=folder,
                           LD_PRELOAD=library)
        with subprocess.Popen([program, "hear"], env=environment,
                              stdout=subprocess.PIPE) as hearer:
            subprocess.run([program, "say"], env=environment, check=True, timeout=50)
            heard, _ = hearer.communicate(timeout=50)
        faults, summary = compare(folder)
        print(summary)
        assert heard == b"Hello, neighbour!\n" and hearer.returncode == 0, heard
        assert not faults, faults
        assert "2 processes" in summary and ": 1 messages as sent" in summary, summary


if __name__ == "__main__":
    main()
