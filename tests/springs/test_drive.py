"""Actuators of lattices: a stress becomes the strain that the solid would take on, and the same robot moves alike."""

import numpy as np
import pytest
import torch
from cases import DIMENSIONS, to_numpy

from warpbots.scene import Box, Cable, Expansion, Material, Muscle, Oscillation, Pressure, Scene, SoftBody
from warpbots.simulation import Simulation
from warpbots.solvers import MPM, MassSpring

E, NU = 1e4, 0.25
ACTUATORS = {
    "pressure": (lambda dim: Pressure("a", "all", 50.0), lambda dim: -50.0 * np.eye(dim)),
    "muscle": (lambda dim: Muscle("a", "all", np.eye(dim)[0], 50.0), lambda dim: 50.0 * np.diag(np.eye(dim)[0])),
}
"""Actuators of a whole body with the stress they exert at u = 1 [Pa]."""


def solid_strain(stress: np.ndarray) -> np.ndarray:
    """Strain of a free solid that `stress` pulls together [1]: Hooke's law, in 2D in plane strain."""
    dim = len(stress)
    strain = -((1 + NU) * stress - NU * np.trace(stress) * np.eye(dim)) / E
    return strain if dim == 3 else -(1 + NU) / E * (stress - NU * np.trace(stress) * np.eye(2))


def cube(dim: int, actuator) -> Scene:
    """A free cube of 0.2 m, all of which `actuator` drives."""
    box = Box((0.0,) * dim, (0.2,) * dim)
    body = SoftBody("cube", box, Material(E, NU, 1000.0), regions={"all": box})
    return Scene([body], [actuator], gravity=(0.0,) * dim, domain=((-0.3,) * dim, (0.5,) * dim))


def measured(sim: Simulation, end) -> np.ndarray:
    """Mean displacement gradient, by least squares, symmetric part."""
    X = sim.model.matter.position
    A, u = X - X.mean(0), to_numpy(end.position)[0] - X
    G = np.linalg.lstsq(A, u - u.mean(0), rcond=None)[0]
    return (G + G.T) / 2


@pytest.mark.parametrize("dim", DIMENSIONS)
@pytest.mark.parametrize("kind", ["voxel", "random"])
@pytest.mark.parametrize("actuator", ACTUATORS)
def test_a_stress_is_the_strain_of_the_solid(actuator, kind, dim):
    """Small stresses: voxels to 1 % (the lengths at rest are linear in the control), random lattices to 10 %."""
    make, stress = ACTUATORS[actuator]
    solver = MassSpring(0.04, kind, drag=20.0, damping=1e-3)
    sim = Simulation(cube(dim, make(dim)), solver, 2e-3, substeps=4)
    strain = measured(sim, sim.rollout(torch.ones(500, 1), 500).final)
    expected = solid_strain(stress(dim))
    allowed = (0.01 if kind == "voxel" else 0.1) * np.abs(expected).max()
    np.testing.assert_allclose(strain, expected, rtol=0, atol=allowed)


@pytest.mark.parametrize("direction", [None, (1.0, 0.0), (1.0, 1.0)])
def test_an_expansion_is_the_strain_it_says(direction):
    """0.1 along its direction or in all of them, and nothing else, in both signs."""
    sim = Simulation(cube(2, Expansion("a", "all", 0.1, direction)), MassSpring(0.05, drag=20.0), 2e-3, substeps=4)
    n = None if direction is None else np.array(direction) / np.linalg.norm(direction)
    expected = 0.1 * (np.eye(2) if n is None else np.outer(n, n))
    for u in (1.0, -0.5):
        strain = measured(sim, sim.rollout(torch.full((500, 1), u), 500).final)
        np.testing.assert_allclose(strain, u * expected, atol=0.006)


def test_a_cable_pulls_its_ends_together():
    """With T = k (L - R (1 - u)), read from the first step of a lattice at rest."""
    rope = Cable("rope", ((0.0, 0.0), (0.1, 0.2), (0.2, 0.2)), 300.0)
    sim = Simulation(cube(2, rope), MassSpring(0.05), 1e-4)
    lattice = sim.model.lattice
    for u in (0.5, -0.5):
        v = to_numpy(sim.rollout(torch.full((1, 1), u), 1).final.velocity)[0]
        force = lattice.mass[:, None] * v / 1e-4
        length = np.hypot(0.1, 0.2) + 0.1
        tension = 300.0 * length * max(u, 0.0)
        along = np.array([0.1, 0.2]) / np.hypot(0.1, 0.2)
        for place, expected in (((0, 0), along), ((0.1, 0.2), (1.0, 0.0) - along), ((0.2, 0.2), (-1.0, 0.0))):
            i = np.linalg.norm(lattice.position - place, axis=1).argmin()
            np.testing.assert_allclose(force[i], tension * np.array(expected), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dim", DIMENSIONS)
def test_a_wave_runs_along_its_vector(dim):
    """Every spring has the length at rest that its own phase gives it; with the control it swells and stops."""
    wave = np.array((30.0, -10.0, 5.0)[:dim])
    rhythm = Oscillation("a", "all", 0.1, 3.0, 0.4, wave=tuple(wave))
    sim = Simulation(cube(dim, rhythm), MassSpring(0.05), 0.01, substeps=4)
    lattice = sim.model.lattice
    middle = lattice.position[lattice.ends].mean(axis=1)
    for u in (0.0, 0.5, -1.0):
        sim.rollout(torch.full((1, 1), u), 1)
        began = 0.75 * 0.01  # of the last of four steps
        strain = (1.0 + u) * 0.1 * np.sin(2.0 * np.pi * 3.0 * began + 0.4 - middle @ wave)
        found = sim.model.workspace.rest_length.driven.numpy()[0] / lattice.rest_length
        np.testing.assert_allclose(found, 1.0 + strain, atol=1e-6)


def test_matter_and_lattice_move_alike():
    """One scene, two solvers: the length of a bar whose half is pulled by a muscle follows the same curve, to 10 %."""
    half = Box((0.0, 0.0), (0.2, 0.1))
    body = SoftBody("bar", Box((0.0, 0.0), (0.4, 0.1)), Material(E, NU, 1000.0), regions={"half": half})
    scene = Scene(
        [body], [Muscle("m", "half", (1.0, 0.0), 500.0)], gravity=(0.0, 0.0), domain=((-0.2, -0.2), (0.7, 0.4))
    )
    steps, curves = 60, []
    table = torch.sin(torch.arange(steps) / 10.0)[:, None]
    for solver, substeps in ((MPM(0.0125), 10), (MassSpring(0.00625), 20)):
        sim = Simulation(scene, solver, 5e-3, substeps)
        x = sim.model.matter.position[:, 0]
        ends = [torch.as_tensor(x > 0.38), torch.as_tensor(x < 0.02)]
        trajectory = sim.rollout(
            table, steps, observe=lambda s, e=ends: s.position[:, e[0], 0].mean(1) - s.position[:, e[1], 0].mean(1)
        )
        length = to_numpy(trajectory.observation)[0]
        curves.append(length - (x[x > 0.38].mean() - x[x < 0.02].mean()))
    print(np.abs(curves[0] - curves[1]).max() / np.ptp(curves[0]))
    assert np.ptp(curves[0]) > 0.005
    assert np.abs(curves[0] - curves[1]).max() < 0.1 * np.ptp(curves[0])
