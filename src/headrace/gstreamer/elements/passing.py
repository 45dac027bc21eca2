"""Elements that pass images on as they are, and those that are refused by name when they start."""

from __future__ import annotations

from headrace._core.errors import HeadraceError
from headrace.gstreamer.elements.bindings import BaseTransform
from headrace.gstreamer.elements.bins import Display
from headrace.gstreamer.elements.element import (
    NVMM,
    SYSTEM,
    InPlace,
    NvElement,
    pad,
    reported,
    through,
)
from headrace.gstreamer.elements.properties import COMMON, NO_EFFECT, Property

_UNUSED = "accepted; the element does not start"
_GPU = {"gpu-id": COMMON["gpu-id"]}


class NvEglTransform(NvElement, BaseTransform):
    """Passes images on: in front of a display there is no memory of EGL to bring them to."""

    __gtype_name__ = "GstNvEglTransform"
    ABOUT = ("NvEGLTransform", "Filter/Video", "Passes images on")
    __gsttemplates__ = through(NVMM, SYSTEM)
    PROPERTIES = {"silent": Property("bool", False, "accepted; it prints nothing")}

    def __init__(self) -> None:
        super().__init__()
        self.set_passthrough(True)
        self.setup()


class NvOverlaySink(Display):
    """The display of older embedded machines."""

    __gtype_name__ = "GstNvOverlaySink"
    ABOUT = ("Display", "Sink/Video", "Shows images, or counts them")
    __gsttemplates__ = (pad("sink", "sink", "always", NVMM, SYSTEM),)
    PROPERTIES = Display.PROPERTIES | {
        name: Property("uint", default, NO_EFFECT)
        for name, default in (
            ("overlay", 1), ("overlay-depth", 1), ("overlay-x", 0), ("overlay-y", 0),
            ("overlay-w", 0), ("overlay-h", 0), ("display-id", 0),
        )
    }  # fmt: skip


class _Refused(InPlace):
    """Base of elements that applications make, and that nothing here stands for.

    Attributes:
        REASON: what is missing.
        FIX: what does the like, if anything.
    """

    REASON: str
    FIX: str | None = None
    PROPERTIES = _GPU

    @reported(False)
    def do_start(self) -> bool:
        """Refuse.

        Raises:
            HeadraceError: always.
        """
        name = type(self).__name__.lower()
        raise HeadraceError(f"{name}: {self.REASON}", where=self.get_name(), fix=self.FIX)


class NvOf(_Refused):
    """Optical flow by the hardware of a graphics card."""

    __gtype_name__ = "GstNvOf"
    ABOUT = ("NvOF", "Filter/Video", "Refused: there is no optical flow here")
    __gsttemplates__ = through(NVMM)
    REASON = "optical flow is not computed here"
    FIX = "take it and nvofvisual out of the pipeline"
    PROPERTIES = _GPU | {
        "preset-level": Property("uint", 0, _UNUSED),
        "pool-size": Property("uint", 7, _UNUSED),
        "grid-size": Property("uint", 0, _UNUSED),
    }


class NvOfVisual(_Refused):
    """Pictures of optical flow."""

    __gtype_name__ = "GstNvOfVisual"
    ABOUT = ("NvOFVisual", "Filter/Video", "Refused: there is no optical flow here")
    __gsttemplates__ = through(NVMM)
    REASON = NvOf.REASON
    FIX = NvOf.FIX
