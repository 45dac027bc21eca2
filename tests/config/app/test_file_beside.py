"""No file beside an application config breaks its reader: a refusal is a `ConfigError`, always."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.config import load_pipeline
from headrace.config.server_config import read_server_config
from headrace.errors import ConfigError
from headrace.media.messages.commands import sensor_numbers
from headrace.media.messages.converter import read_adaptor_config, read_converter_config
from headrace.pipeline.analytics import load_rules
from tests.profiles import examples

CSV = "enable,type,uri,num-sources,camera-width\n1,3,file:///a%d.mp4,2,640\n1,4,rtsp://h/1,1,\n"
SERVER = """infer_config { unique_id: 5 max_batch_size: 2
  backend { inputs [{ name: "x" dims: [3, 8, 8] }] triton { model_name: "m" version: -1
    model_repo { root: "." strict_model_config: true } } }
  preprocess { network_format: IMAGE_FORMAT_RGB normalize { scale_factor: 0.5
    channel_offsets: [1, 2, 3] } }
  postprocess { labelfile_path: "l.txt" detection { num_detected_classes: 2
    per_class_params { key: 0 value { pre_threshold: 0.4 } } nms { iou_threshold: 0.5 } } } }
input_control { process_mode: PROCESS_MODE_FULL_FRAME interval: 0 }
"""
MESSAGES = "[sensor0]\nenable=1\nid=a\nlocation=1;2;3\n[place0]\nname=b\n[message-broker]\nx=1\n"
RULES = "[property]\nenable=1\nconfig-width=64\nconfig-height=48\n[roi-filtering-stream-0]\n"
RULES += "enable=1\nroi-RF=1;2;30;4;30;40\nclass-id=-1\n"


def csv(path: Path) -> None:
    app = path.with_name("app.yml")
    app.write_text(f"source:\n  csv-file-path: {path.name}\n")
    load_pipeline(app)


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "csv": (CSV, csv),
    "server": (SERVER, lambda path: read_server_config(path.read_bytes(), path)),
    "converter": (MESSAGES, read_converter_config),
    "adaptor": (MESSAGES, read_adaptor_config),
    "sensors": (MESSAGES, sensor_numbers),
    "analytics": (RULES, load_rules),
}
_TOKENS = st.sampled_from(
    ["{", "}", "[", "]", ";", ",", "=", ":", '"', "-1", "0", "99999999999999999999", "nan", "1e999",
     "\n", "%d", "%99999d", "enable", "\x00", "\ud7ff", "#"]
)  # fmt: skip


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=examples(120), deadline=None)
@given(data=st.data())
def test_no_file_breaks_its_reader(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    text, reader = READERS[name]
    content = text.encode()
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content)))
        gone = data.draw(st.integers(0, 12))
        put = data.draw(_TOKENS.map(str.encode) | st.binary(max_size=6))
        content = content[:place] + put + content[place + gone :]
    path = tmp_path_factory.getbasetemp() / f"beside-{name}.txt"
    path.write_bytes(content)
    with suppress(ConfigError):
        reader(path)
