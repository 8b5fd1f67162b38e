"""Robots and scenes of DiffHand (Xu et al. 2021): a finger and a hand of two fingers, whose components are in cages.

Components, their order, masses of objects, motors, dampers and contact laws are taken from the paper's published code,
in SI units. In that code every contact point has the constants of a law. Here points have areas, and a point with the
mean area of the points of a phalanx has these constants.
"""

import functools

import numpy as np

import warpbots as wb
from warpbots.design import Assembly, Node, chain, joint, knuckle, palm, phalanx, tip

__all__ = ["CM", "SCENES", "assemble_scene", "finger", "flip_scene", "reach_scene", "rotate_scene", "two_fingers"]

CM = 0.01
"""Centimetre [m]: the unit of the paper's losses."""
POINT = 0.43 * CM * CM
"""Area of a contact point that has the published constants: the mean of a phalanx [m^2]."""
DOWN = np.diag([1.0, -1.0, -1.0])
"""Axes of the hands: their z axis points down."""
HINGE = CM * np.array([15.0, 0.0, -10.0])
"""About which the box of Flip Box turns [m]."""
SIDE = 6.0 * CM
"""Of that box, and of the cube [m]."""
HOLE = CM * np.array([1.5, 0.0, -1.5])
"""Middle of the hole in the frame of the mount of Assemble [m]."""
PART = 2.8 * CM
"""Side of the cube that is put there [m]."""


def finger(locked: bool = False, density: int = 1) -> Assembly:
    """The finger of one palm and three phalanges; its palm and the length of its tip are not designed.

    Args:
        locked: Whether the knuckle does not turn.
        density: Factor of the numbers of contact points.
    """
    pair = (24 * density, 24 * density)
    spread, bend, bone = knuckle(points=pair), joint(points=pair), phalanx(points=57 * density)
    spread = spread.locked() if locked else spread
    parts = palm(points=16 * density), spread, bend, bone, bend, bone, bend, bone, tip(points=54 * density)
    return Assembly(chain(*parts), ("palm.*", "tip.length"))


def two_fingers(density: int = 1) -> Assembly:
    """The hand of two fingers; only their last phalanges and tips touch anything.

    Args:
        density: Factor of the numbers of contact points.
    """
    spread, bend = knuckle(points=(0, 0)), joint(points=(0, 0))
    upper, bone, end = phalanx(points=0), phalanx(points=57 * density), tip(points=54 * density)
    fingers = {port: chain(spread, bend, upper, bend, bone, end) for port in ("out", "back")}
    return Assembly(Node(palm(points=0), fingers))


def _contact(
    points: str, solid: str, kn: float, kt: float, mu: float, damping: float, area: float = POINT
) -> wb.Contact:
    """Contact law from the constants of one point in g, cm and s.

    The normal force is (kn d + damping d d') g cm/s^2, and the shear force per sliding speed is kt g/s.
    """
    return wb.Contact(points, solid, 1e-3 * kn / area, 0.1 * damping / area, mu, 1e-3 * kt / area)


def _hand(hand: Assembly, factors, height: float = 0.0, **options) -> tuple[list[wb.RigidBody], list[wb.Joint]]:
    """Bodies and joints of a hand that points down, whose surface is "hand"."""
    pose = {"position": (0.0, 0.0, height), "rotation": DOWN}
    bodies = hand.bodies(factors, **pose, surface="hand", **options)
    return bodies, hand.joints(factors, **pose, limits=False, damping=0.01)


def reach_scene(hand: Assembly, factors=None) -> wb.Scene:
    """Finger Reach: a finger on a wall, without gravity."""
    bodies, joints = _hand(hand, factors, points=0)  # which nothing touches
    motors = [wb.actuators.Torque(j.name, j.name, 0.06) for j in joints]
    fixed = wb.Joint("base", "fixed", None, "palm")
    return wb.Scene(bodies, motors, gravity=(0.0, 0.0, 0.0), joints=[fixed, *joints], name="finger_reach")


def flip_scene(hand: Assembly, factors=None, side: float = SIDE) -> wb.Scene:
    """Flip Box: a finger whose palm moves in the x-z plane, and a heavy box on a hinge on the floor.

    Args:
        hand: The finger.
        factors: Its scale factors; None for the nominal shape.
        side: Edge of the box [m].
    """
    bodies, joints = _hand(hand, factors)
    corners = np.array([(x, y, z) for x in (0.0, side) for y in (-side / 2, side / 2) for z in (0.0, side)])
    solid = wb.shapes.Box((0.0, -side / 2, 0.0), (side, side / 2, side))
    box = wb.RigidBody("box", solid, 1000.0, position=HINGE, points=wb.Cloud(corners, CM * CM))
    upright = ((1.0, 0.0, 0.0), (0.0, 0.0, -1.0), (0.0, 1.0, 0.0))
    base = wb.Joint("base", "planar", None, "palm", rotation=upright, damping=10.0)
    lid = wb.Joint("lid", "revolute", None, "box", position=HINGE, axis=(0.0, -1.0, 0.0), damping=1e-3)
    motors = [wb.actuators.Torque("base_x", "base", 6.0, 0), wb.actuators.Torque("base_z", "base", 6.0, 1)]
    motors += [wb.actuators.Torque(j.name, j.name, 0.015) for j in joints]
    laws = [
        _contact("hand", "box", 5e5, 2.5e3, 1.5, 3e2),
        _contact("hand", "floor", 1e6, 5e3, 1.5, 3e1),
        _contact("box", "floor", 5e6, 5e3, 0.8, 3e2, CM * CM),
    ]
    return wb.Scene(
        [*bodies, box], motors, [wb.floor(-10.0 * CM)], gravity=(0.0, 0.0, -9.8), joints=[base, *joints, lid],
        contacts=laws, name="flip_box",
    )  # fmt: skip


def rotate_scene(hand: Assembly, factors=None) -> wb.Scene:
    """Rotate Rubik's Cube: a finger whose palm moves and turns in the x-y plane, and a cube whose top layer turns."""
    bodies, joints = _hand(hand, factors)
    half = SIDE / 2.0
    bottom = wb.Obstacle(wb.shapes.Box((-half, -half, -10.0 * CM), (half, half, -6.0 * CM)), name="bottom")
    top = wb.RigidBody(
        "top", wb.shapes.Box((-half, -half, -CM), (half, half, CM)), 300.0, position=(0.0, 0.0, -5.0 * CM)
    )
    base = wb.Joint("base", "free_2d", None, "palm", damping=(10.0, 10.0, 1e-3))
    layer = wb.Joint("layer", "revolute", None, "top", position=(0.0, 0.0, -5.0 * CM), damping=1e-3)
    motors = [
        wb.actuators.Torque(f"base_{n}", "base", force, k)
        for k, (n, force) in enumerate((("x", 3.0), ("y", 3.0), ("turn", 0.03)))
    ]
    motors += [wb.actuators.Torque(j.name, j.name, 0.03) for j in joints]
    laws = [_contact("hand", solid, 1e6, 5e3, 1.5, 1e3) for solid in ("bottom", "top")]
    laws.append(_contact("hand", "floor", 1e6, 5e3, 1.5, 3e1))
    return wb.Scene(
        [*bodies, top], motors, [wb.floor(-10.0 * CM), bottom], gravity=(0.0, 0.0, 0.0), joints=[base, *joints, layer],
        contacts=laws, name="rotate_cube",
    )  # fmt: skip


def assemble_scene(hand: Assembly, factors=None, cells: int = 2) -> wb.Scene:
    """Assemble: two fingers on a palm that moves in the x-y plane, a mount with a hole, and a cube that fits it.

    Args:
        hand: The hand.
        factors: Its scale factors; None for the nominal shape.
        cells: Number of cells along an edge of the cube, whose corners are its contact points. Together they have the
            area of the points of two cells, which are 1 cm^2 each.
    """
    bodies, joints = _hand(hand, factors, 4.0 * CM)
    sides = [
        ((-3, -4, -3), (0, 4, 3)),
        ((0, -1.5, 0), (3, 1.5, 3)),
        ((0, -4, -3), (3, -1.5, 3)),
        ((0, 1.5, -3), (3, 4, 3)),
    ]
    solid = wb.shapes.Union(tuple(wb.shapes.Box(CM * np.array(a), CM * np.array(b)) for a, b in sides))
    mount = wb.RigidBody("mount", solid, 200.0, position=(0.0, 0.0, -7.0 * CM))
    half = PART / 2.0
    steps = np.linspace(-half, half, cells + 1)
    grid = np.array([(x, y, z) for x in steps for y in steps for z in steps if max(abs(x), abs(y), abs(z)) == half])
    area = CM * CM * (26 / len(grid))
    cube = wb.RigidBody(
        "cube", wb.shapes.Box((-half,) * 3, (half,) * 3), 200.0, position=CM * np.array([8.0, 2.0, -8.6]),
        points=wb.Cloud(grid, area),
    )  # fmt: skip
    base = wb.Joint("base", "planar", None, "palm", damping=10.0)
    sliding = {"damping": (1.0, 1.0, 1e-4)}
    slides = [
        wb.Joint("mount", "free_2d", None, "mount", position=mount.position, **sliding),
        wb.Joint("cube", "free_2d", None, "cube", position=cube.position, start=(0.0, 0.0, np.pi / 6.0), **sliding),
    ]
    motors = [wb.actuators.Torque("base_x", "base", 6.0, 0), wb.actuators.Torque("base_y", "base", 6.0, 1)]
    motors += [wb.actuators.Torque(j.name, j.name, 0.06) for j in joints]
    laws = [_contact("hand", body, 1e5, 5e3, 1.0, 1e3) for body in ("mount", "cube")]
    laws.append(_contact("cube", "mount", 1e5, 1e3, 1.0, 1e3, CM * CM))
    laws.append(_contact("hand", "floor", 1e6, 5e3, 1.5, 3e1))
    return wb.Scene(
        [*bodies, mount, cube], motors, [wb.floor(-10.0 * CM)], gravity=(0.0, 0.0, -9.8),
        joints=[base, *joints, *slides], contacts=laws, name="assemble",
    )  # fmt: skip


SCENES = {
    "reach": (reach_scene, finger),
    "flip": (flip_scene, finger),
    "rotate": (rotate_scene, functools.partial(finger, True)),
    "assemble": (assemble_scene, two_fingers),
}
"""Scene and hand of each task; a hand may have a factor of the numbers of its contact points, `density`."""
