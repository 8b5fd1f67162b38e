"""Common parts of the experiments with the cantilever of Cronos: the beam, its theory, equilibrium and motion.

Beams lie along x from the clamp at x = 0, their width is along y and their height, in which they bend, along z.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from scipy.linalg import expm
from scipy.optimize import brentq

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fast import figures, sized  # noqa: F401

import warpbots as wb
from warpbots.solvers.mass_spring import MassSpringModel, MassSpringState

HERE = figures(__file__)
"""Where figures go."""
POISSONS_RATIO = 0.25
"""Of every lattice of central forces."""


def beam(size: tuple[float, float, float], material: wb.Material, load: float = 0.0, gravity: float = 0.0) -> wb.Scene:
    """A cantilever of `size` (length, width, height) [m] with a tip load [N] and gravity [m/s^2], both along -z."""
    length, *rest = size
    eps, far = 1e-6 * length, 2.0 * max(rest)
    regions = {
        "root": wb.shapes.Box((-eps, -far, -far), (eps, far, far)),
        "tip": wb.shapes.Box((length - eps, -far, -far), (length + eps, far, far)),
    }
    body = wb.SoftBody("beam", wb.shapes.Box((0.0, 0.0, 0.0), size), material, regions)
    loads = [wb.Load("tip", (0.0, 0.0, -load))] if load else []
    return wb.Scene([body], constraints=[wb.Constraint("root")], loads=loads, gravity=(0.0, 0.0, -gravity))


def euler_bernoulli(size: tuple[float, float, float], material: wb.Material) -> float:
    """First frequency of a slender cantilever [Hz]: 1.8751^2 / 2 pi sqrt(E I / rho A L^4)."""
    length, _, height = size
    speed = np.sqrt(material.youngs_modulus / material.density)
    return 1.8751041**2 / (2.0 * np.pi) * speed * height / np.sqrt(12.0) / length**2


def timoshenko(size: tuple[float, float, float], material: wb.Material) -> float:
    """First frequency of a cantilever with shear and rotary inertia [Hz].

    The deflection y, slope s, moment M and shear force Q along the beam obey y' = s + Q / kGA, s' = M / EI, M' = -Q -
    rho I w^2 s and Q' = -rho A w^2 y at the angular frequency w, with y = s = 0 at the clamp. w is a natural frequency
    if a nonzero solution has M = Q = 0 at the tip.
    """
    length, width, height = size
    E, rho, nu = material.youngs_modulus, material.density, POISSONS_RATIO
    area, inertia = width * height, width * height**3 / 12.0
    shear = 10.0 * (1.0 + nu) / (12.0 + 11.0 * nu) * area * E / (2.0 * (1.0 + nu))

    def tip(frequency: float) -> float:
        w2 = (2.0 * np.pi * frequency) ** 2
        rate = np.zeros((4, 4))
        rate[0, 1], rate[0, 3], rate[1, 2] = 1.0, 1.0 / shear, 1.0 / (E * inertia)
        rate[2, 3], rate[2, 1], rate[3, 0] = -1.0, -rho * inertia * w2, -rho * area * w2
        scale = np.diag([length, 1.0, E * inertia / length, E * inertia / length**2])
        return np.linalg.det(expm(np.linalg.inv(scale) @ rate @ scale * length)[2:, 2:])

    slender = euler_bernoulli(size, material)
    return brentq(tip, 0.5 * slender, 1.02 * slender)


def tip_height(model: MassSpringModel, position: torch.Tensor) -> torch.Tensor:
    """Mean height of the free end above its height at rest [m], shape (worlds,)."""
    end = torch.as_tensor(model.lattice.regions["tip"])
    rest = torch.as_tensor(model.lattice.position[model.lattice.regions["tip"], 2])
    return (position[:, end, 2].double() - rest).mean(dim=1)


def swing(sim: wb.Simulation, position: np.ndarray, seconds: float, **parameters: torch.Tensor) -> np.ndarray:
    """Height of the tip [m] after every control interval of a motion that starts at `position` without velocity."""
    steps = max(8, round(seconds / sim.dt))

    def observe(state: MassSpringState) -> torch.Tensor:
        return tip_height(sim.model, state.position)

    with torch.no_grad():
        start = sim.state(position=torch.as_tensor(position))
        trajectory = sim.rollout(None, steps, start, observe=observe, **parameters)
    return trajectory.observation[0].numpy()


def crossing_frequency(record: np.ndarray, interval: float) -> float:
    """Frequency [Hz] from the times at which a record crosses zero, interpolated linearly."""
    before = np.flatnonzero(record[:-1] * record[1:] < 0.0)
    time = interval * (before + record[before] / (record[before] - record[before + 1]))
    return (len(time) - 1) / 2.0 / (time[-1] - time[0])


def counted_frequency(record: np.ndarray, interval: float) -> float:
    """Frequency [Hz] from the number of zero crossings alone, as in the paper.

    The resolution is half the inverse of the length of the record.
    """
    return np.count_nonzero(record[:-1] * record[1:] < 0.0) / 2.0 / (interval * len(record))


def slope(x: np.ndarray, y: np.ndarray) -> float:
    """Exponent of the power law that fits y(x) best."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])
