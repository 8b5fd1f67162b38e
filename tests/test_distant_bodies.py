"""A body far away, of other elements, stiffness and density, changes nothing: neither motion nor contacts nor gradients.

It changes what a mean over all bodies would: the mean edge, the stiffest matter, the largest force, the total mass.
"""

import itertools

import numpy as np
import pytest
from cases import to_numpy

import warpbots as wb
from warpbots.numerics import precision

pytestmark = pytest.mark.verification(float32=True)

Box, Sphere, Cylinder, Material = wb.shapes.Box, wb.shapes.Sphere, wb.shapes.Cylinder, wb.Material
SOFT = Material(1e5, 0.3, 1000.0)
STEPS = 6


def grid(side: float, name: str = "far", matter: Material = SOFT, at: tuple = (5.0, 0.0, 0.3)) -> wb.SoftBody:
    """A cube of 2 x 2 x 2 cells with this edge, of six tetrahedra each."""
    places = np.array(list(itertools.product(range(3), repeat=3)))
    tets = []
    for cell in itertools.product(range(2), repeat=3):
        for axes in itertools.permutations(range(3)):
            path = np.cumsum([cell, *np.eye(3, dtype=int)[list(axes)]], axis=0)
            corners = path @ (9, 3, 1)
            tets.append(corners if np.linalg.det(np.diff(path, axis=0)) > 0 else corners[[0, 1, 3, 2]])
    return wb.SoftBody(name, wb.shapes.TetMesh(places * side + np.array(at), np.array(tets)), matter)


FAR = {
    "coarse, stiff and heavy": (0.4, Material(2e7, 0.4, 4000.0)),
    "fine, soft and light": (0.01, Material(2e3, 0.2, 100.0)),
}


def pile() -> list[wb.SoftBody]:
    """Two blocks, one of which slides on the other."""
    lower = wb.SoftBody("lower", Box((0, 0, 0.002), (0.1, 0.1, 0.102)), SOFT, friction=0.4)
    upper = Box((0.02, 0.03, 0.104), (0.12, 0.13, 0.204))
    return [lower, wb.SoftBody("upper", upper, SOFT, velocity=(0.2, 0, -0.5), friction=0.4)]


def attached() -> tuple:
    """Two blocks that hang together, the lower one of much softer matter."""
    hanging = wb.SoftBody("upper", Box((0, 0, 0.12), (0.1, 0.1, 0.22)), SOFT, {"top": Box((0, 0, 0.21), (0.1, 0.1, 1))})
    lower = wb.SoftBody("lower", Box((0, 0, 0.01), (0.1, 0.1, 0.11)), Material(1e4, 0.3, 1000.0))
    joined = wb.Attachment("seam", "lower", "upper", [(0.02, 0.02, 0.115), (0.08, 0.02, 0.115), (0.05, 0.08, 0.115)])
    return [hanging, lower], {"attachments": [joined], "constraints": [wb.Constraint("top")]}


PLACES = {
    "floor": lambda: (pile(), {"obstacles": [wb.floor()]}),
    "edge of a table": lambda: (pile(), {"obstacles": [wb.Obstacle(Box((-1, -1, -0.1), (0.06, 1, 0)), name="table")]}),
    "rod": lambda: (pile(), {"obstacles": [wb.Obstacle(Cylinder((0.05, -1, -0.01), (0.05, 1, -0.01), 0.01), name="rod")]}),
    "attachment": attached,
}  # fmt: skip


def run(place: str, far: str | None) -> tuple[np.ndarray, np.ndarray, wb.Simulation]:
    """Final positions of the two blocks, and the gradient of their mean square with respect to velocities."""
    bodies, rest = PLACES[place]()
    more = [grid(FAR[far][0], matter=FAR[far][1])] if far else []
    sim = wb.Simulation(wb.Scene([*bodies, *more], **rest), wb.ProjectiveDynamics(0.05), dt=5e-3)
    velocity = sim.state().velocity.clone().requires_grad_()
    end = sim.rollout(None, STEPS, sim.state(velocity=velocity)).final.position
    near = np.isin(sim.model.matter.body, (0, 1))
    (end[:, near].double() ** 2).mean().backward()
    return to_numpy(end)[0, near].astype(float), to_numpy(velocity.grad)[0, near].astype(float), sim


@pytest.mark.parametrize("far", FAR)
@pytest.mark.parametrize("place", PLACES)
def test_it_changes_no_motion_and_no_gradient_of_projective_dynamics(place, far):
    """Up to the tolerance of near elements in every step, with contacts of bodies, edges and thin obstacles."""
    alone, slope, sim = run(place, None)
    beside, other, _ = run(place, far)
    tolerance = 0.05 * wb.ProjectiveDynamics(0.05).tolerance_of(5e-3)
    assert np.abs(beside - alone).max() <= STEPS * (STEPS + 1) / 2 * tolerance
    np.testing.assert_allclose(other, slope, atol={"float32": 1e-3, "float64": 1e-5}[precision] * np.abs(slope).max())


@pytest.mark.parametrize("far", FAR)
def test_two_of_other_sizes_keep_the_clearance_of_the_finer_one(far):
    """A fine cube on a coarse one: a hundredth of the small edges lies between them, for any body far away."""
    coarse = grid(0.1, "coarse", at=(0, 0, 0.001))
    fine = grid(0.02, "fine", Material(1e5, 0.3, 100.0), at=(0.09, 0.08, 0.2014))
    distant = grid(FAR[far][0], matter=FAR[far][1])
    scene = wb.Scene([coarse, fine, distant], obstacles=[wb.floor()])
    sim = wb.Simulation(scene, wb.ProjectiveDynamics(0.1), dt=1e-2)
    end = to_numpy(sim.rollout(None, 40).final.position)[0]
    body = sim.model.matter.body
    bottom = end[body == 1][:, 2].min()
    top = end[body == 0].reshape(3, 3, 3, 3)[1, 1, 2, 2]
    assert bottom - top == pytest.approx(0.01 * 0.02 * 1.2, rel=0.35)


def limited(more: list) -> wb.Simulation:
    """A bone that a motor presses against a limit without a given stiffness."""
    soft = wb.SoftBody("arm", Box((0, -0.03, -0.03), (0.16, 0.03, 0.03)), SOFT)
    bone = wb.RigidBody("bone", Box((0.0, -0.015, -0.015), (0.16, 0.015, 0.015)))
    hinge = wb.Joint(
        "hinge", "revolute", None, "bone", position=(0.0, 0.0, 0.0), axis=(0.0, 1.0, 0.0), lower=-0.01, upper=0.01
    )
    return wb.Simulation(wb.Scene([soft, bone, *more], joints=[hinge]), wb.ProjectiveDynamics(0.015), dt=5e-3)


def test_limits_of_joints_stop_what_hangs_on_them():
    """Default limits are for the inertia of what a joint carries, not for that of soft matter elsewhere."""
    alone, beside = limited([]), limited([grid(0.4, matter=Material(2e7, 0.4, 4000.0))])
    k = [to_numpy(sim.parameter("limit_stiffness")) for sim in (alone, beside)]
    np.testing.assert_allclose(k[1], k[0], rtol=1e-6)
    ends = [to_numpy(sim.rollout(None, 8).final.q) for sim in (alone, beside)]
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-6)


@pytest.mark.parametrize("far", [Material(3e4, 0.25, 300.0), Material(2e5, 0.25, 3000.0)], ids=["light", "heavy"])
@pytest.mark.parametrize("solver", [wb.MassSpring(0.05, collision=1.0), wb.MPM(0.025)], ids=lambda s: type(s).__name__)
def test_it_changes_no_motion_of_other_solvers(solver, far):
    """With the same substeps, on a sampled obstacle whose samples stay in place."""
    matter = Material(1e5, 0.25, 1000.0)
    lower = wb.SoftBody("lower", Box((0, 0, 0.001), (0.1, 0.1, 0.101)), matter)
    upper = wb.SoftBody("upper", Box((0.03, 0.02, 0.152), (0.13, 0.12, 0.252)), matter, velocity=(0.2, 0, -2.5))
    distant = wb.SoftBody("far", Box((2, 0, 0.01), (2.3, 0.3, 0.31)), far)
    bed = wb.Obstacle(Cylinder((0.05, -0.2, -0.05), (0.05, 0.3, -0.05), 0.05), name="bed")
    ends = []
    for more in ([], [distant]):
        sim = wb.Simulation(wb.Scene([lower, upper, *more], obstacles=[bed]), solver, dt=1e-3, substeps=20)
        end = to_numpy(sim.rollout(None, 30).final.position)[0]
        ends.append(end[np.isin(sim.model.matter.body, (0, 1))])
    np.testing.assert_allclose(ends[1], ends[0], atol={"float32": 2e-6, "float64": 1e-12}[precision])
