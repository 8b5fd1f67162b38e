"""Soft multi-body paper, table 1: memory of a simulation with its gradient, over the number of steps.

    python benchmarks/papers/softbody_memory.py

A bridge held at both ends sags under its weight, and the gradient is with respect to Young's modulus, as in the
experiment of the table; 12,288 tetrahedra, single precision. Each figure is from a separate process: its growth over a
rollout and its backward pass, after a rollout of one step. Linux only. Stored data:

    tape       every state, by `wp.Tape` around the steps of the solver
    every(1)   every state, by torch, and steps are recomputed, as in the paper
    sqrt()     some states and some recorded steps, the default
    all()      every step as a recorded graph, so that nothing is recomputed
"""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))
sys.path.insert(0, str(HERE.parent))

from fast import sized  # noqa: E402

STEP = 1e-2
STEPS = sized((10, 20, 100, 200), (10,))
PRINTED = {10: (0.9, 0.1), 20: (1.4, 0.1), 100: (6.9, 0.1), 200: (15.7, 0.1)}
"""Gigabytes in the paper, with a tape through everything and with its checkpoints."""


def resident(what: str) -> float:
    """Value of the line `what` of /proc/self/status [MB]."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(what)).split()[1]) / 1e3


def measure(schedule: str, steps: int) -> dict:
    """Growth of this process, and the size of one state [MB]."""
    import torch
    import warp as wp

    import warpbots as wb
    from warpbots.numerics import real
    from warpbots.scene import Box, Constraint, HalfSpace, Material, Scene, SoftBody

    wp.config.log_level = wp.LOG_WARNING
    torch.set_num_threads(1)
    ends = {"left": HalfSpace((1e-6, 0, 0), (1, 0, 0)), "right": HalfSpace((0.319999, 0, 0), (-1, 0, 0))}
    bridge = SoftBody(
        "bridge", Box((0, 0, 0), (0.32, 0.08, 0.08)), Material(1e5, 0.3, 1000.0, "corotated"), regions=ends
    )
    scene = Scene((bridge,), constraints=tuple(Constraint(name, name=name) for name in ends))
    solver = wb.ProjectiveDynamics(sized(0.01, 0.04), collisions=False)
    schedules = {"all": wb.Checkpoints.all(), "every": wb.Checkpoints.every(1)}
    sim = wb.Simulation(scene, solver, STEP, checkpoints=schedules.get(schedule, wb.Checkpoints.sqrt()))
    control = wp.zeros((1, 0), dtype=real)

    def by_torch(count: int) -> None:
        modulus = sim.parameter("youngs_modulus").requires_grad_()
        sim.rollout(None, count, youngs_modulus=modulus).final.position[..., 2].mean().backward()

    def by_tape(count: int) -> None:
        states = [solver.state(sim.model, requires_grad=True) for _ in range(count + 1)]
        with wp.Tape() as tape:
            for before, after in zip(states[:-1], states[1:], strict=True):
                solver.step(sim.model, before, control, after, STEP)
        states[-1].position.grad.fill_(1.0)
        tape.backward()

    run = by_tape if schedule == "tape" else by_torch
    run(1)  # compiles and factors
    run(1)
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak to what is held now
    before = resident("VmHWM")
    run(steps)
    state = sim.state()
    return {"grown": resident("VmHWM") - before, "state": (state.position.nbytes + state.velocity.nbytes) / 1e6}


def main() -> None:
    """Print the table."""
    if len(sys.argv) > 1:
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]))))
        return
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    columns = ("tape", "every", "sqrt", "all")
    print(f"{'':5} {'paper [GB]':^18} | {'ours [MB]':^40} | states alone")
    print(f"steps     tape     kept | {'tape':>10} {'every(1)':>9} {'sqrt()':>9} {'all()':>9} | [MB]")
    for steps in STEPS:
        rows = []
        for schedule in columns:
            words = [sys.executable, __file__, schedule, str(steps)]
            out = subprocess.run(words, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
            rows.append(json.loads(out.strip().splitlines()[-1]))
        tape, kept = PRINTED[steps]
        grown = " ".join(f"{row['grown']:9.1f}" for row in rows)
        print(f"{steps:5} {tape:8} {kept:8} |  {grown} | {steps * rows[0]['state']:.1f}", flush=True)


if __name__ == "__main__":
    main()
