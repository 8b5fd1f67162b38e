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
