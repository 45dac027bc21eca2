"""nvsegvisual: class maps as images."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.gstreamer.elements.element import NVMM, through
from headrace.gstreamer.elements.properties import COMMON, NO_EFFECT, Property
from headrace.gstreamer.elements.remake import Remaking
from headrace.gstreamer.elements.surface import Surface
from headrace.gstreamer.elements.tree import frames_of, image_of, with_surfaces
from headrace.gstreamer.pyds.meta import NvDsBatchMeta, NvDsFrameMeta, NvDsMetaType, items
from headrace.media.draw.device_canvas import canvas_for
from headrace.media.draw.overlays import Overlay, class_map_overlay
from headrace.media.frame import Frame
from headrace.media.pixel_format import PixelFormat
from headrace.media.resizing import scaled

PROPERTIES = {key: COMMON[key] for key in ("gpu-id", "qos")} | {
    "unique-id": Property("uint", 0, NO_EFFECT),
    "batch-size": Property("uint", 1, "accepted; every frame is drawn", 1),
    "width": Property("uint", 1280, "of the images made"),
    "height": Property("uint", 720, "of the images made"),
    "original-background": Property("bool", False, "draw over the frame; else over black"),
    "class-id": Property("uint", 0, "with original-background: the class that is see-through"),
    "operate-on-seg-meta-id": Property("int", -1, "class maps of this model; -1: of all", -1),
    "gpu-on": Property("bool", True, "accepted; the processor draws"),
    "alpha": Property("float", 1.0, "opacity of classes over the frame", 0.0, 1.0),
}


class NvSegVisual(Remaking):
    """Gives each frame's class map in colours; frames without one are black."""

    __gtype_name__ = "GstNvSegVisual"
    ABOUT = ("NvSegVisual plugin", "Filter/Video", "Draws class maps")
    __gsttemplates__ = through(NVMM)
    PROPERTIES = PROPERTIES

    def remade(self, batch: NvDsBatchMeta) -> NvDsBatchMeta:
        """Return the batch with the images of its class maps; the first keeps its own."""
        new_batch = with_surfaces(batch, list(batch.surfaces))
        for frame in frames_of(batch):
            new_batch.surfaces[frame.batch_id] = Surface(self._drawn(batch, frame))
        return new_batch

    def _drawn(self, batch: NvDsBatchMeta, frame: NvDsFrameMeta) -> Frame:
        width, height = int(self.values["width"]), int(self.values["height"])
        whole = (0.0, 0.0, float(width), float(height))
        over = self.values["original-background"]
        if over:
            image = scaled(image_of(batch, frame), width, height)
        else:
            image = Frame.from_array(np.zeros((height, width, 3), np.uint8), PixelFormat.RGB)
        canvas = canvas_for(image)
        opacity = self.values["alpha"] if over else 1.0
        for user in items(frame, "frame_user_meta_list"):
            if user.base_meta.meta_type == NvDsMetaType.NVDSINFER_SEGMENTATION_META:
                segmentation = user.user_meta_data.priv_data
                if self.values["operate-on-seg-meta-id"] not in (-1, segmentation.component_id):
                    continue
                overlay = class_map_overlay(segmentation, whole, width, height, opacity)
                if overlay is not None:
                    canvas.blend(self._over(overlay) if over else overlay)
        return canvas.frame()

    def _over(self, overlay: Overlay) -> Overlay:
        """An overlay that leaves the background's class see-through."""
        slot = self.values["class-id"] + 1
        kept = [0.0 if i == slot else one for i, one in enumerate(overlay.opacities)]
        return replace(overlay, opacities=tuple(kept))
