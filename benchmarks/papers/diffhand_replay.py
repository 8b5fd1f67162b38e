"""DiffHand's Flip Box in MuJoCo: an optimised finger, written as MJCF, is driven open loop by its optimised controls.

    python benchmarks/papers/diffhand_replay.py [--seed N] [--timestep H] [--stored]

L-BFGS-B optimises control and design as in `diffhand_compare`; alternatively, both are the stored result of several
starts there. The last replay moves the forces of MuJoCo's contacts to the contact
points of warpbots, to show the effect of the positions. Writes ``diffhand_replay.png``, the angle of the box over time
in both engines, beside this file.
"""

import argparse
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[0]))

from diffhand_compare import by_gradient
from diffhand_hands import flip_scene
from diffhand_sizes import stored
from diffhand_tasks import TASKS, Task
from fast import figures, sized

import warpbots as wb

HERE = figures(__file__)
"""Where the figure goes."""
FILES = {
    "contact points, rounded edges": {"contact": "points", "rounding": 0.2},
    "contact points, sharp edges": {"contact": "points", "rounding": 0.0},
    "MuJoCo's contacts of solids": {"contact": "solids"},
}
"""Ways to write contact; the first is that of the simulation, whose edges are rounded by 0.2."""


AT_POINTS = "forces at the points themselves"


def optimised(task: Task, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Control signals, shape (intervals, channels), and scale factors, shape (n,)."""
    found = by_gradient(task, seed, designed=True)
    return tuple(torch.tensor(found[name], dtype=torch.float64) for name in ("controls", "factors"))


def motion_of(task: Task, control: torch.Tensor, scene: wb.Scene, substeps: int) -> np.ndarray:
    """Coordinates at the ends of control intervals, shape (steps + 1, n_coordinates)."""
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of steps that do not resolve impacts, which are those of the paper
        sim = wb.Simulation(scene, task.sim.solver, task.sim.dt, substeps)
        motion = sim.rollout(control, task.intervals, observe=lambda s: s.q)
        return np.vstack([sim.state().q.numpy(), motion.observation[0].numpy()])


def forces_at_points(path: Path, control: np.ndarray, interval: float, timestep: float) -> np.ndarray:
    """Coordinates of a replay whose contact forces act at the contact points, shape (steps + 1, n_coordinates).

    In MuJoCo contact forces act halfway between the point and the core of a rounded solid. To move the forces, the
    function takes a step by the separate functions of MuJoCo 4.0; all joints of the finger are slides and hinges.
    """
    import mujoco as mj

    model = mj.MjModel.from_xml_path(str(path))
    data, steps = mj.MjData(model), round(interval / timestep)
    model.opt.timestep = interval / steps
    is_point = np.array(["/point " in model.geom(g).name for g in range(model.ngeom)])
    before = (mj.mj_kinematics, mj.mj_comPos, mj.mj_tendon, mj.mj_makeM, mj.mj_factorM, mj.mj_collision)
    after = (
        mj.mj_makeConstraint, mj.mj_island, mj.mj_projectConstraint, mj.mj_transmission, mj.mj_fwdVelocity,
        mj.mj_fwdActuation, mj.mj_fwdAcceleration, mj.mj_fwdConstraint, mj.mj_Euler,
    )  # fmt: skip
    q = [data.qpos.copy()]
    for u in control:
        data.ctrl[:] = u
        for _ in range(steps):
            for part in before:
                part(model, data)
            ends = data.contact.geom
            if len(ends):
                data.contact.pos[:] = data.geom_xpos[np.where(is_point[ends[:, 0]], ends[:, 0], ends[:, 1])]
            for part in after:
                part(model, data)
        q.append(data.qpos.copy())
    return np.array(q)


def say(label: str, time: np.ndarray, q: np.ndarray, ours: np.ndarray) -> None:
    """Print the final angle of the box, and the differences of the coordinates between the engines."""
    apart = np.abs(q - ours).max(axis=1)
    early = ", ".join(f"{apart[k]:.2g} at {time[k]:g} s" for k in (1, 2, 3, 10) if k < len(apart))
    print(
        f"MuJoCo, {label}: box at {np.rad2deg(q[-1, -1]):.2f}, at most {np.rad2deg(q[:, -1].max()):.2f} degrees; "
        f"coordinates apart by {early}, {apart.max():.2g} at most [m or rad]",
        flush=True,
    )


def figure(time: np.ndarray, angles: dict[str, np.ndarray]) -> None:
    """Draw the angle of the box over time."""
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(6, 4))
    for label, angle in angles.items():
        ax.plot(time, np.rad2deg(angle), "k-" if label == "warpbots" else "--", label=label)
    ax.set(xlabel="time [s]", ylabel="angle of the box [degrees]", title="Flip Box, open loop in MuJoCo")
    ax.legend(loc=(0.4, 0.15))
    plt.savefig(HERE / "diffhand_replay.png", dpi=120, bbox_inches="tight")


def main() -> None:
    """Optimise the finger, write it as MJCF, replay the motion and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--timestep", type=float, default=sized(2e-5, 1e-3), help="of MuJoCo [s]")
    parser.add_argument("--stored", action="store_true", help="the result of several starts, without an optimisation")
    options = parser.parse_args()
    task = TASKS["flip"]()
    controls, factors = (v.detach() for v in (stored() if options.stored else optimised(task, options.seed)))
    control, scene = torch.tanh(controls), flip_scene(task.hand, factors)
    coarse, ours = motion_of(task, control, scene, 5), motion_of(task, control, scene, 100)
    print(
        f"warpbots: box at {np.rad2deg(coarse[-1, -1]):.2f} in steps of 5 ms, {np.rad2deg(ours[-1, -1]):.2f} of 0.25 ms"
    )
    angles = {"warpbots": ours[:, -1]}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "finger.xml"
        for label, how in FILES.items():
            wb.robots.save(path, scene, **how)
            replay = wb.robots.replay_in_mujoco(path, scene, control.numpy(), task.sim.dt, timestep=options.timestep)
            angles[label] = replay.q[:, -1]
            say(label, replay.time, replay.q, ours)
        wb.robots.save(path, scene, **FILES["contact points, rounded edges"])
        moved = forces_at_points(path, control.numpy(), task.sim.dt, options.timestep)
        angles[AT_POINTS] = moved[:, -1]
        say(AT_POINTS, replay.time, moved, ours)
    figure(replay.time, angles)


if __name__ == "__main__":
    main()
