"""The same chain under Newton's Featherstone solver (Apache-2.0, ``pip install newton``), and MuJoCo's step.

    python newton_chain.py '{"links": 8, "worlds": 1, "dt": 1e-3, "steps": 50, "repeats": 9}'

Capsules of 20 cm and 1 kg/l on hinges about y and z in turn, without contact. Both directions of Newton are captured
and replayed, as warpbots' are. Prints one line of JSON; MuJoCo's step and its finite-difference derivative are of one
world, in seconds, and missing where it is not installed.
"""

import json
import math
import statistics
import sys
import time

import newton
import numpy as np
import warp as wp

EDGE, RADIUS = 0.2, 0.03


def chain(links: int, worlds: int) -> newton.Model:
    """Model with `worlds` copies of the chain."""
    one = newton.ModelBuilder()
    turn = wp.quat_from_axis_angle(wp.vec3(0.0, 1.0, 0.0), math.pi / 2)  # a capsule along x
    bodies, joints = [], []
    for i in range(links):
        body = one.add_link()
        middle = wp.transform(wp.vec3(EDGE / 2, 0.0, 0.0), turn)
        one.add_shape_capsule(body, xform=middle, radius=RADIUS, half_height=EDGE / 2)
        axis = wp.vec3(0.0, 1.0, 0.0) if i % 2 == 0 else wp.vec3(0.0, 0.0, 1.0)
        before = wp.transform(wp.vec3(EDGE if i else 0.0, 0.0, 0.0), wp.quat_identity())
        parent = bodies[-1] if i else -1
        joints.append(
            one.add_joint_revolute(
                parent, body, parent_xform=before, child_xform=wp.transform_identity(), axis=axis, damping=0.01
            )
        )
        bodies.append(body)
    one.add_articulation(joints)
    builder = newton.ModelBuilder()
    builder.replicate(one, worlds)
    return builder.finalize(device="cpu", requires_grad=True)


def mujoco_chain(links: int, dt: float) -> dict:
    """Times of MuJoCo's step and of its derivative [s]; empty if MuJoCo is not installed."""
    try:
        import mujoco
    except ImportError:
        return {}
    end = "".join("</body>" for _ in range(links))
    start = "".join(
        f'<body pos="{EDGE if i else 0} 0 0"><joint axis="{"0 1 0" if i % 2 == 0 else "0 0 1"}" damping="0.01"/>'
        f'<geom type="capsule" fromto="0 0 0 {EDGE} 0 0" size="{RADIUS}" contype="0" conaffinity="0"/>'
        for i in range(links)
    )
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{dt}"/><worldbody>{start}{end}</worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, nstep=100)
    times = []
    for _ in range(9):
        begun = time.perf_counter()
        mujoco.mj_step(model, data, nstep=2000)
        times.append((time.perf_counter() - begun) / 2000)
    A = np.zeros((2 * model.nv, 2 * model.nv))
    begun = time.perf_counter()
    for _ in range(500):
        mujoco.mjd_transitionFD(model, data, 1e-6, True, A, None, None, None)
    derivative = (time.perf_counter() - begun) / 500
    return {"mujoco_s_per_step": statistics.median(times), "mujoco_derivative_s": derivative}


def main(options: dict) -> dict:
    """Run one measurement, and return the report, ready for JSON."""
    wp.config.log_level = wp.LOG_WARNING
    model = chain(options["links"], options["worlds"])
    solver = newton.solvers.SolverFeatherstone(model)
    steps, dt = options["steps"], options["dt"]
    two = [model.state(requires_grad=False) for _ in range(2)]
    all_states = [model.state() for _ in range(steps + 1)]
    control, tape = model.control(), wp.Tape()
    weight = wp.ones(model.joint_coord_count, dtype=float)

    def run(states: list) -> None:
        for k in range(steps):
            before, after = states[k % len(states)], states[(k + 1) % len(states)]
            before.clear_forces()
            solver.step(before, after, control, None, dt)

    def captured(work) -> wp.Graph:
        work()
        with wp.ScopedCapture(device="cpu") as capture:
            work()
        return capture.graph

    def adjoint() -> None:
        tape.zero()
        tape.backward(grads={all_states[-1].joint_q: weight})

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
    forward_s, gradient_s = (statistics.median(column) for column in zip(*times, strict=True))
    return {
        "peer": f"newton {newton.__version__}",
        "items": options["links"] * options["worlds"],
        "forward_s_per_step": forward_s,
        "gradient_s_per_step": gradient_s,
        "compile_s": {"forward": forward_compile_s, "backward": backward_compile_s},
        "final": all_states[-1].joint_q.numpy()[: options["links"]].tolist(),
    } | mujoco_chain(options["links"], options["dt"])


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
