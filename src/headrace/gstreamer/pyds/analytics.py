"""Results of `nvdsanalytics` on frames and objects."""

from __future__ import annotations

from headrace.gstreamer.pyds.meta import NvDsMetaType
from headrace.gstreamer.pyds.struct import Struct

# what applications of releases before 8.0 pass to nvds_get_user_meta_type -> the type since then
FIXED_TYPES = {
    "NVIDIA.DSANALYTICSFRAME.USER_META": NvDsMetaType.NVDS_FRAME_META_NVDSANALYTICS,
    "NVIDIA.DSANALYTICSOBJ.USER_META": NvDsMetaType.NVDS_OBJ_META_NVDSANALYTICS,
}


class NvDsAnalyticsFrameMeta(Struct):
    """Counts of a frame, by the name of the rule.

    Attributes:
        unique_id: number of the element.
        ocStatus: True where a crowd has reached its threshold.
        objInROIcnt: objects in each region and crowd.
        objLCCurrCnt, objLCCumCnt: crossings of each line, in this frame and so far.
        objCnt: objects of each class.
    """

    unique_id = 0

    def __init__(self) -> None:
        self.ocStatus: dict[str, bool] = {}
        self.objInROIcnt: dict[str, int] = {}
        self.objLCCurrCnt: dict[str, int] = {}
        self.objLCCumCnt: dict[str, int] = {}
        self.objCnt: dict[int, int] = {}


class NvDsAnalyticsObjInfo(Struct):
    """Names of the rules that an object fulfils.

    Attributes:
        unique_id: number of the element.
        roiStatus, ocStatus, lcStatus: regions and crowds it is in, lines it crossed.
        dirStatus, objStatus: its direction, and everything, as texts.
    """

    unique_id = 0
    dirStatus = ""
    objStatus = ""

    def __init__(self) -> None:
        self.roiStatus: list[str] = []
        self.ocStatus: list[str] = []
        self.lcStatus: list[str] = []
