"""Every stored result of the papers' experiments as a film, in the colours of its scene and with its goal.

    python benchmarks/papers/films.py [NAME ...] [--out films] [--format mp4] [--speed 1] [--usd]

Nothing is searched. A result is played once more as it was found, and written to ``NAME.gif`` or ``NAME.mp4`` in the
folder of ``--out``. ``--usd`` also writes ``NAME.usda``. A NAME is the name of a file in the folder ``stored``, without
its ending. Several results, or all without a name, are each played in a process of their own, because the swinging arm
needs double precision.
"""

import argparse
import functools
import importlib
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[0]))

import refined
from fast import sized

import warpbots as wb

Motion = tuple[wb.Trajectory[Any], Sequence[float] | None]
"""A motion, and the goal of a point of it [m]; None if there is no such point."""


def size_of(name: str) -> str:
    """The size of a stored result."""
    return next((size for size in ("middle", "full") if size in name.split("_")), "small")


def cables(name: str) -> Motion:
    """The biped with cables."""
    own = importlib.import_module("chainqueen_biped")
    return own.biped(None, size_of(name)).rollout(refined.kept(name)["control"][: own.STEPS], own.STEPS), None


def codesign(name: str) -> Motion:
    """The biped of the co-design."""
    own, size = importlib.import_module("chainqueen_codesign"), size_of(name)
    return walk(name, own.biped(None, size), own.controller, own.STEPS[size])


def walker(name: str, robot: str) -> Motion:
    """A walker in 3D."""
    own = importlib.import_module("chainqueen_walkers")
    return walk(name, own.walker(robot, size_of(name), None), own.controller, own.STEPS)


def robot(name: str, module: str, table: str, robot: str) -> Motion:
    """A robot from a file, or a biped on sand."""
    own = getattr(importlib.import_module(module), table)[size_of(name)][robot]
    sim = importlib.import_module("chainqueen_shapes").simulation(own, None)
    return walk(name, sim, own.controller, own.steps)


def walk(name: str, sim: wb.Simulation, controller: Callable[[wb.Simulation], torch.nn.Module], steps: int) -> Motion:
    """A walk under a stored controller, with the stored fields."""
    return importlib.import_module("chainqueen_common").stored_walk(name, sim, controller(sim), steps), None


def arm_length(name: str) -> Motion:
    """The arm of unknown length."""
    own, stored = importlib.import_module("chainqueen_arm_length"), refined.kept(name)
    return own.motion(own.arm(None), stored["table"][: own.STEPS // own.HOLD], stored["factor"]), own.GOAL


def swing(name: str) -> Motion:
    """The arm that swings up."""
    own = importlib.import_module("chainqueen_swing_up")
    found = own.Experiment(own.arm(None, own.SIZES[size_of(name)]), own.STIFF, False, own.TASKS["end"])
    found.begin(refined.kept(name))
    return found.motion(found.sims[0]), own.GOAL


def sheet(name: str) -> Motion:
    """The crawling sheet."""
    own = importlib.import_module("cronos_gait")
    sim = own.simulation("multigait", margin=own.MARGIN)
    return sim.rollout(own.controls(refined.kept(name)["series"], own.STEPS), own.STEPS), None


def hand(name: str, task: str) -> Motion:
    """A task of DiffHand."""
    own, found = importlib.import_module("diffhand_tasks").TASKS[task](), refined.kept(name)
    episode = importlib.import_module("diffhand_strips").episode
    return episode(own, found["controls"][: own.intervals].double(), found["factors"].double())[0], None


def swimmer(name: str, module: str, part: str) -> Motion:
    """A stroke of the fish or the octopus."""
    stroke = importlib.import_module(module).stroke_of(part, size_of(name))
    stroke.raw = refined.kept(name)["raw"][: stroke.steps]
    return stroke.motion(), stroke.target.tolist()


def grip(name: str) -> Motion:
    """The pneumatic gripper."""
    own = importlib.import_module("softbody_gripper")
    found = own.Grip.of(how=own.SIZES[size_of(name)])
    found.raw = refined.kept(name)["raw"][: own.STEPS]
    return found.rollout(), own.TARGET


FILMS: dict[str, Callable[[str], Motion]] = {
    "chainqueen_biped": cables,
    "chainqueen_codesign": codesign,
    **{f"chainqueen_{robot}": functools.partial(walker, robot=robot) for robot in ("quadruped", "hexapod", "octoped")},
    **{
        f"chainqueen_{name}": functools.partial(robot, module="chainqueen_shapes", table="ROBOTS", robot=name)
        for name in ("rhino", "lizard")
    },
    **{
        f"chainqueen_{name}": functools.partial(robot, module="chainqueen_terrain", table="TERRAINS", robot=name)
        for name in ("flat", "dunes")
    },
    "chainqueen_arm_length": arm_length,
    "chainqueen_swing_up": swing,
    "cronos_gait": sheet,
    **{f"diffhand_{task}": functools.partial(hand, task=task) for task in ("reach", "flip", "rotate", "assemble")},
    "softbody_fish": functools.partial(swimmer, module="softbody_fish", part="stroke"),
    "softbody_fish_lagging": functools.partial(swimmer, module="softbody_fish", part="lagging"),
    "softbody_fish_grids": functools.partial(swimmer, module="softbody_fish", part="resolved"),
    "softbody_octopus": functools.partial(swimmer, module="softbody_octopus", part="stroke"),
    "softbody_octopus_pull": functools.partial(swimmer, module="softbody_octopus", part="pull"),
    "softbody_gripper": grip,
}
"""What plays a stored result; the longest beginning of its name counts."""


def played(name: str) -> Motion:
    """The motion of a stored result, without a gradient."""
    with torch.no_grad():
        return FILMS[max((own for own in FILMS if name.startswith(own)), key=len)](name)


def main() -> None:
    """Write the films of the named results, or of all."""
    known = sorted(path.stem for path in refined.FOLDER.glob("*.npz"))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"{', '.join(known)}; all without a name")
    parser.add_argument("--out", type=Path, default=Path("films"), help="folder of the films (%(default)s)")
    parser.add_argument("--format", choices=["gif", "mp4"], default="gif", help="(%(default)s)")
    parser.add_argument("--speed", type=float, default=1.0, help="of the film, relative to real time (%(default)g)")
    parser.add_argument("--usd", action="store_true", help="write the motions as USD, too")
    options = parser.parse_args()
    if unknown := set(options.names) - set(known):
        parser.error(f"nothing is stored as {', '.join(sorted(unknown))}; stored are {', '.join(known)}")
    if len(options.names) != 1:
        others = [word for word in sys.argv[1:] if word not in options.names]
        names = options.names or known
        for name in names:
            subprocess.run([sys.executable, __file__, name, *others], check=True)
        print(f"{len(names)} films in {options.out}")
        return
    (name,) = options.names
    motion, goal = played(name)
    options.out.mkdir(parents=True, exist_ok=True)
    path, seconds = options.out / f"{name}.{options.format}", motion.steps * motion.control_interval
    wb.view.animate(path, motion, sized(25.0, 2.0), seconds / options.speed, goal=goal)
    if options.usd:
        wb.usd.write(path.with_suffix(".usda"), motion)
    print(f"{path}: {motion.steps} control intervals, {seconds:.2f} s", flush=True)


if __name__ == "__main__":
    main()
