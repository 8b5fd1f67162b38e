"""Where iterations converge slowly: a step ends where its equations hold, not where corrections are small."""

import dataclasses

import numpy as np
import pytest
import torch
import warp as wp
from scipy.sparse import coo_matrix
from scipy.sparse.linalg import spsolve
from soft_bodies import sliding

from warpbots.numerics import precision
from warpbots.scene import Box, Cable, Constraint, HalfSpace, Material, Scene, SoftBody, floor
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics
from warpbots.solvers.projective.islands import Islands
from warpbots.solvers.projective.iterate.anderson_arrays import IterationState
from warpbots.solvers.projective.iterate.newton import forcing_kernel

NU, RHO, G = 0.45, 1070.0, 9.81
SINGLE = precision == "float32"


def finger(youngs_modulus: float) -> Scene:
    """A slender bar that is held at an end, of nearly incompressible matter: corrections are a thousandth of errors."""
    body = SoftBody(
        "finger",
        Box((0, 0, 0), (0.09, 0.015, 0.015)),
        Material(youngs_modulus, NU, RHO, "neo_hookean"),
        {"root": HalfSpace((1e-6, 0, 0), (1, 0, 0))},
    )
    return Scene((body,), constraints=(Constraint("root"),), gravity=(0.0, 0.0, -G))


def linear_sag(sim: Simulation, youngs_modulus: float) -> np.ndarray:
    """Displacements under the weight by linear elasticity, assembled and solved in double precision [m]."""
    mesh = sim.model.matter
    x, tets = mesh.position.astype(float), mesh.tets
    mu, la = youngs_modulus / (2 + 2 * NU), youngs_modulus * NU / ((1 + NU) * (1 - 2 * NU))
    D = np.swapaxes(x[tets[:, 1:]] - x[tets[:, :1]], 1, 2)
    G_ = np.linalg.inv(D)
    gradient = np.concatenate([-G_.sum(axis=1, keepdims=True), G_], axis=1)  # of the shape functions, (t, 4, 3)
    volume = np.abs(np.linalg.det(D)) / 6
    eye = np.eye(3)
    blocks = mu * np.einsum("tak,tbk,ij->tabij", gradient, gradient, eye)
    blocks += mu * np.einsum("taj,tbi->tabij", gradient, gradient) + la * np.einsum(
        "tai,tbj->tabij", gradient, gradient
    )
    blocks *= volume[:, None, None, None, None]
    at = 3 * tets[:, :, None] + np.arange(3)
    rows = np.broadcast_to(at[:, :, None, :, None], blocks.shape)
    columns = np.broadcast_to(at[:, None, :, None, :], blocks.shape)
    K = coo_matrix((blocks.ravel(), (rows.ravel(), columns.ravel()))).tocsr()
    force = np.zeros((len(x), 3))
    np.add.at(force, tets, (-G * RHO * volume / 4)[:, None, None] * np.array([0.0, 0.0, 1.0]))
    free = np.flatnonzero(np.repeat(x[:, 0] > 1e-6, 3))
    u = np.zeros(3 * len(x))
    u[free] = spsolve(K[free][:, free].tocsc(), force.reshape(-1)[free])
    return u.reshape(-1, 3)


@pytest.mark.verification(float32=True)
def test_a_stiff_finger_sags_as_linear_elasticity_has_it():
    """Under a twentieth of its weight, 0.3 % of an edge; where only corrections were small it was up to twice that."""
    scene = dataclasses.replace(finger(1e6), gravity=(0.0, 0.0, -0.05 * G))
    sim = Simulation(scene, ProjectiveDynamics(0.015, collisions=False), 0.5)
    state = sim.state()
    for _ in range(8):
        state = sim.step(state, torch.zeros(0))
    sag = 0.05 * linear_sag(sim, 1e6)[:, 2]
    found = (state.position - sim.state().position)[0, :, 2].double().numpy()
    assert np.abs(found - sag).max() < (0.02 if SINGLE else 0.001) * np.abs(sag).max()


@pytest.mark.verification
@pytest.mark.parametrize(
    ("scene", "dt"),
    [(lambda: finger(1e6), 0.02), (lambda: finger(1e5), 0.005), (lambda: sliding("corotated", (floor(friction=0.3),)), 0.01)],
    ids=["stiff", "soft", "contact"],
)  # fmt: skip
def test_a_tolerance_is_an_error(scene, dt):
    """Each of ten steps ends within three tolerances of where a far smaller tolerance ends it."""
    cell = 0.0075 if dt != 0.01 else 0.04
    coarse, fine = (Simulation(scene(), ProjectiveDynamics(cell, t, collisions=False), dt) for t in (1e-5, 1e-11))
    state, edge = fine.state(), fine.model.matter.edge
    for _ in range(10):
        there = coarse.step(state, torch.zeros(fine.model.channels)).position
        state = fine.step(state, torch.zeros(fine.model.channels))
        assert (there - state.position).norm(dim=-1).max() < 3e-5 * edge


@pytest.mark.verification(float32=True)
def test_a_finger_that_hangs_down_is_found_from_rest():
    """A step of a second from straight to bent by its length, in either precision."""
    sim = Simulation(finger(1e5), ProjectiveDynamics(0.0075, collisions=False), 1.0)
    rest = sim.equilibrium()
    again = sim.step(rest, torch.zeros(0))
    assert (again.position - rest.position).abs().max() < (1e-4 if SINGLE else 1e-7) * sim.model.matter.edge
    assert rest.position[0, :, 2].min() < -0.02


def test_only_newton_steps_that_estimate_no_error_are_solved_less_accurately():
    """Those that begin at a correction above a bound, here 1e-3 edges of their own island."""
    islands, progress = Islands(), IterationState()
    islands.length = wp.array([0.1, 0.1, 0.2], dtype=wp.float64)
    progress.correction = wp.array([1.1e-4, 0.9e-4, 1.1e-4], dtype=wp.float64)
    forcing = wp.zeros(3, dtype=wp.float64)
    wp.launch(forcing_kernel, 3, [islands, 1e-3, 1e-3, 1e-4, progress], [forcing])
    np.testing.assert_array_equal(forcing.numpy(), [1e-3, 1e-4, 1e-4])


@pytest.mark.skipif(not SINGLE, reason="of single precision")
def test_a_bar_that_begins_to_sag_takes_two_newton_steps():
    """The second step begins at 2e-3 edges, where it is solved accurately; a third one took a quarter of the time."""
    body = SoftBody(
        "bar",
        Box((0, 0, 0), (0.32, 0.08, 0.08)),
        Material(1e5, 0.3, 1000.0, "corotated"),
        {"root": HalfSpace((1e-6, 0, 0), (1, 0, 0))},
    )
    scene = Scene((body,), constraints=(Constraint("root"),), gravity=(0.0, 0.0, -2 * G))
    sim, exact = (
        Simulation(scene, ProjectiveDynamics(0.016, tolerance=t, collisions=False), 0.01) for t in (None, 5e-7)
    )
    state = sim.state()
    for _ in range(2):
        true = exact.step(state, torch.zeros(0))
        state = sim.step(state, torch.zeros(0))
        assert sim.report().iterations[0] == 3
        assert (state.position - true.position).abs().max() < 1e-5 * sim.model.matter.edge


@pytest.mark.skipif(not SINGLE, reason="of single precision")
def test_a_tolerance_below_rounding_is_refused():
    with pytest.raises(
        ValueError, match=r"at least 5e-07 \[mean edges\] in float32, got 1e-09; use WARPBOTS_PRECISION=float64"
    ):
        ProjectiveDynamics(0.01, tolerance=1e-9)


def test_a_step_depends_on_its_state_alone():
    """Equal to the bit after other steps and in a simulation that has made none, Newton steps and their changes too."""
    cable = Cable("tendon", [(0.0, 0.0075, 0.015), (0.045, 0.0075, 0.015), (0.09, 0.0075, 0.015)], 50.0)
    scene = dataclasses.replace(finger(1e5), actuators=(cable,))
    used, fresh = (Simulation(scene, ProjectiveDynamics(0.0075, collisions=False), 0.02) for _ in range(2))
    mesh = used.model.matter
    third = (3 * mesh.position[mesh.tets].mean(axis=1)[:, 0] / 0.09).astype(int)
    E = torch.tensor([59511.0938, 118825.4219, 233609.2031])[third].to(used.parameter("youngs_modulus"))
    control, state = torch.tensor([[0.3]]), used.state()
    state = used.step(state, control, youngs_modulus=E)
    ends = [sim.step(state, control, youngs_modulus=E).position for sim in (used, fresh, used)]
    assert torch.equal(ends[0], ends[1]) and torch.equal(ends[0], ends[2])


@pytest.mark.parametrize("tolerance", [1e-5, 1e-4])
@pytest.mark.parametrize(("youngs_modulus", "density", "friction"), [(1e4, 200.0, 0.6), (3e4, 500.0, 0.4)])
def test_the_adjoint_of_a_soft_body_at_rest_ends_at_rounding(youngs_modulus, density, friction, tolerance):
    """Friction stops a block, and its sticking contacts take nearly all of the gradient: the adjoint displacements are
    a millionth of those without contact, and rounding of the latter was above any tolerance of the former. The floor is
    the same everywhere, so a block that starts further ahead stops further ahead by as much.
    """
    matter = Material(youngs_modulus, 0.3, density, "corotated")
    block = SoftBody("block", Box((0, 0, 0), (0.08, 0.06, 0.04)), matter, friction=friction)
    scene = Scene((block,), obstacles=(floor(friction=friction),))
    solver = ProjectiveDynamics(0.02, elements="tetrahedra", tolerance=tolerance)
    sim = Simulation(scene, solver, dt=5e-3)
    position = sim.state().position.requires_grad_()
    velocity = torch.zeros_like(position)
    velocity[..., 0] = 0.2
    end = sim.rollout(None, 60, sim.state(position=position, velocity=velocity)).final
    (slope,) = torch.autograd.grad(end.position[..., 0].mean(), position)
    assert slope.sum(dim=1)[0, :2].tolist() == pytest.approx([1.0, 0.0], abs=1e-5)
