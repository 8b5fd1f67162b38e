"""DiffHand's Flip Box with several numbers of contact points and steps at once, so that the result depends on neither.

    python benchmarks/papers/diffhand_resolved.py [--iterations N]

The finger and the controls of `diffhand_compare` fail when more contact points stand for the same surface. Beginning
with these, one design and one table of controls are optimised for several numbers of contact points at once, `LEARNT`:
the loss is the mean of their losses, and a rollout is an episode for each. L-BFGS-B stays where it begins, as its line
search follows the cliff between a box that is flipped and one that is not; Adam does not. The result is judged with the
numbers and steps `JUDGED`, most of which the search has not seen. Writes ``stored/diffhand_flip.npz`` and a film strip,
``diffhand_flip_resolved.png``, beside this file; `diffhand_compare` plays the result with ``--refine``.
"""

import argparse
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[0]))

import refined
from diffhand_sizes import NEAR, learn, stored, task_of
from diffhand_strips import strip
from fast import figures, sized

import warpbots as wb

HERE = figures(__file__)
"""Where the film strip goes."""
LEARNT = sized(((1, 1), (2, 1), (3, 1)), ((1, 1), (2, 1)))
"""Factors of the numbers of contact points and of time steps that the search sees."""
JUDGED = sized((*LEARNT, (4, 1), (6, 1), (8, 1), (1, 2), (3, 2), (4, 2)), ((1, 2),))
"""Factors with which a result is tried."""
SHOWN = sized((4, 1), (1, 1))
"""Factors in the film strip, which the search has not seen."""


def adam() -> wb.methods.Torch:
    """Adam with steps that become shorter."""
    shorter = torch.optim.lr_scheduler.ExponentialLR
    return wb.methods.Torch(lr=0.03, betas=(0.9, 0.99), scheduler=lambda rule: shorter(rule, 0.985))


def judge(label: str, controls: torch.Tensor, factors: torch.Tensor) -> None:
    """Print what is missing of a quarter turn with each of the discretisations `JUDGED`."""
    flipped = 0
    for points, steps in JUDGED:
        with torch.no_grad():
            missing = float(task_of(points=points, steps=steps).evaluate(controls[None], factors)[1])
        flipped += missing < NEAR
        seen = " (seen)" if (points, steps) in LEARNT else ""
        print(f"{label}, {points} times the points, {steps} times the steps{seen}: {missing:.2f} degrees", flush=True)
    print(f"{label}: the box is flipped in {flipped} of {len(JUDGED)}", flush=True)


def film(controls: torch.Tensor, factors: torch.Tensor) -> None:
    """Draw moments of an episode in the discretisation `SHOWN`."""
    points, steps = SHOWN
    how = f"{points} times the contact points"
    strip(task_of(points=points, steps=steps), controls, factors, how, HERE / "diffhand_flip_resolved.png")


def main() -> None:
    """Judge the stored result, optimise it for all discretisations, judge it again, store and draw it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=sized(40, 1), help="of Adam (%(default)s)")
    options = parser.parse_args()
    controls, factors = stored()
    judge("with the points of the paper", controls, factors)
    tasks = [task_of(points=points, steps=steps) for points, steps in LEARNT]
    begun = time.process_time()
    history = learn(tasks, controls, factors, adam(), options.iterations)
    print(
        f"mean loss {history.loss[0]:.0f} to {min(history.loss):.0f} in {history.episodes[-1]} episodes of "
        f"{len(LEARNT)} discretisations, {time.process_time() - begun:.0f} s of CPU time"
    )
    refined.keep("diffhand_flip", controls=controls, factors=factors)
    judge("with all of these", controls, factors)
    film(controls.detach(), factors.detach())


if __name__ == "__main__":
    main()
