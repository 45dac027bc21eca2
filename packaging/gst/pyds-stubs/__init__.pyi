"""Types of `pyds`; written by scripts/pyds_stubs.py."""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, Self

import numpy as np
import numpy.typing as npt


class Struct:
    @classmethod
    def cast(cls, data: Any) -> Self: ...
    def copy_from(self, other: Struct) -> None: ...

class CustomDataStruct(Struct):
    structId: int
    @property
    def message(self) -> int: ...
    @message.setter
    def message(self, value: str) -> None: ...
    sampleInt: int

class GList:
    data: Any
    next: GList | None
    prev: GList | None

class GstNvDsMetaType(IntEnum):
    NVDS_GST_INVALID_META = -1
    NVDS_BATCH_GST_META = 4097
    NVDS_DECODER_GST_META = 4098
    NVDS_DEWARPER_GST_META = 4099
    NVDS_RESERVED_GST_META = 8192
    NVDS_GST_META_FORCE32 = 2147483647

class GstNvDsPreProcessBatchMeta(Struct):
    tensor_meta: Any
    private_data: Any
    def __init__(self) -> None: ...
    roi_vector: list[Any]
    target_unique_ids: list[Any]

class NvBbox_Coords(Struct):
    left: float
    top: float
    width: float
    height: float

class NvBufSurface(Struct):
    gpuId: int
    batchSize: int
    numFilled: int
    isContiguous: bool
    memType: int
    def __init__(self) -> None: ...
    @property
    def surfaceList(self) -> NvBufSurfaceParams | None: ...
    surfaces: list[Any]

class NvBufSurfaceColorFormat(IntEnum):
    NVBUF_COLOR_FORMAT_INVALID = 0
    NVBUF_COLOR_FORMAT_GRAY8 = 1
    NVBUF_COLOR_FORMAT_YUV420 = 2
    NVBUF_COLOR_FORMAT_YVU420 = 3
    NVBUF_COLOR_FORMAT_YUV420_ER = 4
    NVBUF_COLOR_FORMAT_YVU420_ER = 5
    NVBUF_COLOR_FORMAT_NV12 = 6
    NVBUF_COLOR_FORMAT_NV12_ER = 7
    NVBUF_COLOR_FORMAT_NV21 = 8
    NVBUF_COLOR_FORMAT_NV21_ER = 9
    NVBUF_COLOR_FORMAT_UYVY = 10
    NVBUF_COLOR_FORMAT_UYVY_ER = 11
    NVBUF_COLOR_FORMAT_VYUY = 12
    NVBUF_COLOR_FORMAT_VYUY_ER = 13
    NVBUF_COLOR_FORMAT_YUYV = 14
    NVBUF_COLOR_FORMAT_YUYV_ER = 15
    NVBUF_COLOR_FORMAT_YVYU = 16
    NVBUF_COLOR_FORMAT_YVYU_ER = 17
    NVBUF_COLOR_FORMAT_YUV444 = 18
    NVBUF_COLOR_FORMAT_RGBA = 19
    NVBUF_COLOR_FORMAT_BGRA = 20
    NVBUF_COLOR_FORMAT_ARGB = 21
    NVBUF_COLOR_FORMAT_ABGR = 22
    NVBUF_COLOR_FORMAT_RGBx = 23
    NVBUF_COLOR_FORMAT_BGRx = 24
    NVBUF_COLOR_FORMAT_xRGB = 25
    NVBUF_COLOR_FORMAT_xBGR = 26
    NVBUF_COLOR_FORMAT_RGB = 27
    NVBUF_COLOR_FORMAT_BGR = 28
    NVBUF_COLOR_FORMAT_NV12_10LE = 29
    NVBUF_COLOR_FORMAT_NV12_12LE = 30
    NVBUF_COLOR_FORMAT_YUV420_709 = 31
    NVBUF_COLOR_FORMAT_YUV420_709_ER = 32
    NVBUF_COLOR_FORMAT_NV12_709 = 33
    NVBUF_COLOR_FORMAT_NV12_709_ER = 34
    NVBUF_COLOR_FORMAT_YUV420_2020 = 35
    NVBUF_COLOR_FORMAT_NV12_2020 = 36
    NVBUF_COLOR_FORMAT_NV12_10LE_ER = 37
    NVBUF_COLOR_FORMAT_NV12_10LE_709 = 38
    NVBUF_COLOR_FORMAT_NV12_10LE_709_ER = 39
    NVBUF_COLOR_FORMAT_NV12_10LE_2020 = 40
    NVBUF_COLOR_FORMAT_SIGNED_R16G16 = 41
    NVBUF_COLOR_FORMAT_LAST = 42
def NvBufSurfaceCopy(srcSurf: NvBufSurface, dstSurf: NvBufSurface) -> int: ...
def NvBufSurfaceCreate(surf: NvBufSurface, batchSize: int, params: NvBufSurfaceCreateParams) -> int: ...

class NvBufSurfaceCreateParams(Struct):
    gpuId: int
    width: int
    height: int
    size: int
    isContiguous: bool
    colorFormat: int
    layout: int
    memType: int
def NvBufSurfaceDestroy(surf: NvBufSurface) -> int: ...
def NvBufSurfaceFromFd(dmabuf: int, buffer: object) -> int: ...

class NvBufSurfaceLayout(IntEnum):
    NVBUF_LAYOUT_PITCH = 0
    NVBUF_LAYOUT_BLOCK_LINEAR = 1
def NvBufSurfaceMap(surf: NvBufSurface, index: int, plane: int, type: int) -> int: ...
def NvBufSurfaceMapEglImage(surf: NvBufSurface, index: int) -> int: ...

class NvBufSurfaceMappedAddr(Struct):
    eglImage: int
    def __init__(self) -> None: ...
    addr: list[int]

class NvBufSurfaceMemMapFlags(IntEnum):
    NVBUF_MAP_READ = 0
    NVBUF_MAP_WRITE = 1
    NVBUF_MAP_READ_WRITE = 2
def NvBufSurfaceMemSet(surf: NvBufSurface, index: int, plane: int, value: int) -> int: ...

class NvBufSurfaceMemType(IntEnum):
    NVBUF_MEM_DEFAULT = 0
    NVBUF_MEM_CUDA_PINNED = 1
    NVBUF_MEM_CUDA_DEVICE = 2
    NVBUF_MEM_CUDA_UNIFIED = 3
    NVBUF_MEM_SURFACE_ARRAY = 4
    NVBUF_MEM_HANDLE = 5
    NVBUF_MEM_SYSTEM = 6

class NvBufSurfaceParams(Struct):
    width: int
    height: int
    pitch: int
    colorFormat: int
    layout: int
    bufferDesc: int
    dataSize: int
    dataPtr: int
    planeParams: NvBufSurfacePlaneParams
    mappedAddr: NvBufSurfaceMappedAddr

class NvBufSurfacePlaneParams(Struct):
    num_planes: int
    def __init__(self) -> None: ...
    width: list[int]
    height: list[int]
    pitch: list[int]
    offset: list[int]
    psize: list[int]
    bytesPerPix: list[int]
def NvBufSurfaceSyncForCpu(surf: NvBufSurface, index: int, plane: int) -> int: ...
def NvBufSurfaceSyncForDevice(surf: NvBufSurface, index: int, plane: int) -> int: ...
def NvBufSurfaceUnMap(surf: NvBufSurface, index: int, plane: int) -> int: ...

class NvDsAnalyticsFrameMeta(Struct):
    unique_id: int
    def __init__(self) -> None: ...
    ocStatus: dict[Any, Any]
    objInROIcnt: dict[Any, Any]
    objLCCurrCnt: dict[Any, Any]
    objLCCumCnt: dict[Any, Any]
    objCnt: dict[Any, Any]

class NvDsAnalyticsObjInfo(Struct):
    unique_id: int
    dirStatus: str
    objStatus: str
    def __init__(self) -> None: ...
    roiStatus: list[Any]
    ocStatus: list[Any]
    lcStatus: list[Any]

class NvDsBaseMeta(Struct):
    meta_type: int
    uContext: Any
    copy_func: Any
    release_func: Any
    @property
    def batch_meta(self) -> Any: ...

class NvDsBatchMeta(Struct):
    base_meta: NvDsBaseMeta
    max_frames_in_batch: int
    frame_meta_pool: NvDsMetaPool
    obj_meta_pool: NvDsMetaPool
    classifier_meta_pool: NvDsMetaPool
    display_meta_pool: NvDsMetaPool
    user_meta_pool: NvDsMetaPool
    label_info_meta_pool: NvDsMetaPool
    @property
    def frame_meta_list(self) -> GList | None: ...
    @property
    def batch_user_meta_list(self) -> GList | None: ...
    def __init__(self) -> None: ...
    @property
    def num_frames_in_batch(self) -> int: ...
    misc_batch_info: list[int]
    reserved: list[int]
    meta_mutex: Any
    surfaces: list[Any]
    ended: list[Any]
    images: dict[Any, Any]
    owner: Any

class NvDsClassifierMeta(Struct):
    base_meta: NvDsBaseMeta
    unique_component_id: int
    classifier_type: str
    @property
    def label_info_list(self) -> GList | None: ...
    @property
    def num_labels(self) -> int: ...

class NvDsComp_BboxInfo(Struct):
    org_bbox_coords: NvBbox_Coords

class NvDsCoordinate(Struct):
    x: float
    y: float
    z: float

class NvDsDisplayMeta(Struct):
    base_meta: NvDsBaseMeta
    num_rects: int
    num_labels: int
    num_lines: int
    num_arrows: int
    num_circles: int
    rect_params: list[NvOSD_RectParams]
    text_params: list[NvOSD_TextParams]
    line_params: list[NvOSD_LineParams]
    arrow_params: list[NvOSD_ArrowParams]
    circle_params: list[NvOSD_CircleParams]
    def __init__(self) -> None: ...
    misc_osd_data: list[int]
    reserved: list[int]

class NvDsEvent(Struct):
    eventType: int
    metadata: NvDsEventMsgMeta | None

class NvDsEventMsgMeta(Struct):
    type: int
    objType: int
    bbox: NvDsRect
    location: NvDsGeoLocation
    coordinate: NvDsCoordinate
    objSignature: NvDsObjectSignature
    objClassId: int
    sensorId: int
    moduleId: int
    placeId: int
    componentId: int
    frameId: int
    confidence: float
    trackingId: int
    @property
    def ts(self) -> int: ...
    @ts.setter
    def ts(self, value: str | int) -> None: ...
    @property
    def objectId(self) -> int: ...
    @objectId.setter
    def objectId(self, value: str) -> None: ...
    @property
    def sensorStr(self) -> int: ...
    @sensorStr.setter
    def sensorStr(self, value: str) -> None: ...
    @property
    def otherAttrs(self) -> int: ...
    @otherAttrs.setter
    def otherAttrs(self, value: str) -> None: ...
    @property
    def videoPath(self) -> int: ...
    @videoPath.setter
    def videoPath(self, value: str) -> None: ...
    extMsg: Any
    extMsgSize: int

class NvDsEventType(IntEnum):
    NVDS_EVENT_ENTRY = 0
    NVDS_EVENT_EXIT = 1
    NVDS_EVENT_MOVING = 2
    NVDS_EVENT_STOPPED = 3
    NVDS_EVENT_EMPTY = 4
    NVDS_EVENT_PARKED = 5
    NVDS_EVENT_RESET = 6
    NVDS_EVENT_RESERVED = 256
    NVDS_EVENT_CUSTOM = 257
    NVDS_EVENT_FORCE32 = 2147483647

class NvDsFaceObject(Struct):
    @property
    def gender(self) -> int: ...
    @gender.setter
    def gender(self, value: str) -> None: ...
    @property
    def hair(self) -> int: ...
    @hair.setter
    def hair(self, value: str) -> None: ...
    @property
    def cap(self) -> int: ...
    @cap.setter
    def cap(self, value: str) -> None: ...
    @property
    def glasses(self) -> int: ...
    @glasses.setter
    def glasses(self, value: str) -> None: ...
    @property
    def facialhair(self) -> int: ...
    @facialhair.setter
    def facialhair(self, value: str) -> None: ...
    @property
    def name(self) -> int: ...
    @name.setter
    def name(self, value: str) -> None: ...
    @property
    def eyecolor(self) -> int: ...
    @eyecolor.setter
    def eyecolor(self, value: str) -> None: ...
    age: int

class NvDsFaceObjectWithExt(NvDsFaceObject):
    mask: Any

class NvDsFrameMeta(Struct):
    base_meta: NvDsBaseMeta
    pad_index: int
    batch_id: int
    frame_num: int
    buf_pts: int
    ntp_timestamp: int
    source_id: int
    num_surfaces_per_frame: int
    source_frame_width: int
    source_frame_height: int
    pipeline_width: int
    pipeline_height: int
    surface_type: int
    surface_index: int
    bInferDone: int
    @property
    def obj_meta_list(self) -> GList | None: ...
    @property
    def display_meta_list(self) -> GList | None: ...
    @property
    def frame_user_meta_list(self) -> GList | None: ...
    def __init__(self) -> None: ...
    @property
    def num_obj_meta(self) -> int: ...
    misc_frame_info: list[int]
    reserved: list[int]

class NvDsGeoLocation(Struct):
    lat: float
    lon: float
    alt: float

class NvDsInferAttribute(Struct):
    attributeIndex: int
    attributeValue: int
    attributeConfidence: float
    attributeLabel: str
    @property
    def atttributeIndex(self) -> int: ...

class NvDsInferDataType(IntEnum):
    FLOAT = 0
    HALF = 1
    INT8 = 2
    INT32 = 3
    INT64 = 4
    UINT8 = 5

class NvDsInferDims(Struct):
    numDims: int
    numElements: int
    def __init__(self, shape: Sequence[int] = ...) -> None: ...
    d: list[int]

class NvDsInferDimsCHW(Struct):
    c: int
    h: int
    w: int

class NvDsInferLayerInfo(Struct):
    dataType: int
    bindingIndex: int
    layerName: str
    isInput: bool
    buffer: int
    def __init__(self, name: str = ..., index: int = ..., data: Any = ...) -> None: ...
    @property
    def inferDims(self) -> NvDsInferDims: ...
    dims: NvDsInferDims

class NvDsInferNetworkInfo(Struct):
    width: int
    height: int
    channels: int

class NvDsInferObjectDetectionInfo(Struct):
    classId: int
    left: float
    top: float
    width: float
    height: float
    detectionConfidence: float

class NvDsInferSegmentationMeta(Struct):
    classes: int
    width: int
    height: int
    class_map: npt.NDArray[np.int32] | None
    class_probabilities_map: npt.NDArray[np.float32] | None
    priv_data: Any

class NvDsInferTensorMeta(Struct):
    unique_id: int
    gpu_id: int
    priv_data: Any
    maintain_aspect_ratio: int
    symmetric_padding: int
    network_info: NvDsInferNetworkInfo
    def __init__(self, layers: Sequence[NvDsInferLayerInfo] = ...) -> None: ...
    @property
    def num_output_layers(self) -> int: ...
    def output_layers_info(self, index: int) -> NvDsInferLayerInfo: ...
    @property
    def out_buf_ptrs_host(self) -> list[int]: ...
    @property
    def out_buf_ptrs_dev(self) -> list[int]: ...

class NvDsLabelInfo(Struct):
    base_meta: NvDsBaseMeta
    num_classes: int
    result_label: str
    pResult_label: int
    result_class_id: int
    label_id: int
    result_prob: float

class NvDsMeta(Struct):
    meta: Any
    meta_data: Any
    user_data: Any
    meta_type: int

class NvDsMetaPool(Struct):
    type: int
    meta_type: int
    max_elements_in_pool: int
    element_size: int
    empty_list: GList | None
    full_list: GList | None
    num_empty_elements: int
    num_full_elements: int

class NvDsMetaType(IntEnum):
    NVDS_INVALID_META = -1
    NVDS_BATCH_META = 1
    NVDS_FRAME_META = 2
    NVDS_OBJ_META = 3
    NVDS_DISPLAY_META = 4
    NVDS_CLASSIFIER_META = 5
    NVDS_LABEL_INFO_META = 6
    NVDS_USER_META = 7
    NVDS_PAYLOAD_META = 8
    NVDS_EVENT_MSG_META = 9
    NVDS_OPTICAL_FLOW_META = 10
    NVDS_LATENCY_MEASUREMENT_META = 11
    NVDSINFER_TENSOR_OUTPUT_META = 12
    NVDSINFER_SEGMENTATION_META = 13
    NVDS_CROP_IMAGE_META = 14
    NVDS_TRACKER_PAST_FRAME_META = 15
    NVDS_TRACKER_BATCH_REID_META = 16
    NVDS_TRACKER_OBJ_REID_META = 17
    NVDS_TRACKER_TERMINATED_LIST_META = 18
    NVDS_TRACKER_SHADOW_LIST_META = 19
    NVDS_OBJ_VISIBILITY = 20
    NVDS_OBJ_IMAGE_FOOT_LOCATION = 21
    NVDS_OBJ_WORLD_FOOT_LOCATION = 22
    NVDS_OBJ_IMAGE_CONVEX_HULL = 23
    NVDS_AUDIO_BATCH_META = 24
    NVDS_AUDIO_FRAME_META = 25
    NVDS_PREPROCESS_FRAME_META = 26
    NVDS_PREPROCESS_BATCH_META = 27
    NVDS_CUSTOM_MSG_BLOB = 28
    NVDS_ROI_META = 29
    NVDS_FRAME_META_NVDSANALYTICS = 32
    NVDS_OBJ_META_NVDSANALYTICS = 33
    NVDS_RESERVED_META = 4095
    NVDS_GST_CUSTOM_META = 4096
    NVDS_START_USER_META = 8193
    NVDS_FORCE32_META = 2147483647

class NvDsObjEncOutParams(Struct):
    def __init__(self, data: bytes = ...) -> None: ...
    def outBuffer(self) -> npt.NDArray[np.uint8]: ...
    outLen: int

class NvDsObjEncUsrArgs(Struct):
    saveImg: bool
    attachUsrMeta: bool
    scaleImg: bool
    scaledWidth: int
    scaledHeight: int
    fileNameImg: str
    objNum: int
    quality: int
    isFrame: int
    calcEncodeTime: bool

class NvDsObjReid(Struct):
    def __init__(self, features: Sequence[float] | npt.NDArray[np.float32] = ...) -> None: ...
    @property
    def featureSize(self) -> int: ...
    def get_host_reid_vector(self) -> npt.NDArray[np.float32]: ...

class NvDsObjectMeta(Struct):
    base_meta: NvDsBaseMeta
    parent: NvDsObjectMeta | None
    unique_component_id: int
    class_id: int
    object_id: int
    detector_bbox_info: NvDsComp_BboxInfo
    tracker_bbox_info: NvDsComp_BboxInfo
    confidence: float
    tracker_confidence: float
    rect_params: NvOSD_RectParams
    mask_params: NvOSD_MaskParams
    text_params: NvOSD_TextParams
    obj_label: str
    @property
    def classifier_meta_list(self) -> GList | None: ...
    @property
    def obj_user_meta_list(self) -> GList | None: ...
    def __init__(self) -> None: ...
    misc_obj_info: list[int]
    reserved: list[int]

class NvDsObjectSignature(Struct):
    signature: Any
    size: int

class NvDsObjectType(IntEnum):
    NVDS_OBJECT_TYPE_VEHICLE = 0
    NVDS_OBJECT_TYPE_PERSON = 1
    NVDS_OBJECT_TYPE_FACE = 2
    NVDS_OBJECT_TYPE_BAG = 3
    NVDS_OBJECT_TYPE_BICYCLE = 4
    NVDS_OBJECT_TYPE_ROADSIGN = 5
    NVDS_OBJECT_TYPE_VEHICLE_EXT = 6
    NVDS_OBJECT_TYPE_PERSON_EXT = 7
    NVDS_OBJECT_TYPE_FACE_EXT = 8
    NVDS_OBJECT_TYPE_RESERVED = 256
    NVDS_OBJECT_TYPE_CUSTOM = 257
    NVDS_OBJECT_TYPE_UNKNOWN = 258
    NVDS_OBEJCT_TYPE_FORCE32 = 2147483647

class NvDsOpticalFlowMeta(Struct):
    rows: int
    cols: int
    mv_size: int
    frame_num: int
    data: Any
    priv: Any
    reserved: Any

class NvDsPastFrameObj(Struct):
    frameNum: int
    tBbox: NvOSD_RectParams
    confidence: float
    age: int

class NvDsPastFrameObjBatch(Struct):
    @property
    def numFilled(self) -> int: ...
    @property
    def numAllocated(self) -> int: ...
    def __init__(self, parts: Sequence[Any] = ...) -> None: ...
    def list(self) -> Iterator[Any]: ...

class NvDsPastFrameObjList(Struct):
    uniqueId: int
    classId: int
    objLabel: str
    @property
    def numObj(self) -> int: ...
    def __init__(self, parts: Sequence[Any] = ...) -> None: ...
    def list(self) -> Iterator[Any]: ...

class NvDsPastFrameObjStream(Struct):
    streamID: int
    surfaceStreamID: int
    @property
    def numFilled(self) -> int: ...
    @property
    def numAllocated(self) -> int: ...
    def __init__(self, parts: Sequence[Any] = ...) -> None: ...
    def list(self) -> Iterator[Any]: ...

class NvDsPayload(Struct):
    @property
    def payload(self) -> int: ...
    @payload.setter
    def payload(self, value: str) -> None: ...
    payloadSize: int
    componentId: int

class NvDsPayloadType(IntEnum):
    NVDS_PAYLOAD_DEEPSTREAM = 0
    NVDS_PAYLOAD_DEEPSTREAM_MINIMAL = 1
    NVDS_PAYLOAD_RESERVED = 256
    NVDS_PAYLOAD_CUSTOM = 257
    NVDS_PAYLOAD_FORCE32 = 2147483647

class NvDsPersonObject(Struct):
    @property
    def gender(self) -> int: ...
    @gender.setter
    def gender(self, value: str) -> None: ...
    @property
    def hair(self) -> int: ...
    @hair.setter
    def hair(self, value: str) -> None: ...
    @property
    def cap(self) -> int: ...
    @cap.setter
    def cap(self, value: str) -> None: ...
    @property
    def apparel(self) -> int: ...
    @apparel.setter
    def apparel(self, value: str) -> None: ...
    age: int

class NvDsPersonObjectExt(NvDsPersonObject):
    mask: Any

class NvDsPreProcessTensorMeta(Struct):
    gpu_id: int
    meta_id: int
    tensor_name: str
    maintain_aspect_ratio: int
    raw_tensor_buffer: int
    buffer_size: int
    data_type: int
    def __init__(self, values: Any = ...) -> None: ...
    tensor_shape: list[Any]

class NvDsRect(Struct):
    top: float
    left: float
    width: float
    height: float

class NvDsRoiMeta(Struct):
    roi: NvOSD_RectParams
    frame_meta: Any
    object_meta: Any
    scale_ratio_x: float
    scale_ratio_y: float
    offset_left: int
    offset_top: int
    @property
    def classifier_meta_list(self) -> GList | None: ...
    @property
    def roi_user_meta_list(self) -> GList | None: ...

class NvDsTargetMiscDataBatch(Struct):
    @property
    def numFilled(self) -> int: ...
    @property
    def numAllocated(self) -> int: ...
    def __init__(self, parts: Sequence[Any] = ...) -> None: ...
    def list(self) -> Iterator[Any]: ...

class NvDsTargetMiscDataFrame(Struct):
    frameNum: int
    tBbox: NvOSD_RectParams
    confidence: float
    age: int

class NvDsTargetMiscDataObject(Struct):
    uniqueId: int
    classId: int
    objLabel: str
    @property
    def numObj(self) -> int: ...
    def __init__(self, parts: Sequence[Any] = ...) -> None: ...
    def list(self) -> Iterator[Any]: ...

class NvDsTargetMiscDataStream(Struct):
    streamID: int
    surfaceStreamID: int
    @property
    def numFilled(self) -> int: ...
    @property
    def numAllocated(self) -> int: ...
    def __init__(self, parts: Sequence[Any] = ...) -> None: ...
    def list(self) -> Iterator[Any]: ...

class NvDsUserMeta(Struct):
    base_meta: NvDsBaseMeta
    user_meta_data: Any

class NvDsVehicleObject(Struct):
    @property
    def type(self) -> int: ...
    @type.setter
    def type(self, value: str) -> None: ...
    @property
    def make(self) -> int: ...
    @make.setter
    def make(self, value: str) -> None: ...
    @property
    def model(self) -> int: ...
    @model.setter
    def model(self, value: str) -> None: ...
    @property
    def color(self) -> int: ...
    @color.setter
    def color(self, value: str) -> None: ...
    @property
    def region(self) -> int: ...
    @region.setter
    def region(self, value: str) -> None: ...
    @property
    def license(self) -> int: ...
    @license.setter
    def license(self, value: str) -> None: ...

class NvDsVehicleObjectExt(NvDsVehicleObject):
    mask: Any

class NvOFFlowVector(Struct):
    flowx: int
    flowy: int

class NvOSD_ArrowParams(Struct):
    x1: int
    y1: int
    x2: int
    y2: int
    arrow_width: int
    arrow_head: NvOSD_Arrow_Head_Direction
    arrow_color: NvOSD_ColorParams
    reserved: int

class NvOSD_Arrow_Head_Direction(IntEnum):
    START_HEAD = 0
    END_HEAD = 1
    BOTH_HEAD = 2

class NvOSD_CircleParams(Struct):
    xc: int
    yc: int
    radius: int
    circle_color: NvOSD_ColorParams
    has_bg_color: int
    bg_color: NvOSD_ColorParams
    circle_width: int
    reserved: int

class NvOSD_ColorParams(Struct):
    red: float
    green: float
    blue: float
    alpha: float
    def set(self, red: float, green: float, blue: float, alpha: float) -> None: ...

class NvOSD_Color_info(Struct):
    id: int
    color: NvOSD_ColorParams

class NvOSD_FontParams(Struct):
    @property
    def font_name(self) -> int: ...
    @font_name.setter
    def font_name(self, value: str) -> None: ...
    font_size: int
    font_color: NvOSD_ColorParams

class NvOSD_FrameArrowParams(Struct):
    buf_ptr: Any
    mode: int
    num_arrows: int
    arrow_params_list: Any

class NvOSD_FrameCircleParams(Struct):
    buf_ptr: Any
    mode: int
    num_circles: int
    circle_params_list: Any

class NvOSD_FrameLineParams(Struct):
    buf_ptr: Any
    mode: int
    num_lines: int
    line_params_list: Any

class NvOSD_FrameRectParams(Struct):
    buf_ptr: Any
    mode: int
    num_rects: int
    rect_params_list: Any

class NvOSD_FrameTextParams(Struct):
    buf_ptr: Any
    mode: int
    num_strings: int
    text_params_list: Any

class NvOSD_LineParams(Struct):
    x1: int
    y1: int
    x2: int
    y2: int
    line_width: int
    line_color: NvOSD_ColorParams

class NvOSD_MaskParams(Struct):
    data: npt.NDArray[np.float32] | None
    size: int
    threshold: float
    width: int
    height: int
    def get_mask_array(self) -> npt.NDArray[np.float32]: ...
    def alloc_mask_array(self) -> npt.NDArray[np.float32]: ...

class NvOSD_Mode(IntEnum):
    MODE_CPU = 0
    MODE_GPU = 1
    MODE_NONE = 2

class NvOSD_RectParams(Struct):
    left: float
    top: float
    width: float
    height: float
    border_width: int
    border_color: NvOSD_ColorParams
    has_bg_color: int
    reserved: int
    bg_color: NvOSD_ColorParams
    has_color_info: int
    color_id: int

class NvOSD_TextParams(Struct):
    @property
    def display_text(self) -> int: ...
    @display_text.setter
    def display_text(self, value: str) -> None: ...
    x_offset: int
    y_offset: int
    font_params: NvOSD_FontParams
    set_bg_clr: int
    text_bg_clr: NvOSD_ColorParams

class ROI_STATUS_360D(IntEnum):
    ROI_ENTRY_360D = 1
    ROI_EXIT_360D = 2
    INSIDE_AISLE_360D = 4

class RectDim(Struct):
    left: float
    top: float
    width: float
    height: float
    class_id: int
    tracking_id: int
    gie_unique_id: int
    roi_status: int
    @property
    def text(self) -> int: ...
    @text.setter
    def text(self, value: str) -> None: ...
def alloc_buffer(size: int) -> int: ...
def alloc_char_buffer(size: int) -> int: ...
def alloc_custom_struct(meta: NvDsUserMeta | None = ...) -> CustomDataStruct: ...
def alloc_nvds_event() -> NvDsEvent: ...
def alloc_nvds_event_msg_meta(meta: NvDsUserMeta | None = ...) -> NvDsEventMsgMeta: ...
def alloc_nvds_face_object() -> NvDsFaceObject: ...
def alloc_nvds_payload() -> NvDsPayload: ...
def alloc_nvds_person_object() -> NvDsPersonObject: ...
def alloc_nvds_vehicle_object() -> NvDsVehicleObject: ...
def configure_source_for_ntp_sync(address: int) -> None: ...
def free_buffer(address: int) -> None: ...
def free_gbuffer(address: int) -> None: ...
def generate_ts_rfc3339(buffer: int, size: int) -> None: ...
def get_detections(buffer: int, index: int) -> float: ...
def get_nvds_LayerInfo(meta: NvDsInferTensorMeta, index: int) -> NvDsInferLayerInfo: ...
def get_nvds_buf_surface(address: int, batch_id: int) -> npt.NDArray[np.uint8]: ...
def get_nvds_buf_surface_gpu(address: int, batch_id: int) -> tuple[np.dtype[Any], tuple[int, ...], tuple[int, ...], Any, int]: ...
def get_optical_flow_vectors(meta: NvDsOpticalFlowMeta) -> npt.NDArray[np.float32]: ...
def get_ptr(value: Any) -> int: ...
def get_segmentation_masks(meta: NvDsInferSegmentationMeta) -> npt.NDArray[np.int32]: ...
def get_string(address: int) -> str | None: ...
def glist_get_nvds_Surface_Params(data: Any) -> NvBufSurfaceParams: ...
def glist_get_nvds_batch_meta(data: Any) -> Any: ...
def glist_get_nvds_classifier_meta(data: Any) -> Any: ...
def glist_get_nvds_display_meta(data: Any) -> Any: ...
def glist_get_nvds_event_msg_meta(data: Any) -> Any: ...
def glist_get_nvds_frame_meta(data: Any) -> Any: ...
def glist_get_nvds_label_info(data: Any) -> Any: ...
def glist_get_nvds_object_meta(data: Any) -> Any: ...
def glist_get_nvds_person_object(data: Any) -> Any: ...
def glist_get_nvds_tensor_meta(data: Any) -> Any: ...
def glist_get_nvds_user_meta(data: Any) -> Any: ...
def glist_get_nvds_vehicle_object(data: Any) -> Any: ...
def gst_buffer_add_nvds_meta(buffer: object, *arguments: object) -> None: ...
def gst_buffer_get_nvds_batch_meta(address: int) -> NvDsBatchMeta | None: ...
def gst_element_send_nvevent_interval_update(address: int, stream_id: str, interval: int) -> bool: ...
def gst_element_send_nvevent_new_stream_reset(address: int, source_id: int) -> bool: ...
def jpeg(pixels: npt.NDArray[np.uint8], args: NvDsObjEncUsrArgs) -> bytes: ...
def memdup(address: int, size: int) -> int: ...
def nvds_acquire_classifier_meta_from_pool(batch: NvDsBatchMeta) -> NvDsClassifierMeta: ...
def nvds_acquire_display_meta_from_pool(batch: NvDsBatchMeta) -> NvDsDisplayMeta: ...
def nvds_acquire_frame_meta_from_pool(batch: NvDsBatchMeta) -> NvDsFrameMeta: ...
def nvds_acquire_label_info_meta_from_pool(batch: NvDsBatchMeta) -> NvDsLabelInfo: ...
def nvds_acquire_meta_lock(batch: NvDsBatchMeta) -> None: ...
def nvds_acquire_obj_meta_from_pool(batch: NvDsBatchMeta) -> NvDsObjectMeta: ...
def nvds_acquire_user_meta_from_pool(batch: NvDsBatchMeta) -> NvDsUserMeta: ...
def nvds_add_classifier_meta_to_object(obj: NvDsObjectMeta, meta: NvDsClassifierMeta) -> None: ...
def nvds_add_display_meta_to_frame(frame: NvDsFrameMeta, meta: NvDsDisplayMeta) -> None: ...
def nvds_add_frame_meta_to_batch(batch: NvDsBatchMeta, frame: NvDsFrameMeta) -> None: ...
def nvds_add_label_info_meta_to_classifier(meta: NvDsClassifierMeta, info: NvDsLabelInfo) -> None: ...
def nvds_add_obj_meta_to_frame(frame: NvDsFrameMeta, obj: NvDsObjectMeta, parent: NvDsObjectMeta | None) -> None: ...
def nvds_add_user_meta_to_batch(batch: NvDsBatchMeta, meta: NvDsUserMeta) -> None: ...
def nvds_add_user_meta_to_frame(frame: NvDsFrameMeta, meta: NvDsUserMeta) -> None: ...
def nvds_add_user_meta_to_obj(obj: NvDsObjectMeta, meta: NvDsUserMeta) -> None: ...
def nvds_batch_meta_copy_func(batch: NvDsBatchMeta, user_data: object = ...) -> NvDsBatchMeta: ...
def nvds_batch_meta_release_func(batch: NvDsBatchMeta, user_data: object = ...) -> None: ...
def nvds_clear_batch_user_meta_list(batch: NvDsBatchMeta, nodes: GList | None) -> None: ...
def nvds_clear_display_meta_list(frame: NvDsFrameMeta, nodes: GList | None) -> None: ...
def nvds_clear_frame_meta_list(batch: NvDsBatchMeta, nodes: GList | None) -> None: ...
def nvds_clear_frame_user_meta_list(frame: NvDsFrameMeta, nodes: GList | None) -> None: ...
def nvds_clear_meta_list(batch: NvDsBatchMeta, nodes: GList | None, pool: NvDsMetaPool | None = ...) -> None: ...
def nvds_clear_obj_meta_list(frame: NvDsFrameMeta, nodes: GList | None) -> None: ...
def nvds_clear_obj_user_meta_list(obj: NvDsObjectMeta, nodes: GList | None) -> None: ...
def nvds_copy_batch_user_meta_list(nodes: GList | None, batch: NvDsBatchMeta) -> None: ...
def nvds_copy_display_meta_list(nodes: GList | None, frame: NvDsFrameMeta) -> None: ...
def nvds_copy_frame_meta_list(nodes: GList | None, batch: NvDsBatchMeta) -> None: ...
def nvds_copy_frame_user_meta_list(nodes: GList | None, frame: NvDsFrameMeta) -> None: ...
def nvds_copy_obj_meta_list(nodes: GList | None, frame: NvDsFrameMeta) -> None: ...
def nvds_create_batch_meta(max_batch_size: int) -> NvDsBatchMeta: ...
def nvds_destroy_batch_meta(batch: NvDsBatchMeta) -> bool: ...
def nvds_get_current_metadata_info(batch: NvDsBatchMeta) -> bool: ...
def nvds_get_nth_frame_meta(nodes: GList | None, index: int) -> NvDsFrameMeta | None: ...
def nvds_get_user_meta_type(name: str) -> int: ...
def nvds_measure_buffer_latency(address: int) -> int: ...
def nvds_obj_enc_create_context(gpu_id: int = ...) -> int: ...
def nvds_obj_enc_destroy_context(context: int) -> None: ...
def nvds_obj_enc_finish(context: int) -> None: ...
def nvds_obj_enc_process(context: int, args: NvDsObjEncUsrArgs, address: int, obj: NvDsObjectMeta | None, frame: NvDsFrameMeta) -> bool: ...
def nvds_release_meta_lock(batch: NvDsBatchMeta) -> None: ...
def nvds_remove_classifier_meta_from_obj(obj: NvDsObjectMeta, meta: NvDsClassifierMeta) -> None: ...
def nvds_remove_display_meta_from_frame(frame: NvDsFrameMeta, meta: NvDsDisplayMeta) -> None: ...
def nvds_remove_frame_meta_from_batch(batch: NvDsBatchMeta, frame: NvDsFrameMeta) -> None: ...
def nvds_remove_label_info_meta_from_classifier(meta: NvDsClassifierMeta, info: NvDsLabelInfo) -> None: ...
def nvds_remove_obj_meta_from_frame(frame: NvDsFrameMeta, obj: NvDsObjectMeta) -> None: ...
def nvds_remove_user_meta_from_batch(batch: NvDsBatchMeta, meta: NvDsUserMeta) -> None: ...
def nvds_remove_user_meta_from_frame(frame: NvDsFrameMeta, meta: NvDsUserMeta) -> None: ...
def nvds_remove_user_meta_from_object(obj: NvDsObjectMeta, meta: NvDsUserMeta) -> None: ...
def register_user_copyfunc(func: _Callback) -> None: ...
def register_user_releasefunc(func: _Callback) -> None: ...
def set_user_copyfunc(meta: NvDsUserMeta, func: _Callback) -> None: ...
def set_user_releasefunc(meta: NvDsUserMeta, func: _Callback) -> None: ...
def strdup(address: int) -> int: ...
def strdup2str(address: int) -> str | None: ...
def unmap_nvds_buf_surface(address: int, batch_id: int) -> None: ...
def unset_callback_funcs() -> None: ...
def user_copyfunc(meta: NvDsUserMeta, func: _Callback) -> None: ...
def user_releasefunc(meta: NvDsUserMeta, func: _Callback) -> None: ...

BOTH_HEAD = NvOSD_Arrow_Head_Direction.BOTH_HEAD
END_HEAD = NvOSD_Arrow_Head_Direction.END_HEAD
FLOAT = NvDsInferDataType.FLOAT
HALF = NvDsInferDataType.HALF
INSIDE_AISLE_360D = ROI_STATUS_360D.INSIDE_AISLE_360D
INT32 = NvDsInferDataType.INT32
INT64 = NvDsInferDataType.INT64
INT8 = NvDsInferDataType.INT8
MAX_ELEMENTS_IN_DISPLAY_META: int
MAX_LABEL_SIZE: int
MAX_RESERVED_FIELDS: int
MAX_USER_FIELDS: int
MODE_CPU = NvOSD_Mode.MODE_CPU
MODE_GPU = NvOSD_Mode.MODE_GPU
MODE_NONE = NvOSD_Mode.MODE_NONE
NVBUF_COLOR_FORMAT_ABGR = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_ABGR
NVBUF_COLOR_FORMAT_ARGB = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_ARGB
NVBUF_COLOR_FORMAT_BGR = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_BGR
NVBUF_COLOR_FORMAT_BGRA = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_BGRA
NVBUF_COLOR_FORMAT_BGRx = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_BGRx
NVBUF_COLOR_FORMAT_GRAY8 = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_GRAY8
NVBUF_COLOR_FORMAT_INVALID = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_INVALID
NVBUF_COLOR_FORMAT_LAST = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_LAST
NVBUF_COLOR_FORMAT_NV12 = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_NV12
NVBUF_COLOR_FORMAT_NV12_10LE = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_NV12_10LE
NVBUF_COLOR_FORMAT_NV12_10LE_2020 = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_NV12_10LE_2020
NVBUF_COLOR_FORMAT_NV12_10LE_709 = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_NV12_10LE_709
NVBUF_COLOR_FORMAT_NV12_10LE_709_ER = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_NV12_10LE_709_ER
NVBUF_COLOR_FORMAT_NV12_10LE_ER = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_NV12_10LE_ER
NVBUF_COLOR_FORMAT_NV12_12LE = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_NV12_12LE
NVBUF_COLOR_FORMAT_NV12_2020 = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_NV12_2020
NVBUF_COLOR_FORMAT_NV12_709 = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_NV12_709
NVBUF_COLOR_FORMAT_NV12_709_ER = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_NV12_709_ER
NVBUF_COLOR_FORMAT_NV12_ER = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_NV12_ER
NVBUF_COLOR_FORMAT_NV21 = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_NV21
NVBUF_COLOR_FORMAT_NV21_ER = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_NV21_ER
NVBUF_COLOR_FORMAT_RGB = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_RGB
NVBUF_COLOR_FORMAT_RGBA = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_RGBA
NVBUF_COLOR_FORMAT_RGBx = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_RGBx
NVBUF_COLOR_FORMAT_SIGNED_R16G16 = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_SIGNED_R16G16
NVBUF_COLOR_FORMAT_UYVY = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_UYVY
NVBUF_COLOR_FORMAT_UYVY_ER = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_UYVY_ER
NVBUF_COLOR_FORMAT_VYUY = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_VYUY
NVBUF_COLOR_FORMAT_VYUY_ER = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_VYUY_ER
NVBUF_COLOR_FORMAT_YUV420 = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_YUV420
NVBUF_COLOR_FORMAT_YUV420_2020 = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_YUV420_2020
NVBUF_COLOR_FORMAT_YUV420_709 = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_YUV420_709
NVBUF_COLOR_FORMAT_YUV420_709_ER = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_YUV420_709_ER
NVBUF_COLOR_FORMAT_YUV420_ER = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_YUV420_ER
NVBUF_COLOR_FORMAT_YUV444 = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_YUV444
NVBUF_COLOR_FORMAT_YUYV = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_YUYV
NVBUF_COLOR_FORMAT_YUYV_ER = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_YUYV_ER
NVBUF_COLOR_FORMAT_YVU420 = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_YVU420
NVBUF_COLOR_FORMAT_YVU420_ER = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_YVU420_ER
NVBUF_COLOR_FORMAT_YVYU = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_YVYU
NVBUF_COLOR_FORMAT_YVYU_ER = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_YVYU_ER
NVBUF_COLOR_FORMAT_xBGR = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_xBGR
NVBUF_COLOR_FORMAT_xRGB = NvBufSurfaceColorFormat.NVBUF_COLOR_FORMAT_xRGB
NVBUF_LAYOUT_BLOCK_LINEAR = NvBufSurfaceLayout.NVBUF_LAYOUT_BLOCK_LINEAR
NVBUF_LAYOUT_PITCH = NvBufSurfaceLayout.NVBUF_LAYOUT_PITCH
NVBUF_MAP_READ = NvBufSurfaceMemMapFlags.NVBUF_MAP_READ
NVBUF_MAP_READ_WRITE = NvBufSurfaceMemMapFlags.NVBUF_MAP_READ_WRITE
NVBUF_MAP_WRITE = NvBufSurfaceMemMapFlags.NVBUF_MAP_WRITE
NVBUF_MEM_CUDA_DEVICE = NvBufSurfaceMemType.NVBUF_MEM_CUDA_DEVICE
NVBUF_MEM_CUDA_PINNED = NvBufSurfaceMemType.NVBUF_MEM_CUDA_PINNED
NVBUF_MEM_CUDA_UNIFIED = NvBufSurfaceMemType.NVBUF_MEM_CUDA_UNIFIED
NVBUF_MEM_DEFAULT = NvBufSurfaceMemType.NVBUF_MEM_DEFAULT
NVBUF_MEM_HANDLE = NvBufSurfaceMemType.NVBUF_MEM_HANDLE
NVBUF_MEM_SURFACE_ARRAY = NvBufSurfaceMemType.NVBUF_MEM_SURFACE_ARRAY
NVBUF_MEM_SYSTEM = NvBufSurfaceMemType.NVBUF_MEM_SYSTEM
NVDSINFER_MAX_DIMS: int
NVDSINFER_SEGMENTATION_META = NvDsMetaType.NVDSINFER_SEGMENTATION_META
NVDSINFER_TENSOR_OUTPUT_META = NvDsMetaType.NVDSINFER_TENSOR_OUTPUT_META
NVDS_AUDIO_BATCH_META = NvDsMetaType.NVDS_AUDIO_BATCH_META
NVDS_AUDIO_FRAME_META = NvDsMetaType.NVDS_AUDIO_FRAME_META
NVDS_BATCH_GST_META = GstNvDsMetaType.NVDS_BATCH_GST_META
NVDS_BATCH_META = NvDsMetaType.NVDS_BATCH_META
NVDS_CLASSIFIER_META = NvDsMetaType.NVDS_CLASSIFIER_META
NVDS_CROP_IMAGE_META = NvDsMetaType.NVDS_CROP_IMAGE_META
NVDS_CUSTOM_MSG_BLOB = NvDsMetaType.NVDS_CUSTOM_MSG_BLOB
NVDS_DECODER_GST_META = GstNvDsMetaType.NVDS_DECODER_GST_META
NVDS_DEWARPER_GST_META = GstNvDsMetaType.NVDS_DEWARPER_GST_META
NVDS_DISPLAY_META = NvDsMetaType.NVDS_DISPLAY_META
NVDS_EVENT_CUSTOM = NvDsEventType.NVDS_EVENT_CUSTOM
NVDS_EVENT_EMPTY = NvDsEventType.NVDS_EVENT_EMPTY
NVDS_EVENT_ENTRY = NvDsEventType.NVDS_EVENT_ENTRY
NVDS_EVENT_EXIT = NvDsEventType.NVDS_EVENT_EXIT
NVDS_EVENT_FORCE32 = NvDsEventType.NVDS_EVENT_FORCE32
NVDS_EVENT_MOVING = NvDsEventType.NVDS_EVENT_MOVING
NVDS_EVENT_MSG_META = NvDsMetaType.NVDS_EVENT_MSG_META
NVDS_EVENT_PARKED = NvDsEventType.NVDS_EVENT_PARKED
NVDS_EVENT_RESERVED = NvDsEventType.NVDS_EVENT_RESERVED
NVDS_EVENT_RESET = NvDsEventType.NVDS_EVENT_RESET
NVDS_EVENT_STOPPED = NvDsEventType.NVDS_EVENT_STOPPED
NVDS_FORCE32_META = NvDsMetaType.NVDS_FORCE32_META
NVDS_FRAME_META = NvDsMetaType.NVDS_FRAME_META
NVDS_FRAME_META_NVDSANALYTICS = NvDsMetaType.NVDS_FRAME_META_NVDSANALYTICS
NVDS_GST_CUSTOM_META = NvDsMetaType.NVDS_GST_CUSTOM_META
NVDS_GST_INVALID_META = GstNvDsMetaType.NVDS_GST_INVALID_META
NVDS_GST_META_FORCE32 = GstNvDsMetaType.NVDS_GST_META_FORCE32
NVDS_INVALID_META = NvDsMetaType.NVDS_INVALID_META
NVDS_LABEL_INFO_META = NvDsMetaType.NVDS_LABEL_INFO_META
NVDS_LATENCY_MEASUREMENT_META = NvDsMetaType.NVDS_LATENCY_MEASUREMENT_META
NVDS_OBEJCT_TYPE_FORCE32 = NvDsObjectType.NVDS_OBEJCT_TYPE_FORCE32
NVDS_OBJECT_TYPE_BAG = NvDsObjectType.NVDS_OBJECT_TYPE_BAG
NVDS_OBJECT_TYPE_BICYCLE = NvDsObjectType.NVDS_OBJECT_TYPE_BICYCLE
NVDS_OBJECT_TYPE_CUSTOM = NvDsObjectType.NVDS_OBJECT_TYPE_CUSTOM
NVDS_OBJECT_TYPE_FACE = NvDsObjectType.NVDS_OBJECT_TYPE_FACE
NVDS_OBJECT_TYPE_FACE_EXT = NvDsObjectType.NVDS_OBJECT_TYPE_FACE_EXT
NVDS_OBJECT_TYPE_PERSON = NvDsObjectType.NVDS_OBJECT_TYPE_PERSON
NVDS_OBJECT_TYPE_PERSON_EXT = NvDsObjectType.NVDS_OBJECT_TYPE_PERSON_EXT
NVDS_OBJECT_TYPE_RESERVED = NvDsObjectType.NVDS_OBJECT_TYPE_RESERVED
NVDS_OBJECT_TYPE_ROADSIGN = NvDsObjectType.NVDS_OBJECT_TYPE_ROADSIGN
NVDS_OBJECT_TYPE_UNKNOWN = NvDsObjectType.NVDS_OBJECT_TYPE_UNKNOWN
NVDS_OBJECT_TYPE_VEHICLE = NvDsObjectType.NVDS_OBJECT_TYPE_VEHICLE
NVDS_OBJECT_TYPE_VEHICLE_EXT = NvDsObjectType.NVDS_OBJECT_TYPE_VEHICLE_EXT
NVDS_OBJ_IMAGE_CONVEX_HULL = NvDsMetaType.NVDS_OBJ_IMAGE_CONVEX_HULL
NVDS_OBJ_IMAGE_FOOT_LOCATION = NvDsMetaType.NVDS_OBJ_IMAGE_FOOT_LOCATION
NVDS_OBJ_META = NvDsMetaType.NVDS_OBJ_META
NVDS_OBJ_META_NVDSANALYTICS = NvDsMetaType.NVDS_OBJ_META_NVDSANALYTICS
NVDS_OBJ_VISIBILITY = NvDsMetaType.NVDS_OBJ_VISIBILITY
NVDS_OBJ_WORLD_FOOT_LOCATION = NvDsMetaType.NVDS_OBJ_WORLD_FOOT_LOCATION
NVDS_OPTICAL_FLOW_META = NvDsMetaType.NVDS_OPTICAL_FLOW_META
NVDS_PAYLOAD_CUSTOM = NvDsPayloadType.NVDS_PAYLOAD_CUSTOM
NVDS_PAYLOAD_DEEPSTREAM = NvDsPayloadType.NVDS_PAYLOAD_DEEPSTREAM
NVDS_PAYLOAD_DEEPSTREAM_MINIMAL = NvDsPayloadType.NVDS_PAYLOAD_DEEPSTREAM_MINIMAL
NVDS_PAYLOAD_FORCE32 = NvDsPayloadType.NVDS_PAYLOAD_FORCE32
NVDS_PAYLOAD_META = NvDsMetaType.NVDS_PAYLOAD_META
NVDS_PAYLOAD_RESERVED = NvDsPayloadType.NVDS_PAYLOAD_RESERVED
NVDS_PREPROCESS_BATCH_META = NvDsMetaType.NVDS_PREPROCESS_BATCH_META
NVDS_PREPROCESS_FRAME_META = NvDsMetaType.NVDS_PREPROCESS_FRAME_META
NVDS_RESERVED_GST_META = GstNvDsMetaType.NVDS_RESERVED_GST_META
NVDS_RESERVED_META = NvDsMetaType.NVDS_RESERVED_META
NVDS_ROI_META = NvDsMetaType.NVDS_ROI_META
NVDS_START_USER_META = NvDsMetaType.NVDS_START_USER_META
NVDS_TRACKER_BATCH_REID_META = NvDsMetaType.NVDS_TRACKER_BATCH_REID_META
NVDS_TRACKER_OBJ_REID_META = NvDsMetaType.NVDS_TRACKER_OBJ_REID_META
NVDS_TRACKER_PAST_FRAME_META = NvDsMetaType.NVDS_TRACKER_PAST_FRAME_META
NVDS_TRACKER_SHADOW_LIST_META = NvDsMetaType.NVDS_TRACKER_SHADOW_LIST_META
NVDS_TRACKER_TERMINATED_LIST_META = NvDsMetaType.NVDS_TRACKER_TERMINATED_LIST_META
NVDS_USER_META = NvDsMetaType.NVDS_USER_META
ROI_ENTRY_360D = ROI_STATUS_360D.ROI_ENTRY_360D
ROI_EXIT_360D = ROI_STATUS_360D.ROI_EXIT_360D
START_HEAD = NvOSD_Arrow_Head_Direction.START_HEAD
UINT8 = NvDsInferDataType.UINT8
UNTRACKED_OBJECT_ID: int
