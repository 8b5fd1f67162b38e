"""Oscillations: signals that follow controls and time, and the strains at rest that follow these signals.

Implicit Euler balances the forces at the end of a step, so that signals are evaluated at this time. A wave has two
signals, a quarter of a period apart; the strain of each element is their sum with factors of the element.
"""

import numpy as np
import warp as wp

from warpbots.actuation_laws import ActivationArrays, rest_strain
from warpbots.scene import Expansion, Oscillation, Scene
from warpbots.solvers.device_arrays import device_array
from warpbots.solvers.mass_spring.actuation import drive_of, signal_kernel, signals_of
from warpbots.solvers.projective.elements.element import Point
from warpbots.solvers.rest_strains import RestStrains

__all__ = [
    "adj_pass_kernel", "element_strains", "growth_of", "oscillating", "pass_kernel", "signal_launches", "signals",
    "signals_of",
]  # fmt: skip


@wp.kernel(enable_backward=False)
def pass_kernel(
    # state
    h: wp.float64,
    found: wp.array[int],
    time: wp.array[wp.float64],
    # out
    time_out: wp.array[wp.float64],
):
    """t' = t + h in worlds whose step succeeded."""
    w = wp.tid()
    time_out[w] = time[w] + wp.float64(found[w]) * h


@wp.kernel(enable_backward=False)
def adj_pass_kernel(
    # state
    ended_adj: wp.array[wp.float64],
    # out
    time_adj_out: wp.array[wp.float64],
):
    """t* += t'*."""
    w = wp.tid()
    time_adj_out[w] = time_adj_out[w] + ended_adj[w]


def oscillating(scene: Scene) -> list[Oscillation]:
    """The actuators of a scene that are an `Oscillation`."""
    return [a for a in scene.actuators if isinstance(a, Oscillation)]


def element_strains(scene: Scene, regions: dict[str, np.ndarray]) -> RestStrains:
    """Strains of elements at rest by actuators.

    Args:
        scene: The scene.
        regions: For every region which elements are in it, each of shape (n_elements,), bool.
    """
    shares = [(a, a.max_strain * regions[a.region]) for a in scene.actuators if isinstance(a, Expansion)]
    return RestStrains.of("matter", shares + [(a, 1.0 * regions[a.region]) for a in oscillating(scene)])


def signals(scene: Scene, device: wp.Device) -> object:
    """The signals of the actuators of a scene as a Warp struct."""
    return drive_of(np.zeros((0, 4)), scene.actuators, device)


def signal_launches(model: object, point: Point) -> tuple[list[tuple], wp.array]:
    """Launches (kernel, dim, inputs) that write the signals at the end of a step, and the signals.

    Without oscillations these are the control signals themselves.
    """
    if not model.amplitude.size:
        return [], point.control
    signal = model.workspace.signal
    constants = [model.signals, model.amplitude, model.frequency, model.phase]
    return [(signal_kernel(), signal.shape, [*constants, point.control, point.time, point.h, signal])], signal


def growth_of(scene: Scene, center: np.ndarray, driven: dict[str, np.ndarray], device: wp.Device) -> object:
    """Actuators that strain tetrahedra at rest, as a Warp struct of `active_stress`, with strains as constants.

    A wave strains an element with the centre X in proportion to sin(a - b), with the phase b = wave . X. This is cos b
    times the signal of the oscillation, sin a, minus sin b times the signal that is a quarter of a period ahead, cos a.

    Args:
        scene: The scene.
        center: Centres of the tetrahedra at rest [m], shape (n_tets, 3).
        driven: For every region, which tetrahedra are in the region, each of shape (n_tets,), bool.
        device: Device of the arrays.
    """
    element, pattern, channel = [np.zeros(0, dtype=int)], [np.zeros((0, 3, 3))], [np.zeros(0, dtype=int)]
    numbers = signals_of(scene.actuators)
    for c, actuator in enumerate(scene.actuators):
        if not isinstance(actuator, Expansion | Oscillation):
            continue
        inside = np.flatnonzero(driven[actuator.region])
        strain = rest_strain(actuator, 3)[1]
        wave = getattr(actuator, "wave", None)
        lag = np.zeros(len(inside)) if wave is None else center[inside] @ np.array(wave)
        own = [n for n, s in enumerate(numbers) if s.channel == c]
        for n, factor in zip(own, (np.cos(lag), -np.sin(lag)), strict=False):
            element.append(inside)
            pattern.append(factor[:, None, None] * strain)
            channel.append(np.full(len(inside), n))
    element, pattern, channel = (np.concatenate(a) for a in (element, pattern, channel))
    order = np.argsort(element, kind="stable")
    arrays = ActivationArrays()
    arrays.start = device_array(np.searchsorted(element[order], np.arange(len(center) + 1)), device, int)
    arrays.actuator = device_array(np.arange(len(order)), device, int)
    arrays.law = device_array(np.zeros(len(order)), device, int)
    arrays.first = device_array(9 * np.arange(len(order)), device, int)
    arrays.constant = device_array(pattern[order].reshape(-1), device)
    arrays.channel = device_array(channel[order], device, int)
    return arrays
