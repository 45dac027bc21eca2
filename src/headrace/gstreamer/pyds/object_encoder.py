"""Images of objects as JPEG: files, or metadata of the objects."""

from __future__ import annotations

import io
from itertools import count
from pathlib import Path

import numpy as np
import numpy.typing as npt

from headrace._core.files import write_where_named
from headrace.gstreamer.pyds.functions import (
    get_nvds_buf_surface,
    nvds_acquire_user_meta_from_pool,
    nvds_add_user_meta_to_frame,
    nvds_add_user_meta_to_obj,
)
from headrace.gstreamer.pyds.meta import NvDsFrameMeta, NvDsMetaType, NvDsObjectMeta
from headrace.gstreamer.pyds.struct import Struct

_MOST_SIDE = 65535  # of JPEG


class NvDsObjEncUsrArgs(Struct):
    """Wishes for one image.

    Attributes:
        saveImg: write a file.
        attachUsrMeta: attach the image to the object, or to the frame.
        scaleImg: scale it to `scaledWidth` x `scaledHeight` pixels.
        fileNameImg: name of the file; empty is made of source, frame and `objNum`.
        quality: 1 to 100.
        isFrame: the whole frame instead of the object.
    """

    saveImg = False
    attachUsrMeta = False
    scaleImg = False
    scaledWidth = 0
    scaledHeight = 0
    fileNameImg = ""
    objNum = 0
    quality = 80
    isFrame = 0
    calcEncodeTime = False


class NvDsObjEncOutParams(Struct):
    """An image that is attached."""

    def __init__(self, data: bytes = b"") -> None:
        self.outLen = len(data)
        self._data = data

    def outBuffer(self) -> npt.NDArray[np.uint8]:
        """Return the bytes of the JPEG file, (outLen,) uint8."""
        return np.frombuffer(self._data, np.uint8)


_contexts: set[int] = set()
_numbers = count(1)


def nvds_obj_enc_create_context(gpu_id: int = 0) -> int:
    """Return the number of a new encoder."""
    number = next(_numbers)
    _contexts.add(number)
    return number


def nvds_obj_enc_destroy_context(context: int) -> None:
    """Forget an encoder."""
    _contexts.discard(context)


def nvds_obj_enc_finish(context: int) -> None:
    """Do nothing: each image is encoded when it is asked for."""


def nvds_obj_enc_process(
    context: int,
    args: NvDsObjEncUsrArgs,
    address: int,
    obj: NvDsObjectMeta | None,
    frame: NvDsFrameMeta,
) -> bool:
    """Encode an object, or a whole frame.

    Args:
        context: of `nvds_obj_enc_create_context`.
        args: wishes.
        address: `hash(buffer)`.
        obj: the object; not read if `args.isFrame`.
        frame: of the object.

    Returns:
        False if the encoder is not known, or nothing of the object lies in the frame.

    Raises:
        OSError: the file cannot be written.
    """
    if context not in _contexts or (obj is None and not args.isFrame):
        return False
    pixels = get_nvds_buf_surface(address, frame.batch_id)[:, :, :3]
    if not args.isFrame and obj is not None:
        rect = obj.rect_params
        left, top = max(0, int(rect.left)), max(0, int(rect.top))
        right, bottom = int(rect.left + rect.width), int(rect.top + rect.height)
        pixels = pixels[top : max(top, bottom), left : max(left, right)]
    if not pixels.size:
        return False
    data = jpeg(pixels, args)
    if args.saveImg:
        name = args.fileNameImg or f"{frame.source_id}_{frame.frame_num}_{args.objNum}.jpg"
        write_where_named(Path(name), data, durable=False)
    if args.attachUsrMeta:
        user = nvds_acquire_user_meta_from_pool(frame.base_meta.batch_meta)
        user.base_meta.meta_type = NvDsMetaType.NVDS_CROP_IMAGE_META
        user.user_meta_data = NvDsObjEncOutParams(data)
        if args.isFrame or obj is None:
            nvds_add_user_meta_to_frame(frame, user)
        else:
            nvds_add_user_meta_to_obj(obj, user)
    return True


def jpeg(pixels: npt.NDArray[np.uint8], args: NvDsObjEncUsrArgs) -> bytes:
    """Encode an image, (height, width, 3) RGB, scaled as asked."""
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(pixels))
    if args.scaleImg and args.scaledWidth > 0 and args.scaledHeight > 0:
        size = min(_MOST_SIDE, int(args.scaledWidth)), min(_MOST_SIDE, int(args.scaledHeight))
        image = image.resize(size)
    out = io.BytesIO()
    image.save(out, "JPEG", quality=min(100, max(1, int(args.quality))))
    return out.getvalue()
