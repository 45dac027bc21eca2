"""nvdslogger: prints the rate of each source."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable

from headrace._core.text import printable
from headrace.gstreamer.elements.bindings import Gst
from headrace.gstreamer.elements.element import NVMM, InPlace, through
from headrace.gstreamer.elements.properties import NO_EFFECT, Property, unheeded
from headrace.gstreamer.elements.tree import frames_of
from headrace.gstreamer.pyds.bridge import bridge

PROPERTIES = {
    "fps-measurement-interval-sec": Property("uint", 5, "seconds between two lines"),
    # False in 9.1, which has it first: applications for others want the lines, and set nothing.
    "show-fps": Property("bool", True, "print the rates"),
    "signal-handoffs": Property("bool", True, "accepted; there is no such signal"),
    "silent": Property("bool", True, NO_EFFECT),
    **unheeded("uint", 0, "latency", "sleep-time"),
    **unheeded("int64", 0, "ts-offset"),
    **unheeded("bool", False, "show-latency", "sync", "dump", "single-segment", "drop-allocation",
               "check-imperfect-offset", "check-imperfect-timestamp"),
}  # fmt: skip


class Rates:
    """Frames a second of each source, since the last line and of all.

    Attributes:
        names: of sources that have one.
    """

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self._all: Counter[int] = Counter()
        self._since: Counter[int] = Counter()
        self._started_s = self._printed_s = 0.0

    def count(self, sources: Iterable[int]) -> None:
        """Count a frame of each source."""
        now = time.monotonic()
        self._started_s = self._started_s or now
        self._printed_s = self._printed_s or now
        for source in sources:
            self._all[source] += 1
            self._since[source] += 1

    def forget(self, source: int) -> None:
        """Leave a source out from now on."""
        for table in (self._all, self._since, self.names):
            table.pop(source, None)

    def print_every(self, seconds: float) -> None:
        """Print a line if the last one is that long ago."""
        now = time.monotonic()
        if now - self._printed_s >= seconds:
            self.print_line()
            self._printed_s, self._since = now, Counter()

    def print_line(self) -> None:
        """Print the rates; nothing before the first frame."""
        now = time.monotonic()
        if self._all and now > self._printed_s:
            rates = (
                f"{self.names.get(source, f'source {source}')}: "
                f"{self._since[source] / (now - self._printed_s):.2f} "
                f"({count / (now - self._started_s):.2f})"
                for source, count in sorted(self._all.items())
            )
            print(printable(f"**PERF: frames a second (average): {', '.join(rates)}"), flush=True)


class NvDsLogger(InPlace):
    """Prints the frames a second of each source, of the last seconds and of all."""

    __gtype_name__ = "GstNvDsLogger"
    ABOUT = ("NvDsLogger plugin", "Generic", "Prints rates of sources")
    __gsttemplates__ = through(NVMM)
    PROPERTIES = PROPERTIES

    def do_start(self) -> bool:
        """Count from 0."""
        self._rates = Rates()
        return True

    def do_stop(self) -> bool:
        """Print the rates of the whole run."""
        if self.values["show-fps"]:
            self._rates.print_line()
        return True

    def process(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        """Count the frames of a batch, and print the rates when it is time."""
        batch = bridge().get(hash(buffer))
        if batch is not None:
            self._rates.count(int(frame.source_id) for frame in frames_of(batch))
            if self.values["show-fps"]:
                self._rates.print_every(max(1, self.values["fps-measurement-interval-sec"]))
        return Gst.FlowReturn.OK
