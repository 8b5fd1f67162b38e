"""A closed system keeps its momentum and its angular momentum, whatever goes on inside."""

import typing

import numpy as np
import pytest
import torch
from cases import ACTUATORS, ELEMENTS, SOLVERS, SPACES, WORKING, block, knows, to_numpy
from measures import (
    angular_momentum,
    elastic_energy,
    kinetic_energy,
    masses,
    momentum,
    taken_by_implicit_euler,
)

from warpbots.numerics import precision
from warpbots.scene import Actuator, Cavity, Motor, Scene, StressActuator
from warpbots.simulation import Simulation

INTERVAL = 5e-3
TOLERANCE = {"float64": 1e-12, "float32": 2e-5}[precision]

STRESSES = [cls for cls in StressActuator.__subclasses__() if cls.__module__ == StressActuator.__module__]
"""Stress actuators of warpbots, without those of tests."""


def free(dim: int, law: str = "neo_hookean", incompressibility: int = 0, actuators: tuple = ()):
    """A block in a large empty room without gravity."""
    return block(dim, law, incompressibility, actuators=actuators, gravity=(0.0,) * dim)


def simulation(solver: str, scene: Scene, steps: int) -> Simulation:
    """So many steps in 5 ms, each an interval of its own where steps are looked at one by one."""
    if solver in ELEMENTS:
        return Simulation(scene, SOLVERS[solver](1 / 16), INTERVAL / steps)
    return Simulation(scene, SOLVERS[solver](1 / 16), INTERVAL, steps)


def spinning(sim: Simulation, rate: float = 6.0, strain_rate: float = 2.0):
    """The block at rest, given a rotation, a stretching and a drift: v = (W + D)(x - centre) + v_0, C = W + D."""
    dim = sim.scene.dim
    state = sim.state()
    A = np.zeros((dim, dim))
    A[0, 1], A[1, 0] = -rate, rate
    if dim == 3:
        A[1, 2], A[2, 1] = 0.5 * rate, -0.5 * rate
    A += strain_rate * np.diag([1.0, -0.5, -0.25][:dim])
    A = torch.as_tensor(A, dtype=state.position.dtype, device=state.position.device)
    velocity = (state.position - 0.375) @ A.T + 0.1
    fields = {"velocity": velocity}
    if hasattr(state, "velocity_gradient"):
        fields["velocity_gradient"] = A
    return sim.state(**fields)


def test_every_actuator_is_listed():
    """But for motors and cavities, which need two bodies or hollow ones and have tests of their own."""
    known = {*typing.get_args(Actuator), *STRESSES} - {StressActuator}
    assert {type(a(2)) for a in ACTUATORS.values()} | {Motor, Cavity} == known


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize(("solver", "law", "dim"), WORKING, ids=str)
def test_a_spinning_stretching_block_keeps_its_momentum(solver, law, dim):
    """800 steps; sums of 800 x n numbers of either precision.

    The linear law takes a rotation for a stretch: its stress is not symmetric and it blows a turning body up, so it is
    held to its momentum only, and not for long. Implicit Euler takes away angular momentum, as much as its rule says.
    """
    steps = 30 if law[0] == "linear" else 100
    sim = simulation(solver, free(dim, *law), 8)
    start = spinning(sim)
    trajectory = sim.rollout(None, round(steps * INTERVAL / sim.dt), start)
    end = trajectory.final
    size = (masses(sim)[..., None] * np.abs(to_numpy(start.velocity))).sum()
    assert np.abs(momentum(sim, end) - momentum(sim, start)).max() < TOLERANCE * size
    if law[0] != "linear":
        gained = taken_by_implicit_euler(sim, trajectory) if solver in ELEMENTS else 0.0
        assert np.abs(angular_momentum(sim, end) - angular_momentum(sim, start) - gained).max() < TOLERANCE * size
    assert np.abs(to_numpy(end.position) - to_numpy(start.position)).max() > 0.03  # it did move


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize(
    ("solver", "dim", "actuator"), [(s, d, a) for s, d in SPACES for a in ACTUATORS if knows(s, a)]
)
def test_an_actuator_exerts_no_force_and_no_torque(solver, dim, actuator):
    """A body at rest that drives itself at random goes nowhere and does not turn."""
    sim = simulation(solver, free(dim, actuators=(ACTUATORS[actuator](dim),)), 4)
    each = round(INTERVAL / sim.dt)
    trajectory = sim.rollout((2 * torch.rand(40, 1) - 1).repeat_interleave(each, dim=0), 40 * each)
    end = trajectory.final
    size = (masses(sim)[..., None] * np.abs(to_numpy(end.velocity))).sum()
    assert size > 1e-3 * masses(sim).sum()  # it did move
    assert np.abs(momentum(sim, end)).max() < 10 * TOLERANCE * size
    turn = 1e-7 * size if "rk4" in solver else 0.0  # it conserves linear invariants alone
    gained = taken_by_implicit_euler(sim, trajectory) if solver in ELEMENTS else 0.0
    assert np.abs(angular_momentum(sim, end) - gained).max() < 10 * TOLERANCE * size + turn


@pytest.mark.verification(float32=True)
@pytest.mark.parametrize(("solver", "dim"), SPACES)
def test_energy_does_not_grow(solver, dim):
    """A spinning, stretching block over 800 steps: the transfers take away little (under 7 %) and add nothing.

    The total is never above 1.002 of its start (the oscillating part of symplectic Euler, of order dt omega / 2) and
    the elastic part does turn into motion and back.
    """
    sim = Simulation(free(dim), SOLVERS[solver](1 / 16), 5e-3, substeps=8)
    trajectory = sim.rollout(None, 100, spinning(sim))
    kinetic, elastic = np.array(
        [(kinetic_energy(sim, s)[0], elastic_energy(sim, s)[0]) for _, s in trajectory.states(every=2)]
    ).T
    total = (kinetic + elastic) / (kinetic + elastic)[0]
    print(f"total energy in [{total.min():.5f}, {total.max():.5f}], elastic up to {elastic.max() / kinetic[0]:.3f}")
    assert total.max() < 1.002
    assert total.min() > 0.93
    assert elastic.max() > 0.02 * kinetic[0]
