"""Elements of a pipeline: properties by name, and pads that come and go."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Any

from headrace._core.errors import ConfigError
from headrace._core.near import did_you_mean, near_names
from headrace.gstreamer.elements.bindings import GObject, Gst, structure_of

_TRUTH = {"true": True, "false": False}


class Node:
    """An element of a pipeline, by its name.

    Attributes:
        element: GStreamer's element.
    """

    def __init__(self, element: Gst.Element) -> None:
        self.element = element
        self._promised: set[Gst.Pad] = set()  # pads for outputs that come later

    @property
    def name(self) -> str:
        """The name within its pipeline."""
        return str(self.element.get_name())

    def set(self, properties: Mapping[str, object] | str, value: object = None) -> Node:
        """Set properties: a mapping, or a name and a value.

        Raises:
            ConfigError: the element has no such property, or the value does not fit it.
        """
        table = {properties: value} if isinstance(properties, str) else properties
        for name, one in table.items():
            self._set(name, one)
        return self

    def set_known(self, properties: Mapping[str, object]) -> None:
        """Set those properties that the element has."""
        for name, value in properties.items():
            if self.element.find_property(name) is not None:
                self._set(name, value)

    def _set(self, name: str, value: object) -> None:
        spec = self._spec(name)
        try:
            self.element.set_property(name, _converted(spec, value))
        except (TypeError, ValueError, OverflowError):
            raise ConfigError(
                f"{name} is set to {value!r}", where=self.name, expected=_allowed(spec)
            ) from None

    def get(self, name: str) -> Any:
        """Return the value of a property; a choice as its number.

        Raises:
            ConfigError: the element has no such property.
        """
        self._spec(name)
        value = self.element.get_property(name)
        return int(value) if isinstance(value, GObject.GEnum) else value

    def _spec(self, name: str) -> GObject.ParamSpec:
        spec = self.element.find_property(name)
        if spec is None:
            names = [one.name for one in self.element.list_properties()]
            factory = self.element.get_factory().get_name()
            raise ConfigError(
                f"{factory} has no property {name!r}",
                where=self.name,
                fix=did_you_mean(*near_names(name, names))
                or f"headrace exec gst-inspect-1.0 {factory}",
            )
        return spec

    def pad(self, direction: Gst.PadDirection, name: str = "", caps: Gst.Caps | None = None) -> Any:
        """Return a pad, made on request if it must be; None for one that comes later.

        Args:
            direction: `Gst.PadDirection.SRC` or `SINK`.
            name: of the pad or its template; "" takes the first that is not linked.
            caps: that a pad made on request must have a part of.

        Raises:
            ConfigError: the element has no such pad.
        """
        if name and (static_pad := self.element.get_static_pad(name)) is not None:
            return static_pad
        if not name:
            for one in self.element.pads:
                free = not one.is_linked() and one not in self._promised
                if free and one.get_direction() == direction:
                    return one
        templates = [
            one
            for one in self.element.get_factory().get_static_pad_templates()
            if one.direction == direction and name in ("", one.name_template)
        ]
        for one in templates:
            fits = caps is None or one.get_caps().can_intersect(caps)
            if one.presence == Gst.PadPresence.REQUEST and fits:
                return self.element.request_pad_simple(one.name_template)
        if any(one.presence == Gst.PadPresence.SOMETIMES for one in templates):
            return None
        side = "output" if direction == Gst.PadDirection.SRC else "input"
        known = ", ".join(
            one.name_template
            for one in self.element.get_factory().get_static_pad_templates()
            if one.direction == direction
        )
        raise ConfigError(
            f"there is no free {side}{f' {name!r}' if name else ''}",
            where=self.name,
            expected=f"one of {known}" if known else f"an element that has an {side}",
        )

    def promise(self, pad: Gst.Pad) -> None:
        """Keep a pad for an output that comes later."""
        self._promised.add(pad)


def _converted(spec: GObject.ParamSpec, value: Any) -> Any:
    """A value, or its text, as a property of a type wants it.

    Raises:
        ValueError: it is none.
    """
    kind = spec.value_type
    if kind == GObject.TYPE_STRING:
        return None if value is None else str(value)
    if kind == GObject.TYPE_BOOLEAN:
        return _TRUTH[str(value).lower()] if str(value).lower() in _TRUTH else bool(int(value))
    if kind.is_a(Gst.Caps.__gtype__) and isinstance(value, str):
        if (caps := Gst.Caps.from_string(value)) is None:
            raise ValueError
        return caps
    if not isinstance(value, str) or hasattr(spec, "minimum"):
        number = float(value) if kind in (GObject.TYPE_FLOAT, GObject.TYPE_DOUBLE) else value
        number = int(number) if isinstance(number, bool | str) else number
        if hasattr(spec, "minimum") and not spec.minimum <= number <= spec.maximum:
            raise ValueError
        return number
    if kind.is_a(GObject.TYPE_ENUM):
        for number, one in type(spec.default_value).__enum_values__.items():
            if value in (one.value_nick, one.value_name, str(number)):
                return one
        raise ValueError
    if kind.is_a(GObject.TYPE_FLAGS):
        names = {
            one.first_value_nick: one for one in type(spec.default_value).__flags_values__.values()
        }
        if not all(part in names for part in value.split("+")):
            raise ValueError
        return reduce(or_, (names[part] for part in value.split("+")))
    return int(value)


def _allowed(spec: GObject.ParamSpec) -> str:
    """Values that a property takes, for a message."""
    if spec.value_type.is_a(GObject.TYPE_ENUM):
        values = type(spec.default_value).__enum_values__.values()
        return "one of " + ", ".join(one.value_nick for one in values)
    kind = spec.value_type.name.removeprefix("g")
    if hasattr(spec, "minimum"):
        return f"a value of type {kind} from {spec.minimum} to {spec.maximum}"
    return f"a value of type {kind}"


def link(source: Node, target: Node, source_pad: str = "", target_pad: str = "") -> None:
    """Link two elements; where the source's pad comes later, as soon as it is there.

    Raises:
        ConfigError: a pad is missing, or the two have no format in common.
    """
    out = source.pad(Gst.PadDirection.SRC, source_pad)
    caps = None if out is None else out.query_caps(None)
    into = target.pad(Gst.PadDirection.SINK, target_pad, caps)
    if out is None:
        target.promise(into)

        def found(_: object, pad: Gst.Pad) -> None:
            linkable = pad.get_direction() == Gst.PadDirection.SRC and not into.is_linked()
            if linkable and pad.can_link(into):
                _linked(pad, into)

        source.element.connect("pad-added", found)
    elif not _linked(out, into):
        raise ConfigError(
            f"the output of {source.name} cannot be linked to {target.name}",
            where=f"{source.name} -> {target.name}",
            expected=f"one format of both; {source.name} gives {_caps_name(out)}, "
            f"{target.name} takes {_caps_name(into)}",
            fix="put an nvvideoconvert between them",
        )


def _linked(out: Gst.Pad, into: Gst.Pad) -> bool:
    try:
        return bool(out.link(into) == Gst.PadLinkReturn.OK)
    except Gst.LinkError:
        return False


def _caps_name(pad: Gst.Pad) -> str:
    caps = pad.query_caps(None)
    features = caps.get_features(0) if caps.get_size() else None
    name = structure_of(caps).get_name() if caps.get_size() else "nothing"
    return f"{name}({features.to_string()})" if features and not caps.is_any() else name
