"""DiffHand's Free-form Gripper: fingers from 396 numbers that lift a diamond; against free vertices, and CMA-ES.

    python benchmarks/papers/diffhand_gripper.py [cage] [mesh] [CMA-ES] [--starts N] [--first N] [--json FILE]
    python benchmarks/papers/diffhand_gripper.py check

Neither the loss nor the controls of the paper are published; these are `loss` and `diffhand_grasp.control`. A start
moves every free handle by 1 mm (standard deviation) along each axis. L-BFGS-B searches in stages: the viscosity of
friction, with which sticking points creep, begins at sixteen times its value and ends at it. If the diamond is not held
then, Adam does the same from the same start, and goes on with episodes of 600 steps. CMA-ES gets ``--longer`` times as
many episodes at the true viscosity. ``check`` compares a gradient with differences and times an episode. Writes
``diffhand_gripper.png`` and the best design [mm] beside this file; ``--strips`` draws this design and the cubes,
``diffhand_gripper_<before or after>.png``, and ``--refine`` plays it again, finer.
"""

import argparse
import dataclasses
import json
import math
import sys
import time
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[0]))

import refined
from diffhand_grasp import (
    CM,
    DESIGN,
    GRIP,
    INTERVAL,
    STEPS,
    FreeMesh,
    control,
    fingers,
    gripper_scene,
    inner_handles,
    moved,
    parameters,
)
from diffhand_strips import edges, film
from fast import figures, sized

import warpbots as wb
from warpbots.design import CagedBody

HERE = figures(__file__)
"""Where the figures and the design go."""
EPISODE, LONGER = 100, 150
"""Control intervals of an episode, 400 steps, and of the one that judges, 200 steps more."""
STAGES = sized(((16.0, 30), (8.0, 20), (4.0, 20), (2.0, 20), (1.0, 30)), ((16.0, 2), (1.0, 2)))
"""Factors of the viscosity, each with the most episodes at it."""
METHODS = {"L-BFGS-B": wb.methods.SciPy("L-BFGS-B"), "Adam": wb.methods.Torch(lr=0.1)}
"""What searches, Adam by 0.5 mm, from the start again if the first does not hold the diamond."""
LIFTED = 5.0 * CM
"""Height above which the diamond counts as lifted [m]."""
ENOUGH = 1e-3
"""Loss at which a stage ends [cm^2]."""
MOST, SPREAD = 3.0 * CM, 0.1 * CM
"""How far a handle may move along each axis, and standard deviation of the starts [m]."""
ROUNDING = 0.5
"""Of the edges of the cuboids, in half their heights: 3.75 mm."""


@dataclasses.dataclass
class Gripper:
    """Episodes of two fingers under the predefined control, as functions of the displacements of free handles.

    Attributes:
        bodies: The fingers.
        free: Indices of the free handles, shape (k,).
        sim: The simulation.
        episodes: Loss of each episode so far.
    """

    bodies: tuple[CagedBody, CagedBody]
    free: torch.Tensor
    sim: wb.Simulation
    episodes: list[float] = dataclasses.field(default_factory=list)

    @classmethod
    def of(cls, bodies: tuple[CagedBody, CagedBody], substeps: int = STEPS) -> "Gripper":
        """Make the gripper; the free handles are the handles of the cages, or all vertices, on the inner sides."""
        mesh = isinstance(bodies[0], FreeMesh)
        free = torch.as_tensor(inner_handles(bodies[0].rest.numpy(), 19 if mesh else 1))
        solver, keep = wb.Articulated(rounding=ROUNDING), wb.Checkpoints.all()
        sim = wb.Simulation(gripper_scene(bodies), solver, INTERVAL, substeps, checkpoints=keep)
        return cls(bodies, free, sim)

    def start(self, seed: int) -> torch.Tensor:
        """Random displacements of the free handles [m], shape (2, k, 3)."""
        rng = np.random.default_rng(seed)
        return torch.as_tensor(SPREAD * rng.standard_normal((2, len(self.free), 3)))

    def rollout(self, moves: torch.Tensor, intervals: int = EPISODE, viscosity: float = 1.0) -> wb.Trajectory:
        """Simulate an episode; the observation is q and qd of lift, left finger, right finger and diamond."""
        changed = parameters(self.sim, self.bodies, moved(self.bodies, self.free, moves), viscosity)
        return self.sim.rollout(
            control(intervals), intervals, observe=lambda s: torch.cat([s.q, s.qd], dim=1), **changed
        )

    def loss(self, moves: torch.Tensor, viscosity: float = 1.0, intervals: int = EPISODE) -> torch.Tensor:
        """Loss: mean square of the sinking of the diamond in the gripper during the lift, plus its final squared speed.

        Sinking is in centimetres, and its speed in cm/s.
        """
        sunk, speed = sinking(self.rollout(moves, intervals, viscosity))
        loss = sunk[round(GRIP / INTERVAL) :].square().mean() + speed[-1].square()
        self.episodes.append(loss.item())
        return loss


def sinking(motion: wb.Trajectory) -> tuple[torch.Tensor, torch.Tensor]:
    """Distance that the diamond has sunk in the gripper after each interval [cm], and its speed [cm/s]."""
    lift, z, lift_speed, z_speed = motion.observation[0, :, [0, 5, 10, 15]].T / CM
    return lift - z, lift_speed - z_speed


def judge(gripper: Gripper, moves: torch.Tensor) -> dict:
    """The loss of a design, and whether the design holds the diamond.

    The design holds the diamond if the diamond is lifted by 5 cm after 400 steps and after 200 more steps, in which it
    sinks by less than 1 mm.
    """
    with torch.no_grad():
        try:
            motion = gripper.rollout(moves, LONGER)
        except wb.SimulationError as fault:
            print(f"    an episode failed: {fault}", file=sys.stderr)
            return {"loss": math.inf, "sunk": math.inf, "height": [0.0, 0.0], "held": False}
        sunk, speed = sinking(motion)
    loss = sunk[round(GRIP / INTERVAL) : EPISODE].square().mean() + speed[EPISODE - 1].square()
    height = (motion.observation[0, [EPISODE - 1, LONGER - 1], 5] / CM).tolist()
    held = min(height) > LIFTED / CM and abs(float(sunk[-1] - sunk[EPISODE - 1])) < 0.1
    return {"loss": loss.item(), "sunk": sunk[EPISODE - 1].item(), "height": height, "held": held}


def by_gradient(gripper: Gripper, seed: int) -> dict:
    """Run one method after the other, in stages, until the diamond is held.

    The curve has the number of episodes so far and the loss at the true viscosity; rollouts that serve only this curve
    are not counted.
    """
    begun, curve, gripper.episodes = time.perf_counter(), [], []
    before = judge(gripper, gripper.start(seed))["held"]
    for name in METHODS:
        moves = gripper.start(seed).requires_grad_()
        for viscosity, most in STAGES:
            stage(gripper, moves, viscosity, name, most, curve)
        if name == "Adam":
            stage(gripper, moves, 1.0, name, STAGES[-1][1], curve, LONGER)
        if judge(gripper, moves.detach())["held"]:
            break
    found = ended(gripper, moves, time.perf_counter() - begun, curve)
    return found | {"held_before": before, "method": name}


def stage(
    gripper: Gripper,
    moves: torch.Tensor,
    viscosity: float,
    name: str,
    most: int,
    curve: list[tuple[int, float]],
    intervals: int = EPISODE,
) -> None:
    """Search until the loss is `ENOUGH`, or for `most` episodes; then set `moves` to the best displacements found."""

    def over(history: wb.optimize.History) -> bool:
        curve.append((len(gripper.episodes), judge(gripper, moves.detach())["loss"]))
        return history.loss[-1] < ENOUGH or history.episodes[-1] >= most

    unknown = wb.Unknown(moves, -MOST, MOST, scale=0.5 * CM)
    try:
        wb.minimize(
            lambda: gripper.loss(moves, viscosity, intervals), unknown, METHODS[name], iterations=most, progress=False,
            callback=over,
        )  # fmt: skip
    except wb.optimize.RolloutError as fault:
        print(f"    a stage ended: {fault}", file=sys.stderr)


def by_evolution(gripper: Gripper, seed: int, episodes: int) -> dict:
    """Run CMA-ES at the true viscosity; its initial standard deviation is the standard deviation of the starts."""
    moves = gripper.start(seed).requires_grad_()
    begun, curve = time.perf_counter(), []
    gripper.episodes = []

    def over(history: wb.optimize.History) -> bool:
        curve.append((len(gripper.episodes), min(history.loss)))
        return history.episodes[-1] >= episodes

    def loss() -> torch.Tensor:
        with torch.no_grad():
            return gripper.loss(moves)

    unknown = wb.Unknown(moves, -MOST, MOST, scale=SPREAD)
    wb.minimize(loss, unknown, wb.methods.CMA(1.0, seed=seed), iterations=episodes, progress=False, callback=over)
    return ended(gripper, moves, time.perf_counter() - begun, curve)


def ended(gripper: Gripper, moves: torch.Tensor, seconds: float, curve: list[tuple[int, float]]) -> dict:
    """Record of a finished search, with the displacements in millimetres."""
    episodes, values = len(gripper.episodes), moves.detach()
    found = judge(gripper, values) | {"episodes": episodes, "seconds": seconds, "moves": (1e3 * values).tolist()}
    return found | {"curve": curve} | shape_of(gripper, values)


def shape_of(gripper: Gripper, moves: torch.Tensor) -> dict:
    """Volumes [cm^3], reversed faces, pairs of faces that cross, and root mean square of angles at edges [degrees]."""
    import trimesh

    from warpbots.meshing.self_intersection import crossings

    found = {"volume": [], "reversed": 0, "crossings": 0, "angle": 0.0}
    for body, handles in zip(gripper.bodies, moved(gripper.bodies, gripper.free, moves), strict=True):
        own = trimesh.Trimesh(body.deformed(handles).numpy(), body.faces.numpy(), process=False)
        rest = trimesh.Trimesh(body.vertices.numpy(), body.faces.numpy(), process=False)
        flat = rest.face_adjacency_angles < 0.1  # not the edges of the cube
        found["volume"].append(float(own.volume) / CM**3)
        found["reversed"] += int(((own.face_normals * rest.face_normals).sum(axis=1) < 0.0).sum())
        found["crossings"] += len(crossings(np.array(own.vertices), np.array(own.faces)))
        found["angle"] += math.degrees(math.sqrt(np.mean(own.face_adjacency_angles[flat] ** 2))) / 2
    return found


def check(gripper: Gripper) -> None:
    """Compare the gradient along a random direction with central differences, and print the times of an episode."""
    moves, d = gripper.start(0).requires_grad_(), gripper.start(1) / SPREAD
    seconds = []
    for _ in range(2):  # the first compiles
        begun = time.perf_counter()
        loss = gripper.loss(moves, STAGES[0][0])
        forward = time.perf_counter() - begun
        (slope,) = torch.autograd.grad(loss, moves)
        seconds = [forward, time.perf_counter() - begun - forward]
    exact = float((slope * d).sum())
    print(f"forward {seconds[0]:.3f} s, backward {seconds[1]:.3f} s; slope {exact:.8g} cm^2/m")
    for h in 10.0 ** -np.arange(5, 10):
        with torch.no_grad():
            up, down = (gripper.loss(moves + s * h * d, STAGES[0][0]).item() for s in (1, -1))
        print(f"    differences of {h:.0e} m: off by {abs((up - down) / (2 * h) / exact - 1):.1e}")


def figure(results: dict[str, list[dict]]) -> None:
    """Draw the best loss so far over episodes, as mean and range over the starts."""
    import matplotlib.pyplot as plt

    _, ax = plt.subplots(figsize=(6, 4))
    for label, runs in results.items():
        steps = np.arange(1, max(r["episodes"] for r in runs) + 1)
        curves = np.full((len(runs), len(steps)), np.inf)
        for row, run in zip(curves, runs, strict=True):
            for episode, loss in run["curve"]:
                row[max(episode, 1) - 1 :] = np.minimum(row[max(episode, 1) - 1 :], loss)
        curves = np.where(np.isfinite(curves), curves, np.nan)
        (line,) = ax.plot(steps, np.nanmean(curves, axis=0), label=f"{label}, {len(runs)} starts")
        low, high = np.nanmin(curves, axis=0), np.nanmax(curves, axis=0)
        ax.fill_between(steps, low, high, color=line.get_color(), alpha=0.2)
    ax.set(xscale="log", yscale="log", xlabel="episodes", ylabel="best loss so far [cm²]", title="DiffHand: gripper")
    ax.legend()
    plt.savefig(HERE / "diffhand_gripper.png", dpi=120, bbox_inches="tight")


def strip(gripper: Gripper, moves: torch.Tensor, how: str, path: Path) -> None:
    """Draw fingers of a design at the grip, during the lift, and after 400 and 600 steps, with the goal of both.

    A gripper that has lost the diamond rises out of the picture, because its motor carries both.

    Args:
        gripper: The gripper.
        moves: Displacements of the free handles [m], shape (2, k, 3).
        how: What the fingers are, for the title.
        path: File of the picture.
    """
    own, steps = gripper.sim, [0, *(round(t / INTERVAL) for t in (GRIP, 1.2, 1.6)), EPISODE, LONGER]
    scene = gripper_scene(gripper.bodies, moved(gripper.bodies, gripper.free, moves))
    motion = wb.Simulation(scene, own.solver, own.dt, own.substeps).rollout(
        control(LONGER), LONGER, observe=lambda s: s.q
    )
    height = [0.0, *(motion.observation[0, :, 5] / CM).tolist()]
    (diamond,) = (body for body in scene.rigid if body.name == "diamond")
    goal = edges(*(np.array(corner) + (0.0, 0.0, LIFTED) for corner in diamond.bounds))
    texts = [f": {round(height[k], 1) + 0.0:.1f} cm high" for k in steps]
    whole = 4 if height[-1] < LIFTED / CM else None
    film(path, f"Free-form Gripper: {how}", motion, steps, lambda step, poses: (goal, []), texts, whole)


def stored() -> torch.Tensor:
    """Displacements of the free handles in the best design [m], shape (2, k, 3)."""
    return 1e-3 * torch.as_tensor(np.loadtxt(Path(__file__).with_name(DESIGN), delimiter=",")).reshape(2, -1, 3)


def strips(gripper: Gripper) -> None:
    """Draw the cubes and the stored design."""
    moves = stored()
    strip(gripper, torch.zeros_like(moves), "cubes", HERE / "diffhand_gripper_before.png")
    strip(gripper, moves, "best design of 30 starts", HERE / "diffhand_gripper_after.png")


def compare(
    grippers: dict[str, Gripper], names: list[str], starts: range, longer: int, path: Path | None
) -> dict[str, list[dict]]:
    """Run each search from its starts, and write the results to `path` after each search.

    The gradient search with cages begins from all starts; each other search begins from a tenth of the starts.
    """
    results: dict[str, list[dict]] = {name: [] for name in names}
    for name in names:
        for seed in starts if name == "cage" else starts[: max(1, len(starts) // 10)]:
            if name == "CMA-ES":
                episodes = longer * results["cage"][seed - starts[0]]["episodes"] if "cage" in results else 250
                found = by_evolution(grippers["cage"], seed, episodes)
            else:
                found = by_gradient(grippers[name], seed)
            results[name].append(found)
            told = {key: value for key, value in found.items() if key not in ("moves", "curve")}
            print(f"{name}, start {seed}: {told}", flush=True)
        runs = results[name]
        held = sum(r["held"] for r in runs)
        print(f"{name}: {held} of {len(runs)} hold it, mean loss {np.mean([r['loss'] for r in runs]):.4g} cm^2")
        if path:
            path.write_text(json.dumps(results))
    return results


def refine() -> None:
    """Play the stored design again; the measure is the height of the diamond after 600 steps."""
    moves = stored()

    def play(how: refined.Refinement) -> float:
        fineness = round(1.0 / how.cells)
        bodies = fingers(sized(32, 8) * fineness, sized(300, 40) * fineness**2)
        return judge(Gripper.of(bodies, how.steps * STEPS), moves)["height"][-1]

    refined.table({"free-form gripper": play}, 0.5, "cm")


def main() -> None:
    """Run the named searches, or all searches."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("searches", nargs="*", help="cage, mesh, CMA-ES; all three without a name; or check")
    parser.add_argument("--starts", type=int, default=sized(30, 1), help="of the cage; the others have a tenth")
    parser.add_argument("--first", type=int, default=0, help="the first start")
    parser.add_argument("--longer", type=int, default=sized(10, 1), help="how many times more episodes CMA-ES gets")
    parser.add_argument("--json", type=Path, help="where to write all results")
    parser.add_argument("--strips", action="store_true", help="draw the cubes and the stored design")
    refined.option(parser)
    options = parser.parse_args()
    if options.refine:
        refine()
        return
    starts = range(options.first, options.first + options.starts)
    bodies = fingers(sized(32, 8), sized(300, 40))
    grippers = {"cage": Gripper.of(bodies), "mesh": Gripper.of(tuple(map(FreeMesh, bodies)))}
    if options.strips:
        strips(grippers["cage"])
        return
    if options.searches == ["check"]:
        check(grippers["cage"])
        return
    print(f"cubes: {judge(grippers['cage'], torch.zeros_like(grippers['cage'].start(0)))}")
    results = compare(grippers, options.searches or ["cage", "mesh", "CMA-ES"], starts, options.longer, options.json)
    figure(results)
    if "cage" in results:
        robust(bodies, results["cage"])
        best = min(results["cage"], key=lambda run: run["loss"])
        moves = torch.tensor(best["moves"], dtype=torch.float64)
        np.savetxt(HERE / DESIGN, moves.reshape(-1, 3).numpy(), fmt="%.3f", delimiter=",")


def robust(bodies: tuple[CagedBody, CagedBody], runs: list[dict]) -> None:
    """Print the number of designs that hold the diamond, and how many of these do so with half the time step."""
    finer = Gripper.of(bodies, 2 * STEPS)
    held = [run for run in runs if run["held"]]
    again = sum(judge(finer, 1e-3 * torch.tensor(run["moves"], dtype=torch.float64))["held"] for run in held)
    print(f"in half the step: {again} of {len(held)} that hold it still do")


if __name__ == "__main__":
    main()
