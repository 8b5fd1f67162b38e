"""A soft cube and a loose ball under every solver, or pair of solvers, that simulates both: how far they agree.

    python benchmarks/compositions.py

A ball of 0.11 kg hits the upper face of a soft cube of 1 kg beside its middle at 1 m/s, with friction and without
gravity, and leaves it again. Each solver simulates this at its usual step and cell, with half the step, with half the
cell, and with both halved. Writes ``compositions.png`` beside this file: height and speed of the ball, momentum of ball
and cube, and energy over time. Prints the speed after the impact, the share of the energy that is left, and the largest
errors of the total momentum and angular momentum.
"""

import dataclasses
from typing import Any

import numpy as np
import torch
from fast import figures, sized

import warpbots as wb

FRAME, FRAMES = 1e-3, sized(100, 2)
CELL = sized(0.0125, 0.05)
SPEED = 1.0


@dataclasses.dataclass(frozen=True)
class Run:
    """A motion, as curves over time.

    Attributes:
        height: Lowest point of the ball above the rest position of the upper face [m], shape (FRAMES + 1,).
        speed: Upward velocity of the ball [m/s], shape (FRAMES + 1,).
        momentum: Upward momentum of the ball and of the whole [kg m/s], shape (FRAMES + 1, 2).
        energy: Kinetic and elastic energy of the whole [J], shape (FRAMES + 1,).
        turn: Angular momentum of the whole about the origin [kg m^2/s], shape (FRAMES + 1, 3).
    """

    height: np.ndarray
    speed: np.ndarray
    momentum: np.ndarray
    energy: np.ndarray
    turn: np.ndarray


def solvers(cell: float) -> dict[str, Any]:
    """Solvers that simulate the scene, by title, with a size of cells [m]."""
    return {
        "projective dynamics": wb.ProjectiveDynamics(cell, elements="tetrahedra"),
        "Coupled(MPM, Articulated)": wb.Coupled(wb.MPM(cell), wb.Articulated()),
        "Coupled(MassSpring, Articulated)": wb.Coupled(wb.MassSpring(cell), wb.Articulated()),
    }


def scene() -> wb.Scene:
    """A soft cube of 10 cm, and a ball 1.5 mm above it that flies down."""
    rubber = wb.Material(5e4, 0.25, 1000.0, "corotated")
    cube = wb.SoftBody("cube", wb.shapes.Box((0, 0, 0), (0.1, 0.1, 0.1)), rubber, friction=0.3)
    at = (0.065, 0.05, 0.1315)
    ball = wb.RigidBody("ball", wb.shapes.Sphere((0, 0, 0), 0.03), 1000.0, position=at, friction=0.3)
    fly = wb.Joint("fly", "free", None, "ball", position=at, start_velocity=(0, 0, -SPEED, 0, 0, 0))
    room = ((-0.1, -0.1, -0.15), (0.2, 0.2, 0.3))
    return wb.Scene([cube, ball], joints=[fly], gravity=(0, 0, 0), domain=room)


def run(title: str, step: float, cell: float) -> Run:
    """Simulate with the usual step and cell times these factors."""
    solver = solvers(cell * CELL)[title]
    usual = 1
    if isinstance(solver, wb.Coupled):
        usual = wb.Simulation(scene(), solver, FRAME, None).substeps
    sim = wb.Simulation(scene(), solver, FRAME, round(usual / step))

    def seen(state: Any) -> torch.Tensor:
        r = sim.sense(state)
        energy = (r.kinetic_energy + r.elastic_energy)[:, None]
        columns = r.center[:, 0, 2:], r.velocity[:, 0, 2:], r.momentum[:, 2:], energy, r.angular_momentum
        return torch.cat([c.double() for c in columns], dim=1)

    with torch.no_grad():
        motion = sim.rollout(None, FRAMES, observe=seen)
        values = torch.cat([seen(motion.start), motion.observation[0]]).numpy()
    z, v, p, energy = values[:, :4].T
    mass = 1000.0 * 4.0 / 3.0 * np.pi * 0.03**3
    found = Run(z - 0.13, v, np.stack([mass * v, p], axis=1), energy, values[:, 4:])
    print(
        f"| {title} | {1e3 * FRAME / sim.substeps:.2g} | {1e3 * cell * CELL:.3g} | {v[-1]:.3f} | "
        f"{100 * energy[-1] / energy[0]:.0f} | {abs(p - p[0]).max() / abs(p[0]):.0e} | "
        f"{abs(found.turn - found.turn[0]).max() / abs(found.turn[0]).max():.0e} |",
        flush=True,
    )
    return found


REFINED = {
    "usual step and cell": (1.0, 1.0), "half the step": (0.5, 1.0), "half the cell": (1.0, 0.5),
    "half of both": (0.5, 0.5),
}  # fmt: skip
"""Factors of step and cell. A solver whose steps follow from its cells halves them with the cell, too."""
LINES = {"usual step and cell": ":", "half the step": "-.", "half the cell": "--", "half of both": "-"}


def draw(found: dict[str, dict[str, Run]]) -> None:
    """Draw the curves: a row for each quantity, a column for each solver."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.4 * len(found), 8.6), dpi=100, layout="constrained")
    grid = figure.subplots(4, len(found), sharex=True, sharey="row", squeeze=False)
    t = 1e3 * FRAME * np.arange(FRAMES + 1)
    for column, (title, runs) in zip(grid.T, found.items(), strict=True):
        height, speed, momentum, energy = column
        height.set_title(title, fontsize=9)
        for k, (name, result) in enumerate(runs.items()):
            style = {"ls": LINES[name], "lw": 1.2, "color": f"C{k}"}
            height.plot(t, 1e3 * result.height, label=name, **style)
            speed.plot(t, result.speed, **style)
            momentum.plot(t, result.momentum[:, 0], **style)
            momentum.plot(t, result.momentum[:, 1] - result.momentum[:, 0], **style)
            momentum.plot(t, result.momentum[:, 1], color="k", lw=0.8)
            energy.plot(t, 1e3 * result.energy, **style)
        for others in (found[other]["half of both"] for other in found if other != title):
            height.plot(t, 1e3 * others.height, color="0.75", lw=3, zorder=0, label="the other solvers, half of both")
            speed.plot(t, others.speed, color="0.75", lw=3, zorder=0)
            energy.plot(t, 1e3 * others.energy, color="0.75", lw=3, zorder=0)
        for word, place, side in (("ball", 0.07, "bottom"), ("both", -0.11, "bottom"), ("cube", -0.18, "top")):
            momentum.text(t[-1], place, word, ha="right", va=side, fontsize=8)
        momentum.set_ylim(-0.22, 0.11)
        energy.set(xlabel="time [ms]", ylim=(0, None))
    names = "ball above the face [mm]", "velocity of the ball [m/s]", "momentum [kg m/s]", "energy [mJ]"
    for ax, name in zip(grid[:, 0], names, strict=True):
        ax.set_ylabel(name)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    figure.legend(once.values(), once.keys(), loc="outside upper center", ncols=3, frameon=False, fontsize=8)
    figure.savefig(figures(__file__) / "compositions.png")


if __name__ == "__main__":
    print("| | step [ms] | cell [mm] | speed after [m/s] | energy left [%] | momentum | angular momentum |")
    print("|---|---|---|---|---|---|---|")
    draw({title: {name: run(title, *factors) for name, factors in REFINED.items()} for title in solvers(CELL)})
