"""ChainQueen section 5.3.1: an arm is too short to reach its goal; its length is optimised together with its controls.

    python benchmarks/papers/chainqueen_arm_length.py

An arm of 0.1 x 0.3 hangs from a ceiling; two muscles along its sides bend and stretch the arm. Its length is a design
parameter of the map of space `warpbots.morphology.Affine`, and its controls are a table. The distance of the end from
the goal after half a second is minimised by Adam, as in the paper, and by L-BFGS-B. Both methods run with a variable
and with a fixed length, from the same controls. The result printed in the paper is a distance below 0.001 within 100
steps. Writes ``chainqueen_arm_length.png`` and film strips beside this file.
"""

import functools
import time
from typing import Any

import numpy as np
import refined
import torch
from chainqueen_common import KILO, curves, film, options, sized, wb

LENGTH, WIDTH, TOP = 0.3, 0.1, 1.0
GOAL = (0.62, 0.55)
"""At 0.47 from the middle of the clamp; the arm at rest is 0.3 long."""
STEPS, HOLD = sized((50, 5), (4, 2))
"""Control intervals of 10 ms, and how many of them share one entry of the table of controls."""
ITERATIONS = sized(30, 2)
CLOSE = 1e-3
"""The paper's bound on the distance."""


def arm(device: str | None) -> wb.Simulation:
    """Simulation of the arm; E = 300 and g = 2 in the paper's units, as for the paper's arm that swings up."""
    box = wb.shapes.Box
    left, right, bottom = 0.5 - 0.5 * WIDTH, 0.5 + 0.5 * WIDTH, TOP - LENGTH
    regions = {
        "root": box((left, TOP - 0.02), (right, TOP)),
        "left": box((left, bottom), (0.5, TOP)),
        "right": box((0.5, bottom), (right, TOP)),
        "end": box((left, bottom), (right, bottom + 0.02)),
    }
    body = wb.SoftBody(
        "arm", box((left, bottom), (right, TOP)), wb.Material(300 * KILO, 0.3, KILO, damping=1e-3), regions
    )
    muscles = [wb.actuators.Muscle(side, side, (0.0, 1.0), 30 * KILO) for side in ("left", "right")]
    scene = wb.Scene(
        [body], muscles, constraints=[wb.Constraint("root")], gravity=(0.0, -2.0), domain=((0.0, 0.2), (1.0, 1.1))
    )
    return wb.Simulation(scene, wb.MPM(dx=WIDTH / 4), dt=1e-2, substeps=None, device=device)


def adam() -> wb.methods.Torch:
    """Adam with steps that become shorter, and with little momentum, because momentum would carry it past the goal."""
    shorter = torch.optim.lr_scheduler.ExponentialLR
    return wb.methods.Torch(lr=0.1, betas=(0.7, 0.99), scheduler=lambda rule: shorter(rule, 0.85))


METHODS = {
    "Adam": (adam, 1),
    "L-BFGS-B": (lambda: wb.methods.SciPy("L-BFGS-B"), 2),
}
"""Methods, each with the power of the distance that it minimises."""


def motion(sim: wb.Simulation, table: torch.Tensor, factor: torch.Tensor) -> wb.Trajectory:
    """Motion of the arm under a table of controls, with its length multiplied by a factor."""
    longer = wb.morphology.Affine(torch.diag(torch.stack([torch.ones(()), factor])), center=(0.5, TOP))
    state, parameters = wb.morphology.shaped(sim, longer)
    return sim.rollout(table.repeat_interleave(HOLD, dim=0), STEPS, state, **parameters)


def distance(sim: wb.Simulation, state: Any) -> torch.Tensor:
    """Distance of the end from the goal [m]."""
    return (state.position[0, sim.region("end")].mean(dim=0) - torch.tensor(GOAL)).norm()


def reach(sim: wb.Simulation, method: str, with_length: bool) -> tuple[list[float], int, float, wb.Trajectory]:
    """Minimise the distance, and store the controls and the factor that were found.

    Returns the distances in all iterations, the number of rollouts, and the factor of the length and the motion in the
    best iteration.
    """
    factor = torch.ones((), requires_grad=True)
    table = torch.zeros(STEPS // HOLD, sim.channels, requires_grad=True)
    make, power = METHODS[method]

    def loss() -> torch.Tensor:
        return distance(sim, motion(sim, table, factor).final) ** power

    unknowns = {"table": wb.Unknown(table, -1.0, 1.0)}
    if with_length:
        unknowns["factor"] = wb.Unknown(factor, 0.9, 2.0, scale=2.0)
    history = wb.minimize(loss, unknowns, make(), iterations=ITERATIONS, progress=False)
    if with_length:
        refined.keep(stored_name(method), table=table, factor=factor)
    with torch.no_grad():
        found = motion(sim, table, factor)
    return [d ** (1 / power) for d in history.loss], history.episodes[-1], factor.item(), found


def stored_name(method: str) -> str:
    """Name of the arm that a method has found together with its length."""
    return f"chainqueen_arm_length_{method.replace('-', '_').lower()}"


def refine(sim: wb.Simulation) -> None:
    """Play the stored controls again, finer; the measure is how much nearer to the goal the end is than at rest."""

    def play(how: refined.Refinement, method: str) -> float:
        finer, stored = refined.again(sim, how, "dx"), refined.kept(stored_name(method))
        left = distance(finer, motion(finer, stored["table"][: STEPS // HOLD], stored["factor"]).final)
        print(f"    {method}, {how}: {left:.5f} m from the goal", flush=True)
        return float(distance(sim, sim.state()) - left)

    refined.table({f"{m}, control and length": functools.partial(play, method=m) for m in METHODS}, 0.5)


def main() -> None:
    """Print the rows of the table, and draw the figures."""
    chosen = options(__doc__, "out", "refine")
    sim, runs, seconds = arm(chosen.device), {}, {}
    if chosen.refine:
        refine(sim)
        return
    for method in METHODS:
        for with_length in (False, True):
            name = f"{method}, control{' and length' * with_length}"
            began = time.process_time()
            distances, episodes, factor, found = reach(sim, method, with_length)
            runs[name], seconds[name] = [np.array(distances)], [time.process_time() - began]
            first = next((f"in iteration {i}" for i, d in enumerate(distances) if d < CLOSE), "never")
            print(
                f"{name}: distance {distances[0]:.4f} -> {min(distances):.5f}, below {CLOSE} {first}, {episodes} "
                f"rollouts, length {LENGTH * factor:.4f}"
            )
            film(f"chainqueen_arm_length_{'after' if with_length else 'before'}", found, chosen.out, goal=GOAL)
    curves("chainqueen_arm_length", runs, "distance [m]", seconds, logarithmic=True)


if __name__ == "__main__":
    main()
