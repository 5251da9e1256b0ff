"""The model against numbers that others measured: python3 -m unittest, here."""

import random
import unittest

import crc
import geometry
from device_model import KEPT, Device


def packet(register, *values):
    return [1 << 29 | 2 << 27 | register << 13 | len(values), *values]


class Crc(unittest.TestCase):
    def test_known_values(self):
        # From prjxray's crc_test, and from every 7-series partial after SHUTDOWN.
        self.assertEqual(crc.word(0, 16, 0), 0x82F63B78)
        self.assertEqual(crc.word(0, 31, 0xFFFFFFFF), 0xBF86D4DF)
        self.assertEqual(crc.word(0xFFFFFFFF, 0, 0), 0xC631E365)
        self.assertEqual(crc.word(0, 4, 11), 0x5DA98E32)

    def test_tables_do_what_the_definition_says(self):
        dice = random.Random(1)
        slow = fast = 0
        for _ in range(500):
            register, word = dice.randrange(32), dice.randrange(1 << 32)
            slow = crc.step(slow, register, word)
            fast = crc.words(fast, register, [word])
            self.assertEqual(slow, fast)


class Geometry(unittest.TestCase):
    devices = geometry.load()

    def frames(self, idcode, blocks=(0, 1)):
        """Frames, and the pads between and after rows."""
        rows = [c for (block, *_), c in self.devices[idcode].rows.items() if block in blocks]
        return sum(map(sum, rows)), 2 * len(rows)

    def test_measured_counts(self):
        self.assertEqual(self.frames(0x0362D093), (4384 + 1024, 12))
        self.assertEqual(self.frames(0x03824093), (32510, 20))
        for idcode, masks in ((0x0362D093, 132), (0x03631093, 228), (0x03727093, 228)):
            self.assertEqual(sum(self.frames(idcode, (2,))), masks)

    def test_a_walk_meets_every_frame_once(self):
        for idcode in (0x0362D093, 0x04A49093):
            die = self.devices[idcode]
            far, count, ends = 0, 0, 0
            while far is not None:
                self.assertTrue(die.exists(far))
                count += 1
                far, ended = die.advance(far)
                ends += ended
            self.assertEqual((count, ends * 2), self.frames(idcode))


class Pipeline(unittest.TestCase):
    def device(self):
        device = Device(0x0362D093, Geometry.devices[0x0362D093])
        device.consume([0xAA995566, *packet(12, 0x0362D093), *packet(4, 1)])
        device.synced = True
        device.dangers.clear()
        return device

    def write(self, far, *frames):
        device = self.device()
        device.consume([*packet(1, far), 0x30004000, 2 << 29 | 2 << 27 | 101 * len(frames)] + sum(frames, []))
        return device

    def test_the_last_frame_stays_in_the_buffer(self):
        frame = [1] * 101
        device = self.write(0x100, frame, frame, [0] * 101)
        self.assertEqual(device.written, {0x100, 0x101})

    def test_two_pads_between_rows(self):
        die = Geometry.devices[0x0362D093]
        columns = die.rows[(0, 0, 0)]
        last = die.family.join(0, 0, 0, len(columns) - 1, columns[-1] - 1)
        frame, pad = [1] * 101, [0] * 101
        device = self.write(last, frame, pad, pad, frame, pad)
        self.assertEqual(device.written, {last, die.family.join(0, 0, 1, 0, 0)})
        self.assertNotIn("a pad that is not zero", [what for _, what in device.dangers])
        device = self.write(last, frame, frame, frame, frame, pad)
        self.assertIn("a pad that is not zero", [what for _, what in device.dangers])

    def test_restoring_resets_what_is_not_masked(self):
        device = self.device()
        device.consume(packet(4, 10))
        everything = set(device.die.logic_columns()) - device.die.always_open()
        self.assertEqual(device.reset, everything)
        device = self.write(0x01000000, device.kept, device.kept, [0] * 101)
        self.assertEqual(device.masked, {0, 0x80})
        self.assertEqual(device.kept[50], KEPT)

    def told(self, device):
        return [what for _, what in device.dangers]

    def test_a_start_needs_its_address_and_a_checksum(self):
        device = self.device()
        device.stopped = True
        device.consume(packet(4, 5))
        self.assertTrue(device.stopped)
        self.assertIn("a START that no address carried out", self.told(device))
        device = self.device()
        device.stopped = True
        device.consume(packet(4, 5) + packet(1, 0x03BE0000))
        self.assertFalse(device.stopped)
        self.assertIn("no CRC after the start", self.told(device))

    def test_masks_without_a_restore_are_left_for_the_next(self):
        device = self.device()
        device.stopped = True
        device.consume([*packet(1, 0x01000000), *packet(2, *[0] * 202), *packet(4, 10)])
        self.assertNotIn("masks left for the next restart", self.told(device))
        device = self.write(0x01000000, device.kept, [0] * 101)
        self.assertIn("masks left for the next restart", self.told(device))

    def test_a_copy_follows_its_frame(self):
        frame, copy = [*packet(2, *[7] * 101)], packet(10, *[0] * 8)
        device = self.device()
        device.consume([*packet(1, 5), *frame, *packet(4, 2), *copy])
        self.assertEqual(device.written, {5})
        self.assertNotIn("an address between a frame and its first copy", self.told(device))
        device = self.device()
        device.consume([*packet(1, 5), *frame, *packet(4, 2), *packet(1, 9), *copy])
        self.assertIn("an address between a frame and its first copy", self.told(device))

    def test_a_far_executes_the_command_again(self):
        device = self.device()
        device.consume([*packet(4, 15), *packet(1, 0x03BE0000)])
        self.assertEqual([what for _, what in device.dangers].count("command 15"), 2)


if __name__ == "__main__":
    unittest.main()
