"""Topology and shape together: a finger from a grammar that reaches two targets, by search and by brute force.

    python benchmarks/papers/diffhand_topologies.py [--seeds N] [--json FILE]

Sixteen fingers, on either side of a palm, with and without a knuckle, of one to four phalanges; lengths and controls
are unknown. Brute force gives each 60 episodes of L-BFGS-B; `warpbots.search` and equal shares have a third of these
episodes for all together.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fast import sized

import warpbots as wb
from warpbots.design import Assembly, hand_grammar, mounted

CM = 0.01
"""Centimetre [m]: the unit of the loss."""
INTERVALS = sized(12, 2)
"""In which the controls of an episode are held."""
EACH = sized(60, 12)
"""Episodes of each topology by brute force."""
LARGEST = sized(11, 4)
"""Largest number of components."""
TIP = (22.1e-3, 0.0, 0.0)
"""The end of a finger in the frame of its tip [m]."""


def fingers() -> dict[str, Assembly]:
    """All topologies; widths and heights are constant."""
    grammar = hand_grammar({"hand": ["palm(out: finger)", "palm(back: finger)"]})
    return {str(t): t.assembly(constant=("*width", "*height")) for t in grammar.topologies(LARGEST)}


def targets(seed: int) -> torch.Tensor:
    """Two targets on one side of the palm [m], shape (2, 3)."""
    rng = np.random.default_rng(seed)
    side = rng.choice([-1.0, 1.0])
    return torch.as_tensor(CM * rng.uniform((5.0, -5.0, -5.0), (13.0, 5.0, 5.0), (2, 3)) * [side, 1.0, 1.0])


def reach(goals: torch.Tensor) -> Callable[[Assembly], tuple]:
    """Function that states the problem of a finger.

    The loss is the mean distance to the first target and then to the second target, in 0.6 s without gravity.
    """
    goal = goals.repeat_interleave(INTERVALS // 2, dim=0)

    def problem(finger: Assembly) -> tuple:
        scene = mounted(finger, gravity=(0.0, 0.0, 0.0))
        sim = wb.Simulation(scene, wb.Articulated(), dt=0.05, substeps=5, checkpoints=wb.Checkpoints.all())
        factors = finger.rest.requires_grad_()
        control = torch.zeros(INTERVALS, sim.channels, dtype=torch.float64, requires_grad=True)

        def loss() -> torch.Tensor:
            shape = finger.shape(factors)
            changed = finger.model_parameters(sim, shape)
            link, end = finger.carried("tip", [TIP], shape)
            k = sim.model.robot.body(link)

            def tip(state):
                readings = sim.sense(state, **changed)
                return readings.position[:, k] + readings.rotation[:, k] @ end[0]

            signal = torch.tanh(control)
            seen = sim.rollout(signal, INTERVALS, observe=tip, **changed).observation[0]
            return (seen - goal).norm(dim=1).mean() / CM + 0.02 * signal.square().sum()

        return loss, {"factors": wb.Unknown(factors, 0.5, 2.0), "control": wb.Unknown(control, -2.0, 2.0)}

    return problem


def alone(candidates: dict[str, Assembly], problem: Callable, episodes: int) -> dict[str, float]:
    """Best loss of each topology after a number of episodes."""
    found = {}
    for name, finger in candidates.items():
        loss, unknowns = problem(finger)
        history = wb.minimize(loss, unknowns, method(), iterations=episodes, episodes=episodes, progress=False)
        found[name] = history.loss[history.best]
    return found


def method() -> wb.methods.SciPy:
    """The method that optimises the unknowns of each topology."""
    return wb.methods.SciPy("L-BFGS-B")


def compare(seed: int, candidates: dict[str, Assembly]) -> dict:
    """Compare brute force, a search, and equal shares of the episodes."""
    problem, whole = reach(targets(seed)), EACH * len(candidates)
    begun = time.perf_counter()
    brute = alone(candidates, problem, EACH)
    shares = alone(candidates, problem, whole // 3 // len(candidates))
    history = wb.search(candidates, problem, method(), episodes=whole // 3, progress=False)
    order = sorted(brute, key=brute.get)
    best, share = order[0], min(shares, key=shares.get)
    result = {
        "seed": seed, "targets_cm": (targets(seed) / CM).tolist(), "brute": brute, "shares": shares,
        "best": best, "search": history.best, "search_loss": history.ranking[0].loss,
        "search_episodes": history.episodes,
        "rank": order.index(history.best) + 1, "share": share, "curve": history.curve,
        "seconds": time.perf_counter() - begun,
    }  # fmt: skip
    print(
        f"seed {seed}: brute force {brute[best]:.4f} in {whole} episodes ({best}); search "
        f"{result['search_loss']:.4f} in {history.episodes} ({history.best}, number {result['rank']} of brute force); "
        f"equal shares {shares[share]:.4f} ({share})",
        flush=True,
    )
    return result


def main() -> None:
    """Compare for every seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=sized(5, 1))
    parser.add_argument("--json", type=Path, help="where to write all results")
    options = parser.parse_args()
    candidates = fingers()
    found = [compare(seed, candidates) for seed in range(options.seeds)]
    if options.json:
        options.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
