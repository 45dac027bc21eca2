"""Ends of RTSP streams that rtpjitterbuffer keeps for ever ahead of slow elements.

It waits until its timers are done before it passes an end on, and its thread for timers sleeps on
the same condition: nothing wakes either of them, and a stop of the pipeline waits, too. Seen in
GStreamer 1.22 without elements of Headrace.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from headrace.gstreamer.elements.bindings import Gst

QUIET_S = 5.0  # between two looks: above a jitter buffer's latency, which is 2 s in rtspsrc


class HeldEnds:
    """Wakes elements upstream that have an end and moved nothing between two looks."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget earlier looks: in a pause nothing moves either."""
        self._next_s = time.monotonic() + QUIET_S
        self._pushed: dict[str, int] = {}

    @property
    def is_due(self) -> bool:
        """True once it is time for another look."""
        return time.monotonic() >= self._next_s

    def wake(self, sinks: list[Gst.Pad]) -> list[str]:
        """Wake elements that keep an end from pads that wait for a frame; returns their names."""
        before = self._pushed
        self.restart()
        found = []
        for jitter in (one for sink in sinks for one in _jitter_buffers(sink)):
            path, ended = jitter.get_path_string(), _has_ended(jitter.get_static_pad("sink"))
            self._pushed[path] = jitter.get_property("stats").get_value("num-pushed")
            is_held = ended and not _has_ended(jitter.get_static_pad("src"))
            if is_held and before.get(path) == self._pushed[path]:
                jitter.set_state(Gst.State.PAUSED)
                jitter.set_state(Gst.State.PLAYING)  # signals the condition
                found.append(jitter.get_name())
        return found


def _has_ended(pad: Gst.Pad) -> bool:
    return pad.get_sticky_event(Gst.EventType.EOS, 0) is not None


def _jitter_buffers(sink: Gst.Pad) -> Iterator[Gst.Element]:
    """The jitter buffers that a pad's frames come through, into and out of bins."""
    pads, seen = [sink], set()
    while pads:
        pad = pads.pop().get_peer()
        while isinstance(pad, Gst.GhostPad):  # into a bin
            pad = pad.get_target()
        if isinstance(pad, Gst.ProxyPad):  # out of one
            pads.append(pad.get_internal())
            continue
        element = None if pad is None else pad.get_parent_element()
        if element is None or element in seen:
            continue
        seen.add(element)
        factory = element.get_factory()
        if factory is not None and factory.get_name() == "rtpjitterbuffer":
            yield element
        else:
            pads.extend(element.sinkpads)
