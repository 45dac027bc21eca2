"""Drawing: objects on frames, contact sheets."""

from noria.draw.contact_sheet import contact_sheet
from noria.draw.painter import Painter

__all__ = ["Painter", "contact_sheet"]
