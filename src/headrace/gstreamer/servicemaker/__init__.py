"""DeepStream's service maker for Python; applications get it under the name `pyservicemaker`.

Start at `pipeline.py`.
"""

from __future__ import annotations

from headrace.gstreamer.servicemaker import (
    flow,
    logging,
    osd,
    postprocessing,
    signal,
    standard_probes,
    utils,
)
from headrace.gstreamer.servicemaker.buffers import (
    BufferProvider,
    BufferRetriever,
    Feeder,
    Receiver,
)
from headrace.gstreamer.servicemaker.description import CameraInfo, SensorInfo, SourceConfig
from headrace.gstreamer.servicemaker.flow import (
    Flow,
    RecordConfig,
    RenderMode,
    SmartRecordConfig,
)
from headrace.gstreamer.servicemaker.metadata import (
    BatchMetadata,
    DisplayMetadata,
    EventMessageUserMetadata,
    FrameMetadata,
    ObjectMetadata,
    PreprocessBatchUserMetadata,
    RoiMetadata,
    UserMetadata,
)
from headrace.gstreamer.servicemaker.nodes import Node
from headrace.gstreamer.servicemaker.pipeline import (
    DynamicSourceMessage,
    EOSMessage,
    Pipeline,
    PipelineState,
    StateTransitionMessage,
)
from headrace.gstreamer.servicemaker.probes import (
    BatchMetadataOperator,
    BufferOperator,
    CommonFactory,
    Probe,
    probe,
)
from headrace.gstreamer.servicemaker.results import (
    AnalyticsFrameMeta,
    AnalyticsObjInfo,
    ClassifierMetadata,
    SegmentationUserMetadata,
    TensorOutputUserMetadata,
)
from headrace.gstreamer.servicemaker.tensor import Buffer, ColorFormat, Tensor, as_tensor

__all__ = [
    "AnalyticsFrameMeta",
    "AnalyticsObjInfo",
    "BatchMetadata",
    "BatchMetadataOperator",
    "Buffer",
    "BufferOperator",
    "BufferProvider",
    "BufferRetriever",
    "CameraInfo",
    "ClassifierMetadata",
    "ColorFormat",
    "CommonFactory",
    "DisplayMetadata",
    "DynamicSourceMessage",
    "EOSMessage",
    "EventMessageUserMetadata",
    "Feeder",
    "Flow",
    "FrameMetadata",
    "Node",
    "ObjectMetadata",
    "Pipeline",
    "PipelineState",
    "PreprocessBatchUserMetadata",
    "Probe",
    "Receiver",
    "RecordConfig",
    "RenderMode",
    "RoiMetadata",
    "SegmentationUserMetadata",
    "SensorInfo",
    "SmartRecordConfig",
    "SourceConfig",
    "StateTransitionMessage",
    "Tensor",
    "TensorOutputUserMetadata",
    "UserMetadata",
    "as_tensor",
    "flow",
    "logging",
    "osd",
    "postprocessing",
    "probe",
    "signal",
    "standard_probes",
    "utils",
]


def __getattr__(name: str) -> object:
    raise AttributeError(
        f"pyservicemaker of Headrace has no {name!r}; docs/gstreamer.md lists the names that it has"
    )
