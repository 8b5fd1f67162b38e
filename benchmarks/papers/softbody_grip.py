"""A pneumatic gripper on a drone, and its loads: shapes and a scene of our own, after the soft multi-body paper.

Four soft arms hang from a rigid plate, the drone. The outer half of each arm has 14 pneumatic cells; as they expand,
the arm bends inwards. The arms end just below the middle of the load, so that only friction can lift a ball.
"""

import math

import numpy as np
from softbody_shapes import icosphere

import warpbots as wb

__all__ = ["CELLS", "GAP", "LOADS", "RADIUS", "REACH", "gripper_scene", "gripper_with"]

CELLS = 14
"""Pneumatic cells of an arm, one above the other."""
REACH = 0.5
"""Displacement of the drone along an axis for u = 1 [m]."""
RADIUS, GAP = 0.1, 0.004
"""Of the ball, and between it and an arm [m]."""
WIDTH, LENGTH, END = 0.08, 0.2, -0.03
"""Of an arm, which is as thick as it is wide, and height of its lower end above the middle of the ball [m]."""
SKIN, CHAMBER = 2e5, 1e6
"""Young's modulus of the arms, and stiffness of the cells in them [Pa]."""
MASS = 10.0
"""Of the gripper with its drone [kg]."""
GAIN = 2e4
"""Of the servos that move the drone [N/m], critically damped."""
TURNS = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""Cosine and sine of the places of the arms."""


def ball() -> wb.shapes.TetMesh:
    """A ball that is turned, so that neither its edges nor its vertices lie in planes of symmetry of the gripper."""
    turn, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))
    return icosphere(RADIUS, turn * np.linalg.det(turn))


def cube() -> wb.shapes.TetMesh:
    """A cube as wide as the ball."""
    return wb.meshing.tetrahedra(wb.shapes.Box((-RADIUS,) * 3, (RADIUS,) * 3), RADIUS)


def rod() -> wb.shapes.TetMesh:
    """A lying cylinder as long as the ball is wide, 16 cm across: a box whose cross-section is mapped to a disc."""
    box = wb.meshing.tetrahedra(wb.shapes.Box((-1,) * 3, (1,) * 3), 0.5)
    x, y, z = box.vertices.T
    disc = np.stack([y * np.sqrt(1 - z**2 / 2), z * np.sqrt(1 - y**2 / 2)], axis=1)
    return wb.shapes.TetMesh.oriented(np.column_stack([RADIUS * x, 0.08 * disc]), box.tets)


LOADS = {"ball": ball, "cube": cube, "rod": rod}
"""What the gripper is tried on."""


def arms(across: int = 1) -> wb.shapes.TetMesh:
    """Mesh of all four arms: two halves of a thickness, with a layer for each pneumatic cell.

    Args:
        across: Cells in the width of an arm, and in each half of its thickness.
    """
    counts = CELLS, across, 2 * across
    grid = wb.meshing.tetrahedra(wb.shapes.Box((0, 0, 0), counts), 1.0)
    down, aside, out = (grid.vertices / counts).T
    z, y, x = END + LENGTH * (1 - down), WIDTH * (aside - 0.5), RADIUS + GAP + WIDTH * out
    vertices = [np.stack([c * x - s * y, s * x + c * y, z], axis=1) for c, s in TURNS]
    tets = [grid.tets + k * len(x) for k in range(len(TURNS))]
    return wb.shapes.TetMesh.oriented(np.concatenate(vertices), np.concatenate(tets))


def chambers() -> dict[str, wb.shapes.Box]:
    """Regions with the outer half of each arm, by name."""
    inner, outer, half = RADIUS + GAP + WIDTH / 2, RADIUS + GAP + WIDTH, WIDTH / 2
    found = {}
    for k, (c, s) in enumerate(TURNS):
        ends = np.array([[c * x - s * y, s * x + c * y] for x, y in ((inner, -half), (outer + 1e-3, half))])
        lower, upper = ends.min(axis=0) - 1e-6, ends.max(axis=0) + 1e-6
        found[f"chambers {k}"] = wb.shapes.Box((*lower, END - 1e-3), (*upper, END + LENGTH + 1e-3))
    return found


def gripper_scene(load: str = "ball", mass: float = 1.0, friction: float = 0.8, across: int = 1) -> wb.Scene:
    """The gripper above a soft load that lies on the floor; the centre of a ball is at the origin.

    Args:
        load: Name of the load, one of `LOADS`.
        mass: Mass of the load [kg].
        friction: Friction coefficient of the gripper, the load and the floor [1].
        across: Cells in the width of an arm, and in each half of its thickness.
    """
    mesh = LOADS[load]()
    down = -RADIUS - mesh.vertices[:, 2].min()
    mesh = wb.shapes.TetMesh(mesh.vertices + (0.0, 0.0, down), mesh.tets)
    corners = mesh.vertices[mesh.tets]
    volume = np.abs(np.linalg.det(corners[:, 1:] - corners[:, :1])).sum() / 6.0
    everywhere = wb.shapes.Box((-1.0,) * 3, (1.0,) * 3)
    held = wb.SoftBody(
        "load", mesh, wb.Material(2e6, 0.3, mass / volume, "corotated"), {"load": everywhere}, friction=friction
    )
    return gripper_with(held, friction, across)


def gripper_with(load: wb.SoftBody | wb.RigidBody, friction: float, across: int = 1) -> wb.Scene:
    """The gripper above a load that lies on a floor at `-RADIUS`.

    Args:
        load: The load.
        friction: Friction coefficient of the gripper and the floor [1].
        across: Cells in the width of an arm, and in each half of its thickness.
    """
    outer, top = RADIUS + GAP + WIDTH, END + LENGTH
    soft = wb.Material(SKIN, 0.3, 1000.0, "neo_hookean")
    gripper = wb.SoftBody("gripper", arms(across), soft, chambers(), friction=friction, color=(0.93, 0.62, 0.30))
    own = MASS - 4 * LENGTH * WIDTH**2 * soft.density
    inertia = wb.Inertia(own, (0.0, 0.0, top + 0.01), (0.05, 0.05, 0.1))
    plate = wb.shapes.Box((-outer, -outer, top - 5e-4), (outer, outer, top + 0.02))  # reaches into the arms it holds
    drone = wb.RigidBody("drone", plate, inertia=inertia, color=(0.80, 0.82, 0.86))
    damping = 2.0 * math.sqrt(GAIN * (MASS + 1.0))
    return wb.Scene(
        name="pneumatic_gripper",
        bodies=[gripper, load, drone],
        actuators=[wb.actuators.PneumaticCell(f"inflate {k}", name, CHAMBER, 0.9) for k, name in enumerate(chambers())]
        + [
            wb.actuators.Servo(f"fly {name}", "flight", GAIN, damping, reach=REACH, axis=k)
            for k, name in enumerate("xyz")
        ],
        obstacles=[wb.floor(-RADIUS - 1e-4, friction=friction)],
        joints=[wb.Joint("flight", "translational", None, "drone")],
        task=wb.Task(
            cell_size=0.04, control_interval=0.01, substeps=2, steps=50, direction=(0.0, 0.0, 1.0), clusters=4
        ),
    )
