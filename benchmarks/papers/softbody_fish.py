"""Soft multi-body paper, figure 4c: a fish with six bones learns to swim 15 cm ahead in 100 steps.

    python benchmarks/papers/softbody_fish.py [PART ...] [--size full] [--seeds N] [--episodes N] [--json FILE]
        [--out FOLDER]

``stroke`` finds 500 torques, five joints in 100 steps, by Adam and by CMA-ES with as many episodes, from noise, and
``lagging`` the same for motors that average their signals over 60 ms. ``resolved`` optimises the stored stroke of
``lagging`` further, in shorter steps and on a finer mesh as well, and tries it in discretisations that it has not seen.
``tail`` looks for the stroke that swims farthest, alone and together with length, height and stiffness of the caudal
fin. ``current`` compares a table of torques with a table that feedback from sensors corrects, in changing currents.
``--size full`` is for ``lagging``, whose mesh then has 5,280 tetrahedra; the paper's has 3,268. ``--refine`` plays all
stored strokes again, finer. Prints tables and writes ``softbody_fish.png``, the loss over
episodes, and film strips beside this file; motions as USD to ``--out``.
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
import softbody_currents
import softbody_tail
from fast import figures, sized
from softbody_fish_scene import fish
from softbody_strokes import LAG, Stroke, adam, compare, discretised, film, refine, show

import warpbots as wb

HERE = figures(__file__)
"""Where figures go."""
STEP, STEPS = 0.02, sized(100, 4)
WAY = (0.15, 0.0, 0.0)
"""From the start to the target [m]."""


FINENESS, CELLS = {"small": 1, "full": sized(2, 1)}, {"small": sized(0.5, 1.0), "full": sized(2 / 3, 1.0)}
"""Fineness of the mesh in a size, and the factor of its cells with which its strokes are played finer."""
NAMES = {"stroke": "softbody_fish", "lagging": "softbody_fish_lagging", "resolved": "softbody_fish_grids"}
"""Names under which the strokes of these parts are stored."""
FINER = sized(0.5, 1.0)
"""Factor of the size of cells on the second mesh that ``resolved`` sees."""
LEARNT = refined.Refinement(), refined.Refinement(steps=2), refined.Refinement(cells=FINER)
"""The discretisations that ``resolved`` sees."""
JUDGED = refined.Refinement(steps=4), refined.Refinement(steps=2, cells=FINER)
"""The discretisations in which the stroke is tried afterwards; the search sees none of them."""
ITERATIONS, RATE = sized(24, 1), 0.05
"""Of ``resolved``: iterations of Adam, and its learning rate in the first of them."""


def simulation(fineness: int = 1, tolerance: float = 1e-4, worlds: int = 1, substeps: int = 1) -> wb.Simulation:
    """Simulation of the fish; all states are kept for the gradient, which halves the time of the gradient."""
    solver = wb.ProjectiveDynamics(0.02, tolerance, collisions=False)
    return wb.Simulation(fish(fineness), solver, STEP, substeps, worlds=worlds, checkpoints=wb.Checkpoints.all())


def check(stroke: Stroke) -> None:
    """Print sizes, the CPU time of an episode, and the slope of the loss by its gradient and by differences."""
    mesh, ms = stroke.sim.model.matter, []
    for _ in range(sized(3, 1)):
        stroke.start(0)
        begun = time.process_time()
        loss = stroke.distance()
        between = time.process_time()
        (gradient,) = torch.autograd.grad(loss, stroke.raw)
        ms.append((between - begun, time.process_time() - between))
    start = stroke.raw.detach().double().numpy().ravel()
    along = gradient.double().numpy().ravel() / float(gradient.norm())
    size = 0.1
    ends = [stroke.value(start + sign * size * along) for sign in (1.0, -1.0)]
    forward, backward = ms[-1]
    print(
        f"{stroke.sim.scene.name}: {len(mesh)} nodes, {len(mesh.tets)} tetrahedra, {stroke.raw.numel()} unknowns; an "
        f"episode takes {forward:.2f} s, its gradient {backward:.2f} s; slope {float(gradient.norm()):.6f}, by "
        f"differences {(ends[0] - ends[1]) / (2.0 * size):.6f}",
        flush=True,
    )


def stroke_of(part: str, size: str = "small") -> Stroke:
    """The stroke of a part, one of `NAMES`, in a size."""
    search = {"stroke": {}, "lagging": {"lag": LAG}, "resolved": {"lag": LAG, "rate": RATE}}[part]
    mesh = FINENESS[size]
    return Stroke(simulation(mesh), simulation(mesh, substeps=4), WAY, STEPS, **search)


def learn(options: argparse.Namespace) -> list[dict]:
    """Find the stroke by all methods."""
    stroke = stroke_of("stroke")
    check(stroke)
    runs = compare(NAMES["stroke"], stroke, options.seeds, options.episodes)
    show(NAMES["stroke"], stroke, runs, HERE, options.out)
    return runs


def lagging(options: argparse.Namespace) -> list[dict]:
    """Find the stroke of motors that average their signals, by Adam, and draw the stroke of the first seed."""
    stroke = stroke_of("lagging", options.size)
    check(stroke)
    name = refined.stored_as(NAMES["lagging"], options.size)
    runs = compare(name, stroke, options.seeds, options.episodes, ["Adam"])
    stroke.raw = torch.tensor(runs[0]["raw"]).to(stroke.target)
    with torch.no_grad():
        film(HERE / f"{name}.png", stroke.motion(), options.out, stroke.target.numpy())
    return runs


def resolved(options: argparse.Namespace) -> list[dict]:
    """Optimise the stored stroke of ``lagging`` in several discretisations at once, and try it in others.

    The loss is the root mean square of the distances from the target.
    """
    stroke = stroke_of("resolved")
    stroke.raw = refined.kept(NAMES["lagging"])["raw"][:STEPS].clone().requires_grad_()
    sims = {how: discretised(simulation, how) for how in LEARNT}
    history, seconds = refined.resolve(
        stroke.away, sims, stroke.raw, adam(stroke), ITERATIONS, lambda away: f"{1e3 * away:.1f} mm",
        mean=lambda away: away.square().mean().sqrt(),
    )  # fmt: skip
    refined.keep(NAMES["resolved"], raw=stroke.raw)
    with torch.no_grad():
        away = {str(how): float(stroke.away(discretised(simulation, how))) for how in (*LEARNT, *JUDGED)}
        for how, distance in away.items():
            print(f"{how}: {1e3 * distance:.1f} mm from the target", flush=True)
        shown = stroke.motion(discretised(simulation, JUDGED[1]))
        film(HERE / "softbody_fish_grids.png", shown, options.out, stroke.target.numpy())
    return [{"away": away, "seconds": seconds, "curve": history.loss}]


def tail(options: argparse.Namespace) -> list[dict]:
    """Find the stroke that swims farthest, with and without a design of the fin."""
    return softbody_tail.compare(
        softbody_tail.Tail(simulation(), STEPS),
        simulation(substeps=4),
        options.seeds,
        options.episodes,
        HERE,
        options.out,
    )


def current(options: argparse.Namespace) -> list[dict]:
    """Compare a table of controls and a policy with feedback from sensors, in changing currents."""
    sims = [simulation(worlds=worlds) for worlds in (1, softbody_currents.TRAINED, softbody_currents.TESTED)]
    return softbody_currents.compare(sims, WAY, STEPS, options.seeds)


PARTS = {"stroke": learn, "lagging": lagging, "resolved": resolved, "tail": tail, "current": current}


def main() -> None:
    """Run the named parts, or all parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"{', '.join(PARTS)}; all without a name")
    parser.add_argument("--seeds", type=int, default=sized(5, 1))
    parser.add_argument("--episodes", type=int, default=sized(50, 2), help="of every method (%(default)s)")
    parser.add_argument("--json", type=Path, help="where to write all results")
    parser.add_argument("--out", type=Path, help="folder for motions as USD; default: none are written")
    parser.add_argument("--size", choices=[*FINENESS], default="small", help="fineness of the mesh (%(default)s)")
    refined.option(parser)
    options = parser.parse_args()
    if options.size != "small" and (options.parts or [*PARTS]) != ["lagging"]:
        parser.error(f"--size {options.size}: only lagging has this size; name this part alone")
    if options.refine:
        if unknown := set(options.parts) - set(NAMES):
            parser.error(f"--refine: no stroke of {', '.join(unknown)} is stored; possible are {', '.join(NAMES)}")
        strokes = {
            refined.stored_as(NAMES[part], options.size): stroke_of(part, options.size)
            for part in options.parts or NAMES
        }
        refine(strokes, simulation, FINENESS[options.size], CELLS[options.size])
        return
    found = {name: PARTS[name](options) for name in options.parts or PARTS}
    if options.json:
        options.json.write_text(json.dumps(found))


if __name__ == "__main__":
    main()
