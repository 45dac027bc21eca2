"""Engine creators and model parsers of a library of another processor.

The emulated program has the builder, the network and the layers as the library's release knows
them; each call of theirs is a question, which the host's own objects answer here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from headrace.custom.emulated.messages import Body, NonsenseError, Operation, Reader
from headrace.custom.emulated.plugins import EmulatedPlugin, PluginLink
from headrace.custom.emulated.values import EmulatedAddress, read_value, write_value
from headrace.plugins.registry import get_plugin_registry
from headrace.trt.host.world import World

_REGISTRY: Final = 0xFFFFFFFF
_CALL, _GET, _SET, _RELEASE, _TELL = range(5)
_CALLERS: Final = {"creator_at", "get_creator", "get_plugin_creator", "plugin_of"}
"""Methods that take the address of their caller as the last argument."""

_IN_PLACE: Final = {"create_execution_context", "create_execution_context_without_device_memory",
                    "context_with_config"}  # fmt: skip
"""Methods of objects that work in the caller's memory."""


class EmulatedNetworks:
    """Calls of the functions that make networks, and the objects that they know.

    Attributes:
        link: of the library's plugins.
        world: answers the library's calls.
        called: the name of what is called, for the report of a death.
    """

    def __init__(self, link: PluginLink) -> None:
        self.link = link
        self.world = World()
        self.called = ""
        self._objects: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}
        self._last = 0
        link.process.answering = self._reply

    def release(self, function: str) -> tuple[int, int]:
        """Line and release that the library of a function named; zeros if none."""
        line, release = self.ask("release", Body().text(function)).numbers("ii")
        return line, release

    def create(
        self, function: str, builder: Any, config: Any, params: EmulatedParams, kind: int,
        line: int,
    ) -> tuple[bool, Any]:  # fmt: skip
        """Call an engine creator; returns its answer, and the engine or None."""
        body = Body().text(function)
        body.add("III", line, self.number(builder), 0 if config is None else self.number(config))
        body.add("i", kind).raw(params.data())
        said, engine = self.ask("create", body).numbers("II")
        return bool(said), self.object(engine)

    def model_parser(self, params: EmulatedParams) -> EmulatedModelParser | None:
        """Call NvDsInferCreateModelParser; None: it made none."""
        (made,) = self.ask("parser", Body().raw(params.data())).numbers("I")
        return EmulatedModelParser(self) if made else None

    def forget(self) -> None:
        """Let go of all objects: the library's pointers are dead."""
        self._objects.clear()
        self._numbers.clear()

    def object(self, number: int) -> Any:
        """The object of a number; None for 0.

        Raises:
            ValueError: it was deleted.
        """
        if not number:
            return None
        if number == _REGISTRY:
            return get_plugin_registry()
        if number not in self._objects:
            raise ValueError("an object of the builder was used after it was deleted")
        return self._objects[number]

    def number(self, value: Any) -> int:
        """The number of an object; the same as long as it is not released."""
        if id(value) not in self._numbers:
            self._last += 1
            self._numbers[id(value)] = self._last
            self._objects[self._last] = value
        return self._numbers[id(value)]

    def ask(self, method: str, body: Body) -> Reader:
        """Let the program do something of `native/emulated/networks.h`."""
        request = Body().text(method, self.called).raw(body.data())
        return self.link.request(Operation.NETWORK, request)

    def _reply(self, question: Reader) -> Body:
        """Answer a question of the program: whether that succeeded, and the result."""
        what, number = question.numbers("II")
        name = "" if what in (_RELEASE, _TELL) else question.name()
        if name.startswith("_") and name != "__bytes__":  # the facades know public names alone
            raise NonsenseError(f"a question about {name}")
        try:
            result = self._answer(what, number, name, question)
            body = Body().add("I", 1)
            write_value(body, result, self)
        except NonsenseError:
            raise
        except Exception as error:  # the library gets null or false, as a native one does
            self.world.failed(name, error)
            return Body().add("I", 0)
        return body

    def _answer(self, what: int, number: int, name: str, question: Reader) -> Any:
        if what == _RELEASE:
            self._numbers.pop(id(self._objects.pop(number, None)), None)
            return None
        if what == _TELL:
            severity = question.numbers("i")[0]
            self.world.tell(severity, question.text())
            return None
        if what == _CALL:
            arguments = [read_value(question, self) for _ in range(question.numbers("I")[0])]
            return self._call(self.object(number), name, arguments)
        target = self.object(number)
        if what == _GET:
            return self.world.get(target, name)
        if what != _SET:
            raise NonsenseError(f"question {what}")
        self.world.set(target, name, read_value(question, self))
        return None

    def _call(self, target: Any, method: str, arguments: list[Any]) -> Any:
        if method in _CALLERS and arguments and isinstance(arguments[-1], EmulatedAddress):
            arguments[-1] = 0  # no code of this process
        if method in _IN_PLACE or any(isinstance(one, EmulatedAddress) for one in arguments):
            raise ValueError("it works in the memory of an emulated library")
        answer = self.world.call(target, method, arguments)
        native = getattr(answer, "native", None)
        ours = isinstance(native, EmulatedPlugin) and native.is_of_link(self.link)
        return native if method == "plugin_of" and ours else answer


class EmulatedModelParser:
    """A model parser of the library; methods as those of `_native.ModelParser`."""

    def __init__(self, networks: EmulatedNetworks) -> None:
        self._networks = networks

    def has_full_dims(self) -> bool:
        """Whether it wants an explicit batch."""
        return bool(self._networks.ask("full_dims", Body()).numbers("I")[0])

    def parse(self, network: Any, line: int = 0) -> int:
        """Let it fill a network; its status."""
        body = Body().add("II", line, self._networks.number(network))
        return int(self._networks.ask("parse", body).numbers("i")[0])

    def name(self) -> str:
        """Name of the model."""
        return self._networks.ask("name", Body()).text()

    def close(self) -> None:
        """Delete it."""
        self._networks.ask("close", Body())


class EmulatedParams:
    """The configuration on its way to the program; methods as those of `_native.InitParams`."""

    def __init__(self) -> None:
        self._steps: list[bytes] = []

    def data(self) -> bytes:
        """All of it."""
        return Body().add("I", len(self._steps)).data() + b"".join(self._steps)

    def set_text(self, field: str, value: str) -> None:
        """Set a text."""
        self._add("text", field, [value])

    def set_number(self, field: str, value: float) -> None:
        """Set a number."""
        self._add("number", field, numbers=[value])

    def set_list(self, field: str, values: Sequence[str]) -> None:
        """Set a list of texts."""
        self._add("list", field, values)

    def set_offsets(self, values: Sequence[float]) -> None:
        """Set the offsets of channels."""
        self._add("offsets", numbers=values)

    def set_infer_dims(self, *axes: int) -> None:
        """Set channels, height and width."""
        self._add("infer_dims", numbers=axes)

    def set_classes(self, rows: Sequence[Sequence[float]]) -> None:
        """Set the parameters of classes."""
        self._add("classes", numbers=[number for row in rows for number in row])

    def _add(
        self, kind: str, field: str = "", texts: Sequence[str] = (), numbers: Sequence[float] = ()
    ) -> None:
        body = Body().text(kind, field).add("I", len(texts)).text(*texts)
        self._steps.append(body.add(f"I{len(numbers)}d", len(numbers), *numbers).data())
