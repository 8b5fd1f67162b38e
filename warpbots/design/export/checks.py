"""Finds faults of printed parts; each fault states the part, the measured value, the limit and a remedy."""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from warpbots.design.export.collisions import Sweep
from warpbots.design.export.orientation import overhang_share, turned_to_fit
from warpbots.design.export.printer import Printer
from warpbots.design.export.solids import MM, enclosed_volume, manifold_of, pieces
from warpbots.design.export.wall_thickness import Wall, thinnest_wall
from warpbots.scene.field_types import checked

if TYPE_CHECKING:
    import trimesh

__all__ = ["Fault", "PartMeasures", "collision_faults", "measured", "part_faults"]


@dataclasses.dataclass(frozen=True)
class Fault:
    """A fault of a part, or of two parts that collide.

    Attributes:
        kind: Kind of the fault: mesh, volume, pieces, cavity, wall, overhang, bed, collision or undecided.
        part: Name of the part, or the names of two parts that collide.
        value: Measured value.
        limit: Largest allowed value, or smallest allowed value, depending on the kind of the fault.
        unit: Unit of `value` and `limit`.
        what: Description of the fault, as a sentence without a full stop.
        remedy: Action that removes the fault.
        prevents: Whether the fault prevents printing or motion; otherwise the user should only look at it.
    """

    kind: str
    part: str
    value: float
    limit: float
    unit: str
    what: str
    remedy: str
    prevents: bool = True

    def __str__(self) -> str:
        return f"{self.what}; {self.remedy}"


@dataclasses.dataclass(frozen=True)
class PartMeasures:
    """Measurements of a part.

    Attributes:
        size: Width, depth and height of the part as it lies on the bed [mm], shape (3,).
        volume: Volume of the part [mm^3].
        wall: The thinnest wall of the part, or None if the part has no wall.
        overhang: Fraction of the surface of the part that overhangs [1].
    """

    size: tuple[float, float, float]
    volume: float
    wall: Wall | None
    overhang: float


def measured(mesh: "trimesh.Trimesh", printer: Printer) -> PartMeasures:
    """Measure a part as it lies on the bed.

    Args:
        mesh: A closed mesh [mm].
        printer: The printer.

    Raises:
        ValueError: The mesh is open.
    """
    width, depth, height = (float(v) for v in mesh.extents)
    wall = thinnest_wall(mesh, MM * printer.wall)
    overhang = overhang_share(mesh, printer.overhang_angle)
    return PartMeasures((width, depth, height), float(mesh.volume), wall, overhang)


@checked
def part_faults(name: str, mesh: "trimesh.Trimesh", printer: Printer, found: PartMeasures | None = None) -> list[Fault]:
    """The faults of a part as it lies on the bed.

    Args:
        name: Name of the part.
        mesh: Mesh of the part [mm]. An open mesh is a fault; all other checks are then skipped.
        printer: The printer.
        found: Measurements of the part; None if this function must measure the part.
    """
    if broken := _mesh_faults(name, mesh):
        return broken
    found = found or measured(mesh, printer)
    faults = [_wall_fault(name, found.wall, printer), _overhang_fault(name, found.overhang, printer)]
    return [*_piece_faults(name, mesh), *(f for f in faults if f is not None), *_bed_faults(name, mesh, printer)]


def _mesh_faults(name: str, mesh: "trimesh.Trimesh") -> list[Fault]:
    what = f"Part {name!r}:"
    if not mesh.is_watertight:
        edges = np.unique(mesh.edges_unique_inverse, return_counts=True)[1]
        count = int((edges != 2).sum())
        text = f"{what} its mesh is not watertight, {count} edges do not lie between two faces"
        return [Fault("mesh", name, count, 0, "edges", text, "close its holes")]
    if not mesh.is_winding_consistent:
        return [Fault("mesh", name, 1, 0, "", f"{what} some of its faces are turned inside out", "turn them round")]
    if not (volume := enclosed_volume(mesh)) > 0.0:
        text = f"{what} its mesh encloses {volume:.3g} mm^3, which must be positive"
        remedy = "give it a solid with faces counter-clockwise seen from outside"
        return [Fault("volume", name, volume, 0.0, "mm^3", text, remedy)]
    return []


def _piece_faults(name: str, mesh: "trimesh.Trimesh") -> list[Fault]:
    outer, inner = pieces(manifold_of(mesh))
    faults = []
    if len(outer) > 1:
        text = f"Part {name!r}: it falls into {len(outer)} pieces"
        remedy = "let its shapes overlap, or make a body of each piece"
        faults.append(Fault("pieces", name, len(outer), 1, "pieces", text, remedy))
    if inner:
        volume = -sum(p.volume() for p in inner)
        text = f"Part {name!r}: {len(inner)} cavities of {volume:.3g} mm^3 in it have no opening"
        remedy = "fill them, or lead a channel to the surface"
        faults.append(Fault("cavity", name, len(inner), 0, "cavities", text, remedy, prevents=False))
    return faults


def _wall_fault(name: str, wall: Wall | None, printer: Printer) -> Fault | None:
    limit = MM * printer.wall
    if wall is None or wall.thickness >= limit * (1.0 - 1e-6):
        return None
    place = ", ".join(f"{v:.1f}" for v in wall.place)
    text = f"Part {name!r}: a wall at ({place}) mm is {wall.thickness:.2f} mm thick, thinner than {limit:.2f} mm"
    remedy = "thicken it there, move a hole away, or use a finer nozzle (Printer(wall=...))"
    return Fault("wall", name, wall.thickness, limit, "mm", text, remedy)


def _overhang_fault(name: str, share: float, printer: Printer) -> Fault | None:
    if share <= printer.overhang_share:
        return None
    text = (
        f"Part {name!r}: {share:.1%} of its surface hang over by more than {printer.overhang_angle:g} degrees, more "
        f"than {printer.overhang_share:.1%}"
    )
    remedy = "print it with supports, or cut it where it can lie flat"
    return Fault("overhang", name, share, printer.overhang_share, "1", text, remedy, prevents=False)


def _bed_faults(name: str, mesh: "trimesh.Trimesh", printer: Printer) -> list[Fault]:
    bed = MM * np.array(printer.bed)
    _, excess = turned_to_fit(np.asarray(mesh.vertices)[:, :2], bed[:2])
    size = np.array([*(bed[:2] + excess), mesh.extents[2]])
    axis = int((size - bed).argmax())
    if size[axis] <= bed[axis] + 1e-6:
        return []
    turned = "" if axis == 2 else ", however it is turned on the bed"
    text = (
        f"Part {name!r}: it is {size[axis]:.1f} mm {('wide', 'deep', 'high')[axis]}{turned}, and the printer takes "
        f"{bed[axis]:.1f} mm"
    )
    return [Fault("bed", name, float(size[axis]), float(bed[axis]), "mm", text, "make it smaller, or cut it in two")]


def collision_faults(sweep: Sweep) -> list[Fault]:
    """The faults that follow from the result of a sweep of the joints."""
    faults = []
    for c in sweep.collisions:
        what = f"Parts {c.first!r} and {c.second!r}:"
        text = f"{what} they collide from {c.begins} on, and overlap by {c.volume:.3g} mm^3 at {c.at}"
        remedy = "narrow the limits of the joints, or take material away there"
        if not c.moves:
            text = f"{what} they overlap by {c.volume:.3g} mm^3 in every pose"
            remedy = "move them apart, or make one body of them"
        faults.append(Fault("collision", f"{c.first} and {c.second}", c.volume, 0.0, "mm^3", text, remedy))
    for (first, second), left in sweep.undecided.items():
        text = (
            f"Parts {first!r} and {second!r}: no collision was found, but {100.0 * left:.2g} % of the poses of the "
            f"joints between them were not decided"
        )
        remedy = "use more poses, or narrow the limits"
        faults.append(Fault("undecided", f"{first} and {second}", left, 0.0, "1", text, remedy, prevents=False))
    return faults
