"""Results of rules about places: regions, crowds, lines and directions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import field

from headrace._core.plain_record import PlainRecord


class ObjectAnalytics(PlainRecord, frozen=True):
    """Rules that one object fulfils in one frame, by name.

    Attributes:
        regions: it stands in these; outside of inverse ones.
        crowds: it is counted for these.
        crossed: it crossed these lines since the frame before.
        directions: it moves in these.
        stopped: True if it has not moved for ten frames.
    """

    regions: tuple[str, ...] = ()
    crowds: tuple[str, ...] = ()
    crossed: tuple[str, ...] = ()
    directions: tuple[str, ...] = ()
    stopped: bool = False

    @property
    def status(self) -> str:
        """The same as one text, as the original writes it."""
        parts = [f" ROI:{name}" for name in self.regions]
        parts += [" STOPPED "] if self.stopped else []
        parts += [f" DIR:{name} " for name in self.directions]
        parts += [f" LC:{name} " for name in self.crossed]
        return "".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """The fields that have a value; see docs/formats.md."""
        names = ("regions", "crowds", "crossed", "directions")
        entries: dict[str, Any] = {n: list(value) for n in names if (value := getattr(self, n))}
        return entries | ({"stopped": True} if self.stopped else {})


class FrameAnalytics(PlainRecord):
    """Counts of one frame, by the name of the rule.

    Attributes:
        inside: objects in each region, and objects counted for each crowd.
        crowded: True where a crowd has reached its threshold.
        crossed: objects that crossed each line since the frame before.
        crossed_total: the same, since the source began.
        classes: objects of each class; the most frequent count of a time window, if there is one.
    """

    inside: dict[str, int] = field(default_factory=dict)
    crowded: dict[str, bool] = field(default_factory=dict)
    crossed: dict[str, int] = field(default_factory=dict)
    crossed_total: dict[str, int] = field(default_factory=dict)
    classes: dict[int, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON has it; see docs/formats.md."""
        counts: dict[str, Mapping[Any, object]] = {
            "inside": self.inside,
            "crowded": self.crowded,
            "crossed": self.crossed,
            "crossed_total": self.crossed_total,
            "classes": {str(class_id): n for class_id, n in self.classes.items()},
        }
        return {name: dict(count) for name, count in counts.items() if count}
