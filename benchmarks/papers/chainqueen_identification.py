"""ChainQueen section 5.1: E, density and Poisson's ratio of a finger, from noisy motions of its particles.

    python benchmarks/papers/chainqueen_identification.py --seeds 20

A finger of 0.1 x 0.4 stands on a table; two cables along its sides bend the finger in ten sequences of 200 keyframes,
in which 100 particles are tracked with noise of 2e-3. True and initial values are taken from the paper, which does not
give the noise, the size of the finger or gravity. Each seed gives another noise. L-BFGS-B descends along the valley in
which E and nu compensate each other; then `warpbots.least_squares` finishes the search and gives intervals. Adam on the
same data serves for comparison. ``--refine`` fits data of a finger in half the step and of one with cells of half the
size, which no values of the constants explain entirely. An epoch is one rollout of all ten sequences, with or without
its gradient; the number printed in the paper is about 100 epochs of SGD. Writes ``chainqueen_identification.png``, the
estimates with intervals of 90 %, and a film strip of the sequence with the largest bending beside this file.
"""

import time
from typing import Any

import numpy as np
import refined
import torch
from chainqueen_common import HERE, KILO, film, options, sized, wb
from scipy.spatial import cKDTree

SEQUENCES, KEYFRAMES = sized((10, 200), (2, 4))
TRACKED = 100
NOISE = 2e-3
"""Standard deviation of each coordinate of a tracked particle [m]."""
TRUTH = {"E": 20.0, "density": 2.33, "nu": 0.25}
START = {"E": 15.0, "density": 3.0, "nu": 0.3}
FIELDS = {"E": ("youngs_modulus", KILO), "density": ("density", KILO), "nu": ("poissons_ratio", 1.0)}
"""Parameter of each number, and its unit."""
BOUNDS = {"E": (5.0, 60.0), "density": (0.5, 8.0), "nu": (0.0, 0.45)}
SEARCH, ADAM = sized((40, 50), (2, 2))
"""Iterations of L-BFGS-B and of Adam."""
LEVEL = 0.9
FOUND = refined.Refinement()
FINER = refined.Refinement(steps=2), refined.Refinement(cells=0.5)
"""Discretisations whose data are fitted with the one in which they are searched."""


def finger(device: str | None, worlds: int = SEQUENCES) -> wb.Simulation:
    """Simulation of the finger, with a world for each sequence; g = 2 in the paper's units, as for its arms."""
    box = wb.shapes.Box((0.25, 0.0), (0.35, 0.4))
    material = wb.Material(20 * KILO, 0.3, KILO)
    cables = [
        wb.actuators.Cable(side, [(x, 0.01 + 0.04 * k) for k in range(10)], 400.0)
        for side, x in (("left", 0.26), ("right", 0.34))
    ]
    table = wb.Obstacle(wb.shapes.HalfSpace((0.0, 0.0), (0.0, 1.0)), "sticky", name="table")
    scene = wb.Scene(
        [wb.SoftBody("finger", box, material)], cables, [table], gravity=(0.0, -2.0), domain=((-0.1, 0.0), (0.7, 0.55))
    )
    return wb.Simulation(
        scene, wb.MPM(dx=0.025), dt=1e-2, substeps=4, worlds=worlds, device=device, checkpoints=wb.Checkpoints.all()
    )


def signals() -> torch.Tensor:
    """Control signals: the left cable is wound in and out, randomly and smoothly, the right cable only a little."""
    rng = np.random.default_rng(0)
    s = np.linspace(0.0, 1.0, KEYFRAMES)
    waves = [
        np.stack(
            [
                top * np.sin(np.pi * s) ** 2 * (1.0 + 0.5 * np.sin(2.0 * np.pi * (beat * s + phase)))
                for top, beat, phase in zip((most, 0.2 * most), rng.uniform(1, 5, 2), rng.uniform(0, 1, 2), strict=True)
            ],
            axis=1,
        )
        for most in np.linspace(0.1, 0.3, SEQUENCES)
    ]
    return torch.as_tensor(np.stack(waves), dtype=torch.get_default_dtype())


class Experiment:
    """The simulated finger with a camera that tracks particles.

    Attributes:
        sim: The simulation.
        control: Control signals of the sequences that are simulated, shape (worlds, keyframes, 2).
        tracked: Indices of the particles whose means are tracked, shape (tracked, particles).
    """

    def __init__(self, device: str | None, worlds: int = SEQUENCES, how: refined.Refinement = FOUND):
        """Build the finger, and choose the particles to track; `worlds` sequences are simulated at once.

        Four particles of a grid with cells of half the size stand for one of the other grid, in their middle.
        """
        found = finger(device, worlds)
        self.sim, self.control = refined.again(found, how, "dx"), signals()[:worlds]
        count = len(found.model.matter)
        places = found.model.matter.position[np.linspace(0, count - 1, min(TRACKED, count)).round().astype(int)]
        nearest = cKDTree(self.sim.model.matter.position).query(places, k=[*range(1, round(how.cells**-2) + 1)])[1]
        self.tracked = torch.as_tensor(nearest)
        shapes = {name: torch.ones_like(self.sim.parameter(name)) for name, _ in FIELDS.values()}
        self._fields = {number: (name, unit * shapes[name]) for number, (name, unit) in FIELDS.items()}

    def motion(self, numbers: dict[str, torch.Tensor]) -> wb.Trajectory:
        """Simulate all sequences with the material constants `numbers`, in the paper's units."""
        changed = {name: numbers[number] * field for number, (name, field) in self._fields.items()}
        return self.sim.rollout(self.control, KEYFRAMES, observe=self._seen, **changed)

    def _seen(self, state: Any) -> torch.Tensor:
        return state.position[:, self.tracked].mean(dim=2).flatten(1)

    def tracks(self, numbers: dict[str, torch.Tensor]) -> torch.Tensor:
        """Positions of the tracked particles [m], shape (sequences, keyframes, 2 * tracked)."""
        return self.motion(numbers).observation


def leaves() -> dict[str, torch.Tensor]:
    """Initial values of the constants for a search, as tensors that require gradients."""
    return {number: torch.tensor(value, requires_grad=True) for number, value in START.items()}


def unknowns(numbers: dict[str, torch.Tensor]) -> dict[str, wb.Unknown]:
    """The constants as unknowns with bounds; the scale of an unknown is a fifth of its initial value."""
    return {number: wb.Unknown(t, *BOUNDS[number], scale=0.2 * START[number]) for number, t in numbers.items()}


def mean_square(experiment: Experiment, numbers: dict[str, torch.Tensor], data: torch.Tensor) -> torch.Tensor:
    """Mean square of the distances to the data, in units of ten standard deviations of the noise."""
    return (experiment.tracks(numbers) - data).square().mean() / (10.0 * NOISE) ** 2


def fit(experiment: Experiment, data: torch.Tensor) -> tuple[wb.optimize.Estimate, int]:
    """Fit the constants to the data; return the estimate and the number of epochs."""
    numbers = leaves()
    search = wb.minimize(
        lambda: mean_square(experiment, numbers, data), unknowns(numbers), wb.methods.SciPy("L-BFGS-B", ftol=1e-5),
        iterations=SEARCH, progress=False,
    )  # fmt: skip
    found = wb.least_squares(
        lambda: experiment.tracks(numbers) - data, unknowns(numbers), noise=NOISE, tolerance=1e-4, progress=False
    )
    return found, search.episodes[-1] + found.history.episodes[-1]


def descend(experiment: Experiment, data: torch.Tensor) -> tuple[wb.optimize.History, float]:
    """Fit the constants by Adam; return the history and the largest relative error of a constant."""
    numbers = leaves()
    shorter = torch.optim.lr_scheduler.ExponentialLR
    method = wb.methods.Torch(lr=0.25, betas=(0.7, 0.99), scheduler=lambda rule: shorter(rule, 0.93))
    history = wb.minimize(
        lambda: mean_square(experiment, numbers, data), unknowns(numbers), method, iterations=ADAM, progress=False
    )
    return history, max(abs(numbers[n].item() / TRUTH[n] - 1.0) for n in TRUTH)


def refine(device: str | None) -> None:
    """Fit data of finer discretisations, under the first noise."""
    experiment = Experiment(device)
    for how in (FOUND, *FINER):
        torch.manual_seed(0)
        with torch.no_grad():
            data = Experiment(device, how=how).tracks({number: torch.tensor(value) for number, value in TRUTH.items()})
        estimate, count = fit(experiment, data + NOISE * torch.randn_like(data))
        off = ", ".join(f"{n} {v / TRUTH[n] - 1.0:+.2%}" for n, v in zip(TRUTH, estimate.value, strict=True))
        print(f"{how}: {off}, reduced chi square {estimate.reduced_chi_square:.3f}, {count} epochs", flush=True)


def draw(found: list[wb.optimize.Estimate]) -> None:
    """Draw the estimates of all seeds with their intervals, beside the true values."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(10, 3), layout="constrained")
    labels = {"E": "E [kPa]", "density": "density [10³ kg/m²]", "nu": "Poisson's ratio"}
    for i, (ax, number) in enumerate(zip(axes, TRUTH, strict=True)):
        ends = np.array([e.interval(LEVEL)[i] for e in found])
        inside = (ends[:, 0] <= TRUTH[number]) & (TRUTH[number] <= ends[:, 1])
        for k in range(len(found)):
            ax.plot([k, k], ends[k], color="C0" if inside[k] else "C3", linewidth=3)
        ax.axhline(TRUTH[number], color="0.3", linewidth=1)
        ax.set(xlabel="noise", ylabel=labels[number], title=f"{inside.sum()} of {len(found)} intervals of 90 %")
    figure.savefig(HERE / "chainqueen_identification.png", dpi=110)


def main() -> None:
    """Print the rows of the table, and draw the figures."""
    chosen = options(__doc__, "out", "refine", seeds=20)
    if chosen.refine:
        refine(chosen.device)
        return
    experiment, found, epochs, seconds = Experiment(chosen.device), [], [], []
    truth = {number: torch.tensor(value) for number, value in TRUTH.items()}
    with torch.no_grad():
        motion = experiment.motion(truth)
    print(experiment.sim.model.summary(), flush=True)
    for seed in range(chosen.seeds):
        torch.manual_seed(seed)
        data = motion.observation + NOISE * torch.randn_like(motion.observation)
        began = time.perf_counter()
        estimate, count = fit(experiment, data)
        found.append(estimate)
        epochs.append(count)
        seconds.append(time.perf_counter() - began)
    error = [np.abs(e.value / list(TRUTH.values()) - 1.0).max() for e in found]
    covered = [sum(a <= t <= b for (a, b), t in zip(e.interval(LEVEL), TRUTH.values(), strict=True)) for e in found]
    print(f"{found[0]}\nreduced chi square {found[0].reduced_chi_square:.4f}")
    print(
        f"{len(found)} seeds: largest error {max(error):.2%}, at most {max(epochs)} epochs, {sum(covered)} of "
        f"{3 * len(found)} intervals of 90 % cover, {np.mean(seconds):.1f} s a fit"
    )
    began = time.perf_counter()
    history, worst = descend(experiment, data)
    print(f"Adam: largest error {worst:.2%} after {history.episodes[-1]} epochs, {time.perf_counter() - began:.0f} s")
    draw(found)
    film("chainqueen_identification_motion", motion, chosen.out)


if __name__ == "__main__":
    main()
