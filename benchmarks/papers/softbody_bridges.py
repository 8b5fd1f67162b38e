"""Soft multi-body paper, figure 3: the stiffness of every tetrahedron of two bridges, identified from their sag.

    python benchmarks/papers/softbody_bridges.py [BRIDGE ...] [--seeds N] [--evaluations N] [--quick] [--json FILE]

Unknown are Young's modulus and Poisson's ratio of every tetrahedron, in total 1,336 and 5,822 numbers. The given datum
is that the barycentre of a bridge sags by 8 cm under its weight, and the loss is the distance of the barycentre from
this position, as in the paper. A rollout consists of five steps of 0.2 s, in which implicit Euler brings a bridge to
rest. The Gauss-Newton method and Adam, with the learning rate of the published code, use gradients through the rollout.
They are compared with CMA-ES (with a diagonal covariance, as there are thousands of unknowns), BOBYQA and the
Nelder-Mead simplex, on the same unknowns from the same initial guesses. An iteration is one evaluation of the loss,
with or without its gradient. ``--evaluations`` gives these three methods more than a hundred evaluations, and omits the
first two methods. All computations are in double precision. Prints a table and writes ``softbody_bridges.png`` beside
this file; ``--quick`` takes one seed and three evaluations and draws nothing.
"""

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path

import numpy as np
import torch
from scipy.optimize import minimize

if __name__ == "__main__":
    os.environ.setdefault("WARPBOTS_PRECISION", "float64")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[0]))

from fast import figures
from softbody_shapes import arch_bridge, suspension_bridge

import warpbots as wb

HERE = figures(__file__)
"""Where the figure goes."""
SAG = 0.08
"""By which the barycentre goes down [m]."""
MODULUS, RATIO = (1e6, 1e8), (0.05, 0.45)
"""Bounds of Young's modulus [Pa] and of Poisson's ratio."""
DENSITY = 1000.0
STEP, STEPS = 0.2, 5
SPREAD, FIRST, LONGEST = 0.25, 0.5, 2.0
"""Standard deviation of the start, first step of methods without gradient and longest one of any entry, all raw."""
RATE = 0.2
"""Of Adam."""
NEAR = 1e-3
"""Loss from which on a bridge counts as identified [m]."""
SHAPES = {
    "suspension": (suspension_bridge, ((0.0, 0), (4.0, 0))),
    "arch": (arch_bridge, ((0.0, 2),)),
}
"""Shapes, and the planes in which they are held: coordinate [m] and axis."""


class Bridge:
    """A bridge and its unknowns.

    Attributes:
        name: Name of the bridge in `SHAPES`.
        sim: The simulation.
        log: Logarithm of Young's modulus of every tetrahedron [ln Pa], between bounds.
        ratio: Poisson's ratio of every tetrahedron, between bounds.
        losses: Loss of every evaluation since the last `start` [m].
    """

    def __init__(self, name: str, tolerance: float = 1e-5):
        shape, planes = SHAPES[name]
        mesh = shape()
        holds = {}
        for k, (at, axis) in enumerate(planes):
            lower, upper = np.full(3, -100.0), np.full(3, 100.0)
            lower[axis], upper[axis] = at - 1e-6, at + 1e-6
            holds[f"end {k}"] = wb.shapes.Box(lower, upper)
        body = wb.SoftBody(name, mesh, wb.Material(1e7, 0.25, DENSITY, "corotated"), holds)
        scene = wb.Scene([body], constraints=[wb.Constraint(hold, name=hold) for hold in holds])
        self.name = name
        self.sim = wb.Simulation(scene, wb.ProjectiveDynamics(1.0, tolerance, collisions=False), STEP)
        self._rest = self.sim.center_of_mass(self.sim.state())[0]
        self.start(0)

    def start(self, seed: int) -> None:
        """Set all unknowns to random numbers around the middle of their bounds."""
        shape = self.sim.parameter("youngs_modulus").shape
        noise = SPREAD * torch.as_tensor(np.random.default_rng(seed).normal(size=(2, *shape)))
        low, high = (math.log(bound) for bound in MODULUS)
        self.log = wb.Bounded(low + (high - low) * torch.sigmoid(noise[0]), low, high)
        self.ratio = wb.Bounded(RATIO[0] + (RATIO[1] - RATIO[0]) * torch.sigmoid(noise[1]), *RATIO)
        self.losses = []

    @property
    def raw(self) -> list[torch.Tensor]:
        """The unknowns without bounds, each of shape (1, n_tets)."""
        return [self.log.raw, self.ratio.raw]

    def fields(self) -> dict[str, torch.Tensor]:
        """The unknowns as parameters of the simulation."""
        return {"youngs_modulus": self.log().exp(), "poissons_ratio": self.ratio()}

    def away(self) -> torch.Tensor:
        """Position of the barycentre after a rollout relative to its target [m], shape (3,)."""
        final = self.sim.rollout(None, STEPS, **self.fields()).final
        away = self.sim.center_of_mass(final)[0] - self._rest + torch.tensor([0.0, 0.0, SAG])
        self.losses.append(float(away.detach().norm()))
        return away

    def value(self, row: np.ndarray) -> float:
        """Loss for the raw unknowns `row` [m], which is also appended to `losses`.

        If a step does not converge, the result is the loss of the undeformed bridge.
        """
        with torch.no_grad():
            torch.nn.utils.vector_to_parameters(torch.tensor(row), self.raw)
            try:
                return float(self.away().norm())
            except wb.SimulationError as fault:
                print(f"    a rollout failed: {fault}", file=sys.stderr)
                self.losses.append(SAG)
                return SAG

    def row(self) -> np.ndarray:
        """The raw unknowns in one row."""
        return torch.nn.utils.parameters_to_vector(self.raw).detach().double().numpy()

    def sags(self) -> tuple[float, float]:
        """Sag of the barycentre [m] after one rollout and after six consecutive rollouts, solved to 1e-8."""
        sim = Bridge(self.name, 1e-8).sim
        with torch.no_grad():
            z = sim.rollout(
                None, 6 * STEPS, observe=lambda state: sim.center_of_mass(state)[:, 2], **self.fields()
            ).observation
        return float(self._rest[2] - z[0, STEPS - 1]), float(self._rest[2] - z[0, -1])


def by_gauss_newton(bridge: Bridge, seed: int, evaluations: int) -> None:
    """Run the Gauss-Newton method.

    Each step is the shortest step that brings the linearised barycentre to its target; the step is reduced if an
    unknown would change too much.
    """
    for _ in range(evaluations - 1):
        away = bridge.away()
        rows = [torch.autograd.grad(a, bridge.raw, retain_graph=True) for a in away]
        J = torch.stack([torch.cat([g.flatten() for g in row]) for row in rows])
        step = -J.T @ torch.linalg.solve(J @ J.T, away.detach())
        step *= min(1.0, LONGEST / float(step.abs().max()))
        with torch.no_grad():
            torch.nn.utils.vector_to_parameters(torch.nn.utils.parameters_to_vector(bridge.raw) + step, bridge.raw)
    bridge.value(bridge.row())


def by_adam(bridge: Bridge, seed: int, evaluations: int) -> None:
    """Run Adam with the learning rate of the published code."""
    wb.fit(bridge.raw, lambda: bridge.away().norm(), iterations=evaluations - 1, lr=RATE, progress=False)


def by_evolution(bridge: Bridge, seed: int, evaluations: int) -> None:
    """Run CMA-ES with a diagonal covariance (Ros & Hansen 2008) and its default population."""
    import cma

    options = {"CMA_diagonal": True, "seed": seed + 1, "verbose": -9, "maxfevals": evaluations}
    search = cma.CMAEvolutionStrategy(bridge.row(), FIRST, options)
    while len(bridge.losses) < evaluations:
        points = search.ask()
        search.tell(points, [bridge.value(point) for point in points])


def by_models(bridge: Bridge, seed: int, evaluations: int) -> None:
    """Run BOBYQA (Powell 2009) of NLopt without bounds; its first model takes two points for each unknown."""
    import nlopt

    search = nlopt.opt(nlopt.LN_BOBYQA, len(bridge.row()))
    search.set_min_objective(lambda row, slope: bridge.value(row))
    search.set_initial_step(FIRST)
    search.set_maxeval(evaluations)
    search.optimize(bridge.row())


def by_simplex(bridge: Bridge, seed: int, evaluations: int) -> None:
    """Run Nelder and Mead's method with constants for many dimensions (Gao & Han 2012).

    The edges of the initial simplex lie along the axes.
    """
    start = bridge.row()
    edges = np.diag(FIRST * np.random.default_rng(seed + 100).choice([-1.0, 1.0], len(start)))
    simplex = np.concatenate([start[None], start + edges])
    options = {"maxfev": evaluations, "initial_simplex": simplex, "adaptive": True}
    minimize(bridge.value, start, method="Nelder-Mead", options=options)


METHODS = {
    "Gauss-Newton": (by_gauss_newton, 10),
    "Adam": (by_adam, 20),
    "CMA-ES": (by_evolution, 100),
    "BOBYQA": (by_models, 100),
    "Nelder-Mead": (by_simplex, 100),
}
"""Methods with the number of times that they evaluate the loss."""
WITHOUT_GRADIENT = ("CMA-ES", "BOBYQA", "Nelder-Mead")


def identify(bridge: Bridge, method: str, seed: int, evaluations: int) -> dict:
    """The result of a method from the initial guess of a seed."""
    bridge.start(seed)
    begun = time.perf_counter()
    METHODS[method][0](bridge, seed, evaluations)
    curve = bridge.losses[:evaluations]  # of CMA-ES whole generations
    reached = np.flatnonzero(np.array(curve) < NEAR)
    found = {
        "method": method, "seed": seed, "curve": curve, "seconds": time.perf_counter() - begun,
        "reached": int(reached[0]) if len(reached) else None,
    }  # fmt: skip
    if method == "Gauss-Newton":
        fields = {name: field.detach().flatten().numpy() for name, field in bridge.fields().items()}
        found |= {name: field.tolist() for name, field in fields.items()} | {"sags": bridge.sags()}
    best, when = min(curve), "-" if found["reached"] is None else found["reached"]
    print(
        f"{bridge.name}, {method}, seed {seed}: {1e3 * curve[0]:.2f} mm, best {1e3 * best:.4f} mm in {len(curve)} "
        f"evaluations, below {1e3 * NEAR:g} mm after {when}, {found['seconds']:.1f} s",
        flush=True,
    )
    return found


def slopes(bridge: Bridge, size: float) -> tuple[float, float]:
    """Slope of the loss along a random direction [m]: by its gradient, and by a central difference."""
    gradient = torch.cat([g.flatten() for g in torch.autograd.grad(bridge.away().norm(), bridge.raw)]).numpy()
    start, along = bridge.row(), np.random.default_rng(1).normal(size=len(gradient))
    difference = bridge.value(start + size * along) - bridge.value(start - size * along)
    return float(gradient @ along), difference / (2.0 * size)


def check(bridge: Bridge) -> None:
    """Print the slope of the loss along a random direction, solved to 1e-12, and the time of a rollout."""
    bridge.start(0)
    forward, backward = [], []
    for _ in range(7):
        begun = time.perf_counter()
        loss = bridge.away().norm()
        forward.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        torch.autograd.grad(loss, bridge.raw)
        backward.append(time.perf_counter() - begun)
    slope, difference = slopes(Bridge(bridge.name, 1e-12), 1e-3)
    mesh = bridge.sim.model.matter
    print(
        f"{bridge.name}: {len(mesh)} nodes, {int(bridge.sim.model.topology.fixed.sum())} held, {len(mesh.tets)} "
        f"tetrahedra, {2 * len(mesh.tets)} unknowns; slope {1e3 * slope:.7f} mm, by differences "
        f"{1e3 * difference:.7f}; forward {1e3 * np.median(forward):.0f} ms, backward {1e3 * np.median(backward):.0f}",
        flush=True,
    )


def main() -> None:
    """Identify the named bridges, or both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bridges", nargs="*", help="suspension, arch; both without a name")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--evaluations", type=int, help="of the methods without gradient, which run alone then")
    parser.add_argument("--quick", action="store_true", help="one seed, three evaluations, no picture")
    parser.add_argument("--json", type=Path, help="where to write all results")
    options = parser.parse_args()
    found, bridges = {}, {name: Bridge(name) for name in options.bridges or SHAPES}
    seeds = range(1 if options.quick else options.seeds)
    for name, bridge in bridges.items():
        check(bridge)
        runs = {method: 3 if options.quick else count for method, (_, count) in METHODS.items()}
        if options.evaluations:
            runs = dict.fromkeys(WITHOUT_GRADIENT, options.evaluations)
        found[name] = [identify(bridge, method, seed, count) for method, count in runs.items() for seed in seeds]
        table(found[name])
    if options.json:
        options.json.write_text(json.dumps(found))
    if not (options.quick or options.evaluations or options.bridges):
        draw(bridges, found)


def table(runs: list[dict]) -> None:
    """Print the results of the methods, mean and standard deviation over the seeds."""
    for method in dict.fromkeys(run["method"] for run in runs):
        own = [run for run in runs if run["method"] == method]
        ends = [1e3 * min(run["curve"]) for run in own]
        print(f"{method:>14}: best {np.mean(ends):8.4f} +- {np.std(ends):.4f} mm, {[run['reached'] for run in own]}")
        for run in own if method == "Gauss-Newton" else ():
            E, nu = np.array(run["youngs_modulus"]), np.array(run["poissons_ratio"])
            down, later = (1e3 * sag for sag in run["sags"])
            print(
                f"{'':>14}  seed {run['seed']}: down by {down:.3f} mm, later {later:.3f}; E {E.min():.3g} to "
                f"{E.max():.3g} Pa, median {np.median(E):.3g}; nu {nu.min():.3f} to {nu.max():.3f}"
            )


def draw(bridges: dict[str, Bridge], found: dict[str, list[dict]]) -> None:
    """Draw both bridges before and after, with Young's modulus as colour, and the losses of all methods."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.0, 9.0), dpi=110, layout="constrained")
    grid = figure.add_gridspec(3, 2, height_ratios=[1.0, 1.0, 1.1])
    for column, (name, bridge) in enumerate(bridges.items()):
        mesh = bridge.sim.model.matter
        bridge.start(0)
        run = next(r for r in found[name] if r["method"] == "Gauss-Newton" and r["seed"] == 0)
        before = bridge.fields()["youngs_modulus"].detach().flatten().numpy()
        fields = {n: torch.tensor(run[n]) for n in bridge.fields()}
        with torch.no_grad():
            sagged = bridge.sim.rollout(None, STEPS, **fields).final.position[0].numpy()
        camera = wb.view.Camera.around(bridge.sim.scene, np.stack([mesh.position, sagged]), elevation=15.0)
        share = np.bincount(mesh.tets.ravel(), minlength=len(mesh))
        for row, (E, x, title) in enumerate(
            (
                (before, mesh.position, "start, without weight"),
                (np.array(run["youngs_modulus"]), sagged, "found, under its weight"),
            )
        ):
            ax = figure.add_subplot(grid[row, column])
            at_nodes = np.bincount(mesh.tets.ravel(), np.repeat(np.log10(E), 4), len(mesh)) / share
            wb.view.draw(bridge.sim.scene, mesh, x, ax, value=at_nodes, label="log10 of E [Pa]", camera=camera)
            ax.set_title(f"{name} bridge, {len(mesh.tets)} tetrahedra: {title}")
        ax = figure.add_subplot(grid[2, column])
        for color, method in enumerate(METHODS):
            curves = 1e3 * np.array([r["curve"][: METHODS[method][1]] for r in found[name] if r["method"] == method])
            if method in WITHOUT_GRADIENT:
                curves = np.minimum.accumulate(curves, axis=1)
            at = np.arange(curves.shape[1])
            ax.semilogy(at, curves.mean(axis=0), color=f"C{color}", label=method)
            ax.fill_between(at, curves.min(axis=0), curves.max(axis=0), color=f"C{color}", alpha=0.2)
        ax.set(xlabel="evaluation of the loss", ylabel="distance of the barycentre [mm]", ylim=(1e-3, 1e2))
        ax.legend(frameon=False, fontsize=8, loc="lower right")
    figure.savefig(HERE / "softbody_bridges.png")


if __name__ == "__main__":
    main()
