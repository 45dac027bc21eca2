"""`Coding`: the codec of a video, and its settings."""

from __future__ import annotations

from collections.abc import Mapping

from headrace._core.plain_record import PlainRecord

ENCODERS = {
    "h264": ("libx264", "libopenh264", "h264"),
    "h265": ("libx265",),
    "mpeg4": ("mpeg4",),
}
"""Encoders of FFmpeg for each codec, the best first."""
CODEC_NAMES = {"h264": "H.264", "h265": "H.265", "mpeg4": "MPEG-4"}


class Coding(PlainRecord, frozen=True):
    """How video is encoded; None leaves a value to the sink.

    Attributes:
        codec: `h264`, `h265` or `mpeg4`.
        bitrate: bits per second, instead of a constant quality.
        gop: frames from one key frame to the next.
        profile: of the codec, as `baseline`, `main` and `high` of H.264.
        preset: speed of the encoder, `ultrafast` to `placebo`.
    """

    codec: str = "h264"
    bitrate: int | None = None
    gop: int | None = None
    profile: str | None = None
    preset: str | None = None

    def options(self, usual: Mapping[str, str]) -> dict[str, str]:
        """Change the usual options of an encoder by these settings."""
        options = dict(usual)
        if self.bitrate is not None:
            options.pop("crf", None)
        if self.codec == "h265":
            options["x265-params"] = "log-level=error"
        for name in ("profile", "preset"):
            if getattr(self, name) is not None:
                options[name] = getattr(self, name)
        return options
