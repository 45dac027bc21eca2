"""Write tiny.weights: random numbers for tiny.cfg, in Darknet's order."""

import re
import struct
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
rng = np.random.default_rng(1)
channels, made, parts = [], 3, []
for section in re.split(r"\n(?=\[)", (HERE / "tiny.cfg").read_text()):
    kind = section[1 : section.index("]")]
    value = dict(re.findall(r"^(\w+)=(.*)$", section, re.M))
    if kind == "net":
        continue
    if kind == "convolutional":
        maps, size = int(value["filters"]), int(value["size"])
        parts.append(rng.normal(0, 0.3, maps))  # biases
        if "batch_normalize" in value:
            parts += [np.ones(maps), np.zeros(maps), np.ones(maps)]  # scales, means, variances
        reach = made * size * size
        parts.append(rng.normal(0, (2 / reach) ** 0.5, maps * reach))
        made = maps
    elif kind == "route":
        made = sum(channels[int(i)] for i in value["layers"].split(","))
    channels.append(made)
numbers = np.concatenate(parts).astype("<f4")
(HERE / "tiny.weights").write_bytes(struct.pack("<iiiq", 0, 2, 5, 0) + numbers.tobytes())
print(len(numbers), "numbers")
