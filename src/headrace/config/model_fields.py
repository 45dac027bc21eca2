"""`ModelFields`: the values of one model's config, typed, with their origins."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple, Self, TypeVar

from headrace._core.findings import Finding
from headrace.config.class_attrs import ClassAttrs
from headrace.config.document import AddedLine
from headrace.config.enums import (
    ClusterMode,
    ColorFormat,
    NetworkMode,
    NetworkType,
    ProcessMode,
    ScalingComputeHw,
    ScalingFilter,
    TensorOrder,
    UffInputOrder,
)
from headrace.config.frozen import Frozen
from headrace.config.origin import DEFAULT, Origin
from headrace.config.profile import Profile
from headrace.config.values import MAX_CANDIDATES


class EffectiveCluster(NamedTuple):
    """The clustering that really runs, see `ModelConfig.effective_cluster`.

    `overrides` maps `ClassAttrs` field names to the values every class takes instead of its own.
    """

    mode: ClusterMode
    overrides: Mapping[str, float]


class ModelFields(Frozen):
    """The values of one model's config and their origins; `ModelConfig` reads and writes them."""

    # identity, scheduling, batching
    gie_unique_id: int | None = None
    process_mode: ProcessMode = ProcessMode.PRIMARY
    interval: int = 0
    gpu_id: int = 0
    batch_size: int = 1
    network_type: NetworkType = NetworkType.DETECTOR
    # where the network comes from
    model_engine_file: Path | None = None
    onnx_file: Path | None = None
    tlt_encoded_model: Path | None = None
    tlt_model_key: str | None = None
    model_file: Path | None = None
    proto_file: Path | None = None
    uff_file: Path | None = None
    uff_input_blob_name: str | None = None
    uff_input_order: UffInputOrder = UffInputOrder.NCHW
    custom_network_config: str | None = None
    output_blob_names: tuple[str, ...] = ()
    engine_create_func_name: str | None = None
    custom_lib_path: Path | None = None
    custom_lib_abi: Literal["auto", "24", "28"] = "auto"
    custom_lib_int64: Literal["auto", "int32", "int64"] = "auto"
    custom_lib_guard: Literal["auto", "always", "never"] = "auto"
    custom_lib_guard_timeout: float = 10.0
    custom_lib_guard_memory: int = 4096
    custom_lib_guard_restarts: int = 5
    custom_lib_guard_env: tuple[str, ...] = ()
    custom_lib_paths: tuple[str, ...] = ()
    # engine build
    network_mode: NetworkMode = NetworkMode.FP32
    fp16_simulation: Literal["check", "full", "off"] = "check"
    int8_calib_file: Path | None = None
    workspace_size: int = 0
    force_implicit_batch_dim: bool = False
    infer_dims: tuple[int, int, int] | None = None
    output_io_formats: tuple[str, ...] = ()
    layer_device_precision: tuple[str, ...] = ()
    input_values: tuple[str, ...] = ()
    enable_dla: bool = False
    use_dla_core: int = 0
    strongly_typed: bool = False
    dynamic_properties: str | None = None
    warmup_engine: bool = False
    # input tensor and preprocessing
    profile: Profile = "nvinfer"
    model_color_format: ColorFormat = ColorFormat.RGB
    net_scale_factor: float = 1.0
    offsets: tuple[float, ...] = ()
    mean_file: Path | None = None
    network_input_order: TensorOrder = TensorOrder.NCHW
    maintain_aspect_ratio: bool = False
    symmetric_padding: bool = False
    scaling_filter: ScalingFilter = ScalingFilter.DEFAULT
    scaling_compute_hw: ScalingComputeHw = ScalingComputeHw.DEFAULT
    input_tensor_from_meta: bool = False
    # outputs, labels, detector
    labelfile_path: Path | None = None
    num_detected_classes: int = 0
    parse_bbox_func_name: str | None = None
    parse_bbox_instance_mask_func_name: str | None = None
    parse_classifier_func_name: str | None = None
    parse_segmentation_func_name: str | None = None
    cluster_mode: ClusterMode = ClusterMode.GROUP_RECTANGLES
    filter_out_class_ids: tuple[int, ...] = ()
    crop_objects_to_roi_boundary: bool = False
    max_candidates: int = MAX_CANDIDATES
    rotated_boxes: bool = False
    mask_content: Literal["auto", "mask", "keypoints"] = "auto"
    keypoint_skeleton: tuple[int, ...] = ()
    output_instance_mask: bool = False
    # classifier and segmentation
    classifier_threshold: float = 0.0
    classifier_async_mode: bool = False
    classifier_type: str | None = None
    segmentation_threshold: float = 0.0
    segmentation_output_order: TensorOrder = TensorOrder.NCHW
    # secondary mode
    operate_on_gie_id: int = -1
    operate_on_class_ids: tuple[int, ...] = ()
    input_object_min_width: int = 0
    input_object_min_height: int = 0
    input_object_max_width: int = 0
    input_object_max_height: int = 0
    secondary_reinfer_interval: int = 2147483647
    # tensors, pools, memory
    output_tensor_meta: bool = False
    centre_crop: float = 0.0
    output_image: Literal["none", "depth", "image"] = "none"
    tensor_meta_pool_size: int = 2
    auto_inc_mem: bool = True
    max_gpu_mem_per: float = 99.0
    disable_output_host_copy: bool = False
    # debugging
    raw_output_file_write: bool = False
    dump_input_tensor: bool = False
    dump_output_tensor: bool = False
    overwrite_input_tensor: bool = False
    ip_tensor_file: Path | None = None
    overwrite_output_tensor: bool = False
    op_tensor_files: tuple[Path, ...] = ()
    stabilize_buffer_count: int = 0
    # [class-attrs-all] over the defaults; then each [class-attrs-<n>] over that, complete
    all_classes: ClassAttrs = ClassAttrs()
    classes: Mapping[int, ClassAttrs] = MappingProxyType({})

    _path = Path("<no file>")
    _read_notices = tuple[Finding, ...]()
    _labels = tuple[tuple[str, ...], ...]()

    @property
    def path(self) -> Path:
        """The config file, as it was named; `<no file>` for a config made by a program."""
        return self._path

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """Records as a label file has them, of a model that names its classes itself; else empty.

        `labelfile_path` wins.
        """
        return self._labels

    @property
    def read_notices(self) -> tuple[Finding, ...]:
        """Decisions and oddities of the reading, without those about the values."""
        return self._read_notices

    def origin(self, field: str, *, class_id: int | None = None) -> Origin:
        """Where the value of a field came from.

        Args:
            field: field name (`cluster_mode`) or key (`cluster-mode`); with `class_id` one of
                `ClassAttrs`.
            class_id: the class whose per-class value is asked for.

        Raises:
            KeyError: there is no such field.
        """
        if class_id is None:
            return self._origin_of(field)
        name = field.replace("-", "_")
        name = "min_boxes" if field == "minBoxes" else name
        if name not in ClassAttrs.__slots__:
            raise KeyError(field)
        own = self._origins.get(f"classes.{class_id}.{name}")
        return own or self._origins.get(f"all_classes.{name}", DEFAULT)

    def is_set(self, field: str) -> bool:
        """Whether a file or a program set a field; names are fields (`cluster_mode`)."""
        return field in self._set_values()

    def where(self, field: str) -> str:
        """The file and line, or the option, that set a field; the config's path where none did."""
        return self.origin(field).where or str(self.path)

    @property
    def component_id(self) -> int:
        """The id stamped on results: `gie-unique-id`, or 1 when the file leaves it out."""
        return 1 if self.gie_unique_id is None else self.gie_unique_id

    def class_attrs(self, class_id: int) -> ClassAttrs:
        """The settings of one class: defaults, then `class-attrs-all`, then `class-attrs-<n>`."""
        return self.classes.get(class_id, self.all_classes)

    @cached_property
    def per_class(self) -> tuple[ClassAttrs, ...]:
        """The settings of each class, `num_detected_classes` long."""
        return tuple(self.class_attrs(n) for n in range(self.num_detected_classes))

    @property
    def effective_cluster(self) -> EffectiveCluster:
        """The clustering that runs: mode 0 of a detector becomes NMS, IoU 0.5, 20 boxes per class.

        That is what stock builds of the original do since 6.0, whatever the file says for the two
        values. `cluster_mode` and the per-class settings keep what the file says.
        Source: config facts, section 5.6.
        """
        replaced = (
            self.network_type is NetworkType.DETECTOR
            and self.cluster_mode is ClusterMode.GROUP_RECTANGLES
        )
        if not replaced:
            return EffectiveCluster(self.cluster_mode, MappingProxyType({}))
        return EffectiveCluster(
            ClusterMode.NMS, MappingProxyType({"nms_iou_threshold": 0.5, "topk": 20})
        )

    def changed(
        self,
        values: Mapping[str, object],
        origins: Mapping[str, Origin],
        notices: Iterable[Finding] = (),
    ) -> Self:
        """`with_overrides` for values that come from another file.

        Args:
            values: fields to set.
            origins: where they come from: field names, `all_classes.<name>`, `classes.<n>.<name>`.
            notices: more of them, behind those of reading.

        Raises:
            ConfigError: a value is refused, or there is no such field.
        """
        kept, values = self._set_values(), dict(values)
        kind = values.get("network_type", self.network_type)
        if kind in [t for t in NetworkType if not t.has_class_attrs]:
            for name in ("all_classes", "classes"):
                kept.pop(name, None)
                values.pop(name, None)
        copy = type(self).__new__(type(self))
        copy._take(kept, values)
        copy._path = self._path
        copy._origins = {**self._origins, **origins}
        copy._read_notices = (*self._read_notices, *notices)
        copy._labels = self._labels
        return copy

    @abstractmethod
    def with_lines(self, lines: Sequence[AddedLine]) -> Self:
        """A copy with lines of a config applied.

        Raises:
            ConfigError: there is no such key, or a value is refused.
        """


Model = TypeVar("Model", bound=ModelFields)
