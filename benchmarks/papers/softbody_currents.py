"""A fish that swims to its target in currents that change on the way, with and without feedback from sensors."""

import functools
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from fast import sized
from softbody_strokes import FIRST, averaged, interval

import warpbots as wb

__all__ = ["TESTED", "TRAINED", "Swim", "compare"]

TRAINED, TESTED = sized(4, 2), sized(8, 2)
"""Number of currents in a batch to learn in, one in each world, and of others to test in."""
SPEED = 0.04
"""Largest component of a current, along x and y [m/s]."""
LEGS = 2
"""Parts of an episode of equal length, each with its own current."""
RATE, SLOW = 0.2, 0.02
"""First learning rates in calm water and in currents."""
GAIN, LARGEST, WINDOW = 0.5, 0.1, sized(8, 1)
"""Learning rate of feedback gains relative to that of the table, norm to which gradients are clipped, and number of
iterations whose mean loss decides which one is best, as each has currents of its own."""
CALM, ROUGH, KNOWN = sized(20, 1), sized(30, 1), sized(12, 1)
"""Iterations in calm water, from noise; then in currents; and in a single one that is known."""


KINDS = ("table, calm", "table", "table and feedback")
"""What is compared."""


class Swim(torch.nn.Module):
    """A policy: a table of controls, to which feedback can be added; tanh bounds the sum.

    The feedback is linear in the deviation of the sensed features from a plan, which is the motion with the table in
    calm water. Every step has its own gains, because the response of a fish depends on the phase of its beat.

    Attributes:
        length: Length of the way [m].
        table: Raw controls, shape (steps, channels).
        gains: Feedback gains, shape (steps, channels * features); None for no feedback.
        plan: Features that are sensed in every step of the plan, shape (steps, features).
    """

    def __init__(self, sim: wb.Simulation, way: Sequence[float], table: torch.Tensor, senses: bool):
        super().__init__()
        robot = sim.model.robot
        self._place, self._velocity = robot.coordinates["middle"].start, robot.velocities["middle"].start
        self._dt, self._way = sim.dt, torch.tensor(way)
        self.length = float(self._way.norm())
        self._target = (sim.center_of_mass(sim.state())[0] + self._way).detach()
        self.table, self.gains = torch.nn.Parameter(table.detach().clone()), None
        if senses:
            self.plan = self._planned(sim)
            self.gains = torch.nn.Parameter(torch.zeros(len(table), table.shape[1] * self.plan.shape[1]))

    def sensed(self, state: object) -> torch.Tensor:
        """Features that the fish senses, in units of their typical changes by a current, shape (worlds, 19).

        The features are the vector to the target and the velocity of the middle bone, both in the axes of this bone,
        its angular velocity, and the angles and velocities of the joints.
        """
        p, v = self._place, self._velocity
        turn, spin, rates = state.q[:, p + 3 : p + 7], state.qd[:, v + 3 : v + 6], state.qd[:, v + 6 :]
        away = turned_back(turn, self._way.to(turn) - state.q[:, p : p + 3])
        velocity = turned_back(turn, state.qd[:, v : v + 3])
        seen = [away / 0.02, velocity / 0.05, spin / 0.5, state.q[:, p + 7 :] / 0.1, rates / 2.0]
        return torch.cat(seen, dim=1).to(self.table)

    def _planned(self, sim: wb.Simulation) -> torch.Tensor:
        """Features that are sensed while the fish follows the table in calm water, shape (steps, features)."""
        seen: list[torch.Tensor] = []
        u = torch.tanh(averaged(self.table.detach(), self._dt))

        def control(state: object, time: float) -> torch.Tensor:
            seen.append(self.sensed(state))
            return u[round(time / self._dt)].expand(len(state.q), -1)

        with torch.no_grad():
            sim.rollout(control, len(u))
        return torch.cat([seen[k][:1] for k in range(len(u))])

    def away(self, sim: wb.Simulation, currents: torch.Tensor) -> torch.Tensor:
        """Distance from the target at the end [m], shape (worlds,).

        Args:
            sim: Simulation with one world for each current.
            currents: Velocities of the water [m/s], shape (worlds, LEGS, 3).
        """
        raw, state, leg = averaged(self.table, self._dt), None, len(self.table) // LEGS
        gains = None if self.gains is None else averaged(self.gains, self._dt).reshape(*raw.shape, -1)

        def control(state: object, step: int) -> torch.Tensor:
            if gains is None:
                return torch.tanh(raw[step]).expand(len(state.q), -1)
            return torch.tanh(raw[step] + (self.sensed(state) - self.plan[step]) @ gains[step].T)

        for k in range(LEGS):
            motion = sim.rollout(
                lambda state, time, first=k * leg: control(state, first + round(time / self._dt)), leg, state,
                fluid_velocity=currents[:, k : k + 1],
            )  # fmt: skip
            state = motion.final
        return (sim.center_of_mass(state) - self._target).norm(dim=1)


def turned_back(turn: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Convert world vectors v, shape (n, 3), to the axes of bodies with the quaternions `turn`, shape (n, 4)."""
    axis, w = -turn[:, :3], turn[:, 3:]
    return v + 2.0 * torch.linalg.cross(axis, torch.linalg.cross(axis, v) + w * v)


def currents(count: int, *seeds: int) -> torch.Tensor:
    """Random currents, each with one velocity in every leg of the way [m/s], shape (count, LEGS, 3)."""
    flow = np.random.default_rng(seeds).uniform(-SPEED, SPEED, (count, LEGS, 3))
    flow[..., 2] = 0.0
    return torch.as_tensor(flow, dtype=torch.get_default_dtype())


def learn(
    swim: Swim, sim: wb.Simulation, flow: Callable[[int], torch.Tensor], iterations: int, rate: float, window: int = 1
) -> list[float]:
    """Minimise the root mean square of the distance, divided by the way, by Adam; return all losses.

    With one world the loss is the distance; with several worlds, worlds near their target have small gradients. The
    learning rate falls to 0 along a cosine.

    Args:
        swim: The policy that learns.
        sim: Simulation with one world for each current.
        flow: Function that returns the currents of an iteration, given its number.
        iterations: Number of iterations.
        rate: First learning rate.
        window: Number of recent losses whose mean decides which iteration is best.
    """
    unknowns = [swim.table, *([] if swim.gains is None else [wb.Unknown(swim.gains, scale=GAIN)])]
    method = wb.methods.Torch(
        torch.optim.Adam, lr=rate, max_norm=LARGEST,
        scheduler=lambda rule: torch.optim.lr_scheduler.CosineAnnealingLR(rule, iterations + 1),
    )  # fmt: skip
    losses: list[float] = []

    def loss() -> torch.Tensor:
        away = swim.away(sim, flow(len(losses))).square().mean().sqrt() / swim.length
        losses.append(float(away.detach()))
        return away

    wb.minimize(loss, unknowns, method, iterations=iterations, window=window, progress=False)
    return losses


def batch(seed: int, iteration: int) -> torch.Tensor:
    """Currents for an iteration of learning; half of them are opposite to the other half and so favour no direction."""
    flow = currents(TRAINED // 2, seed, iteration)
    return torch.cat([flow, -flow])


def compare(sims: Sequence[wb.Simulation], way: Sequence[float], steps: int, seeds: int) -> list[dict]:
    """Compare three policies in currents in which they have not learnt.

    The policies are a table learnt in calm water, the same table after learning in currents, and this table with
    feedback. For the first seed, a table is also learnt for each of these currents by itself: the result of a fish that
    knows the current.

    Args:
        sims: Simulations of the fish with one world, with `TRAINED` worlds and with `TESTED` worlds.
        way: Vector from the start to the target [m], shape (3,).
        steps: Number of steps of an episode.
        seeds: Number of seeds.
    """
    alone, trained, tested = sims
    calm, others = torch.zeros(1, LEGS, 3), currents(TESTED, 1)
    found: list[dict] = []
    for seed in range(seeds):
        noise = torch.randn((steps, alone.channels), generator=torch.Generator().manual_seed(seed))
        first = Swim(alone, way, FIRST * noise, False)
        learn(first, alone, lambda _: calm, CALM, RATE)
        for kind in KINDS:
            begun, losses = time.process_time(), []
            swim = Swim(alone, way, first.table, kind == KINDS[2])
            if kind != KINDS[0]:
                losses = learn(swim, trained, functools.partial(batch, 2 + seed), ROUGH, SLOW, WINDOW)
            kept = {"calm": kept_by(swim, alone, calm), "rough": kept_by(swim, tested, others)}
            found.append({"kind": kind, "seed": seed, "kept": kept, "losses": losses})
            print(
                f"{kind}, seed {seed}: {100 * kept['calm'][0]:.0f} % of the way in calm water, "
                f"{100 * np.mean(kept['rough']):.0f} % in {TESTED} other currents, at worst "
                f"{100 * min(kept['rough']):.0f}; {time.process_time() - begun:.0f} s",
                flush=True,
            )
        if seed == 0:
            known = [known_by(first, alone, way, flow[None]) for flow in others]
            found.append({"kind": "tables, each current known", "seed": 0, "kept": {"rough": known}})
            print(f"a table for each: {100 * np.mean(known):.0f} %, at worst {100 * min(known):.0f}", flush=True)
    summarize(found)
    return found


def kept_by(swim: Swim, sim: wb.Simulation, flow: torch.Tensor) -> list[float]:
    """Fraction of the way that is kept in each current: 1 minus the final distance from the target over the way."""
    with torch.no_grad():
        return (1.0 - swim.away(sim, flow) / swim.length).tolist()


def known_by(first: Swim, alone: wb.Simulation, way: Sequence[float], flow: torch.Tensor) -> float:
    """Fraction of the way that is kept with a table that continues to learn in a single current."""
    swim = Swim(alone, way, first.table, False)
    return 1.0 - min(learn(swim, alone, lambda _: flow, KNOWN, RATE / 2.0))


def summarize(found: Sequence[Mapping]) -> None:
    """Print the fraction of the way that is kept over all seeds, and the gain by feedback."""
    for name, part in (("mean", np.mean), ("worst", np.min)):
        rough = {kind: [100 * part(run["kept"]["rough"]) for run in found if run["kind"] == kind] for kind in KINDS}
        for kind, values in rough.items():
            print(f"    {kind}: {interval(values)} % of the way, {name} of all currents")
        gained = np.subtract(rough[KINDS[2]], rough[KINDS[1]])
        print(f"    feedback adds {interval(gained)} % in the {name}", flush=True)
