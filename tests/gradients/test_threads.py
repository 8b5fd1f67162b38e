"""Threads take turns: what each gets is what it would get alone."""

import threading

import torch
from cases import SOLVERS, busy, least

from warpbots.simulation import Simulation

THREADS, ROUNDS = 4, 3


def simulation() -> Simulation:
    return Simulation(busy(least("mpm"), solver="mpm"), SOLVERS["mpm"](1 / 8), dt=6e-3, substeps=3)


def gradient(sim: Simulation, value: float) -> torch.Tensor:
    control = torch.full((6, sim.channels), value, requires_grad=True)
    return torch.autograd.grad(sim.rollout(control, 6).final.position.square().sum(), control)[0]


def test_threads_that_share_a_simulation_do_not_disturb_one_another():
    """Nor those that make one of their own meanwhile; bitwise."""
    values = [0.1 + 0.1 * i for i in range(THREADS)]
    expected = [gradient(simulation(), value) for value in values]
    shared, faults = simulation(), []
    barrier = threading.Barrier(2 * THREADS)

    def work(sim: Simulation | None, i: int) -> None:
        barrier.wait()
        try:
            for _ in range(ROUNDS):
                assert torch.equal(gradient(sim or simulation(), values[i]), expected[i])
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(sim, i)) for i in range(THREADS) for sim in (shared, None)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults, faults
