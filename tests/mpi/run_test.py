"""What run.py takes for the program that starts the ranks."""

import os
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from run import launcher  # noqa: E402


class Launcher(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(suffix=" with a blank")
        self.addCleanup(self.folder.cleanup)
        self.program = os.path.join(self.folder.name, "via")
        Path(self.program).write_text("#!/bin/sh\n", encoding="utf-8")
        os.chmod(self.program, 0o755)

    def test_a_quoted_path_with_a_blank_is_found(self):
        self.assertEqual(launcher(f"'{self.program}' mpirun"), [self.program, "mpirun"])

    def test_a_quoted_path_without_a_blank_is_found(self):
        self.assertEqual(launcher("'/bin/sh' mpirun"), ["/bin/sh", "mpirun"])

    def test_a_name_is_looked_for_in_path(self):
        self.assertEqual(launcher("sh"), ["sh"])

    def test_what_is_not_there_is_none(self):
        self.assertIsNone(launcher(f"'{self.program}-not' mpirun"))


if __name__ == "__main__":
    unittest.main()
