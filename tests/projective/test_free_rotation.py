"""Bodies that turn freely: what their inertia alone resists, the iteration does not resist either."""

import dataclasses

import numpy as np
import pytest
import torch
import warp as wp
from scipy.linalg import block_diag
from soft_bodies import beam, iterations, swimming, truss

from warpbots.numerics import precision, real, real_numpy
from warpbots.scene import Attachment, Box, Material, RigidBody, Scene, SoftBody, floor
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics
from warpbots.solvers.projective.elements.element import Point
from warpbots.solvers.projective.forces import evaluate_rest
from warpbots.solvers.projective.global_step import GlobalStep

H = 1 / 30
STIFF = Material(1e6, 0.45, 1000.0, "corotated")
CUBE = SoftBody("cube", Box((0, 0, 0), (0.08, 0.08, 0.08)), STIFF)


def far(distance: float) -> SoftBody:
    return SoftBody("far", Box((distance, 0, 0), (distance + 0.08, 0.08, 0.04)), STIFF)


def rotations(x: np.ndarray, mass: np.ndarray, body: np.ndarray) -> np.ndarray:
    """Z: displacements of all nodes per rotation of each body about its centre of mass, shape (3 n, 3 bodies)."""
    columns = []
    for b in range(body.max() + 1):
        center = (mass * (body == b)) @ x / mass[body == b].sum()
        for axis in np.eye(3):
            columns.append((np.cross(axis, x - center) * (body == b)[:, None]).reshape(-1))
    return np.array(columns).T


@pytest.mark.verification
@pytest.mark.parametrize("splitting", [False, True])
def test_a_global_step_has_the_inertia_of_bodies_where_they_turn(splitting, rng):
    """B agrees with the inertia on rotations and with A across them, written with dense matrices; A is scaled."""
    solver = ProjectiveDynamics(0.04, splitting=splitting)
    model = solver.build(Scene((CUBE, far(0.2))))
    model.youngs_modulus.assign(1.7 * model.youngs_modulus.numpy())
    state, control = solver.state(model), wp.zeros((1, 0), dtype=real)
    start = state.position.flatten()
    point = Point(model.workspace.everywhere, control, start, model.workspace.zero, real(H), state.time)
    evaluate_rest(model, point)
    matrix = model.matrices.of(H)
    n = model.topology.sizes.nodes
    wide = np.zeros((2, model.topology.sizes.stride, 4), dtype=real_numpy)
    wide[:, :n, :3] = 0.01 * rng.normal(size=(2, n, 3))
    u, r, f = (wp.array(a, dtype=matrix.iteration.history.z.dtype) for a in (*wide, np.zeros_like(wide[0])))
    x, v = state.position.flatten(), state.velocity.flatten()
    step = GlobalStep(model, matrix, x)
    step.measure(v, point)
    gain = matrix.rotation.gain.numpy()
    step.place(model.workspace.everywhere, u)
    step.solve(model.workspace.everywhere, r, f, linear=True)

    particles, bodies = model.matter, model.topology.mesh.body
    mass = particles.density * particles.volume
    L = model.matrices.stiffness.toarray()
    L = np.diag(np.maximum(L.diagonal(), np.abs(L).sum(axis=1) / 2.0)) if splitting else L
    A = 1.7 * np.kron(L + np.diag(mass / H**2), np.eye(3))
    M = np.repeat(mass, 3)
    start = rotations(particles.position, mass, bodies)
    E_H, E_A = (start.T * M) @ start / H**2, start.T @ A @ start
    expected = np.linalg.inv(E_H) - np.linalg.inv(E_A)
    np.testing.assert_allclose(block_diag(*gain), expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())
    Z = rotations(particles.position + wide[0, :n, :3], mass, bodies)
    b = wide[1, :n, :3].reshape(-1)
    solution = np.linalg.solve(A, b) + Z @ (expected @ (Z.T @ b))
    np.testing.assert_allclose(f.numpy()[:n, :3].reshape(-1), solution, rtol=1e-8, atol=1e-12 * np.abs(solution).max())
    rotated = f.numpy()[:n, :3].reshape(-1)
    assert rotated @ b > 2.0 * (np.linalg.solve(A, b) @ b)  # or there was nothing to see


FREE = {
    "alone": (lambda: Scene((CUBE,)), [0]),
    "two": (lambda: Scene((CUBE, far(0.2))), [0, 1]),
    "held": (beam, [-1]),
    "attached": (
        lambda: Scene((CUBE, far(0.08)), attachments=(Attachment("glue", "cube", "far", ((0.08, 0.04, 0.02),)),)),
        [0, 0],
    ),
    "with a bone": (
        lambda: Scene((CUBE, far(0.2), RigidBody("bone", Box((-0.02,) * 3, (0.02,) * 3), position=(0.04, 0.04, 0.04)))),
        [-1, 0],
    ),
    "bars": (lambda: dataclasses.replace(truss(), constraints=()), [-1]),
    "in water": (lambda: swimming(Scene((CUBE,))), [-1]),
}


@pytest.mark.parametrize("case", FREE)
def test_which_bodies_turn_freely(case):
    """Those that nothing fixes; attached ones together; not bars alone, which may have no inertia about their axis."""
    make, expected = FREE[case]
    model = ProjectiveDynamics(0.02).build(make())
    rotation, body = model.matrices.of(H).rotation, model.topology.mesh.body
    numbers = rotation.body.numpy()
    for soft, number in zip(np.unique(body), expected, strict=True):
        assert set(numbers[body == soft]) == {number}
    assert rotation.count == max(expected) + 1


def test_a_stiff_block_that_tips_over_takes_few_iterations():
    """It lands on an edge, tips and comes to rest on a face: hundreds of iterations where A alone resists turning."""
    scene = Scene((CUBE,), obstacles=(floor(friction=0.8),))
    start = Simulation(scene, ProjectiveDynamics(0.04), H)
    x = start.state().position.clone()
    angle = 0.6
    R = torch.tensor(
        [[np.cos(angle), 0.0, np.sin(angle)], [0.0, 1.0, 0.0], [-np.sin(angle), 0.0, np.cos(angle)]], dtype=x.dtype
    )
    x = x @ R.T
    x[..., 2] -= x[..., 2].min()
    state, most = start.state(position=x), 0
    for _ in range(45):
        state = start.step(state, torch.zeros(0))
        most = max(most, iterations(start))
    assert most < 150
    low = state.position[0, :, 2] < 1e-4
    assert int(low.sum()) >= 9  # a face


def test_a_body_that_spins_fast_is_not_torn():
    """2 rad in a step: free flight along straight paths would swell it to twice its size and invert it."""
    sim = Simulation(Scene((CUBE,), gravity=(0.0, 0.0, 0.0)), ProjectiveDynamics(0.04), H)
    start = sim.state()
    arm = start.position - start.position.mean(dim=1, keepdim=True)
    spin = 2.0 / H * torch.tensor([0.0, 0.0, 1.0], dtype=arm.dtype)
    state = sim.state(velocity=torch.linalg.cross(spin.expand_as(arm), arm))
    end = sim.step(state, torch.zeros(0)).position[0].double().cpu().numpy()
    assert iterations(sim) < 60
    tets, rest = sim.model.matter.tets, sim.model.matter.position
    volumes = [np.linalg.det(y[tets[:, 1:]] - y[tets[:, :1]]) for y in (end, rest)]
    np.testing.assert_allclose(volumes[0] / volumes[1], 1.0, atol=0.1)
    assert np.linalg.norm(end - sim.state().position[0].double().cpu().numpy(), axis=1).max() > 0.02


def test_nothing_else_depends_on_it():
    """The end of a step is the same without: two worlds' motions agree to the tolerance of the steps."""
    tolerance = {"float32": 1e-5, "float64": 1e-9}[precision]
    velocity, ends = torch.tensor([[[0.3, 0.1, -1.0]]]), []
    for free in (True, False):
        sim = Simulation(Scene((CUBE,), obstacles=(floor(friction=0.5),)), ProjectiveDynamics(0.04, tolerance), 1 / 240)
        if not free:
            sim.model.matrices.of(1 / 240).rotation.count = 0
        state = sim.state(velocity=velocity.to(sim.state().velocity))
        for _ in range(10):
            state = sim.step(state, torch.zeros(0))
        ends.append(state.position)
    assert float((ends[0] - ends[1]).abs().max()) < 200 * tolerance * sim.model.matter.edge
