"""Cronos figure 1: a thermal actuator that expands and leans, a four-legged sheet that crawls, soft legs with motors.

    python benchmarks/papers/cronos_robots.py [--spacing S]

All are scenes of ``usd_scenes``. The actuator is heated and cools down again; the sheet crawls with a hand-made gait:
a wave of inflation from the front legs through the spine to the hind legs, once per cycle. The distance depends on
the floor, so it also runs on a softer and on a rigid one. The robot with motors runs at full
voltage. Writes ``cronos_thermal.png``, ``cronos_multigait.png`` and ``cronos_soft_legs.png`` beside this file.
"""

import argparse
import math
import sys
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fast import FAST, figures, sized

import warpbots as wb
from warpbots.solvers.mass_spring import MassSpringState

HERE = figures(__file__)
"""Where figures go."""
INTERVAL = 0.02
"""Time between two control signals [s]."""
CONTACT = 5e6
"""Pressure of the floor per depth [Pa/m]: the sheet sinks in by 0.02 mm where it lies flat, by 1 mm on its tips."""
DRAG = 5.0
"""Losses [1/s]. They stand for those of silicone, whose Kelvin-Voigt time at these frequencies asks for short steps."""
PERIOD = 0.75
"""Length of a cycle of the gait [s]."""
SHARPNESS = 1.5
"""Of the hand-made gait: controls are the sigmoid of this times a cosine, 0.18 to 0.82, so that
the sheet stays on its tips: one that falls flat bounces, and in ways that no one can foretell."""
WAVE = {"front_left": 0.0, "front_right": 0.0, "hind_left": 0.5, "hind_right": 0.5, "spine": 0.25}
"""Part of a cycle by which each member is late in the hand-made gait."""


def simulation(
    name: str, spacing: float | None = None, contact: float = CONTACT, margin: float | None = None
) -> wb.Simulation:
    """Simulation of a scene of ``usd_scenes`` as a lattice.

    Args:
        name: Name of the scene.
        spacing: Spacing of the lattice [m]; None for the spacing of the scene.
        contact: Stiffness of the floor [Pa/m].
        margin: Time step as a fraction of the stability bound; None for the margin of the solver.
    """
    scene = wb.usd.read(Path(__file__).resolve().parents[2] / "usd_scenes" / f"{name}.usda")
    solver = wb.MassSpring(spacing or scene.task.cell_size, drag=DRAG, contact_stiffness=contact)
    sim = wb.Simulation(scene, solver, INTERVAL, substeps=None)
    if margin is None:
        return sim
    return wb.Simulation(scene, solver, INTERVAL, substeps=math.ceil(INTERVAL / (margin * sim.max_time_step)))


def centre(sim: wb.Simulation, position: torch.Tensor, chosen: torch.Tensor | None = None) -> torch.Tensor:
    """Centre of mass of all or of the `chosen` masses [m], shape (worlds, 3); differentiable."""
    mass = torch.as_tensor(sim.model.lattice.mass)
    weight = mass if chosen is None else mass * chosen
    return torch.einsum("n,wnd->wd", weight / weight.sum(), position.double())


def soft_start(steps: int) -> torch.Tensor:
    """Factor by which controls are multiplied so that a robot starts gently, shape (steps, 1): 0 to 1 in 0.2 s."""
    return (INTERVAL * torch.arange(steps) / 0.2).clamp(max=1.0)[:, None]


def hand_gait(sim: wb.Simulation, steps: int) -> torch.Tensor:
    """Controls of the hand-made gait, shape (steps, channels)."""
    late = torch.tensor([WAVE[a.name] for a in sim.scene.actuators])
    angle = 2.0 * math.pi * (INTERVAL * torch.arange(steps)[:, None] / PERIOD - late)
    return soft_start(steps) * torch.sigmoid(-SHARPNESS * torch.cos(angle))


def path(sim: wb.Simulation, control: torch.Tensor) -> torch.Tensor:
    """Centre of mass after every interval [m], shape (steps, 3)."""
    with torch.no_grad():
        moved = sim.rollout(control, len(control), observe=lambda s: centre(sim, s.position))
    return moved.observation[0] - centre(sim, sim.state().position)[0]


def save_strip(trajectory: wb.Trajectory, frames: int, name: str) -> None:
    """Save a picture with several moments of a motion."""
    if not FAST:
        wb.view.film_strip(trajectory, frames).save(HERE / name)


def heating(steps: int) -> torch.Tensor:
    """Signal of the heater, shape (steps, 1): it rises for 2/5 of the time, is held for 1/5, and falls for 2/5."""
    part = torch.arange(1, steps + 1)[:, None] / steps
    return torch.minimum(part / 0.4, (1.0 - part) / 0.4).clamp(0.0, 1.0)


def thermal(spacing: float | None) -> None:
    """Heat the actuator, let it cool, print and draw."""
    sim, steps = simulation("thermal", spacing), sized(200, 3)
    z = torch.as_tensor(sim.model.lattice.position[:, 2])
    top, bottom = z > z.max() - 1e-6, z < z.min() + 1e-6

    def observe(state: MassSpringState) -> torch.Tensor:
        high, low = centre(sim, state.position, top), centre(sim, state.position, bottom)
        width = state.position[..., 1].amax(dim=1) - state.position[..., 1].amin(dim=1)
        return torch.stack([high[:, 2], high[:, 0] - low[:, 0], width], dim=-1)

    with torch.no_grad():
        moved = sim.rollout(heating(steps), steps, observe=observe)
    rest, seen = observe(moved.start)[0], moved.observation[0]
    print(f"thermal: {len(z)} masses, {len(sim.model.lattice.ends)} springs, {sim.substeps} steps in {INTERVAL} s")
    for name, k in (("hot", round(0.6 * steps) - 1), ("cold again", steps - 1)):
        height, lean, width = seen[k].tolist()
        print(
            f"  {name}: height {100.0 * (height / rest[0] - 1.0):+.1f} %, width {100.0 * (width / rest[2] - 1.0):+.1f} "
            f"%, top aside by {1e3 * lean:.1f} mm = {100.0 * lean / height:.1f} % of the height",
            flush=True,
        )
    save_strip(moved, 6, "cronos_thermal.png")


def multigait(spacing: float | None) -> None:
    """Let the sheet crawl by the hand-made gait, print and draw."""
    sim, cycles = simulation("multigait", spacing), 8
    steps = sized(round(cycles * PERIOD / INTERVAL), 2)
    lattice = sim.model.lattice
    length = float(lattice.position[:, 0].max() - lattice.position[:, 0].min())
    print(f"multigait: {len(lattice)} masses, {len(lattice.ends)} springs, {sim.substeps} steps in {INTERVAL} s")
    inflated = path(sim, heating(100).expand(100, sim.channels)[: sized(60, 2)])
    print(f"  all inflated: the middle rises by {1e3 * float(inflated[-1, 2]):.1f} mm")
    for contact in (CONTACT, 0.2 * CONTACT, 0.0):
        floor = f"floor of {contact:.0e} Pa/m" if contact else "hard floor"
        way = path(simulation("multigait", spacing, contact), hand_gait(sim, steps))
        per_cycle = float(way[-1, 0] - way[steps // 2 - 1, 0]) / (cycles / 2)
        print(
            f"  hand-made gait, {floor}: {1e3 * per_cycle:.2f} mm = {per_cycle / length:.4f} body lengths per cycle of "
            f"{PERIOD} s, {1e3 * float(way[-1, 0]):.1f} mm in {cycles} cycles, {1e3 * float(way[-1, 1]):.2f} mm aside",
            flush=True,
        )
    with torch.no_grad():
        shown = sim.rollout(hand_gait(sim, sized(75, 2)), sized(75, 2))  # two cycles, four pictures each
    save_strip(shown, 9, "cronos_multigait.png")


def turns(sim: wb.Simulation, positions: list[np.ndarray], region: str) -> float:
    """Final number of rotations of a region about y, from its positions after every interval."""
    chosen = sim.model.lattice.regions[region]
    X = sim.model.lattice.position[chosen][:, [2, 0]]
    angle = []
    for position in positions:
        x = position[chosen][:, [2, 0]]
        A = (x - x.mean(0)).T @ (X - X.mean(0))
        angle.append(np.arctan2(A[1, 0] - A[0, 1], A[0, 0] + A[1, 1]))
    return float(np.unwrap(angle)[-1]) / (2.0 * np.pi)


def soft_legs(spacing: float | None) -> None:
    """Let the robot with motors run at full voltage, print and draw."""
    scene = wb.usd.read(Path(__file__).resolve().parents[2] / "usd_scenes" / "soft_legs.usda")
    solver = wb.MassSpring(spacing or scene.task.cell_size, contact_stiffness=1e7)
    sim, steps = wb.Simulation(scene, solver, INTERVAL, substeps=None), sized(100, 1)
    lattice = sim.model.lattice
    length = float(np.ptp(lattice.position[:, 0]))
    print(f"soft legs: {len(lattice)} masses, {len(lattice.ends)} springs, {sim.substeps} steps in {INTERVAL} s")
    with torch.no_grad():
        run = sim.rollout(torch.ones(steps, sim.channels), steps)
        way = (sim.center_of_mass(run.final) - sim.center_of_mass(run.start))[0].tolist()
    positions = [position for _, position, _ in run.frames()]
    turned = [turns(sim, positions, a.rotor) for a in scene.actuators]
    wheel = 2.0 * np.pi * 0.05 * float(np.mean(turned))
    print(
        f"  {way[0]:.3f} m = {way[0] / length:.2f} body lengths in {steps * INTERVAL:g} s, {1e3 * way[1]:.2f} mm aside;"
        f" legs turn {min(turned):.2f} to {max(turned):.2f} times, a wheel of their radius would roll {wheel:.3f} m",
        flush=True,
    )
    save_strip(run, 6, "cronos_soft_legs.png")


def main() -> None:
    """Run all three robots."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spacing", type=float, help="spacing of the lattices [m]; default: the scenes'")
    options = parser.parse_args()
    thermal(options.spacing)
    multigait(options.spacing)
    soft_legs(options.spacing)


if __name__ == "__main__":
    main()
