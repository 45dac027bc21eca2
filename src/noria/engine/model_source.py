"""The model that a config names, of whatever format, and how it becomes a network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from noria.config.model_files import ModelKind, model_kind, model_paths
from noria.engine.image_input import Dims, complete_infer_dims
from noria.network.network import Network
from noria.notices import Notice

if TYPE_CHECKING:
    from noria.config.model_config import ModelConfig

__all__ = ["MadeSource", "ModelSource", "model_source"]


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Files of a model and what its importer is told.

    Attributes:
        kind: the format.
        model: the file that engines are named after.
        companions: further files, by the key that names them.
        recipe: what the importer is told, a line each: plans remember it.
    """

    kind: ModelKind
    model: Path
    companions: Mapping[str, Path] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    dims: Dims | None = None
    uff_input: str | None = None
    uff_order: int = 0

    @property
    def base(self) -> Path:
        """The path that names of engines begin with."""
        return self.model

    @property
    def told(self) -> list[Notice]:
        """What was decided while the network was made."""
        return []

    @property
    def recipe(self) -> str:
        parts = []
        if self.kind == "uff":
            parts.append(f"uff-input-blob-name={self.uff_input or ''}")
            parts.append(f"uff-input-order={self.uff_order}")
        if self.kind in ("caffe", "uff"):
            parts.append(f"output-blob-names={';'.join(self.outputs)}")
        if self.kind != "onnx":
            dims = ";".join(map(str, self.dims)) if self.dims else ""
            parts.append(f"infer-dims={dims}")
        return "\n".join(parts)[:4096]

    def told_otherwise(self, recipe: str) -> str | None:
        """What another recipe says that this one does not; None if they are the same."""
        if recipe == self.recipe:
            return None
        there, here = recipe.split("\n"), self.recipe.split("\n")
        differ = [(a, b) for a, b in zip(there, here, strict=False) if a != b]
        return "; ".join(f"{a} ≠ {b.partition('=')[2]}" for a, b in differ) or "other keys"

    def network(self) -> Network:
        """Read the files.

        Raises:
            ModelError: as the importer of the format.
        """
        network = self._network()
        network.recipe = self.recipe
        return network

    def _network(self) -> Network:
        if self.kind == "caffe":
            from noria.network.caffe import network_from_caffe

            return network_from_caffe(
                self.companions["proto-file"],
                self.model,
                outputs=self.outputs,
                input_dims=self.dims,
            )
        if self.kind == "uff":
            from noria.network.uff import network_from_uff
            from noria.plugins.imported import ImportedPlugins
            from noria.plugins.known import known_plugins

            return network_from_uff(
                self.model,
                input_name=self.uff_input,
                input_dims=self.dims,
                input_order=("NCHW", "NHWC", "NC")[self.uff_order],
                outputs=self.outputs,
                plugins=ImportedPlugins(known_plugins()),
            )
        if self.kind == "darknet":
            from noria.network.darknet import network_from_darknet

            cfg = self.companions["custom-network-config"]
            return network_from_darknet(cfg, self.model, input_dims=self.dims)
        from noria.network.onnx_file import network_from_onnx

        return network_from_onnx(self.model)


@dataclass(frozen=True, slots=True)
class MadeSource(ModelSource):
    """A network that a function of the user's library makes.

    Attributes:
        model: the library.
        function: the entry point.
        make: gives the network; raises what `noria.engine.load_or_build` may raise.
        keys: what of the config the function was told, a line each.
        beside: see `base`.
        notices: grows while `make` runs.
    """

    function: str = ""
    make: Callable[[], Network] | None = None
    keys: tuple[str, ...] = ()
    beside: Path = Path("model")
    notices: list[Notice] = field(default_factory=list)

    @property
    def base(self) -> Path:
        return self.beside

    @property
    def told(self) -> list[Notice]:
        return self.notices

    @property
    def recipe(self) -> str:
        return "\n".join([f"made by={self.function}", *self.keys])[:4096]

    def network(self) -> Network:
        """Call the function.

        Raises:
            ModelError, EngineError, CustomLibraryError: it failed, or made nothing usable.
        """
        assert self.make is not None
        network = self.make()
        network.path = self.model
        network.made_from = dict(self.companions)
        network.recipe = self.recipe
        return network


def model_source(cfg: ModelConfig) -> ModelSource | None:
    """The model that `cfg` names; None if it names none that can be read.

    Source: config facts 5.1, see `noria.config.model_files.model_kind`.
    """
    kind = model_kind(cfg)
    if kind is None:
        return None
    model, *others = model_paths(cfg).items()
    return ModelSource(
        kind=kind,
        model=model[1],
        companions=dict(others),
        outputs=cfg.output_blob_names if kind in ("caffe", "uff") else (),
        dims=complete_infer_dims(cfg.infer_dims),
        uff_input=cfg.uff_input_blob_name,
        uff_order=int(cfg.uff_input_order),
    )
