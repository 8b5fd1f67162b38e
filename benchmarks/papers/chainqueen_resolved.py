"""ChainQueen's gaits on several grids at once, so that a gait belongs to none of them.

    python benchmarks/papers/chainqueen_resolved.py [biped] [flat]

A stored gait that loses distance on a finer grid or in shorter steps is optimised further in all discretisations that
its `Gait` names: the loss is the mean of their losses, and a rollout is a walk in each. Learning rates are small, as
the gait of the biped is lost in steps of 0.01. The best iteration is kept: later ones may make the walk longer on one
grid and shorter on another.
Writes ``stored/chainqueen_*_grids.npz`` and a film strip on a grid that the search has not seen,
``chainqueen_*_grids.png``, beside this file; the scripts of the gaits play the results with ``--refine``.
"""

import dataclasses
import functools
import time
from collections.abc import Callable
from typing import Any

import chainqueen_biped
import refined
import torch
from chainqueen_common import film, keep_walk, load_controller, options, sized, wb
from chainqueen_shapes import Walker, cost, simulation
from chainqueen_terrain import TERRAINS

FINER = sized(0.85, 1.5)
"""Factor of the size of cells on the second grid that the search sees."""
SHOWN = refined.Refinement(cells=sized(0.75, 1.5))
"""The discretisation in the film strip, which the search has not seen."""
GRIDS = refined.Refinement(), refined.Refinement(cells=FINER)


@dataclasses.dataclass(frozen=True)
class Gait:
    """A gait that is optimised further.

    Attributes:
        simulation: The simulation with which it was found.
        unknowns: Its values.
        loss: Function of a simulation: minus the distance [m], and the cost of the signals.
        motion: Function of a simulation: the walk.
        keep: Function of a name: stores the gait.
        lr: Learning rate of Adam in the first iteration.
        iterations: Number of iterations of Adam.
        decay: Factor by which the learning rate is multiplied after each iteration.
        learnt: The discretisations that the search sees.
    """

    simulation: wb.Simulation
    unknowns: Any
    loss: Callable[[wb.Simulation], torch.Tensor]
    motion: Callable[[wb.Simulation], wb.Trajectory[Any]]
    keep: Callable[[str], None]
    lr: float
    iterations: int
    decay: float = 1.0
    learnt: tuple[refined.Refinement, ...] = GRIDS


def biped(device: str | None) -> Gait:
    """The table of controls of the biped with cables."""
    sim, hold, steps = chainqueen_biped.biped(device), chainqueen_biped.HOLD, chainqueen_biped.STEPS
    table = refined.kept("chainqueen_biped")["control"][:steps:hold].clone().requires_grad_()

    def motion(finer: wb.Simulation) -> wb.Trajectory[Any]:
        return chainqueen_biped.motion(finer, table)

    def keep(name: str) -> None:
        refined.keep(name, control=motion(sim).control[0])

    unknown = wb.Unknown(table, -1.0, 1.0)
    return Gait(sim, unknown, lambda finer: chainqueen_biped.loss(finer, table), motion, keep, 2e-3, sized(6, 1))


def walker(name: str, robot: Walker, device: str | None, **search: Any) -> Gait:
    """The perceptron of a robot of `chainqueen_shapes` or `chainqueen_terrain`."""
    sim = simulation(robot, device)
    policy = robot.controller(sim)
    load_controller(refined.kept(f"chainqueen_{name}"), policy)

    @functools.cache
    def controller(finer: wb.Simulation) -> wb.controllers.MLP:
        """The same layers, which observe another simulation."""
        own = robot.controller(finer)
        own.layers = policy.layers
        return own

    return Gait(
        sim,
        policy,
        lambda finer: cost(robot, finer, controller(finer)),
        lambda finer: finer.rollout(controller(finer), robot.steps),
        lambda stored: keep_walk(stored, sim, policy, {}),
        **search,
    )


GAITS: dict[str, Callable[[str | None], Gait]] = {
    "biped": biped,
    "flat": lambda device: walker(
        "flat", TERRAINS["small"]["flat"], device, lr=4e-3, iterations=sized(12, 1), decay=0.93,
        learnt=(*GRIDS, refined.Refinement(steps=2)),
    ),
}  # fmt: skip


def optimise(name: str, gait: Gait, chosen: Any) -> None:
    """Optimise a gait in several discretisations, print its distances, store and draw it."""
    stored = f"chainqueen_{name}_grids"
    sims = {how: refined.again(gait.simulation, how, "dx") for how in gait.learnt}
    walked = []

    def mean() -> torch.Tensor:
        losses = torch.stack([gait.loss(sim) for sim in sims.values()])
        walked.append([-d for d in losses.tolist()])
        print(", ".join(f"{d:.3f}" for d in walked[-1]), flush=True)
        return losses.mean()

    began = time.process_time()
    shorter = functools.partial(torch.optim.lr_scheduler.ExponentialLR, gamma=gait.decay)
    method = wb.methods.Torch(lr=gait.lr, max_norm=0.1, scheduler=shorter)
    history = wb.minimize(mean, gait.unknowns, method, iterations=gait.iterations, progress=False)
    seconds = time.process_time() - began
    for how, first, best in zip(gait.learnt, walked[0], walked[history.best], strict=True):
        print(f"{name}, {how.steps} x steps, cells of {how.cells:g} times the size: {first:.3f} -> {best:.3f} m")
    print(f"{name}: iteration {history.best} of {gait.iterations}, {seconds:.0f} s of CPU time", flush=True)
    with torch.no_grad():
        gait.keep(stored)
        film(stored, gait.motion(refined.again(gait.simulation, SHOWN, "dx")), chosen.out)


def main() -> None:
    """Optimise the named gaits, or all of them."""
    chosen = options(__doc__, names=GAITS)
    for name in chosen.names:
        optimise(name, GAITS[name](chosen.device), chosen)


if __name__ == "__main__":
    main()
