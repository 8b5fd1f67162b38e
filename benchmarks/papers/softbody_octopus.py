"""Soft multi-body paper, figure 4b: an octopus with 16 muscles learns to swim to a target in 400 steps.

    python benchmarks/papers/softbody_octopus.py [PART ...] [--size full] [--seeds N] [--episodes N] [--json FILE]
        [--out FOLDER]

Each muscle has four segments, 64 signals in 400 steps, which are 25,600 unknowns. ``stroke`` finds them for fibres,
which push as well as pull: Adam and CMA-ES (with a diagonal covariance) have as many episodes from the same noise.
``pull`` finds them for muscles that only pull, by Adam from the noise of seed 0, first on the mesh of ``stroke`` and
then on a finer one, and plays them on finer meshes and in shorter steps. ``--size full`` has a mesh of 1,968
tetrahedra, where the paper has 2,160: there ``stroke`` is found by Adam alone, and ``pull`` goes on from its stored
stroke. ``--refine`` plays the stored strokes again,
finer. Prints tables, the memory of the process before and after the first and the last episode of ``stroke``, and
writes ``softbody_octopus.png`` and film strips beside this file; motions as USD to ``--out``.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[0]))

import refined
from fast import figures, sized
from softbody_octopus_scene import octopus
from softbody_strokes import METHODS, Stroke, compare, discretised, film, refine, show

import warpbots as wb

HERE = figures(__file__)
"""Where figures go."""
NAMES = {"stroke": "softbody_octopus", "pull": "softbody_octopus_pull"}
"""Names of the figures and of the stored strokes of the parts."""
MESH = {
    "stroke": {"small": 1, "full": sized(4, 1)},
    "pull": {"small": sized(2, 1), "full": sized(4, 1)},
}
"""Fineness of the mesh on which a part learns in the end, in a size."""
COARSE, FINE, RATE = sized(23, 2), sized(30, 2), {"small": 0.3, "full": 0.2}
"""Of ``pull``: episodes on the mesh of ``stroke`` and on the finer one, and the rate in the first of the latter."""
JUDGED = (
    refined.Refinement(steps=2),
    refined.Refinement(cells=sized(2 / 3, 1.0)),
    refined.Refinement(cells=sized(0.5, 1.0)),
)
"""The discretisations in which the stroke of ``pull`` is tried afterwards; the search sees none of them."""
STEP, STEPS = 0.01, sized(400, 4)
WAY = (-0.4, -0.4, 0.8)
"""From the start to the target [m]; the paper's second axis is up, our third."""
LONGEST = 1e-3
"""Norm to which gradients are clipped [m], shorter than those that were seen, so that Adam sees directions.

A gradient that is several times as long as the others would lead its mean for episodes.
"""
LAG = 0.04
"""Standard deviation of the times over which muscles average their signals [s]."""


def simulation(fineness: int = 1, tolerance: float = 1e-4, worlds: int = 1, substeps: int = 1) -> wb.Simulation:
    """Simulation of the octopus; for the gradient, a number of states near the square root of all states is kept."""
    solver = wb.ProjectiveDynamics(0.05, tolerance, collisions=False)
    return wb.Simulation(octopus(fineness), solver, STEP, substeps, worlds=worlds)


def pulling(fineness: int = 1, substeps: int = 1) -> wb.Simulation:
    """Simulation of the octopus whose muscles only pull; all states are kept for the gradient."""
    solver = wb.ProjectiveDynamics(0.05, 1e-4, collisions=False)
    return wb.Simulation(octopus(fineness, pull=True), solver, STEP, substeps, checkpoints=wb.Checkpoints.all())


def make_stroke(part: str = "stroke", fineness: int = 1, rate: float = 0.5) -> Stroke:
    """The stroke to the target of a part, one of `NAMES`, with the settings of its search.

    Args:
        part: The part.
        fineness: Fineness of the mesh.
        rate: Learning rate of Adam in the first episode.
    """
    settings = {"lag": LAG, "rate": rate, "fade": 0.97, "longest": LONGEST, "memory": 0.99, "pull": part == "pull"}
    make = SIMULATIONS[part]
    return Stroke(make(fineness), make(fineness, substeps=4), WAY, STEPS, **settings)


def stroke_of(part: str, size: str = "small") -> Stroke:
    """The stroke of a part, one of `NAMES`, in a size."""
    return make_stroke(part, MESH[part][size])


def resident() -> float:
    """Memory of this process [MB]."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) / 1e3 for line in lines if line.startswith("VmRSS"))


def check(stroke: Stroke) -> None:
    """Print sizes, the CPU time of an episode and of its gradient, and the memory after each of three episodes."""
    mesh, used = stroke.sim.model.matter, [resident()]
    for _ in range(sized(3, 2)):
        begun = time.process_time()
        loss = stroke.distance()
        between = time.process_time()
        torch.autograd.grad(loss, stroke.raw)
        ended = time.process_time()
        used.append(resident())
    print(
        f"{stroke.sim.scene.name}: {len(mesh)} nodes, {len(mesh.tets)} tetrahedra, {stroke.raw.numel()} unknowns; an "
        f"episode takes {between - begun:.2f} s, its gradient {ended - between:.2f} s; memory before and after each "
        f"episode {', '.join(f'{m:.0f}' for m in used)} MB",
        flush=True,
    )


SIMULATIONS = {"stroke": simulation, "pull": pulling}
"""Functions that make the simulations of the parts."""


def learn(options: argparse.Namespace) -> list[dict]:
    """Find the stroke for fibres by all methods; at full size by Adam alone."""
    stroke, name = stroke_of("stroke", options.size), refined.stored_as(NAMES["stroke"], options.size)
    check(stroke)
    runs = compare(name, stroke, options.seeds, options.episodes, [*METHODS] if options.size == "small" else ["Adam"])
    print(f"memory at the end {resident():.0f} MB")
    show(name, stroke, runs, HERE, options.out)
    return runs


def pull(options: argparse.Namespace) -> list[dict]:
    """Find the stroke for muscles that only pull, on a coarse mesh and then on a finer one, and try it finer.

    At full size the search begins with the stored stroke of the small size.
    """
    mesh, name, begun = MESH["pull"][options.size], refined.stored_as(NAMES["pull"], options.size), time.process_time()
    stroke, curves = make_stroke("pull", mesh, RATE[options.size]), []
    if options.size == "small":
        coarse = make_stroke("pull")
        METHODS["Adam"](coarse, 0, COARSE)
        start, curves = coarse.raw, [coarse.losses]
    else:
        start = refined.kept(NAMES["pull"])["raw"][:STEPS]
    stroke.raw = start.detach().clone().requires_grad_()
    METHODS["Adam"](stroke, 0, FINE)
    curves.append(stroke.losses)
    seconds = time.process_time() - begun
    refined.keep(name, raw=stroke.raw)
    print(f"{' and '.join(str(len(curve)) for curve in curves)} episodes, {seconds:.0f} s of CPU time", flush=True)
    with torch.no_grad():
        judged = {how: discretised(pulling, how, mesh) for how in (refined.Refinement(), *JUDGED)}
        away = {str(how): float(stroke.away(sim)) for how, sim in judged.items()}
        for how, distance in away.items():
            print(f"{how}: {1e3 * distance:.1f} mm from the target", flush=True)
        shown = stroke.motion(judged[JUDGED[-1]])
        film(HERE / f"{name}.png", shown, options.out, stroke.target.numpy())
    return [{"away": away, "seconds": seconds, "curve": curves}]


PARTS = {"stroke": learn, "pull": pull}


def main() -> None:
    """Run the named parts, or all parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"{', '.join(PARTS)}; all without a name")
    parser.add_argument("--seeds", type=int, default=sized(5, 1))
    parser.add_argument("--episodes", type=int, default=sized(50, 2), help="of every method (%(default)s)")
    parser.add_argument("--json", type=Path, help="where to write all results")
    parser.add_argument("--out", type=Path, help="folder for motions as USD; default: none are written")
    parser.add_argument("--size", choices=[*MESH["pull"]], default="small", help="fineness of the mesh (%(default)s)")
    refined.option(parser)
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(unknown)}; possible are {', '.join(PARTS)}")
    parts = options.parts or list(PARTS)
    if options.refine:
        for part in parts:
            name = refined.stored_as(NAMES[part], options.size)
            refine({name: stroke_of(part, options.size)}, SIMULATIONS[part], MESH[part][options.size])
        return
    found = {part: PARTS[part](options) for part in parts}
    if options.json:
        options.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
