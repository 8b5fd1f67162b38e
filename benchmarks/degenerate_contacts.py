"""Degenerate contacts of soft bodies: point on point, edge on edge and in cracks, with steps of any length.

    python benchmarks/degenerate_contacts.py [KIND ...] [--steps S ...] [--under SUPPORT ...]

The kinds of scenes are those of the unit tests of incremental potential contact (Li et al. 2020; Erleben 2018): spikes,
ridges and cubes are thrown at bodies of the same kind, into wedges and cracks, over internal edges and over a cliff, at
1 m/s. The body below is a soft body that stands on its foot, a soft body with all nodes held, or an obstacle of the
same mesh. For each length of step the table gives three numbers of scenes: scenes in which every step was found, scenes
in which a step was refused, and scenes in which surfaces intersect after a step by more than rounding. It also gives
the greatest depth and the time of a step. Each scene is simulated twice, and the times are of the second run: the first
one records the launches of a step, and of shorter steps where a step is divided, once for a simulation.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[0]))

from fast import sized

import warpbots as wb
from warpbots.meshing.boxes import box_tets
from warpbots.scene import Box, HalfSpace, TetMesh, TriangleMesh

SUPPORTS = ("soft", "fixed", "obstacle")
STEPS = (0.001, 0.01, 0.1, 1.0)
GAP, SIZE, DURATION = 0.004, 0.1, 0.08
"""Distance between the two bodies [m], height of each [m], and simulated time [s], at least eight steps."""
ROUNDING = 2e-6
"""Depth above which an intersection counts [m]: steps converge to 1e-5 edges in single precision."""


def prism(
    profile: list[tuple[float, float]], triangles: list[tuple[int, int, int]], ends: tuple[float, ...]
) -> TetMesh:
    """A prism: a triangulated profile in x and z, extruded along y."""
    n, outline = len(profile), np.array(profile, dtype=float)
    layers = [np.column_stack([outline[:, 0], np.full(n, y), outline[:, 1]]) for y in ends]
    tets = []
    for first in range(0, n * (len(ends) - 1), n):
        for a, b, c in (first + np.sort(t) for t in np.array(triangles)):
            tets += [(a, b, c, c + n), (a, b, b + n, c + n), (a, a + n, b + n, c + n)]
    return TetMesh.oriented(np.concatenate(layers), np.array(tets))


def spike(width: float = 0.06) -> TetMesh:
    """A pyramid that points down, with its tip at the origin."""
    half = width / 2
    base = [(-half, -half, SIZE), (half, -half, SIZE), (half, half, SIZE), (-half, half, SIZE)]
    return TetMesh.oriented(np.array([(0, 0, 0), *base]), np.array([(0, 1, 3, 2), (0, 1, 4, 3)]))


def ridge(width: float = 0.06) -> TetMesh:
    """A blade with its edge down, along y through the origin."""
    return prism([(0, 0), (-width / 2, SIZE), (width / 2, SIZE)], [(0, 1, 2)], (-0.05, 0.0, 0.05))


def cubes(counts: tuple[int, int, int], size: float = 0.05) -> TetMesh:
    """Cubes side by side; the centre of their common lower face is at the origin."""
    x, y, z = np.array(counts) * size
    return box_tets(Box((-x / 2, -y / 2, 0.0), (x / 2, y / 2, z)), size)


def turned_over(mesh: TetMesh) -> TetMesh:
    """The mesh after half a turn about the x axis, so that it is upside down."""
    return TetMesh.oriented(mesh.vertices * [1.0, -1.0, -1.0], mesh.tets)


def notch(opening: float) -> TetMesh:
    """A block with a notch along y; the notch has its bottom at the origin and the width `opening` [m] at the top."""
    half = opening / 2
    profile = [(-0.1, -0.04), (0, -0.04), (0.1, -0.04), (0.1, 0.08), (half, 0.08), (0, 0), (-half, 0.08), (-0.1, 0.08)]
    triangles = [(0, 1, 5), (1, 2, 5), (2, 3, 5), (3, 4, 5), (0, 5, 7), (5, 6, 7)]
    return prism(profile, triangles, (-0.1, -0.1 / 3, 0.1 / 3, 0.1))


def cliff() -> TetMesh:
    """A step: high on one side of the origin, low on the other."""
    profile = [(-0.1, -0.05), (0, -0.05), (0.1, -0.05), (0.1, 0), (0, 0), (0, 0.05), (-0.1, 0.05), (-0.1, 0)]
    triangles = [(0, 1, 7), (1, 4, 7), (1, 2, 3), (1, 3, 4), (4, 5, 7), (5, 6, 7)]
    return prism(profile, triangles, (-0.1, 0.0, 0.1))


KINDS: dict[str, Callable[[], tuple[TetMesh, TetMesh, tuple[float, float, float], float]]] = {
    "spike on spike": lambda: (spike(), turned_over(spike()), (0, 0, 0), 0),
    "spike on ridge": lambda: (spike(), turned_over(ridge()), (0, 0, 0), 0),
    "spike on cubes": lambda: (spike(), turned_over(cubes((2, 2, 1))), (0, 0, 0), 0),
    "ridge on ridge": lambda: (ridge(), turned_over(ridge()), (0, 0, 0), 0),
    "ridge across ridge": lambda: (ridge(), turned_over(ridge()), (0, 0, 0), 90),
    "ridge on cubes": lambda: (ridge(), turned_over(cubes((2, 2, 1))), (0, 0, 0), 0),
    "cube on cubes": lambda: (cubes((1, 1, 1)), turned_over(cubes((2, 2, 1))), (0, 0, 0), 0),
    "cube on its like": lambda: (cubes((1, 1, 1)), turned_over(cubes((1, 1, 1))), (0, 0, 0), 0),
    "cube over internal edges": lambda: (cubes((1, 1, 1)), turned_over(cubes((4, 2, 1))), (-0.05, 0, 0), 0),
    "cube on a cliff": lambda: (cubes((1, 1, 1)), cliff(), (0.0, 0, 0.05), 0),
    "spike in a wedge": lambda: (spike(), notch(0.15), (0, 0, 0), 0),
    "ridge in a wedge": lambda: (ridge(), notch(0.15), (0, 0, 0), 0),
    "spike in a crack": lambda: (spike(), notch(0.06), (0, 0, 0.02), 0),
    "ridge in a crack": lambda: (ridge(), notch(0.06), (0, 0, 0.02), 0),
    "cube in a wedge": lambda: (cubes((1, 1, 1)), notch(0.15), (0, 0, 0.03), 0),
}
"""Body thrown, body below, start of the former [m], and its rotation about z [degrees]."""


def scene(kind: str, support: str) -> wb.Scene:
    """A scene in which a body is thrown at a support."""
    above, below, at, turn = KINDS[kind]()
    c, s = np.cos(np.radians(turn)), np.sin(np.radians(turn))
    position = above.vertices @ np.array([(c, s, 0), (-s, c, 0), (0, 0, 1)]) + at + np.array([0, 0, GAP])
    material = wb.Material(1e5, 0.3, 1000.0, "neo_hookean")
    sideways = 0.5 if "over" in kind else 0.0
    thrown = wb.SoftBody(
        "above", TetMesh.oriented(position, above.tets), material, velocity=(sideways, 0, -1.0), friction=0.3
    )
    if support == "obstacle":
        solid = TriangleMesh(below.vertices, below.surface)
        return wb.Scene([thrown], obstacles=[wb.Obstacle(solid, friction=0.3, name="below")])
    low = below.vertices[:, 2].min() + (1e-4 if support == "soft" else 1.0)
    foot = HalfSpace((0, 0, low), (0, 0, 1))
    stands = wb.SoftBody("below", below, material, regions={"foot": foot}, friction=0.3)
    return wb.Scene([thrown, stands], constraints=[wb.Constraint("foot")])


def piercings(x: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Depth of each intersection of an edge and a face without a common vertex [m], found by signed volumes.

    The depth is the least translation that separates edge and face: then an end of the edge is in the plane of the
    face, or the edge touches an edge of the face.

    Args:
        x: Positions of the vertices [m], shape (vertices, 3).
        faces: Vertex indices of the triangles, shape (faces, 3).
    """
    edges = np.unique(np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
    low, high, lower, upper = x[edges].min(1), x[edges].max(1), x[faces].min(1), x[faces].max(1)
    near = (low[:, None] <= upper).all(-1) & (high[:, None] >= lower).all(-1)
    i, j = np.nonzero(near & ~(edges[:, None, :, None] == faces[:, None]).any((-1, -2)))
    p, q = x[edges[i]].swapaxes(0, 1)
    a, b, c = x[faces[j]].swapaxes(0, 1)

    def volume(o: np.ndarray, *corners: np.ndarray) -> np.ndarray:
        return np.linalg.det(np.stack(corners, axis=1) - o[:, None])

    sides = (a, b), (b, c), (c, a)
    around = np.stack([volume(p, q, *side) for side in sides])
    same = (around > 0.0).all(axis=0) | (around <= 0.0).all(axis=0)
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    heights = np.stack([volume(a, b, c, p), volume(a, b, c, q)]) / area  # of the ends over the plane of the face
    spans = np.stack([np.linalg.norm(np.cross(q - p, v - u), axis=1) for u, v in sides])
    beside = np.abs(around) / np.maximum(spans, 1e-12)
    depth = np.minimum(np.abs(heights).min(axis=0), beside.min(axis=0))
    return depth[same & (heights.min(axis=0) < 0.0) & (heights.max(axis=0) > 0.0)]


class Ending(NamedTuple):
    """Result of the simulation of a scene.

    Attributes:
        end: "found" if every step was found, "refused" if a step was refused, or "pierced" if surfaces intersect.
        seconds: CPU time of each step that was tried [s].
        depth: Greatest depth of an intersection [m].
        why: Reason for a refusal.
        path: Positions of the nodes of the soft bodies after each step that was found [m], shape (steps, nodes, 3).
        shorter: Number of shorter steps into which whole steps were divided.
    """

    end: str
    seconds: list[float]
    depth: float
    why: str
    path: np.ndarray
    shorter: int


def surfaces(described: wb.Scene) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the vertices of obstacles [m], and vertex indices of all faces of soft bodies and obstacles.

    The indices of vertices of obstacles follow the indices of the nodes of soft bodies.
    """
    solids = [obstacle.shape for obstacle in described.obstacles]
    meshes = [*(body.shape.surface for body in described.soft), *(solid.faces for solid in solids)]
    counts = [*(len(body.shape.vertices) for body in described.soft), *(len(solid.vertices) for solid in solids)]
    faces = [mesh + first for mesh, first in zip(meshes, np.cumsum([0, *counts[:-1]]), strict=True)]
    return np.concatenate([np.zeros((0, 3)), *(solid.vertices for solid in solids)]), np.concatenate(faces)


Steps = Callable[[], tuple[np.ndarray, int]]
"""Function that takes the next step: nodes of soft bodies [m], and number of shorter steps taken so far."""
Begin = Callable[[], Steps]
"""Function that begins at the start of a scene."""


def projective(described: wb.Scene, dt: float) -> Begin:
    """Simulate a scene by projective dynamics, step by step."""
    sim = wb.Simulation(described, wb.ProjectiveDynamics(0.05), dt)

    def begin() -> Steps:
        state = sim.state()

        def step() -> tuple[np.ndarray, int]:
            nonlocal state
            state = sim.step(state, torch.zeros(sim.channels))
            return state.position[0].double().numpy(), int(state.shorter_steps[0])

        return step

    return begin


def run(kind: str, support: str, dt: float, solver: Callable[[wb.Scene, float], Begin] = projective) -> Ending:
    """Throw a body at a support twice, with the steps that `solver` yields for the scene; returns the second run."""
    described = scene(kind, support)
    begin, solids = solver(described, dt), surfaces(described)
    thrown(begin(), dt, *solids)
    return thrown(begin(), dt, *solids)


def thrown(step: Steps, dt: float, fixed: np.ndarray, faces: np.ndarray) -> Ending:
    """Take the steps of a scene.

    Args:
        step: The steps.
        dt: Length of a step [s].
        fixed: Positions of the vertices of obstacles [m], shape (vertices, 3).
        faces: Vertex indices of all faces, shape (faces, 3).
    """
    spent, path, deepest, why, shorter = [], [], 0.0, "", 0
    while not why and len(spent) < sized(max(8, round(DURATION / dt)), 1):
        begun = time.process_time()
        try:
            nodes, shorter = step()
        except wb.SimulationError as fault:
            why = str(fault)
        spent.append(time.process_time() - begun)
        if not why:
            path.append(nodes)
            deepest = max(deepest, piercings(np.concatenate([path[-1], fixed]), faces).max(initial=0.0))
    end = "refused" if why else "pierced" if deepest > ROUNDING else "found"
    return Ending(end, spent, deepest, why, np.array(path), shorter)


def options_of(description: str, steps: tuple[float, ...], example: str) -> argparse.Namespace:
    """Read kinds of scenes, step lengths and supports from the command line.

    Args:
        description: Description of the program.
        steps: Default step lengths [s]; a test run uses only the second step length.
        example: The only kind of scene in a test run.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", help=f"{', '.join(KINDS)}; all without a name")
    parser.add_argument("--steps", type=float, nargs="*", default=sized(steps, steps[1:2]), help="lengths of steps [s]")
    parser.add_argument("--under", nargs="*", default=SUPPORTS, choices=SUPPORTS, help="what is below")
    options = parser.parse_args()
    options.kinds = options.kinds or sized(list(KINDS), [example])
    return options


def tell(which: str, ending: Ending) -> None:
    """Print the result of a scene if a step was not found or if surfaces intersect."""
    if ending.end != "found":
        print(f"{which}: {ending.end}, {1e3 * ending.depth:.3f} mm {ending.why}", flush=True)


def table(*heads: str) -> str:
    """The first two lines of a table, with the given column heads."""
    return f"| {' | '.join(heads)} |\n" + "|---" * len(heads) + "|"


def main() -> None:
    """Run the scenes and print the table."""
    options = options_of(__doc__, STEPS, "spike on spike")
    heads = "below", "step [s]", "found", "refused", "pierced", "deepest [mm]", "CPU time of a step [ms]"
    rows = [table(*heads)]
    for support, dt in itertools.product(options.under, options.steps):
        ends = {kind: run(kind, support, dt) for kind in options.kinds}
        for kind, ending in ends.items():
            tell(f"{kind}, {support}, {dt:g} s", ending)
        counts = [sum(ending.end == name for ending in ends.values()) for name in ("found", "refused", "pierced")]
        ms = 1e3 * np.array([np.mean(ending.seconds) for ending in ends.values()])
        depth = 1e3 * np.array([ending.depth for ending in ends.values()])
        rows.append(
            f"| {support} | {dt:g} | {' | '.join(map(str, counts))} | {depth.max():.3f} | "
            f"{np.median(ms):.1f} ({ms.max():.0f}) |"
        )
    print("\n".join(rows))


if __name__ == "__main__":
    main()
