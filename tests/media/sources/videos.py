"""Short videos of every structure that matters to cutting, made on the spot."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import islice
from pathlib import Path

import av
import numpy as np


def write_video(
    path: Path,
    frames: int = 60,
    *,
    codec: str = "libx264",
    options: dict[str, str] | None = None,
    gop: int = 12,
    times: list[int] | None = None,
    audio: bool = False,
    size: tuple[int, int] = (64, 48),
    seed: int = 0,
    images: Sequence[np.ndarray] | None = None,
    container: dict[str, str] | None = None,
) -> Path:
    """A video in which every frame differs; `times` are presentation times in 1/600 s.

    `images` are RGB, for videos of something; `container` has options of the file's format.
    """
    rng = np.random.default_rng(seed)
    base = rng.integers(0, 255, (size[1], size[0], 3), np.uint8)
    if images is not None:
        frames, size = len(images), images[0].shape[1::-1]
    with av.open(str(path), "w", container_options=container or {}) as out:
        stream = out.add_stream(codec, rate=25)
        stream.width, stream.height = size
        stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        stream.gop_size = gop
        stream.options = dict(options or {})
        if times is not None:
            stream.codec_context.time_base = Fraction(1, 600)
        sound = out.add_stream("aac", rate=16000) if audio else None
        for number in range(frames):
            if images is None:
                image = np.roll(base, 2 * number, axis=1)
                image[:, : 1 + number % size[0]] //= 2
            else:
                image = images[number]
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            if times is not None:
                frame.pts, frame.time_base = times[number], Fraction(1, 600)
            else:
                frame.pts, frame.time_base = number, Fraction(1, 25)
            out.mux(stream.encode(frame))
            if sound is not None:
                silence = av.AudioFrame.from_ndarray(
                    np.zeros((1, 640), np.float32), format="fltp", layout="mono"
                )
                silence.sample_rate = 16000
                silence.pts = 640 * number
                out.mux(sound.encode(silence))
        out.mux(stream.encode(None))
        if sound is not None:
            out.mux(sound.encode(None))
    return path


def remuxed(
    video: Path,
    target: Path,
    *,
    shift_s: float = 0.0,
    packets: int | None = None,
    container: dict[str, str] | None = None,
) -> Path:
    """The same packets of video, or the first `packets`, in another container, all times moved."""
    with (
        av.open(str(video)) as source,
        av.open(str(target), "w", container_options=container or {}) as out,
    ):
        stream = out.add_stream_from_template(source.streams.video[0])
        for packet in islice(source.demux(video=0), packets):
            if packet.size:
                shift = round(shift_s / packet.time_base)
                packet.pts, packet.dts = packet.pts + shift, packet.dts + shift
                packet.stream = stream
                out.mux(packet)
    return target


X264 = {"preset": "ultrafast", "x264-params": "scenecut=0"}
B_FRAMES = {"preset": "medium", "x264-params": "bframes=3:b-pyramid=normal:scenecut=0"}
OPEN_GOP = {"preset": "medium", "x264-params": "bframes=3:open-gop=1:scenecut=0"}
INTRA_REFRESH = {"preset": "ultrafast", "x264-params": "intra-refresh=1:keyint=12"}
UNEVEN = [
    round(600 * (i / 25 + (0.013 if i % 3 else 0) + (0.5 if i > 30 else 0))) for i in range(60)
]

KINDS: dict[str, dict] = {
    "plain.mp4": {"options": X264},
    "b_frames.mp4": {"options": B_FRAMES},
    "b_frames.mkv": {"options": B_FRAMES},
    "b_frames.ts": {"options": B_FRAMES},
    "b_frames.avi": {"options": B_FRAMES},
    "b_frames.mov": {"options": B_FRAMES, "audio": True},
    "open_gop.mp4": {"options": OPEN_GOP},
    "open_gop.mkv": {"options": OPEN_GOP},
    "open_gop.ts": {"options": OPEN_GOP},
    "intra_refresh.mp4": {"options": INTRA_REFRESH},
    "variable.mp4": {"options": B_FRAMES, "times": UNEVEN},
    "variable.mkv": {"options": X264, "times": UNEVEN},
    "sound.mp4": {"options": B_FRAMES, "audio": True},
    "sound.mkv": {"options": X264, "audio": True},
    "mpeg4.avi": {"codec": "mpeg4"},
    "mpeg4_b.mp4": {"codec": "mpeg4", "options": {"bf": "2"}},
    "mpeg2.mpg": {"codec": "mpeg2video", "options": {"bf": "2"}, "size": (352, 288)},
    "mpeg2.ts": {"codec": "mpeg2video", "options": {"bf": "2"}, "size": (352, 288)},
    "hevc.mp4": {
        "codec": "libx265",
        "options": {"preset": "ultrafast", "x265-params": "log-level=0"},
    },
    "vp9.webm": {"codec": "libvpx-vp9", "options": {"cpu-used": "8", "deadline": "realtime"}},
    "vp8.webm": {"codec": "libvpx", "options": {"cpu-used": "8", "deadline": "realtime"}},
    "mjpeg.avi": {"codec": "mjpeg"},
    "one_key.mp4": {"options": X264, "gop": 1000},
}


def turned(path: Path) -> Path:
    """The MP4 file asks players to turn it by a quarter, as a phone's do."""
    data = bytearray(path.read_bytes())
    upright = bytes.fromhex("00010000" + "00" * 12 + "00010000" + "00" * 12 + "40000000")
    quarter = bytes.fromhex(
        "00000000" + "00010000" + "00000000" + "ffff0000" + "00" * 16 + "40000000"
    )
    at = data.index(upright, data.index(b"tkhd"))
    data[at : at + len(upright)] = quarter
    path.write_bytes(data)
    return path
