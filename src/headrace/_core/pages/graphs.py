"""Drawings of graphs as SVG: boxes in layers, links downwards, frames around groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from markupsafe import Markup

from headrace._core.pages.layering import arranged, layers_of
from headrace._core.text import shortened

_BOLD, _PLAIN = 7.0, 5.9  # widths of a letter: of 12 px bold, of 10.5 px
_LEAST, _MOST = 110.0, 260.0  # widths of boxes
_GAP, _ROW_GAP, _BEND_GAP = 28.0, 62.0, 104.0  # between boxes; between rows, straight or not
_ASIDE, _SMALL, _STRAIGHT = 7.0, 5.4, 30.0  # of a link's text: its place, a letter, its height
_TITLE, _LINE, _PAD = 16.0, 13.0, 8.0
_EDGE = 16.0  # around the whole
_BEND = "bend"  # a link that crosses a layer has a place in it
_STYLE = Path(__file__).parent / "templates" / "graph.css"


@dataclass(frozen=True)
class Box:
    """A node.

    Attributes:
        key: once in a graph.
        title: first line.
        lines: smaller ones below.
        marked: drawn in colour.
        group: name of the frame around it; empty for none.
        hint: shown where the pointer rests.
    """

    key: str
    title: str
    lines: tuple[str, ...] = ()
    marked: bool = False
    group: str = ""
    hint: str = ""

    @property
    def width(self) -> float:
        """In pixels."""
        texts = [len(self.title) * _BOLD, *(len(line) * _PLAIN for line in self.lines)]
        return min(_MOST, max(_LEAST, max(texts) + 2 * _PAD))

    @property
    def height(self) -> float:
        """In pixels."""
        return 2 * _PAD + _TITLE + _LINE * len(self.lines) - 4


@dataclass(frozen=True)
class Link:
    """A link between two boxes.

    Attributes:
        source, target: keys.
        lines: written beside it.
        hint: shown where the pointer rests.
    """

    source: str
    target: str
    lines: tuple[str, ...] = ()
    hint: str = ""


def layered_graph(boxes: Sequence[Box], links: Sequence[Link]) -> Markup:
    """Draw a graph.

    Args:
        boxes: neighbours in this order where nothing else says so.
        links: between them.

    Returns:
        An `<svg>` with the class `graph`; `graph.css` has its colours, light and dark.
    """
    graph = _Placed(boxes, links)
    parts = [*graph.frames(), *graph.lines(), *(graph.box(one) for one in boxes)]
    size = f"{graph.width:.0f}", f"{graph.height:.0f}"
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" class="graph" width="{0}" height="{1}"'
        ' viewBox="0 0 {0} {1}" role="img" aria-label="{2} boxes and {3} links">{4}</svg>'
    ).format(*size, len(boxes), len(links), Markup("").join(parts))


def svg_file(drawing: Markup) -> str:
    """Make a file of its own of a drawing."""
    head, _, rest = str(drawing).partition(">")
    return f"{head}><style>{_STYLE.read_text()}</style>{rest}\n"


class _Placed:
    """Boxes and links with their places."""

    def __init__(self, boxes: Sequence[Box], links: Sequence[Link]) -> None:
        self._boxes = {box.key: box for box in boxes}
        self._links = [link for link in links if link.source != link.target]
        layer = layers_of(list(self._boxes), [(one.source, one.target) for one in self._links])
        first = min(layer.values(), default=0)
        rows: list[list[object]] = [[] for _ in range(max(layer.values(), default=0) - first + 1)]
        for key in self._boxes:
            rows[layer[key] - first].append(key)
        self._ways: list[list[object]] = []
        steps: list[tuple[object, object]] = []
        widths: dict[object, float] = {key: box.width for key, box in self._boxes.items()}
        for link in self._links:  # a link's text begins at the middle of a box
            side, beside = _text_width(link), self._beside(link)
            widths[beside] = max(widths[beside], 2 * side - _GAP)
        for number, link in enumerate(self._links):
            start, end = layer[link.source] - first, layer[link.target] - first
            way: list[object] = [link.source]
            for row in range(start + 1, end):
                bend = (_BEND, number, row)
                rows[row].append(bend)
                widths[bend] = 12.0
                way.append(bend)
            way.append(link.target)
            self._ways.append(way)
            if end > start:
                steps += pairwise(way)
        middles = arranged(rows, steps, widths, _GAP)
        self._middle = {node: middle + _EDGE for node, middle in middles.items()}
        self._top: dict[object, float] = {}
        last = top = _EDGE + (20 if any(box.group for box in boxes) else 0)
        for row_nodes in rows:
            height = max((self._height(node) for node in row_nodes), default=0.0)
            for node in row_nodes:
                self._top[node] = top + (height - self._height(node)) / 2
            inside = set(row_nodes)
            bends = any(
                abs(self._middle[one] - self._middle[other]) > _STRAIGHT
                for one, other in steps
                if one in inside
            )
            last, top = top + height, top + height + (_BEND_GAP if bends else _ROW_GAP)
        self.height = last + 2 * _EDGE
        right = max((self._middle[n] + widths[n] / 2 for n in self._middle), default=0.0)
        self.width = right + _GAP / 2 + _EDGE

    def _height(self, node: object) -> float:
        return self._boxes[node].height if isinstance(node, str) else 0.0

    def _bottom(self, key: str) -> float:
        return self._top[key] + self._boxes[key].height

    def box(self, box: Box) -> Markup:
        """Draw a box."""
        left, top = self._middle[box.key] - box.width / 2, self._top[box.key]
        middle = self._middle[box.key]
        texts = [
            Markup('<text class="title" x="{:.1f}" y="{:.1f}">{}</text>').format(
                middle, top + _PAD + 11, _cut(box.title, box.width, _BOLD)
            )
        ]
        for number, line in enumerate(box.lines):
            y = top + _PAD + _TITLE + _LINE * number + 9
            texts.append(
                Markup('<text x="{:.1f}" y="{:.1f}">{}</text>').format(
                    middle, y, _cut(line, box.width, _PLAIN)
                )
            )
        return Markup(
            '<g class="{}"><title>{}</title><rect x="{:.1f}" y="{:.1f}" width="{:.1f}"'
            ' height="{:.1f}" rx="5"/>{}</g>'
        ).format(
            "box marked" if box.marked else "box", box.hint or box.title,
            left, top, box.width, box.height, Markup("").join(texts),
        )  # fmt: skip

    def lines(self) -> list[Markup]:
        """Draw the links, with arrows at their ends."""
        elements = []
        for link, way in zip(self._links, self._ways, strict=True):
            x, y = self._middle[link.source], self._bottom(link.source)
            path = f"M{x:.1f} {y:.1f}"
            if abs(self._middle[way[1]] - x) > _STRAIGHT and self._beside(link) == link.source:
                y += _STRAIGHT  # past its text
                path += f"V{y:.1f}"
            for node in way[1:]:
                end_x, end_y = self._middle[node], self._top[node]
                if node == link.target:
                    end_y -= 6
                bow = (end_y - y) / 2
                path += f"C{x:.1f} {y + bow:.1f} {end_x:.1f} {end_y - bow:.1f} "
                path += f"{end_x:.1f} {end_y:.1f}"
                x, y = end_x, end_y
            label_x, label_y = self._label(link)
            texts = [
                Markup('<text class="link" x="{:.1f}" y="{:.1f}">{}</text>').format(
                    label_x, label_y + 11 * number, line
                )
                for number, line in enumerate(link.lines)
            ]
            elements.append(
                Markup(
                    '<g class="link"><title>{}</title><path d="{}"/>'
                    '<path class="head" d="M{:.1f} {:.1f}l-4 -7h8z"/>{}</g>'
                ).format(link.hint, Markup(path), x, y + 6, Markup("").join(texts))
            )
        return elements

    def _beside(self, link: Link) -> str:
        """The box that a link's text is near: its source; its target if several leave that."""
        alone = sum(other.source == link.source for other in self._links) == 1
        return link.source if alone else link.target

    def _label(self, link: Link) -> tuple[float, float]:
        """Where the text of a link begins."""
        if self._beside(link) == link.source:
            return self._middle[link.source] + _ASIDE, self._bottom(link.source) + 14
        top = self._top[link.target] - 11 * len(link.lines) - 2
        return self._middle[link.target] + _ASIDE, top

    def frames(self) -> list[Markup]:
        """Draw frames around groups; not around one that would hold a box of another."""
        members: defaultdict[str, list[Box]] = defaultdict(list)
        for box in self._boxes.values():
            members[box.group].append(box)
        elements = []
        for group, inside in members.items():
            if not group:
                continue
            left = min(self._middle[b.key] - b.width / 2 for b in inside) - 10
            keys = {b.key for b in inside}
            texts = [
                self._middle[self._beside(link)] + _text_width(link)
                for link in self._links
                if {link.source, link.target} <= keys
            ]
            right = max(*(self._middle[b.key] + b.width / 2 for b in inside), 0.0, *texts) + 10
            top = min(self._top[b.key] for b in inside) - 22
            bottom = max(self._bottom(b.key) for b in inside) + 8
            if any(
                left < self._middle[b.key] < right and top < self._top[b.key] < bottom
                for b in self._boxes.values()
                if b.group != group
            ):
                continue
            elements.append(
                Markup(
                    '<g class="frame"><rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"'
                    ' rx="8"/><text x="{:.1f}" y="{:.1f}">{}</text></g>'
                ).format(
                    left, top, right - left, bottom - top,
                    left + 8, top + 13, _cut(group, right - left, _PLAIN),
                )
            )  # fmt: skip
        return elements


def _text_width(link: Link) -> float:
    return _ASIDE + _SMALL * max(map(len, link.lines), default=0)


def _cut(text: str, width: float, letter: float) -> str:
    most = int((width - 2 * _PAD) / letter)
    return shortened(text, max(2, most))
