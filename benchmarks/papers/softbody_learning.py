"""Soft multi-body paper, section 6.3: PPO, SAC and CMA-ES lift with the gripper, and swim as octopus and as fish.

    python benchmarks/papers/softbody_learning.py [gripper] [octopus] [fish] [--methods gradient cma ppo sac]
        [--seeds N] [--episodes 500] [--json FILE]
    python benchmarks/papers/softbody_learning.py --draw

Scenes, steps and losses come from `softbody_gripper.py`, `softbody_octopus.py` and `softbody_fish.py`. The reward of a
control interval is the decrease of the distance from the target, in per cent of the way. A return is therefore
100 (1 - loss / way). Algorithms are from Stable-Baselines3, with the settings of `warpbots/Fish-v0` in
`benchmarks/learning`, apart from the noise (`OWN`). Episodes count over all worlds. After them, the policy without
randomness plays one more. ``gradient`` and ``cma`` are the searches of the other scripts. Losses of policies are stored
after each round of episodes, so that a run that is stopped leaves its curve; a run that is there already is replaced.
``--draw`` learns nothing and draws ``softbody_learning.png``, the stored losses over episodes, as every run does at its
end.
"""

import argparse
import functools
import json
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecEnvWrapper

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "learning"))
sys.path.insert(0, str(Path(__file__).resolve().parents[0]))

import softbody_fish
import softbody_gripper
import softbody_octopus
from fast import figures, sized
from learn import learner
from softbody_grip import REACH
from softbody_strokes import METHODS as STROKES
from softbody_strokes import NEAR, Stroke

import warpbots as wb

HERE = figures(__file__)
"""Where results and figures go."""
SETTINGS = Path(__file__).resolve().parents[1] / "learning" / "fish.toml"
"""Of both algorithms."""
WORLDS = sized(4, 2)
"""Number of worlds, in which as many episodes run at once."""
OWN = {"use_sde": True, "gamma": 1.0}
"""Noise that depends on the state (gSDE, Raffin et al. 2022) and so is smooth in time; returns are not discounted."""
COLORS = {"gradient": "#1f77b4", "cma": "#7570b3", "ppo": "#d95f02", "sac": "#2ca02c"}
"""Of the methods."""
LABELS = {"cma": "CMA-ES", "ppo": "PPO", "sac": "SAC"}
"""Of the methods whose name in pictures is another."""
TOLERANCE = 1e-3
"""Of the gripper for PPO and SAC, relative to the edges; the searches have 1e-5, for their gradients. It takes half of
the time, and the load of four random episodes ends within 0.2 mm, or, where it rolls on the floor, elsewhere."""
SMOOTHED = 20
"""Episodes over which a curve is averaged."""


Signals = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Signals of an interval, from those of the last one, zero at first, and from an action; each (worlds, channels)."""
Search = Callable[[int, int], list[float]]
"""Losses of the episodes [m] of a search, from a seed and the number of episodes."""


class Task(NamedTuple):
    """A task of the paper.

    Attributes:
        sim: The simulation, with a world for each episode at once.
        observers: What the policy sees, beside the time.
        centre: Function from a state to the point that has to arrive [m], shape (worlds, 3).
        way: From the start of this point to its target [m], shape (3,).
        steps: Control intervals of an episode.
        near: Distance below which the point has arrived [m].
        signals: How signals follow from actions; None if they are the actions.
        searches: The searches by gradient and by CMA-ES, by method.
        searched: The largest number of episodes of the search by gradient.
    """

    sim: wb.Simulation
    observers: tuple[Any, ...]
    centre: Callable[[Any], torch.Tensor]
    way: tuple[float, float, float]
    steps: int
    near: float
    signals: Signals | None
    searches: dict[str, Search]
    searched: int


class Following(VecEnvWrapper):
    """Worlds whose signals follow from actions and from the signals before (`Task.signals`)."""

    def __init__(self, env: Any, signals: Signals):
        super().__init__(env)
        self._signals = signals

    def reset(self) -> np.ndarray:
        """Begin new episodes, with signals at zero."""
        self._last = np.zeros((self.num_envs, *self.action_space.shape), np.float32)
        return self.venv.reset()

    def step_async(self, actions: np.ndarray) -> None:
        """Pass on the signals."""
        self._last = self._signals(self._last, actions)
        self.venv.step_async(self._last)

    def step_wait(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, Any]]]:
        """One control interval; signals of an episode that begins are at zero."""
        seen, reward, over, infos = self.venv.step_wait()
        self._last[over] = 0.0
        return seen, reward, over, infos


def flown(last: np.ndarray, action: np.ndarray) -> np.ndarray:
    """Signals of the gripper: activations, and positions of the drone as sums of its velocities.

    Velocities are as in `softbody_gripper.Grip.controls`. Actions from -1 to 1 are activations from 0 to 1, as cells
    that are emptied by nine tenths have more than one shape (`PneumaticCell`). Positions stay within the reach of the
    servos, and not below the start, where the floor would crush the arms.
    """
    arms, way = softbody_gripper.ARMS, softbody_gripper.FASTEST * softbody_gripper.STEP / REACH
    moved = (last[:, arms:] + way * action[:, arms:]).clip((-1.0, -1.0, 0.0), 1.0)
    return np.concatenate([0.5 + 0.5 * action[:, :arms], moved], axis=1, dtype=np.float32)


def lagged(last: np.ndarray, action: np.ndarray) -> np.ndarray:
    """Signals of muscles that average actions over the past, with weights that decay exponentially.

    The gradient's muscles average over past and future (`softbody_strokes.averaged`), for as long in standard
    deviation.
    """
    return action + (last - action) * np.float32(np.exp(-softbody_octopus.STEP / softbody_octopus.LAG))


def gripped(method: str, seed: int, episodes: int) -> list[float]:
    """Losses of a search of the gripper's script."""
    grip = softbody_gripper.Grip.of()
    grip.start(seed)
    softbody_gripper.METHODS[method](grip, seed, episodes)
    return grip.losses


def swum(make: Callable[[], Stroke], method: str, seed: int, episodes: int) -> list[float]:
    """Losses of a search of a swimmer's script."""
    stroke = make()
    stroke.start(seed)
    STROKES[method](stroke, seed, episodes)
    return stroke.losses[:episodes]


def searches(search: Callable[[str, int, int], list[float]], gradient: str) -> dict[str, Search]:
    """The two searches of a script that names its search by gradient `gradient`."""
    names = {"gradient": gradient, "cma": "CMA-ES"}
    return {method: functools.partial(search, name) for method, name in names.items()}


def gripper() -> Task:
    """The ball rises by 0.3 m."""
    sim = softbody_gripper.simulation(tolerance=TOLERANCE, worlds=WORLDS)
    seen = wb.observers.Joints(), wb.observers.Clusters(4), wb.observers.Centroid("load")
    return Task(
        sim, seen, lambda state: sim.center_of_mass(state, "load"),
        softbody_gripper.TARGET, softbody_gripper.STEPS, softbody_gripper.NEAR, flown,
        searches(gripped, "gradient"), sized(10, 1),
    )  # fmt: skip


def octopus() -> Task:
    """The octopus swims up and aside, 0.98 m."""
    sim, way = softbody_octopus.simulation(worlds=WORLDS), softbody_octopus.WAY
    seen, near = (wb.observers.Clusters(9),), NEAR * float(np.linalg.norm(way))
    own = searches(functools.partial(swum, softbody_octopus.make_stroke), "Adam")
    return Task(sim, seen, sim.center_of_mass, way, softbody_octopus.STEPS, near, lagged, own, 50)


def fish() -> Task:
    """The fish swims 15 cm ahead."""
    sim = softbody_fish.simulation(worlds=WORLDS)
    seen = wb.observers.Joints(), wb.observers.Clusters(5)
    near = NEAR * softbody_fish.WAY[0]
    own = searches(functools.partial(swum, functools.partial(softbody_fish.stroke_of, "stroke")), "Adam")
    return Task(sim, seen, sim.center_of_mass, softbody_fish.WAY, softbody_fish.STEPS, near, None, own, 50)


TASKS = {"gripper": gripper, "octopus": octopus, "fish": fish}


def environment(task: Task) -> Any:
    """The worlds of a task as an environment of Stable-Baselines3."""
    start = task.centre(task.sim.state())
    target, whole = start + torch.tensor(task.way).to(start), float(np.linalg.norm(task.way))
    duration = task.steps * task.sim.dt

    def away(state: Any) -> torch.Tensor:
        return (task.centre(state) - target).norm(dim=1)

    episode = wb.envs.Episode(
        task.observers,
        lambda moved: 100.0 / whole * (away(moved.before) - away(moved.after)),
        task.steps,
        terminated=lambda moved: moved.age > duration - 0.5 * task.sim.dt,  # only the end counts, and time is seen
        clock=2.0 * duration,
    )
    env: Any = wb.envs.StableBaselinesEnv(wb.envs.SimulationVectorEnv(task.sim, episode, numpy=True))
    return Following(env, task.signals) if task.signals else env


class Losses(BaseCallback):
    """Loss of every episode [m], and how many worlds were lost in a step that failed; `note` gets both."""

    def __init__(self, way: float, episodes: int, note: Callable[[list[float], int], None]):
        super().__init__()
        self.way, self.episodes, self.found, self.lost, self._note = way, episodes, [], 0, note

    def _on_step(self) -> bool:
        ended = [info for info in self.locals["infos"] if "episode" in info]
        self.found += [self.way * (1.0 - info["episode"]["r"] / 100.0) for info in ended]
        self.lost += sum(info["lost"] for info in ended)
        if ended:
            last = np.array(self.found[-len(ended) :])
            print(f"    {len(self.found)}: {1e3 * last.mean():.1f}, best {1e3 * min(self.found):.1f} mm", flush=True)
            self._note(self.found, self.lost)
        return len(self.found) < self.episodes


def rounds(method: str, steps: int) -> dict[str, int]:
    """Settings: an algorithm learns after each episode, and its noise stays one function of the state within it."""
    return {"n_steps": steps} if method == "ppo" else {"train_freq": steps, "gradient_steps": WORLDS * steps}


def learn(
    task: Task, method: str, seed: int, episodes: int, note: Callable[[list[float], int], None]
) -> tuple[list[float], int, float]:
    """Learn a policy.

    Returns:
        Losses of all episodes [m], the number of lost worlds, and the loss of the policy without randomness [m].
    """
    own = tomllib.loads(SETTINGS.read_text())[method]
    own["options"] |= OWN | rounds(method, task.steps)
    way = float(np.linalg.norm(task.way))
    model, losses = learner(method, own, environment(task), seed), Losses(way, episodes, note)
    model.learn(2 * episodes * task.steps, callback=losses)
    env = model.get_vec_normalize_env()
    env.training, seen, over = False, env.reset(), np.zeros(WORLDS, bool)
    while not over[0]:
        seen, _, over, infos = env.step(model.predict(seen, deterministic=True)[0])
    return losses.found, losses.lost, way * (1.0 - infos[0]["episode"]["r"] / 100.0)


def run(task: Task, method: str, seed: int, episodes: int, store: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Run a method, and return its result; `store` gets what there is of it after each round of episodes."""
    begun = time.process_time()

    def result(curve: list[float], lost: int, final: float | None = None) -> dict[str, Any]:
        arrived = np.flatnonzero(np.array(curve) < task.near)
        return {
            "method": method, "seed": seed, "curve": [round(loss, 6) for loss in curve], "near": task.near,
            "arrived": int(arrived[0]) + 1 if len(arrived) else None, "lost": lost,
            "final": final, "seconds": round(time.process_time() - begun),
        }  # fmt: skip

    if method in task.searches:
        most = task.searched if method == "gradient" else episodes
        return result(task.searches[method](seed, min(episodes, most)), 0)
    return result(*learn(task, method, seed, episodes, lambda curve, lost: store(result(curve, lost))))


def report(name: str, run: dict[str, Any]) -> None:
    """Print the result of a run."""
    curve = 1e3 * np.array(run["curve"])
    final = "-" if run["final"] is None else f"{1e3 * run['final']:.1f} mm"
    print(
        f"{name}, {run['method']}, seed {run['seed']}: mean of the first ten {curve[:10].mean():.0f} mm, of the last "
        f"ten {curve[-10:].mean():.0f} mm, best {curve.min():.1f} mm of {len(curve)} episodes, arrived in "
        f"{run['arrived'] or '-'}; without randomness {final}; {run['lost']} lost, {run['seconds']} s",
        flush=True,
    )


def draw(found: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Draw a panel for each task: losses of all episodes, their mean over `SMOOTHED` episodes, and the threshold."""
    from matplotlib.figure import Figure

    names = [name for name in TASKS if name in found]
    figure = Figure(figsize=(3.4 * len(names), 3.2), dpi=120, layout="constrained")
    longest = max(len(run["curve"]) for runs in found.values() for run in runs)
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        for run in found[name]:
            color, curve = COLORS[run["method"]], 1e3 * np.array(run["curve"])
            episode, label = np.arange(1, len(curve) + 1), LABELS.get(run["method"], run["method"])
            if run["method"] == "gradient":
                axes.plot(episode, curve, color=color, lw=1.2, marker="o", ms=2.5, label=label)
                continue
            long = len(curve) >= SMOOTHED
            axes.plot(
                episode, curve, ".", color=color, ms=2.5, alpha=0.4 if long else 1.0, label=None if long else label
            )
            if long:
                mean = np.convolve(curve, np.full(SMOOTHED, 1.0 / SMOOTHED), "valid")
                axes.plot(episode[SMOOTHED - 1 :], mean, color=color, lw=1.6, label=f"{label}, mean of {SMOOTHED}")
        near = 1e3 * found[name][0]["near"]
        axes.axhline(near, color="0.4", lw=0.8, ls="--", label=f"arrived: {near:.3g} mm")
        lowest = min(near, *(1e3 * min(run["curve"]) for run in found[name]))
        axes.set(xscale="log", yscale="log", xlabel="episode", title=name, xlim=(0.8, 1.3 * longest))
        axes.set_ylim(bottom=0.02 * lowest)  # room for the legend
        axes.legend(frameon=False, fontsize=7, loc="lower left")
    figure.axes[0].set_ylabel("distance from the target [mm]")
    figure.savefig(path)


def main() -> None:
    """Run the named tasks, or all, and draw what is stored."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*", help=f"{', '.join(TASKS)}; all without a name")
    parser.add_argument("--methods", nargs="*", default=list(COLORS), help=", ".join(COLORS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--episodes", type=int, default=sized(500, 2), help="of all but the gradient (%(default)s)")
    parser.add_argument("--json", type=Path, default=HERE / "softbody_learning.json", help="results; others are kept")
    parser.add_argument("--draw", action="store_true", help="draw stored results only")
    options = parser.parse_args()
    torch.set_num_threads(1)  # operations are small here: a second thread costs more than it saves
    found: dict[str, list[dict[str, Any]]] = json.loads(options.json.read_text()) if options.json.exists() else {}

    def store(name: str, run: dict[str, Any]) -> None:
        own = run["method"], run["seed"]
        others = [other for other in found.get(name, []) if (other["method"], other["seed"]) != own]
        found[name] = [*others, run]
        options.json.write_text(json.dumps(found))

    for name in [] if options.draw else options.tasks or TASKS:
        task, keep = TASKS[name](), functools.partial(store, name)
        for method in options.methods:
            for seed in range(options.seeds):
                keep(done := run(task, method, seed, options.episodes, keep))
                report(name, done)
    draw(found, HERE / "softbody_learning.png")


if __name__ == "__main__":
    main()
