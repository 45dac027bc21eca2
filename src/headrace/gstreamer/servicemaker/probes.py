"""Operators of an application on the buffers that pass a pad, and the factory of named ones."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

from headrace._core.errors import ConfigError
from headrace._core.text import printable
from headrace.gstreamer.elements.bindings import Gst
from headrace.gstreamer.pyds.bridge import bridge
from headrace.gstreamer.servicemaker.metadata import BatchMetadata
from headrace.gstreamer.servicemaker.nodes import Node
from headrace.gstreamer.servicemaker.tensor import Buffer

Kind = TypeVar("Kind", bound="_Operator")


class _Operator:
    """Properties of an operator that has a name in the factory."""

    PARAMS: ClassVar[Mapping[str, tuple[str, object, str]]] = {}
    properties: Mapping[str, object] = {}

    def get_property(self, name: str) -> Any:
        """Return a property, its default if nothing set it; None if there is no such one."""
        default = self.PARAMS[name][1] if name in self.PARAMS else None
        return self.properties.get(name, default)


class BatchMetadataOperator(_Operator):
    """Reads and changes metadata of each batch; a subclass has `handle_metadata`."""

    def handle_metadata(self, batch_meta: BatchMetadata) -> None:
        """Handle a batch."""
        raise NotImplementedError(f"{type(self).__name__} has no method handle_metadata")


class BufferOperator(_Operator):
    """Looks at each buffer; a subclass has `handle_buffer`."""

    def handle_buffer(self, buffer: Buffer) -> bool:
        """Handle a buffer; False drops it."""
        raise NotImplementedError(f"{type(self).__name__} has no method handle_buffer")


class Probe:
    """An operator that can be attached to an element."""

    def __init__(self, name: str, operator: BatchMetadataOperator | BufferOperator) -> None:
        self.name, self.operator = name, operator

    def set(self, properties: Mapping[str, object]) -> Probe:
        """Set properties of the operator.

        Raises:
            ConfigError: it has no such property.
        """
        known = self.operator.PARAMS
        for name in properties:
            if name not in known:
                raise ConfigError(
                    f"there is no property {name!r}", where=self.name,
                    expected=", ".join(known) or "none: the operator has no properties",
                )  # fmt: skip
        self.operator.properties = {**self.operator.properties, **properties}
        return self

    def connect(
        self, node: Node, pad: str, failed: Callable[[BaseException], None]
    ) -> Callable[[], None]:
        """Call the operator for each buffer of a pad.

        Args:
            node: the element.
            pad: its name; "" takes the output, or the input of an element without one.
            failed: gets an exception of the operator.

        Returns:
            A function that takes the operator off.
        """
        operator = self.operator
        undo: list[Callable[[], None]] = []

        def look(_: object, info: Gst.PadProbeInfo) -> Gst.PadProbeReturn:
            buffer = info.get_buffer()
            try:
                if isinstance(operator, BatchMetadataOperator):
                    batch = bridge().get(hash(buffer))
                    if batch is not None:
                        operator.handle_metadata(BatchMetadata.of(batch))
                elif not operator.handle_buffer(Buffer.of(buffer)):
                    return Gst.PadProbeReturn.DROP
            except Exception as error:  # the application's
                failed(error)
                return Gst.PadProbeReturn.REMOVE
            return Gst.PadProbeReturn.OK

        def attach(target: Gst.Pad) -> None:
            number = target.add_probe(Gst.PadProbeType.BUFFER, look)
            undo.append(lambda: target.remove_probe(number))

        def take_off() -> None:
            for one in undo:
                one()
            undo.clear()

        element = node.element
        probe_pad = element.get_static_pad(pad) if pad else None
        if probe_pad is None and not pad:
            probe_pad = next(iter([*element.srcpads, *element.sinkpads]), None)
            coming = any(
                one.presence == Gst.PadPresence.SOMETIMES
                for one in element.get_factory().get_static_pad_templates()
            )
            if coming and not element.srcpads:
                handler = element.connect("pad-added", lambda _, one: attach(one))
                undo.append(lambda: element.disconnect(handler))
                return take_off
        if probe_pad is None:
            raise ConfigError(
                f"a probe cannot be attached to pad {pad!r}", where=node.name,
                expected=", ".join(one.get_name() for one in element.pads) or "an element with one",
            )  # fmt: skip
        attach(probe_pad)
        return take_off


_SIGNALS = "no broker's commands start recordings here; Pipeline.start_recording does"
_REFUSED = {"smart_recording_action": _SIGNALS, "smart_recording_signal": _SIGNALS}


class CommonFactory:
    """Makes operators by name: the standard ones, and those that `probe` names."""

    KINDS: ClassVar[dict[str, type[_Operator]]] = {}

    @classmethod
    def create(cls, kind: str, name: str) -> Probe | None:
        """Make a probe with a named operator.

        Args:
            kind: such as `measure_fps_probe`; a module before a dot is left out.
            name: of the probe.

        Returns:
            The probe; None for what has no meaning here, after a warning on stderr.

        Raises:
            ConfigError: nothing has that name.
        """
        short = kind.rpartition(".")[2]
        if short in _REFUSED:
            print(printable(f"warning: {name}: {_REFUSED[short]}"), file=sys.stderr)
            return None
        if short not in cls.KINDS:
            raise ConfigError(
                f"there is no custom object {kind!r}", where=name,
                expected=", ".join(sorted(cls.KINDS)),
                fix="a Python operator gets a name by @probe(name=…); those in C++ need DeepStream",
            )  # fmt: skip
        operator: Any = cls.KINDS[short]()
        return Probe(name, operator)


def probe(
    name: str, params: Mapping[str, tuple[str, object, str]] | None = None
) -> Callable[[type[Kind]], type[Kind]]:
    """Give an operator a name in the factory.

    Args:
        name: for `Pipeline.attach` and pipeline files.
        params: property -> type, default and text.
    """

    def register(kind: type[Kind]) -> type[Kind]:
        kind.PARAMS = dict(params or {})
        CommonFactory.KINDS[name] = kind
        return kind

    return register
