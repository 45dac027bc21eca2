"""Stand-ins for libraries of NVIDIA's SDK that a user's library is linked against."""

from noria.custom.stand_ins.demand import Demand, demands, is_nvidia, undefined_names
from noria.custom.stand_ins.opened import drain_calls, supported, take_place

__all__ = [
    "Demand",
    "demands",
    "drain_calls",
    "is_nvidia",
    "supported",
    "take_place",
    "undefined_names",
]
