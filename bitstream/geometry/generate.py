#!/usr/bin/env python3
"""Writes series7.txt and ultrascale.txt from the two geometry collections.

usage: generate.py SERIES7.json ULTRASCALE.json [OUTPUT-DIRECTORY]

Only the standard library is used, and the same input gives the same bytes.
README.md says where the two collections come from.
"""

import json
import re
import sys
from itertools import groupby
from pathlib import Path

GRAMMAR = """\
# One statement a line, words divided by one space; '#' begins a comment line.
#
#   layout NAME FAMILY            begins a layout: the columns of one die
#   BLOCK WHERE : RUN...          some of its rows, one RUN after the other from column 0
#   device IDCODE FAMILY NAMES layout NAME
#                                 parts of one die; NAMES divided by commas
#   device IDCODE FAMILY NAMES dies SLR=IDCODE=NAME...
#                                 parts of several dies, in configuration order
#   device IDCODE FAMILY NAMES unknown
#   device IDCODE FAMILY NAMES unknown-dies
#                                 parts of one die, of several dies, columns not known
#
#   FAMILY  series7 | ultrascale | ultrascale+
#   BLOCK   logic | bram
#   WHERE   top ROWS | bottom ROWS (series7), ROWS (the others)
#   ROWS    a row or a range of rows with equal columns: 0 | 0-4
#   RUN     FRAMES, or COUNTxFRAMES: so many columns of so many frames each
#   IDCODE  0x and 8 hexadecimal digits; the upper 4 bits (the revision) are 0
#
# A layout's lines come in configuration order: all of logic, then all of bram;
# in each, top rows, then bottom rows, row 0 first.
"""

# Parts that the first collection leaves out: UG470 gives their bitstreams the
# length of the named part's, whose die they are.
SAME_DIE = {"xc7a15t": (0x0362E093, "xc7a35t"), "xc7a75t": (0x03632093, "xc7a100t")}

# The fullest part of those that share an IDCODE is named first.
SUFFIXES = ["ev", "eg", "cg"]


def runs(columns):
    """[36, 36, 28] -> "2x36 28"."""
    groups = [(frames, len(list(same))) for frames, same in groupby(columns)]
    return " ".join(str(f) if n == 1 else f"{n}x{f}" for f, n in groups)


def row_lines(block, half, rows):
    """Lines for consecutive rows; rows is [(number, columns)], ascending."""
    for columns, same in groupby(rows, key=lambda row: row[1]):
        numbers = [number for number, _ in same]
        span = str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"
        where = f"{half} {span}" if half else span
        yield f"{block} {where} : {runs(columns)}"


class Layouts:
    """Layouts by their text, so that equal dies share one."""

    def __init__(self):
        self.by_text = {}

    def name(self, wanted, family, lines):
        key = (family, tuple(lines))
        return self.by_text.setdefault(key, wanted)

    def text(self):
        for (family, lines), name in self.by_text.items():
            yield f"layout {name} {family}"
            yield from lines
            yield ""


def series7(path):
    """The die of each IDCODE; keys of "columns" are "block,half,row"."""
    layouts, devices = Layouts(), []
    source = json.loads(path.read_text())
    for idcode, entry in sorted(source.items(), key=lambda item: item[1]["first_part"]):
        name = re.match(r"xc7(a\d+t|k\d+t|s\d+|z\d+)", entry["first_part"]).group(0)
        rows = {}
        for key, columns in entry["columns"].items():
            block, half, row = (int(part) for part in key.split(","))
            rows.setdefault((block, half), []).append((row, columns))
        lines = []
        for (block, half), found in sorted(rows.items()):
            found.sort()
            assert [row for row, _ in found] == list(range(len(found))), name
            lines += row_lines(["logic", "bram"][block], ["top", "bottom"][half], found)
        layout = layouts.name(name, "series7", lines)
        devices.append(f"device {int(idcode, 16):#010x} series7 {name} layout {layout}")
        devices += [
            f"device {code:#010x} series7 {part} layout {layout}"
            for part, (code, of) in SAME_DIE.items()
            if of == name
        ]
    return layouts, devices


def rank(name):
    """xc before xa, then the fullest first."""
    suffix = next((i for i, s in enumerate(SUFFIXES) if name.endswith(s)), 0)
    return (not name.startswith("xc"), suffix, name)


def ultrascale(path):
    """The dies of each part; parts of one IDCODE are written together."""
    layouts, shapes = Layouts(), {}
    source = json.loads(path.read_text())
    # A layout is named after its first part, an xc one where there is one.
    for name, entry in sorted(source.items(), key=lambda item: rank(item[0])):
        plus = name not in ("xcku025", "xcku035")
        family = "ultrascale+" if plus else "ultrascale"
        dies = []
        by_order = sorted(entry["slrs"].items(), key=lambda slr: slr[1]["config_order"])
        for slr, die in by_order:
            rows = sorted((int(row), columns) for row, columns in die["rows"].items())
            assert [row for row, _ in rows] == list(range(len(rows))), name
            lines = list(row_lines("logic", "", [(r, c["std"]) for r, c in rows]))
            lines += row_lines("bram", "", [(r, c["bram"]) for r, c in rows])
            dies.append((slr, int(die["idcode"], 16), layouts.name(name, family, lines)))
        if len(dies) == 1:
            shape = f"layout {dies[0][2]}"
        else:
            shape = "dies " + " ".join(f"{s}={i:#010x}={l}" for s, i, l in dies)
        shapes.setdefault((dies[0][1], family), []).append((name, shape))
    devices = []
    for (idcode, family), parts in sorted(shapes.items()):
        # Parts of one IDCODE with dies of their own (the first die's IDCODE is
        # all that a bitstream says) stand on lines of their own.
        for shape in sorted({shape for _, shape in parts}, key=len, reverse=True):
            names = sorted((name for name, s in parts if s == shape), key=rank)
            devices.append(f"device {idcode:#010x} {family} {','.join(names)} {shape}")
    return layouts, devices


def write(path, title, made):
    layouts, devices = made
    lines = [f"# {title}", "# Written by generate.py; see README.md for source and licence.", "#"]
    text = "\n".join(lines) + "\n" + GRAMMAR + "\n"
    text += "\n".join([*layouts.text(), *devices]) + "\n"
    path.write_text(text)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    here = Path(sys.argv[3] if len(sys.argv) == 4 else Path(__file__).parent)
    write(
        here / "series7.txt",
        "Columns of 7-series dies. From prjxray-db, CC0-1.0.",
        series7(Path(sys.argv[1])),
    )
    write(
        here / "ultrascale.txt",
        "Columns of UltraScale and UltraScale+ dies. From bitfiltrator, MIT.",
        ultrascale(Path(sys.argv[2])),
    )


if __name__ == "__main__":
    main()
