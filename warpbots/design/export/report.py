"""The report on printed parts: measurements, faults, and other hardware that the robot needs."""

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from warpbots.design.export.checks import Fault, PartMeasures, collision_faults, measured, part_faults
from warpbots.design.export.collisions import Sweep, sweep
from warpbots.design.export.holes import AxleHole, Drilled, TendonChannel
from warpbots.design.export.parts import PrintedPart, printed_parts
from warpbots.design.export.printer import Printer
from warpbots.scene import Scene, SceneError
from warpbots.scene.field_types import checked

__all__ = ["PrintReport", "check"]

_WORDS = """\
- *Thinnest wall*: the shortest way through the part, straight in from its surface to a side that faces the other way. \
"none" means that nothing of it is a wall.
- *Overhang*: the share of the surface that faces down by more than {angle:g} degrees from the vertical, off the bed. \
It needs supports.
- *Mass*: of solid plastic. A part with less infill is lighter.
- Places are those of the file: x and y along the bed, z up, from the corner of the part's box.
"""


@dataclasses.dataclass(frozen=True, eq=False)
class PrintReport:
    """Printed parts with their measurements and faults.

    Attributes:
        name: Name of the robot.
        parts: The parts.
        measures: Measurements of each part.
        masses: Mass of each part [g].
        faults: All faults.
        sweep: Result of moving the joints through their ranges.
        printer: The printer.
        omitted: Names of the bodies that are not printed: soft bodies, and bodies without a shape.
    """

    name: str
    parts: tuple[PrintedPart, ...]
    measures: tuple[PartMeasures, ...]
    masses: tuple[float, ...]
    faults: tuple[Fault, ...]
    sweep: Sweep
    printer: Printer
    omitted: tuple[str, ...] = ()

    @property
    def printable(self) -> bool:
        """Whether the parts can be printed and moved: no fault prevents printing or motion."""
        return not any(fault.prevents for fault in self.faults)

    def __str__(self) -> str:
        return self.text()

    def text(self, files: Sequence[str] = ()) -> str:
        """The report as Markdown.

        Args:
            files: Names of the files of the parts; empty before the files are written.
        """
        count, total = len(self.parts), sum(self.masses)
        sections = [
            f"# Printed parts of {self.name}",
            f"{count} part{'s' * (count != 1)}, {total:.1f} g together. {self._verdict()}",
            *self._fault_sections(),
            "## Parts",
            self._part_table(files),
            *([f"Not printed, as they are soft or have no shape: {', '.join(self.omitted)}."] if self.omitted else []),
            *self._axle_sections(),
            *self._tendon_sections(),
            "## Motion",
            self._motion(),
            "## Words",
            _WORDS.format(angle=self.printer.overhang_angle).strip(),
        ]
        return "\n\n".join(sections) + "\n"

    def _verdict(self) -> str:
        hard, soft = (sum(f.prevents == kind for f in self.faults) for kind in (True, False))
        if hard:
            return f"**Do not print it yet: {hard} fault{'s' * (hard != 1)} below.**"
        return "It can be printed" + (f", with {soft} remark{'s' * (soft != 1)} below." if soft else ".")

    def _fault_sections(self) -> list[str]:
        found = []
        for title, prevents in (("Faults", True), ("Remarks", False)):
            faults = [f"- {fault}." for fault in self.faults if fault.prevents == prevents]
            found += [f"## {title}", "\n".join(faults)] if faults else []
        return found

    def _part_table(self, files: Sequence[str]) -> str:
        rows = []
        for part, found, mass in zip(self.parts, self.measures, self.masses, strict=True):
            wall = "none" if found.wall is None else f"{found.wall.thickness:.2f}"
            size = " × ".join(f"{v:.1f}" for v in found.size)
            rows.append([part.name, size, f"{found.volume / 1000.0:.2f}", f"{mass:.1f}", wall, f"{found.overhang:.1%}"])
        head = ["part", "size [mm]", "volume [cm³]", "mass [g]", "thinnest wall [mm]", "overhang"]
        if files:
            head, rows = [*head, "file"], [[*row, file] for row, file in zip(rows, files, strict=True)]
        return _table(head, rows)

    def _axle_sections(self) -> list[str]:
        holes: dict[int, list[Drilled]] = {}  # a joint may have several holes
        for part in self.parts:
            for drilled in part.drilled:
                if isinstance(drilled.hole, AxleHole):
                    holes.setdefault(id(drilled.hole), []).append(drilled)
        if not holes:
            return []
        rows, needed = [], Counter[str]()
        for bores in holes.values():
            hole = bores[0].hole
            assert isinstance(hole, AxleHole)
            length = max(b.end for b in bores) - min(b.start for b in bores)
            widths = ", ".join(f"{b.diameter:.2f} in {b.part}" for b in bores)
            rows.append([hole.joint, hole.fastener, f"{1000.0 * hole.diameter:.2f}", f"{length:.1f}", widths])
            needed[f"{hole.fastener}, {1000.0 * hole.diameter:.2f} mm × {length:.1f} mm"] += 1
        head = ["joint", "kind", "diameter [mm]", "length [mm]", "holes [mm]"]
        list_ = "\n".join(f"- {count} × {what}" for what, count in needed.items())
        return ["## Axles", _table(head, rows), f"You need:\n\n{list_}"]

    def _tendon_sections(self) -> list[str]:
        rows = [
            [d.hole.name, d.part, f"{d.diameter:.2f}", f"{d.end:.1f}"]
            for part in self.parts
            for d in part.drilled
            if isinstance(d.hole, TendonChannel)
        ]
        head = ["tendon", "part", "diameter of the channel [mm]", "length in the part [mm]"]
        return ["## Tendons", _table(head, rows)] if rows else []

    def _motion(self) -> str:
        pairs = len(self.parts) * (len(self.parts) - 1) // 2
        if not pairs:
            return "There is one part, which meets no other."
        hits = len({(c.first, c.second) for c in self.sweep.collisions})
        verdict = f"{hits} of {pairs} pairs of parts collide" if hits else f"None of {pairs} pairs of parts collide"
        said = [f"All joints were moved through their ranges: {verdict}.", *self.sweep.notes]
        return "\n".join(f"- {line}" for line in said)


@checked
def check(
    scene: Scene,
    holes: Sequence[AxleHole | TendonChannel] = (),
    printer: Printer | None = None,
    density: float | None = None,
    ranges: Mapping[str, tuple[Any, Any]] | None = None,
    up: Mapping[str, Sequence[float]] | None = None,
    tolerance: float = 5e-5,
    poses: int = 400,
) -> PrintReport:
    """Make the printed parts of a robot, measure the parts, and find their faults.

    Args:
        scene: The scene.
        holes: Holes for axles and tendons.
        printer: The printer; None for `Printer` with its defaults.
        density: Density of the plastic [kg/m^3]; None for the densities of the bodies.
        ranges: Lower and upper ends of the coordinates of a joint [rad or m], by the name of the joint; they replace
            the limits of the joint.
        up: Upward directions in the frames of bodies, by name of the body, for bodies that must be printed in a given
            orientation.
        tolerance: Depth from which an overlap of two parts counts as a collision [m].
        poses: Largest number of poses in which two parts with several joint coordinates between them are compared.

    Raises:
        SceneError: A shape is not a solid, a hole misses its part or belongs to no part, or there are no parts.
        ImportError: manifold3d is not installed.
    """
    for name, value in (("density", density), ("tolerance", tolerance), ("poses", poses)):
        if value is not None and not value > 0:
            raise SceneError(f"check: {name} must be positive, got {value:g}")
    printer = printer or Printer()
    parts = printed_parts(scene, holes, printer, up)
    measures = tuple(measured(part.mesh, printer) for part in parts)
    masses = tuple(1e-6 * found.volume * (density or part.density) for part, found in zip(parts, measures, strict=True))
    moved = sweep(scene, parts, ranges, 1000.0 * tolerance, poses)
    faults = [
        fault
        for part, found in zip(parts, measures, strict=True)
        for fault in part_faults(part.name, part.mesh, printer, found)
    ]
    printed = {part.name for part in parts}
    omitted = tuple(body.name for body in scene.bodies if body.name not in printed)
    faults += collision_faults(moved)
    return PrintReport(scene.name, parts, measures, masses, tuple(faults), moved, printer, omitted)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
