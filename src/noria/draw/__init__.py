"""Drawing: what is known about frames on them, many sources on one picture, contact sheets."""

from noria.draw.contact_sheet import contact_sheet
from noria.draw.painter import Painter
from noria.draw.tiler import Tiler

__all__ = ["Painter", "Tiler", "contact_sheet"]
