"""UFF models, as TensorRT's converter made them from TensorFlow graphs. No tensorflow needed."""

from __future__ import annotations

from noria.network.uff.importer import network_from_uff, network_from_uff_bytes

__all__ = ["network_from_uff", "network_from_uff_bytes"]
