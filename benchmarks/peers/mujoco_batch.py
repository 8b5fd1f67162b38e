"""The chains and hands of the benchmarks in MuJoCo, many worlds at once (Apache-2.0, ``pip install mujoco``).

    python mujoco_batch.py '{"hand": false, "links": 8, "worlds": 64, "dt": 1e-3, "steps": 20, "repeats": 9,
        "threads": 2}'

`mujoco.rollout` divides the worlds among its threads; the time of a step is the least of all repeats. Chains are those
of ``newton_chain.py``. The hand has the sizes and joints of ``scenes.hand``; MuJoCo has one to four contact points for
each pair of shapes instead of a cloud of points on each body, and contacts of its own softness. There is no gradient.
Prints one line of JSON.
"""

import json
import math
import sys
import time

import numpy as np

EDGE, RADIUS = 0.04, 0.01  # links of fingers [m]


def chain(links: int) -> str:
    """Bodies of the chain of capsules of 20 cm on hinges about y and z in turn."""
    start = "".join(
        f'<body pos="{0.2 if i else 0} 0 0"><joint axis="{"0 1 0" if i % 2 == 0 else "0 0 1"}" damping="0.01"/>'
        f'<geom type="capsule" fromto="0 0 0 0.2 0 0" size="0.03" contype="0" conaffinity="0"/>'
        for i in range(links)
    )
    return start + "</body>" * links


def hand() -> str:
    """A floor, three fingers of four links, and a ball, a box and a drum below them."""
    solids = 'type="sphere" size="0.03"', 'type="box" size="0.03 0.03 0.03"', 'type="cylinder" size="0.03 0.03"'
    text = '<geom type="plane" size="1 1 1" contype="0" conaffinity="2" friction="0.8"/>'
    for f, solid in enumerate(solids):
        x, y, top = 0.08 * math.cos(2 * math.pi * f / 3), 0.08 * math.sin(2 * math.pi * f / 3), 0.0093 - RADIUS
        text += (
            f'<body pos="{x} {y} 0.0299"><freejoint/><geom {solid} contype="2" conaffinity="1" friction="0.8"/></body>'
        )
        for i in range(4):
            place = f"0 0 {-EDGE}" if i else f"{x} {y} 0.22"
            x0, tip = 0.002 * (i % 2), top + 2 * RADIUS - EDGE
            text += (
                f'<body pos="{place}"><joint axis="0 1 0" damping="1e-3"/><geom type="capsule" contype="1" '
                f'conaffinity="0" friction="0.8" size="{RADIUS}" fromto="{x0} 0 {top} {x0} 0 {tip}"/>'
            )
        text += "</body>" * 4
    return text


def main(options: dict) -> dict:
    """Run one measurement, and return the report, ready for JSON."""
    import mujoco
    import mujoco.rollout

    bodies = hand() if options["hand"] else chain(options["links"])
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><option timestep="{options["dt"]}"/><worldbody>{bodies}</worldbody></mujoco>'
    )
    threads, data = options["threads"], mujoco.MjData(model)
    chunk = max(1, options["worlds"] // (4 * threads))
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS
    start = np.zeros(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, start, kind)
    starts = np.tile(start, (options["worlds"], 1))
    times = []
    with mujoco.rollout.Rollout(nthread=threads) as pool:
        each = [mujoco.MjData(model) for _ in range(threads)]
        for _ in range(1 + options["repeats"]):
            begun = time.perf_counter()
            pool.rollout(model, each, starts, nstep=options["steps"], chunk_size=chunk)
            times.append((time.perf_counter() - begun) / options["steps"])
    return {
        "peer": f"mujoco {mujoco.__version__}",
        "items": model.nbody - 1,
        "forward_s_per_step": min(times[1:]),
        "gradient_s_per_step": None,
    }


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
