"""The elements of a pipeline with their links and caps, for a drawing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headrace._core.pages.graphs import Box, Link
from headrace.gstreamer.elements.bindings import Gst, structure_of
from headrace.gstreamer.elements.element import NvElement

_SIZES = ("width", "height")


def pipeline_graph(
    pipeline: Gst.Pipeline, told: Callable[[Gst.Element], str]
) -> tuple[tuple[Box, ...], tuple[Link, ...]]:
    """List the elements and links of a pipeline as they are now.

    Bins of stock elements are opened, and those at the top are the groups; Headrace's own elements
    are boxes even where they are bins.

    Args:
        pipeline: to be drawn.
        told: gives a line of text for an element, or an empty one.
    """
    elements = list(_elements(pipeline))
    keys = {element.get_path_string() for element, _ in elements}
    boxes = tuple(_box(element, group, told(element)) for element, group in elements)
    links = []
    for element, _ in elements:
        for src in element.srcpads:
            target = _reached(src, keys)
            if target is not None:
                lines, hint = _caps_lines(src.get_current_caps())
                links.append(Link(element.get_path_string(), target, lines, hint))
    return boxes, tuple(links)


def _elements(bin_: Gst.Bin, group: str = "") -> Iterator[tuple[Gst.Element, str]]:
    """The elements of a bin in the order in which they came, each with its group."""
    inside: list[Gst.Element] = []
    bin_.iterate_elements().foreach(inside.append)
    for element in reversed(inside):
        if isinstance(element, Gst.Bin) and not isinstance(element, NvElement):
            yield from _elements(element, group or element.get_name())
        else:
            yield element, group


def _box(element: Gst.Element, group: str, told: str) -> Box:
    name, factory = element.get_name(), element.get_factory()
    kind = "" if factory is None else factory.get_name()
    lines = [kind] if kind and not name.startswith(kind) else []
    if told:
        lines.append(told)
    path = element.get_path_string()
    return Box(path, name, tuple(lines), isinstance(element, NvElement), group, f"{path} ({kind})")


def _reached(src: Gst.Pad, keys: set[str]) -> str | None:
    """The element that a pad leads to, through the ghost pads of bins that are opened."""
    peer = src.get_peer()
    while peer is not None:
        owner = peer.get_parent_element()
        path = None if owner is None else owner.get_path_string()
        if path in keys:
            return str(path)
        if isinstance(peer, Gst.GhostPad):  # into a bin
            peer = peer.get_target()
        elif isinstance(peer, Gst.ProxyPad):  # out of one
            ghost = peer.get_internal()
            peer = None if ghost is None else ghost.get_peer()
        else:
            return None
    return None


def _caps_lines(caps: Gst.Caps) -> tuple[tuple[str, ...], str]:
    """Caps in two short lines, and whole."""
    if caps is None or not caps.get_size():
        return (), "not negotiated"
    structure, features = structure_of(caps), caps.get_features(0)
    plain = features is None or features.is_equal(
        Gst.CapsFeatures.from_string("memory:SystemMemory")
    )
    first = structure.get_name() + ("" if plain else f"({features.to_string()})")
    values = [structure.get_string(name) for name in ("format", "stream-format")]
    sizes = [structure.get_int(name) for name in _SIZES]
    if all(present for present, _ in sizes):
        values.append("×".join(str(number) for _, number in sizes))
    present, top, bottom = structure.get_fraction("framerate")
    if present:
        values.append(f"{top}/{bottom}")
    present, number = structure.get_int("batch-size")
    if present:
        values.append(f"batch {number}")
    second = " ".join(value for value in values if value)
    return tuple(line for line in (first, second) if line), caps.to_string()
