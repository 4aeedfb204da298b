"""Each kind of fault in a ledger is found."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from compare import KEPT, compare  # noqa: E402

END = "given back 9 of 12\n"
SENDER = "sent 3 c b a\n" + END


class Compare(unittest.TestCase):
    def faults(self, *ledgers):
        with tempfile.TemporaryDirectory() as folder:
            for number, text in enumerate(ledgers):
                (Path(folder) / f"{number}.ledger").write_text(text, encoding="utf-8")
            faults, self.summary = compare(folder)
            return faults

    def test_all_arrived(self):
        self.assertEqual(self.faults(SENDER, "received 3 c\n" + END), [])
        self.assertIn("3 messages as sent, once and in order, 0 under way", self.summary)

    def test_some_were_under_way(self):
        self.assertEqual(self.faults(SENDER, "received 1 a\n" + END), [])
        self.assertIn("1 messages as sent, once and in order, 2 under way", self.summary)

    def test_other_bytes_or_order(self):
        self.assertTrue(self.faults(SENDER, "received 3 d\n" + END))

    def test_one_message_less(self):
        self.assertTrue(self.faults(SENDER, "received 2 c\n" + END))

    def test_one_message_twice(self):
        self.assertTrue(self.faults(SENDER, "received 4 e\n" + END))

    def test_two_received_what_one_sent(self):
        self.assertTrue(self.faults(SENDER, "received 3 c\n" + END, "received 3 c\n" + END))

    def test_two_that_sent_the_same_are_two(self):
        twice = "received 3 c\nreceived 2 b\n" + END
        self.assertEqual(self.faults(SENDER, "sent 2 b a\n" + END, twice), [])

    def test_nobody_received(self):
        digests = " ".join(f"{n:x}" for n in range(KEPT))
        self.assertTrue(self.faults(f"sent {KEPT} {digests}\n" + END))

    def test_a_violation(self):
        self.assertTrue(self.faults("violation work 3 completed again\n" + END))

    def test_a_process_that_crashed(self):
        self.assertTrue(self.faults("sent 3 c b a\n"))

    def test_nobody_watched(self):
        self.assertTrue(self.faults())


if __name__ == "__main__":
    unittest.main()
