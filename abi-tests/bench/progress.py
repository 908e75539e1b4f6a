"""How far a run is, in one line of a terminal that is written over; elsewhere nothing is written."""
import sys
import time

WIDTH = 79


class Progress:
    def __init__(self, total, stream=sys.stderr, clock=time.monotonic):
        self.total, self.stream, self.clock = total, stream, clock
        self.shown = stream.isatty()
        self.done, self.start = 0, clock()

    def step(self, text):
        """The next of `total` begins."""
        if self.shown:
            print(f"\r{self.line(text):<{WIDTH}.{WIDTH}}", end="", file=self.stream, flush=True)
        self.done += 1

    def line(self, text):
        share = self.done / self.total
        line = f"{100 * share:.0f} %, {text} ..."
        # The first ones say too little of the rest.
        if share < 0.02:
            return line
        left = (self.clock() - self.start) * (1 - share) / share
        return f"{100 * share:.0f} %, {told(left)} left, {text} ..."

    def tell(self, text):
        """A line that stays."""
        self.end()
        print(text, file=self.stream)

    def end(self):
        if self.shown:
            print("\r" + " " * WIDTH + "\r", end="", file=self.stream, flush=True)


def told(seconds):
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
