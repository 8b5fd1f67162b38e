"""Bars between joints: what they are made of, how they stretch and swing, and what is no truss."""

import numpy as np
import pytest
import torch
from cases import to_numpy
from scipy.sparse.linalg import spsolve

from warpbots.scene import Box, Constraint, Material, Posed, Scene, SceneError, SoftBody, Truss
from warpbots.simulation import Simulation
from warpbots.solvers import MPM, MassSpring
from warpbots.solvers.mass_spring import spectrum, stiffness_matrix

STEEL = Material(2e5, 0.3, 800.0)
PAIR = Truss([[0.1, 0.2], [0.4, 0.6]], [[0, 1]], 0.01)


def scene(shape, **regions) -> Scene:
    """A truss without gravity; regions named ``held...`` are fixed."""
    body = SoftBody("truss", shape, STEEL, regions=regions)
    dim = len(shape.bounds[0])
    held = [Constraint(name, name=name) for name in regions if name.startswith("held")]
    return Scene([body], constraints=held, gravity=(0.0,) * dim)


def test_a_bar_is_a_spring():
    """k = E A / L and half of the mass rho A L at either end, in 2D per metre of depth and in 3D of a round bar."""
    lattice = MassSpring(1.0).build(scene(PAIR)).lattice
    assert lattice.stiffness == pytest.approx([2e5 * 0.02 / 0.5])
    assert lattice.mass == pytest.approx([800.0 * 0.02 * 0.5 / 2] * 2)
    lattice = MassSpring(1.0).build(scene(Truss([[0, 0, 0], [0, 3, 4]], [[0, 1]], 0.1))).lattice
    assert lattice.stiffness == pytest.approx([2e5 * np.pi * 0.01 / 5])
    assert lattice.mass == pytest.approx([800.0 * np.pi * 0.01 * 5 / 2] * 2)


@pytest.mark.verification
def test_the_period_of_two_masses():
    """Two masses on a spring, drawn apart, swing with 2 pi sqrt(mu / k), mu = m / 2; to 1e-4."""
    sim = Simulation(scene(PAIR), MassSpring(1.0, integrator="rk4"), 2e-3)
    lattice = sim.model.lattice
    x = sim.state().position.clone()
    x[:, 1] += 1e-3 * torch.as_tensor([0.6, 0.8])
    gap = sim.rollout(
        None, 2000, sim.state(position=x), observe=lambda s: (s.position[:, 1] - s.position[:, 0]).norm(dim=-1)
    )
    period = 2.0 * np.pi * np.sqrt(lattice.mass[0] / 2 / lattice.stiffness[0])
    assert 1.0 / spectrum(gap.observation[0], sim.dt).peaks(1)[0] == pytest.approx(period, rel=1e-4)


@pytest.mark.verification
def test_a_truss_under_a_load_sinks_as_virtual_work_says():
    """A statically determinate truss of three bars of different sections: u = sum N n L / E A."""
    joints, bars, radius = [[0, 0], [2, 0], [1, 1]], [[0, 1], [0, 2], [1, 2]], np.array([0.02, 0.01, 0.03])
    truss = Truss(joints, bars, radius)
    model = MassSpring(1.0).build(scene(truss))
    K = stiffness_matrix(model).tolil()
    free = [2, 4, 5]  # joint 0 is held, joint 1 on rollers
    load = np.array([0.0, 0.0, -1.0])
    u = spsolve(K[free][:, free].tocsc(), load)
    virtual = np.array([0.5, -np.sqrt(0.5), -np.sqrt(0.5)])  # forces of the bars under a unit load downwards
    sinks = (virtual**2 * truss.length / (2e5 * truss.section)).sum()
    assert -u[2] == pytest.approx(sinks, rel=1e-4)


def test_regions_and_gradients():
    """A region holds the bars whose middle is in it; the gradient to a single bar's stiffness is its own."""
    truss = Truss([[0, 0], [1, 0], [1, 1]], [[0, 1], [1, 2], [0, 2]], 0.01)
    sim = Simulation(scene(truss, held=Box((-0.1, -0.1), (0.1, 0.1))), MassSpring(1.0), 1e-3)
    stiffness = sim.parameter("stiffness").requires_grad_()
    moved = sim.state().position.clone()
    moved[0, 1, 0] += 0.01  # along the first bar and, to first order, across the second
    sim.rollout(None, 3, sim.state(position=moved), stiffness=stiffness).final.position[0, 1, 0].backward()
    gradient = to_numpy(stiffness.grad)[0]
    ends = sim.model.lattice.ends.tolist()
    assert abs(gradient[ends.index([0, 1])]) > 50 * abs(gradient[ends.index([0, 2])])


def test_what_is_drawn_lies_along_the_bars():
    truss = Truss([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1], [0, 2]], [0.01, 0.05])
    lattice = MassSpring(1.0).build(scene(truss)).lattice
    assert lattice.cells.volume.sum() == pytest.approx((truss.section * truss.length).sum())
    along = lattice.carry @ lattice.position
    np.testing.assert_allclose(along, lattice.cells.position)
    assert (np.abs(along[along[:, 1] < 1e-9, 1:]) < 1e-12).all()
    assert np.diff(np.sort(along[along[:, 1] < 1e-9, 0])).max() < 0.0134


@pytest.mark.parametrize("solver", [MPM(0.05), MassSpring(0.05)], ids=["mpm", "springs"])
def test_both_solvers_know_it(solver):
    """Posed, too: the same scene has the same mass and falls alike."""
    posed = Posed(Truss([[0, 0], [0.4, 0], [0.2, 0.3]], [[0, 1], [1, 2], [0, 2]], 0.05), (0.3, 0.3), ((0, -1), (1, 0)))
    body = SoftBody("truss", posed, STEEL)
    sim = Simulation(Scene([body], domain=((-1, -1), (2, 2))), solver, 1e-3, substeps=None)
    centre = [to_numpy(s.position).mean(axis=1)[0] for _, s in sim.rollout(None, 50).states(50)]
    assert centre[1] - centre[0] == pytest.approx([0.0, -0.5 * 9.81 * 0.05**2], abs=5e-4)


@pytest.mark.parametrize(
    ("joints", "bars", "radius", "text"),
    [
        ([[0, 0], [1, 0]], [[0, 2]], 0.1, "bars must join joints 0 to 1, got 0 to 2"),
        ([[0, 0], [1, 0]], [[1, 1]], 0.1, "bar 0 joins joint 1 with itself"),
        ([[0, 0], [1, 0]], [[0, 1], [1, 0]], 0.1, r"two bars join the joints \[0, 1\]; make them one"),
        ([[0, 0], [0, 0]], [[0, 1]], 0.1, r"joints 0 and 1 are both at \[0.0, 0.0\] m"),
        ([[0, 0], [1, 0], [2, 0]], [[0, 1]], 0.1, r"joint 2 at \[2.0, 0.0\] m has no bar"),
        ([[0, 0], [1, 0]], [[0, 1]], -0.1, r"radius must be positive \[m\], got -0.1 for bar 0"),
        ([[0, 0], [1, 0]], [[0, 1]], [0.1, 0.2], r"one number or 1, one for each bar, got \(2,\)"),
        ([[0], [1]], [[0, 1]], 0.1, r"joints of shape \(n, 2\) or \(n, 3\)"),
        ([[0, 0], [1, 0]], [], 0.1, "bars must be a non-empty array"),
        ([[0, 0], [1, np.nan]], [[0, 1]], 0.1, "joints must be finite"),
    ],
)
def test_faults(joints, bars, radius, text):
    with pytest.raises(SceneError, match=text):
        Truss(np.array(joints, dtype=float), np.array(bars), radius)


def test_a_truss_in_two_pieces_is_refused():
    loose = Truss([[0, 0], [1, 0], [0, 1], [1, 1]], [[0, 1], [2, 3]], 0.01)
    with pytest.raises(
        SceneError, match="'truss': its lattice is in 2 pieces that no spring joins; join them by bars, or"
    ):
        MassSpring(1.0).build(scene(loose))


def test_a_region_between_the_joints_is_refused_with_a_remedy_that_helps():
    """The spacing has no effect on a truss; shorter bars have."""
    middle = {"middle": Box((0.2, 0.3), (0.3, 0.5))}
    with pytest.raises(SceneError, match=r"selects 0 of 2 masses; .* or divide its bars into shorter ones$"):
        MassSpring(1.0).build(scene(PAIR, **middle))
    halves = Truss([[0.1, 0.2], [0.25, 0.4], [0.4, 0.6]], [[0, 1], [1, 2]], 0.01)
    assert MassSpring(1.0).build(scene(halves, **middle)).lattice.regions["middle"].sum() == 1
