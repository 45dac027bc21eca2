"""Checks of a config before anything is built, shared by a run and its dry run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noria._core.errors import ConfigError
from noria._core.notices import Notice
from noria.config.enums import ClusterMode, NetworkType
from noria.infer.labels import Labels

if TYPE_CHECKING:
    from noria.config import ModelConfig

_PARSER_KEYS = {
    NetworkType.DETECTOR: "parse_bbox_func_name",
    NetworkType.CLASSIFIER: "parse_classifier_func_name",
    NetworkType.SEGMENTATION: "parse_segmentation_func_name",
    NetworkType.INSTANCE_SEGMENTATION: "parse_bbox_instance_mask_func_name",
}


def require_runnable(cfg: ModelConfig) -> None:
    """Refuse combinations that the original refuses at start.

    Raises:
        ConfigError: no unique id; clustering that a mask does not survive; no instance parser.
    Source: spec 0.3, C.1, D.6; config facts 5.9 (X12).
    """
    if cfg.gie_unique_id is None:
        raise ConfigError(
            "gie-unique-id is not given",
            where=str(cfg.path),
            expected="a number above 0 that no other model of the pipeline has",
            fix="add gie-unique-id=1 to [property], or give unique_id=1 to Inferencer.from_config",
        )
    if cfg.cluster_mode is not ClusterMode.NONE:
        mode = f"cluster-mode={int(cfg.cluster_mode)}"
        where = cfg.origin("cluster_mode").where or str(cfg.path)
        if cfg.network_type is NetworkType.INSTANCE_SEGMENTATION:
            raise ConfigError(
                f"{mode} with network-type=3 (instance segmentation)",
                where=where,
                expected="cluster-mode=4: the parser suppresses boxes itself",
                fix="set cluster-mode=4",
            )
        if cfg.output_instance_mask:
            raise ConfigError(
                f"{mode} with output-instance-mask=1",
                where=where,
                expected="cluster-mode=4: merged boxes have no mask",
                fix="set cluster-mode=4, or leave output-instance-mask out",
            )


def skipped_files(cfg: ModelConfig) -> tuple[str, ...]:
    """Files that `check_files` leaves to others: a parser's library may have a replacement."""
    key = _PARSER_KEYS.get(cfg.network_type)
    return ("custom-lib-path",) if key and getattr(cfg, key) else ()


def label_notices(cfg: ModelConfig, labels: Labels) -> list[Notice]:
    """A warning if there are fewer labels than classes, or a classifier's file looks wrong."""
    where = str(cfg.labelfile_path)
    count = len(labels)
    if cfg.network_type is NetworkType.CLASSIFIER:
        if count > 1 and all(len(fields) == 1 for fields in labels.records):
            text = f"{count} lines of one label each: a classifier's label file has one line for"
            text += " each attribute, its classes separated by ';', so only class 0 has a name"
            return [Notice("warning", text, where)]
        return []
    if count >= cfg.num_detected_classes:
        return []
    said = "1 label" if count == 1 else f"{count} labels"
    text = f"{said} for num-detected-classes={cfg.num_detected_classes}"
    return [Notice("warning", f"{text}: objects of the other classes have no name", where)]
