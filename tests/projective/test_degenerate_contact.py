"""Contact of points, edges and faces that coincide exactly, or nearly so, and what surfaces do that cannot be kept apart."""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import warp as wp
from scipy.spatial.transform import Rotation

from warpbots.scene import Box, Constraint, HalfSpace, Material, Posed, Scene, SceneError, SoftBody, TetMesh
from warpbots.simulation import Simulation, SimulationError
from warpbots.solvers import ProjectiveDynamics
from warpbots.solvers.projective.contact.crossed_edges import intersects

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

from degenerate_contacts import GAP, piercings, prism, scene

CELL = HALF = 0.04
MATERIAL = Material(5e4, 0.3, 1000.0, "corotated")
DOWN = {
    "face": (Rotation.identity(), 1.0),
    "edge": (Rotation.from_euler("x", 45, degrees=True), 2.0**0.5),
    "point": (Rotation.align_vectors([[0, 0, 1]], [[1, 1, 1]])[0], 3.0**0.5),
}
"""How a cube turns so that a face, an edge or a point of it looks down, and up, and how far that is [half edges]."""


@wp.kernel(enable_backward=False, module="unique")
def crossed_kernel(x: wp.array2d[wp.vec3d], crossed_out: wp.array[int]):
    """Whether the edge of the first two points intersects the face of the others."""
    i = wp.tid()
    crossed_out[i] = int(intersects(x[i, 0], x[i, 1], x[i, 2], x[i, 3], x[i, 4]))


def crossed(x: np.ndarray) -> np.ndarray:
    out = wp.zeros(len(x), dtype=int, device="cpu")
    wp.launch(crossed_kernel, len(x), [wp.array(x, dtype=wp.vec3d, device="cpu")], [out], device="cpu")
    return out.numpy() == 1


def test_edges_and_faces_in_one_plane_do_not_cross(rng):
    """Rounding does not make crossings of a flat side that turns, though its edges are in line with faces.

    In general position, what crosses is known from the place on the face and on the edge.
    """
    grid = [[0, 1, 0], [0, 2, 0], [0, 0, 1], [0, 1, 1], [0, 0, 0]]
    points = 0.04 * np.array([grid, [[0, 1, 0], [0, 2, 0], [0, 0, 0], [0, 1, 1], [0, 0, 1]]])
    turned = Rotation.random(20000, rng=rng).as_matrix()[:, None] @ points[rng.integers(0, 2, 20000)][..., None]
    assert not crossed(turned[..., 0] + rng.uniform(-0.5, 0.5, (20000, 1, 3))).any()
    x = rng.uniform(-1.0, 1.0, (20000, 5, 3))
    sides = np.stack([x[:, 1] - x[:, 0], x[:, 2] - x[:, 3], x[:, 2] - x[:, 4]], axis=2)
    t, u, v = np.linalg.solve(sides, (x[:, 2] - x[:, 0])[..., None])[..., 0].T
    expected = (t > 0) & (t < 1) & (u > 0) & (v > 0) & (u + v < 1)
    assert 0.05 < expected.mean() < 0.5
    np.testing.assert_array_equal(crossed(x), expected)


def cube_on_cube(
    lower: str, upper: str, shift: tuple[float, float], gap: float = 0.002, speed: float = 1.0, stiffness: float = 5e4
) -> Scene:
    """A cube `gap` [m] above another one that stands fast, thrown at it, `shift` [m] beside its middle."""
    (turn, up), (rotated, down) = DOWN[lower], DOWN[upper]
    cube, foot = Box((-HALF,) * 3, (HALF,) * 3), HalfSpace((0, 0, -0.3 * HALF * up), (0, 0, 1))
    above = Posed(cube, (*shift, HALF * (up + down) + gap), rotated.as_matrix())
    material = dataclasses.replace(MATERIAL, youngs_modulus=stiffness)
    bodies = (
        SoftBody("lower", Posed(cube, (0, 0, 0), turn.as_matrix()), material, regions={"foot": foot}, friction=0.3),
        SoftBody("upper", above, material, velocity=(0, 0, -speed), friction=0.3),
    )
    return Scene(bodies, constraints=(Constraint("foot"),))


def spike_in_wedge(shift: float, y: float, blade: bool) -> Scene:
    """A spike or a blade 4 mm above the bottom of a notch, thrown into it, `shift` [m] beside its middle."""
    profile = [(-0.1, 0), (0, 0), (0.1, 0), (0.1, 0.1), (0, 0.02), (-0.1, 0.1)]
    wedge = prism(profile, [(0, 1, 4), (1, 2, 4), (2, 3, 4), (0, 4, 5)], tuple(np.linspace(-0.1, 0.1, 4)))
    tip = np.array([shift, y, 0.024])
    if blade:
        sides = [(shift + x, 0.024 + z) for x, z in ((0, 0), (-0.03, 0.1), (0.03, 0.1))]
        sharp = prism(sides, [(0, 1, 2)], (y - 0.05, y, y + 0.05))
    else:
        base = np.array([(-0.03, -0.03, 0.1), (0.03, -0.03, 0.1), (0.03, 0.03, 0.1), (-0.03, 0.03, 0.1)])
        sharp = TetMesh.oriented(np.append([tip], base + tip, axis=0), np.array([(0, 1, 3, 2), (0, 1, 4, 3)]))
    bodies = (
        SoftBody("wedge", wedge, MATERIAL, regions={"foot": HalfSpace((0, 0, 1e-3), (0, 0, 1))}),
        SoftBody("spike", sharp, MATERIAL, velocity=(0, 0, -1.0)),
    )
    return Scene(bodies, constraints=(Constraint("foot"),))


def run(scene: Scene, dt: float, steps: int) -> Simulation:
    """Step, and look at the surfaces after each one."""
    sim = Simulation(scene, ProjectiveDynamics(CELL, tolerance=1e-5), dt)
    state = sim.state()
    faces = np.concatenate([part.faces + part.nodes.start for part in sim.model.matter.meshes])
    for _ in range(steps):
        state = sim.step(state, torch.zeros(0))
        assert len(piercings(state.position[0].cpu().double().numpy(), faces)) == 0
    return sim


def test_what_counts_as_pierced():
    """A needle through a triangle, beside it, and one that ends above it."""
    x = np.array([(0, 0, 0), (1, 0, 0), (0, 1, 0), (0.2, 0.2, 1), (0.3, 0.2, -1), (9, 9, 9.5)], dtype=float)
    faces = np.array([(0, 1, 2), (3, 4, 5)])
    for shift, expected in ((0.0, True), ((1.0, 0.0, 0.0), False), ((0.0, 0.0, 1.5), False)):
        moved = x + np.array(shift) * (np.arange(6) > 2)[:, None]
        assert (len(piercings(moved, faces)) > 0) == expected


@pytest.mark.parametrize("lower", DOWN)
@pytest.mark.parametrize("upper", DOWN)
def test_nothing_is_pierced_by_what_meets_exactly(lower, upper):
    """Points, edges and faces of one body on those of the other, aligned and a little beside: all have an answer."""
    for shift in (0.0, 1e-9, 1e-7, 1e-5, 1e-3, 1e-2):
        run(cube_on_cube(lower, upper, (0.6 * shift, 0.8 * shift)), 0.005, 8)


@pytest.mark.parametrize("dt", [0.002, 0.01, 1 / 30])
@pytest.mark.parametrize("kind", ["point", "edge"])
def test_tip_on_tip_and_ridge_on_ridge_at_all_lengths_of_steps(kind, dt):
    run(cube_on_cube(kind, kind, (0.0, 0.0)), dt, 8)


def test_tips_that_slip_past_each_other_do_not_go_through():
    """They are stiff and fast, so that a step takes them a third of an edge: what holds them has to be found anew."""
    run(cube_on_cube("point", "point", (1e-4, -1e-5), gap=1e-4, speed=3.0, stiffness=1e6), 0.005, 8)


@pytest.mark.parametrize("blade", [False, True])
@pytest.mark.parametrize("shift", [0.0, 1e-9, 1e-5, 1e-3])
def test_a_spike_in_a_wedge_stays_there(blade, shift):
    """On the middle of an edge of the notch, and on a vertex of it."""
    for y in (0.0, 0.1 / 3):
        run(spike_in_wedge(shift, y, blade), 0.01, 8)


def test_surfaces_that_cross_are_reported():
    """With the names of both bodies, and where: at the start, and from a state that was changed, after a step."""
    beam = SoftBody("beam", Box((0, 0, 0), (0.16, 0.08, 0.08)), MATERIAL)
    rod = SoftBody("rod", Box((0.05, -0.1, 0.03), (0.07, 0.18, 0.05)), MATERIAL)
    for crossed_scene in (Scene((beam, rod)), spike_in_wedge(0.01, 0.0, blade=False)):
        with pytest.raises(
            SceneError, match=r"'(rod|spike)' and SoftBody '(beam|wedge)': their surfaces intersect near"
        ):
            ProjectiveDynamics(CELL).build(crossed_scene)
    above = dataclasses.replace(rod, shape=Box((0.05, -0.1, 0.23), (0.07, 0.18, 0.25)))
    sim = Simulation(Scene((beam, above), gravity=(0, 0, 0)), ProjectiveDynamics(CELL, tolerance=1e-5), 0.005)
    state = sim.state()
    state.position[0, torch.as_tensor(sim.model.mesh.body == 1), 2] -= 0.2
    both = r"SoftBody '(rod|beam)' .* SoftBody '(rod|beam)' near \(0\.\d+, .* shorter step"
    with pytest.raises(SimulationError, match=both):
        sim.step(state, torch.zeros(0))


def test_a_spike_that_falls_over_in_a_wedge_does_not_stay_in_its_side():
    """In two steps of 1 s its base leaves through the side, as a path may cut a right angle, and ends at the end face.

    In single precision, that is; in double precision it keeps its balance.
    """
    wedge = scene("spike in a wedge", "obstacle")
    sim = Simulation(wedge, ProjectiveDynamics(0.05), 1.0)
    solid, spike = wedge.obstacles[0].shape, sim.model.matter.meshes[0]
    faces = np.concatenate([spike.faces, solid.faces + len(sim.model.matter)])
    state = sim.state()
    for _ in range(2):
        state = sim.step(state, torch.zeros(0))
        ends = np.concatenate([state.position[0].double().cpu().numpy(), solid.vertices])
        assert piercings(ends, faces).max(initial=0.0) < 1e-5


@pytest.mark.parametrize("friction", [0.1, 0.3, 1.0])
def test_friction_holds_a_vertex_on_a_vertex(friction):
    """Two ridges that cross where both have a vertex: that of the upper one, which comes 3 mm in a step, stays above.

    Without friction it slides off by 0.1 mm, as it is not in a stable balance. It ends at the clearance, less what the
    compliance of a contact lets through.
    """
    crossed = scene("ridge across ridge", "fixed")
    crossed = dataclasses.replace(crossed, bodies=[dataclasses.replace(b, friction=friction) for b in crossed.soft])
    sim = Simulation(crossed, ProjectiveDynamics(0.05), 0.01)
    state = sim.step(sim.state(), torch.zeros(0))
    above = sim.model.matter.body == 0
    middle = np.flatnonzero(above & (np.linalg.norm(sim.model.matter.position - [0, 0, GAP], axis=1) < 1e-9))
    end = state.position[0, middle].double().cpu().numpy()[0]
    clearance = 0.01 * sim.model.matter.edge
    assert state.shorter_steps[0] == 0
    assert np.abs(end[:2]).max() < 0.01 * clearance
    assert end[2] == pytest.approx(clearance, rel=0.02)
