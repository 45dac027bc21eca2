"""Ranges, enumerations and defaults of properties, as the original's `gst-inspect-1.0` shows them.

The tables hold what the public sources of DeepStream 9.1 and public listings of 6.3 say.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.gstreamer import elements
from tests.gstreamer.conftest import Run

U, I = (1 << 32) - 1, (1 << 31) - 1  # noqa: E741 - largest numbers of C
NUMBERS = {
    "nvstreammux": {
        "batch-size": (0, 1024, 0),
        "batched-push-timeout": (-1, I, -1),
        "buffer-pool-size": (4, 1024, 4),
        "num-surfaces-per-frame": (1, 4, 1),
        "width": (0, U, 0),
        "max-latency": (0, U, 0),
        "frame-duration": (0, (1 << 64) - 1, (1 << 64) - 1),
        "gpu-id": (0, U, 0),
    },
    "nvinfer": {
        "unique-id": (0, U, 15),
        "batch-size": (1, 1024, 1),
        "interval": (0, I, 0),
        "infer-on-gie-id": (-1, I, -1),
    },
    "nvinferserver": {
        "unique-id": (0, U, 0),
        "batch-size": (0, 1024, 0),
        "process-mode": (0, 2, 0),
        "interval": (0, I, 0),
        "infer-on-gie-id": (-1, I, -1),
    },
    "nvtracker": {
        "tracker-width": (0, U, 960),
        "tracker-height": (0, U, 544),
        "tracking-id-reset-mode": (0, 3, 0),
        "user-meta-pool-size": (1, U, 32),
        "sub-batch-err-recovery-trial-cnt": (-1, I, 0),
    },
    "nvdsosd": {"clock-font-size": (0, 60, 12), "blur-bbox": (0, 2, 0)},
    "nvmultistreamtiler": {
        "rows": (1, U, 1),
        "columns": (1, U, 1),
        "width": (16, U, 1920),
        "height": (16, U, 1080),
        "show-source": (-1, I, -1),
        "buffer-pool-size": (4, 10, 5),
    },
    "nvvideoconvert": {"output-buffers": (1, U, 4)},
    "nvv4l2h264enc": {
        "bitrate": (0, U, 4_000_000),
        "iframeinterval": (0, U, 30),
        "idrinterval": (0, U, 256),
        "num-B-Frames": (0, 2, 0),
        "vbv-size": (0, U, 4_000_000),
    },
    "nvurisrcbin": {
        "drop-frame-interval": (0, 30, 0),
        "source-id": (-1, I, -1),
        "rtsp-reconnect-attempts": (-I - 1, I, -1),
        "latency": (0, U, 100),
        "smart-rec-cache": (0, U, 20),
    },
    "nvmultiurisrcbin": {
        "max-batch-size": (0, U, 30),
        "buffer-pool-size": (4, 1024, 4),
        "num-surfaces-per-frame": (1, 4, 1),
        "width": (0, U, 0),
        "batched-push-timeout": (-1, I, -1),
    },
    "nvdsanalytics": {"unique-id": (0, U, 17)},
    "nvdspreprocess": {"unique-id": (0, U, 15), "operate-on-gie-id": (-1, I, -1)},
    "nvmsgconv": {"frame-interval": (1, U, 30), "comp-id": (0, U, 0)},
    "nvmsgbroker": {"sleep-time": (0, U, 0)},
    "nvsegvisual": {
        "class-id": (0, U, 0),
        "operate-on-seg-meta-id": (-1, I, -1),
        "batch-size": (1, U, 1),
        "alpha": (0.0, 1.0, 1.0),
    },
}
_HARDWARE = {0: "Default", 1: "GPU", 2: "VIC"}
_SCALING = {0: "Nearest", 1: "Bilinear", 2: "Algo-1", 5: "Algo-4", 6: "Default"}
_MEMORY = {0: "nvbuf-mem-default", 3: "nvbuf-mem-cuda-unified", 4: "nvbuf-mem-surface-array"}
_DECODER = {0: "memtype_device", 1: "memtype_pinned", 2: "memtype_unified"}
_SKIPPED = {0: "decode_all", 1: "decode_non_ref", 2: "decode_key"}
CHOICES = [
    ("nvstreammux", "interpolation-method", 1, _SCALING),
    ("nvstreammux", "nvbuf-memory-type", 0, _MEMORY),
    ("nvstreammux", "compute-hw", 0, _HARDWARE),
    ("nvinfer", "process-mode", 1, {1: "primary", 2: "secondary"}),
    ("nvtracker", "compute-hw", 0, _HARDWARE),
    ("nvdsosd", "process-mode", 1, {0: "MODE_CPU", 1: "MODE_GPU", 2: "MODE_NONE"}),
    ("nvmultistreamtiler", "interpolation-method", 6, _SCALING),
    ("nvvideoconvert", "interpolation-method", 6, _SCALING),
    ("nvvideoconvert", "copy-hw", 1, {1: "GPU", 2: "VIC"}),
    ("nvvideoconvert", "flip-method", 0, {1: "counterclockwise", 7: "upper-left-diagonal"}),
    ("nvv4l2decoder", "cudadec-memtype", 0, _DECODER),
    ("nvv4l2decoder", "skip-frames", 0, _SKIPPED),
    ("nvv4l2h264enc", "profile", 0, {0: "Baseline", 2: "Main", 4: "High", 7: "High444"}),
    ("nvv4l2h265enc", "profile", 0, {0: "Main", 1: "Main10"}),
    ("nvv4l2h264enc", "preset-level", 1, {0: "DisablePreset", 4: "SlowPreset"}),
    ("nvv4l2h264enc", "control-rate", 1, {0: "variable_bitrate", 1: "constant_bitrate"}),
    ("nvurisrcbin", "type", 0, {0: "auto", 1: "uri", 2: "rtsp"}),
    ("nvurisrcbin", "select-rtp-protocol", 7, {4: "rtp-tcp", 10: "rtp-http", 20: "rtp-tls"}),
    ("nvurisrcbin", "buffer-mode", 3, {0: "unknown", 4: "synced"}),
    ("nvurisrcbin", "dec-skip-frames", 0, _SKIPPED),
    ("nvurisrcbin", "leaky", 0, {1: "upstream-leak", 2: "downstream-leak"}),
    ("nvmsgconv", "payload-type", 0, {1: "PAYLOAD_DEEPSTREAM_MINIMAL", 257: "PAYLOAD_CUSTOM"}),
]
DEFAULTS = {
    "nvinfer": {"config-file-path": "", "model-engine-file": "", "clip-object-outside-roi": True},
    "nvdsosd": {"display-mask": False, "display-text": True, "blur-on-gie-class-ids": None},
    "nvvideoconvert": {"bl-output": False, "allow-odd-crop": True, "src-crop": "0:0:0:0"},
    "nvtracker": {"ll-config-file": None, "display-tracking-id": True},
    "nvstreammux": {"async-process": True, "attach-sys-ts": True, "drop-pipeline-eos": False},
}


def element(gst: Any, name: str) -> Any:
    made = gst.ElementFactory.make(name, None)
    assert made is not None
    return made


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_have_the_ranges_of_the_original(gst: Any, name: str) -> None:
    specs = {key: element(gst, name).find_property(key) for key in NUMBERS[name]}
    found = {key: (one.minimum, one.maximum, one.default_value) for key, one in specs.items()}
    assert found == NUMBERS[name]


@pytest.mark.parametrize(("name", "key", "default", "nicks"), CHOICES)
def test_enumerations_take_numbers_and_nicks(
    gst: Any, name: str, key: str, default: int, nicks: dict[int, str]
) -> None:
    made = element(gst, name)
    assert int(made.get_property(key)) == default
    for value, nick in nicks.items():
        gst.util_set_object_arg(made, key, nick)  # as gst-launch-1.0 does
        assert int(made.get_property(key)) == value
        made.set_property(key, value)
        assert int(made.get_property(key)) == value


@pytest.mark.parametrize("name", DEFAULTS)
def test_other_properties_begin_as_in_the_original(gst: Any, name: str) -> None:
    made = element(gst, name)
    assert {key: made.get_property(key) for key in DEFAULTS[name]} == DEFAULTS[name]


@pytest.mark.filterwarnings("ignore:value")
def test_a_number_out_of_range_changes_nothing(gst: Any) -> None:
    made = element(gst, "nvinfer")
    made.set_property("batch-size", 8)
    for wrong in (0, 1025):
        made.set_property("batch-size", wrong)
        assert made.get_property("batch-size") == 8


def test_sources_form_a_square_where_that_is_asked_for(play: Run) -> None:
    """Two white sources fill the upper row of a square of four; rows and columns are void."""

    def bright(buffer: Any) -> list[list[bool]]:
        from headrace.gstreamer import pyds

        image = pyds.get_nvds_buf_surface(hash(buffer), 0)
        return [[bool(image[y, x, 0] > 128) for x in (16, 48)] for y in (12, 36)]

    source = "videotestsrc num-buffers=1 pattern=white ! video/x-raw,width=64,height=48 ! m."
    ran = play(
        f"{source} {source} nvstreammux name=m batch-size=2 width=64 height=48 ! "
        "nvmultistreamtiler square-seq-grid=1 columns=9 width=64 height=48 ! fakesink name=end",
        end=bright,
    )
    assert (ran.errors, ran.seen["end"]) == ([], [[[True, True], [False, False]]])


_OF_NO_CLASS = {"headracenvmmtag"}


def _tables(gst: Any) -> list[tuple[str, str, Any]]:
    from headrace.gstreamer.elements.register import ELEMENTS, factory

    return [
        (element, name, row)
        for element in ELEMENTS
        if element not in _OF_NO_CLASS
        for name, row in factory(element)[2].PROPERTIES.items()
    ]


def test_no_property_is_accepted_without_a_reason(gst: Any) -> None:
    silent = [(one, name) for one, name, row in _tables(gst) if row.text == "accepted"]
    assert silent == []


def test_a_property_without_effect_is_named_when_it_is_set(
    gst: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    for element, name, row in _tables(gst):
        if not row.is_ignored:
            continue
        calm = (row.default, *row.idle)
        if row.choices is not None:
            value = next(v for v, _ in row.choices.nicks if v not in calm)
        elif row.kind == "bool":
            value = not row.default
        elif row.kind == "str":
            value = "some"
        else:
            value = (row.default or 0) + 1
            most = row.most or {"uint": U, "uint64": 2**64 - 1}.get(row.kind, I)
            value = row.default - 1 if value > most else value
        made = gst.ElementFactory.make(element, None)
        capfd.readouterr()
        made.set_property(name, value)
        assert f"{name}={value} has no effect yet" in capfd.readouterr().err, (element, name)
        made.set_property(name, row.default)
        for harmless in calm:
            made.set_property(name, harmless)
        assert "no effect" not in capfd.readouterr().err, (element, name)


def test_every_other_property_is_read_somewhere(gst: Any) -> None:
    folder = Path(elements.__file__).parent
    sources = "\n".join(path.read_text() for path in sorted(folder.rglob("*.py")))
    unread = []
    for element, name, row in _tables(gst):
        if row.is_ignored or row.text.startswith("accepted;"):
            continue
        # Once in the table, and once or more where its value is used, or for a part of that name.
        if sources.count(f'"{name}"') + (name == "quality") < 2:
            unread.append((element, name))
    assert unread == []
