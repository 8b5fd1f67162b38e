"""A ball floats as deep as Archimedes says, and a boat is trimmed by gradient.

    python benchmarks/tasks/float.py [--play] [--usd FILE] [--film FILE]

A ball falls into a tank and comes to rest. Its draught follows from the cap that it immerses, and its derivative by the
mass of the ball from the area of its waterline; both are printed for several densities and grids. Then a boat carries
cargo that lies off centre. Where must its ballast lie so that it floats level? The unknowns are two coordinates of the
joint with which the ballast is fixed to the hull, the loss is the mean square of heel and pitch while the boat
settles. The closed form is the balance of both weights. Learning is repeated for several places of the cargo; the
gradient and CMA-ES have the same number of episodes. What was found is played again, for longer, in half the step and
on a finer grid. ``--play`` shows the boat with the ballast that was found before.
"""

import math

import numpy as np
import torch
from common import learn, load, options, save, show, sized
from scipy.optimize import brentq

import warpbots as wb

Box = wb.shapes.Box
WATER, G, MODULUS, BLUE = 1000.0, 9.81, 5e4, (0.35, 0.6, 0.85)
RADIUS, DENSITIES, TANK, DEPTH = 0.05, (250.0, 500.0, 750.0), 0.2, 0.1
"""Of the ball [m], its densities [kg/m^3], width of its tank and depth of the water [m]."""
VOLUME = 4.0 / 3.0 * math.pi * RADIUS**3
HULL, POOL, LEVEL = (0.2, 0.12, 0.05), (0.28, 0.2, 0.14), 0.08
"""Length, width and height of the hull, of the pool, and depth of its water [m]."""
HULL_MASS, CARGO_MASS, BALLAST_MASS = 0.36, 0.08, 0.12
CARGO = ((0.06, 0.03), (-0.05, 0.035), (0.07, -0.015))
"""Places of the cargo, from the middle of the deck [m]."""
EPISODES = sized(6, 2)
DT = 0.01


def water(shape: wb.shapes.Shape) -> wb.SoftBody:
    """Water that does not rub, and is compressed by 1 % under 5 cm of itself."""
    return wb.SoftBody(
        "water", shape, wb.Material(MODULUS, 1 / 3, WATER, "weakly_compressible"), friction=0.0, color=BLUE
    )


def simulation(scene: wb.Scene, dx: float, finer: int = 1, worlds: int = 1) -> wb.Simulation:
    """Steps of the safe length, or `finer` times shorter ones."""
    solver = wb.Coupled(wb.MPM(dx))
    steps = wb.Simulation(scene, solver, DT, substeps=None).substeps
    return wb.Simulation(scene, solver, DT, substeps=finer * steps, worlds=worlds)


def ball_scene() -> wb.Scene:
    """A ball just above the water of a tank, on a vertical slide with a damper, which does not change its draught."""
    middle = (TANK / 2, TANK / 2, DEPTH + RADIUS + 1e-3)
    ball = wb.RigidBody("ball", wb.shapes.Sphere((0, 0, 0), RADIUS), 400.0, position=middle, friction=0.0, points=0)
    slide = wb.Joint("slide", "prismatic", None, "ball", position=middle, axis=(0, 0, 1), damping=6.0)
    box = (0.0, 0.0, 0.0), (TANK, TANK, 0.25)
    return wb.Scene([water(Box((0, 0, 0), (TANK, TANK, DEPTH))), ball], joints=[slide],
                    obstacles=wb.walls(*box, "slip"), domain=box, name="ball")  # fmt: skip


def archimedes(density: float) -> tuple[float, float, float]:
    """How deep a ball is immersed [m], the level that it raises [m], and the derivative of its height by mass [m/kg].

    The water is compressed by the mean of its pressure, rho g H / 2.
    """
    area, volume = TANK**2, density / WATER * VOLUME  # of the tank, and of the cap
    depth = brentq(lambda h: math.pi * h**2 * (RADIUS - h / 3.0) - volume, 0.0, 2.0 * RADIUS)
    level = DEPTH * (1.0 - WATER * G * DEPTH / 2.0 / MODULUS) + volume / area
    waterline = math.pi * depth * (2.0 * RADIUS - depth)
    return depth, level, (1.0 / area - 1.0 / waterline) / WATER


def print_draughts() -> None:
    """Print how deep balls are immersed, and the derivatives of their heights, beside the closed form."""
    print("| cells in the radius | " + " | ".join(f"{d:g} kg/m^3" for d in DENSITIES) + " |")
    print("|---|" + "---|" * len(DENSITIES))
    closed = [archimedes(d) for d in DENSITIES]
    print("| Archimedes | " + " | ".join(f"{1e3 * depth:.1f} mm" for depth, *_ in closed) + " |")
    scene, steps = ball_scene(), sized(100, 2)
    for cells in sized((2, 3, 4), (2,)):
        sim = simulation(scene, RADIUS / cells, worlds=len(DENSITIES))
        mass = (VOLUME * torch.tensor(DENSITIES, dtype=torch.float64)[:, None]).requires_grad_(cells == 2)
        path = sim.rollout(None, steps, observe=lambda s: s.q, mass=mass).observation[..., 0]
        height = scene.rigid[0].position[2] + path[:, -steps // 4 :].mean(dim=1)
        found = [level + RADIUS - float(z) for z, (_, level, _) in zip(height, closed, strict=True)]
        print(f"| {cells} | " + " | ".join(f"{1e3 * depth:.1f} mm" for depth in found) + " |", flush=True)
        if cells == 2:
            height.sum().backward()
            pairs = [f"{float(g):.3f} ({c:.3f})" for g, (*_, c) in zip(mass.grad[:, 0], closed, strict=True)]
            print("| dz/dm at 2 cells (closed form) [m/kg] | " + " | ".join(pairs) + " |", flush=True)


def boat_scene(cargo: tuple[float, float] = CARGO[0], ballast: tuple[float, float] = (0.0, 0.0)) -> wb.Scene:
    """A boat at the depth at which it floats level; cargo and ballast are fixed to its deck."""
    (length, width, height), (px, py, _) = HULL, POOL
    deep = (HULL_MASS + CARGO_MASS + BALLAST_MASS) / (WATER * length * width)
    x, y, z = (px - length) / 2, (py - width) / 2, LEVEL - deep
    around = [
        Box((0, 0, 0), (px, py, z)), Box((0, 0, z), (x, py, LEVEL)), Box((px - x, 0, z), (px, py, LEVEL)),
        Box((x, 0, z), (px - x, y, LEVEL)), Box((x, py - y, z), (px - x, py, LEVEL)),
    ]  # fmt: skip
    deck = np.array([px / 2, py / 2, z + height])

    def weight(name: str, mass: float, at: tuple[float, float], high: float, color: tuple) -> wb.RigidBody:
        box = Box((-0.012, -0.012, 0.0), (0.012, 0.012, high))
        place = tuple(deck + [*at, 1e-3])
        return wb.RigidBody(name, box, mass / (0.024**2 * high), position=place, friction=0.0, points=0, color=color)

    box = Box((-length / 2, -width / 2, -height), (length / 2, width / 2, 0.0))
    hull = wb.RigidBody("hull", box, HULL_MASS / math.prod(HULL), position=tuple(deck), friction=0.0, points=0,
                        color=(0.75, 0.5, 0.3))  # fmt: skip
    bodies = [hull, weight("cargo", CARGO_MASS, cargo, 0.02, (0.8, 0.25, 0.2)),
              weight("ballast", BALLAST_MASS, ballast, 0.03, (0.3, 0.32, 0.36))]  # fmt: skip
    joints = [wb.Joint("afloat", "free", None, "hull")]
    joints += [wb.Joint(f"{b.name} lashed", "fixed", "hull", b.name, position=b.position) for b in bodies[1:]]
    return wb.Scene([water(wb.shapes.Union(around)), *bodies], joints=joints,
                    obstacles=wb.walls((0, 0, 0), POOL, "slip"), domain=((0, 0, 0), POOL), name="boat")  # fmt: skip


def tilt(sim: wb.Simulation, ballast: torch.Tensor, seconds: float) -> torch.Tensor:
    """Mean square of heel and pitch over the second half of a motion [degree^2].

    Args:
        sim: The boat, whose ballast is in the middle of its deck.
        ballast: Place of the ballast, from the middle of the deck [m], shape (2,).
        seconds: Duration [s].
    """
    place, steps = sim.parameter("joint_position"), max(2, round(seconds / DT))
    shift = torch.nn.functional.pad(ballast, (0, 1)).to(place)
    rail = sim.model.robot.body("ballast")
    moved = torch.cat([place[:, :rail], (place[:, rail] + shift)[:, None], place[:, rail + 1 :]], dim=1)
    turn = sim.rollout(None, steps, observe=lambda s: s.q[:, 3:5], joint_position=moved).observation
    return (2.0 * turn[0, steps // 2 :] * 180.0 / math.pi).square().sum(dim=1).mean()


def learn_trim() -> dict[str, np.ndarray]:
    """Trim the boat for each place of the cargo by each method, and print what was found."""
    print("\n| cargo [mm] | method | episodes | ballast [mm] | closed form [mm] | tilt [degree] |")
    print("|---|---|---|---|---|---|")
    found, limits, dx = [], np.array([0.085, 0.045]), sized(0.02, 0.04)
    for k, cargo in enumerate(CARGO[: sized(3, 1)]):
        sim = simulation(boat_scene(cargo), dx)
        exact = -np.array(cargo) * CARGO_MASS / BALLAST_MASS
        methods = {"gradient": wb.methods.SciPy("L-BFGS-B"), "CMA-ES": wb.methods.CMA(0.7, seed=k)}
        with torch.no_grad():
            rows = [("ballast in the middle", 1, np.zeros(2), float(tilt(sim, torch.zeros(2), 0.3)))]
        for name, method in methods.items():
            own = learn(lambda b, sim=sim: tilt(sim, b, 0.3), (0.0, 0.0), (-limits, limits), 0.03, method, EPISODES)
            rows.append((name, own.episodes, own.values, own.loss))
            found += [own.values] if name == "gradient" else []
        for name, episodes, values, loss in rows:
            b, e = (" ".join(f"{1e3 * v:.1f}" for v in pair) for pair in (values, exact))
            place = " ".join(f"{1e3 * v:g}" for v in cargo)
            print(f"| {place} | {name} | {episodes} | {b} | {e} | {math.sqrt(loss):.3f} |", flush=True)
    return {"cargo": np.array(CARGO[: len(found)]), "ballast": np.array(found)}


def print_replays(found: dict[str, np.ndarray]) -> None:
    """Print the tilt with and without the ballast that was found, for longer, in shorter steps, and on a finer grid."""
    print("\n| played for 1 s | tilt, ballast in the middle [degree] | ballast as found | kept |\n|---|---|---|---|")
    scene, ballast, seconds = boat_scene(tuple(found["cargo"][0])), torch.tensor(found["ballast"][0]), sized(1.0, 0.02)
    cases = {"as learnt": (0.02, 1), "half the step": (0.02, 2), "dx 13.3 mm": (0.04 / 3, 1)}
    for name, (dx, finer) in list(cases.items())[: sized(3, 1)]:
        sim = simulation(scene, sized(dx, 0.04), finer)
        with torch.no_grad():
            before, after = (math.sqrt(tilt(sim, b, seconds)) for b in (torch.zeros(2), ballast))
        print(f"| {name} | {before:.2f} | {after:.3f} | {100.0 * (1.0 - after / before):.1f} % |", flush=True)


def main() -> None:
    """Run the command line."""
    asked = options(__doc__).parse_args()
    if asked.play:
        found = load(__file__)
    else:
        print_draughts()
        found = learn_trim()
        save(__file__, **found)
        print_replays(found)
    if asked.usd or asked.film:
        cargo, places = tuple(found["cargo"][0]), (tuple(found["ballast"][0]), (0.0, 0.0))
        boats = [simulation(boat_scene(cargo, place), sized(0.02, 0.04)) for place in places]
        trimmed, heeled = (boat.rollout(None, sized(100, 2)) for boat in boats)
        show(asked, trimmed, heeled, trimmed)


if __name__ == "__main__":
    main()
