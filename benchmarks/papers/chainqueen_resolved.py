"""ChainQueen's gaits on several grids at once, so that a gait belongs to none of them.

    python benchmarks/papers/chainqueen_resolved.py [biped] [flat] [rhino] ... [--seeds 5]

The loss is the mean of the losses in all discretisations that a `Gait` names, and a rollout is a walk in each. Most
gaits begin as stored ones that lose distance on a finer grid or in shorter steps: the tables of the biped with cables,
and the perceptrons of the biped on sand, of the rhinoceros and of the walkers in 3D. Their learning rates are small, as
the gait of the biped is lost in steps of 0.01. The biped of the co-design begins from a seed as in its own script, by
control alone and with all fields, and the gain is stated in each discretisation. Gaits are tried in the discretisations
`JUDGED`, which the search has not seen, apart from half the step on sand and of walkers.
Writes ``stored/chainqueen_*_grids.npz`` and a film strip in the discretisation `SHOWN`, ``chainqueen_*_grids.png``, of
the first seed beside this file, if it walks there; the scripts of the gaits play the results with ``--refine``.
"""

import argparse
import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any

import chainqueen_biped
import chainqueen_codesign
import chainqueen_walkers
import numpy as np
import refined
import torch
from chainqueen_codesign import FIELDS, interval
from chainqueen_common import (
    cost,
    designed_by,
    distance,
    film,
    keep_walk,
    load_controller,
    options,
    sized,
    spread,
    wb,
)  # fmt: skip
from chainqueen_shapes import WALKERS, Walker, simulation
from chainqueen_terrain import TERRAINS

FINER = sized(0.85, 1.5)
"""Factor of the size of cells on the second grid that the search sees."""
SHOWN = refined.Refinement(cells=sized(0.75, 1.5))
"""The discretisation in the film strip, which the search has not seen."""
FOUND, SHORTER = refined.Refinement(), refined.Refinement(steps=2)
GRIDS = FOUND, refined.Refinement(cells=FINER)
UNSEEN = SHOWN, *(refined.Refinement(cells=cells) for cells in sized((0.9, 0.8, 0.65), ()))
"""Grids that the search does not see. One alone is no judge: a gait may keep 99 % on it and 44 % on the next."""
JUDGED = SHORTER, *UNSEEN, refined.Refinement(steps=2, cells=SHOWN.cells)
"""The discretisations in which gaits are tried."""


@dataclasses.dataclass(frozen=True)
class Stage:
    """A stage of a search by Adam, which begins at the best iteration of the stage before.

    Attributes:
        lr: Learning rate in the first iteration.
        iterations: Number of iterations.
        decay: Factor by which the learning rate is multiplied after each iteration.
    """

    lr: float
    iterations: int
    decay: float = 1.0


SETTLE = Stage(4e-3, sized(12, 1), 0.93)
"""The last stage of all perceptrons: distances on two grids jump by a fifth from one step of 0.01 to the next."""


@dataclasses.dataclass(frozen=True)
class Gait:
    """A gait that is optimised on several grids.

    Attributes:
        simulation: The simulation in whose discretisation the others are multiples.
        unknowns: Its values.
        motion: Function of a simulation: the walk.
        keep: Function of a name: stores the gait.
        stages: The stages of the search.
        region: Name of the region that walks; None for all matter.
        learnt: The discretisations that the search sees.
        matter: The fields with the highest speed of sound that a design may have, for the length of steps.
    """

    simulation: wb.Simulation
    unknowns: Any
    motion: Callable[[wb.Simulation], wb.Trajectory[Any]]
    keep: Callable[[str], None]
    stages: tuple[Stage, ...]
    region: str | None = None
    learnt: tuple[refined.Refinement, ...] = GRIDS
    matter: refined.Fields | None = None

    def walk(self, how: refined.Refinement) -> wb.Trajectory[Any]:
        """The walk in another discretisation, without a gradient."""
        with torch.no_grad():
            return self.motion(again(self.simulation, how, self.matter))


@functools.lru_cache(8)  # seeds share the graphs of a simulation, which take ten seconds to record
def again(sim: wb.Simulation, how: refined.Refinement, matter: refined.Fields | None) -> wb.Simulation:
    """A simulation in another discretisation."""
    return refined.again(sim, how, "dx", matter)


def biped(device: str | None, _: int, size: str = "small") -> Gait:
    """The stored table of controls of the biped with cables in a size."""
    sim, hold, steps = chainqueen_biped.biped(device, size), chainqueen_biped.HOLD, chainqueen_biped.STEPS
    stored = refined.kept(refined.stored_as("chainqueen_biped", size))
    table = stored["control"][:steps:hold].clone().requires_grad_()

    def motion(finer: wb.Simulation) -> wb.Trajectory[Any]:
        return chainqueen_biped.motion(finer, table)

    def keep(name: str) -> None:
        refined.keep(name, control=motion(sim).control[0])

    return Gait(sim, wb.Unknown(table, -1.0, 1.0), motion, keep, (Stage(2e-3, sized(6, 1)),))


def perceptron(
    sim: wb.Simulation,
    controller: Callable[[wb.Simulation], wb.controllers.MLP],
    steps: int,
    begun: str | None = None,
    subset: tuple[str, ...] = (),
    stages: tuple[Stage, ...] = (SETTLE,),
    **more: Any,
) -> Gait:
    """A gait of a perceptron, with the matter that is optimised with it.

    Args:
        sim: The simulation.
        controller: Function of a simulation: a perceptron for it.
        steps: Number of control intervals.
        begun: Name of the stored gait and fields with which the search begins; None for the values of `controller` and
            of the scene.
        subset: Names of the fields that are optimised, of `chainqueen_codesign.FIELDS`.
        stages: The stages of the search.
        more: Further attributes of the gait.
    """
    policy = controller(sim)
    fields, unknowns = chainqueen_codesign.designed(sim, subset)
    if begun is not None:
        load_controller(refined.kept(begun), policy)
        with torch.no_grad():
            for name, value in designed_by(begun)(sim).items():
                fields[name].copy_(value)
    places = sim.model.matter.position

    @functools.cache
    def observing(finer: wb.Simulation) -> wb.controllers.MLP:
        """The same layers, which observe another simulation."""
        own = controller(finer)
        own.layers = policy.layers
        return own

    def motion(finer: wb.Simulation) -> wb.Trajectory[Any]:
        return finer.rollout(observing(finer), steps, **spread(fields, places, finer))

    return Gait(
        sim,
        {"policy": policy} | unknowns,
        motion,
        lambda name: keep_walk(name, sim, policy, fields),
        stages,
        **more,
    )


def further(
    device: str | None, _: int, name: str, robot: Walker, learnt: tuple[refined.Refinement, ...] = GRIDS
) -> Gait:
    """The stored perceptron of a robot of `chainqueen_shapes` or `chainqueen_terrain`."""
    sim, begun = simulation(robot, device), f"chainqueen_{name}"
    return perceptron(sim, robot.controller, robot.steps, begun, region="robot", learnt=learnt)


def stiffest(sim: wb.Simulation) -> dict[str, torch.Tensor]:
    """The stiffest and lightest matter that the co-design allows."""
    bounds = {name: low if name == "density" else high for name, low, high in FIELDS.values()}
    return {name: torch.full_like(sim.parameter(name), bound) for name, bound in bounds.items()}


def codesign(device: str | None, seed: int, subset: tuple[str, ...]) -> Gait:
    """The biped of the co-design, by control and a subset of the fields, from a seed."""
    return perceptron(
        chainqueen_codesign.biped(device, "small"), functools.partial(chainqueen_codesign.controller, seed=seed),
        chainqueen_codesign.STEPS["small"], subset=subset, matter=stiffest,
        stages=(Stage(chainqueen_codesign.RATE, chainqueen_codesign.ITERATIONS), SETTLE),
    )  # fmt: skip


def walker(device: str | None, _: int, robot: str, subset: tuple[str, ...]) -> Gait:
    """The stored perceptron of a robot of `chainqueen_walkers`, and its fields if there is a subset of them."""
    return perceptron(
        chainqueen_walkers.walker(robot, "small", device), chainqueen_walkers.controller, chainqueen_walkers.STEPS,
        chainqueen_walkers.stored_name(robot, subset, "small"), subset, matter=stiffest, learnt=(*GRIDS, SHORTER),
    )  # fmt: skip


GAITS: dict[str, Callable[[str | None, int], Gait]] = {
    "biped": biped,
    "biped_full": functools.partial(biped, size="full"),
    "flat": functools.partial(further, name="flat", robot=TERRAINS["small"]["flat"], learnt=(*GRIDS, SHORTER)),
    "rhino": functools.partial(further, name="rhino", robot=WALKERS["rhino"]),
    "quadruped_control": functools.partial(walker, robot="quadruped", subset=()),
    "quadruped_designed": functools.partial(walker, robot="quadruped", subset=tuple(FIELDS)),
    "octoped_designed": functools.partial(walker, robot="octoped", subset=tuple(FIELDS)),
    "codesign_control": functools.partial(codesign, subset=()),
    "codesign_designed": functools.partial(codesign, subset=tuple(FIELDS)),
}
DESIGN = "codesign_control", "codesign_designed"
"""Gaits that begin from seeds, and whose distances are compared; all others begin as stored ones, of one seed."""


def optimise(name: str, seed: int, chosen: argparse.Namespace) -> dict[refined.Refinement, float]:
    """Optimise a gait in several discretisations, store and draw the gait of the first seed.

    Returns the distances in the discretisations that the search has seen and in the others [m]; NaN where a walk fails.
    """
    gait, stored = GAITS[name](chosen.device, seed), f"chainqueen_{name}_grids"
    sims = {how: again(gait.simulation, how, gait.matter) for how in gait.learnt}
    print(f"{name}, seed {seed}")
    for stage in gait.stages:
        shorter = functools.partial(torch.optim.lr_scheduler.ExponentialLR, gamma=stage.decay)
        method = wb.methods.Torch(lr=stage.lr, max_norm=0.1, scheduler=shorter)
        refined.resolve(
            lambda sim: cost(gait.motion(sim), gait.region), sims, gait.unknowns, method, stage.iterations,
            lambda loss: f"{-loss:.3f} m",
        )  # fmt: skip
    if seed == 0:
        gait.keep(stored)
    found = {}
    for how in dict.fromkeys((*gait.learnt, *JUDGED)):
        found[how] = refined.measure(lambda how: float(distance(gait.walk(how), gait.region)), how)
        share = found[how] / found[FOUND]
        print(f"{how}{'' if how in gait.learnt else ', not seen'}: {found[how]:.3f} m, {share:.0%}", flush=True)
    if seed == 0 and np.isfinite(found[SHOWN]):
        film(stored, gait.walk(SHOWN), chosen.out)
    mean = np.mean([found[how] for how in UNSEEN])
    print(
        f"mean of {len(UNSEEN)} grids that the search has not seen: {mean:.3f} m, {mean / found[FOUND]:.0%}", flush=True
    )
    return found


def gains(control: list[dict[refined.Refinement, float]], designed: list[dict[refined.Refinement, float]]) -> None:
    """Print the gain of design over control alone in each discretisation, over all seeds."""
    print("| discretisation | control [m] | control and fields [m] | gain of the mean | gain seed by seed [m] |")
    print("|---|---|---|---|---|")
    rows = {str(how): [how] for how in control[0]} | {"mean of the grids not seen": [*UNSEEN]}
    for name, hows in rows.items():
        alone, both = ([np.mean([way[how] for how in hows]) for way in ways] for ways in (control, designed))
        each = [b - a for a, b in zip(alone, both, strict=True)]
        gain = np.mean(both) / np.mean(alone) - 1.0
        print(f"| {name} | {interval(alone)} | {interval(both)} | {100 * gain:+.0f} % | {interval(each)} |")


def main() -> None:
    """Optimise the named gaits, or all of them, from all seeds."""
    chosen = options(__doc__, "out", seeds=1, names=GAITS)
    found: dict[str, list[dict[refined.Refinement, float]]] = {name: [] for name in chosen.names}
    for seed, name in itertools.product(range(chosen.seeds), chosen.names):
        if seed == 0 or name in DESIGN:
            found[name].append(optimise(name, seed, chosen))
    if found.keys() >= {*DESIGN}:
        gains(*(found[name] for name in DESIGN))


if __name__ == "__main__":
    main()
