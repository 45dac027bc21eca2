"""DeepStream's Python API for metadata; applications get it under the name `pyds`.

Start at `meta.py`.
"""

from __future__ import annotations

from enum import IntEnum

from headrace.gstreamer.pyds.analytics import *
from headrace.gstreamer.pyds.copies import *
from headrace.gstreamer.pyds.events import *
from headrace.gstreamer.pyds.functions import *
from headrace.gstreamer.pyds.inference import *
from headrace.gstreamer.pyds.messages import *
from headrace.gstreamer.pyds.meta import *
from headrace.gstreamer.pyds.object_encoder import *
from headrace.gstreamer.pyds.optical_flow import *
from headrace.gstreamer.pyds.osd import *
from headrace.gstreamer.pyds.preprocess import *
from headrace.gstreamer.pyds.surfaces import *
from headrace.gstreamer.pyds.tracking import *

__version__ = "1.2.0"

MAX_LABEL_SIZE = 128
MAX_USER_FIELDS = 4
MAX_RESERVED_FIELDS = 4

for _type in [*globals().values()]:
    if isinstance(_type, type) and issubclass(_type, IntEnum) and _type is not IntEnum:
        globals().update({_value.name: _value for _value in _type})
