"""ChainQueen figure 5: loss, E, density and Poisson's ratio over epochs of SGD, with ten noisy copies of each sequence.

    python benchmarks/papers/chainqueen_epochs.py [--seeds 1]

The finger, its cables, the sequences, and the true and initial values are those of `chainqueen_identification`, which
uses another search.
As in the paper, each of the ten sequences has ten copies, with other noise on the tracked particles in each; an epoch
takes the sequences in random order, and takes a step of stochastic gradient descent with momentum after each, for the
mean square of the distances to all ten copies. The scale of a parameter is a fifth of its initial value. The figure of
the paper shows convergence within about 100 epochs; it gives neither learning rates nor final values. Each seed gives
other noise and another order. Writes ``chainqueen_epochs.png`` beside this file.
"""

import time

import numpy as np
import torch
from chainqueen_common import HERE, options, sized
from chainqueen_identification import NOISE, SEQUENCES, START, TRUTH, Experiment, signals

COPIES = 10
EPOCHS = sized(60, 1)
RATE, MOMENTUM = 1.0, 0.9
"""Learning rate for parameters in their scale and distances in units of ten standard deviations of the noise."""
SCALE = {number: 0.2 * value for number, value in START.items()}


def descend(experiment: Experiment, clean: torch.Tensor, seed: int) -> np.ndarray:
    """Fit the constants to noisy copies of the sequences `clean`, shape (sequences, keyframes, coordinates).

    Returns the root mean square of the distances [m], and the constants, before the first epoch and after each epoch;
    shape (EPOCHS + 1, 4). The distances of an epoch are those that its steps saw, and those before it are of the first.
    """
    generator = torch.Generator().manual_seed(seed)
    data = clean + NOISE * torch.randn((COPIES, *clean.shape), generator=generator)
    x = torch.zeros(len(START), requires_grad=True)
    rule, found = torch.optim.SGD([x], lr=RATE, momentum=MOMENTUM), []
    controls = signals()

    def constants() -> dict[str, torch.Tensor]:
        return {number: START[number] + SCALE[number] * value for number, value in zip(START, x, strict=True)}

    for epoch in range(EPOCHS):
        squares = []
        for sequence in torch.randperm(SEQUENCES, generator=generator).tolist():
            experiment.control = controls[sequence : sequence + 1]
            square = (experiment.tracks(constants())[0] - data[:, sequence]).square().mean()
            rule.zero_grad()
            (square / (10.0 * NOISE) ** 2).backward()
            rule.step()
            squares.append(square.item())
        if epoch == 0:
            found.append([np.sqrt(squares[0]), *START.values()])
        found.append([np.sqrt(np.mean(squares)), *(value.item() for value in constants().values())])
        print(f"    epoch {epoch + 1}: " + ", ".join(f"{value:.5g}" for value in found[-1]), flush=True)
    return np.array(found)


def draw(runs: list[np.ndarray]) -> None:
    """Draw loss and constants of all seeds over the epochs, the constants relative to their true values."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 3.8), dpi=110, layout="constrained")
    left, right = figure.subplots(1, 2)
    for k, run in enumerate(runs):
        left.plot(1e3 * run[:, 0], color="C3", label=None if k else "SGD")
        for column, (number, truth) in enumerate(TRUTH.items(), 1):
            right.plot(run[:, column] / truth, color=f"C{column - 1}", label=None if k else number)
    left.axhline(1e3 * NOISE, color="0.5", lw=0.8, label="noise")
    right.axhline(1.0, color="0.5", lw=0.8)
    left.set(xlabel="epochs", ylabel="root mean square distance [mm]", yscale="log")
    right.set(xlabel="epochs", ylabel="relative to the truth")
    for ax in (left, right):
        ax.legend(frameon=False)
    figure.savefig(HERE / "chainqueen_epochs.png")


def main() -> None:
    """Print the row of the table, and draw the figure."""
    chosen = options(__doc__, seeds=1)
    experiment, runs = Experiment(chosen.device, 1), []
    clean, controls = [], signals()
    with torch.no_grad():
        for control in controls:
            experiment.control = control[None]
            clean.append(experiment.tracks({n: torch.tensor(value) for n, value in TRUTH.items()})[0])
    for seed in range(chosen.seeds):
        begun = time.process_time()
        runs.append(descend(experiment, torch.stack(clean), seed))
        away = runs[-1][:, 1:] / list(TRUTH.values()) - 1.0
        near = [int(np.flatnonzero(np.abs(column) > 0.05).max(initial=-1)) + 1 for column in away.T]
        last = ", ".join(f"{number} {share:+.2%}" for number, share in zip(TRUTH, away[-1], strict=True))
        print(
            f"seed {seed}: {1e3 * runs[-1][0, 0]:.1f} to {1e3 * runs[-1][-1, 0]:.2f} mm (noise {1e3 * NOISE:g} mm); "
            f"after {EPOCHS} epochs {last}; within 5 % for good after {near} epochs; "
            f"{time.process_time() - begun:.0f} s of CPU time",
            flush=True,
        )
    draw(runs)


if __name__ == "__main__":
    main()
