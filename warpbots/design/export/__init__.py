"""Robots as parts that print: solids in mm with holes for axles and tendons, checks of them, and their files."""

from warpbots.design.export.checks import Fault, Measures, part_faults
from warpbots.design.export.collisions import Collision, Sweep, sweep
from warpbots.design.export.files import PrintError, write
from warpbots.design.export.holes import AxleHole, Drilled, TendonChannel
from warpbots.design.export.orientation import overhang_share
from warpbots.design.export.parts import PrintedPart, printed_parts
from warpbots.design.export.printer import Printer
from warpbots.design.export.report import PrintReport, check
from warpbots.design.export.wall_thickness import Wall, thinnest_wall

__all__ = [
    "AxleHole",
    "Collision",
    "Drilled",
    "Fault",
    "Measures",
    "PrintError",
    "PrintReport",
    "PrintedPart",
    "Printer",
    "Sweep",
    "TendonChannel",
    "Wall",
    "check",
    "overhang_share",
    "part_faults",
    "printed_parts",
    "sweep",
    "thinnest_wall",
    "write",
]
