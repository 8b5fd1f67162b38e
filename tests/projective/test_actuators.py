"""Fibres and pneumatic cells: what they do at rest, in closed form, and what is refused."""

import dataclasses
import math

import numpy as np
import pytest
import torch
from cases import block, lame
from soft_bodies import driven, forces_at, iterations, simulation, strung, swimming

from warpbots.scene import (
    Box,
    Cable,
    Constraint,
    Fibre,
    Fluid,
    HalfSpace,
    Material,
    PneumaticCell,
    Scene,
    SceneError,
    SoftBody,
    Truss,
)
from warpbots.simulation import Simulation, SimulationError
from warpbots.solvers import MPM, Articulated, MassSpring, ProjectiveDynamics

E, NU, K = 1e5, 0.3, 2e5
OTHERS = (("quadratic_tetrahedra", 1.0), ("hexahedra", -0.9))


def free(actuator, law: str = "corotated") -> Scene:
    """A block that nothing holds, with an actuator in all of it."""
    everything = Box((-1, -1, -1), (1, 1, 1))
    body = SoftBody("block", Box((0, 0, 0), (0.16, 0.08, 0.08)), Material(E, NU, 1000.0, law), {"all": everything})
    return Scene((body,), (actuator,), gravity=(0.0, 0.0, 0.0))


def settled(scene: Scene, u: float, elements: str) -> np.ndarray:
    """Extent over that at rest, when long steps of implicit Euler have taken all motion out."""
    sim = Simulation(scene, ProjectiveDynamics(0.04, tolerance=1e-12, collisions=False, elements=elements), 0.1)
    state = sim.state()
    for _ in range(60):
        state = sim.step(state, torch.tensor([u], dtype=torch.float64))
    assert state.velocity.abs().max() < 1e-9
    x = state.position[0].numpy()
    assert np.abs(forces_at(sim, x, u)).max() < 1e-5
    return np.ptp(x, axis=0) / np.ptp(sim.model.matter.position, axis=0)


def test_a_step_that_fails_names_the_cells_that_shrink():
    """Both drive the same elements, and only the stiff one is strong enough to have no equilibrium."""
    cells = PneumaticCell("weak", "all", 1e3, 0.5), PneumaticCell("strong", "all", 1e6, 0.95)
    scene = dataclasses.replace(free(cells[0]), actuators=cells)
    sim = Simulation(scene, ProjectiveDynamics(0.04, max_iterations=8), 0.01, 1)
    said = r"not converge in world 0.*; a cell of PneumaticCell 'strong' is left with 0\.[0-9]+ of its volume.* above 0"
    with pytest.raises(SimulationError, match=said):
        sim.rollout(torch.tensor([[0.0, -1.0]]), 1)


@pytest.mark.verification
@pytest.mark.parametrize(("elements", "u"), [*(("tetrahedra", u) for u in (-0.9, -0.3, 0.5, 1.0)), *OTHERS])
def test_a_free_block_of_cells_grows_to_the_least_energy(elements, u):
    """F = s I: 6 mu (s - 1) + 9 lambda (s - 1) + 3 k (s - a^(1/3)) = 0, for corotated elasticity."""
    mu, lam = lame(E, NU)
    a = 1.0 + 0.6 * u
    elastic = 6.0 * mu + 9.0 * lam
    s = (elastic + 3.0 * K * np.cbrt(a)) / (elastic + 3.0 * K)
    np.testing.assert_allclose(settled(free(PneumaticCell("cell", "all", K, 0.6)), u, elements), s, rtol=1e-9)


@pytest.mark.verification
@pytest.mark.parametrize(("elements", "u"), [*(("tetrahedra", u) for u in (-1.0, 0.5, 1.0)), *OTHERS])
def test_a_free_bar_of_fibres_contracts_to_the_least_energy(elements, u):
    """F = diag(l, t, t): the stress along the fibres and that across them are zero, for corotated elasticity."""
    mu, lam = lame(E, NU)
    length = 1.0 - 0.4 * u
    # 2 mu (l - 1) + lambda (l + 2 t - 3) + k (l - L) = 0,  2 mu (t - 1) + lambda (l + 2 t - 3) = 0
    A = [[2 * mu + lam + K, 2 * lam], [lam, 2 * mu + 2 * lam]]
    l, t = np.linalg.solve(A, [2 * mu + 3 * lam + K * length, 2 * mu + 3 * lam])
    extent = settled(free(Fibre("fibre", "all", (2, 0, 0), K, 0.4)), u, elements)
    np.testing.assert_allclose(extent, [l, t, t], rtol=1e-9)


@pytest.mark.verification
def test_at_rest_nothing_moves():
    sim = simulation(driven())
    assert np.abs(forces_at(sim, sim.model.matter.position) - forces_of_gravity(sim)).max() < 1e-9


def forces_of_gravity(sim: Simulation) -> np.ndarray:
    plain = dataclasses.replace(sim.scene, actuators=())
    plain = simulation(plain)
    return forces_at(plain, plain.model.matter.position)


@pytest.mark.verification
@pytest.mark.parametrize("kind", ["fibre", "cell"])
@pytest.mark.parametrize("share", [1e-3, 1.0, 1e3])
def test_stiffness_from_soft_to_hard_converges(kind, share):
    """Actuators a thousand times as soft and as hard as matter; their weight bounds their second derivative."""
    actuator = (
        Fibre("a", "all", (1, 0.2, 0), share * E, 0.4) if kind == "fibre" else PneumaticCell("a", "all", share * E, 0.6)
    )
    sim = simulation(free(actuator), tolerance=1e-9)
    state = sim.state()
    for _ in range(5):
        state = sim.step(state, torch.tensor([1.0]))
        assert iterations(sim) < 1000


@pytest.mark.verification
def test_momentum_is_kept_by_actuators():
    """Fibres and cells are internal: no force and no torque in sum, sum x' x m (v' - v) = 0."""
    scene = dataclasses.replace(driven(), constraints=(), loads=(), gravity=(0.0, 0.0, 0.0))
    sim = simulation(scene)
    mass = sim.model.matter.volume * sim.model.matter.density
    state = sim.state()
    for _ in range(5):
        last, state = state, sim.step(state, torch.tensor([1.0, 0.8]))
        x, change = state.position[0].numpy(), (state.velocity - last.velocity)[0].numpy()
        p = mass[:, None] * change
        assert np.abs(p).sum() > 1e-3
        assert np.abs(p.sum(0)).max() < 1e-9 * np.abs(p).sum()
        assert np.abs(np.cross(x, p).sum(0)).max() < 1e-9 * np.abs(np.cross(x, p)).sum()


@pytest.mark.verification
def test_an_inverted_cell_turns_right_side_out():
    """Matter without shear stiffness to speak of, one corner pushed through the opposite face."""
    cell = PneumaticCell("cell", "all", 1e5, 0.5)
    scene = free(cell)
    soft = dataclasses.replace(scene.bodies[0], material=Material(1.0, 0.0, 1000.0, "corotated"))
    sim = Simulation(dataclasses.replace(scene, bodies=(soft,)), ProjectiveDynamics(0.08, collisions=False), 5e-3)
    mesh = sim.model.matter
    x = mesh.position.copy()
    corner = int(np.argmin(np.bincount(mesh.tets.reshape(-1), minlength=len(x))))
    tet = mesh.tets[(mesh.tets == corner).any(1)][0]
    x[corner] += 1.3 * (x[tet[tet != corner]].mean(0) - x[corner])

    def least(x):
        now = x[mesh.tets[:, 1:]] - x[mesh.tets[:, :1]]
        return (np.linalg.det(now) / 6.0 / mesh.element_volume[: len(mesh.tets)]).min()

    assert least(x) < -0.1
    state = sim.state(position=torch.as_tensor(x))
    for _ in range(100):
        state = sim.step(state, torch.zeros(1))
    assert least(state.position[0].numpy()) > 0.5


@pytest.mark.verification
def test_worlds_have_parameters_of_their_own(rng):
    """Two worlds with other stiffness, lengths, fluid and signals end where each ends alone."""
    scene = swimming(strung())
    scene = dataclasses.replace(scene, bodies=driven().bodies, actuators=(*driven().actuators, *scene.actuators[2:]))

    def run(values: dict, control: torch.Tensor) -> torch.Tensor:
        sim = Simulation(scene, ProjectiveDynamics(0.04, tolerance=1e-12, collisions=False), 5e-3, worlds=len(control))
        return sim.rollout(control, control.shape[1], **values).final.position

    names = (
        "fibre_stiffness",
        "cell_stiffness",
        "cable_stiffness",
        "cable_length",
        "fluid_density",
        "fluid_velocity",
        "drag",
        "thrust",
    )
    one = simulation(scene)
    values = {
        n: one.parameter(n) * (1 + 0.2 * torch.as_tensor(rng.uniform(-1, 1, (2, *one.parameter(n).shape[1:]))))
        for n in names
    }
    control = torch.as_tensor(rng.uniform(-0.3, 0.3, (2, 4, 4)))
    both = run(values, control)
    for w in range(2):
        torch.testing.assert_close(
            both[w], run({n: v[w : w + 1] for n, v in values.items()}, control[w : w + 1])[0], rtol=0.0, atol=1e-11
        )
    assert (both[0] - both[1]).abs().max() > 1e-4


def chain(cable: Cable) -> Scene:
    """Two bars of 1 mm^2 in a row, held at one end, with a cable through all three joints."""
    joints = np.array([[0.0, 0, 0], [0.1, 0, 0], [0.25, 0, 0]])
    bars = Truss(joints, np.array([[0, 1], [1, 2]]), np.full(2, math.sqrt(1e-6 / math.pi)))
    body = SoftBody("chain", bars, Material(1e8, 0.3, 1000.0), regions={"root": HalfSpace((1e-6, 0, 0), (1, 0, 0))})
    return Scene((body,), (cable,), constraints=(Constraint("root"),), gravity=(0.0, 0.0, 0.0))


@pytest.mark.verification
@pytest.mark.parametrize("u", [-0.5, 0.0, 0.3, 0.6])
def test_a_cable_draws_a_chain_together(u):
    """E A (L - L_0) / L_0 + k max(0, L - R (1 - u)) = 0, with the same strain in both bars."""
    L, k, R, EA = 0.25, 500.0, 0.22, 1e8 * 1e-6
    cable = Cable("cable", ((0, 0, 0), (0.1, 0, 0), (0.25, 0, 0)), k, R)
    sim = Simulation(chain(cable), ProjectiveDynamics(0.04, tolerance=1e-12, collisions=False), 0.1)
    state = sim.state()
    for _ in range(60):
        state = sim.step(state, torch.tensor([u], dtype=torch.float64))
    taut = R * (1.0 - u) < L
    end = (EA + k * R * (1.0 - u)) / (EA / L + k) if taut else L
    np.testing.assert_allclose(state.position[0, :, 0].numpy(), [0.0, 0.4 * end, end], atol=1e-10)


@pytest.mark.verification
@pytest.mark.parametrize("share", [1e-3, 1.0, 1e3])
def test_cables_from_soft_to_hard_converge(share):
    """Cables a thousandth to a thousand times as stiff as the bar, E A / L; wound in by a twentieth."""
    scene = strung()
    hard = [dataclasses.replace(a, stiffness=share * E * 0.08**2 / 0.16) for a in scene.actuators[2:]]
    scene = dataclasses.replace(scene, actuators=(*scene.actuators[:2], *hard), constraints=(), loads=())
    sim = simulation(scene, tolerance=1e-9)
    state = sim.state()
    for _ in range(5):
        state = sim.step(state, torch.tensor([0.0, 0.0, 0.05, 0.0]))
        assert iterations(sim) < 1000


FAULTS = {
    "stiffness": (lambda: Fibre("f", "r", (1, 0, 0), 0.0, 0.3), r"Fibre 'f': stiffness must be positive \[Pa\], got 0"),
    "contraction": (lambda: Fibre("f", "r", (1, 0, 0), 1.0, 1.0), r"Fibre 'f': max_contraction must be in \(0, 1\), got 1; a rest length must stay positive"),
    "direction": (lambda: Fibre("f", "r", (0, 0, 0), 1.0, 0.3), "Fibre 'f': direction must not be the zero vector"),
    "cell stiffness": (lambda: PneumaticCell("c", "r", -1.0, 0.3), r"PneumaticCell 'c': stiffness must be positive \[Pa\], got -1"),
    "expansion": (lambda: PneumaticCell("c", "r", 1.0, 0.0), r"PneumaticCell 'c': max_expansion must be in \(0, 1\), got 0; the sign of the control gives the direction"),
    "far cable": (lambda: simulation(block(3, actuators=(Cable("c", ((0.3, 0.3, 0.3), (0.3, 0.3, 0.9)), 1.0),))), r"Cable 'c': waypoint 1 at \(0.3, 0.3, 0.9\) is 0.4\d* m from the nearest matter, more than 0.04 m"),
    "short cable": (lambda: simulation(block(3, actuators=(Cable("c", ((0.3, 0.3, 0.3), (0.301, 0.3, 0.3)), 1.0),))), "Cable 'c': waypoints 0 and 1 are tied to the same node; space them farther apart, or use a smaller ProjectiveDynamics"),
    "no region": (lambda: block(3, actuators=(Fibre("f", "leg", (1, 0, 0), 1.0, 0.3),)), "Fibre 'f': there is no region 'leg'; the scene has root"),
    "plane": (lambda: block(3, actuators=(Fibre("f", "root", (1, 0), 1.0, 0.3),)), "Fibre 'f' is 2D in a 3D scene"),
    "mpm": (lambda: Simulation(block(3, actuators=(PneumaticCell("c", "root", 1.0, 0.3),)), MPM(0.05), 1e-3), "PneumaticCell 'c': MPM has no actuator with a stiffness of its own; take Muscle or Pressure, or use ProjectiveDynamics"),
    "springs": (lambda: Simulation(block(3, actuators=(Fibre("f", "root", (1, 0, 0), 1.0, 0.3),)), MassSpring(0.05), 1e-3), "Fibre 'f': MassSpring has no such actuator"),
    "mpm fluid": (lambda: Simulation(swimming(block(3)), MPM(0.05), 1e-3), "Scene.fluid: MPM has no fluid around bodies; leave it out or use ProjectiveDynamics"),
    "springs fluid": (lambda: Simulation(swimming(block(3)), MassSpring(0.05), 1e-3), "Scene.fluid: MassSpring has no fluid"),
    "rigid fluid": (lambda: Simulation(swimming(block(3)), Articulated(), 1e-3), "Scene.fluid: it acts on soft bodies"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(fault):
    make, message = FAULTS[fault]
    with pytest.raises(SceneError, match=message):
        make()


def test_a_region_without_tetrahedra():
    body = SoftBody(
        "bar", Box((0, 0, 0), (0.16, 0.08, 0.08)), Material(1e5), regions={"edge": HalfSpace((1e-6, 0, 0), (1, 0, 0))}
    )
    scene = Scene((body,), (PneumaticCell("c", "edge", 1e5, 0.3),))
    with pytest.raises(
        SceneError, match=r"PneumaticCell 'c': region 'edge' contains the centre of no element of a solid"
    ):
        simulation(scene)


def test_a_parameter_without_what_it_is_for():
    assert {"fibre_stiffness", "cell_stiffness"} <= simulation(driven()).parameters().keys()
    names = {"fibre_stiffness", "cell_stiffness", "fluid_density", "fluid_velocity", "drag", "thrust"}
    assert not names & simulation(dataclasses.replace(driven(), actuators=())).parameters().keys()
    assert {"fluid_density", "drag"} <= simulation(swimming(driven())).parameters().keys()
    assert Fluid(1000.0).drag[0][1] == 0.0
