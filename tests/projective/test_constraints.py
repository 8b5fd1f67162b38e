"""Lines and planes: falls along them, a block between plates, exactness in contact, and what meets at an edge."""

import dataclasses

import numpy as np
import pytest
import torch
from cases import to_numpy
from soft_bodies import simulation, sliding

from warpbots.numerics import precision
from warpbots.scene import Box, Constraint, Expansion, HalfSpace, Material, Scene, SoftBody, floor

pytestmark = pytest.mark.verification(float32=True)

EXACT = {"float32": 1e-7, "float64": 1e-15}[precision]
DIRECTION = np.array((1.0, 0.4, -0.3)) / np.linalg.norm((1.0, 0.4, -0.3))


def cube(*constraints: Constraint, actuators=(), **parts) -> Scene:
    """A cube of 8 cm with its faces as regions."""
    box = Box((0, 0, 0), (0.08, 0.08, 0.08))
    faces = {f"{axis}{k}": HalfSpace(tuple(0.08 * k * n), tuple((1 - 2 * k) * n))
             for axis, n in zip("xyz", np.eye(3), strict=True) for k in (0, 1)}  # fmt: skip
    faces = {
        name: HalfSpace(tuple(np.array(f.point) + 1e-6 * np.array(f.normal)), f.normal) for name, f in faces.items()
    }
    body = SoftBody("cube", box, Material(1e5, 0.3, 1000.0, "corotated"), regions=faces | {"all": box})
    return Scene((body,), actuators, constraints=constraints, **parts)


@pytest.mark.parametrize("freedom", ["line", "plane"])
def test_what_is_held_everywhere_falls_freely_along_its_constraint(freedom):
    """v = t P g for the projection P onto the line or the plane, and x = X + h sum v, for all nodes alike."""
    sim = simulation(cube(Constraint("all", freedom, tuple(DIRECTION))), tolerance=None)
    P = np.outer(DIRECTION, DIRECTION)
    P = P if freedom == "line" else np.eye(3) - P
    end = sim.rollout(None, 10, sim.state(velocity=torch.tensor([0.3, -0.2, 0.1]) + 0.0 * sim.state().velocity)).final
    g, first = P @ (0.0, 0.0, -9.81), P @ (0.3, -0.2, 0.1)
    v = to_numpy(end.velocity)[0]
    np.testing.assert_allclose(v, np.broadcast_to(first + 10 * sim.dt * g, v.shape), atol=2e-5)
    moved = to_numpy(end.position)[0] - sim.model.matter.position
    np.testing.assert_allclose(moved, moved[:1] + np.zeros_like(moved), atol=1e-7)
    np.testing.assert_allclose(moved[0], 10 * sim.dt * first + 55 * sim.dt**2 * g, atol=1e-6)
    assert np.abs(moved @ (np.eye(3) - P)).max() <= 20 * EXACT


def test_a_block_between_plates_swells_where_it_can():
    """Swollen by e between plates across y and z: F_x = (1 + e) (1 - 2 nu/(1 - nu) (1/(1 + e) - 1)) for its law."""
    plates = [Constraint(f"{a}{k}", "plane", tuple(n), f"{a}{k}") for a, n in zip("yz", np.eye(3)[1:], strict=True)
              for k in (0, 1)]  # fmt: skip
    wall = Constraint("x0", "plane", (1, 0, 0), "wall")
    scene = cube(*plates, wall, actuators=(Expansion("swell", "all", 0.1),), gravity=(0.0,) * 3)
    sim = simulation(scene, tolerance=None)
    end = sim.rollout(torch.ones(60, 1), 60).final
    x, X = to_numpy(end.position)[0], sim.model.matter.position
    stretch = 1.1 * (1.0 - 2.0 * 0.3 / 0.7 * (1.0 / 1.1 - 1.0))
    np.testing.assert_allclose(x, X * (stretch, 1.0, 1.0), atol=1e-4)
    for side in ("y0", "y1"):
        held = sim.model.matter.regions[side]
        assert (x[held, 1] == to_numpy(sim.state().position)[0][held, 1]).all()


def test_a_plane_holds_in_contact_and_friction_is_that_of_coulomb():
    """A cube slides over a floor in an oblique upright plane: no node of it leaves it, and it slows down by mu g."""
    scene = sliding("corotated", (floor(friction=0.3),), (1.0, 1.0, 0.0))
    scene = dataclasses.replace(scene, constraints=(Constraint("top", "plane", (1.0, -1.0, 0.0)),), actuators=())
    sim = simulation(scene, tolerance=None)
    end = sim.rollout(None, 20).final
    x, X = to_numpy(end.position)[0], sim.model.matter.position
    held = sim.model.matter.regions["top"]
    assert np.abs((x - X)[held] @ (1.0, -1.0, 0.0)).max() <= 50 * EXACT
    mass = sim.model.matter.density * sim.model.matter.volume
    v = mass @ to_numpy(end.velocity)[0] / mass.sum()
    assert np.hypot(*v[:2]) == pytest.approx(np.sqrt(2.0) - 0.3 * 9.81 * 20 * sim.dt, rel=0.03)


def test_where_planes_meet_all_of_them_hold():
    """Nodes in two planes move along their edge, and those in three are fixed."""
    planes = [Constraint(f"{a}0", "plane", tuple(n), a) for a, n in zip("xyz", np.eye(3), strict=True)]
    sim = simulation(cube(*planes), tolerance=None)
    assert int(sim.model.topology.fixed.sum()) == 1
    x = to_numpy(sim.rollout(None, 10).final.position)[0] - sim.model.matter.position.astype(np.float64)
    regions = sim.model.matter.regions
    for k, axis in enumerate("xyz"):
        assert np.abs(x[regions[f"{axis}0"], k]).max() < 1e-8
    edge = regions["x0"] & regions["y0"]
    assert np.abs(x[edge, 2]).max() > 1e-6


def planes_at_a_corner() -> Scene:
    """A cube whose corner is held by three oblique planes, and whose opposite side is fixed."""
    normals = np.array([(1.0, 0.2, 0.1), (-0.3, 1.0, 0.2), (0.1, 0.4, 1.0)])
    planes = [Constraint(f"{a}0", "plane", tuple(n), a) for a, n in zip("xyz", normals, strict=True)]
    return cube(*planes, Constraint("x1"), gravity=(0.0,) * 3)


def test_what_planes_hold_stays_where_a_state_puts_it():
    """Nodes in one, two and three planes keep to those through the place where a motion begins; anchors are others.

    A cube that begins 3 mm beside its place at rest: its fixed side goes back to its anchors at once, and each node
    that planes hold moves by nothing along their normals.
    """
    scene = planes_at_a_corner()
    sim = simulation(scene, tolerance=None)
    regions, X = sim.model.matter.regions, sim.model.matter.position
    count = sum(regions[f"{a}0"].astype(int) for a in "xyz")
    assert sim.parameter("anchor").shape == (1, int(regions["x1"].sum()), 3)
    begin = torch.as_tensor(X + np.array((2e-3, -1e-3, 2e-3)), dtype=sim.state().position.dtype)
    start = sim.state(position=begin)
    end = sim.rollout(None, 3, start).final
    moved = to_numpy(end.position - start.position)[0]
    for constraint in scene.constraints[:3]:
        held = regions[constraint.region] & ~regions["x1"]
        assert np.abs(moved[held] @ constraint.direction).max() < 20 * EXACT
    corner = (count == 3) & ~regions["x1"]
    assert corner.sum() == 1
    assert (moved[corner] == 0.0).all()
    assert np.linalg.norm(moved[(count == 1) & ~regions["x1"]], axis=1).max() > 1e-4
    np.testing.assert_allclose(to_numpy(end.position)[0][regions["x1"]], X[regions["x1"]], atol=1e-8)


def test_moving_anchors_leave_what_planes_hold_where_it_is():
    """Anchors that move carry the fixed side along, and the corner that three planes hold stays, with its gradient."""
    sim = simulation(planes_at_a_corner(), tolerance=None)
    regions = sim.model.matter.regions
    corner = regions["x0"] & regions["y0"] & regions["z0"]
    anchor = (sim.parameter("anchor") + torch.tensor([1e-3, 0.0, 0.0])).requires_grad_(True)
    start = sim.state(position=sim.state().position + 1e-3)
    position = start.position.clone().requires_grad_(True)
    end = sim.step(type(start)(**vars(start) | {"position": position}), torch.zeros(1, 0), anchor=anchor)
    np.testing.assert_allclose(to_numpy(end.position)[:, regions["x1"]], to_numpy(anchor), atol=1e-8)
    end.position[:, corner].sum().backward()
    np.testing.assert_allclose(to_numpy(position.grad)[:, corner], 1.0, rtol=1e-6)
    assert (position.grad[:, ~torch.as_tensor(corner)] == 0.0).all()
    assert (anchor.grad == 0.0).all()


@pytest.mark.parametrize("solver", ["adaptive", "direct", "iterative"])
def test_a_body_whose_every_node_is_held_stays_in_every_solver(solver):
    """There is nothing to solve for then, and the gradient with respect to its stiffness is zero."""
    body = SoftBody("b", Box((0.0, 0.0, 0.0), (0.2, 0.1, 0.1)), Material(1e4), {"all": HalfSpace((1, 0, 0), (1, 0, 0))})
    sim = simulation(Scene((body,), constraints=(Constraint("all"),)), linear_solver=solver)
    E = sim.parameter("youngs_modulus").requires_grad_()
    end = sim.rollout(None, 2, youngs_modulus=E).final
    np.testing.assert_array_equal(to_numpy(end.position), to_numpy(sim.state().position))
    end.position.sum().backward()
    assert (E.grad == 0.0).all()
