"""DeepStream's Python API for metadata; applications get it under the name `pyds`."""

from __future__ import annotations

from enum import IntEnum

from headrace.gstreamer.pyds.analytics import *  # noqa: F403
from headrace.gstreamer.pyds.copies import *  # noqa: F403
from headrace.gstreamer.pyds.events import *  # noqa: F403
from headrace.gstreamer.pyds.functions import *  # noqa: F403 - the names of the original, all of them
from headrace.gstreamer.pyds.inference import *  # noqa: F403
from headrace.gstreamer.pyds.messages import *  # noqa: F403
from headrace.gstreamer.pyds.meta import *  # noqa: F403
from headrace.gstreamer.pyds.object_encoder import *  # noqa: F403
from headrace.gstreamer.pyds.optical_flow import *  # noqa: F403
from headrace.gstreamer.pyds.osd import *  # noqa: F403
from headrace.gstreamer.pyds.preprocess import *  # noqa: F403
from headrace.gstreamer.pyds.surfaces import *  # noqa: F403
from headrace.gstreamer.pyds.tracking import *  # noqa: F403

__version__ = "1.2.0"

MAX_LABEL_SIZE = 128
MAX_USER_FIELDS = 4
MAX_RESERVED_FIELDS = 4

for _type in [*globals().values()]:
    if isinstance(_type, type) and issubclass(_type, IntEnum) and _type is not IntEnum:
        globals().update({_value.name: _value for _value in _type})
