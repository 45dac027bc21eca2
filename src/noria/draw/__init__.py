"""Drawing: objects on frames, contact sheets."""

from noria.draw.painter import Painter

__all__ = ["Painter"]
