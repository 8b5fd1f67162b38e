"""Measurement of the speed and memory of the solvers.

    python benchmarks/run.py [--only NAME ...] [--device D] [--precision P] [--json] [--memory]

Every scene runs in a separate process with an empty kernel cache, followed by the same work in a peer: Taichi for MPM
and Newton for springs, if an interpreter has them (``pip install "warpbots[benchmark]"``, or ``--peer-python``). Each
uses one thread on a CPU, so that the relevant figure is the ratio. Times are medians. The rigid chains are compared
with Newton's Featherstone solver, and with MuJoCo's step, which has no gradient, if it is installed. With
``WARPBOTS_FAST=1`` scenes are tiny and the cache is kept: this only checks that everything runs.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

from fast import FAST, sized  # noqa: E402

COLUMNS = ("name", "items", "forward_items_per_s", "gradient_items_per_s", "backward_over_forward", "compile_s",
           "peak_memory_mb", "peer_forward_ratio", "peer_gradient_ratio")  # fmt: skip
BYTES = {("particle", 2): 124, ("particle", 3): 227, ("spring", 3): 25.5}
"""Least memory traffic of a forward step per item [B]: state read and written once, grid and masses in cache."""


def main() -> None:
    """Run the requested benchmarks."""
    from scenes import BENCHMARKS

    options = _parser().parse_args()
    if options.child:
        chosen = next(b for b in BENCHMARKS if b["name"] == options.child)
        print(json.dumps(memory(chosen, options) if options.memory else measure(chosen, options)))
        return
    rows = []
    for benchmark in BENCHMARKS:
        wanted = benchmark["name"] in options.only if options.only else not benchmark.get("cuda")
        if options.memory and not options.only:
            wanted = benchmark["name"] == "mpm-2d-5k"
        if not wanted:
            continue
        jobs = [[]]
        if options.memory:
            jobs = [
                ["--schedule", s, "--steps", str(n)]
                for s in ("sqrt", "every", "all")
                for n in sized((100, 400, 1600, 6400), (20,))
            ]
        for extra in jobs:
            row = _child(benchmark["name"], options, extra)
            rows.append(row)
            print(json.dumps(row) if options.json else _line(row, first=len(rows) == 1), flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="names of scenes")
    parser.add_argument("--device", default="cpu", help="Warp device (%(default)s)")
    parser.add_argument("--precision", default="float32", choices=("float32", "float64"))
    parser.add_argument("--json", action="store_true", help="one JSON object per scene on a line of its own")
    parser.add_argument("--threads", type=int, default=1, help="threads that share one body (%(default)s)")
    parser.add_argument("--memory", action="store_true", help="peak memory against steps for each checkpoint schedule")
    parser.add_argument("--repeats", type=int, default=9, help="timed runs of each kind (%(default)s)")
    parser.add_argument("--peer-python", default=sys.executable, help="interpreter that has taichi")
    parser.add_argument("--no-peer", action="store_true", help="without the peer")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--schedule", help=argparse.SUPPRESS)
    parser.add_argument("--steps", type=int, help=argparse.SUPPRESS)
    return parser


def _child(name: str, options: argparse.Namespace, extra: list[str]) -> dict:
    """Measurements of one scene, from a separate process with an empty kernel cache."""
    words = [sys.executable, __file__, "--child", name, "--device", options.device, "--repeats", str(options.repeats)]
    words += ["--threads", str(options.threads)]
    words += ["--precision", options.precision, "--peer-python", options.peer_python, *extra]
    words += ["--memory"] * options.memory + ["--no-peer"] * options.no_peer
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"WARPBOTS_PRECISION": options.precision, "OMP_NUM_THREADS": "1"}
        if not FAST:
            environment["WARP_CACHE_PATH"] = cache
        out = subprocess.run(words, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(out.strip().splitlines()[-1])


def measure(benchmark: dict, options: argparse.Namespace) -> dict:
    """Measure the speed of one scene, forward and with gradient, and the speed of the peer."""
    import torch
    import warp as wp
    from scenes import DT, make, method

    from warpbots.gradients import Share, interval

    wp.config.log_level = wp.LOG_WARNING
    torch.set_num_threads(1)
    scene, solver, steps = make(benchmark), method(benchmark), benchmark["steps"]
    dt, worlds = benchmark.get("dt", DT), benchmark.get("worlds", 1)
    model = solver.build(scene, worlds, options.device)
    item, items = _items(solver, model)
    extra = _factor(model, dt) if item == "tet" else {}
    state = solver.state(model)
    inputs = {name: wp.to_torch(array).clone() for name, array in vars(state).items() if isinstance(array, wp.array)}
    like = next(iter(inputs.values()))
    inputs["control"] = torch.zeros(worlds, model.channels, dtype=like.dtype, device=like.device)
    names = frozenset(inputs)

    def synchronize() -> None:
        if model.device.is_cuda:
            wp.synchronize_device(model.device)

    def timed(work) -> float:
        synchronize()
        start = time.perf_counter()
        work()
        synchronize()
        return time.perf_counter() - start

    share = Share(threads=options.threads)
    forward_only = interval(solver, model, dt, steps, frozenset(), frozenset(), share=share)
    with_gradient = interval(solver, model, dt, steps, frozenset(), names, share=share)
    outputs = {}

    def forward() -> None:
        forward_only.run(inputs)

    def gradient() -> None:
        outputs.update(with_gradient.run(inputs)[0])
        seeds = {name: torch.zeros_like(t) for name, t in outputs.items()}
        place = seeds["q" if model.matter is None else "position"]
        place[..., 0] = 1.0 / place[..., 0].numel()
        with_gradient.backward(seeds)

    compile_s = timed(forward) + timed(gradient)
    forward(), gradient()  # later runs are graphs
    compile_s -= timed(forward) + timed(gradient)
    times = [(timed(forward), timed(gradient)) for _ in range(options.repeats)]  # alternating, for a noisy machine
    f, g = (statistics.median(column) / steps for column in zip(*times, strict=True))
    row = {
        "name": benchmark["name"], "solver": type(solver).__name__, "device": str(model.device),
        "precision": "float64" if item == "link" else options.precision, "threads": options.threads,
        "item": item, "items": items,
        "forward_items_per_s": items / f, "gradient_items_per_s": items / g,
        "backward_over_forward": (g - f) / f, "compile_s": compile_s, "peak_memory_mb": _peak_memory(model),
        "peer": None, "peer_forward_ratio": None, "peer_gradient_ratio": None, "roofline_fraction": None,
        "warp": wp.config.version, "hardware": _hardware(model.device),
    }  # fmt: skip
    if item == "tet":
        forward()
        extra["iterations_of_last_step"] = int(solver.report(model, dt).iterations.max())
    if item == "link" or item == "tet":
        row |= {"worlds": worlds, "forward_ms_per_step": 1e3 * f, "gradient_ms_per_step": 1e3 * g, **extra}
    if model.device.is_cuda:
        if item in ("link", "tet"):
            return row
        row["roofline_fraction"] = items / f * BYTES[row["item"], scene.dim] / _bandwidth(model.device)
    elif not options.no_peer and benchmark.get("integrator", "euler") == "euler":
        request = {"dt": dt, "steps": steps, "repeats": options.repeats}
        peer = {"spring": _newton, "particle": _taichi, "link": _featherstone, "tet": None}[item]
        if peer is None or "hand" in benchmark:
            return row
        with tempfile.TemporaryDirectory() as folder:
            script, more = peer(model, folder, options)
            row |= _peer(script, request | more, items / f, items / g, options)
    return row


def _factor(model, dt: float) -> dict:
    """Time and size of the factored matrix of the global step."""
    start = time.perf_counter()
    factor = model.matrices.of(dt).factor
    return {"factor_s": time.perf_counter() - start, "factor_entries": factor.arrays.value.size}


def _items(solver, model) -> tuple[str, int]:
    """Name of the counted items, and their number in all worlds."""
    item, of_one = {
        "MPM": ("particle", lambda: len(model.matter)),
        "MassSpring": ("spring", lambda: len(model.lattice.ends)),
        "ProjectiveDynamics": ("tet", lambda: len(model.matter.tets)),
        "Articulated": ("link", lambda: len(model.robot.bodies)),
    }[type(solver).__name__]
    return item, of_one() * model.worlds


def _featherstone(model, folder: str, options: argparse.Namespace) -> tuple[str, dict]:
    """Script of the peer for rigid chains, and its arguments."""
    return "newton_chain.py", {"links": len(model.robot.bodies), "worlds": model.worlds}


def _taichi(model, folder: str, options: argparse.Namespace) -> tuple[str, dict]:
    """Script of the peer for MPM, and its arguments."""
    np.save(f"{folder}/x.npy", model.matter.position - model.grid.lower)
    return "taichi_mpm.py", {
        "dim": model.dim, "positions": f"{folder}/x.npy", "dx": model.grid.dx, "resolution": model.grid.resolution,
        "youngs_modulus": 1e5, "poissons_ratio": 0.3, "density": 1000.0, "gradient": True,
        "precision": options.precision, "threads": 1,
    }  # fmt: skip


def _newton(model, folder: str, options: argparse.Namespace) -> tuple[str, dict]:
    """Script of the peer for springs, and its arguments."""
    made = model.lattice
    np.savez(f"{folder}/x.npz", position=made.position, mass=made.mass, ends=made.ends, stiffness=made.stiffness)
    return "newton_springs.py", {"lattice": f"{folder}/x.npz"}


def _peer(script: str, request: dict, forward: float, gradient: float, options: argparse.Namespace) -> dict:
    """Measure the same step in another program, on one thread."""
    words = [options.peer_python, str(HERE / "peers" / script), json.dumps(request)]
    result = subprocess.run(words, capture_output=True, text=True, check=False)
    if result.returncode:
        print(f"no peer: {result.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return {}
    peer = json.loads(result.stdout.strip().splitlines()[-1])
    n = peer["items"]
    return {
        "peer": peer["peer"],
        "peer_forward_items_per_s": n / peer["forward_s_per_step"],
        "peer_gradient_items_per_s": n / peer["gradient_s_per_step"],
        "peer_compile_s": sum(peer["compile_s"].values()),
        "peer_forward_ratio": forward * peer["forward_s_per_step"] / n,
        "peer_gradient_ratio": gradient * peer["gradient_s_per_step"] / n,
        **{name: seconds for name, seconds in peer.items() if name.startswith("mujoco")},
    }


def memory(benchmark: dict, options: argparse.Namespace) -> dict:
    """Growth of the memory of the process over a rollout with its gradient, and the buffers of the first interval.

    The first interval runs before the peak is reset, because compilation needs more memory than the rest.
    Linux only.
    """
    import torch
    import warp as wp
    from scenes import DT, DX, make

    import warpbots as wb

    wp.config.log_level = wp.LOG_WARNING
    torch.set_num_threads(1)
    schedules = {"all": wb.Checkpoints.all(), "every": wb.Checkpoints.every(10), "sqrt": wb.Checkpoints.sqrt()}
    schedule = schedules[options.schedule]
    substeps = 10
    sim = wb.Simulation(
        make(benchmark), wb.MPM(DX), substeps * DT, substeps, device=options.device, checkpoints=schedule
    )
    velocity = sim.state().velocity.requires_grad_()

    def run(steps: int) -> None:
        sim.rollout(None, steps, sim.state(velocity=velocity)).final.position.mean().backward()

    run(1)
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak to the current memory
    before = _process_memory("VmHWM")
    run(options.steps // substeps)
    state_mb = sum(t.nbytes for t in vars(sim.state()).values() if isinstance(t, torch.Tensor)) / 1e6
    return {
        "name": benchmark["name"],
        "schedule": options.schedule,
        "steps": options.steps,
        "state_mb": state_mb,
        "peak_memory_mb": _process_memory("VmHWM") - before + (substeps + 3) * state_mb,
    }


def _process_memory(what: str) -> float:
    """Value of a line of /proc/self/status [MB]."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(what)).split()[1]) / 1e3


def _peak_memory(model) -> float:
    """Peak memory of this process, on the GPU if it runs there [MB]."""
    import warp as wp

    if model.device.is_cuda:
        return wp.get_mempool_used_mem_high(model.device) / 1e6
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def _bandwidth(device) -> float:
    """Bytes per second of a device-to-device copy, read and write."""
    import warp as wp

    a, b = (wp.zeros(1 << 28, dtype=wp.float32, device=device) for _ in range(2))
    times = []
    for _ in range(10):
        wp.synchronize_device(device)
        start = time.perf_counter()
        wp.copy(b, a)
        wp.synchronize_device(device)
        times.append(time.perf_counter() - start)
    return 2 * a.size * 4 / min(times)


def _hardware(device) -> str:
    if device.is_cuda:
        return device.name
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name")) + ", one thread"
    except (OSError, StopIteration):
        return f"{platform.processor() or platform.machine()}, one thread"


def _line(row: dict, first: bool) -> str:
    """Text of a row of the table; the text of the first row includes the header."""
    columns = list(row) if "schedule" in row else COLUMNS
    cells = [row[c] for c in columns]
    text = [
        "-" if v is None else v if isinstance(v, str) else f"{v:.3g}" if isinstance(v, float) else str(v) for v in cells
    ]
    body = "| " + " | ".join(text) + " |"
    return "| " + " | ".join(columns) + " |\n|" + "---|" * len(columns) + "\n" + body if first else body


if __name__ == "__main__":
    main()
