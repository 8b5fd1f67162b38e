"""Soft multi-body paper, figure 4a: a pneumatic gripper on a drone learns to lift a ball by 0.3 m in 50 steps.

    python benchmarks/papers/softbody_gripper.py [--size full] [--seeds N] [--episodes N] [--json FILE]
    python benchmarks/papers/softbody_gripper.py --check

Unknown are the activation of the four arms, with 14 pneumatic cells each, and the velocity of the drone along three
axes in each of 50 steps of 10 ms: 350 numbers. The loss is the distance of the ball's centre from its target after the
last step, as in the paper. Gradient steps are Polyak's steps, whose length would bring a linear loss to zero. CMA-ES
gets the same number of episodes on the same unknowns from the same starts. Then the first controller that was found
grips heavier balls, a cube and a rod, and a ball with less friction. With ``--size full`` there are 2,768 tetrahedra;
the paper has 3,008. ``--check`` compares the gradient of the loss with a difference, in double precision. Prints tables
and writes ``softbody_gripper.png`` and film strips before and after beside this file.
"""

import argparse
import dataclasses
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch

if __name__ == "__main__" and "--check" in sys.argv:
    os.environ.setdefault("WARPBOTS_PRECISION", "float64")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[0]))

import refined
from fast import FAST, figures, sized
from softbody_grip import REACH, gripper_scene

import warpbots as wb

HERE = figures(__file__)
"""Where figures go."""
NAME = "softbody_gripper"
"""Of figures and of the stored controls."""
STEP, STEPS = 0.01, sized(50, 1)
TARGET = (0.0, 0.0, 0.3)
"""Where the centre of the ball has to be in the end [m]; it starts at the origin."""
FASTEST = 1.5
"""Largest velocity of the drone along an axis [m/s]."""
ARMS = 4
NEAR = 0.01
"""Loss below which the ball counts as delivered, and the gradient method ends [m]."""
LONGEST = 0.5
"""Largest change of an unknown in a step of the gradient method."""
SUBSTEPS = 2
"""Time steps in a control interval."""
FOUND = refined.Refinement()
"""Steps and cells with which the small search is run."""
SIZES = {"small": FOUND, "full": refined.Refinement(cells=sized(0.5, 1.0))}
"""Cells with which a search is run, relative to the small one."""
FINER = {"small": sized(0.5, 1.0), "full": sized(2 / 3, 1.0)}
"""Factor of the cells with which the grip of a size is played finer."""
TRIALS = (
    ("ball", 1.0, 0.8), ("ball", 2.0, 0.8), ("ball", 4.0, 0.8), ("ball", 1.0, 0.4), ("ball", 1.0, 0.0),
    ("cube", 1.0, 0.8), ("cube", 4.0, 0.8), ("rod", 1.0, 0.8),
)  # fmt: skip
"""Loads with their mass [kg] and coefficients of friction."""


def simulation(
    load: str = "ball", mass: float = 1.0, friction: float = 0.8,
    tolerance: float | None = None, how: refined.Refinement = FOUND, worlds: int = 1,
) -> wb.Simulation:  # fmt: skip
    """Simulation with a soft load; refined, in shorter steps or with smaller cells across the arms."""
    scene = gripper_scene(load, mass, friction, round(1.0 / how.cells))
    solver = wb.ProjectiveDynamics(tolerance=tolerance)
    return wb.Simulation(scene, solver, STEP, how.steps * SUBSTEPS, worlds=worlds, checkpoints=wb.Checkpoints.all())


class Grip:
    """Episodes of the gripper, and the controls on which the episodes depend.

    Attributes:
        sim: The simulation.
        steps: Control intervals of an episode.
        raw: The unknowns, shape (steps, 7): controls are bounded by tanh.
        target: Where the centre of the load has to be in the end [m], shape (3,).
        losses: Loss of every episode since the last `start` [m].
    """

    def __init__(self, sim: wb.Simulation, target: Sequence[float] = TARGET, steps: int = STEPS):
        self.sim, self.target, self.steps = sim, torch.tensor(target), steps
        self.start(0)

    @classmethod
    def of(
        cls, load: str = "ball", mass: float = 1.0, friction: float = 0.8,
        tolerance: float | None = None, steps: int = STEPS, how: refined.Refinement = FOUND,
    ) -> "Grip":  # fmt: skip
        """Episodes with a soft load; refined, in shorter steps or with smaller cells across the arms."""
        return cls(simulation(load, mass, friction, tolerance, how), steps=steps)

    def start(self, seed: int) -> None:
        """Set the initial controls, which are the same in all steps.

        Each arm has a random activation of 0.4 to 0.7, and the drone drifts by a few centimetres.
        """
        rng = np.random.default_rng(seed)
        first = np.concatenate([np.arctanh(rng.uniform(0.4, 0.7, ARMS)), 0.05 * rng.normal(size=3)])
        self.raw = torch.tensor(np.tile(first, (self.steps, 1)), dtype=torch.get_default_dtype(), requires_grad=True)
        self.losses: list[float] = []

    def controls(self) -> torch.Tensor:
        """Signals of all steps, shape (steps, 7): activations, and positions of the drone as sums of its velocities."""
        u = torch.tanh(self.raw)
        return torch.cat([u[:, :ARMS], (FASTEST * STEP / REACH * u[:, ARMS:]).cumsum(0)], dim=1)

    def rollout(self) -> wb.Trajectory:
        """Simulate the motion of an episode."""
        return self.sim.rollout(self.controls(), self.steps)

    def centre(self, state: object) -> torch.Tensor:
        """Centre of the load [m], shape (3,)."""
        return self.sim.center_of_mass(state, "load")[0]

    def loss(self) -> torch.Tensor:
        """Distance of the load from its target at the end [m]."""
        centre = self.centre(self.rollout().final)
        loss = (centre - self.target.to(centre)).norm()
        self.losses.append(float(loss.detach()))
        return loss


def by_gradient(grip: Grip, seed: int, episodes: int) -> None:
    """Take Polyak's steps (1969) towards a loss of zero, until the loss is below `NEAR`.

    No entry of a step is larger than `LONGEST`. An episode in which a time step or the gradient fails counts, and the
    next episode takes half of the step.
    """
    start, move = grip.raw.detach().clone(), torch.zeros_like(grip.raw)
    for episode in range(episodes):
        tried = len(grip.losses)
        try:
            loss = grip.loss()
            if episode == episodes - 1 or grip.losses[-1] < NEAR:
                return
            step = _polyak(loss, grip.raw)
        except (wb.SimulationError, FloatingPointError) as fault:
            grip.losses[tried:] = grip.losses[tried:] or [np.inf]
            move = 0.5 * move
            print(f"    seed {seed}, episode {episode + 1}: {fault}", flush=True)
        else:
            start, move = grip.raw.detach().clone(), -step * min(1.0, LONGEST / float(step.abs().max()))
        with torch.no_grad():
            grip.raw.copy_(start + move)


def _polyak(loss: torch.Tensor, raw: torch.Tensor) -> torch.Tensor:
    """The step along the gradient that brings a linear loss to zero."""
    (slope,) = torch.autograd.grad(loss, raw)
    if not slope.any():
        raise RuntimeError("nothing touches the load, so that the loss has no gradient")
    return loss.detach() / slope.square().sum() * slope


def by_evolution(grip: Grip, seed: int, episodes: int) -> None:
    """Run CMA-ES with generations of five rollouts, or with its default population for a hundred episodes or more."""
    population = 5 if episodes < 100 else None
    method = wb.methods.CMA(0.5, population=population, seed=seed + 1)
    size = population or 4 + int(3 * np.log(grip.raw.numel()))
    wb.minimize(grip.loss, {"raw": grip.raw}, method, iterations=max(1, episodes // size), progress=False)


METHODS = {"gradient": by_gradient, "CMA-ES": by_evolution}


def learn(grip: Grip, method: str, seed: int, episodes: int) -> dict:
    """Run a method from the start of a seed, and return the result."""
    grip.start(seed)
    begun = time.process_time()
    METHODS[method](grip, seed, episodes)
    curve = grip.losses
    reached = np.flatnonzero(np.array(curve) < NEAR)
    found = {
        "method": method, "seed": seed, "curve": curve, "seconds": time.process_time() - begun,
        "reached": int(reached[0]) + 1 if len(reached) else None,
        "raw": grip.raw.tolist(),
    }  # fmt: skip
    print(
        f"{method}, seed {seed}: {1e3 * curve[0]:.0f} mm, best {1e3 * min(curve):.1f} mm of {len(curve)} episodes, "
        f"below {1e3 * NEAR:g} mm in episode {found['reached'] or '-'}, {found['seconds']:.0f} s",
        flush=True,
    )
    return found


def table(runs: list[dict], episodes: int) -> None:
    """Print the best losses of each method, mean and interval of 90 % over the seeds."""
    from scipy.stats import t

    for method in dict.fromkeys(run["method"] for run in runs):
        best = 1e3 * np.array([min(run["curve"][: episodes + 1]) for run in runs if run["method"] == method])
        half = t.ppf(0.95, len(best) - 1) * best.std(ddof=1) / np.sqrt(len(best)) if len(best) > 1 else 0.0
        print(f"{method:>10}: best of {episodes} episodes {best.mean():.1f} +- {half:.1f} mm, {np.round(best, 1)}")


def try_loads(raw: torch.Tensor) -> list[dict]:
    """Run the same controls with each load, and return the results."""
    found = []
    for load, mass, friction in TRIALS[: sized(len(TRIALS), 1)]:
        grip = Grip.of(load, mass, friction)
        grip.raw = raw
        with torch.no_grad():
            moved = grip.rollout()
            rise = grip.centre(moved.final) - grip.centre(moved.start)
        height, flown = float(rise[2]), float(moved.final.q[0, 2])
        row = {"load": load, "mass": mass, "friction": friction, "rise": height, "flown": flown}
        found.append(row | {"held": height > flown - 0.05})
        print(
            f"{load}, {mass:g} kg, friction {friction:g}: rises by {1e3 * height:.0f} mm while the drone rises by "
            f"{1e3 * flown:.0f} mm: {'held' if found[-1]['held'] else 'dropped'}",
            flush=True,
        )
    return found


def refine(size: str) -> None:
    """Play the stored grip of a size again, finer; the measure is how much nearer to its target the ball comes."""

    def play(how: refined.Refinement) -> float:
        grip = Grip.of(how=dataclasses.replace(how, cells=how.cells * SIZES[size].cells))
        grip.raw = refined.kept(refined.stored_as(NAME, size))["raw"][:STEPS]
        moved = grip.rollout()
        start, end = (grip.centre(state) for state in (moved.start, moved.final))
        target = grip.target.to(end)
        return float((start - target).norm() - (end - target).norm())

    refined.table({"pneumatic gripper": play}, FINER[size])


def check() -> None:
    """Print the derivative of the loss along a random direction, by gradient and by differences.

    The loss is evaluated after the first half of an episode.
    """
    grip = Grip.of(tolerance=1e-9, steps=sized(25, 1))
    (gradient,) = torch.autograd.grad(grip.loss(), grip.raw)
    start, along = grip.raw.detach().clone(), torch.as_tensor(np.random.default_rng(0).normal(size=grip.raw.shape))
    print(f"slope {float((gradient * along).sum()):.9f} m", flush=True)
    for size in (1e-4, 1e-5):
        ends = []
        for sign in (1.0, -1.0):
            with torch.no_grad():
                grip.raw.copy_(start + sign * size * along)
                ends.append(float(grip.loss()))
        print(f"difference over {2 * size:g}: {(ends[0] - ends[1]) / (2.0 * size):.9f} m", flush=True)


def film(name: str, grip: Grip, raw: torch.Tensor) -> None:
    """Draw several moments of an episode in one picture."""
    grip.raw = raw
    with torch.no_grad():
        wb.view.film_strip(grip.rollout(), 6, goal=TARGET).save(HERE / name)


def draw(name: str, grip: Grip, runs: list[dict], episodes: int) -> None:
    """Draw the best loss so far over episodes for both methods, and film strips of the first seed."""
    best = {}
    for method in dict.fromkeys(run["method"] for run in runs):
        curves = [np.minimum.accumulate(run["curve"][:episodes]) for run in runs if run["method"] == method]
        best[method] = [1e3 * np.pad(curve, (0, episodes - len(curve)), "edge") for curve in curves]
    wb.view.save_losses(HERE / f"{name}.png", best, "best distance so far [mm]")
    grip.start(0)
    film(f"{name}_before.png", grip, grip.raw.detach())
    film(f"{name}_after.png", grip, torch.tensor(runs[0]["raw"]))


def main() -> None:
    """Learn from every seed, try other loads, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=sized(5, 1))
    parser.add_argument("--episodes", type=int, default=sized(10, 1), help="of each method (%(default)s)")
    parser.add_argument("--methods", nargs="*", default=list(METHODS), help=", ".join(METHODS))
    parser.add_argument("--check", action="store_true", help="compare the gradient with differences, and end")
    parser.add_argument("--json", type=Path, help="results; what is there already is kept")
    parser.add_argument("--size", choices=[*SIZES], default="small", help="cells across the arms (%(default)s)")
    refined.option(parser)
    options = parser.parse_args()
    if options.check:
        check()
        return
    if options.refine:
        refine(options.size)
        return
    kept = options.json is not None and options.json.exists()
    found = json.loads(options.json.read_text()) if kept else {"runs": [], "trials": []}
    name, grip = refined.stored_as(NAME, options.size), Grip.of(how=SIZES[options.size])
    mesh = grip.sim.model.matter
    print(f"{len(mesh)} nodes, {len(mesh.tets)} tetrahedra, {grip.raw.numel()} unknowns", flush=True)
    for method in options.methods:
        for seed in range(options.seeds):
            if not any(run["method"] == method and run["seed"] == seed for run in found["runs"]):
                found["runs"].append(learn(grip, method, seed, options.episodes))
                if options.json:
                    options.json.write_text(json.dumps(found))
    table(found["runs"], options.episodes)
    if found["runs"][0]["method"] == "gradient":
        refined.keep(name, raw=torch.tensor(found["runs"][0]["raw"]))
    if options.size == "small":
        found["trials"] = found["trials"] or try_loads(torch.tensor(found["runs"][0]["raw"]))
    if options.json:
        options.json.write_text(json.dumps(found))
    if not FAST:
        draw(name, grip, found["runs"], options.episodes)


if __name__ == "__main__":
    main()
