"""Config files of nvdewarper."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace._core.errors import ConfigError
from headrace.config import load_pipeline
from headrace.config.dewarper_file import DewarpedSurface, load_dewarper

FILE = """[property]
output-width=640
output-height=360
num-batch-buffers=4
aisle-calibration-file=a.csv

[surface0]
projection-type=1
surface-index=3
width=400
height=300
top-angle=0
bottom-angle=-60
pitch=90
focal-length=437
distortion=0.1;-0.2
src-x0=1000
control=0.4
rot-axes=ZXY

[surface1]
projection-type=4
width=200
height=100
src-fov=180
cuda-address-mode=1
rot-matrix=1;0;0;0;1;0;0;0;1
dst-focal-length=50;60
dst-principal-point=99;49
rol=3
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "dewarper.txt"
    path.write_text(text)
    return path


def test_a_file_says_what_each_view_is(tmp_path: Path) -> None:
    config = load_dewarper(written(tmp_path, FILE))
    assert config.size == (640, 360)
    assert config.surfaces == (
        DewarpedSurface(
            1, 3, 400, 300, 0, -60, pitch=90, axes="ZXY", focal=(437, 437),
            distortion=(0.1, -0.2, 0, 0, 0), center=(1000, None), control=0.4,
        ),
        DewarpedSurface(
            4, 0, 200, 100, fov=180, matrix=(1, 0, 0, 0, 1, 0, 0, 0, 1), view_focal=(50, 60),
            view_center=(99, 49), is_bordered=True,
        ),
    )  # fmt: skip
    texts = " ".join(str(notice) for notice in config.notices)
    assert "aisle-calibration-file" in texts
    assert "rol" in texts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[property]\n", "the file holds no surface"),
        ("[surface0]\nwidth=9\nheight=9\n", r"\[surface0\] has no projection-type"),
        ("[surface0]\nprojection-type=3\nwidth=9\nheight=9\n", "names no lens"),
        ("[surface0]\nprojection-type=19\nwidth=9\nheight=9\nsrc-fov=9\n", "projection-type=19"),
        (
            "[surface0]\nprojection-type=3\nwidth=9\nheight=9\nsrc-fov=9\ntop-angle=-9\n",
            "top-angle=-9 is not above bottom-angle=0",
        ),
        ("[surface0]\nprojection-type=3\nwidth=9\nheight=9\nsrc-fov=9\nrot-axes=XXX\n", "rot-axes"),
    ],
)
def test_a_file_that_makes_no_view_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_dewarper(written(tmp_path, text))


APP = """[source0]
enable=0
type=3
uri=file:///a.mp4
[source1]
enable=1
type=3
uri=file:///b.mp4
[source2]
enable=1
type=3
uri=file:///c.mp4
[streammux]
num-surfaces-per-frame={views}
[primary-gie]
enable=1
config-file=p.txt
[sink0]
enable=1
type=1
[dewarper{number}]
enable=1
config-file=d.txt
"""


def test_an_application_config_has_a_source_for_each_view(tmp_path: Path) -> None:
    path = tmp_path / "app.txt"
    path.write_text(APP.format(views=3, number=0))
    sources = load_pipeline(path).opened_sources
    assert [(Path(s.uri).name, s.dewarper and s.dewarper.name, s.surface) for s in sources] == [
        ("b.mp4", "d.txt", 0), ("c.mp4", None, 0), ("b.mp4", "d.txt", 1), ("b.mp4", "d.txt", 2),
    ]  # fmt: skip
    path.write_text(APP.format(views=1, number=2))
    spec = load_pipeline(path)
    assert [source.dewarper for source in spec.sources] == [None, None]
    assert any(n.code == "element-left-out" and "dewarper2" in str(n) for n in spec.notices)
