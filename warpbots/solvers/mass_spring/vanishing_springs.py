"""Refuses actuators that together could shrink the rest length of a spring to zero."""

import numpy as np

from warpbots.scene import Oscillation, Scene, SceneError
from warpbots.solvers.mass_spring.actuation import signals_of
from warpbots.solvers.mass_spring.lattice import Lattice

__all__ = ["refuse_vanishing"]

_ROUNDING = 1e-9


def refuse_vanishing(scene: Scene, lattice: Lattice) -> None:
    """Raise if actuators that prescribe a strain could together leave a spring no rest length.

    A stress may, because it acts like a rest length only as far as the force is concerned.

    Raises:
        SceneError: There are such actuators; the message lists them, with the largest strain.
    """
    spring, signal, gain, stressed = lattice.drive.T
    channels = np.array([s.channel for s in signals_of(scene.actuators)], dtype=int)
    of_entry = channels[signal.astype(int)]
    strains = {}
    for channel in np.unique(of_entry[stressed == 0.0]):
        own, actuator = of_entry == channel, scene.actuators[channel]
        square = np.bincount(spring[own].astype(int), gain[own] ** 2, len(lattice.ends))  # a wave has two signals
        most = 2.0 * actuator.amplitude if isinstance(actuator, Oscillation) else 1.0  # at u = 1
        strains[channel] = most * np.sqrt(square)
    total = sum(strains.values(), np.zeros(len(lattice.ends)))
    if total.max(initial=0.0) >= 1.0 - _ROUNDING:
        worst = int(total.argmax())
        names = ", ".join(repr(scene.actuators[c].name) for c, strain in strains.items() if strain[worst] > 0.0)
        raise SceneError(
            f"actuators {names}: together they strain a spring by up to {total[worst]:.3g}, which leaves no length; "
            f"keep the sum of max_strain, and of 2 amplitude of oscillations, where their regions overlap below 1"
        )
