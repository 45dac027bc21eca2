"""A tiny YOLO v3 in Darknet's files, with what NumPy makes of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.network.darknet.models import Darknet, header, net

CLASSES = 3
WIDTH, HEIGHT = 48, 32
CONV = "[convolutional]\nbatch_normalize=1\nfilters=6\nsize=3\nstride=1\npad=1\nactivation=leaky\n"
HEAD = "[convolutional]\nsize=1\nstride=1\npad=1\nfilters=24\nactivation=linear\n"
YOLO = "[yolo]\nmask={}\nanchors=10,14, 23,27, 37,58, 81,82, 135,169, 344,319\nclasses=3\nnum=6\n"
DOWN = "[maxpool]\nsize=2\nstride=2\n"
SAME = "[maxpool]\nsize=2\nstride=1\n"
ROUTES = "[route]\nlayers=-4\n{}[upsample]\nstride=2\n[route]\nlayers=-1,2\n"


@dataclass(frozen=True)
class Model:
    """`rows`: (batch, N, 6) of x1, y1, x2, y2, score, class, for `images`."""

    cfg: Path
    weights: Path
    images: npt.NDArray[np.float32]
    rows: npt.NDArray[Any]
    outputs: list[npt.NDArray[Any]]


def tiny_yolo(folder: Path, *, name: str = "mini", width: int = WIDTH, height: int = HEIGHT,
              classes: int = CLASSES, seed: int = 5) -> Model:  # fmt: skip
    """Two heads, pooling with and without stride, an upsampling, two routes."""
    head = HEAD.replace("24", str(3 * (5 + classes)))
    yolo = YOLO.replace("classes=3", f"classes={classes}")
    text = CONV + DOWN + CONV + DOWN + CONV + SAME + CONV + head + yolo.format("3,4,5")
    text += ROUTES.format(CONV) + CONV + head + yolo.format("0,1,2")
    images = np.random.default_rng(seed).random((2, 3, height, width)).astype(np.float32)
    return written(folder, name, text, images, seed)


def written(folder: Path, name: str, text: str, images: npt.NDArray[np.float32],
            seed: int) -> Model:  # fmt: skip
    """Write the files of a network of these layers, with random weights."""
    text = net(text, *images.shape[1:])
    slow = Darknet(text, seed)
    outputs = slow.run(images)
    cfg, weights = folder / f"{name}.cfg", folder / f"{name}.weights"
    cfg.write_text(text)
    weights.write_bytes(header() + slow.flat_numbers().astype("<f4").tobytes())
    return Model(cfg, weights, images, np.concatenate(slow.rows, 1), outputs)
