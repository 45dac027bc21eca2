"""Date and time, and names of sources, on images."""

from __future__ import annotations

import time

import numpy as np
import pytest

from headrace.config import OsdSpec
from headrace.media import PixelFormat
from headrace.media.draw import Painter
from headrace.media.draw.clock import Clock
from headrace.media.pixels import to_rgb
from tests.media.draw.test_painter import frame_of, meta_of


def drawn(spec: OsdSpec, *, moment: float, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    monkeypatch.setattr(time, "localtime", time.gmtime)
    monkeypatch.setattr("headrace.media.draw.clock.time.strftime", lambda form: str(moment))
    frame = frame_of(PixelFormat.RGB, 400, 200)
    return to_rgb(Painter.from_spec(spec).draw(frame, meta_of(frame))).astype(int)


def changed(image: np.ndarray) -> tuple[int, int, int, int]:
    rows, columns = np.nonzero(np.abs(image - image[-1, -1]).sum(axis=2) > 60)
    return columns.min(), rows.min(), columns.max(), rows.max()


def test_the_clock_stands_at_its_place_in_its_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = OsdSpec(
        show_clock=True, clock_x=100, clock_y=60, clock_size=20, clock_color=(0.0, 1.0, 0.0, 1.0)
    )
    image = drawn(spec, moment=12.5, monkeypatch=monkeypatch)
    left, top, right, bottom = changed(image)
    assert 100 <= left <= 110
    assert 60 <= top <= 80
    assert (right < 250, bottom < 110) == (True, True)
    inside = image[top:bottom, left:right].reshape(-1, 3)
    assert inside[inside[:, 1].argmax()].tolist() == [0, 255, 0]
    assert np.abs(image - drawn(spec, moment=99.9, monkeypatch=monkeypatch)).max() > 60


def test_without_its_keys_the_clock_is_red_at_the_corner(monkeypatch: pytest.MonkeyPatch) -> None:
    image = drawn(OsdSpec(show_clock=True), moment=1.0, monkeypatch=monkeypatch)
    left, top, _, _ = changed(image)
    assert (left < 8, top < 12) == (True, True)
    assert image.reshape(-1, 3)[(image[..., 0] - image[..., 1]).argmax()].tolist() == [255, 0, 0]


def test_nothing_is_written_where_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = OsdSpec(show=False, show_clock=True, show_names=True)
    assert np.ptp(drawn(spec, moment=1.0, monkeypatch=monkeypatch)) == 0


def test_the_name_of_the_source_stands_below(monkeypatch: pytest.MonkeyPatch) -> None:
    image = drawn(OsdSpec(show_names=True), moment=1.0, monkeypatch=monkeypatch)
    rows, columns = np.nonzero(np.abs(image - 100).sum(axis=2) > 60)
    assert rows.min() > 150
    assert columns.min() == 0


def test_the_clock_of_an_element_is_the_same_text(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Clock(points=12) == Clock.from_spec(OsdSpec(show_clock=True))
