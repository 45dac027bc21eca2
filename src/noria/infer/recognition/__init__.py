"""Recognition of a bare ONNX file: its head, its pictures, its config."""

from __future__ import annotations

from noria.infer.recognition.recognise import Recognition, load_bare_model, recognise

__all__ = ["Recognition", "load_bare_model", "recognise"]
