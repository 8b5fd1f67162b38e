"""A stroke that brings a swimmer to a target: the loss, the methods that find the stroke, and the output of results."""

import functools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import refined
import torch
from fast import sized
from scipy.stats import t as student

import warpbots as wb

__all__ = [
    "LAG",
    "METHODS",
    "Stroke",
    "adam",
    "averaged",
    "compare",
    "discretised",
    "film",
    "followed",
    "interval",
    "refine",
    "show",
]

FIRST = 0.3
"""Standard deviation of the raw controls of a start, and of the first generation of CMA-ES."""
RATE, FADE = 0.2, 0.95
"""Learning rate of Adam in the first episode, and its factor from each to the next, unless a swimmer has others."""
NEAR = 1 / 30
"""Distance from the target from which on a swimmer has arrived, as a part of the way."""
LAG = 0.06
"""Standard deviation of the times over which motors and muscles average their signal [s]."""


def averaged(signals: torch.Tensor, dt: float, lag: float = LAG) -> torch.Tensor:
    """Signals averaged over time by a Gaussian.

    Args:
        signals: Signals, shape (steps, channels).
        dt: Length of a step [s].
        lag: Standard deviation of the Gaussian [s].
    """
    reach = math.ceil(3.0 * lag / dt)
    weight = torch.exp(-0.5 * (torch.arange(-reach, reach + 1).to(signals) * dt / lag) ** 2)
    padded = torch.nn.functional.pad(signals.T[:, None], (reach, reach), mode="replicate")
    return torch.nn.functional.conv1d(padded, (weight / weight.sum())[None, None])[:, 0].T


def followed(raw: torch.Tensor, dt: float, lag: float = LAG) -> torch.Tensor:
    """Controls that follow from raw controls: tanh bounds the raw controls, and motors average them (`averaged`).

    Without the average, the fastest strokes reverse torques from step to step, which moves a swimmer only because the
    steps are long.

    Args:
        raw: Raw controls, shape (steps, channels).
        dt: Length of a step [s].
        lag: Standard deviation of the Gaussian [s].
    """
    return torch.tanh(averaged(raw, dt, lag))


class Stroke:
    """A table of raw controls, one row per step, bounded by tanh.

    The loss is the distance of the centre of mass at the end of an episode from its target.

    Attributes:
        sim: The simulation.
        finer: The same simulation with shorter steps, with which a stroke that was found is evaluated again.
        lag: Standard deviation of the Gaussian with which motors average their signals, as in `followed` [s]; 0 for no
            average.
        rate: Learning rate of Adam in the first episode.
        fade: Factor by which the learning rate is multiplied after each episode.
        longest: Norm to which longer gradients are clipped before Adam [m]; None for no clipping.
        memory: Decay factor of Adam's mean square.
        pull: Whether signals are from 0 to 1, for muscles that only pull, and not from -1 to 1.
        near: Distance from the target at which the swimmer counts as arrived [m].
        target: Target position of the centre of mass at the end [m], shape (3,).
        steps: Number of steps of an episode.
        raw: The unknowns, shape (steps, channels).
        losses: Loss of every episode since the last `start` [m].
    """

    def __init__(
        self, sim: wb.Simulation, finer: wb.Simulation, way: Sequence[float], steps: int,
        lag: float = 0.0, rate: float = RATE, fade: float = FADE, longest: float | None = None, memory: float = 0.999,
        pull: bool = False,
    ):  # fmt: skip
        self.sim, self.finer, self.steps, self.lag = sim, finer, steps, lag
        self.rate, self.fade, self.longest, self.memory, self.pull = rate, fade, longest, memory, pull
        self.near = NEAR * float(np.linalg.norm(way))
        rest = sim.center_of_mass(sim.state())[0]
        self.target = rest + torch.as_tensor(way).to(rest)
        self.start(0)

    def start(self, seed: int) -> None:
        """Set the controls to noise that hardly moves the swimmer."""
        noise = torch.randn((self.steps, self.sim.channels), generator=torch.Generator().manual_seed(seed))
        self.raw, self.losses = (FIRST * noise).to(self.target).requires_grad_(), []

    def motion(self, sim: wb.Simulation | None = None) -> wb.Trajectory:
        """Simulate an episode, with `sim` instead of the usual simulation if `sim` is given."""
        control = followed(self.raw, self.sim.dt, self.lag) if self.lag else torch.tanh(self.raw)
        return (sim or self.sim).rollout((1.0 + control) / 2.0 if self.pull else control, self.steps)

    def away(self, sim: wb.Simulation) -> torch.Tensor:
        """Simulate an episode with `sim`, and return the distance from the target at its end [m]."""
        return (sim.center_of_mass(self.motion(sim).final)[0] - self.target).norm()

    def distance(self) -> torch.Tensor:
        """Simulate an episode, and return its loss [m]."""
        away = self.away(self.sim)
        self.losses.append(float(away.detach()))
        return away

    def way(self) -> list[float]:
        """Displacement of the centre of mass in an episode with shorter steps [m], shape (3,)."""
        with torch.no_grad():
            motion = self.motion(self.finer)
            start, end = (self.sim.center_of_mass(state)[0] for state in (motion.start, motion.final))
            return (end - start).tolist()

    def value(self, row: np.ndarray) -> float:
        """Loss for the raw controls in `row` [m]."""
        with torch.no_grad():
            self.raw.copy_(torch.as_tensor(row).reshape(self.raw.shape))
            return float(self.distance())


def adam(stroke: Stroke) -> wb.methods.Torch:
    """Adam with the settings of a stroke, of which the learning rate decreases."""
    fade = functools.partial(torch.optim.lr_scheduler.ExponentialLR, gamma=stroke.fade)
    return wb.methods.Torch(lr=stroke.rate, betas=(0.9, stroke.memory), max_norm=stroke.longest, scheduler=fade)


def by_adam(stroke: Stroke, seed: int, episodes: int) -> None:
    """Run Adam, and set the stroke to the best controls."""
    wb.minimize(stroke.distance, stroke.raw, adam(stroke), iterations=episodes - 1, progress=False)


def by_evolution(stroke: Stroke, seed: int, episodes: int) -> None:
    """Run CMA-ES with a diagonal covariance (Ros & Hansen 2008), as there are hundreds of unknowns or more."""
    import cma

    options = {"CMA_diagonal": True, "seed": seed + 1, "verbose": -9, "popsize": min(10, episodes)}
    search = cma.CMAEvolutionStrategy(stroke.raw.detach().double().numpy().ravel(), FIRST, options)
    while len(stroke.losses) < episodes:
        points = search.ask()
        search.tell(points, [stroke.value(point) for point in points])
    with torch.no_grad():
        stroke.raw.copy_(torch.as_tensor(search.result.xbest).reshape(stroke.raw.shape))


METHODS: dict[str, Callable[[Stroke, int, int], None]] = {"Adam": by_adam, "CMA-ES": by_evolution}


def discretised(simulation: Callable[..., wb.Simulation], how: refined.Refinement, fineness: int = 1) -> wb.Simulation:
    """A simulation in a discretisation.

    Args:
        simulation: Function of the ``fineness`` of the mesh and of ``substeps``.
        how: The discretisation, relative to the mesh with which a motion was found.
        fineness: Fineness of this mesh.
    """
    return simulation(fineness=round(fineness / how.cells), substeps=how.steps)


def refine(
    strokes: Mapping[str, Stroke], simulation: Callable[..., wb.Simulation], fineness: int = 1, cells: float = 0.5
) -> None:
    """Play stored strokes of a swimmer again, finer; the measure is how much nearer to the target the swimmer comes.

    Args:
        strokes: The strokes by the names under which Adam's first seed is stored.
        simulation: Function that makes the simulation with a mesh of some ``fineness`` and with some ``substeps``.
        fineness: Fineness of the mesh with which the strokes were found.
        cells: Factor of the size of cells on the finer mesh.
    """

    def play(how: refined.Refinement, name: str) -> float:
        stroke, sim = strokes[name], discretised(simulation, how, fineness)
        stroke.raw = refined.kept(name)["raw"][: stroke.steps]
        motion = stroke.motion(sim)
        start, end = (sim.center_of_mass(state)[0] for state in (motion.start, motion.final))
        way = stroke.target - stroke.sim.center_of_mass(stroke.sim.state())[0]
        return float(way.norm() - (start + way - end).norm())

    refined.table({name: functools.partial(play, name=name) for name in strokes}, cells)


def compare(
    name: str, stroke: Stroke, seeds: int, episodes: int, methods: Sequence[str] = tuple(METHODS)
) -> list[dict]:
    """Run each method from the start of each seed, all with the same number of episodes; return the results.

    The stroke that Adam finds from seed 0 is stored under `name`.
    """
    found = []
    for method in methods:
        for seed in range(seeds):
            stroke.start(seed)
            begun = time.process_time()
            METHODS[method](stroke, seed, episodes)
            if method == "Adam" and seed == 0:
                refined.keep(name, raw=stroke.raw)
            curve = stroke.losses[:episodes]
            arrived = np.flatnonzero(np.array(curve) < stroke.near)
            run = {
                "method": method, "seed": seed, "curve": curve, "seconds": time.process_time() - begun,
                "arrived": int(arrived[0]) + 1 if len(arrived) else None, "raw": stroke.raw.detach().tolist(),
                "finer": stroke.way(),
            }  # fmt: skip
            print(
                f"{stroke.sim.scene.name}, {method}, seed {seed}: {1e3 * curve[0]:.1f} mm from the target at first, "
                f"{1e3 * min(curve):.2f} at best, below {1e3 * stroke.near:.3g} in episode {run['arrived'] or '-'} of "
                f"{len(curve)}; in shorter steps {1e3 * np.linalg.norm(run['finer']):.0f} mm; {run['seconds']:.0f} s",
                flush=True,
            )
            found.append(run)
        ends = [1e3 * min(run["curve"]) for run in found if run["method"] == method]
        print(f"    {method}: {interval(ends)} mm", flush=True)
    return found


def interval(values: Sequence[float]) -> str:
    """Text of the mean of values and, for several values, its confidence interval of 90 % by Student's t."""
    if len(values) < 2:
        return f"{values[0]:.3g}"
    half = student.ppf(0.95, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.3g} +- {half:.2g}"


def show(name: str, stroke: Stroke, runs: Sequence[Mapping], folder: Path, out: Path | None) -> None:
    """Draw the losses of all runs, and the episodes before and after learning of the first seed, also as USD."""
    used = dict.fromkeys(run["method"] for run in runs)
    losses = {m: [1e3 * np.minimum.accumulate(r["curve"]) for r in runs if r["method"] == m] for m in used}
    wb.view.save_losses(folder / f"{name}.png", losses, "distance so far [mm]")
    stroke.start(0)
    learnt = next(r for r in runs if r["method"] == "Adam" and r["seed"] == 0)
    for when, raw in {"before": stroke.raw.detach(), "after": torch.tensor(learnt["raw"]).to(stroke.raw)}.items():
        stroke.raw = raw
        with torch.no_grad():
            film(folder / f"{name}_{when}.png", stroke.motion(), out, stroke.target.numpy())


def film(path: Path, motion: wb.Trajectory, out: Path | None, goal: np.ndarray | None = None) -> None:
    """Draw a motion with the goal of its centre of mass [m], shape (3,), and write it to a folder as USD."""
    wb.view.film_strip(motion, sized(6, 2), goal=goal).save(path)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        wb.usd.write(out / f"{path.stem}.usda", motion)
