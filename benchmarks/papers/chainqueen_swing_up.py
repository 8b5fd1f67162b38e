"""ChainQueen section 5.3.1: an arm swings up to a goal and stops there with the least effort, without or with design.

    python benchmarks/papers/chainqueen_swing_up.py [end] [arm] [grids] [--size middle]

An arm of 0.2 x 0.2 x 0.6 hangs from a ceiling; it has two links, each of four chambers in a square above a passive
block. A table of pressures must bring the last block to its goal after two seconds. There the block must have no
velocity ("end"), or in addition the mean squared velocity of all particles must be small ("arm"). The effort, which is
the sum of the squares of all signals, is minimised by SLSQP from an arm at rest. E is 300 or 400, or a field between
150 and 400, with a value for each particle of the small size, which begins at 300. The result printed in the paper is
an effort below 75 % of the effort of the fixed arm. Size, chambers and goal are those of the arm in the code that was
published before the paper.

Finer arms take the result of the next coarser size, and change its signals as little as possible until they meet the
constraints as well. Six adjoints on a grid of half the cell size take 25 times as long as on the small one; therefore
Broyden's method corrects the Jacobian of the coarser arm from motions of the finer one, without another adjoint. In the
same way "grids" corrects the signals until they meet the constraints in several discretisations at once. With
``--refine`` all motions are played without and with feedback on the velocities of both blocks. Writes
``chainqueen_swing_up_*.png`` beside this file.
"""

import os

os.environ.setdefault("WARPBOTS_PRECISION", "float64")  # SLSQP takes rounding for curvature near the solution

import argparse
import dataclasses
import functools
import itertools
import math
import time
from collections.abc import Mapping, Sequence

import numpy as np
import refined
import torch
from chainqueen_common import HERE, KILO, Size, film, keep_found, options, sized, stored_fields, wb
from scipy.spatial import cKDTree

WIDTH, LINK = 0.2, 0.3
"""Width of the arm, and length of a link: chambers of 0.2 and a block of 0.1."""
CLAMP = 0.1
"""Length of the arm within the ceiling, where it is held: the face of the ceiling lies on a node of every grid [m]."""
DX = WIDTH / 3
"""Size of a cell at the small size [m]."""
SIZES = {"small": Size(), "middle": Size(0.5), "full": Size(1 / 3)}
"""3, 6 and 9 cells across the arm: 648, 5,184 and 17,496 particles below the ceiling, 17,280 in the paper."""
BEGUN = {"small": "small", "middle": "small", "full": "middle"}
"""The size with whose results the corrections of a size begin."""
GOAL = (0.15, 0.15, -0.4)
"""Of the centre of the last block, which hangs at (0, 0, -0.55)."""
STEPS, HOLD = sized((200, 5), (4, 2))
"""Control intervals of 10 ms, and how many of them share one entry of the table."""
ITERATIONS, CORRECTIONS = sized(50, 1), sized(50, 1)
"""Of SLSQP, and of corrections."""
RADIUS = 0.6
"""Largest length of the first step of a correction in several discretisations."""
REFUSED, OLD = 4, 24
"""Numbers of refused steps, and of all steps, after which the Jacobian of a correction is computed again."""
CLOSE = 1e-3
"""Bound on the errors of position and velocity, and on the mean squared velocity, in the paper's units."""
PRESSURE = 80 * KILO
"""Of a chamber at a signal of one [Pa]."""
SOFT, STIFF = 150 * KILO, 400 * KILO
"""Bounds on E [Pa]."""
ARMS = {"E = 300": (300 * KILO, False), "E = 400": (400 * KILO, False), "designed": (300 * KILO, True)}
"""Initial E [Pa], and whether it is a field to design."""
GAIN = (0.3, 0.3, 0.15)
"""Of the feedback: signals per deviation of a velocity along x, y and z [s/m]."""
FINER = refined.Refinement(cells=sized(0.6, 1.5)), refined.Refinement(cells=sized(0.5, 1.5))
"""Discretisations that no search has seen: 5 and 6 cells across the arm."""
FILMED = {"E = 300": "fixed", "designed": "designed"}
"""Arms with a film strip, and the end of its name."""


@dataclasses.dataclass(frozen=True)
class Task:
    """What has to stop, and in which discretisations.

    Attributes:
        rest: Whether all particles have to be nearly at rest, and not only the last block.
        learnt: The discretisations in which the search has to meet the constraints with the same signals.
        begins: Task whose results are corrected until they meet the constraints; None for a search without actuation at
            its start.
        arms: Names of the arms.
    """

    rest: bool = False
    learnt: tuple[refined.Refinement, ...] = (refined.Refinement(),)
    begins: str | None = None
    arms: tuple[str, ...] = tuple(ARMS)


SEVERAL = refined.Refinement(), refined.Refinement(cells=sized(0.75, 1.5)), refined.Refinement(steps=2)
TASKS = {
    "end": Task(),
    "arm": Task(rest=True),
    "grids": Task(learnt=SEVERAL, begins="end", arms=("E = 300", "designed")),
}


def arm(device: str | None, size: Size) -> wb.Simulation:
    """The arm in a size; g = 2, nu = 0.3 and density 1 in the paper's units."""
    box, half = wb.shapes.Box, 0.5 * WIDTH
    chambers = {}
    for link, i, j in itertools.product((0, 1), repeat=3):
        x, y, top = half * (i - 1), half * (j - 1), -LINK * link
        chambers[f"link {link} chamber {i}{j}"] = box((x, y, top - 0.2), (x + half, y + half, top))
    shape, last = (box((-half, -half, -2.0 * LINK), (half, half, top)) for top in (CLAMP, 0.1 - 2.0 * LINK))
    middle = box((-half, -half, -LINK), (half, half, 0.1 - LINK))
    regions = chambers | {"middle": middle, "end": last, "root": box((-half, -half, 0.0), (half, half, CLAMP))}
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

    def __init__(self, sim: wb.Simulation, modulus: float, designed: bool, task: Task):
        """Begin without actuation and with a uniform `modulus` [Pa]; if `designed`, E is an unknown."""
        self.sims, self.rest = [refined.again(sim, how, "dx") for how in task.learnt], task.rest
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

    def tracked(self, sim: wb.Simulation) -> wb.Trajectory:
        """Simulate the motion of the arm with feedback, which damps deviations from the motion as it was found.

        The velocities of both blocks are measured. The chambers of a link answer to the velocity of the block below
        them relative to the block above, or to the ceiling. A chamber pushes this block down and away from its side; it
        gets more pressure if the block is too fast upwards or towards its side. Signals that would leave their bounds
        stay at them.
        """
        found = self.sims[0]
        plan = found.rollout(
            self.table.repeat_interleave(HOLD, dim=0), STEPS, observe=functools.partial(block_velocities, found),
            youngs_modulus=self.field(found),
        ).observation[0]  # fmt: skip
        sides = [(2 * i - 1, 2 * j - 1, 1) for _, i, j in itertools.product((0, 1), repeat=3)]
        rows = (torch.tensor(GAIN) * torch.tensor(sides)).to(self.table).view(2, 4, 3)

        def control(state: wb.solvers.State, time: float) -> torch.Tensor:
            k = round(time / sim.dt)
            deviation = block_velocities(sim, state)[0] - (plan[k - 1] if k else 0.0)
            deviation = torch.stack([deviation[0], deviation[1] - deviation[0]])
            return (self.table[k // HOLD] + (rows * deviation[:, None]).sum(dim=-1).flatten()).clamp(-1.0, 1.0)[None]

        return sim.rollout(control, STEPS, youngs_modulus=self.field(sim))

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
        equality, still = {}, {}
        for i, sim in enumerate(self.sims):
            position, velocity, speed = self.errors(self.motion(sim))
            equality |= {f"position {i}": in_plane(position), f"velocity {i}": in_plane(velocity)}
            if self.rest:
                still[f"speed {i}"] = speed - (0.9 * CLOSE) ** 0.5
        return wb.Outcome(0.5 * self.table.square().sum(), equality, still)

    def seen(self, sims: Sequence[wb.Simulation] | None = None) -> torch.Tensor:
        """Errors of position [m] and velocity [m/s] in all discretisations, or in other ones, shape (4 n,)."""
        motions = [self.errors(self.motion(sim)) for sim in sims or self.sims]
        return torch.cat([in_plane(error) for errors in motions for error in errors[:2]])

    def jacobian(self, sims: Sequence[wb.Simulation]) -> torch.Tensor:
        """Derivatives of the errors by the table, shape (4 n, entries)."""
        return torch.cat([
            torch.autograd.grad(error, self.table, retain_graph=True)[0].reshape(1, -1)
            for sim in sims for error in self.seen([sim])
        ])  # fmt: skip

    def learn(self, iterations: int) -> wb.optimize.History:
        """Search for the least effort."""
        unknowns = {"table": wb.Unknown(self.table, -1.0, 1.0)}
        if self.E.requires_grad:
            unknowns["E"] = wb.Unknown(self.E, SOFT, STIFF, scale=100 * KILO)
        return wb.minimize(
            self.outcome, unknowns, wb.methods.SciPy("SLSQP", ftol=1e-4), iterations=iterations,
            allowed_violation=0.5 * CLOSE, progress=False,
        )  # fmt: skip

    def correct(self, models: Sequence[wb.Simulation], iterations: int, radius: float) -> list[float]:
        """Correct the table until the end has its place and no velocity in all discretisations.

        A step is the shortest one of those that reduce the errors most within a radius, to first order (Levenberg and
        Marquardt). Signals that would leave their bounds stay at them. Broyden's method corrects the Jacobian after
        each motion. It is computed again after `REFUSED` steps in a row that do not reduce the errors, and after every
        `OLD` steps.

        Args:
            models: The simulations whose Jacobians are used, one for each discretisation; they may be coarser.
            iterations: Largest number of steps.
            radius: Largest length of the first step; infinite for full steps, or the parts of them up to the first
                bound of a signal, of which only those are refused whose motion fails.

        Returns:
            The largest violation at the start and after each step that was tried; the last table that was not refused
            is kept.
        """
        J, refused, first = self.jacobian(models), 0, radius
        with torch.no_grad():
            errors = self.seen()
        violations = [errors.abs().max().item()]
        while errors.abs().max() >= 0.5 * CLOSE and len(violations) <= iterations:
            with torch.no_grad():
                before = self.table.flatten().clone()
                step = shortest(J, errors, radius)
                if math.isinf(radius):
                    step *= ((1.0 - before * step.sign()) / step.abs()).min().clamp(max=1.0)
                step = (before + step).clamp(-1.0, 1.0) - before
                expected = errors.norm() - (errors + J @ step).norm()
                self.table += step.view_as(self.table)
                try:
                    tried = self.seen()
                    J += torch.outer(tried - errors - J @ step, step) / step.square().sum()
                except wb.SimulationError as fault:
                    print(f"    a step was refused: {fault}", flush=True)
                    tried = torch.full_like(errors, math.inf)
                violations.append(tried.abs().max().item())
                better = tried.norm() < errors.norm() or (math.isinf(radius) and tried.isfinite().all())
                if better:
                    share = (errors.norm() - tried.norm()) / expected
                    errors, refused = tried, 0
                    radius *= 2.0 if share > 0.6 else 1.0 if share > 0.25 else 0.6
                else:
                    self.table.copy_(before.view_as(self.table))
                    radius, refused = 0.4 * step.norm().item(), refused + 1
            if refused == REFUSED or len(violations) % OLD == 1:
                J, refused, radius = self.jacobian(models), 0, first
        return violations


def in_plane(error: torch.Tensor) -> torch.Tensor:
    """The mean of the components along x and y, and the component along z, shape (2,).

    Arm, goal and start are symmetric about the plane x = y. Every step of a search is therefore symmetric as well, and
    the components along x and y are the same.
    """
    return torch.stack([error[:2].mean(), error[2]])


def block_velocities(sim: wb.Simulation, state: wb.solvers.State) -> torch.Tensor:
    """Mean velocities of the passive blocks of both links [m/s], shape (worlds, 2, 3)."""
    return torch.stack([state.velocity[:, sim.region(name)].mean(dim=1) for name in ("middle", "end")], dim=1)


def shortest(J: torch.Tensor, errors: torch.Tensor, radius: float) -> torch.Tensor:
    """The step d that minimises the norm of errors + J d, no longer than `radius`, by bisection of its damping."""
    U, S, Vh = torch.linalg.svd(J, full_matrices=False)
    low, high = 0.0, (S[0] * errors.norm() / radius).item()  # S / (S^2 + high) <= S[0] / high

    def step(damping: float) -> torch.Tensor:
        return -Vh.T @ (S * (U.T @ errors) / (S.square() + damping))

    if step(low).norm() <= radius:
        return step(low)
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if step(middle).norm() > radius else (low, middle)
    return step(high)


def stored_name(task: str, arm: str, size: str) -> str:
    """Name of the controls and of the field of E that were found for an arm."""
    return refined.stored_as(f"chainqueen_swing_up_{task}_{arm.replace(' = ', '')}", size)


def known_arms(task: str, size: str) -> list[str]:
    """The arms of a task with a stored result in a size; names the others."""
    arms = TASKS[task].arms
    known = [name for name in arms if refined.is_kept(stored_name(task, name, size))]
    for name in sorted({*arms} - {*known}):
        print(f"{task} at rest, {name}: no result of the {size} size is stored", flush=True)
    return known


def refine(chosen: argparse.Namespace) -> None:
    """Play the stored swings again, finer, without and with feedback.

    The measure is how much nearer to the goal the last block is than at rest. The other errors are printed as well, as
    they have no share, and so are motions on the grids of `FINER`.
    """

    def play(how: refined.Refinement, task: str, name: str, feedback: bool) -> float:
        stored = refined.kept(stored_name(task, name, chosen.size))
        sim = arm(chosen.device, SIZES[chosen.size])
        finer = refined.again(sim, how, "dx", functools.partial(stored_fields, stored))
        experiment = Experiment(sim, STIFF, False, TASKS[task])
        experiment.begin(stored)
        swing = (experiment.tracked if feedback else experiment.motion)(finer)
        position, velocity, speed = (error.norm().item() for error in experiment.errors(swing))
        rest = (swing.start.position[0, finer.region("end")].mean(dim=0).cpu() - torch.tensor(GOAL)).norm().item()
        print(
            f"    {task} at rest, {name}, {'feedback' if feedback else 'open loop'}, {how}: {position:.1e} m, "
            f"{velocity:.1e} m/s, mean squared velocity of all {speed**2:.1e}, effort "
            f"{swing.control.square().sum().item():.4g}",
            flush=True,
        )
        return rest - position

    plays = {
        f"{task} at rest, {name}{', feedback' * feedback}": functools.partial(
            play, task=task, name=name, feedback=feedback
        )
        for task in chosen.names
        for name, feedback in itertools.product(known_arms(task, chosen.size), (False, True))
    }
    refined.table(plays, 0.75)
    if chosen.size == "small":
        with torch.no_grad():
            for again, how in itertools.product(plays.values(), FINER):
                again(how)


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
    chosen = options(__doc__, "out", "refine", names=TASKS, sizes=SIZES)
    if chosen.size != "small" and chosen.names != ["end"]:
        raise SystemExit(f"--size {chosen.size}: finer arms are corrected for the end alone; name the task end")
    if chosen.refine:
        refine(chosen)
        return
    for task in chosen.names:
        experiment_of(task, chosen)


def experiment_of(task: str, chosen: argparse.Namespace) -> None:
    """Let all arms learn a task, or correct what they have learnt at a coarser size; print a table, and draw it."""
    histories: dict[str, wb.optimize.History] = {}
    efforts: dict[str, float] = {}
    how, small = TASKS[task], chosen.size == "small"
    sim = arm(chosen.device, SIZES[chosen.size])
    print(sim.model.summary(), f"{sim.substeps} substeps", flush=True)
    print(
        f"{task} at rest\n| arm | position [m] | velocity [m/s] | mean squared velocity | effort | of E = 300 | "
        "first met | E [kPa] | search |\n|---|---|---|---|---|---|---|---|---|"
    )
    begun = BEGUN[chosen.size]
    for name in how.arms if small else known_arms(task, begun):
        modulus, designed = ARMS[name]
        began, experiment = time.process_time(), Experiment(sim, modulus, designed, how)
        if small and how.begins is None:
            found = histories[name] = experiment.learn(ITERATIONS)
            violation, search = found.violation, f"{found.reason}, {found.episodes[-1]} rollouts"
        else:
            experiment.begin(refined.kept(stored_name(how.begins or task, name, begun)))
            models = experiment.sims if small else [arm(chosen.device, SIZES[begun])]
            violation = experiment.correct(models, CORRECTIONS, RADIUS if small else math.inf)
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
            strip = refined.stored_as(f"chainqueen_swing_up_{task}_{FILMED[name]}", chosen.size)
            film(strip, motion, chosen.out, goal=GOAL)
    if histories:
        draw(f"chainqueen_swing_up_{task}", histories)


if __name__ == "__main__":
    main()
