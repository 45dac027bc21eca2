"""Sources of a config's network: the model's files, or a function of the custom library."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import field

from headrace._core.findings import Finding
from headrace._core.plain_record import PlainRecord
from headrace.config.model_files import ModelKind, model_kind, model_paths
from headrace.engine.input_shapes import Dims, complete_infer_dims

if TYPE_CHECKING:
    from headrace.config.model_config import ModelConfig
    from headrace.infer.model.plugin_factories import CppFactories
    from headrace.network.network import Network
    from headrace.plugins.imported import ImportedPlugins


class ModelSource(PlainRecord, frozen=True, eq=False):
    """Files of a model, and the arguments of its importer.

    Attributes:
        kind: the format.
        model: the file that engines are named after.
        companions: further files, by the key that names them.
        outputs, dims, uff_input, uff_order: arguments of importers.
        factories: of the custom library, for layers that Caffe and UFF do not know.
        notices: decisions of `network`; grows while it runs.
    """

    kind: ModelKind
    model: Path
    companions: Mapping[str, Path] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    dims: Dims | None = None
    uff_input: str | None = None
    uff_order: int = 0
    factories: CppFactories | None = None
    notices: list[Finding] = field(default_factory=list)

    @property
    def base(self) -> Path:
        """The path that names of engines begin with."""
        return self.model

    @property
    def recipe(self) -> str:
        """Arguments of the importer, a line each; plans keep them."""
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

    def recipe_difference(self, recipe: str) -> str | None:
        """Describe the difference of another recipe from this one; None if they are the same."""
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
        if self.kind in ("caffe", "uff"):
            network.made_from = dict(self.companions)
        return network

    def _network(self) -> Network:
        if self.kind == "caffe":
            from headrace.network.caffe.importer import network_from_caffe

            return network_from_caffe(
                self.companions["proto-file"],
                self.model,
                outputs=self.outputs,
                input_dims=self.dims,
                plugins=self._plugins("Caffe"),
            )
        if self.kind == "uff":
            from headrace.network.uff.importer import network_from_uff

            return network_from_uff(
                self.model,
                input_name=self.uff_input,
                input_dims=self.dims,
                input_order=("NCHW", "NHWC", "NC")[self.uff_order],
                outputs=self.outputs,
                plugins=self._plugins("Uff"),
            )
        if self.kind == "darknet":
            from headrace.network.darknet.importer import network_from_darknet

            cfg = self.companions["custom-network-config"]
            return network_from_darknet(cfg, self.model, input_dims=self.dims)
        from headrace.network.onnx_file import network_from_onnx

        network = network_from_onnx(self.model, of_images=True)
        if maps := network.class_maps.names:
            text = "{outputs}: a table of scores in the place of maps of names to scores (ZipMap)"
            data = {"outputs": ", ".join(maps)}
            self.notices.append(Finding("maps-as-tables", "info", text, str(self.model), data))
        if texts := network.class_maps.texts:
            text = "{outputs}: left out, for it holds texts, and parsers read numbers"
            data = {"outputs": ", ".join(texts)}
            self.notices.append(Finding("texts-left-out", "info", text, str(self.model), data))
        if network.of_one_image:
            text = (
                "the model is of one image: {outputs} have no batch axis, and each image runs alone"
            )
            data = {"outputs": ", ".join(network.of_one_image)}
            self.notices.append(
                Finding("outputs-of-one-image", "info", text, str(self.model), data)
            )
        return network

    def _plugins(self, kind: str) -> ImportedPlugins:
        from headrace.plugins.imported import ImportedPlugins
        from headrace.plugins.registry import known_plugins

        factory = self.factories.layers(kind) if self.factories is not None else None
        return ImportedPlugins(known_plugins(), factory)


CUDA_ENGINE_GET = "NvDsInferCudaEngineGet"
MODEL_PARSER = "NvDsInferCreateModelParser"


class FunctionSource(ModelSource, frozen=True, eq=False):
    """A function of the user's library that makes the network; `model` is the library.

    Attributes:
        function: the entry point.
        make: gives the network; raises as `headrace.infer.model.load_or_build`.
        keys: values of the config that the function gets, a line each.
        engine_base: see `base`.
    """

    function: str = ""
    make: Callable[[], Network] | None = None
    keys: tuple[str, ...] = ()
    engine_base: Path = Path("model")

    @classmethod
    def of(
        cls,
        cfg: ModelConfig,
        library: Path,
        function: str,
        make: Callable[[], Network],
        notices: list[Finding],
    ) -> FunctionSource:
        """Take the source that a config's function is.

        Names of its engines begin with `model` in the working directory, as in the original; those
        of a model parser with the model's own file. `make` calls it and appends to the notices.
        """
        from headrace.infer.model.init_params import model_files

        files = model_files(cfg)
        base = Path(os.path.abspath("model"))
        if function == MODEL_PARSER and files:
            base = next(iter(files.values()))
        return cls(
            kind="onnx",
            model=library,
            companions=files,
            notices=notices,
            function=function,
            make=make,
            keys=(
                f"batch-size={cfg.batch_size}",
                f"network-mode={int(cfg.network_mode)}",
                f"infer-dims={';'.join(map(str, cfg.infer_dims or ()))}",
            ),
            engine_base=base,
        )

    @property
    def base(self) -> Path:
        """The path that names of engines begin with."""
        return self.engine_base

    @property
    def recipe(self) -> str:
        """The function and its keys, a line each."""
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


def model_source(cfg: ModelConfig, factories: CppFactories | None = None) -> ModelSource | None:
    """Find the model files that `cfg` names; None if it names none that can be read.

    With factories of the custom library, engines depend on that library.

    Source: config facts 5.1, see `headrace.config.model_files.model_kind`.
    """
    kind = model_kind(cfg)
    if kind is None:
        return None
    model, *others = model_paths(cfg).items()
    companions = dict(others)
    if factories is not None and kind in ("caffe", "uff") and cfg.custom_lib_path is not None:
        companions["custom-lib-path"] = cfg.custom_lib_path
    return ModelSource(
        kind=kind,
        model=model[1],
        companions=companions,
        outputs=cfg.output_blob_names if kind in ("caffe", "uff") else (),
        dims=complete_infer_dims(cfg.infer_dims),
        uff_input=cfg.uff_input_blob_name,
        uff_order=int(cfg.uff_input_order),
        factories=factories,
    )
