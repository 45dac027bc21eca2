"""Runs of models with plugins of a library for another processor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import headrace
from headrace._core.types import Array
from headrace.custom.guard import keeper
from tests.custom.emulated.conftest import require_cross_compiler
from tests.custom.emulated.test_emulated_creators import build, stub
from tests.infer.model.test_guarded_plugin_layer import write_model
from tests.trt.host.conftest import SOURCES, _registry_as_before
from tests.trt.host.test_plugins_device import CODE
from tests.warm import headrace as command

__all__ = ["_registry_as_before"]  # a fixture
HOSTILE = SOURCES / "hostile.cpp"
GUARDS = ["never"] + ["always"] * (keeper.can_guard() is None)


def _prepared(folder: Path, library: Path, guard: str) -> Path:
    config = write_model(folder, library, guard)
    config.write_text(config.read_text() + "output-tensor-meta=1\n")
    Image.radial_gradient("L").resize((16, 16)).convert("RGB").save(folder / "p.png")
    return config


def _outputs(config: Path) -> Array:
    with headrace.open_pipeline(config, sources=config.parent / "p.png") as pipeline:
        ((_, frame),) = pipeline
    (meta,) = frame.tensors
    return np.array(meta["y"])


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.sampled
def test_a_model_computes_with_it_built_and_loaded(tmp_path: Path, guard: str) -> None:
    config = _prepared(tmp_path, build(tmp_path, 0, HOSTILE), guard)
    pixels = np.asarray(Image.open(tmp_path / "p.png"), np.float32).transpose(2, 0, 1)
    assert len(np.unique(pixels)) > 10
    for _ in range(2):
        np.testing.assert_array_equal(_outputs(config), -pixels)
        assert len(list(tmp_path.glob("*.engine"))) == 1


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("crash_load", "SIGSEGV"),
        ("crash_create", "SIGSEGV"),
        ("crash_shapes", "SIGSEGV"),
        ("crash", "SIGSEGV"),
        ("bytes", r"name is b'\xff\xfe', which is no UTF-8"),
        ("huge", "layer 'hostile': output 's' of shape (1, 3, 1073741824, 1048576) (float32)"),
    ],
)
@pytest.mark.sampled
def test_what_goes_wrong_is_named(tmp_path: Path, guard: str, how: str, words: str) -> None:
    _prepared(tmp_path, build(tmp_path, 0, HOSTILE), guard)
    done = command("run", "c.txt", "p.png", "-o", "o.jsonl", cwd=tmp_path, HOSTILE=how)
    assert done.returncode in (4, 5), done.stderr
    assert words in done.stderr
    assert any(
        name in done.stderr for name in ("plugin Hostile", "creator of Hostile", "libhostile.so")
    )
    assert "Traceback" not in done.stderr


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(
    ("flags", "named"), [((), "Plugin"), (("-fno-rtti",), "Hostile")], ids=["named", "unnamed"]
)
def test_code_for_a_gpu_is_refused_by_name(
    tmp_path: Path, flags: tuple[str, ...], named: str
) -> None:
    source = tmp_path / "kernels.cpp"
    source.write_text(HOSTILE.read_text() + CODE)
    _prepared(tmp_path, build(tmp_path, 0, source, *flags), "never")
    done = command("run", "c.txt", "p.png", "-o", "o.jsonl", cwd=tmp_path)
    assert done.returncode != 0
    assert f"enqueue of {named} runs on a GPU: it is code of libkernels.so" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("cublasScopy_v2(nullptr, (int)size / 4, from[0], 1, to[0], 1);", ""),
        ("cublasScopies(nullptr, (int)size / 4, from[0], 1, to[0], 1);", "cublasScopies of libc"),
    ],
)
@pytest.mark.sampled
def test_functions_of_the_host_stand_for_those_of_cublas(
    tmp_path: Path, call: str, words: str
) -> None:
    require_cross_compiler()
    source, name = tmp_path / "blas.cpp", call.partition("(")[0]
    declared = f'extern "C" int {name}(void*, int, const void*, int, void*, int);\n'
    copied = "std::memcpy(to[0], from[0], size);"
    assert copied in HOSTILE.read_text()
    source.write_text(declared + HOSTILE.read_text().replace(copied, call))
    flags = ("-Wl,--no-as-needed", stub(tmp_path, "libcublas.so.12"))
    _prepared(tmp_path, build(tmp_path, 0, source, *flags), "never")
    done = command("run", "c.txt", "p.png", "-o", "o.jsonl", cwd=tmp_path)
    assert done.returncode == (4 if words else 0), done.stderr
    assert words in done.stderr
