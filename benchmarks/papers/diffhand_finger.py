"""The finger of DiffHand (Xu et al. 2021) without cages: boxes of its dimensions, whose lengths are parameters.

Palm, knuckle, three pairs of joint and phalanx, then a tip; lengths, widths and axes are those of its components. The
design scales the lengths of the three phalanges and the height of the end of the tip. Joint frames, masses, moments of
inertia, contact points and their areas follow.
"""

import dataclasses
import math

import numpy as np
import torch

import warpbots as wb

__all__ = ["CM", "HINGE", "Design", "flip_scene", "parameters", "reach_scene", "tip_of"]

CM = 0.01
"""Centimetre [m]: the unit of the paper's losses."""

PALM, KNUCKLE, KNUCKLE_AXIS, JOINT, JOINT_AXIS, PHALANX, TIP = (
    CM * length for length in (0.7, 2.75, 1.15, 2.06, 1.08, 2.34, 2.21)
)
"""Lengths of the components, and how far along them their axes are [m]."""
WIDTH, DENSITY = 2.6 * CM, 1000.0
AREA = 1e-4
"""Area for which a contact point stands [m^2], so that a law of k Pa/m is a spring of k * AREA N/m a point."""

HINGE = CM * np.array([15.0, 0.0, -10.0])
"""About which the box of Flip Box turns [m]."""

LINKS = ("knuckle", "proximal", "middle", "distal")
"""The links that move; the palm is their base. Lengths of the last three are designed."""
AXES = {"knuckle": (0.0, 0.0, 1.0), "proximal": (0.0, 1.0, 0.0), "middle": (0.0, 1.0, 0.0), "distal": (0.0, 1.0, 0.0)}


@dataclasses.dataclass(frozen=True)
class Design:
    """Scale factors, all 1 for the finger of the paper.

    Attributes:
        phalanges: Lengths of the three phalanges, shape (3,).
        tip: Height of the end of the tip, shape ().
    """

    phalanges: torch.Tensor
    tip: torch.Tensor

    @classmethod
    def of(cls, values: torch.Tensor) -> "Design":
        """From a vector of three lengths and, if it has four entries, the height of the tip."""
        tip = values[3] if len(values) > 3 else torch.ones((), dtype=values.dtype)
        return cls(values[:3], tip)


PAPER = Design(torch.ones(3, dtype=torch.float64), torch.ones((), dtype=torch.float64))
"""The finger of the paper."""


def lengths(phalanges: torch.Tensor) -> torch.Tensor:
    """Lengths of the four links [m], from axis to axis, the last to the end of the tip."""
    after = JOINT - JOINT_AXIS
    knuckle = torch.tensor([KNUCKLE - KNUCKLE_AXIS + JOINT_AXIS], dtype=phalanges.dtype)
    ends = torch.tensor([JOINT_AXIS, JOINT_AXIS, TIP], dtype=phalanges.dtype)
    return torch.cat([knuckle, after + PHALANX * phalanges + ends])


def finger_bodies(points: int = 0, design: Design = PAPER) -> list[wb.RigidBody]:
    """The palm and the four links along x, at zero, with about this number of contact points on each of the last three.

    The points are those of the paper's finger; `parameters` moves them with the design.
    """
    length, own = lengths(design.phalanges).tolist(), lengths(PAPER.phalanges).tolist()
    half, x = WIDTH / 2.0, PALM + KNUCKLE_AXIS
    bodies = [wb.RigidBody("palm", wb.shapes.Box((0, -0.8 * CM, -1.62 * CM), (x, 0.8 * CM, 1.62 * CM)), DENSITY)]
    for name, long, before in zip(LINKS, length, own, strict=True):
        shape = wb.shapes.Box((0.0, -half, -half), (long, half, half))
        if name == "distal" and float(design.tip) != 1.0:
            shape = wb.shapes.Union(
                (wb.shapes.Box((0.0, -half, -half), (long - TIP, half, half)), _wedge(long, design))
            )
        cloud = wb.Cloud(_surface(before, points), AREA) if points and name != "knuckle" else 0
        surface = "finger" if cloud else None
        bodies.append(wb.RigidBody(name, shape, DENSITY, position=(x, 0, 0), points=cloud, surface=surface))
        x += long
    return bodies


def _wedge(long: float, design: Design) -> wb.shapes.TriangleMesh:
    """The tip of the distal link, which is higher or lower at its end."""
    import trimesh

    half, end = WIDTH / 2.0, WIDTH / 2.0 * float(design.tip)
    corners = [(x, y, s * z) for x, z in ((long - TIP, half), (long, end)) for y in (-half, half) for s in (-1, 1)]
    hull = trimesh.convex.convex_hull(np.array(corners))
    return wb.shapes.TriangleMesh(hull.vertices, hull.faces)


def finger_joints(damping: float, design: Design = PAPER) -> list[wb.Joint]:
    """The hinges of the four links."""
    length = [PALM + KNUCKLE_AXIS, *lengths(design.phalanges).tolist()]
    parents = ("palm", *LINKS)
    return [
        wb.Joint(name, "revolute", parent, name, position=(x, 0, 0), axis=AXES[name], damping=damping)
        for name, parent, x in zip(LINKS, parents, np.cumsum(length), strict=False)
    ]


def reach_scene(design: Design = PAPER) -> wb.Scene:
    """Finger Reach: the finger on a wall, without gravity."""
    links = finger_joints(0.01, design)
    return wb.Scene(
        finger_bodies(0, design), [wb.Torque(j.name, j.name, 0.06) for j in links], gravity=(0.0, 0.0, 0.0),
        joints=[wb.Joint("base", "fixed", None, "palm"), *links], name="finger_reach",
    )  # fmt: skip


def flip_scene(design: Design = PAPER) -> wb.Scene:
    """Flip Box: the finger on a base that moves in the x-z plane, and a heavy box on a hinge on the floor."""
    links, side = finger_joints(0.01, design), 6.0 * CM
    corners = np.array([(x, y, z) for x in (0.0, side) for y in (-side / 2, side / 2) for z in (0.0, side)])
    shape = wb.shapes.Box((0.0, -side / 2, 0.0), (side, side / 2, side))
    box = wb.RigidBody("box", shape, DENSITY, position=tuple(HINGE), points=wb.Cloud(corners, AREA), surface="box")
    turned = ((1.0, 0.0, 0.0), (0.0, 0.0, -1.0), (0.0, 1.0, 0.0))
    base = wb.Joint("base", "planar", None, "palm", rotation=turned, damping=10.0)
    lid = wb.Joint("lid", "revolute", None, "box", position=tuple(HINGE), axis=(0.0, -1.0, 0.0), damping=1e-3)
    motors = [wb.Torque("base_x", "base", 6.0, 0), wb.Torque("base_z", "base", 6.0, 1)]
    motors += [wb.Torque(j.name, j.name, 0.015) for j in links]
    laws = [
        wb.Contact("finger", "box", 5e6, 3e5, 1.5, 2.5e4),
        wb.Contact("finger", "floor", 1e7, 3e4, 1.5, 5e4),
        wb.Contact("box", "floor", 5e7, 3e5, 0.8, 5e4),
    ]
    return wb.Scene(
        [*finger_bodies(120, design), box], motors, [wb.floor(-10.0 * CM)], gravity=(0.0, 0.0, -9.8),
        joints=[base, *links, lid], contacts=laws, name="flip_box",
    )  # fmt: skip


def _surface(long: float, points: int) -> np.ndarray:
    """A grid on the long faces of a link and on its end, shape (n, 3); edges included."""
    across = max(2, round(math.sqrt(points * WIDTH / long / 4.0)) + 1)
    along = max(2, round(points / (4 * (across - 1))))
    s = np.linspace(-WIDTH / 2, WIDTH / 2, across)
    ring = np.array([(a, b) for a in s for b in s if max(abs(a), abs(b)) == s[-1]])
    end = np.array([(a, b) for a in s[1:-1] for b in s[1:-1]]).reshape(-1, 2)
    sides = [(x, *ab) for x in np.linspace(long / along, long, along) for ab in ring]
    return np.array([*sides, *((long, *ab) for ab in end)])


def _box(length: torch.Tensor, width: torch.Tensor, height: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mass and moments about the centre of a box."""
    mass = DENSITY * length * width * height
    a, b, c = length**2, width**2, height**2
    return mass, mass / 12.0 * torch.diag(torch.stack([b + c, a + c, a + b]))


def _joined(parts: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]) -> tuple[torch.Tensor, ...]:
    """Mass, centre of mass along x and moments about it of boxes in a row, each (mass, position, moments)."""
    mass = sum(m for m, _, _ in parts)
    center = sum(m * x for m, x, _ in parts) / mass
    across = torch.diag(torch.tensor([0.0, 1.0, 1.0], dtype=mass.dtype))
    return mass, center, sum(J + m * (x - center) ** 2 * across for m, x, J in parts)


def tip_of(design: Design) -> torch.Tensor:
    """The end effector in the frame of the distal link [m], shape (3,)."""
    long = lengths(design.phalanges)[3]
    return torch.stack([long, torch.zeros_like(long), -WIDTH / 2.0 * design.tip])


def parameters(sim: wb.Simulation, design: Design) -> dict[str, torch.Tensor]:
    """The parameters of the model for a design, each with the leading axis of one world."""
    robot, length = sim.model.robot, lengths(design.phalanges)
    names = ("joint_position", "mass", "center_of_mass", "inertia", "contact_point", "contact_area")
    values = {name: list(sim.parameter(name)[0]) for name in names if name in sim.parameters()}
    width = torch.tensor(WIDTH, dtype=length.dtype)
    for i, name in enumerate(LINKS[1:], start=1):
        k = robot.body(name)
        values["joint_position"][k] = torch.stack([length[i - 1], torch.zeros_like(width), torch.zeros_like(width)])
        shaft = length[i] if i < 3 else length[i] - TIP
        mass, moments = _box(shaft, width, width)
        parts = [(mass, shaft / 2.0, moments)]
        if i == 3:
            mass, moments = _box(width / WIDTH * TIP, width, width * (1.0 + design.tip) / 2.0)
            parts.append((mass, shaft + TIP / 2.0, moments))
        mass, center, moments = _joined(parts)
        values["mass"][k], values["inertia"][k] = mass, moments
        values["center_of_mass"][k] = torch.stack([center, torch.zeros_like(width), torch.zeros_like(width)])
    if "contact_point" in values:
        _move_points(sim, design, values)
    return {name: torch.stack(value)[None] for name, value in values.items()}


def _move_points(sim: wb.Simulation, design: Design, values: dict[str, list[torch.Tensor]]) -> None:
    """Contact points stay where they are on the stretched links; areas grow with the lengths."""
    meeting, robot = sim.model.contact_topology, sim.model.robot
    length, own = lengths(design.phalanges), lengths(torch.ones(3, dtype=torch.float64))
    groups = zip(*(getattr(meeting, f"group_{n}").numpy().tolist() for n in ("body", "first", "count")), strict=True)
    for body, first, count in groups:
        if robot.bodies[body] not in LINKS:
            continue
        i = LINKS.index(robot.bodies[body])
        stretch = length[i] / own[i]
        for p in range(first, first + count):
            x, y, z = values["contact_point"][p]
            x = x * stretch
            if i == 3:
                share = ((x - length[3] + TIP) / TIP).clamp(min=0.0)
                z = z * (1.0 + share * (design.tip - 1.0))
            values["contact_point"][p] = torch.stack([x, y, z])
            values["contact_area"][p] = values["contact_area"][p] * stretch
