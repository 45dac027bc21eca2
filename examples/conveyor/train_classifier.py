"""Train the code reader and write classifier.onnx.

It looks at the crop of one parcel and classifies each of the four characters on its label: four
outputs of 32 classes, which to nvinfer are four attributes of one object. A small trunk makes
features; for each character an attention map says where to look, and one shared layer says what
is there. The maps are taught with the true character boxes, then find them by themselves.

    pip install '.[train]'
    python examples/conveyor/train_classifier.py          # a GPU if there is one, else the CPU
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import torch
from conveyor_scene import ALPHABET, CODE_LENGTH
from conveyor_training.arguments import arguments
from conveyor_training.blocks import Block, Conv, Graph, Linear, Separable, upsample
from conveyor_training.loop import fit, pick_device
from conveyor_training.videos import TRAIN_SEEDS, VALIDATION_SEEDS, Shot, resample, shoot
from torch import Tensor, nn
from torch.nn import functional as F

IN_WIDTH, IN_HEIGHT, CELL = 128, 96, 4
ROWS, COLUMNS = IN_HEIGHT // CELL, IN_WIDTH // CELL
WIDE = 80  # features per place


class Reader(nn.Module):
    """(N, 1, 96, 128) grey in 0..1 -> class logits (N, 4, 32), attention logits (N, 4, 24*32)."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = Block(Conv(1, 16, 3, 2), Separable(16, 24))
        self.to4 = Block(Separable(24, 48, 2), Separable(48, 48), Separable(48, 48))
        self.to8 = Block(Separable(48, 72, 2, 5), Separable(72, 72, 1, 5))
        self.to16 = Block(Separable(72, 96, 2, 5), Separable(96, 96, 1, 5))
        self.up8, self.up4 = Conv(96, 72, 1), Conv(72, 48, 1)
        self.merge8, self.merge4 = Separable(72, 72, 1, 5), Separable(48, 48, 1, 5)
        self.look = Linear(48, CODE_LENGTH)
        self.features = Block(Separable(48, WIDE, 1, 5), Separable(WIDE, WIDE, 1, 5))
        self.hidden = nn.Linear(WIDE, 96)
        self.answer = nn.Linear(96, len(ALPHABET))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        c4 = self.to4(self.stem(x))
        c8 = self.to8(c4)
        p8 = self.merge8(c8 + upsample(self.up8(self.to16(c8))))
        p4 = self.merge4(c4 + upsample(self.up4(p8)))
        look = self.look(p4).flatten(2)
        glimpse = look.softmax(-1) @ self.features(p4).flatten(2).transpose(1, 2)
        return self.answer(torch.relu(self.hidden(glimpse))), look

    def save(self, path: Path) -> None:
        """Write the ONNX file: outputs `character1`.. with probabilities (N, 32)."""
        g = Graph("conveyor_reader")
        c4 = self.to4.write(g, self.stem.write(g, "parcel", "stem"), "to4")
        c8 = self.to8.write(g, c4, "to8")
        up = g.upsample(self.up8.write(g, self.to16.write(g, c8, "to16"), "up8"), "up8.twice")
        p8 = self.merge8.write(g, g.add("Add", [c8, up], "sum8"), "merge8")
        up = g.upsample(self.up4.write(g, p8, "up4"), "up4.twice")
        p4 = self.merge4.write(g, g.add("Add", [c4, up], "sum4"), "merge4")
        maps = g.weight("maps", np.array([0, CODE_LENGTH, ROWS * COLUMNS], np.int64))
        places = g.weight("places", np.array([0, WIDE, ROWS * COLUMNS], np.int64))
        look = g.add("Reshape", [self.look.write(g, p4, "look"), maps], "look.flat")
        look = g.add("Softmax", [look], "attention", axis=-1)
        seen = self.features.write(g, p4, "features")
        seen = g.add("Reshape", [seen, places], "features.flat")
        seen = g.add("Transpose", [seen], "features.places", perm=[0, 2, 1])
        x = g.add("MatMul", [look, seen], "glimpse")
        for name, layer in (("hidden", self.hidden), ("answer", self.answer)):
            w = g.weight(f"{name}.weight", layer.weight.detach().cpu().numpy().T)
            b = g.weight(f"{name}.bias", layer.bias.detach().cpu().numpy())
            x = g.add("Add", [g.add("MatMul", [x, w], f"{name}.product"), b], f"{name}.sum")
            x = g.add("Relu", [x], name) if name == "hidden" else x
        x = g.add("Softmax", [x], "probabilities", axis=-1)
        names = [f"character{i + 1}" for i in range(CODE_LENGTH)]
        for i, name in enumerate(names):
            at = g.weight(f"{name}.index", np.array(i, np.int64))
            g.add("Gather", [x, at], name, axis=1)
        g.save(
            path,
            {"parcel": (1, IN_HEIGHT, IN_WIDTH)},
            {name: (len(ALPHABET),) for name in names},
            f"Code on a parcel: grey / 255 in, for each place the probabilities of {ALPHABET}. "
            "Apache-2.0.",
        )


def take(shot: Shot) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each parcel worth reading its crop (96, 128) and (4, 3): class or -1, x, y in cells."""
    luma = (shot.image @ np.array([0.299, 0.587, 0.114], np.float32) + 0.5).astype(np.uint8)
    crops = []
    for truth in shot.truths:
        if max(truth.character_visible) < 0.999:
            continue
        left, top, width, height = truth.box
        shift = shot.rng.normal(0, 0.018, 4) * (width, height, width, height)
        left, top = max(left + shift[0], 0), max(top + shift[1], 0)
        width = min(width + shift[2], luma.shape[1] - left)
        height = min(height + shift[3], luma.shape[0] - top)
        box = np.ceil(left / 2) * 2, np.ceil(top / 2) * 2, width // 2 * 2, height // 2 * 2
        rows = np.full((CODE_LENGTH, 3), -1, np.float32)
        for row, code, (x, y, w, h), share in zip(
            rows, truth.code, truth.characters, truth.character_visible, strict=True
        ):
            row[0] = ALPHABET.index(code) if share > 0.999 else -1
            row[1] = (x + w / 2 - box[0]) / box[2] * COLUMNS - 0.5
            row[2] = (y + h / 2 - box[1]) / box[3] * ROWS - 0.5
        crops.append((resample(luma, box, IN_WIDTH, IN_HEIGHT), rows))
    return crops


def loss(network: nn.Module, data: list[Tensor]) -> Tensor:
    """Cross entropy of characters in sight; those out of sight are taught to be unsure."""
    images, rows = data
    x = images[:, None].float() / 255
    gain = torch.empty(len(x), 1, 1, 1, device=x.device).uniform_(0.7, 1.3)
    x = x * gain + torch.empty_like(gain).uniform_(-0.12, 0.12)
    x = (x + torch.randn_like(x) * torch.empty_like(gain).uniform_(0, 0.03)).clamp(0, 1)
    logits, look = network(x)
    wanted, seen = rows[..., 0].long(), rows[..., 0] >= 0
    count = seen.sum().clamp(min=1)
    right = F.cross_entropy(logits.flatten(0, 1), wanted.clamp(min=0).flatten(), reduction="none")
    unsure = -logits.log_softmax(-1).mean(-1).flatten()
    reading = (right * seen.flatten()).sum() + 0.3 * (unsure * ~seen.flatten()).sum()
    y = torch.arange(ROWS, device=x.device)[:, None]
    column = torch.arange(COLUMNS, device=x.device)
    away = (column - rows[..., 1, None, None]) ** 2 + (y - rows[..., 2, None, None]) ** 2
    there = (-away / (2 * 0.9**2)).flatten(2)
    pointing = F.kl_div(
        look.log_softmax(-1), there.log_softmax(-1), log_target=True, reduction="none"
    )
    return (reading + 0.3 * (pointing.sum(-1) * seen).sum()) / count


def accuracy(network: nn.Module, images: Tensor, rows: Tensor) -> tuple[float, float]:
    """Share of visible characters read right, and of fully visible codes."""
    right, seen = [], []
    with torch.no_grad():
        for at in range(0, len(images), 512):
            logits, _ = network(images[at : at + 512, None].float() / 255)
            wanted = rows[at : at + 512, :, 0]
            right.append(logits.argmax(-1) == wanted)
            seen.append(wanted >= 0)
    hit, there = torch.cat(right), torch.cat(seen)
    whole = there.all(1)
    return float(hit[there].float().mean()), float(hit[whole].all(1).float().mean())


def main() -> None:
    args = arguments(__doc__, Path(__file__).parent / "classifier.onnx", batch=128)
    start = time.monotonic()
    device = pick_device(args.device)

    def crops(seeds: range, per_seed: int) -> list[Tensor]:
        videos = shoot(take, seeds, per_seed, args.workers, degrade=True)
        parcels = [parcel for video in videos for parcel in video]
        columns = zip(*parcels, strict=True)
        tensors = [torch.from_numpy(np.stack(column)) for column in columns]
        return [t.to(device) for t in tensors] if device.type == "cuda" else tensors

    data = crops(TRAIN_SEEDS[: args.seeds], args.per_seed)
    print(f"{len(data[0])} crops in {time.monotonic() - start:.0f} s", flush=True)
    network = Reader().to(device)
    trained = fit(network, data, loss, steps=args.steps, batch=args.batch, rate=args.rate)
    trained.save(args.out)
    size = args.out.stat().st_size
    print(f"{args.out}: {size:,} bytes, {time.monotonic() - start:.0f} s in all", flush=True)
    one, four = accuracy(trained, *crops(VALIDATION_SEEDS[:60], 8))
    print(f"validation: {one:.4f} of characters, {four:.4f} of whole codes", flush=True)


if __name__ == "__main__":
    main()
