"""Which sink gets which frames, drawn or not, tiled or not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from headrace.errors import HeadraceError
from headrace.media import Frame, PixelFormat
from headrace.media.draw import Painter, Tiler
from headrace.meta import FrameMeta
from headrace.pipeline import Pipeline, Route
from tests.pipeline.fakes import FakeModel, FakeSink, sources


class CountingPainter(Painter):
    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[tuple[int, int]] = []

    def draw(self, frame: Frame, meta: FrameMeta) -> Frame:
        self.drawn.append((meta.source_id, meta.frame))
        return super().draw(frame, meta)


class FakeTiler:
    """An image whose first pixels are the frame numbers."""

    def __init__(self) -> None:
        self.rounds: list[list[tuple[int, int]]] = []

    def compose(self, pairs: Sequence[tuple[Frame, FrameMeta]]) -> tuple[Frame, FrameMeta]:
        self.rounds.append([(m.source_id, m.frame) for _, m in pairs])
        number = len(self.rounds) - 1
        image = np.zeros((4, 6, 3), np.uint8)
        frame = Frame.from_array(image, PixelFormat.RGB, frame=number, source="tiles")
        return frame, FrameMeta("tiles", 0, number, 0, 6, 4)


def run(counts: tuple[int, ...], sinks: Any, **options: Any) -> None:
    Pipeline(sources(*counts), FakeModel(4), sinks, **options).run()  # type: ignore[arg-type]


def test_sinks_that_show_pixels_get_drawn_frames() -> None:
    images, plain = FakeSink(pixels=True), FakeSink()
    run((3,), [images, plain])
    assert all(f.planes[0].any() for f in images.frames), "a box is drawn on black"
    assert not any(f.planes[0].any() for f in plain.frames)
    assert len(images.frames) == len(plain.frames) == 3


def test_a_frame_is_drawn_once_for_all_sinks_and_only_where_it_is_shown() -> None:
    painter = CountingPainter()
    one, two, other = (FakeSink(pixels=True) for _ in range(3))
    run((3, 2, 4), [one, (two, 10), (other, 12)], painter=painter)
    assert len(painter.drawn) == len(set(painter.drawn)) == 9
    painter = CountingPainter()
    run((3, 2, 4), [(two := FakeSink(pixels=True), 11), FakeSink()], painter=painter)
    assert painter.drawn == [(11, 0), (11, 1)]
    assert two.of(11) == [0, 1]


def test_a_sink_of_one_source_gets_its_frames_only() -> None:
    all_of_them, first, second = FakeSink(), FakeSink(), FakeSink()
    run((3, 5), [all_of_them, (first, 10), Route(second, only_source=11), (FakeSink(), None)])
    assert [m.source_id for m in first.got] == [10] * 3
    assert second.of(11) == list(range(5)) == [m.frame for m in second.got]
    assert len(all_of_them.got) == 8


def test_one_sink_may_take_several_sources() -> None:
    sink = FakeSink()
    run((3, 5, 2), [(sink, 10), (sink, 12)])
    assert {m.source_id for m in sink.got} == {10, 12}
    assert sink.closed == 1


def test_a_tiled_sink_gets_one_drawn_image_per_buffer() -> None:
    tiler, painter = FakeTiler(), CountingPainter()
    wall, single, lines = FakeSink(pixels=True), FakeSink(pixels=True), FakeSink()
    run((3, 1, 2), [wall, (single, 10), lines], tiler=tiler, painter=painter)
    assert tiler.rounds[0] == [(10, 0), (11, 0), (12, 0)]
    assert [f.source for f in wall.frames] == ["tiles"] * 3
    assert [f.frame for f in wall.frames] == [0, 1, 2]
    assert [r[0] for r in tiler.rounds] == [(10, 0), (10, 1), (10, 2)]
    assert single.of(10) == [0, 1, 2]
    assert len(lines.got) == 6
    assert len(painter.drawn) == 3 + 3, "tiles and the frames of one source"


def test_a_tile_shows_the_latest_frame_of_a_source_that_had_no_turn() -> None:
    tiler = FakeTiler()
    run((2, 2, 2), [FakeSink(pixels=True)], tiler=tiler, batch_size=2)
    assert tiler.rounds[:2] == [[(10, 0), (11, 0)], [(10, 1), (11, 0), (12, 0)]]


def test_a_sink_may_be_tiled_or_not_by_choice() -> None:
    tiler = FakeTiler()
    lines, images = FakeSink(), FakeSink(pixels=True)
    run((2, 2), [Route(lines, tiled=True), Route(images, tiled=False)], tiler=tiler)
    assert [m.source for m in lines.got] == ["tiles"] * 2
    assert len(images.got) == 4


def test_routes_that_lead_nowhere_are_refused() -> None:
    with pytest.raises(
        HeadraceError, match=r"there is no source 5 for it\n  expected one of 10, 11"
    ):
        run((1, 1), [(FakeSink(name="x.mp4"), 5)])
    with pytest.raises(HeadraceError, match=r"x\.mp4: is to be tiled, but there is no tiler"):
        run((1,), [Route(FakeSink(name="x.mp4"), tiled=True)])


def test_the_tiler_of_headrace_fits() -> None:
    wall = FakeSink(pixels=True)
    tiler = Tiler(1, 2, 64, 32)
    pipeline = Pipeline(sources(2, 2, 2), FakeModel(4), [wall], tiler=tiler)  # type: ignore[arg-type, list-item]
    report = pipeline.run()
    assert [(f.width, f.height, f.frame) for f in wall.frames] == [(64, 32, 0), (64, 32, 1)]
    assert len(wall.got[0].objects) == 2
    assert any((n.code, n.where) == ("source-not-shown", "s12") for n in report.notices)
    assert report.stages["tile"] > 0


def test_a_tiler_is_told_how_each_source_ended() -> None:
    ends: list[tuple[int, str, str]] = []

    class Tells(FakeTiler):
        def end(self, source_id: int, name: str, why: str) -> None:
            ends.append((source_id, name, why))

    some = sources(2, 4)
    some[0].fail_at = 1
    Pipeline(some, FakeModel(4), [FakeSink(pixels=True)], tiler=Tells()).run()
    assert [(i, why.partition(":")[0]) for i, _, why in ends] == [(10, "failed"), (11, "ended")]
    assert ends[0][2] == "failed: the stream broke"
