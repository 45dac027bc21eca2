"""Raw outputs that a model attached (`output-tensor-meta`), parsed afterwards by another config."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headrace._core.errors import ConfigError
from headrace._core.findings import Finding
from headrace._core.notices import notices_on_errors
from headrace.config import ModelConfig
from headrace.config.enums import PARSER_FIELDS, NetworkType
from headrace.infer.decoding import (
    parser_and_labels,
    postprocessor_of,
)
from headrace.infer.geometry import Rect, ScaleTransform, fit
from headrace.infer.items import Items, roi_transform
from headrace.infer.parser_choice import Choice
from headrace.infer.parser_fit import check_outputs
from headrace.infer.parsers.labels import Labels
from headrace.infer.postprocess import Postprocessor
from headrace.infer.record import Record
from headrace.infer.run_options import RunOptions
from headrace.infer.selection import Selection
from headrace.meta import FrameMeta, Roi, TensorOutput
from headrace.network.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from headrace.media.frame import Frame

STANDARD_LIBRARY = "libpostprocess_impl.so"
# The standard library's functions are those of nvinfer's libraries under other names.
_RENAMED = re.compile(r"^NvDsPostProcess(?=(Parse|Classifer))")


def outputs_config(path: str | Path, library: str | None = None) -> ModelConfig:
    """Read a config file of `nvdspostprocess`.

    Its keys are those of nvinfer that concern outputs. A library other than the standard one is
    taken as the file of the functions that `parse-…-func-name` names, C++ or Python.

    Args:
        path: the file, INI or YAML.
        library: the property `postprocesslib-name`.

    Raises:
        ConfigError: the file is refused, or asks for nothing to be parsed.
    """
    cfg = ModelConfig.load(path)
    if cfg.network_type is NetworkType.OTHER:
        raise ConfigError(
            "network-type=100 parses nothing",
            where=cfg.origin("network_type").where or str(path),
            expected="0 (detector), 1 (classifier), 2 or 3 (segmentation)",
        )
    changes: dict[str, object] = {}
    for field in PARSER_FIELDS.values():
        name = getattr(cfg, field)
        if name and not cfg.custom_lib_path:
            changes[field] = _RENAMED.sub("NvDsInfer", name)
    if library and Path(library).name != STANDARD_LIBRARY and cfg.custom_lib_path is None:
        changes = {"custom_lib_path": Path(library)}
    return cfg.with_overrides(**changes) if changes else cfg


class RawOutputParser:
    """Parses, clusters and attaches outputs of the model with the config's `gie-unique-id`.

    Args:
        config: `network-type`, parser, thresholds, clustering and labels.
        options: the rules of a generation, layout of a C++ parser's boxes, its worker process.

    Raises:
        ConfigError, CustomLibraryError: parser or labels cannot be had.
    """

    def __init__(self, config: ModelConfig, options: RunOptions | None = None) -> None:
        self.config = config
        self.record = Record()
        self._options = options or RunOptions()
        self._found: list[Finding] = list(config.notices)
        self._choice: Choice | None
        self._labels: Labels
        with notices_on_errors(self._found):
            self._choice, self._labels = parser_and_labels(config, self._options, self._found)
        self._postprocessor: Postprocessor | None = None

    @property
    def notices(self) -> list[Finding]:
        """Decisions so far, those of library and parser included."""
        of_parser = [] if self._choice is None else self._choice.all_notices()
        return [*self._found, *of_parser, *self.record.notices]

    def parse_frame(self, frame: Frame, meta: FrameMeta, output: TensorOutput) -> None:
        """Attach the results of the outputs for a whole frame.

        Raises:
            ParserError: the built-in grid parser does not fit the outputs.
            ConfigError: the parser needs another number of classes.
        """
        rect = Rect(0, 0, frame.width, frame.height)
        self._attach(output, Items([meta], [frame], transforms=[_fitted(rect, output)]))

    def parse_object(self, frame: Frame, meta: FrameMeta, index: int, output: TensorOutput) -> None:
        """Attach the results of the outputs for an object of a frame.

        Raises:
            ParserError, ConfigError: as `parse_frame`.
        """
        rects = meta.objects.rects[index : index + 1].copy()
        transform = _fitted(Rect(*rects[0].tolist()), output)
        chosen = Selection(meta.source_id, np.array([index], np.int32), np.empty(0, np.int32))
        items = Items(
            [meta],
            [frame],
            objects=[index],
            rects=rects,
            transforms=[transform],
            parts=[(chosen, 0, 1)],
        )
        self._attach(output, items)

    def parse_region(self, meta: FrameMeta, roi: Roi, output: TensorOutput) -> None:
        """Attach the results of the outputs for a region of a prepared tensor.

        Raises:
            ParserError, ConfigError: as `parse_frame`.
        """
        index = -1 if roi.object_index is None else roi.object_index
        transform = roi_transform(roi)
        self._attach(output, Items([meta], objects=[index], rois=[roi], transforms=[transform]))

    def close(self) -> None:
        """End the library's worker process if it has one."""
        if self._choice is not None:
            self._choice.close()

    def _attach(self, output: TensorOutput, items: Items) -> None:
        if self._postprocessor is None:
            self._postprocessor = self._made(output)
        arrays = {name: layer.data[np.newaxis] for name, layer in output.layers.items()}
        self._postprocessor.attach(arrays, items)

    def _made(self, output: TensorOutput) -> Postprocessor:
        """The steps for outputs like these."""
        cfg, choice = self.config, self._choice
        specs = [
            TensorSpec(name, layer.data.dtype, (None, *layer.data.shape))
            for name, layer in output.layers.items()
        ]
        check_outputs(cfg, choice, specs, output.network, self._labels, self._found)
        postprocessor = postprocessor_of(
            cfg, output.network, choice, self._labels, None, self._options, self.record
        )
        assert postprocessor is not None  # network-type 100 is refused
        return postprocessor


def _fitted(rect: Rect, output: TensorOutput) -> ScaleTransform:
    return fit(
        rect,
        output.network.width,
        output.network.height,
        maintain_aspect_ratio=output.maintain_aspect_ratio,
        symmetric_padding=output.symmetric_padding,
    )
