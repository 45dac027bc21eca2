"""Small images and masks for data sets."""

import numpy as np
from PIL import Image


def image(path, size=(40, 20), color=(10, 200, 30), orientation=None):
    path.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    if orientation:
        exif[0x0112] = orientation
    Image.new("RGB", size, color).save(path, exif=exif)
    return path


def mask(path, values, *, palette=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.asarray(values, np.uint8)
    image = Image.frombytes("P" if palette else "L", values.shape[::-1], values.tobytes())
    if palette:
        image.putpalette([i * 7 % 256 for i in range(768)])
    image.save(path)
    return path
