"""The finger of DiffHand (Xu et al. 2021) without cages: boxes of its dimensions, whose lengths are parameters.

Palm, knuckle and three times joint and phalanx, then a tip; lengths, widths and axes are those of its components. The
design scales the lengths of the three phalanges and the height of the end of the tip, and moves what hangs on them:
frames of joints, masses, moments of inertia, contact points and their areas.
"""

import dataclasses
import math

import numpy as np
import torch

import warpbots as wb

__all__ = ["CM", "Design", "finger_bodies", "finger_joints", "parameters", "tip_of"]

CM = 0.01
"""Centimetre [m]: the unit of the paper's losses."""

PALM, KNUCKLE, KNUCKLE_AXIS, JOINT, JOINT_AXIS, PHALANX, TIP = (
    CM * length for length in (0.7, 2.75, 1.15, 2.06, 1.08, 2.34, 2.21)
)
"""Lengths of the components, and how far along them their axes are [m]."""
WIDTH, DENSITY = 2.6 * CM, 1000.0
AREA = 1e-4
"""Area for which a contact point stands [m^2], so that a law of k Pa/m is a spring of k * AREA N/m a point."""

LINKS = ("knuckle", "proximal", "middle", "distal")
"""The links that move; the palm is their base. Lengths of the last three are designed."""
AXES = {"knuckle": (0.0, 0.0, 1.0), "proximal": (0.0, 1.0, 0.0), "middle": (0.0, 1.0, 0.0), "distal": (0.0, 1.0, 0.0)}


@dataclasses.dataclass(frozen=True)
class Design:
    """What is scaled, all 1 in the finger of the paper.

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


def lengths(phalanges: torch.Tensor) -> torch.Tensor:
    """Lengths of the four links [m], from axis to axis, the last to the end of the tip."""
    after = JOINT - JOINT_AXIS
    knuckle = torch.tensor([KNUCKLE - KNUCKLE_AXIS + JOINT_AXIS], dtype=phalanges.dtype)
    ends = torch.tensor([JOINT_AXIS, JOINT_AXIS, TIP], dtype=phalanges.dtype)
    return torch.cat([knuckle, after + PHALANX * phalanges + ends])


def finger_bodies(points: int = 0) -> list[wb.RigidBody]:
    """The palm and the four links along x, at zero, with about so many contact points on each of the last three."""
    length = lengths(torch.ones(3, dtype=torch.float64)).tolist()
    half, x = WIDTH / 2.0, PALM + KNUCKLE_AXIS
    bodies = [wb.RigidBody("palm", wb.shapes.Box((0, -0.8 * CM, -1.62 * CM), (x, 0.8 * CM, 1.62 * CM)), DENSITY)]
    for name, long in zip(LINKS, length, strict=True):
        shape = wb.shapes.Box((0.0, -half, -half), (long, half, half))
        cloud = wb.Cloud(_surface(long, points), AREA) if points and name != "knuckle" else 0
        surface = "finger" if cloud else None
        bodies.append(wb.RigidBody(name, shape, DENSITY, position=(x, 0, 0), points=cloud, surface=surface))
        x += long
    return bodies


def finger_joints(damping: float) -> list[wb.Joint]:
    """The hinges of the four links."""
    length = [PALM + KNUCKLE_AXIS, *lengths(torch.ones(3, dtype=torch.float64)).tolist()]
    parents = ("palm", *LINKS)
    return [
        wb.Joint(name, "revolute", parent, name, position=(x, 0, 0), axis=AXES[name], damping=damping)
        for name, parent, x in zip(LINKS, parents, np.cumsum(length), strict=False)
    ]


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
    """Mass, place of the centre along x and moments about it of boxes in a row, each (mass, place, moments)."""
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
    meeting, robot = sim.model.meeting, sim.model.robot
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
