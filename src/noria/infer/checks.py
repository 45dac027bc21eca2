"""What must hold of a config before anything is built, shared by a run and its dry run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from noria.errors import ConfigError
from noria.notices import Notice

if TYPE_CHECKING:
    from noria.config import ModelConfig

__all__ = ["label_notices", "require_primary_detector", "skipped_files"]


def require_primary_detector(cfg: ModelConfig) -> None:
    """Refuse what this release reads but cannot run.

    Raises:
        ConfigError: the config is not of a detector on whole frames.
    """
    if cfg.network_type != 0:
        raise ConfigError(
            f"network-type={int(cfg.network_type)} cannot be run yet",
            where=str(cfg.origin("network_type")),
            expected="0 (detector)",
            fix="noria show CONFIG reads it; detectors are what this release runs",
        )
    if cfg.process_mode != 1:
        raise ConfigError(
            f"process-mode={int(cfg.process_mode)} (secondary) cannot be run yet",
            where=str(cfg.origin("process_mode")),
            expected="1 (primary: whole frames)",
            fix="a secondary model needs the objects of a primary one: not chained yet",
        )


def skipped_files(cfg: ModelConfig) -> tuple[str, ...]:
    """Files that `check_files` leaves to others: a parser's library may have a replacement."""
    return ("custom-lib-path",) if cfg.parse_bbox_func_name else ()


def label_notices(cfg: ModelConfig, count: int) -> list[Notice]:
    """A warning if there are fewer labels than classes."""
    if count >= cfg.num_detected_classes:
        return []
    labels = "1 label" if count == 1 else f"{count} labels"
    text = f"{labels} for num-detected-classes={cfg.num_detected_classes}"
    return [
        Notice(
            "warning", f"{text}: objects of the other classes have no name", str(cfg.labelfile_path)
        )
    ]
