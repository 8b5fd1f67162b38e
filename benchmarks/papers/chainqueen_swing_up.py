"""ChainQueen section 5.3.1: an arm swings up to a goal and stops there with the least effort, without or with design.

    python benchmarks/papers/chainqueen_swing_up.py [end] [arm] [--size middle]

An arm of 0.2 x 0.2 x 0.6 hangs from a ceiling; it has two links, each of four chambers in a square above a passive
block. A table of pressures must bring the last block to its goal after two seconds. There the block must have no
velocity ("end"), or in addition the mean squared velocity of all particles must be small ("arm"). The effort, which is
the sum of the squares of all signals, is minimised by SLSQP from an arm at rest. E is 300 or 400, or a field between
150 and 400, with a value for each particle of the small size, which begins at 300. The result printed in the paper is
an effort below 75 % of the effort of the fixed arm. Size, chambers and goal are those of the arm in the code that was
published before the paper.

Finer arms take the result of the small size, and change its signals as little as possible until they meet the
constraints as well. Six adjoints on a grid of half the cell size take 25 times as long as on the small one; therefore
Broyden's method corrects the Jacobian of the small arm from motions of the finer one, without another adjoint. Writes
``chainqueen_swing_up_*.png`` beside this file.
"""

import os

os.environ.setdefault("WARPBOTS_PRECISION", "float64")  # SLSQP takes rounding for curvature near the solution

import argparse
import functools
import itertools
import time
from collections.abc import Mapping, Sequence

import numpy as np
import refined
import torch
from chainqueen_common import HERE, KILO, Size, film, keep_found, options, sized, stored_as, stored_fields, wb
from scipy.spatial import cKDTree

WIDTH, LINK = 0.2, 0.3
"""Width of the arm, and length of a link: chambers of 0.2 and a block of 0.1."""
CLAMP = 0.1
"""Length of the arm within the ceiling, where it is held: the face of the ceiling lies on a node of every grid [m]."""
DX = WIDTH / 3
"""Size of a cell at the small size [m]."""
SIZES = {"small": Size(), "middle": Size(0.5), "full": Size(1 / 3)}
"""3, 6 and 9 cells across the arm: 648, 5,184 and 17,496 particles below the ceiling, 17,280 in the paper."""
GOAL = (0.15, 0.15, -0.4)
"""Of the centre of the last block, which hangs at (0, 0, -0.55)."""
STEPS, HOLD = sized((200, 5), (4, 2))
"""Control intervals of 10 ms, and how many of them share one entry of the table."""
TASKS = "end", "arm"
"""What has to stop."""
ITERATIONS, CORRECTIONS = sized(50, 1), sized(15, 1)
"""Of SLSQP at the small size, and of Broyden's method on finer grids."""
CLOSE = 1e-3
"""Bound on the errors of position and velocity, and on the mean squared velocity, in the paper's units."""
PRESSURE = 80 * KILO
"""Of a chamber at a signal of one [Pa]."""
SOFT, STIFF = 150 * KILO, 400 * KILO
"""Bounds on E [Pa]."""
ARMS = {"E = 300": (300 * KILO, False), "E = 400": (400 * KILO, False), "designed": (300 * KILO, True)}
"""Initial E [Pa], and whether it is a field to design."""
FILMED = {"E = 300": "fixed", "designed": "designed"}
"""Arms with a film strip, and the end of its name."""


def arm(device: str | None, size: Size) -> wb.Simulation:
    """The arm in a size; g = 2, nu = 0.3 and density 1 in the paper's units."""
    box, half = wb.shapes.Box, 0.5 * WIDTH
    chambers = {}
    for link, i, j in itertools.product((0, 1), repeat=3):
        x, y, top = half * (i - 1), half * (j - 1), -LINK * link
        chambers[f"link {link} chamber {i}{j}"] = box((x, y, top - 0.2), (x + half, y + half, top))
    shape, last = (box((-half, -half, -2.0 * LINK), (half, half, top)) for top in (CLAMP, 0.1 - 2.0 * LINK))
    regions = chambers | {"end": last, "root": box((-half, -half, 0.0), (half, half, CLAMP))}
    body = wb.SoftBody("arm", shape, wb.Material(STIFF, 0.3, KILO), regions)
    scene = wb.Scene(
        [body], [wb.actuators.Pressure(name, name, PRESSURE) for name in chambers], constraints=[wb.Constraint("root")],
        gravity=(0.0, 0.0, -2.0), domain=((-0.6, -0.6, -0.8), (0.6, 0.6, 0.2)),
    )  # fmt: skip
    return wb.Simulation(scene, size.solver(DX, 3), dt=1e-2, substeps=None, device=device)


class Experiment:
    """An arm and the unknowns: a table of signals, and a field of Young's modulus E.

    E has a value for each particle of the small arm, which finer particles near it share: SLSQP keeps a dense matrix of
    all unknowns.
    """

    def __init__(self, sim: wb.Simulation, modulus: float, designed: bool, rest: bool):
        """Begin without actuation and with a uniform `modulus` [Pa].

        If `designed`, E is an unknown; if `rest`, the velocity of all particles is bounded.
        """
        self.sim, self.rest = sim, rest
        places = arm("cpu", SIZES["small"]).model.matter.position
        like = sim.parameter("youngs_modulus")
        self.tree = cKDTree(places)
        self.table = like.new_zeros(STEPS // HOLD, sim.channels).requires_grad_()
        self.E = like.new_full((*like.shape[:-1], len(places)), modulus).requires_grad_(designed)

    def begin(self, stored: Mapping[str, torch.Tensor]) -> None:
        """Begin with a stored result instead."""
        with torch.no_grad():
            self.table.copy_(stored["table"][: len(self.table)])
            self.E.copy_(stored["field.youngs_modulus"])

    def field(self, sim: wb.Simulation) -> torch.Tensor:
        """E of every particle of a simulation [Pa]."""
        near = self.tree.query(sim.model.matter.position)[1]
        return self.E[..., torch.as_tensor(near, device=self.E.device)]

    def motion(self, sim: wb.Simulation) -> wb.Trajectory:
        """Simulate the motion of the arm from rest."""
        return sim.rollout(self.table.repeat_interleave(HOLD, dim=0), STEPS, youngs_modulus=self.field(sim))

    @staticmethod
    def errors(motion: wb.Trajectory) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Errors at the end of a motion.

        Returns the errors of position [m] and velocity [m/s] of the last block, and the root mean square velocity of
        all particles that move [m/s].
        """
        end, state = motion.simulation.region("end"), motion.final
        velocity = state.velocity[0]
        position = state.position[0, end].mean(dim=0) - torch.tensor(GOAL).to(velocity)
        moving = velocity[~motion.simulation.region("root")]
        return position, velocity[end].mean(dim=0), moving.square().sum(dim=-1).mean().sqrt()

    def outcome(self) -> wb.Outcome:
        """Loss and constraints; the loss is half the square of the table, whose curvature SLSQP assumes initially."""
        position, velocity, speed = self.errors(self.motion(self.sim))
        still = {"speed": speed - (0.9 * CLOSE) ** 0.5} if self.rest else {}
        return wb.Outcome(0.5 * self.table.square().sum(), {"position": position, "velocity": velocity}, still)

    def learn(self, iterations: int) -> wb.optimize.History:
        """Search for the least effort."""
        unknowns = {"table": wb.Unknown(self.table, -1.0, 1.0)}
        if self.E.requires_grad:
            unknowns["E"] = wb.Unknown(self.E, SOFT, STIFF, scale=100 * KILO)
        return wb.minimize(
            self.outcome, unknowns, wb.methods.SciPy("SLSQP", ftol=1e-4), iterations=iterations,
            allowed_violation=0.5 * CLOSE, progress=False,
        )  # fmt: skip

    def correct(self, small: wb.Simulation, iterations: int) -> list[float]:
        """Correct the table until the end has its place and no velocity, by Broyden's method from the small Jacobian.

        Each step is the smallest change that meets the constraints to first order, or the part of it up to the first
        bound of a signal. Returns the largest violation before each iteration and after the last one; the last table is
        kept.
        """
        J = torch.stack([
            torch.autograd.grad(error, self.table, retain_graph=True)[0].flatten()
            for error in torch.cat(self.errors(self.motion(small))[:2])
        ])  # fmt: skip
        violations, before, step = [], None, None
        with torch.no_grad():
            while True:
                errors = torch.cat(self.errors(self.motion(self.sim))[:2])
                violations.append(errors.abs().max().item())
                if violations[-1] < 0.5 * CLOSE or len(violations) > iterations:
                    return violations
                if step is not None:
                    J += torch.outer(errors - before - J @ step, step) / step.square().sum()
                before, step = errors, -torch.linalg.pinv(J) @ errors
                room = (1.0 - self.table.flatten() * step.sign()) / step.abs()  # steps that reach a bound
                step *= room.min().clamp(max=1.0)
                self.table += step.view_as(self.table)


def stored_name(task: str, arm: str, size: str) -> str:
    """Name of the controls and of the field of E that were found for an arm."""
    return stored_as(f"chainqueen_swing_up_{task}_{arm.replace(' = ', '')}", size)


def refine(sim: wb.Simulation, size: str, tasks: Sequence[str]) -> None:
    """Play the stored swings again, finer; the measure is how much nearer to the goal the last block is than at rest.

    The other errors are printed as well, as they have no share.
    """

    def play(how: refined.Refinement, task: str, name: str) -> float:
        stored = refined.kept(stored_name(task, name, size))
        finer = refined.again(sim, how, "dx", functools.partial(stored_fields, stored))
        experiment = Experiment(finer, STIFF, False, task == "arm")
        experiment.begin(stored)
        swing = experiment.motion(finer)
        position, velocity, speed = (error.norm().item() for error in experiment.errors(swing))
        rest = (swing.start.position[0, finer.region("end")].mean(dim=0).cpu() - torch.tensor(GOAL)).norm().item()
        print(
            f"    {task} at rest, {name}, {how}: {position:.1e} m, {velocity:.1e} m/s, mean squared velocity of all "
            f"{speed**2:.1e}",
            flush=True,
        )
        return rest - position

    arms = itertools.product(tasks, ARMS)
    refined.table(
        {f"{task} at rest, {name}": functools.partial(play, task=task, name=name) for task, name in arms}, 0.75
    )


def draw(name: str, histories: dict[str, wb.optimize.History]) -> None:
    """Draw violation and effort over the iterations."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for label, history in histories.items():
        axes[0].semilogy(history.iteration, history.violation, label=label)
        axes[1].plot(history.iteration, 2 * HOLD * np.array(history.loss), label=label)
    axes[0].axhline(CLOSE, color="0.5", linewidth=1)
    axes[0].set(xlabel="iteration", ylabel="largest violation [m, m/s]")
    axes[1].set(xlabel="iteration", ylabel="effort")
    axes[1].legend(frameon=False)
    figure.savefig(HERE / f"{name}.png", dpi=110)
    plt.close(figure)


def main() -> None:
    """Print the tables, and draw the figures."""
    chosen = options(__doc__, names=TASKS, sizes=SIZES)
    sim = arm(chosen.device, SIZES[chosen.size])
    if chosen.size != "small" and chosen.names != ["end"]:
        raise SystemExit(f"--size {chosen.size}: finer arms are corrected for the end alone; name the task end")
    if chosen.refine:
        refine(sim, chosen.size, chosen.names)
        return
    print(sim.model.summary(), f"{sim.substeps} substeps", flush=True)
    for task in chosen.names:
        experiment_of(task, sim, chosen)


def experiment_of(task: str, sim: wb.Simulation, chosen: argparse.Namespace) -> None:
    """Let all arms learn a task, or correct what they have learnt at the small size; print a table, and draw it."""
    histories: dict[str, wb.optimize.History] = {}
    efforts: dict[str, float] = {}
    print(
        f"{task} at rest\n| arm | position [m] | velocity [m/s] | mean squared velocity | effort | of E = 300 | "
        "first met | E [kPa] | search |\n|---|---|---|---|---|---|---|---|---|"
    )
    for name, (modulus, designed) in ARMS.items():
        began, experiment = time.process_time(), Experiment(sim, modulus, designed, task == "arm")
        if chosen.size == "small":
            found = histories[name] = experiment.learn(ITERATIONS)
            violation, search = found.violation, f"{found.reason}, {found.episodes[-1]} rollouts"
        else:
            experiment.begin(refined.kept(stored_name(task, name, "small")))
            violation = experiment.correct(arm(chosen.device, SIZES["small"]), CORRECTIONS)
            search = f"{len(violation)} rollouts"
        seconds = time.process_time() - began
        field, places = {"youngs_modulus": experiment.field(sim)}, experiment.tree.data
        keep_found(stored_name(task, name, chosen.size), sim, field, places, table=experiment.table)
        with torch.no_grad():
            motion = experiment.motion(sim)
        position, velocity, speed = (error.norm().item() for error in experiment.errors(motion))
        E = experiment.E.detach() / KILO
        efforts[name] = motion.control.square().sum().item()
        first = next((f"iteration {i}" for i, v in enumerate(violation) if v < CLOSE), "never")
        print(
            f"| {name} | {position:.1e} | {velocity:.1e} | {speed**2:.1e} | {efforts[name]:.2f} | "
            f"{efforts[name] / efforts['E = 300']:.1%} | {first} | {E.mean():.0f} ({E.min():.0f} to {E.max():.0f}) | "
            f"{search}, {seconds:.0f} s of CPU time |",
            flush=True,
        )
        if name in FILMED:
            strip = stored_as(f"chainqueen_swing_up_{task}_{FILMED[name]}", chosen.size)
            film(strip, motion, chosen.out, goal=GOAL)
    if histories:
        draw(f"chainqueen_swing_up_{task}", histories)


if __name__ == "__main__":
    main()
