"""Makes a folder to run in: configs, parsers, and the models of the installed package.

python prepare.py [FOLDER]

The models are copied, since engines are saved beside them. The characters that the recognition
model knows are in its metadata; they become its label file.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
from pathlib import Path

import onnx

EXAMPLE = Path(__file__).resolve().parent
PACKAGE = "rapidocr_onnxruntime"
FILES = (
    *("det.txt", "cls.txt", "rec.txt", "rec_long.txt"),
    *("labels_det.txt", "labels_cls.txt", "ocr_parsers.py"),
)


class Missing(Exception):
    """The package, or a model in it, is not there; the text says what to do."""


def models() -> dict[str, Path]:
    """`det`, `cls`, `rec` -> ONNX file inside the installed package, which is not imported.

    Raises:
        Missing: it is not installed, or holds other models.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise Missing(
            f"{PACKAGE} is not installed for {sys.executable}: "
            "pip install --no-deps 'rapidocr-onnxruntime>=1.4'"
        )
    folder = Path(spec.submodule_search_locations[0]) / "models"
    found = {}
    for kind in ("det", "cls", "rec"):
        files = sorted(folder.glob(f"*_{kind}_*.onnx"))
        if len(files) != 1:
            names = ", ".join(p.name for p in sorted(folder.glob("*"))) or "nothing"
            raise Missing(f"one model *_{kind}_*.onnx is expected in {folder}; there is {names}")
        found[kind] = files[0]
    return found


def characters(model: Path) -> list[str]:
    """What the recognition model can read, in the order of its classes, without blank and space."""
    for entry in onnx.load(model, load_external_data=False).metadata_props:
        if entry.key == "character":
            return list(entry.value.split("\n"))
    raise Missing(f"{model} has no 'character' in its metadata")


def prepare(folder: Path) -> Path:
    """Fill `folder`; what it has is replaced.

    Raises:
        Missing: see `models`.
    """
    found = models()
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copy(EXAMPLE / name, folder)
    for kind, model in found.items():
        shutil.copyfile(model, folder / f"{kind}.onnx")
    text = "\n".join(characters(found["rec"])) + "\n"
    (folder / "characters.txt").write_bytes(text.encode())
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("ocr"))
    folder = parser.parse_args().folder
    try:
        prepare(folder)
    except Missing as error:
        sys.exit(f"prepare.py: {error}")
    print(f"{folder}: {', '.join(sorted(p.name for p in folder.iterdir()))}")


if __name__ == "__main__":
    main()
