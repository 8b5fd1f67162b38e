"""Soft multi-body paper, figure 1: the effect of a skeleton. A humanoid falls on its feet and lifts its arms to a Y.

    python benchmarks/papers/softbody_skeleton.py [MODEL ...] [--seeds N] [--json FILE]

The same body as a soft body with five bones ("articulated"), without bones ("no skeleton"), as five rigid bodies
("rigid"), with bones and without torques ("passive"), and as matter under MPM. It is dropped in a T-pose from five
starts; from 0.3 to 0.7 s the motors of the shoulders, where there are any, lift the arms by 45 degrees. Measured over
the last fifth of 100 steps of 10 ms are three errors. The error of bone lengths is the relative change of the distance
between the ends of a bone, as mean over the five bones. For the error of body deformation, the length of the body from
the middle of the soles to the top of the head is divided by its length at rest; the error is the difference between
this ratio and the ratio of the articulated body with cells of half the width. The error of joint angles is the
difference between the elevation of the arms above the horizontal of the torso and 45 degrees, as mean over both arms.
Prints a table and writes ``softbody_skeleton.png`` beside this file.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[0]))

from fast import FAST, figures, sized
from softbody_humanoid import ARMS, BONES, CELL, LIFT, markers, rigid_humanoid, soft_humanoid

import warpbots as wb

HERE = figures(__file__)
"""Where the figure goes."""
STEP, STEPS, LAST = 0.01, sized(100, 2), sized(20, 1)
"""Control interval [s], how many there are, and how many of them are measured."""
RAISED = (0.3, 0.7)
"""When the arms begin to be lifted, and when they are [s]."""
NAMES = tuple(markers(0.0))
MEASURES = ("bone length [%]", "body deformation [%]", "joint angle [deg]")


def start(seed: int) -> tuple[float, tuple[float, float, float]]:
    """Initial height of the soles [m] and initial velocity [m/s] for a seed."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-0.2, 0.2, 2)
    return float(rng.uniform(0.02, 0.05)), (float(x), float(y), -float(rng.uniform(0.0, 0.3)))


def soft(lift: float, velocity: tuple[float, ...], **options) -> wb.Simulation:
    """Simulation of the soft body, with or without bones, by projective dynamics."""
    scene = soft_humanoid(lift, velocity, **options)
    return wb.Simulation(scene, wb.ProjectiveDynamics(collisions=False), STEP, 2)


def by_points(lift: float, velocity: tuple[float, ...]) -> wb.Simulation:
    """Simulation of the matter without bones by MPM, with grid cells as wide as the cells of the mesh."""
    return wb.Simulation(soft_humanoid(lift, velocity, bones=False), wb.MPM(CELL), STEP, substeps=None)


def rigid(lift: float, velocity: tuple[float, ...]) -> wb.Simulation:
    """Simulation of the humanoid as five rigid bodies with joints."""
    return wb.Simulation(rigid_humanoid(lift, velocity), wb.Articulated("bdf1"), STEP, 4)


MODELS: dict[str, Callable[..., wb.Simulation]] = {
    "articulated": soft,
    "no skeleton": lambda lift, velocity: soft(lift, velocity, bones=False),
    "rigid": rigid,
    "passive": lambda lift, velocity: soft(lift, velocity, torques=False),
    "MPM": by_points,
}


def observer(sim: wb.Simulation, lift: float) -> Callable[[object], torch.Tensor]:
    """Function that maps a state to the positions of the markers [m], shape (1, n_markers, 3)."""
    if sim.scene.soft:
        masks = [sim.region(name) for name in NAMES]
        return lambda state: torch.stack([state.position[:, mask].double().mean(dim=1) for mask in masks], dim=1)
    bodies = [body.name for body in sim.scene.rigid]
    owner = [bodies.index(next((b for b in BONES if name.startswith(b)), "torso")) for name in NAMES]
    local = torch.tensor(np.stack([place(name, box) for name, box in markers(lift).items()]))

    def seen(state: object) -> torch.Tensor:
        pose = sim.sense(state)
        turned = (pose.rotation[:, owner].double() @ local[None, :, :, None])[..., 0]
        return turned + pose.position[:, owner].double()

    return seen


def place(name: str, box: wb.shapes.Box) -> np.ndarray:
    """The point that a marker represents [m]: the centre of its box, or of the face of the box at the sole or top."""
    lower, upper = box.bounds
    middle = (lower + upper) / 2.0
    if name == "top" or name.endswith("_sole"):
        middle[2] = upper[2] if name == "top" else lower[2]
    return middle


def controls(sim: wb.Simulation) -> torch.Tensor:
    """Control signals with the targets of the shoulders, shape (steps, channels)."""
    now = STEP * torch.arange(1, STEPS + 1)
    part = ((now - RAISED[0]) / (RAISED[1] - RAISED[0])).clamp(0.0, 1.0)
    return part[:, None].expand(STEPS, sim.channels)


def move(sim: wb.Simulation, seed: int) -> tuple[wb.Trajectory, np.ndarray]:
    """The motion, and the markers at rest and after each step [m], shape (1 + steps, n_markers, 3)."""
    seen = observer(sim, start(seed)[0])
    with torch.no_grad():
        moved = sim.rollout(controls(sim), STEPS, observe=seen)
    return moved, torch.cat([seen(moved.start)[:, None], moved.observation], dim=1)[0].numpy()


def lengths(x: np.ndarray) -> np.ndarray:
    """Distances between the ends of bones [m], shape (1 + steps, n_bones)."""
    ends = {name: x[:, k] for k, name in enumerate(NAMES)}
    return np.stack([np.linalg.norm(ends[f"{b}_last"] - ends[f"{b}_first"], axis=1) for b in BONES], axis=1)


def stretch(x: np.ndarray) -> np.ndarray:
    """Length of the body divided by its length at rest, shape (1 + steps,)."""
    ends = {name: x[:, k] for k, name in enumerate(NAMES)}
    length = np.linalg.norm(ends["top"] - (ends["left_leg_sole"] + ends["right_leg_sole"]) / 2.0, axis=1)
    return length / length[0]


def elevation(x: np.ndarray) -> np.ndarray:
    """Angle of each arm above the horizontal of the torso [rad], shape (1 + steps, 2)."""
    ends = {name: x[:, k] for k, name in enumerate(NAMES)}
    up = ends["torso_last"] - ends["torso_first"]
    found = []
    for arm in ARMS:
        out = ends[f"{arm}_last"] - ends[f"{arm}_first"]
        out = -out if arm == "left_arm" else out  # bones point along x
        found.append(np.arcsin((out * up).sum(axis=1) / np.linalg.norm(out, axis=1) / np.linalg.norm(up, axis=1)))
    return np.stack(found, axis=1)


def measure(x: np.ndarray, reference: np.ndarray) -> list[float]:
    """The three errors, in the order of `MEASURES`."""
    change = lengths(x) / lengths(x)[0] - 1.0
    return [
        100.0 * float(np.abs(change[-LAST:]).mean()),
        100.0 * float(np.abs(stretch(x) - stretch(reference))[-LAST:].mean()),
        math.degrees(float(np.abs(elevation(x) - LIFT)[-LAST:].mean())),
    ]


def main() -> None:
    """Drop every model from every start, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help=f"{', '.join(MODELS)}; all without a name")
    parser.add_argument("--seeds", type=int, default=sized(5, 1), help="number of starts (%(default)s)")
    parser.add_argument("--json", type=Path, help="where to write the markers of all motions")
    options = parser.parse_args()
    found: dict[str, list] = {}
    references = []
    for seed in range(options.seeds):
        begun = time.process_time()
        references.append(move(soft(*start(seed), finer=sized(2, 1)), seed)[1])
        print(f"reference, start {seed}: {time.process_time() - begun:.0f} s", flush=True)
    for name in options.models or MODELS:
        rows, begun = [], time.process_time()
        for seed in range(options.seeds):
            x = move(MODELS[name](*start(seed)), seed)[1]
            found.setdefault(name, []).append(x.tolist())
            rows.append(measure(x, references[seed]))
        spent = (time.process_time() - begun) / options.seeds
        print(f"{name:>12}: {', '.join(summary(rows))}; {spent:.1f} s", flush=True)
    if options.json:
        options.json.write_text(json.dumps(found | {"reference": [x.tolist() for x in references]}))
    if not FAST:
        draw()


def summary(rows: list[list[float]]) -> list[str]:
    """Mean of each measure over the starts, and its interval of 90 %."""
    from scipy.stats import t

    table = np.array(rows)
    factor = t.ppf(0.95, len(table) - 1) / math.sqrt(len(table)) if len(table) > 1 else 0.0
    spread = factor * table.std(axis=0, ddof=1) if len(table) > 1 else np.zeros(3)
    return [f"{what} {m:.3g} +- {s:.2g}" for what, m, s in zip(MEASURES, table.mean(axis=0), spread, strict=True)]


def draw() -> None:
    """Draw the initial and final state of each model for the first start."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 3.2 * len(MODELS)), dpi=90, layout="constrained")
    for ax, (name, make) in zip(figure.subplots(len(MODELS), 1), MODELS.items(), strict=True):
        ax.imshow(wb.view.film_strip(move(make(*start(0)), 0)[0], 2))
        ax.set_title(name, loc="left")
        ax.axis("off")
    figure.savefig(HERE / "softbody_skeleton.png")


if __name__ == "__main__":
    main()
