"""The caudal fin of the fish, its length, height and stiffness, designed together with the stroke."""

import math
import time
from pathlib import Path

import torch
from softbody_fish_scene import TAIL_ROOT
from softbody_strokes import FIRST, RATE, film, followed, interval

import warpbots as wb

__all__ = ["Tail", "compare"]

LENGTH, HEIGHT, SOFTNESS = (0.4, 2.5), (0.3, 2.0), (1e4, 1e7)
"""Bounds of both factors, and of Young's modulus of the fin [Pa]."""
FADE, LAST = 0.96, 10
"""Factor of the learning rate from an episode to the next; episodes at the end whose gain is printed."""


class Tail:
    """Design of a caudal fin, as three numbers bounded by tanh, and a table of controls.

    Attributes:
        sim: Simulation of the fish.
        numbers: Raw values of relative length, relative height and Young's modulus, shape (3,).
        raw: Raw controls, shape (steps, channels).
        ways: Distance that the fish moved ahead in every episode since the last `start` [m].
    """

    def __init__(self, sim: wb.Simulation, steps: int):
        self.sim, self.steps = sim, steps
        mesh = sim.model.matter
        self._x = float(mesh.position[:, 0].min())
        self._fin = torch.as_tensor(mesh.element_regions["caudal fin"])
        self._built = sim.parameter("youngs_modulus")
        self._ahead = sim.model.robot.coordinates["middle"].start
        self.start(0)

    def start(self, seed: int) -> None:
        """Set the fin to its built design, and the controls to noise."""
        generator = torch.Generator().manual_seed(seed)
        noise = torch.randn((self.steps, self.sim.channels), generator=generator)
        self.raw, self.ways = (FIRST * noise).to(self._built).requires_grad_(), []
        middle = [math.atanh(2.0 * (1.0 - a) / (b - a) - 1.0) for a, b in (LENGTH, HEIGHT)]
        low, high = (math.log(E) for E in SOFTNESS)
        soft = math.atanh(2.0 * (math.log(float(self._built.max())) - low) / (high - low) - 1.0)
        self.numbers = torch.tensor([*middle, soft]).to(self._built).requires_grad_()

    def design(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Factors of length and height, and Young's modulus [Pa]."""
        bounds = torch.tensor([LENGTH, HEIGHT, tuple(math.log(E) for E in SOFTNESS)]).to(self.numbers)
        length, height, soft = bounds.mean(dim=1) + (bounds[:, 1] - bounds[:, 0]) / 2.0 * torch.tanh(self.numbers)
        return length, height, soft.exp()

    def motion(self, sim: wb.Simulation | None = None) -> wb.Trajectory:
        """Simulate an episode with the current design, with `sim` instead of the usual simulation if `sim` is given."""
        length, height, modulus = self.design()

        def shape(x: torch.Tensor) -> torch.Tensor:
            behind = (TAIL_ROOT - x[:, 0]).clamp(min=0.0)
            part = behind / (TAIL_ROOT - self._x)  # 0 at the root of the fin, 1 at its end
            moved = torch.stack([-(length - 1.0) * behind, 0.0 * behind, (height - 1.0) * part * x[:, 2]], dim=1)
            return x + moved

        state, parameters = wb.morphology.shaped(self.sim, shape)
        E = torch.where(self._fin, modulus, self._built)
        return (sim or self.sim).rollout(
            followed(self.raw, self.sim.dt), self.steps, state, youngs_modulus=E, **parameters
        )

    def loss(self) -> torch.Tensor:
        """Loss: minus the distance that the middle bone moves ahead, in units of 0.1 m."""
        ahead = self.ahead(self.motion())
        self.ways.append(float(ahead.detach()))
        return -ahead / 0.1

    def ahead(self, motion: wb.Trajectory) -> torch.Tensor:
        """Distance that the middle bone moves ahead in a motion [m]."""
        return motion.final.q[0, self._ahead] - motion.start.q[0, self._ahead]


def compare(tail: Tail, finer: wb.Simulation, seeds: int, episodes: int, folder: Path, out: Path | None) -> list[dict]:
    """Optimise the stroke alone and together with the fin, from the same starts; film both for the first seed."""
    found = []
    for seed in range(seeds):
        for designed in (False, True):
            run = learnt(tail, finer, seed, episodes, designed)
            found.append(run)
            print(
                f"{'stroke and fin' if designed else 'stroke'}, seed {seed}: {1e3 * run['way']:.0f} mm in {episodes} "
                f"episodes, {1e3 * run['gain']:.1f} of them in the last {LAST}, {1e3 * run['finer']:.0f} in shorter "
                f"steps; fin {run['length']:.2f} times as long, {run['height']:.2f} as high, {run['modulus']:.3g} Pa; "
                f"{run['seconds']:.0f} s",
                flush=True,
            )
            if seed == 0:
                with torch.no_grad():
                    film(folder / f"softbody_fish_{'designed' if designed else 'fast'}.png", tail.motion(), out)
    for way, steps in (("way", "the same steps"), ("finer", "shorter steps")):
        alone, both = ([1e3 * run[way] for run in found if run["designed"] is d] for d in (False, True))
        gains = [b / a for a, b in zip(alone, both, strict=True)]
        print(
            f"    in {steps}: stroke alone {interval(alone)} mm, with the fin {interval(both)} mm, "
            f"{interval(gains)} times as far"
        )
    return found


def learnt(tail: Tail, finer: wb.Simulation, seed: int, episodes: int, designed: bool) -> dict:
    """Run Adam from the start of a seed, and return the result; `tail` keeps the best design and controls."""
    tail.start(seed)
    begun = time.process_time()
    unknowns = [tail.raw, tail.numbers] if designed else [tail.raw]
    wb.fit(
        unknowns, tail.loss, torch.optim.Adam, lr=RATE, iterations=episodes - 1, progress=False,
        scheduler=lambda rule: torch.optim.lr_scheduler.ExponentialLR(rule, FADE),
    )  # fmt: skip
    with torch.no_grad():
        finest = float(tail.ahead(tail.motion(finer)))
    length, height, modulus = (float(number.detach()) for number in tail.design())
    return {
        "designed": designed, "seed": seed, "ways": tail.ways, "way": max(tail.ways), "finer": finest,
        "gain": max(tail.ways) - max(tail.ways[:-LAST] or tail.ways[:1]), "length": length, "height": height,
        "modulus": modulus, "seconds": time.process_time() - begun,
    }  # fmt: skip
