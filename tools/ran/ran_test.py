"""Each way of a test not to run is found, and only what the list has is allowed."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from xml.sax.saxutils import escape

PROGRAM = Path(__file__).parent / "ran.py"
PASSED = ('<testcase name="{name}" time="{time}" status="run">'
          "<system-out>{said}</system-out></testcase>")
SKIPPED = ('<testcase name="{name}" time="{time}" status="notrun">'
           '<skipped message="SKIP_RETURN_CODE=77"/>'
           "<system-out>{said}</system-out></testcase>")
GTEST = "[ RUN      ] A.b\nfile.cpp:3: Skipped\nno network\n\n[  SKIPPED ] A.b (0 ms)\n"
FAILED = ('<testcase name="{name}" time="{time}" status="fail"><failure message=""/>'
          "<system-out>{said}</system-out></testcase>")
TOGETHER = ("[ RUN      ] A.a\nwords without an end[       OK ] A.a (1500 ms)\n" + GTEST +
            "[ RUN      ] B.c/0\n[       OK ] B.c/0 (7 ms)\n"
            "[==========] 3 tests from 2 test suites ran. (1600 ms total)\n"
            "[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] A.b\n")
ALLOWED = """[[skip]]
tests = "net\\\\..*"
says = "no network"
where = "systems without a network"
why = "there is nothing to send over"
"""


def case(form, name, said="", time=1.0):
    return form.format(name=name, said=escape(said), time=time)


class Ran(unittest.TestCase):
    def run_on(self, *cases, allowed=ALLOWED, preset="release"):
        with tempfile.TemporaryDirectory() as folder:
            report, skips = Path(folder, "tests.xml"), Path(folder, "skips.toml")
            report.write_text(f"<testsuite>{''.join(cases)}</testsuite>", encoding="utf-8")
            skips.write_text(allowed, encoding="utf-8")
            ended = subprocess.run([sys.executable, "-B", PROGRAM, "--skips", skips, "--preset",
                                    preset, report], capture_output=True, text=True, check=False)
            self.said = ended.stdout + ended.stderr
            return ended.returncode

    def test_all_ran(self):
        self.assertEqual(self.run_on(case(PASSED, "a"), case(PASSED, "b")), 0)
        self.assertIn("2 tests ran, 0 skipped", self.said)

    def test_no_test_at_all(self):
        self.assertEqual(self.run_on(), 1)

    def test_a_skip_that_is_not_in_the_list(self):
        self.assertEqual(self.run_on(case(PASSED, "a"), case(SKIPPED, "mpi.a", "no network")), 1)
        self.assertIn("1 tests ran, 1 skipped", self.said)
        self.assertIn("mpi.a: no network", self.said)

    def test_a_skip_that_is_in_the_list(self):
        self.assertEqual(self.run_on(case(SKIPPED, "net.a", "no network")), 0)
        self.assertIn("0 tests ran, 1 skipped", self.said)

    def test_a_skip_for_another_reason(self):
        self.assertEqual(self.run_on(case(SKIPPED, "net.a", "there is no 'mpirun'")), 1)

    def test_a_skip_on_another_system(self):
        for condition, ended in (('test "$VIA_PRESET" = asan', 1), ("true", 0), ("no-such", 1)):
            allowed = f"{ALLOWED}if = '{condition}'\n"
            self.assertEqual(self.run_on(case(SKIPPED, "net.a", "no network"), allowed=allowed),
                             ended, condition)
        allowed = f"{ALLOWED}if = 'test \"$VIA_PRESET\" = asan'\n"
        self.assertEqual(self.run_on(case(SKIPPED, "net.a", "no network"), allowed=allowed,
                                     preset="asan"), 0)

    def test_a_skip_within_a_test_that_passed(self):
        self.assertEqual(self.run_on(case(PASSED, "all", "[ RUN      ] A.a\n" + GTEST)), 1)
        self.assertIn("1 tests ran, 0 skipped, and 1 within them", self.said)
        self.assertIn("all:A.b: no network", self.said)
        self.assertEqual(self.run_on(case(PASSED, "net.some", GTEST)), 0)

    def test_a_disabled_test(self):
        self.assertEqual(self.run_on('<testcase name="a" time="0" status="disabled"/>'), 1)

    def test_a_filter_that_matches_nothing(self):
        for said in ("[==========] 0 tests from 0 test suites ran. (0 ms total)\n",
                     "Ran 0 tests in 0.000s\n\nOK\n", "No tests were found!!!\n"):
            self.assertEqual(self.run_on(case(PASSED, "a", said)), 1, said)

    def test_a_filter_of_which_one_pattern_matches_nothing(self):
        said = ("Note: Google Test filter = shm.*:udp.*rdma*{}\n"
                "[ RUN      ] shm.a\n[       OK ] shm.a (0 ms)\n{}")
        self.assertEqual(self.run_on(case(PASSED, "a", said.format("", ""))), 1)
        self.assertIn("a:udp.*rdma*: no test has such a name", self.said)
        both = said.format("-shm.b:sim.*", "[ RUN      ] udp.an_rdma_write\n")
        self.assertEqual(self.run_on(case(PASSED, "a", both)), 0, self.said)

    def test_tests_that_ran_together_count_each(self):
        for name in ("net.all", "net.all_more"):
            self.assertEqual(self.run_on(case(PASSED, name, TOGETHER), case(PASSED, "a")), 0)
            self.assertIn("3 tests ran, 1 skipped, and 0 within them", self.said)
            self.assertRegex(self.said, r" 1\.5 s  net\.A\.a\n")
        self.assertEqual(self.run_on(case(PASSED, "mpi.all", TOGETHER)), 1)
        self.assertIn("mpi.A.b: no network", self.said)

    def test_tests_that_ran_together_and_not_to_the_end(self):
        for missing in ("[==========] 3", "[       OK ] B.c/0"):
            said = TOGETHER.replace(missing, "")
            self.assertEqual(self.run_on(case(PASSED, "net.all", said)), 1, missing)
            self.assertIn("net.all: it ended before", self.said)

    def test_those_that_failed_together_are_named(self):
        failed = TOGETHER.replace("[       OK ] B.c/0", "[  FAILED  ] B.c/0, where GetParam() = 3")
        self.run_on(case(FAILED, "net.all", failed))
        self.assertIn("failed: net.B.c/0\n", self.said)
        self.assertNotIn("failed: net.A", self.said)
        self.run_on(case(FAILED, "net.all", TOGETHER[:TOGETHER.index("[       OK ] B.c/0")]))
        self.assertIn("failed: net.B.c/0\n", self.said)
        self.run_on(case(FAILED, "a", failed))
        self.assertNotIn("failed: ", self.said)

    def test_the_slowest_come_first(self):
        self.run_on(case(PASSED, "quick", time=1), case(PASSED, "slow", time=9.5))
        self.assertLess(self.said.index("9.5 s  slow"), self.said.index("1.0 s  quick"))

    def test_an_entry_without_a_reason(self):
        self.assertEqual(self.run_on(case(PASSED, "a"), allowed='[[skip]]\ntests = ".*"\n'), 1)


if __name__ == "__main__":
    unittest.main()
