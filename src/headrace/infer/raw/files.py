"""The debugging keys: tensors written to files and read back. Source: spec C.5, config facts 2.9.

All files lie in the working directory, as in the original.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import numpy.typing as npt

from headrace._core.errors import ConfigError, EngineError
from headrace._core.files import os_reason, write_atomically
from headrace._core.types import Array, Arrays, DType
from headrace.meta import NetworkInfo

if TYPE_CHECKING:
    from headrace.config import ModelConfig
    from headrace.infer.engine_runs import RawOutput

INPUT_DUMP = "ip_tensor_dump.bin"
_MAX_NAME = 255


def raw_file_name(component_id: int, layer: str, batch: int, size: int) -> str:
    """The name of one layer's file of `raw-output-file-write`, at most 255 characters."""
    layer = layer.replace("/", "_")
    name = f"gstnvdsinfer_uid-{component_id:02d}_layer-{layer}_batch-{batch:010d}"
    return f"{name}_batchsize-{size:02d}.bin"[:_MAX_NAME]


class LayerFiles:
    """Writes every output of a model, a file for each layer and run of the engine.

    The names are those of the original's application: `LAYER_batchNNNNNNNNNN_batchsizeNN.bin`.

    Args:
        folder: where they go; made if it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._batch = 0

    def __call__(self, raw: RawOutput) -> None:
        """Write the outputs of a run.

        Raises:
            EngineError: a file cannot be written.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            for layer, data in raw.outputs.items():
                name = f"{layer.replace('/', '_')}_batch{self._batch:010d}"
                path = self._folder / f"{name}_batchsize{len(data):02d}.bin"[-_MAX_NAME:]
                write_atomically(path, [np.ascontiguousarray(data).tobytes()], durable=False)
        except (OSError, ValueError) as error:  # ValueError: a name with a NUL byte
            raise EngineError(
                f"an output cannot be written: {os_reason(error)}",
                where=str(getattr(error, "filename", None) or self._folder),
                fix="name a folder that can be written, or leave infer-raw-output-dir out",
            ) from error
        self._batch += 1


class TensorFiles:
    """Writes and replaces the tensors of one model, as its config asks.

    Args:
        folder: where files are written; the working directory by default.

    Attributes:
        needs_input: the scaled input has to be kept until the batch is done.

    Raises:
        ConfigError: a file to be read is missing, or there are not as many as outputs.
    """

    def __init__(self, cfg: ModelConfig, network: NetworkInfo, folder: Path | None = None) -> None:
        self._folder = folder
        self._component_id = cfg.component_id
        self._raw = cfg.raw_output_file_write
        # type 100 never copies its input to the host in the original
        self._raw_input = self._raw and cfg.network_type != 100
        from_meta = cfg.input_tensor_from_meta
        self._dump_input = cfg.dump_input_tensor and not from_meta
        self._dump_output = cfg.dump_output_tensor
        self._size = 4 * network.width * network.height * network.channels
        self._batch = 0
        self._input_file: BinaryIO | None = None
        self._output_files: dict[str, BinaryIO] = {}
        self._where = str(cfg.path)
        if cfg.overwrite_input_tensor and not from_meta:
            self._input_file = _open(cfg, "ip-tensor-file", cfg.ip_tensor_file)
        if cfg.overwrite_output_tensor:
            files, names = cfg.op_tensor_files, cfg.output_blob_names
            if len(files) != len(names) or not files:
                raise ConfigError(
                    f"op-tensor-files names {len(files)} files, output-blob-names {len(names)}",
                    where=str(cfg.origin("op_tensor_files")),
                    expected="one file for each output blob, in the same order",
                )
            for name, path in zip(names, files, strict=True):
                self._output_files[name] = _open(cfg, "op-tensor-files", path)

    @property
    def needs_input(self) -> bool:
        """True if the input tensor is written."""
        return self._raw_input or self._dump_input

    @property
    def active(self) -> bool:
        """Whether any of it is asked for."""
        return bool(
            self._raw or self._dump_input or self._dump_output or self._output_files
            or self._input_file
        )  # fmt: skip

    @property
    def replaces_input(self) -> bool:
        """True if a file takes the place of the input tensor."""
        return self._input_file is not None

    def replacement(self, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
        """The next input from `ip-tensor-file`, for the first item of a batch.

        Args:
            shape: of one item.

        Raises:
            EngineError: the file has no further whole item.
        """
        assert self._input_file is not None
        return _read(self._input_file, np.dtype(np.float32), shape)

    def replace_outputs(self, outputs: dict[str, Array]) -> None:
        """Put the contents of `op-tensor-files` in place of outputs, item after item.

        Raises:
            EngineError: an output has no such name, or a file is at its end.
        """
        for name, file in self._output_files.items():
            if name not in outputs:
                raise EngineError(
                    f"output-blob-names: the model has no output {name!r} to overwrite",
                    where=self._where,
                    expected=", ".join(outputs),
                )
            old = outputs[name]
            outputs[name] = _read(file, old.dtype, old.shape)

    def write(self, inputs: Arrays, outputs: Arrays) -> None:
        """Write one batch's tensors, inputs first.

        Raises:
            EngineError: a file cannot be written.
        """
        folder = self._folder or Path.cwd()
        try:
            if self._raw:
                layers = {**(inputs if self._raw_input else {}), **outputs}
                for name, data in layers.items():
                    file = raw_file_name(self._component_id, name, self._batch, len(data))
                    contents = [np.ascontiguousarray(data).tobytes()]
                    write_atomically(folder / file, contents, durable=False)
            if self._dump_input and inputs:
                first = next(iter(inputs.values()))[0]
                _append(folder / INPUT_DUMP, np.ascontiguousarray(first).tobytes())
            if self._dump_output:
                # the original writes as many bytes as the input has, reading past small outputs;
                # here a small output is written whole
                for name, data in outputs.items():
                    path = folder / f"{name.replace('/', '-')}_op_tensor.bin"
                    for item in data:
                        _append(path, np.ascontiguousarray(item).tobytes()[: self._size])
        except (OSError, ValueError) as error:  # ValueError: a name with a NUL byte
            raise EngineError(
                f"a tensor file cannot be written: {os_reason(error)}",
                where=str(getattr(error, "filename", None) or folder),
                fix="turn raw-output-file-write and dump-* off, or run in another folder",
            ) from error
        self._batch += 1

    def close(self) -> None:
        """Close the files that are read."""
        for file in (self._input_file, *self._output_files.values()):
            if file is not None:
                file.close()


def _open(cfg: ModelConfig, key: str, path: Path | None) -> BinaryIO:
    if path is None:
        raise ConfigError(
            f"{key} is not given",
            where=str(cfg.path),
            expected=f"{key}=<file>",
        )
    try:
        return path.open("rb")
    except OSError as error:
        raise ConfigError(
            f"{key}: {os_reason(error)}: {path}", where=str(cfg.origin(key))
        ) from error


def _read(file: BinaryIO, dtype: DType, shape: tuple[int, ...]) -> Array:
    size = int(np.prod(shape)) * dtype.itemsize
    data = file.read(size)
    if len(data) != size:
        raise EngineError(
            f"{len(data)} bytes are left, one tensor of {'x'.join(map(str, shape))} needs {size}",
            where=str(file.name),
            expected="a whole tensor for each batch",
        )
    return np.frombuffer(data, dtype).reshape(shape)


def _append(path: Path, data: bytes) -> None:
    """Append to a file of this folder alone: not through a link, nor to a file with more names."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    with os.fdopen(os.open(path, flags, 0o666), "ab") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode) or state.st_nlink != 1:
            text = "it is no file, or has another name elsewhere"
            raise OSError(errno.ELOOP, text, str(path))
        file.write(data)
