"""Strains of springs at rest by actuators that together must leave each spring a length."""

import numpy as np

from warpbots.scene import Scene
from warpbots.solvers.mass_spring.actuation import signals_of
from warpbots.solvers.mass_spring.lattice import Lattice
from warpbots.solvers.rest_strains import RestStrains

__all__ = ["spring_strains"]


def spring_strains(scene: Scene, lattice: Lattice) -> RestStrains:
    """Strains by actuators that prescribe a strain.

    Actuators that prescribe a stress are left out: a stress acts like a rest length only as far as the force is
    concerned.
    """
    spring, signal, gain, stressed = lattice.drive.T
    channels = np.array([s.channel for s in signals_of(scene.actuators)], dtype=int)
    of_entry = channels[signal.astype(int)]
    shares = []
    for channel in np.unique(of_entry[stressed == 0.0]):
        own = of_entry == channel
        square = np.bincount(spring[own].astype(int), gain[own] ** 2, len(lattice.ends))  # a wave has two signals
        shares.append((scene.actuators[channel], np.sqrt(square)))
    return RestStrains.of("a spring", shares)
