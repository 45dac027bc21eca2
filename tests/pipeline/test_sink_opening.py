"""Every kind of output on every road to a run, each with a real receiver on loopback.

A road is a way to name an output: the command line, a pipeline file in two forms, an application
config with the command line's outputs or with sinks of its own, and Python with texts, a
`SinkSpec`, or an opened sink. GStreamer's elements are in
tests/gstreamer/elements/test_outputs_received.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner

import headrace
from headrace.cli import main
from headrace.config.pipeline_keys import SINK_KINDS
from headrace.media.sinks.opening import split_spec, url_of
from tests.gstreamer.elements.test_outputs_received import ELEMENTS
from tests.media.conftest import write_clip
from tests.pipeline.receivers import FILES, FRAMES, OUTPUTS

Config = Callable[..., Path]


def command_line(config: Path, clip: Path, output: str) -> None:
    done = CliRunner().invoke(main, ["run", str(config), str(clip), "-o", output])
    assert done.exit_code == 0, done.output


def _pipeline_file(config: Path, clip: Path, sink: object) -> None:
    path = config.with_name("pipeline.yml")
    path.write_text(json.dumps({"sources": [str(clip)], "models": [str(config)], "sinks": [sink]}))
    done = CliRunner().invoke(main, ["run", str(path)])
    assert done.exit_code == 0, done.output


def pipeline_file(config: Path, clip: Path, output: str) -> None:
    _pipeline_file(config, clip, output)


def pipeline_file_keys(config: Path, clip: Path, output: str) -> None:
    kind, path = split_spec(output)
    url = url_of(output)
    _pipeline_file(config, clip, {"kind": kind} | ({"uri": url} if url else {"path": str(path)}))


def application_config(config: Path, clip: Path, output: str) -> None:
    path = config.with_name("app.txt")
    path.write_text(
        f"[source0]\nenable=1\ntype=2\nuri=file://{clip}\n"
        f"[primary-gie]\nenable=1\nconfig-file={config}\n[sink0]\nenable=1\ntype=4\ncodec=1\n"
    )
    done = CliRunner().invoke(main, ["run", str(path), "-o", output])
    assert done.exit_code == 0, done.output


def sink_of_application(url: str, name: str) -> str:
    """`[sinkN]` of deepstream-app with which an output is named; nothing where it has none."""
    if url.startswith("rtsp-server:"):
        return f"[sink0]\nenable=1\ntype=4\nrtsp-port={urlsplit(url).port}\n"
    if "://" in url:
        where = urlsplit(url)
        user = ";guest" * (where.scheme == "amqp")
        return (
            f"[sink0]\nenable=1\ntype=6\nmsg-conv-msg2p-new-api=1\nmsg-conv-frame-interval=1\n"
            f"msg-broker-proto-lib=/nowhere/libnvds_{where.scheme}_proto.so\n"
            f"msg-broker-conn-str={where.hostname};{where.port}{user}\ntopic={where.path[1:]}\n"
        )
    return f"[sink0]\nenable=1\ntype=3\ncontainer=1\ncodec=1\noutput-file={name}\n"


OF_APPLICATIONS = {
    "out.mp4",
    "rtsp-server://",
    "kitti:out",
    "redis://",
    "mqtt://",
    "amqp://",
    "kafka://",
}


def application_keys(config: Path, clip: Path, output: str) -> None:
    """The application config names the output itself; nothing of the command line does."""
    path, name = config.with_name("app.txt"), output.rpartition(":")[2]
    kitti = output.startswith("kitti:")
    sink = "[sink0]\nenable=1\ntype=1\n" if kitti else sink_of_application(output, name)
    path.write_text(
        f"[application]\n{f'gie-kitti-output-dir={name}' * kitti}\n{sink}"
        f"[source0]\nenable=1\ntype=2\nuri=file://{clip}\n"
        f"[primary-gie]\nenable=1\nconfig-file={config}\n"
    )
    done = CliRunner().invoke(main, ["run", str(path)])
    assert done.exit_code == 0, done.output


def python_texts(config: Path, clip: Path, output: str) -> None:
    headrace.open_pipeline(config, sources=clip, outputs=[output]).run()


def python_spec(config: Path, clip: Path, output: str) -> None:
    kind, path = split_spec(output)
    url = url_of(output)
    sink = headrace.SinkSpec(kind=kind, uri=url) if url else headrace.SinkSpec(kind=kind, path=path)
    spec = headrace.PipelineSpec(
        sources=(headrace.SourceSpec(uri=str(clip)),),
        models=(headrace.ModelSpec(config=config),),
        sinks=(sink,),
    )
    headrace.open_pipeline(spec).run()


def python_sink(config: Path, clip: Path, output: str) -> None:
    with headrace.Inferencer.from_config(config) as model, headrace.open_sink(output) as sink:
        headrace.Pipeline(headrace.open_source(clip), model, [sink]).run()


ROADS = (command_line, pipeline_file, pipeline_file_keys, application_config, python_texts,
         python_spec, python_sink)  # fmt: skip
CELLS = [(output, road) for output in (*OUTPUTS, *FILES) for road in ROADS]
CELLS += [(output, application_keys) for output in OUTPUTS if output in OF_APPLICATIONS]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("output", "road"), CELLS, ids=lambda cell: cell if isinstance(cell, str) else cell.__name__
)
def test_an_output_reaches_its_receiver_on_every_road(
    output: str, road: Callable[..., None], mean_config: Config, tmp_path: Path
) -> None:
    clip = write_clip(tmp_path / "clip.mp4", FRAMES, codec="libx264")
    with (OUTPUTS | FILES)[output](tmp_path) as (spec, received):
        road(mean_config(), clip, spec)
        received()


def test_the_table_names_kinds_of_outputs() -> None:
    kinds = {split_spec(o + "host/file" * o.endswith("//"))[0] for o in (*OUTPUTS, *FILES)}
    # of segmentation, on call alone, nothing
    assert set(SINK_KINDS) - kinds == {"masks", "smart-record", "fake"}


def test_the_page_shows_the_cells_that_are_tested() -> None:
    page = Path(__file__).parents[2] / "docs/sources-and-sinks.md"
    table = page.read_text().partition("### On which roads")[2].partition("**Several")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in table.splitlines()
        if line.startswith("| `")
    ]
    assert [row[0].strip("`") for row in rows] == [o for o in OUTPUTS if not _named_twice(o)]
    assert all(row[1].startswith("yes") for row in rows)
    assert {row[0].strip("`") for row in rows if row[2] != "`-o`"} == OF_APPLICATIONS
    assert {row[0].strip("`") for row in rows if row[3]} == {*ELEMENTS, "rtsp-server://"}


def _named_twice(output: str) -> bool:
    """Whether it is an address with its kind before it."""
    return "://" in output and output.startswith(("publish:", "messages:"))
