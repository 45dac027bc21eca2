"""nvdsanalytics: counts objects in regions and across lines."""

from __future__ import annotations

from itertools import pairwise

from headrace.gstreamer.elements.bindings import Gst
from headrace.gstreamer.elements.element import NVMM, InPlace, reported, through
from headrace.gstreamer.elements.properties import COMMON, Property
from headrace.gstreamer.elements.tree import frames_of, image_of, to_frame_meta
from headrace.gstreamer.pyds.analytics import NvDsAnalyticsFrameMeta, NvDsAnalyticsObjInfo
from headrace.gstreamer.pyds.functions import (
    nvds_acquire_display_meta_from_pool,
    nvds_acquire_user_meta_from_pool,
    nvds_add_display_meta_to_frame,
    nvds_add_user_meta_to_frame,
    nvds_add_user_meta_to_obj,
)
from headrace.gstreamer.pyds.meta import (
    NvDsBatchMeta,
    NvDsDisplayMeta,
    NvDsFrameMeta,
    NvDsMetaType,
    NvDsUserMeta,
)
from headrace.gstreamer.pyds.osd import MAX_ELEMENTS_IN_DISPLAY_META
from headrace.gstreamer.pyds.osd import NvOSD_Arrow_Head_Direction as Head
from headrace.meta import Caption, FrameMeta, Stroke
from headrace.pipeline.analytics import Analytics

PROPERTIES = {key: COMMON[key] for key in ("gpu-id", "qos")} | {
    "unique-id": Property("uint", 17, "number of this element in metadata"),
    "enable": Property("bool", True, "count at all"),
    "config-file": Property("str", None, "the rules"),
}


class NvDsAnalytics(InPlace):
    """Applies the rules of a file to the objects of each frame."""

    __gtype_name__ = "GstNvDsAnalytics"
    ABOUT = ("NvDsAnalytics plugin", "Filter/Metadata", "Counts at places")
    __gsttemplates__ = through(NVMM)
    PROPERTIES = PROPERTIES

    def __init__(self) -> None:
        super().__init__()
        self._analytics: Analytics | None = None

    @reported(False)
    def do_start(self) -> bool:
        """Read the rules."""
        self._analytics = Analytics.from_file(self.file_of("config-file", "the rules"))
        for notice in self._analytics.notices:
            self.post_warning(str(notice))
        return True

    def do_stop(self) -> bool:
        """Forget all counts."""
        self._analytics = None
        return True

    def process(self, buffer: Gst.Buffer) -> Gst.FlowReturn:
        """Count the objects of each frame."""
        if self._analytics is None or not self.values["enable"]:
            return Gst.FlowReturn.OK
        batch = self.batch_of(buffer)
        for frame in frames_of(batch):
            meta, objects = to_frame_meta(frame, image_of(batch, frame))
            self._analytics.apply(meta)
            with batch.meta_mutex:
                self._attach_counts(batch, frame, meta)
                for index, analytics in meta.objects.analytics.items():
                    info = NvDsAnalyticsObjInfo()
                    info.roiStatus, info.ocStatus = list(analytics.regions), list(analytics.crowds)
                    info.lcStatus, info.objStatus = list(analytics.crossed), analytics.status
                    info.dirStatus = "".join(f" DIR:{name} " for name in analytics.directions)
                    user = self._user_meta(batch, NvDsMetaType.NVDS_OBJ_META_NVDSANALYTICS, info)
                    nvds_add_user_meta_to_obj(objects[index], user)
                add_figures(batch, frame, meta)
        for source_id in batch.ended:
            self._analytics.end_of_stream(source_id)
        return Gst.FlowReturn.OK

    def _attach_counts(self, batch: NvDsBatchMeta, frame: NvDsFrameMeta, meta: FrameMeta) -> None:
        counts, analytics = NvDsAnalyticsFrameMeta(), meta.analytics
        assert analytics is not None
        counts.ocStatus, counts.objInROIcnt = analytics.crowded, analytics.inside
        counts.objLCCurrCnt, counts.objLCCumCnt = analytics.crossed, analytics.crossed_total
        counts.objCnt = analytics.classes
        kind = NvDsMetaType.NVDS_FRAME_META_NVDSANALYTICS
        nvds_add_user_meta_to_frame(frame, self._user_meta(batch, kind, counts))

    def _user_meta(
        self, batch: NvDsBatchMeta, kind: int, data: NvDsAnalyticsFrameMeta | NvDsAnalyticsObjInfo
    ) -> NvDsUserMeta:
        data.unique_id = self.values["unique-id"]
        user = nvds_acquire_user_meta_from_pool(batch)
        user.base_meta.meta_type = kind
        user.user_meta_data = data
        return user


def add_figures(batch: NvDsBatchMeta, frame: NvDsFrameMeta, meta: FrameMeta) -> None:
    """Add the figures of a frame's metadata as display metadata, 16 of a kind in each."""
    figures = _Figures(batch, frame)
    for figure in meta.figures:
        if isinstance(figure, Caption):
            figures.add_text(figure)
        else:
            figures.add_stroke(figure)


class _Figures:
    """Fills display metadata, one after the other."""

    def __init__(self, batch: NvDsBatchMeta, frame: NvDsFrameMeta) -> None:
        self._batch, self._frame = batch, frame
        self._display: NvDsDisplayMeta | None = None

    def _place(self, count: str) -> tuple[NvDsDisplayMeta, int]:
        """Display metadata with room for one more of a kind, and its place there."""
        display = self._display
        if display is None or getattr(display, count) >= MAX_ELEMENTS_IN_DISPLAY_META:
            display = self._display = nvds_acquire_display_meta_from_pool(self._batch)
            nvds_add_display_meta_to_frame(self._frame, display)
        index = getattr(display, count)
        setattr(display, count, index + 1)
        return display, index

    def add_text(self, caption: Caption) -> None:
        """Add a text."""
        display, index = self._place("num_labels")
        text = display.text_params[index]
        text.display_text = caption.text
        text.x_offset, text.y_offset = max(0, round(caption.left)), max(0, round(caption.top))
        text.font_params.font_name, text.font_params.font_size = "Serif", caption.size
        text.font_params.font_color.set(*caption.color)
        if caption.background is not None:
            text.set_bg_clr = 1
            text.text_bg_clr.set(*caption.background)

    def add_stroke(self, stroke: Stroke) -> None:
        """Add the lines of a stroke; an arrow is one of its own kind."""
        points = stroke.points + (stroke.points[:1] if stroke.closed else ())
        for (x1, y1), (x2, y2) in pairwise(points):
            if stroke.arrow:
                display, index = self._place("num_arrows")
                arrow = display.arrow_params[index]
                arrow.arrow_width, arrow.arrow_head = stroke.width, Head.END_HEAD
                arrow.arrow_color.set(*stroke.color)
                ends = arrow
            else:
                display, index = self._place("num_lines")
                line = display.line_params[index]
                line.line_width = stroke.width
                line.line_color.set(*stroke.color)
                ends = line
            ends.x1, ends.y1, ends.x2, ends.y2 = map(round, (x1, y1, x2, y2))
