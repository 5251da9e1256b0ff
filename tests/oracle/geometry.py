"""Columns and rows of a device, read from the tables in bitstream/geometry.

A parser of its own, written from the grammar at the top of those tables, so
that a mistake in the project's parser is not repeated here.
"""

import pathlib

LOGIC, BRAM, MASK = 0, 1, 2

TABLES = pathlib.Path(__file__).resolve().parents[2] / "bitstream" / "geometry"


class Family:
    """Where a frame address keeps what, and how long a frame is."""

    def __init__(self, name, words, park, block, half, row, column, minor):
        self.name = name
        self.words = words
        self.park = park
        # Each field is (lowest bit, width).
        self.fields = {"block": block, "half": half, "row": row, "column": column, "minor": minor}

    def split(self, far):
        """The fields of an address, and the bits that belong to none."""
        rest, fields = far, {}
        for name, place in self.fields.items():
            if place is None:
                fields[name] = 0
                continue
            shift, width = place
            mask = ((1 << width) - 1) << shift
            fields[name] = (far & mask) >> shift
            rest &= ~mask
        return fields, rest

    def join(self, block, half, row, column, minor):
        values = {"block": block, "half": half, "row": row, "column": column, "minor": minor}
        far = 0
        for name, place in self.fields.items():
            if place is not None:
                far |= values[name] << place[0]
        return far


FAMILIES = {
    "series7": Family("series7", 101, 0x03BE0000, (23, 3), (22, 1), (17, 5), (7, 10), (0, 7)),
    "ultrascale": Family("ultrascale", 123, 0x03BE0000, (23, 3), None, (17, 6), (7, 10), (0, 7)),
    "ultrascale+": Family("ultrascale+", 93, 0x07FC0000, (24, 3), None, (18, 6), (8, 10), (0, 8)),
}

# Columns whose mask was zero in every genuine file although they are in no
# region: {layout: (halves, rows, columns)}.
_SIX = tuple(range(12, 18))
_ALWAYS_OPEN = {
    "xc7a35t": _SIX,
    "xc7a100t": _SIX,
    "xc7z020": tuple(range(18)) + tuple(range(44, 50)),
}


class Die:
    """The frames of one die, in configuration order."""

    def __init__(self, name, family):
        self.name = name
        self.family = family
        # (block, half, row) in order -> frames of each column.
        self.rows = {}

    def finish(self):
        """Derives the masks of 7-series and the order of rows of each block."""
        if self.family.name == "series7":
            for (block, half, row), columns in list(self.rows.items()):
                if block == LOGIC:
                    self.rows[(MASK, half, row)] = [1] * len(columns)
        order = list(self.rows)
        self.after_row = dict(zip(order, order[1:]))
        for key, following in list(self.after_row.items()):
            # Logic goes over into block RAM; nothing is known to follow block RAM.
            if key[0] != following[0] and (key[0], following[0]) != (LOGIC, BRAM):
                del self.after_row[key]

    def exists(self, far):
        fields, rest = self.family.split(far)
        columns = self.rows.get((fields["block"], fields["half"], fields["row"]), [])
        if rest or fields["column"] >= len(columns):
            return False
        return fields["minor"] < columns[fields["column"]]

    def advance(self, far):
        """(the next address or None, whether a row ended); for an address that exists."""
        at, _ = self.family.split(far)
        key = (at["block"], at["half"], at["row"])
        columns = self.rows[key]
        if at["minor"] + 1 < columns[at["column"]]:
            return far + 1, False
        if at["column"] + 1 < len(columns):
            return self.family.join(*key, at["column"] + 1, 0), False
        following = self.after_row.get(key)
        return (None if following is None else self.family.join(*following, 0, 0)), True

    def column_of(self, far):
        """The address of the column of logic that a frame belongs to."""
        at, _ = self.family.split(far)
        return self.family.join(LOGIC, at["half"], at["row"], at["column"], 0)

    def logic_columns(self):
        for (block, half, row), columns in self.rows.items():
            if block == LOGIC:
                for column in range(len(columns)):
                    yield self.family.join(LOGIC, half, row, column, 0)

    def always_open(self):
        """Columns of logic whose mask is zero in every file of this die."""
        return {
            self.family.join(LOGIC, half, 0, column, 0)
            for half in (0, 1)
            for column in _ALWAYS_OPEN.get(self.name, ())
        }


def _range(text):
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _columns(runs):
    columns = []
    for run in runs:
        count, times, frames = run.rpartition("x")
        columns += [int(frames)] * (int(count) if times else 1)
    return columns


def load(tables=TABLES):
    """{IDCODE without revision: Die} of every device of one die with a layout."""
    layouts, devices = {}, {}
    die = None
    for path in sorted(tables.glob("*.txt")):
        for line in path.read_text().splitlines():
            if not line or line.startswith("#"):
                continue
            word = line.split()
            if word[0] == "layout":
                die = layouts[word[1]] = Die(word[1], FAMILIES[word[2]])
            elif word[0] == "device":
                if word[4] == "layout":
                    devices[int(word[1], 16)] = word[5]
            else:
                block = {"logic": LOGIC, "bram": BRAM}[word[0]]
                half = {"top": 0, "bottom": 1}.get(word[1])
                rows = word[1] if half is None else word[2]
                columns = _columns(word[word.index(":") + 1 :])
                for row in _range(rows):
                    die.rows[(block, half or 0, row)] = columns
    for die in layouts.values():
        die.finish()
    return {idcode: layouts[name] for idcode, name in devices.items()}
