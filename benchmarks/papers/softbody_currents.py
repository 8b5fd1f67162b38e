"""A fish that swims to its target in currents that change on the way, with and without a policy that senses."""

import time
from collections.abc import Sequence

import numpy as np
import torch
from fast import sized
from softbody_strokes import FADE, FIRST, followed, interval

import warpbots as wb

__all__ = ["TESTED", "TRAINED", "Swim", "compare"]

TRAINED, TESTED = sized(3, 2), sized(8, 2)
"""Number of currents to learn in, one in each world, and of others to test in."""
SPEED = 0.1
"""Largest component of a current, along x and y [m/s]."""
LEGS = 2
"""Parts of an episode of equal length, each with its own current."""
RATE, WEIGHT = 0.2, 0.05
"""First learning rate of the table, and the scale of the weights of the policy relative to it."""
CALM, ROUGH = sized(20, 1), sized(12, 1)
"""Iterations in calm water, from noise, and then in currents."""


class Swim(torch.nn.Module):
    """A table of controls, and a policy on top of it if it senses: bounded by tanh.

    The policy is a perceptron that observes how far the target is, joints, their velocities and those of the body.
    """

    def __init__(self, sim: wb.Simulation, way: Sequence[float], steps: int, senses: bool, seed: int):
        super().__init__()
        self._way, self._middle = torch.tensor(way), sim.model.robot.coordinates["middle"].start
        self._target = (sim.center_of_mass(sim.state())[0] + self._way).detach()
        generator = torch.Generator().manual_seed(seed)
        self.table = torch.nn.Parameter(FIRST * torch.randn((steps, sim.channels), generator=generator))
        self.policy = wb.controllers.MLP(sim, self.sensed, (32, 32), seed=seed) if senses else None
        if self.policy is not None:
            with torch.no_grad():
                self.policy.layers[-2].weight.mul_(0.1)
                self.policy.layers[-2].bias.zero_()
        self._dt = sim.dt

    def sensed(self, state: object) -> torch.Tensor:
        """What the policy observes, of order one, shape (worlds, features)."""
        away = (self._way - state.q[:, self._middle : self._middle + 3]) / 0.1  # of the middle bone
        return torch.cat([away, state.q, 0.1 * state.qd], dim=1)

    def forward(self, state: object, time: float) -> torch.Tensor:
        """Controls of all worlds, shape (worlds, channels)."""
        u = followed(self.table, self._dt)[round(time / self._dt)].expand(len(state.q), -1)
        return u if self.policy is None else torch.tanh(torch.atanh(0.99 * u) + 2.0 * self.policy(state, time))

    def away(self, sim: wb.Simulation, currents: torch.Tensor) -> torch.Tensor:
        """Distance from the target at the end [m], shape (worlds,).

        Args:
            sim: Has a world for each current.
            currents: Velocities of the water [m/s], shape (worlds, LEGS, 3).
        """
        state, leg = None, len(self.table) // LEGS
        for k in range(LEGS):
            before = k * leg * self._dt
            motion = sim.rollout(
                lambda state, time, before=before: self(state, before + time), leg, state,
                fluid_velocity=currents[:, k : k + 1],
            )  # fmt: skip
            state = motion.final
        return (sim.center_of_mass(state) - self._target).norm(dim=1)


def currents(count: int, seed: int) -> torch.Tensor:
    """Random currents, two for each episode [m/s], shape (count, LEGS, 3)."""
    flow = np.random.default_rng(seed).uniform(-SPEED, SPEED, (count, LEGS, 3))
    flow[..., 2] = 0.0
    return torch.as_tensor(flow, dtype=torch.get_default_dtype())


def learn(swim: Swim, sim: wb.Simulation, flow: torch.Tensor, iterations: int, rate: float) -> None:
    """Adam on the mean distance."""
    weights = [] if swim.policy is None else [*swim.policy.parameters()]
    unknowns = [swim.table, *(wb.Unknown(weight, scale=WEIGHT) for weight in weights)]
    method = wb.methods.Torch(
        torch.optim.Adam, lr=rate, scheduler=lambda rule: torch.optim.lr_scheduler.ExponentialLR(rule, FADE)
    )
    wb.minimize(lambda: swim.away(sim, flow).mean(), unknowns, method, iterations=iterations, progress=False)


def compare(sims: Sequence[wb.Simulation], way: Sequence[float], steps: int, seeds: int) -> list[dict]:
    """A table learnt in calm water, the same learnt in currents, and with a policy on top, in other currents.

    Args:
        sims: The fish in one world, in `TRAINED` and in `TESTED`.
        way: From the start to the target [m], shape (3,).
        steps: Steps of an episode.
        seeds: Number of seeds.
    """
    alone, trained, tested = sims
    calm, flow, others = torch.zeros(1, LEGS, 3), currents(TRAINED, 0), currents(TESTED, 1)
    found: list[dict] = []
    for seed in range(seeds):
        blind = Swim(alone, way, steps, False, seed)
        learn(blind, alone, calm, CALM, RATE)
        for kind in ("table, calm", "table", "table and policy"):
            begun = time.process_time()
            swim = Swim(alone, way, steps, "policy" in kind, seed)
            with torch.no_grad():
                swim.table.copy_(blind.table)
            if kind != "table, calm":
                learn(swim, trained, flow, ROUGH, RATE / 2.0)
            with torch.no_grad():
                ends = {"calm": swim.away(alone, calm), "rough": swim.away(tested, others)}
            kept = {water: (1.0 - away / torch.tensor(way).norm()).tolist() for water, away in ends.items()}
            found.append({"kind": kind, "seed": seed, "kept": kept, "seconds": time.process_time() - begun})
            print(
                f"{kind}, seed {seed}: {100 * kept['calm'][0]:.0f} % of the way in calm water, "
                f"{100 * np.mean(kept['rough']):.0f} % in {TESTED} other currents, at worst "
                f"{100 * min(kept['rough']):.0f}; {found[-1]['seconds']:.0f} s",
                flush=True,
            )
    for kind in dict.fromkeys(run["kind"] for run in found):
        means = [100 * np.mean(run["kept"]["rough"]) for run in found if run["kind"] == kind]
        print(f"    {kind}: {interval(means)} % of the way in currents", flush=True)
    return found
