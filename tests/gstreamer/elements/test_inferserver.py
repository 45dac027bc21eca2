"""Configurations of nvinferserver, and the text form of protocol buffers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headrace.config import ModelConfig
from headrace.errors import ConfigError
from tests.gstreamer.conftest import Run, video
from tests.outside.app_models import save_color_classes

CONFIG = """
infer_config {
  unique_id: 7   # of metadata
  gpu_ids: [0]
  max_batch_size: 4
  backend { triton { model_name: "colors" version: -1 model_repo { root: "repo" } } }
  preprocess {
    network_format: IMAGE_FORMAT_RGB
    normalize { scale_factor: 0.0039215 channel_offsets: [1, 2, 3] }
  }
  postprocess { POST }
}
input_control { process_mode: PROCESS_MODE_CLIP_OBJECTS operate_on_gie_id: 1
  operate_on_class_ids: [0, 2] interval: 3 }
output_control { output_tensor_meta: true }
"""


@pytest.fixture
def repository(gst: Any, tmp_path: Path) -> Path:
    for version in ("1", "3"):
        (tmp_path / "repo" / "colors" / version).mkdir(parents=True)
        save_color_classes(tmp_path / "repo" / "colors" / version / "model.onnx", 64, 48)
    return tmp_path


def read(folder: Path, post: str, **changes: str) -> Any:
    text = CONFIG.replace("POST", post)
    for old, new in changes.items():
        text = text.replace(old, new)
    (folder / "config.txt").write_text(text)
    return ModelConfig.load(folder / "config.txt")


def test_a_detector(repository: Path) -> None:
    post = """labelfile_path: "labels.txt" detection { num_detected_classes: 91
      custom_parse_bbox_func: "Parse" nms { confidence_threshold: 0.5 iou_threshold: 0.25
      topk : 20 } }"""
    cfg = read(repository, post)
    assert cfg.onnx_file == repository / "repo" / "colors" / "3" / "model.onnx"
    assert cfg.labelfile_path == repository / "labels.txt"
    assert (cfg.gie_unique_id, cfg.batch_size, cfg.interval) == (7, 4, 3)
    assert (cfg.process_mode, cfg.operate_on_gie_id, cfg.operate_on_class_ids) == (2, 1, (0, 2))
    assert (cfg.network_type, cfg.num_detected_classes, cfg.cluster_mode) == (0, 91, 2)
    assert (cfg.parse_bbox_func_name, cfg.output_tensor_meta) == ("Parse", True)
    assert cfg.offsets == (1, 2, 3)
    attrs = cfg.all_classes
    assert (attrs.pre_cluster_threshold, attrs.nms_iou_threshold, attrs.topk) == (0.5, 0.25, 20)


def test_other_kinds(repository: Path) -> None:
    cfg = read(repository, "classification { threshold: 0.6 }")
    assert (cfg.network_type, cfg.classifier_threshold) == (1, 0.6)
    cfg = read(repository, "segmentation { threshold: 0.6 num_segmentation_classes: 4 }")
    assert (cfg.network_type, cfg.segmentation_threshold, cfg.num_detected_classes) == (2, 0.6, 4)
    assert read(repository, "other {}").network_type == 100


def test_what_it_refuses(repository: Path) -> None:
    with pytest.raises(ConfigError, match=r"there is no .*9/model\.onnx"):
        read(repository, "other {}", **{"version: -1": "version: 9"})
    with pytest.raises(ConfigError, match="names no model_name"):
        read(repository, "other {}", model_repo="grpc")
    with pytest.raises(ConfigError, match="IMAGE_FORMAT_ODD"):
        read(repository, "other {}", IMAGE_FORMAT_RGB="IMAGE_FORMAT_ODD")
    with pytest.raises(ConfigError, match="is not key=value"):
        read(repository, "other {}", infer_config="else")
    with pytest.raises(ConfigError, match=r"config\.txt:3"):
        read(repository, "other {}", **{"unique_id: 7": "unique_id 7"})


def test_it_runs_the_model(play: Run, repository: Path) -> None:
    from headrace.gstreamer import pyds

    def look(buffer: Any) -> tuple[int, list[int]]:
        batch = pyds.gst_buffer_get_nvds_batch_meta(hash(buffer))
        meta = batch.frame_meta_list.data.frame_user_meta_list.data.user_meta_data
        return meta.unique_id, pyds.get_nvds_LayerInfo(meta, 0).dims.d[:3]

    clip = {"PROCESS_MODE_CLIP_OBJECTS": "PROCESS_MODE_FULL_FRAME", "interval: 3": ""}
    read(repository, "other {}", **clip)
    ran = play(
        f"{video(2)} ! m.sink_0 nvstreammux name=m batch-size=1 width=64 height=48 ! "
        f"nvinferserver config-file-path={repository}/config.txt ! fakesink name=end",
        end=look,
    )
    assert ran.errors == []
    assert set(map(str, ran.seen["end"])) == {"(7, [4, 48, 64])"}
