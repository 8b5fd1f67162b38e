"""Printable parts of robots: makes solids in mm with holes for axles and tendons, checks them, and writes files."""

from typing import TYPE_CHECKING

from warpbots.design.export.checks import Fault, PartMeasures, part_faults
from warpbots.design.export.collisions import Collision, Sweep, sweep
from warpbots.design.export.files import PrintError, write
from warpbots.design.export.holes import AxleHole, Drilled, TendonChannel
from warpbots.design.export.orientation import overhang_share
from warpbots.design.export.parts import PrintedPart, printed_parts
from warpbots.design.export.printer import Printer
from warpbots.design.export.report import PrintReport, check
from warpbots.design.export.wall_thickness import Wall, thinnest_wall
from warpbots.renamed import refuse_former

__all__ = [
    "AxleHole",
    "Collision",
    "Drilled",
    "Fault",
    "PartMeasures",
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

if not TYPE_CHECKING:
    __getattr__ = refuse_former(__name__)
