"""Results of `nvdsanalytics` on frames and objects."""

from __future__ import annotations

from noria.pyds.struct import Struct

FRAME_TYPE = "NVIDIA.DSANALYTICSFRAME.USER_META"
OBJECT_TYPE = "NVIDIA.DSANALYTICSOBJ.USER_META"


class NvDsAnalyticsFrameMeta(Struct):
    """Counts of a frame, by the name of the rule."""

    unique_id = 0

    def __init__(self) -> None:
        self.ocStatus: dict[str, bool] = {}
        self.objInROIcnt: dict[str, int] = {}
        self.objLCCurrCnt: dict[str, int] = {}
        self.objLCCumCnt: dict[str, int] = {}
        self.objCnt: dict[int, int] = {}


class NvDsAnalyticsObjInfo(Struct):
    """Names of the rules that an object fulfils."""

    unique_id = 0
    dirStatus = ""
    objStatus = ""

    def __init__(self) -> None:
        self.roiStatus: list[str] = []
        self.ocStatus: list[str] = []
        self.lcStatus: list[str] = []
