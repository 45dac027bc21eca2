"""nvdslogger: prints the rate of each source."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from noria.gst.bindings import BaseTransform, Gst
from noria.gst.element import NVMM, NvElement, Property, gproperties, guarded, pad
from noria.gst.tree import frames_of
from noria.pyds.bridge import bridge

PROPERTIES = {"fps-measurement-interval-sec": Property("uint", 5, "seconds between two lines")}


class NvDsLogger(NvElement, BaseTransform):
    """Prints the frames a second of each source, of the last seconds and of all."""

    __gtype_name__ = "GstNvDsLogger"
    __gstmetadata__ = ("NvDsLogger plugin", "Generic", "Prints rates of sources", "Noria")
    __gsttemplates__ = (pad("sink", "sink", "always", NVMM), pad("src", "src", "always", NVMM))
    PROPERTIES = PROPERTIES
    __gproperties__ = gproperties(PROPERTIES)

    def __init__(self) -> None:
        super().__init__()
        self.set_in_place(True)
        self.set_passthrough(True)
        self.setup()

    def do_start(self) -> bool:
        """Count from 0."""
        self._all: Counter[int] = Counter()
        self._since: Counter[int] = Counter()
        self._started_s = self._printed_s = 0.0
        return True

    def do_stop(self) -> bool:
        """Print the rates of the whole run."""
        self._print()
        return True

    def _process(self, buffer: Any) -> Any:
        now = time.monotonic()
        self._started_s = self._started_s or now
        self._printed_s = self._printed_s or now
        batch = bridge().get(hash(buffer))
        for frame in [] if batch is None else frames_of(batch):
            self._all[int(frame.source_id)] += 1
            self._since[int(frame.source_id)] += 1
        if now - self._printed_s >= max(1, self.values["fps-measurement-interval-sec"]):
            self._print()
            self._printed_s, self._since = now, Counter()
        return Gst.FlowReturn.OK

    do_transform_ip = guarded(_process, Gst.FlowReturn.ERROR)

    def _print(self) -> None:
        now = time.monotonic()
        if self._all and now > self._printed_s:
            rates = (
                f"source {source}: {self._since[source] / (now - self._printed_s):.2f} "
                f"({count / (now - self._started_s):.2f})"
                for source, count in sorted(self._all.items())
            )
            print("**PERF: frames a second (average):", ", ".join(rates), flush=True)
