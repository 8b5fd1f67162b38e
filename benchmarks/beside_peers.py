"""Training beside other differentiable simulators, in the same run: loss over episodes and over seconds.

    python benchmarks/beside_peers.py [walker] [robot] [hand] [--seeds 3] [--peer-python walker=PYTHON ...] [--no-peer]

`walker` is a soft walker of the material point method beside Taichi, `robot` a walker of masses and springs beside
Newton, and `hand` three fingers that push a rod beside MuJoCo MJX. Both sides have the same scene, controller, start,
optimiser (Adam) and learning rate; the peer runs in its own process (``peers/``) and answers controls with a loss and
its gradient, so that everything but the simulation is the same code. Episodes of both alternate. Seconds are processor
time of the process that simulates, all its threads together, which other programs lengthen less than the time of a
clock; they begin after a first episode, which compiles.

First the motions of both sides under the first controls are compared, and the gradients of both with their own
difference quotients. Where the peer simulates several worlds at once (MJX), episodes of 1 and 16 worlds are timed,
forward and with gradient; the time of a first episode includes compilation. Writes ``beside_NAME.png`` beside this
file.
"""

import argparse
import contextlib
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

import torch  # noqa: E402
from beside_scenes import EXPERIMENTS, Experiment  # noqa: E402
from fast import figures, sized  # noqa: E402

import warpbots as wb  # noqa: E402

OURS = "warpbots"
STEPS = (1e-2, 3e-3, 1e-3)
"""Steps of the difference quotients, relative to the largest control [1]."""


def main() -> None:
    """Run the requested experiments."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="walker, robot or hand (all)")
    parser.add_argument("--seeds", type=int, default=sized(3, 1), help="starts of each experiment (%(default)s)")
    parser.add_argument("--episodes", type=int, help="episodes of each start, instead of those of the experiment")
    parser.add_argument("--peer-python", nargs="+", default=[], metavar="NAME=PYTHON", help="interpreter with the peer")
    parser.add_argument("--no-peer", action="store_true", help="without the peers")
    options = parser.parse_args()
    pythons = dict(word.split("=", 1) for word in options.peer_python)
    for name in [*options.names, *pythons]:
        if name not in EXPERIMENTS:
            parser.error(f"there is no experiment {name!r}; choose from {', '.join(EXPERIMENTS)}")
    torch.set_num_threads(1)
    for name in options.names or EXPERIMENTS:
        experiment = EXPERIMENTS[name]()
        if options.episodes:
            experiment.episodes = options.episodes
        python = None if options.no_peer else pythons.get(name, sys.executable)
        if python and experiment.check:
            check = experiment.check()
            with beside(check, python) as sides:
                if len(sides) > 1:
                    compare_motions(f"{name} without contact", check, sides, check.controls(first(check, 0)).numpy())
                else:
                    python = None  # the message has been printed
        with beside(experiment, python) as sides:
            run(name, experiment, sides, options.seeds)


@contextlib.contextmanager
def beside(experiment: Experiment, python: str | None) -> Iterator[dict]:
    """Both sides of an experiment by name; warpbots alone if `python` is None or has no peer."""
    with tempfile.TemporaryDirectory() as folder:
        peer = Peer.start(experiment, folder, python) if python else None
        try:
            yield {OURS: Here(experiment)} | ({peer.name: peer} if peer else {})
        finally:
            if peer:
                peer.close()


class Here:
    """Episodes of warpbots."""

    def __init__(self, experiment: Experiment):
        self.experiment = experiment

    @functools.lru_cache(1)  # noqa: B019
    def worlds(self, number: int) -> wb.Simulation:
        """The simulation with several worlds, on one thread."""
        sim = self.experiment.sim
        return wb.Simulation(
            sim.scene, sim.solver, sim.dt, sim.substeps, worlds=number, threads=1, checkpoints=sim.checkpoints
        )

    def episode(self, controls: np.ndarray, path: bool = False, gradient: bool = True) -> dict:
        """Loss, its gradient with respect to the controls, processor time [s], and, with `path`, what is observed.

        Controls have the shape (intervals, channels), or (worlds, intervals, channels).
        """
        experiment = self.experiment
        sim = experiment.sim if controls.ndim == 2 else self.worlds(len(controls))
        begun = time.process_time()
        u = torch.tensor(controls, dtype=sim.state().fields()[0].dtype, requires_grad=gradient)
        loss = experiment.loss(sim.rollout(u, experiment.intervals))
        answer = {"loss": loss.item()}
        if gradient:
            loss.backward()
            answer["gradient"] = u.grad.numpy().astype(float)
        answer["seconds"] = time.process_time() - begun
        if path:
            with torch.no_grad():
                watched = sim.rollout(u, experiment.intervals, observe=experiment.observe)
            answer["path"] = watched.observation[0].numpy()
        return answer


class Peer:
    """Episodes of a peer, in a process of its own.

    Attributes:
        name: Name and version of the peer.
        process: Its process.
    """

    def __init__(self, name: str, process: subprocess.Popen):
        self.name, self.process = name, process

    @classmethod
    def start(cls, experiment: Experiment, folder: str, python: str) -> "Peer | None":
        """Start the peer; None, with a message on standard error, if it is not installed."""
        path = Path(folder) / "scene.npz"
        np.savez(path, **experiment.arrays)
        words = [python, str(HERE / "peers" / experiment.script), json.dumps(experiment.options | {"scene": str(path)})]
        log = Path(folder) / "log.txt"
        with log.open("w") as errors:
            process = subprocess.Popen(
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
            )  # fmt: skip
        line = process.stdout.readline()
        if not line:
            process.communicate()
            last = (log.read_text().strip().splitlines() or [f"exit status {process.returncode}"])[-1]
            if "No module named" not in last:
                raise RuntimeError(f"{experiment.script} failed: {last}")
            print(
                f"no peer: {experiment.script}: {last}; `{experiment.install}` into an environment of its own, and "
                "pass its interpreter with --peer-python",
                file=sys.stderr,
            )
            return None
        return cls(json.loads(line)["peer"], process)

    def episode(self, controls: np.ndarray, path: bool = False, gradient: bool = True) -> dict:
        """As in `Here`."""
        request = {"controls": controls.tolist(), "path": path, "gradient": gradient}
        print(json.dumps(request), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended in an episode with exit status {self.process.wait()}")
        answer = json.loads(line)
        return answer | {key: np.array(answer[key]) for key in ("gradient", "path") if key in answer}

    def close(self) -> None:
        """End the process."""
        self.process.communicate()


class Learner:
    """Adam on the unknowns of an experiment, with the gradients of one side.

    Attributes:
        losses: Loss of every episode.
        seconds: Processor time of every episode [s].
        lost: Episode whose gradient was not finite, after which nothing is learnt; None if there was none.
    """

    def __init__(self, experiment: Experiment, side: Here | Peer, seed: int):
        self.experiment, self.side = experiment, side
        self.unknowns = first(experiment, seed).requires_grad_()
        self.method = torch.optim.Adam([self.unknowns], lr=experiment.rate)
        self.losses, self.seconds, self.lost = [], [], None

    def step(self) -> None:
        """Run one episode and follow its gradient."""
        if self.lost is not None:
            return
        controls = self.experiment.controls(self.unknowns)
        answer = self.side.episode(controls.detach().numpy())
        self.losses.append(answer["loss"])
        self.seconds.append(answer["seconds"])
        if not np.isfinite(answer["gradient"]).all():
            self.lost = len(self.losses)
            return
        self.method.zero_grad()
        controls.backward(torch.tensor(answer["gradient"], dtype=controls.dtype))
        self.method.step()


def first(experiment: Experiment, seed: int) -> torch.Tensor:
    """Unknowns at the start."""
    normal = np.random.default_rng(seed).normal(size=experiment.shape)
    return torch.tensor(experiment.centre + experiment.spread * normal)


def run(name: str, experiment: Experiment, sides: dict[str, Here | Peer], seeds: int) -> None:
    """Compare motions and gradients, learn from all seeds, print tables and draw."""
    controls = experiment.controls(first(experiment, 0)).numpy()
    for worlds in experiment.worlds:
        time_worlds(name, experiment, sides, worlds)
    if not experiment.worlds:
        for title, side in sides.items():
            print(f"{name}, {title}: first episode {side.episode(controls)['seconds']:.1f} s", flush=True)
    if len(sides) > 1:
        compare_motions(name, experiment, sides, controls)
    for title, side in sides.items():
        print(f"{name}, {title}: {gradient_error(side, controls)}", flush=True)
    learners = {title: [] for title in sides}
    for seed in range(seeds):
        pair = {title: Learner(experiment, side, seed) for title, side in sides.items()}
        for episode in range(experiment.episodes):
            for title in sorted(pair, reverse=bool(episode % 2)):
                pair[title].step()
        for title, learner in pair.items():
            learners[title].append(learner)
            factor, measure = experiment.measure
            lost = f", gradient not finite in episode {learner.lost}" if learner.lost else ""
            print(
                f"{name}, seed {seed}, {title}: {measure} {factor * learner.losses[0]:.3g} to "
                f"{factor * min(learner.losses):.4g}, {np.median(learner.seconds):.3f} s an episode{lost}",
                flush=True,
            )
    table(name, experiment, learners)
    draw(name, experiment, learners)


def compare_motions(name: str, experiment: Experiment, sides: dict[str, Here | Peer], controls: np.ndarray) -> None:
    """Print how far the motions of both sides are apart under the same controls.

    Raises:
        RuntimeError: They are farther apart than the experiment accepts, so that they simulate different things.
    """
    factor, unit = experiment.units
    paths = [factor * side.episode(controls, path=True)["path"] for side in sides.values()]
    away = np.abs((paths[0] - paths[0][0]) - (paths[1] - paths[1][0])).max(axis=1)
    moved = np.abs(paths[0] - paths[0][0]).max(axis=1)
    n, most = experiment.agree
    dt = experiment.sim.dt
    print(
        f"{name}: motions differ by {away[:n].max():.2g} {unit} in the first {n * dt:g} s, in which they move by "
        f"{moved[:n].max():.3g} {unit}; by {away.max():.2g} of {moved.max():.3g} {unit} in {len(away) * dt:g} s",
        flush=True,
    )
    if away[:n].max() > most:
        raise RuntimeError(f"{name}: motions differ by {away[:n].max():.3g} {unit}, more than {most:g}")


def gradient_error(side: Here | Peer, controls: np.ndarray) -> str:
    """Deviation of the derivative along the gradient from central differences of several steps, as a sentence."""
    gradient = side.episode(controls)["gradient"]
    size = np.linalg.norm(gradient)
    if not np.isfinite(size) or size == 0.0:
        return f"the gradient has the norm {size:g}"
    direction = gradient / np.abs(gradient).max()
    derivative, found = float((gradient * direction).sum()), []
    for h in STEPS:
        up, down = (side.episode(controls + sign * h * direction)["loss"] for sign in (1.0, -1.0))
        found.append((up - down) / (2.0 * h) / derivative - 1.0)
    listed = ", ".join(f"{100 * e:+.2g} % ({h:g})" for e, h in zip(found, STEPS, strict=True))
    return f"central differences along the gradient deviate from it by {listed}, with the step in brackets"


def time_worlds(name: str, experiment: Experiment, sides: dict[str, Here | Peer], worlds: int) -> None:
    """Print the processor time of episodes of several worlds: of the first one, and the least. Both sides alternate."""
    each = np.stack([experiment.controls(first(experiment, seed)).numpy() for seed in range(worlds)])
    controls = each if worlds > 1 else each[0]
    for gradient in (False, True):
        rounds = [
            [side.episode(controls, gradient=gradient)["seconds"] for side in sides.values()]
            for _ in range(sized(6, 2))
        ]
        for title, (compiled, *later) in zip(sides, zip(*rounds, strict=True), strict=True):
            print(
                f"{name}, {title}, {worlds} worlds, {'with gradient' if gradient else 'forward'}: first episode "
                f"{compiled:.3g} s, later {1e3 * min(later):.3g} ms, "
                f"{1e6 * min(later) / (worlds * experiment.steps):.3g} us a step and world",
                flush=True,
            )


def table(name: str, experiment: Experiment, learners: dict[str, list[Learner]]) -> None:
    """Print a row for each side: what is reached after all episodes, and in the seconds of the faster side."""
    factor, measure = experiment.measure
    budget = min(sum(learner.seconds) for each in learners.values() for learner in each)
    print(
        f"\n| {name} | {measure} at the start | best of {experiment.episodes} episodes | within {budget:.3g} s | "
        "episode [s] |\n|" + "---|" * 5
    )
    for title, each in learners.items():
        start, best, within = [], [], []
        for learner in each:
            losses = factor * np.array(learner.losses)
            better = np.maximum.accumulate(losses) if factor < 0 else np.minimum.accumulate(losses)
            n = max(1, np.searchsorted(np.cumsum(learner.seconds), budget * (1.0 + 1e-9), side="right"))
            start.append(losses[0]), best.append(better[-1]), within.append(better[n - 1])
        times = np.concatenate([learner.seconds for learner in each])
        cells = ["; ".join(f"{v:.3g}" for v in column) for column in (start, best, within)]
        print(f"| {title} | {' | '.join(cells)} | {np.median(times):.3f} |", flush=True)


def draw(name: str, experiment: Experiment, learners: dict[str, list[Learner]]) -> None:
    """Curves over episodes and over seconds, a line for each start."""
    from matplotlib.figure import Figure

    factor, measure = experiment.measure
    figure = Figure(figsize=(9.0, 3.4), dpi=110, layout="constrained")
    over_episodes, over_seconds = figure.subplots(1, 2, sharey=True)
    for (title, each), colour, style in zip(learners.items(), ("tab:blue", "tab:orange"), ("-", "--"), strict=False):
        for seed, learner in enumerate(each):
            values = factor * np.array(learner.losses)
            line = {"color": colour, "linestyle": style, "label": title if seed == 0 else None, "alpha": 0.85}
            over_episodes.plot(np.arange(1, len(values) + 1), values, **line)
            over_seconds.plot(np.cumsum(learner.seconds), values, **line)
    over_episodes.set(xlabel="episodes", ylabel=measure, yscale="linear" if factor < 0 else "log")
    over_seconds.set(xlabel="seconds of processor time", xscale="log")
    over_episodes.legend(frameon=False)
    figure.savefig(figures(__file__) / f"beside_{name}.png")


if __name__ == "__main__":
    main()
