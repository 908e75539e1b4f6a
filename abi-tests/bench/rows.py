"""What was measured, as rows of a CSV, and what several rounds say together. Used by run, table and picture.

A row is one cell of one round of one side: what it took (or why there is nothing), and what a cache line took from
processor to processor just before and after. By that rounds are sorted into places, for the hypervisor may move processors.
"""
import csv
import statistics
from collections import namedtuple
from pathlib import Path

Row = namedtuple("Row", "round provider side work size median best unit before after why")
SIDES = ("reference", "ucx", "socket", "ours")
# Bare copies by the kernel, by what a work's name says of it: that both send at once, that the data was just written.
KERNEL_FLOORS = {"": "floor-kernel", "both": "floor-kernel-both", "fresh": "floor-kernel-fresh",
                 "fresh-both": "floor-kernel-fresh-both"}
# By the ns of a cache line: threads of one core have one first cache; near are those with a common second or third one that
# is close; far is another socket or die.
NEAR, MID, FAR = 45, 90, 230
PLACES = {"core": f"a line below {NEAR} ns, two threads of one core", "near": f"a line of {NEAR} to {MID} ns",
          "mid": f"a line of {MID} to {FAR} ns", "far": f"a line of {FAR} ns or more", "any": "more processes than two, or one alone"}


def place_of(line):
    return "core" if line < NEAR else "near" if line < MID else "mid" if line < FAR else "far"


def number(text):
    return float(text) if text not in ("", "-") else None


class Writer:
    def __init__(self, path, about):
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file = open(path, "w", newline="", encoding="utf-8")
        for key, value in about.items():
            self.file.write(f"# {key}: {value}\n")
        self.csv = csv.writer(self.file)
        self.csv.writerow(Row._fields)

    def write(self, rows):
        self.csv.writerows(["-" if v is None else v for v in row] for row in rows)
        self.file.flush()


def read(path):
    """What is said of the run, and its rows."""
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    about = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# "))
    rows = []
    for r in csv.DictReader(line for line in lines if not line.startswith("#")):
        rows.append(Row(int(r["round"]), r["provider"], r["side"], r["work"], int(r["size"]), number(r["median"]),
                        number(r["best"]), r["unit"], number(r["before"]), number(r["after"]), r["why"]))
    return about, rows


class Cells:
    """Rows by provider, work, size, place and side."""

    def __init__(self, rows):
        self.by, self.reasons, self.units, self.moved = {}, {}, {}, 0
        self.floors = {}  # (provider, size): memcpy, in ns
        self.kernel = {}  # (provider, floor, place, size): copies by the kernel between processes, in ns
        self.rings = {}  # (provider, place): messages of 8 bytes through a bare ring, in M/s
        for row in rows:
            key = (row.provider, row.work, row.size)
            if row.work == "floor-memcpy" and row.best is not None:
                self.floors.setdefault((row.provider, row.size), []).append(row.best)
                continue
            if row.work in ("floor-ring", *KERNEL_FLOORS.values()) and row.median is not None:
                place = place_of(row.before)
                if place != place_of(row.after):
                    continue
                if row.work == "floor-ring":
                    self.rings.setdefault((row.provider, place), []).append(row.median)
                else:
                    self.kernel.setdefault((row.provider, row.work, place, row.size), []).append(row.median)
                continue
            self.units.setdefault(key, row.unit) if row.median is not None else None
            if row.median is None:
                self.reasons[(*key, row.side)] = row.why
                continue
            place = "any"
            if row.before is not None:
                place = place_of(row.before)
                if place != place_of(row.after):
                    self.moved += 1
                    continue
            self.by.setdefault(key, {}).setdefault(place, {}).setdefault(row.side, []).append(row)

    def places(self, provider):
        found = {place for key, places in self.by.items() if key[0] == provider for place in places}
        return [place for place in PLACES if place in found]

    def value(self, key, place, side):
        rows = self.by.get(key, {}).get(place, {}).get(side)
        return statistics.median(r.median for r in rows) if rows else None

    def line(self, key, place, side="ours"):
        rows = [r for r in self.by.get(key, {}).get(place, {}).get(side, []) if r.before is not None]
        return statistics.median((r.before + r.after) / 2 for r in rows) if rows else None

    def times(self, key, place, other):
        """How many times better ours is than the other: median, least, most of the rounds in which both were in this
        place; of all rounds' medians alone, if there is none."""
        sides = self.by.get(key, {}).get(place, {})
        if "ours" not in sides or other not in sides:
            return None
        small = self.units[key] in ("ns", "B")
        theirs = {r.round: r.median for r in sides[other]}
        ratios = [theirs[r.round] / r.median if small else r.median / theirs[r.round]
                  for r in sides["ours"] if r.round in theirs and r.median and theirs[r.round]]
        if ratios:
            return statistics.median(ratios), min(ratios), max(ratios)
        one, two = self.value(key, place, other), self.value(key, place, "ours")
        if not one or not two:
            return None
        ratio = one / two if small else two / one
        return ratio, None, None

    def copy_floor(self, provider, size):
        """What one memcpy of so many bytes takes, in ns."""
        return between(((s, min(v)) for (p, s), v in self.floors.items() if p == provider), size)

    def is_one_kernel_copy(self, key, place, side, times):
        """Whether this side is within so many times of bare copies by the kernel, so that no library that has the kernel
        copy can be so much quicker. Not where memory is shared, of which that says nothing."""
        provider, work, size = key
        if work.endswith("-shared"):
            return False
        both = work.endswith("-both")
        floor = KERNEL_FLOORS["-".join(kind for kind, is_so in (("fresh", "fresh" in work), ("both", both)) if is_so)]
        points = ((s, statistics.median(v)) for (p, f, at, s), v in self.kernel.items() if (p, f, at) == (provider, floor, place))
        copy, value = between(points, size), self.value(key, place, side)
        if not copy or not value:
            return False
        if self.units[key] == "ns":
            return value < copy * times
        return self.units[key] == "GB/s" and value * times > (2 if both else 1) * size / copy

    def floor(self, key, place):
        """The least that the machine could take: a cache line, a copy, or for 8 bytes a second a bare ring."""
        provider, work, size = key
        if provider == "shm" and size == 8 and work in ("rate", "rate-inject", "rate-steady"):
            rings = self.rings.get((provider, place))
            return statistics.median(rings) if rings else None
        if self.units.get(key) not in ("ns", "GB/s") or not in_bytes(work) or "Allreduce" in work:
            return None
        copy = self.copy_floor(provider, size)
        if self.units[key] == "GB/s":
            return size / copy if copy else None
        line = None if work.endswith("-shared") and work.startswith(("rma", "fetch", "compare")) else self.line(key, place)
        both = [v for v in (line, copy) if v]
        return max(both) if both else None


def between(points, size):
    """The value at a size between two of the (size, value) points; None outside of them."""
    points = sorted(points)
    for (s0, v0), (s1, v1) in zip(points, points[1:]):
        if s0 <= size <= s1:
            return v0 + (v1 - v0) * (size - s0) / (s1 - s0)
    return None


def in_bytes(work):
    """Whether the sizes of a work are bytes, and not how many of something."""
    return not work.startswith(("match-", "poll", "threads-", "senders", "all-to-all", "memory-", "set-up"))


def size_text(size, work=""):
    if not in_bytes(work):
        return str(size)
    for unit, letter in ((1 << 20, "M"), (1 << 10, "K")):
        if size >= unit:
            return f"{size // unit} {letter}iB"
    return f"{size} B"


def value_text(value, unit):
    if value is None:
        return "-"
    if unit == "ns":
        for scale, name in ((1e6, "ms"), (1e4, "us")):
            if value >= scale:
                return f"{value / (1e6 if name == 'ms' else 1e3):.3g} {name}"
        return f"{value:.0f} ns"
    if unit == "B":
        return f"{value / 1024:.1f} KiB"
    return f"{value:.3g} {unit}"
