"""DeepStream's Python API for metadata; applications get it under the name `pyds`."""

from __future__ import annotations

from headrace.gstreamer.pyds.analytics import *  # noqa: F403
from headrace.gstreamer.pyds.functions import *  # noqa: F403 - the names of the original, all of them
from headrace.gstreamer.pyds.inference import *  # noqa: F403
from headrace.gstreamer.pyds.messages import *  # noqa: F403
from headrace.gstreamer.pyds.meta import *  # noqa: F403
from headrace.gstreamer.pyds.object_encoder import *  # noqa: F403
from headrace.gstreamer.pyds.osd import *  # noqa: F403
from headrace.gstreamer.pyds.preprocess import *  # noqa: F403

__version__ = "1.2.0"

NVBUF_MEM_DEFAULT = 0
NVBUF_MEM_CUDA_PINNED = 1
NVBUF_MEM_CUDA_DEVICE = 2
NVBUF_MEM_CUDA_UNIFIED = 3
NVBUF_MEM_SURFACE_ARRAY = 4
NVBUF_MEM_HANDLE = 5
NVBUF_MEM_SYSTEM = 6
MAX_LABEL_SIZE = 128
MAX_USER_FIELDS = 4
MAX_RESERVED_FIELDS = 4

_EXPORTED = (NvDsMetaType, NvDsEventType, NvDsObjectType, NvDsPayloadType)  # noqa: F405
for _types in (*_EXPORTED, NvDsInferDataType):  # noqa: F405
    for _type in _types:
        globals()[_type.name] = _type
