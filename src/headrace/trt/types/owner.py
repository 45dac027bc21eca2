"""The network that tensors, layers and loops belong to, as they know it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from headrace.plugins.types import NumberedEnum
    from headrace.trt.layers.base import ILayer
    from headrace.trt.types.tensor import ITensor


class Owner(Protocol):
    """A network by code, as its parts know it; `INetworkDefinition` is the one there is."""

    _implicit: bool
    _typed_by_inputs: bool
    _layers: list[ILayer]
    _outputs: list[ITensor]
    _formulas: dict[str, Any]

    @property
    def _offset(self) -> int:
        """Number of axes that shapes leave out."""

    def _fresh_uid(self, kind: str) -> str: ...
    def _append(self, layer: ILayer) -> None: ...
    def _changed(self, layer: ILayer | None = None) -> None: ...
    def _reordered(self) -> None: ...
    def _refresh(self) -> None: ...
    def _constant_tensor(self, name: str) -> ITensor: ...
    def _tell(self, layer: ILayer) -> None: ...
    def _report(self, text: str, severity: NumberedEnum = ...) -> None: ...
