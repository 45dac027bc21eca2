"""Builder and config for functions of custom libraries that make the engine themselves."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noria import trt
from noria.config.enums import NetworkMode

if TYPE_CHECKING:
    from noria.config.model_config import ModelConfig

_FLAGS = {
    NetworkMode.FP16: ("FP16",),
    NetworkMode.INT8: ("INT8",),
    NetworkMode.BEST: ("INT8", "FP16"),
}


def remembering_builder(log_message: Callable[[int, str], None]) -> Any:
    """Make a `trt.Builder` that remembers the network of its last engine: `last`.

    Args:
        log_message: gets the severity and the text of each message.
    """

    class Listener(trt.ILogger):  # type: ignore[misc]
        def log(self, severity: Any, msg: str) -> None:
            log_message(int(severity), str(msg))

    class Builder(trt.Builder):  # type: ignore[misc]
        last: Any = None

        def _plan(self, network: Any, config: Any) -> Any:
            plan = super()._plan(network, config)
            self.last = network if plan is not None else self.last
            return plan

    return Builder(Listener())


def builder_config(builder: Any, cfg: ModelConfig) -> Any:
    """Make a builder's config with the precisions of `cfg`, as the original's host does.

    INT8 is set only with a calibration table that exists. Source: custom-library spec 3.2.
    """
    config = builder.create_builder_config()
    table = cfg.int8_calib_file
    usable = table is not None and table.exists()
    for name in _FLAGS.get(cfg.network_mode, ()):
        if name != "INT8" or usable:
            config.set_flag(trt.BuilderFlag[name])
        if name == "INT8" and usable and table is not None:
            config.int8_calibrator = _table_calibrator(table)
    return config


def _table_calibrator(table: Path) -> Any:
    """Make a calibrator that has the table alone, as the original's."""

    class Table(trt.IInt8EntropyCalibrator2):  # type: ignore[misc]
        def get_batch_size(self) -> int:
            return 0

        def get_batch(self, names: Any) -> None:
            return None

        def read_calibration_cache(self) -> bytes:
            return table.read_bytes()

        def write_calibration_cache(self, cache: Any) -> None:
            return None

    return Table()
