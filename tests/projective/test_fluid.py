"""Drag and thrust of a fluid: closed forms, and the force on every face written anew in NumPy."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from soft_bodies import BARS, JOINTS, beam, cloth, driven, forces_at, iterations, simulation, swimming

from warpbots.scene import Fluid, Material, Scene, SceneError, Sheet, SoftBody, Truss
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics

pytestmark = pytest.mark.verification

RHO, CD, AREA, THICKNESS, DENSITY = 1000.0, 0.8, 0.16 * 0.12, 0.01, 1200.0
MASS = DENSITY * AREA * THICKNESS
DRAG = 0.5 * RHO * CD * 2.0 * AREA
"""Drag of both faces of the plate over the square of its speed [kg/m]."""


FLUID = Fluid(RHO, drag=CD, thrust=0.0)


def plate(velocity=(0.0, 0.0, 0.0), gravity=(0.0, 0.0, 0.0), fluid=FLUID) -> Scene:
    sheet = Sheet.rectangle((0, 0), (0.16, 0.12), THICKNESS, (4, 3))
    body = SoftBody("plate", sheet, Material(1e6, 0.3, DENSITY), velocity=velocity)
    return Scene((body,), gravity=gravity, fluid=fluid)


def rolled(scene: Scene, h: float, steps: int):
    sim = Simulation(scene, ProjectiveDynamics(0.04, tolerance=1e-12, collisions=False), h)
    state = sim.state()
    for _ in range(steps):
        state = sim.step(state, torch.zeros(sim.channels))
    return sim, state


@pytest.mark.parametrize("way", [(0.0, 0.0, 1.0), (0.6, 0.0, 0.8), (0.0, 1.0, 0.0)])
def test_a_coasting_plate_slows_down(way):
    """A step ends where m (v' - v) / h = -k v'^2; the limit is v_0 / (1 + v_0 t k / m), reached with order 1."""
    speed, time = 2.0, 0.2
    errors = []
    for steps in (20, 40, 80):
        h = time / steps
        sim, state = rolled(plate(speed * np.array(way)), h, steps)
        v = state.velocity[0].numpy()
        exact = speed
        for _ in range(steps):
            exact = (math.sqrt(1.0 + 4.0 * h * DRAG / MASS * exact) - 1.0) / (2.0 * h * DRAG / MASS)
        np.testing.assert_allclose(v, np.tile(exact * np.array(way), (len(v), 1)), atol=1e-9)
        errors.append(exact - speed / (1.0 + speed * time * DRAG / MASS))
    order = np.log2(np.array(errors)[:-1] / np.array(errors)[1:])
    assert (np.abs(order - 1.0) < 0.1).all(), order


def test_a_falling_plate_reaches_its_terminal_velocity():
    """v = sqrt(m g / k) of both faces, without buoyancy."""
    _, state = rolled(plate(gravity=(0.0, 0.0, -9.81)), 0.05, 60)
    v = state.velocity[0].numpy()
    np.testing.assert_allclose(v[:, 2], -math.sqrt(MASS * 9.81 / DRAG), rtol=1e-9)


def test_a_plate_takes_on_the_velocity_of_the_stream():
    stream = (0.3, -0.4, 0.5)
    scene = plate(fluid=Fluid(RHO, stream, CD, 0.0))
    _, state = rolled(scene, 0.01, 1)
    assert 0.0 < float((state.velocity[0].mean(0) * torch.tensor(stream)).sum()) < 0.5
    with_it = dataclasses.replace(scene, bodies=(dataclasses.replace(scene.bodies[0], velocity=stream),))
    _, state = rolled(with_it, 0.01, 3)
    np.testing.assert_allclose(state.velocity[0].numpy(), np.tile(stream, (20, 1)), atol=1e-12)


def test_there_is_no_force_at_rest():
    scene = beam()
    x = simulation(scene).model.matter.position
    still = dataclasses.replace(scene, fluid=Fluid(RHO))
    np.testing.assert_array_equal(forces_at(simulation(still), x), forces_at(simulation(scene), x))


def force_of(fluid: Fluid, x: np.ndarray, v: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """Force on every face [N] as the paper of SoftCon has it, shape (n, 3)."""
    normal = np.cross(x[faces[:, 1]] - x[faces[:, 0]], x[faces[:, 2]] - x[faces[:, 0]]) / 2.0
    area = np.linalg.norm(normal, axis=1, keepdims=True)
    normal = normal / area
    v = v[faces].mean(1) - np.array(fluid.velocity)
    speed = np.linalg.norm(v, axis=1, keepdims=True)
    attack = np.pi / 2 - np.arccos((normal * v).sum(1, keepdims=True) / speed)
    c_d, c_t = (
        np.interp(np.sin(attack), np.sin([a for a, _ in table]), [c for _, c in table])
        for table in (fluid.drag, fluid.thrust)
    )
    return -0.5 * fluid.density * area * speed**2 * (c_d * v / speed + c_t * normal)


@pytest.mark.parametrize("case", ["solid", "sheet"])
def test_momentum_changes_by_the_force_on_all_faces(case, rng):
    """Sums of m (v' - v) and of x' x m (v' - v) are those of the faces at the end of the step, times h."""
    fluid = Fluid(RHO, (0.3, -0.2, 0.1))
    scene = driven() if case == "solid" else cloth()
    scene = dataclasses.replace(scene, fluid=fluid, gravity=(0.0, 0.0, 0.0), constraints=(), loads=())
    sim = simulation(scene)
    mesh, rest = sim.model.matter, sim.state()
    v = torch.as_tensor(rng.uniform(-0.5, 0.5, rest.velocity.shape)) + torch.tensor([1.0, 0.5, -0.3])
    end = sim.step(sim.state(velocity=v), torch.zeros(sim.channels))
    faces = mesh.meshes[0].faces
    faces = np.concatenate([faces, faces[:, ::-1]]) if case == "sheet" else faces
    x, now = end.position[0].numpy(), end.velocity[0].numpy()
    change = (mesh.volume * mesh.density)[:, None] * (now - v[0].numpy())
    force = force_of(fluid, x, now, faces)
    at = np.zeros_like(x)
    np.add.at(at, faces, force[:, None] / 3.0)
    assert np.abs(change).sum() > 1e-3
    np.testing.assert_allclose(change.sum(0), sim.dt * force.sum(0), rtol=1e-8)
    np.testing.assert_allclose(np.cross(x, change).sum(0), sim.dt * np.cross(x, at).sum(0), rtol=1e-7)


def test_a_turned_scene_moves_as_the_other_one():
    """Body, stream, velocity and gravity turned together."""
    turn = Rotation.from_rotvec([0.4, -1.1, 0.7]).as_matrix()
    ends = []
    for R in (np.eye(3), turn):
        sheet = cloth().bodies[0].shape
        sheet = Sheet(sheet.vertices @ R.T, sheet.faces, sheet.thickness, sheet.bending)
        body = SoftBody("cloth", sheet, Material(1e5, 0.3, 800.0), velocity=tuple(R @ [1.0, 0.2, -0.5]))
        fluid = Fluid(RHO, tuple(R @ [0.1, 0.4, 0.2]))
        _, state = rolled(Scene((body,), gravity=tuple(R @ [0.0, 0.0, -9.81]), fluid=fluid), 5e-3, 5)
        ends.append(state.position[0].numpy() @ R)
    np.testing.assert_allclose(ends[1], ends[0], atol=1e-10)


@pytest.mark.parametrize("case", ["solid", "sheet"])
def test_fast_flow_converges(case):
    """In steps of 5 ms in water: a solid at 10 m/s, and cloth at 3 m/s, which the fluid all but stops in one."""
    sim = simulation(swimming(driven() if case == "solid" else cloth()), tolerance=1e-8)
    rest = sim.state()
    speed = 10.0 if case == "solid" else 3.0
    state = sim.state(velocity=rest.velocity + speed * torch.tensor([1.0, 0.3, -0.5]))
    for _ in range(5):
        state = sim.step(state, torch.zeros(sim.channels))
        assert iterations(sim) < 300


TABLES = {
    "degrees": (((-90.0, 0.0), (90.0, 1.0)), r"angles of attack of drag must increase from -pi/2 to pi/2 \[rad\], got \[-90.0, 90.0\]; turn degrees into radians"),
    "back": (((-math.pi / 2, 0.0), (0.5, 1.0), (0.2, 1.0), (math.pi / 2, 1.0)), "angles of attack of drag must increase"),
    "one": (((math.pi / 2, 0.0),), "angles of attack of drag must increase"),
    "shape": ((1.0, 2.0, 3.0), "drag must be a finite number or a list of lists of 2 finite numbers"),
    "nan": (float("nan"), "drag must be a finite number or a list of lists of 2 finite numbers"),
}  # fmt: skip


@pytest.mark.parametrize("fault", TABLES)
def test_tables_that_are_none(fault):
    table, message = TABLES[fault]
    with pytest.raises(SceneError, match=f"Fluid: {message}"):
        Fluid(RHO, drag=table)


def test_other_faults():
    with pytest.raises(SceneError, match=r"Fluid: density must be positive \[kg/m\^3\], got 0; for no fluid use"):
        Fluid(0.0)
    with pytest.raises(SceneError, match="Fluid.velocity is 2D in a 3D scene"):
        plate(fluid=Fluid(RHO, (1.0, 0.0)))
    mast = SoftBody("mast", Truss(JOINTS, BARS, 4e-3), Material(1e6))
    with pytest.raises(SceneError, match="Fluid: it acts on surfaces, and bars of trusses have none"):
        simulation(Scene((mast,), fluid=Fluid(RHO)))
