"""nvcompositor: images of several sources on one, by GStreamer's own compositor."""

from __future__ import annotations

from typing import Any

from headrace.gstreamer.elements.bindings import GhostPad, GObject, Gst
from headrace.gstreamer.elements.bins import PartsBin
from headrace.gstreamer.elements.element import NVMM, SYSTEM, NvElement, pad
from headrace.gstreamer.elements.properties import COMMON, NO_EFFECT, Property, choice, gproperties

_OF_PAD = {
    "xpos": Property("int", 0, "left edge on the whole image, in pixels"),
    "ypos": Property("int", 0, "upper edge on the whole image, in pixels"),
    "width": Property("int", -1, "of the image; -1, 0: its own", -1),
    "height": Property("int", -1, "of the image; -1, 0: its own", -1),
    "alpha": Property("float", 1.0, "opacity", 0.0, 1.0),
    "zorder": Property("uint", 0, "images with higher numbers cover others"),
}
_OF_WHOLE = ("background", "start-time-selection", "start-time", "latency")
_METHODS = ("GstNvCompositorInterpolation", "Nearest", "Bilinear", "5-Tap", "10-Tap", "Smart",
            "Nicest")  # fmt: skip
PAD_PROPERTIES = _OF_PAD | {
    "interpolation-method": choice(1, NO_EFFECT, *_METHODS)._replace(idle=(1, 4))
}


class _Placed(NvElement):
    """Mixed into pads and ways of inputs: the properties of the compositor's pad."""

    PROPERTIES = PAD_PROPERTIES

    def place(self, target: Gst.Pad) -> None:
        """Name the compositor's pad."""
        self._target = target

    def do_get_property(self, spec: GObject.ParamSpec) -> Any:
        """Return the value of a property."""
        of_pad = spec.name in _OF_PAD
        return self._target.get_property(spec.name) if of_pad else super().do_get_property(spec)

    def changed(self, name: str) -> None:
        """Pass a property on."""
        if name in _OF_PAD:
            self._target.set_property(name, self.values[name])


class NvCompositorPad(_Placed, GhostPad):
    """An input: `pad.set_property("xpos", 640)`."""

    __gtype_name__ = "GstNvCompositorPad"
    __gproperties__ = gproperties(PAD_PROPERTIES)

    def __init__(self, **values: object) -> None:
        GObject.Object.__init__(self, **values)  # GstPython's own takes no template
        self.values = {name: row.default for name, row in self.PROPERTIES.items()}
        self.assigned: set[str] = set()


class NvCompositorInput(_Placed, PartsBin):
    """The way of an input to the compositor, named as its pad: `sink_0::xpos=640`."""

    __gtype_name__ = "GstHeadraceCompositorInput"
    ABOUT = ("Input", "Generic", "Converts the images of an input")
    __gsttemplates__ = (
        pad("sink", "sink", "always", NVMM, SYSTEM), pad("src", "src", "always", SYSTEM)
    )  # fmt: skip
    __gproperties__ = gproperties(PAD_PROPERTIES)

    def __init__(self) -> None:
        super().__init__()
        convert = self.part("nvvideoconvert")
        system = self.part("capsfilter", caps=Gst.Caps.from_string("video/x-raw, format=I420"))
        convert.link(system)
        self.ghost("sink", convert.get_static_pad("sink"))
        self.ghost("src", system.get_static_pad("src"))
        self.setup()


class NvCompositor(PartsBin):
    """Puts images of any size at the places of their pads."""

    __gtype_name__ = "GstNvCompositor"
    ABOUT = ("NvCompositor", "Filter/Editor/Video/Compositor", "Puts images on one")
    __gsttemplates__ = (
        pad("sink_%u", "sink", "request", NVMM, SYSTEM), pad("src", "src", "always", NVMM)
    )  # fmt: skip
    PROPERTIES = {
        "gpu-id": COMMON["gpu-id"],
        "background": choice(
            1, "behind the images",
            "GstNvCompositorBackground", "checker", "black", "white", "transparent",
        ),
        "start-time-selection": choice(
            0, "of the first image", "GstNvCompositorStartTime", "zero", "first", "set"
        ),
        "start-time": Property("uint64", (1 << 64) - 1, "with start-time-selection=set"),
        "latency": Property("uint64", 0, "ns to wait for sources that are live"),
    }  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self._compositor = self.part("compositor", background=1)
        system = self.part("capsfilter", caps=Gst.Caps.from_string("video/x-raw, format=I420"))
        convert = self.part("nvvideoconvert")
        self._compositor.link(system)
        system.link(convert)
        self._inputs: dict[str, tuple[Gst.Pad, NvCompositorInput]] = {}
        self.ghost("src", convert.get_static_pad("src"))
        self.setup()

    def changed(self, name: str) -> None:
        """Pass a property on."""
        if name in _OF_WHOLE:
            self._compositor.set_property(name, self.values[name])

    def do_request_new_pad(
        self, template: Gst.PadTemplate, name: str | None, caps: Gst.Caps
    ) -> Gst.Pad:
        """Make an input."""
        number = len(self._inputs)
        while name is None or name == "sink_%u" or name in self._inputs:
            name, number = f"sink_{number}", number + 1
        target = self._compositor.request_pad_simple("sink_%u")
        way = NvCompositorInput()
        way.set_name(name)
        way.place(target)
        self._inputs[name] = target, way
        self.add(way)
        way.get_static_pad("src").link(target)
        way.sync_state_with_parent()
        sink = NvCompositorPad(name=name, direction=Gst.PadDirection.SINK, template=template)
        sink.place(target)
        sink.set_target(way.get_static_pad("sink"))
        sink.set_active(True)
        self.add_pad(sink)
        return sink

    def do_release_pad(self, sink: Gst.Pad) -> None:
        """Take an input away."""
        target, way = self._inputs.pop(sink.get_name(), (None, None))
        sink.set_active(False)
        self.remove_pad(sink)
        if way is not None:
            way.set_state(Gst.State.NULL)
            self.remove(way)
            self._compositor.release_request_pad(target)
