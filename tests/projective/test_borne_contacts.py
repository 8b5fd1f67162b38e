"""Many contacts that share the load of one bone: each obeys its law, and the load is shared as equal springs share it."""

import numpy as np
import pytest
import torch
from bare_bones import CELL, bare, forces, sled, weight

from warpbots.scene import Scene, floor
from warpbots.simulation import Simulation
from warpbots.solvers import ProjectiveDynamics

FRICTION, DT = 0.3, 5e-3


def loaded(speed: float, cell: float = CELL) -> tuple[Simulation, np.ndarray, np.ndarray]:
    """A sled after ten steps on a floor: forces on the vertices of its lower side [N] and where these are [m]."""
    bodies = sled((0.0, 0.0, 0.0005), velocity=(speed, 0.0, 0.0))
    scene = Scene(bodies, obstacles=(floor(friction=FRICTION),))
    sim = Simulation(scene, ProjectiveDynamics(cell), DT)
    state = sim.state()
    for _ in range(10):
        state = sim.step(state, torch.zeros(0))
    force, on_bone = forces(sim)
    place = bare(sim, state)[0]
    below = place[:, 2] < place[:, 2].min() + 0.1 * cell
    assert below.sum() >= 28
    return sim, force[on_bone][below].astype(float), place[below]


@pytest.mark.parametrize("speed", [0.0, 0.5])
@pytest.mark.parametrize("cell", [CELL, CELL / 2])
def test_springs_under_a_rigid_bone_share_its_weight(speed, cell):
    """Pressures are an affine function of the place, and their sum is the weight, whether it stands or slides."""
    sim, force, place = loaded(speed, cell)
    pressure = force[:, 2]
    affine = np.column_stack([place[:, :2], np.ones(len(place))])
    fitted = affine @ np.linalg.lstsq(affine, pressure, rcond=None)[0]
    assert np.abs(pressure - fitted).max() < 2e-3 * pressure.mean()
    assert pressure.sum() == pytest.approx(weight(sim), rel=1e-2)
    assert fitted.min() > 0.0


def test_each_of_them_obeys_the_law_of_friction():
    """All slide with the coefficient of friction times their own pressure, backwards; none does where the bone stands."""
    _, sliding, _ = loaded(0.5)
    assert sliding[:, 0] == pytest.approx(-FRICTION * sliding[:, 2], rel=1e-4)
    _, standing, _ = loaded(0.0)
    assert (np.linalg.norm(standing[:, :2], axis=1) < FRICTION * standing[:, 2]).all()
