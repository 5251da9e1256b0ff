#!/usr/bin/env python3
"""A device, not a checker: what the configuration logic of a 7-series or
UltraScale+ part does with the words it is given.

It refuses nothing. It takes every word as silicon would, and tells afterwards
which frames were written, which columns GRESTORE reset, what was done that no
tenant's bitstream may do, and where the CRC was wrong. It knows no region and
shares no code with the check that it judges. Where the documents leave open
what silicon does, that is told as a danger of its own rather than guessed.

Run as a program it answers on standard output, one line of JSON a stream, for
as long as streams come on standard input: IDCODE and length in bytes, 32 bits
each, big endian, then the words.
"""

import array
import json
import struct
import sys

import crc
from geometry import LOGIC, MASK, load

SYNC = 0xAA995566
# A word outside a packet that would be a sync word in another order of bytes or bits.
FOREIGN_SYNC = {0x665599AA, 0x5599AA66, 0x66AA9955, 0x99AA6655, 0x5566AA99}

CRC, FAR, FDRI, CMD, CTL0, MASK_REGISTER, LOUT, COR0, MFWR = 0, 1, 2, 4, 5, 6, 8, 9, 10
IDCODE, CTL1 = 12, 24
REGISTERS = {
    3: "FDRO", 7: "STAT", 8: "LOUT", 11: "CBC", 13: "AXSS", 14: "COR1", 16: "WBSTAR",
    17: "TIMER", 22: "BOOTSTS", 26: "R26", 30: "SLR", 31: "BSPI",
}  # fmt: skip

WCFG, MFW, LFRM, START, URAM, RCRC, AGHIGH, GRESTORE, SHUTDOWN, DESYNC = 1, 2, 3, 5, 6, 7, 8, 10, 11, 13
COMMANDS = {
    "series7": {0, WCFG, MFW, START, RCRC, GRESTORE, SHUTDOWN, DESYNC},
    "ultrascale+": {0, WCFG, MFW, LFRM, START, URAM, RCRC, AGHIGH, GRESTORE, SHUTDOWN, DESYNC},
}
# NOPs after a command in every genuine file: what happens with fewer is told nowhere.
WAITS = {SHUTDOWN: 1, AGHIGH: 100, GRESTORE: 1, LFRM: 20, START: 1, MFW: 12}
# Bits that a partial bitstream changes: GLUTMASK_B and ConfigFallback. The
# latter, cleared, makes the device load another bitstream after an error.
NO_FALLBACK = 1 << 10
CTL0_BITS = 1 << 8 | NO_FALLBACK
# Compression; and, in UltraScale+, the masks of GSR.
CTL1_BITS = {"series7": 1 << 12, "ultrascale+": 1 << 12 | 1 << 17}
GSR_MASKS = 1 << 17
COR0_VALUE = 0x38003FE5
# Word 50 of a frame that keeps GRESTORE off its column, all others zero.
KEPT = 0xE00009BC


class Device:
    """One part, from power-up with its static design loaded, to the end of a stream."""

    def __init__(self, idcode, die):
        self.idcode = idcode
        self.die = die
        self.family = die.family.name
        self.blank = [0] * die.family.words
        kept = list(self.blank)
        if self.family == "series7":
            kept[50] = KEPT
        self.kept = kept

        self.position = 0
        self.dangers = []
        self.written = set()
        self.reset = set()
        self.crc_checks = 0
        self.crc_errors = []

        self.synced = False
        self.register = None
        self.open_header = False
        self.crc = 0
        self.far = 0
        self.command = 0
        # Whatever was loaded before may have left it open.
        self.mask = 0xFFFFFFFF
        self.ctl1 = 0
        self.identified = False
        self.unchecked = False

        # The pipeline of frames.
        self.shift = []
        self.buffer = None
        self.pads = 0
        # The buffer went somewhere; and it went where FAR points now.
        self.saved = False
        self.copied = False
        # 7-series: columns that GRESTORE leaves alone. UltraScale+: columns
        # whose GSR mask was last written to be off, and never put back.
        self.masked = set()
        self.opened = set()
        self.restored = False
        self.stopped = False
        self.high = False
        # 7-series: masks were written that no GRESTORE has used yet.
        self.masks_pending = False
        self.session()

    def danger(self, what):
        self.dangers.append([self.position, what])

    def session(self):
        """What counts from one sync word to the end after it."""
        self.restored_here = False
        self.cleared_here = False
        # START waits for an address; then a CRC must prove what went before.
        self.starting = False
        self.unproven = False
        # NOPs since the last command, and how many are due before anything else.
        self.nops, self.wait = 0, 0
        # An address came between frame data and its first copy.
        self.moved = False
        self.copies = 0

    # Words and packets

    def consume(self, words):
        at, end = 0, len(words)
        while at < end:
            self.position = at
            word = words[at]
            at += 1
            if not self.synced:
                self.outside(words, at - 1)
                continue
            kind, operation = word >> 29, word >> 27 & 3
            header_open, self.open_header = self.open_header, False
            if kind == 1:
                address, count = word >> 13 & 0x3FFF, word & 0x7FF
                if word >> 11 & 3:
                    self.danger("reserved bits of a packet")
                if operation == 0:
                    self.nops += 1
                if operation == 0 and (address or count):
                    self.danger("a NOP that carries something")
                if operation == 0:
                    count = 0
                else:
                    self.register = address
                    self.open_header = count == 0 and operation == 2
            elif kind == 2:
                count = word & 0x07FFFFFF
                if not header_open or self.register != FDRI:
                    self.danger("a type 2 packet without its type 1")
            else:
                self.danger(f"a packet of type {kind}")
                continue
            if operation == 1:
                self.danger("a read")
                continue
            if operation == 3:
                self.danger("operation 3")
            if count > end - at:
                self.danger("the stream ends within a packet")
            if operation != 0 and (count or kind == 2):
                self.write(self.register, words[at : at + count])
            if operation != 0 and kind == 1 and count == 0 and address != FDRI:
                self.danger("an empty packet")
            at += count
        self.position = end
        self.finish()

    def outside(self, words, at):
        """Not in sync: everything is ignored, until the sync word stands anywhere."""
        word = words[at]
        if word == SYNC:
            self.synced = True
            self.identified = False
            self.session()
            return
        before = words[at - 1] if at else 0xFFFFFFFF
        joined = before << 32 | word
        if word in FOREIGN_SYNC or any(joined >> s & 0xFFFFFFFF == SYNC for s in (8, 16, 24)):
            self.danger("a sync word out of step")

    def write(self, register, values):
        if self.nops < self.wait:
            self.danger("a command without its time")
        self.wait = 0
        if register == FDRI:
            self.frame_data(values)
            self.crc = crc.words(self.crc, FDRI, values)
            return
        if register is None or register > 31:
            self.danger("a register that does not exist")
            return
        if register == MFWR:
            self.crc = crc.words(self.crc, MFWR, values)
            self.copy(values)
            return
        if len(values) > 1:
            self.danger("many words for one register")
        for value in values:
            if register == CRC:
                self.check_crc(value)
                continue
            if register != LOUT:
                self.crc = crc.word(self.crc, register, value)
            self.set(register, value)

    def check_crc(self, value):
        self.crc_checks += 1
        if value != self.crc:
            self.crc_errors.append(self.position)
        else:
            self.unproven = False
        self.crc = 0
        self.unchecked = False

    def set(self, register, value):
        if register == FAR:
            if self.shift:
                self.danger("part of a frame")
                self.shift = []
            if self.die.family.split(value)[1]:
                self.danger("reserved bits of FAR")
            self.far, self.pads, self.copied, self.moved = value, 0, False, True
            # UG570: the command that CMD holds is executed whenever FAR is loaded.
            self.execute()
            if self.command == START:
                self.start(value)
        elif register == CMD:
            if value == MFW:
                if self.command == MFW:
                    self.danger("MFW twice")
                self.copies = 0
            self.command = value
            self.nops, self.wait = 0, WAITS.get(value, 0)
            if self.shift:
                self.danger("part of a frame")
                self.shift = []
            self.execute()
        elif register == MASK_REGISTER:
            self.mask = value
            if value & ~(CTL0_BITS | CTL1_BITS[self.family]):
                self.danger(f"MASK {value:08x}")
        elif register == CTL0:
            if self.mask & ~CTL0_BITS or value & ~CTL0_BITS:
                self.danger(f"CTL0 {value:08x} through {self.mask:08x}")
            if self.mask & ~value & NO_FALLBACK:
                self.danger("the fallback on")
        elif register == CTL1:
            allowed = CTL1_BITS[self.family]
            if self.mask & ~allowed or value & ~allowed:
                self.danger(f"CTL1 {value:08x} through {self.mask:08x}")
            self.ctl1 = self.ctl1 & ~self.mask | value & self.mask
        elif register == IDCODE:
            self.identified = value & 0x0FFFFFFF == self.idcode
            if not self.identified:
                self.danger("another device's IDCODE")
        elif register == COR0 and self.family == "ultrascale+":
            if value != COR0_VALUE:
                self.danger(f"COR0 {value:08x}")
        else:
            self.danger("register " + REGISTERS.get(register, str(register)))

    def execute(self):
        command = self.command
        if command not in COMMANDS[self.family]:
            self.danger(f"command {command}")
        elif command == WCFG:
            self.drop_buffer()
        elif command == MFW:
            pass
        elif command == RCRC:
            self.crc = 0
        elif command == GRESTORE:
            self.restore()
        elif command == SHUTDOWN:
            self.masks_closed()
            self.stopped = True
        elif command == START:
            self.starting = True
        elif command == AGHIGH:
            if not self.stopped:
                self.danger("wires high in a running device")
            self.masks_closed()
            self.high = True
        elif command == LFRM:
            if not self.restored_here:
                self.danger("wires let go before GRESTORE")
            self.masks_closed()
            self.high = False
        elif command == URAM:
            self.cleared_here = True
        elif command == DESYNC:
            self.leave()

    def start(self, far):
        """UG570: CMD is executed again with each FAR; this is what starts."""
        if far != self.die.family.park:
            self.danger("started at the address of a frame")
        self.starting, self.stopped, self.unproven = False, False, True

    def leave(self):
        self.synced = False
        self.drop_buffer()
        if self.starting:
            self.danger("a START that no address carried out")
        if self.unproven:
            self.danger("no CRC after the start")
        if self.cleared_here and not self.restored_here:
            self.danger("block memory cleared, and not filled")
        if self.unchecked:
            self.danger("frames that no CRC was checked after")
            self.unchecked = False

    # Frames

    def frame_data(self, values):
        if self.command != WCFG:
            self.danger("frames without WCFG")
        if not self.identified:
            self.danger("frames before IDCODE")
        if self.copied:
            self.danger("frames after a copy without a new FAR")
        if self.restored_here:
            self.danger("frames after GRESTORE")
        if self.family == "ultrascale+" and not self.stopped and not self.ctl1 & GSR_MASKS:
            self.danger("frames of a running design")
        self.moved = False
        length = self.die.family.words
        data = self.shift + list(values)
        whole = len(data) // length * length
        for at in range(0, whole, length):
            self.push(data[at : at + length])
        self.shift = data[whole:]

    def push(self, frame):
        """A frame came in whole: the one before it goes where FAR points."""
        if self.buffer is not None:
            if self.pads:
                self.pads -= 1
                if self.buffer != self.blank:
                    self.danger("a pad that is not zero")
            else:
                self.commit(self.buffer)
                self.advance()
        self.buffer = frame
        self.saved = False

    def advance(self):
        if self.far is None or not self.die.exists(self.far):
            return
        self.far, row_ended = self.die.advance(self.far)
        self.pads = 2 if row_ended else 0

    def commit(self, frame):
        self.unchecked = True
        far = self.far
        if far is None or not self.die.exists(far):
            self.danger("a frame where none is")
            return
        fields, _ = self.die.family.split(far)
        if fields["block"] == MASK:
            self.commit_mask(self.die.column_of(far), frame)
            return
        self.written.add(far)
        if self.ctl1 & GSR_MASKS:
            if fields["block"] != LOGIC:
                self.danger("a GSR mask in block RAM")
            (self.opened.discard if self.restored else self.opened.add)(far)

    def commit_mask(self, column, frame):
        self.masks_pending = True
        if frame == self.kept:
            self.masked.add(column)
        else:
            self.masked.discard(column)
            if frame != self.blank:
                self.danger("a column's mask that is neither on nor off")

    def copy(self, values):
        if self.command != MFW:
            self.danger("a copy without MFW")
        if not self.identified:
            self.danger("frames before IDCODE")
        if any(values) or len(values) not in (4, 8):
            self.danger("a copy with something in it")
        if self.copied:
            self.danger("two copies for one FAR")
        if self.pads:
            self.danger("a copy between rows")
        if self.buffer is None:
            self.danger("a copy of nothing")
            return
        if self.copies == 0 and self.moved:
            # Whether silicon obeys the address here is written nowhere.
            self.danger("an address between a frame and its first copy")
        if self.restored_here:
            self.danger("a copy after GRESTORE")
        self.copies += 1
        self.commit(self.buffer)
        self.copied = self.saved = True

    def drop_buffer(self):
        """What is in the buffer is lost; unless it was copied, it must be a pad."""
        if self.buffer is not None and not self.saved and self.buffer != self.blank:
            self.danger("a frame left in the buffer")
        self.buffer = None

    def masks_closed(self):
        """What these commands do while masks are written is told nowhere."""
        if self.ctl1 & GSR_MASKS:
            self.danger("a state changed while masks are written")

    def restore(self):
        self.masks_closed()
        if not self.stopped:
            self.danger("flip-flops reset in a running device")
        self.restored_here, self.masks_pending = True, False
        if self.family == "series7":
            self.reset.update(set(self.die.logic_columns()) - self.masked - self.die.always_open())
        else:
            self.reset.update(self.die.column_of(far) for far in self.opened)
            self.restored = True

    # The end

    def finish(self):
        if self.synced:
            self.leave()
            self.danger("left in sync")
        if self.shift:
            self.danger("part of a frame")
        if self.stopped:
            self.danger("left shut down")
        if self.masks_pending:
            self.danger("masks left for the next restart")
        if self.high:
            self.danger("left with every wire high")
        if self.ctl1:
            self.danger("CTL1 left changed")
        if self.restored and self.opened:
            self.danger("GSR masks left off")

    def report(self):
        return {
            "written": sorted(self.written),
            "reset": sorted(self.reset),
            "dangers": self.dangers,
            "crc_checks": self.crc_checks,
            "crc_errors": self.crc_errors,
        }


def run(devices, idcode, data):
    """The report on one stream given to a device fresh from its full bitstream."""
    device = Device(idcode, devices[idcode])
    words = array.array("I", data[: len(data) // 4 * 4])
    if sys.byteorder == "little":
        words.byteswap()
    device.consume(words.tolist())
    return device.report()


def main():
    devices = load()
    source, out = sys.stdin.buffer, sys.stdout
    while head := source.read(8):
        idcode, length = struct.unpack(">II", head)
        json.dump(run(devices, idcode & 0x0FFFFFFF, source.read(length)), out, separators=(",", ":"))
        out.write("\n")
        out.flush()


if __name__ == "__main__":
    main()
