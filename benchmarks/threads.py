"""Times of one and two threads of a CPU, in warpbots and in its peers, in the same run.

    python benchmarks/threads.py [--only NAME ...] [--threads N] [--repeats R] [--peer-python PYTHON] [--no-peer]

Every scene runs in a separate process: rollouts of two control intervals that keep all states, forward and with
gradient, by one thread and by N threads in turn. A time is the least of R rollouts, divided by the solver steps, for
all worlds; a gain is the time of one thread over the time of N threads. Afterwards the peer runs the same scene with
one and with N threads: Taichi for MPM, with the worlds side by side in one grid, and MuJoCo for rigid bodies, without
gradient. Newton, the peer of springs, uses one thread of a CPU. Programs that run beside this one reduce the gains,
since a thread that waits for a core makes the others wait.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

from fast import sized  # noqa: E402

INTERVALS = 2
"""Control intervals of a rollout."""

SCENES = {
    "mpm-2d-5k": 8,
    "mass-spring-10k": 8,
    "projective-3k": 8,
    "articulated-chain": 64,
    "articulated-hand": 64,
    "mpm-3d-100k": 1,
    "mpm-3d-quadruped": 1,
    "mass-spring-1m": 1,
}
"""Number of worlds of each scene of ``scenes.py``."""

HEADS = (
    "scene", "worlds", "forward [ms]", "with gradient [ms]", "gain forward", "gain with gradient",
    "peer", "forward [ms]", "with gradient [ms]", "gain forward", "gain with gradient",
)  # fmt: skip


def main() -> None:
    """Measure the requested scenes and print a row for each."""
    options = _parser().parse_args()
    if options.child:
        print(json.dumps(measure(options.child, options)))
        return
    print("| " + " | ".join(HEADS) + " |\n|" + "---|" * len(HEADS), flush=True)
    for name in options.only or SCENES:
        words = [sys.executable, __file__, "--child", name, "--repeats", str(options.repeats)]
        words += ["--threads", str(options.threads), "--peer-python", options.peer_python]
        words += ["--no-peer"] * options.no_peer
        out = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
        print(_line(json.loads(out.strip().splitlines()[-1])), flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=SCENES, help="names of scenes")
    parser.add_argument("--threads", type=int, default=2, help="threads to compare with one (%(default)s)")
    parser.add_argument("--repeats", type=int, default=25, help="timed rollouts of each kind (%(default)s)")
    parser.add_argument("--peer-python", default=sys.executable, help="interpreter that has taichi")
    parser.add_argument("--no-peer", action="store_true", help="without the peers")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    return parser


def measure(name: str, options: argparse.Namespace) -> dict:
    """Times of a step of one scene by one thread and by several, and the times of its peer [s]."""
    import torch
    import warp as wp
    from scenes import BENCHMARKS, DT, make, method

    import warpbots as wb

    wp.config.log_level = wp.LOG_WARNING
    torch.set_num_threads(1)
    benchmark = next(b for b in BENCHMARKS if b["name"] == name)
    worlds, steps, dt = sized(SCENES[name], min(SCENES[name], 2)), benchmark["steps"], benchmark.get("dt", DT)

    def simulation(threads: int) -> wb.Simulation:
        return wb.Simulation(
            make(benchmark),
            method(benchmark),
            steps * dt,
            steps,
            worlds=worlds,
            threads=threads,
            device="cpu",
            checkpoints=wb.Checkpoints.all(),
        )

    threads = min(options.threads, worlds) if worlds > 1 else options.threads
    sims = simulation(1), simulation(threads)

    def forward(sim: wb.Simulation) -> None:
        with torch.no_grad():
            sim.rollout(None, INTERVALS)

    def gradient(sim: wb.Simulation) -> None:
        field = "qd" if sim.model.matter is None else "velocity"
        state = sim.state()
        start = getattr(state, field).requires_grad_()
        end = sim.rollout(None, INTERVALS, sim.state(**{field: start})).final
        (end.q if sim.model.matter is None else end.position)[..., 0].mean().backward()

    def timed(work, sim: wb.Simulation) -> float:
        begun = time.perf_counter()
        work(sim)
        return (time.perf_counter() - begun) / (steps * INTERVALS)

    works = [(work, sim) for sim in sims for work in (forward, gradient)]
    for _ in range(2):  # kernels are compiled, then launches recorded
        for work, sim in works:
            work(sim)
    times = [[timed(work, sim) for work, sim in works] for _ in range(options.repeats)]
    row = {"name": name, "worlds": worlds, "threads": threads}
    row["ours"] = [min(column) for column in zip(*times, strict=True)]
    if not options.no_peer:
        with tempfile.TemporaryDirectory() as folder:
            script, request = _peer(benchmark, sims[0].model, worlds, folder)
            if script:
                request |= {"dt": dt, "steps": steps, "repeats": options.repeats, "least": True}
                row |= _peer_times(script, request, threads, options.peer_python)
    return row


def _peer(benchmark: dict, model, worlds: int, folder: str) -> tuple[str | None, dict]:
    """Script of the peer for a scene, None without any, and its arguments."""
    if "links" in benchmark or "hand" in benchmark:
        return "mujoco_batch.py", {"hand": "hand" in benchmark, "links": benchmark.get("links"), "worlds": worlds}
    if "cubes" in benchmark:
        made, n = model.lattice, len(model.lattice.position)
        ends = np.concatenate([made.ends + w * n for w in range(worlds)])
        fields = {k: np.concatenate([getattr(made, k)] * worlds) for k in ("position", "mass", "stiffness")}
        np.savez(f"{folder}/x.npz", ends=ends, **fields)
        return "newton_springs.py", {"lattice": f"{folder}/x.npz"}
    if "layers" in benchmark:
        return None, {}
    grid, position = model.grid, model.matter.position - model.grid.lower
    width = grid.resolution[0]
    shifts = [np.eye(model.dim)[0] * width * grid.dx * w for w in range(worlds)]
    np.save(f"{folder}/x.npy", np.concatenate([position + shift for shift in shifts]))
    return "taichi_mpm.py", {
        "dim": model.dim, "positions": f"{folder}/x.npy", "dx": grid.dx,
        "resolution": [int(width * worlds), *map(int, grid.resolution[1:])],
        "youngs_modulus": 1e5, "poissons_ratio": 0.3, "density": 1000.0, "gradient": True, "precision": "float32",
    }  # fmt: skip


def _peer_times(script: str, request: dict, threads: int, python: str) -> dict:
    """Name and times of the peer, by one thread and by several [s], or nothing if it cannot run."""
    found = []
    for count in (1,) if script == "newton_springs.py" else (1, threads):
        program = python if script == "taichi_mpm.py" else sys.executable
        words = [program, str(HERE / "peers" / script), json.dumps(request | {"threads": count})]
        result = subprocess.run(words, capture_output=True, text=True, check=False)
        if result.returncode:
            print(f"no peer: {result.stderr.strip().splitlines()[-1]}", file=sys.stderr)
            return {}
        peer = json.loads(result.stdout.strip().splitlines()[-1])
        found += [peer["forward_s_per_step"], peer["gradient_s_per_step"]]
    return {"peer": peer["peer"], "theirs": found}


def _line(row: dict) -> str:
    """A row of the table."""
    cells = [row["name"], str(row["worlds"]), *_times(row["ours"])]
    cells += [row.get("peer", "-"), *_times(row.get("theirs", []))]
    return "| " + " | ".join(cells) + " |"


def _times(seconds: list[float | None]) -> list[str]:
    """Cells for the times of one thread, and the gains of several."""
    one, several = ([*seconds, None, None, None, None][i : i + 2] for i in (0, 2))
    times = ["-" if t is None else f"{1e3 * t:.3g}" for t in one]
    gains = ["-" if t is None or s is None else f"{t / s:.2f}" for t, s in zip(one, several, strict=True)]
    return times + gains


if __name__ == "__main__":
    main()
