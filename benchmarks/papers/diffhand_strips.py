"""Film strips of DiffHand's tasks: hands are orange, what they move is blue and goals are green; texts give metrics."""

import dataclasses
import functools
import itertools
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from diffhand_hands import CM, HINGE, HOLE, PART, SCENES, SIDE
from diffhand_tasks import TARGETS, Task

import warpbots as wb
from warpbots.view.motion import Motion, collect, evenly
from warpbots.view.palette import GOAL, INK

__all__ = ["edges", "episode", "film", "strip"]

Lines = list[np.ndarray]
"""Lines through points [m], each of shape (n, 3); a line of one point is a ring, from which a dotted line leads
down if it is alone."""
Poses = dict[str, tuple[np.ndarray, np.ndarray]]
"""Position [m], shape (3,), and axes, as columns, shape (3, 3), of each body."""
Goals = Callable[[int, Poses], tuple[Lines, Lines]]
"""Goals (green) and marks (dark) after some control intervals, where the bodies have these poses."""
HAND, OBJECT, MOUNT = (0.93, 0.55, 0.25), (0.45, 0.6, 0.75), (0.80, 0.78, 0.72)
"""Colours of hands, of what they move, and of the mount of Assemble."""
NAMES = {"reach": "Finger Reach", "flip": "Flip Box", "rotate": "Rotate Rubik's Cube", "assemble": "Assemble"}


def edges(lower: Sequence[float], upper: Sequence[float]) -> Lines:
    """The twelve edges of a box [m]."""
    corners = np.array(list(itertools.product(*zip(lower, upper, strict=True))))
    return [corners[[a, b]] for a in range(8) for b in range(a) if (corners[a] != corners[b]).sum() == 1]


def film(
    path: Path, title: str, motion: wb.Trajectory, steps: Sequence[int], goals: Goals, texts: Sequence[str],
    whole: int | None = None,
) -> None:  # fmt: skip
    """Draw moments of a motion side by side, with goals and marks in front of everything.

    Args:
        path: File of the picture.
        title: Title above all moments.
        motion: The motion.
        steps: Number of control intervals until each moment, in ascending order.
        goals: What to draw at each moment.
        texts: Text above each moment.
        whole: Number of moments that the view contains as a whole, from the first; None for all.
    """
    from matplotlib.figure import Figure

    seen = coloured(collect(motion, steps))
    names = [body.name for body in seen.scene.rigid]
    poses = [
        dict(zip(names, zip(*found, strict=True), strict=True))
        for found in zip(seen.poses.position, seen.poses.rotation, strict=True)
    ]
    drawn = [goals(step, own) for step, own in zip(steps, poses, strict=True)]
    seen = dataclasses.replace(seen, goals=np.concatenate([line for lines, _ in drawn for line in lines]))
    camera, rows = seen.pick(np.arange(len(seen))[:whole]).camera(), -(-len(seen) // 2)
    figure = Figure(figsize=(12.0, rows * (6.0 / camera.aspect + 0.35) + 0.4), dpi=100, layout="constrained")
    figure.suptitle(title, fontsize=13, color=INK)
    places = figure.subplots(rows, 2, squeeze=False).flat
    for ax in places[len(seen) :]:
        ax.set_axis_off()
    for k, (ax, text) in enumerate(zip(places, texts, strict=False)):
        wb.view.draw(seen.scene, ax=ax, poses=(seen.poses.position[k], seen.poses.rotation[k]), camera=camera)
        ax.set_title(f"{seen.time[k]:.2f} s{text}", fontsize=11, color=INK)
        for lines, color in zip(drawn[k], (GOAL, INK), strict=True):
            for line in lines:
                ring = (
                    {"marker": "o", "ms": 13.0, "mfc": "none", "mew": 2.0, "clip_on": False} if len(line) == 1 else {}
                )
                ax.plot(*camera.project(line).T, color=color, lw=2.0, zorder=4.5, **ring)
                if len(line) == len(lines) == 1:
                    foot = np.array([line[0], [*line[0, :2], camera.box[0][2]]])
                    ax.plot(*camera.project(foot).T, ":", color=color, lw=1.0, zorder=4.4)
    figure.savefig(path)


def coloured(motion: Motion) -> Motion:
    """The motion with the colours of this file; bodies that have one keep it."""
    own = {"mount": MOUNT, **dict.fromkeys(("box", "top", "cube"), OBJECT)}
    bodies = [
        dataclasses.replace(b, color=b.color or (HAND if b.surface == "hand" else own.get(b.name)))
        for b in motion.scene.bodies
    ]
    return dataclasses.replace(motion, scene=dataclasses.replace(motion.scene, bodies=bodies))


def strip(task: Task, controls: torch.Tensor, factors: torch.Tensor, how: str, path: Path) -> None:
    """Draw an episode of a task: the moments that count, the goals, and what is left of each.

    Args:
        task: The task.
        controls: Controls before tanh, shape (intervals, channels).
        factors: Scale factors of the hand, shape (n,).
        how: How they were found, for the title.
        path: File of the picture.
    """
    with torch.no_grad():
        motion, left = episode(task, controls, factors)
        steps = moments(task)
        unit = {"deg": "degrees"}.get(task.unit, task.unit)
        texts = [f": {left[0, k - 1]:.1f} {unit} to go" if k else "" for k in steps]
        film(path, f"{NAMES[task.name]}: {how}", motion, steps, functools.partial(goals_of, task), texts)


def episode(task: Task, controls: torch.Tensor, factors: torch.Tensor) -> tuple[wb.Trajectory, torch.Tensor]:
    """An episode of a task with its hand in its shape, and the metric of each control interval, as `strip` has them."""
    scene, sim = SCENES[task.name][0], task.sim
    shown = wb.Simulation(scene(task.hand, factors), sim.solver, sim.dt, sim.substeps)
    motion, _, left = dataclasses.replace(task, sim=shown).course(controls[None], factors)
    return motion, left


def moments(task: Task) -> list[int]:
    """Control intervals until each moment; on Finger Reach, the middle of the time of each of the four targets."""
    if task.name != "reach":
        return evenly(task.intervals, 6).tolist()
    return sorted({0, *((2 * k + 1) * task.intervals // 8 + 1 for k in range(4)), task.intervals})


def goals_of(task: Task, step: int, poses: Poses) -> tuple[Lines, Lines]:
    """Goals and marks of a task after some control intervals.

    Of Rubik's cube they are two lines from the middle of the layer, one of which turns with it.
    """
    if task.name == "reach":
        return [CM * TARGETS[max(step - 1, 0) * 4 // task.intervals][None].numpy()], []
    if task.name == "flip":
        return edges(HINGE + (-SIDE, -SIDE / 2, 0.0), HINGE + (0.0, SIDE / 2, SIDE)), []
    if task.name == "rotate":
        top, reach = np.array((0.0, 0.0, -4.0 * CM)), 0.7 * SIDE
        there, here = top - (0.0, reach, 0.0), top + reach * poses["top"][1][:, 0]
        return [np.array([top, there]), there[None]], [np.array([top, here])]
    position, rotation = poses["mount"]
    return [line @ rotation.T + position for line in edges(HOLE - PART / 2, HOLE + PART / 2)], []
