"""DeepStream's Python API over Noria's GStreamer elements.

`import pyds` registers the elements (`nvinfer`, `nvstreammux`, …) in this process.
"""

from __future__ import annotations

from pyds.functions import *  # noqa: F403 - the names of the original, all of them
from pyds.meta import *  # noqa: F403
from pyds.osd import *  # noqa: F403

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

for _type in NvDsMetaType:  # noqa: F405
    globals()[_type.name] = _type


def _register() -> None:
    from noria.gst.register import register

    register()


_register()
