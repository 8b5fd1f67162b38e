"""The same lattice under Newton's semi-implicit solver (Apache-2.0, ``pip install newton``), for comparison.

    python newton_springs.py '{"lattice": "lattice.npz", "dt": 1e-4, "steps": 20, "repeats": 9}'

The file holds `position`, `mass`, `ends` and `stiffness`. Both directions are captured and replayed, as warpbots' are;
nothing else of Newton is switched on. Prints one line of JSON.
"""

import json
import statistics
import sys
import time

import newton
import numpy as np
import warp as wp


def main(options: dict) -> dict:
    """Run one measurement, and return the report, ready for JSON."""
    wp.config.log_level = wp.LOG_WARNING
    data = np.load(options["lattice"])
    builder = newton.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    position, springs = data["position"].tolist(), data["ends"].tolist()
    builder.add_particles(position, [(0.0, 0.0, 0.0)] * len(position), data["mass"].tolist())
    for (i, j), k in zip(springs, data["stiffness"].tolist(), strict=True):
        builder.add_spring(i, j, k, 0.0, 0.0)
    model = builder.finalize(device="cpu", requires_grad=True)
    model.particle_grid = None  # no contact between particles
    solver = newton.solvers.SolverSemiImplicit(model)
    steps, dt = options["steps"], options["dt"]
    two = [model.state(requires_grad=False) for _ in range(2)]
    all_states = [model.state() for _ in range(steps + 1)]
    tape, weight = wp.Tape(), wp.ones(len(position), dtype=wp.vec3)

    def run(states: list) -> None:
        for k in range(steps):
            before, after = states[k % len(states)], states[(k + 1) % len(states)]
            before.clear_forces()
            solver.step(before, after, None, None, dt)

    def captured(work) -> wp.Graph:
        work()
        with wp.ScopedCapture(device="cpu") as capture:
            work()
        return capture.graph

    def adjoint() -> None:
        tape.zero()
        tape.backward(grads={all_states[-1].particle_q: weight})

    start = time.perf_counter()
    forward = captured(lambda: run(two))
    forward_compile_s = time.perf_counter() - start
    kept = captured(lambda: run(all_states))
    with tape:
        run(all_states)
    start = time.perf_counter()
    backward = captured(adjoint)
    backward_compile_s = time.perf_counter() - start

    def timed(*graphs: wp.Graph) -> float:
        start = time.perf_counter()
        for graph in graphs:
            wp.capture_launch(graph)
        return (time.perf_counter() - start) / steps

    times = [(timed(forward), timed(kept, backward)) for _ in range(options["repeats"])]
    typical = min if options.get("least") else statistics.median
    forward_s, gradient_s = (typical(column) for column in zip(*times, strict=True))
    gradient = all_states[0].particle_qd.grad.numpy().sum(axis=0)
    return {
        "peer": f"newton {newton.__version__}",
        "items": len(springs),
        "forward_s_per_step": forward_s,
        "gradient_s_per_step": gradient_s,
        "compile_s": {"forward": forward_compile_s, "backward": backward_compile_s},
        "grad_sum": gradient.tolist(),
    }


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
