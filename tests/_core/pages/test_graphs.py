"""Drawings of graphs."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from headrace._core.pages.graphs import Box, Link, layered_graph, svg_file

SVG = "{http://www.w3.org/2000/svg}"
CAPS = ("video/x-raw(memory:NVMM)", "NV12 1920×1080 25/1 batch 4")


def drawn(boxes: list[Box], links: list[Link]) -> ElementTree.Element:
    return ElementTree.fromstring(svg_file(layered_graph(boxes, links)))


def groups(tree: ElementTree.Element, kind: str) -> list[ElementTree.Element]:
    return [one for one in tree.iter(f"{SVG}g") if kind in one.attrib["class"].split()]


def texts(group: ElementTree.Element) -> list[str]:
    return [one.text or "" for one in group.iter(f"{SVG}text")]


def sides(group: ElementTree.Element) -> tuple[float, float, float, float]:
    rect = group.find(f"{SVG}rect")
    assert rect is not None
    x, y, width, height = (float(rect.attrib[key]) for key in ("x", "y", "width", "height"))
    return x, y, x + width, y + height


def sources(count: int) -> tuple[list[Box], list[Link]]:
    boxes = [Box("mux", "mux", ("nvstreammux",), True), Box("sink", "sink")]
    links = [Link("mux", "sink", CAPS)]
    for number in range(count):
        bin_ = f"source-bin-{number:02d}"
        boxes += [Box(f"f{number}", "source", group=bin_), Box(f"d{number}", "decoder", group=bin_)]
        links += [Link(f"f{number}", f"d{number}", CAPS), Link(f"d{number}", "mux", CAPS)]
    return boxes, links


def test_all_boxes_links_and_texts_are_there() -> None:
    tree = drawn(*sources(4))
    assert [texts(one)[0] for one in groups(tree, "box")] == ["mux", "sink"] + 4 * [
        "source", "decoder",
    ]  # fmt: skip
    assert len(groups(tree, "marked")) == 1
    assert [texts(one) for one in groups(tree, "link")] == [list(CAPS)] * 9
    assert [texts(one) for one in groups(tree, "frame")] == [[f"source-bin-0{n}"] for n in range(4)]


def test_nothing_overlaps_and_all_lies_inside() -> None:
    tree = drawn(*sources(4))
    boxes = [sides(one) for one in groups(tree, "box")]
    frames = [sides(one) for one in groups(tree, "frame")]
    for places in (boxes, frames):
        for i, (left, top, right, bottom) in enumerate(places):
            for x0, y0, x1, y1 in places[i + 1 :]:
                assert right <= x0 or x1 <= left or bottom <= y0 or y1 <= top
    width, height = float(tree.attrib["width"]), float(tree.attrib["height"])
    for left, top, right, bottom in boxes + frames:
        assert 0 <= left < right <= width
        assert 0 <= top < bottom <= height
    starts = [
        (float(text.attrib["x"]), float(text.attrib["x"]) + 5.4 * len(text.text or ""))
        for link in groups(tree, "link")
        for text in link.iter(f"{SVG}text")
    ]
    assert max(end for _, end in starts) <= width


def test_a_link_over_several_layers_passes_by_the_boxes_between() -> None:
    boxes = [Box(key, key) for key in "abcd"]
    links = [Link(*pair) for pair in ("ab", "bc", "cd", "ad")]
    tree = drawn(boxes, links)
    (path,) = [
        one.attrib["d"]
        for one in groups(tree, "link")[3].iter(f"{SVG}path")
        if not one.get("class")
    ]
    ends = re.findall(r" ([\d.]+) ([\d.]+)(?:C|$)", path)
    left, top, right, bottom = sides(groups(tree, "box")[1])
    assert not any(left < float(x) < right and top < float(y) < bottom for x, y in ends)


def test_a_frame_that_would_hold_another_box_is_left_out() -> None:
    boxes = [Box("a", "a", group="g"), Box("b", "b"), Box("c", "c", group="g")]
    assert groups(drawn(boxes, [Link("a", "b"), Link("b", "c")]), "frame") == []


def test_names_are_escaped_and_long_ones_cut() -> None:
    tree = drawn([Box("a", "<b>&" + "x" * 90, hint="<i>")], [])
    (title,) = texts(groups(tree, "box")[0])
    assert title.startswith("<b>&xxx")
    assert title.endswith("…")
    assert layered_graph([], []).startswith("<svg")
