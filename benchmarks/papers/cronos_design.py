"""Beyond Cronos: a stiffness field that makes a beam bend itself into a given curve, by gradient.

    python benchmarks/papers/cronos_design.py [--iterations N]

The middle layer of a clamped 2D beam expands along its length by a uniform strain. With uniform stiffness the beam only
becomes longer; the direction in which it bends depends on which of its outer layers is softer. The design variables are
the stiffness of every cell, within bounds and at constant mass, such that the centre line follows a curve that bends
up, down and up again. The gradient is propagated back through the motion until the beam is at rest; gradient and design
are checked against the static problem, which is independent of the motion. Writes ``cronos_design.png`` beside this
file.
"""

import argparse
import dataclasses
import math
import sys
from pathlib import Path

import numpy as np
import torch
from scipy.spatial import cKDTree

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fast import figures, sized

import warpbots as wb
from warpbots.solvers.mass_spring import MassSpringModel, equilibrium, forces

HERE = figures(__file__)
"""Where the figure goes."""
LENGTH, HEIGHT, SPACING = 0.24, 0.03, 0.005
STRAIN = 0.25
"""By which the middle layer grows at u = 1 [1]."""
RISE = 0.02
"""Of the middle of the target curve [m]."""
LOWER, UPPER = 0.2, 5.0
"""Bounds of a cell's stiffness [nominal]."""
SMOOTH = 1e-9
"""Weight of the mean squared step of log stiffness between neighbours [m^2]."""
GROWTH_PARTS = 5
"""In how many parts the layer grows in the static problem."""
INTERVAL, STEPS = 0.02, sized(90, 4)
DRAG = 10.0
"""About twice the first natural angular frequency [1/s]: critical."""


def scene() -> wb.Scene:
    """The beam along x, clamped at x = 0, without gravity; its middle third is the expanding layer."""
    far = 2.0 * LENGTH
    regions = {
        "root": wb.shapes.Box((-1e-6, -far), (1e-6, far)),
        "core": wb.shapes.Box((0.0, -HEIGHT / 6.0), (LENGTH, HEIGHT / 6.0)),
    }
    shape = wb.shapes.Box((0.0, -HEIGHT / 2.0), (LENGTH, HEIGHT / 2.0))
    body = wb.SoftBody("beam", shape, wb.Material(1e5, 0.25, 1000.0), regions=regions)
    grow = wb.actuators.Expansion("grow", "core", STRAIN, direction=(1.0, 0.0))
    return wb.Scene([body], [grow], constraints=[wb.Constraint("root")], gravity=(0.0, 0.0))


def simulation() -> wb.Simulation:
    """A simulation with steps that are stable at the largest stiffness."""
    solver = wb.MassSpring(SPACING, drag=DRAG)
    soft = wb.Simulation(scene(), solver, INTERVAL, substeps=None)
    return wb.Simulation(scene(), solver, INTERVAL, math.ceil(0.6 * math.sqrt(UPPER) * soft.substeps))


def cells_of_springs(model: MassSpringModel) -> torch.Tensor:
    """Matrix that maps factors of cells to factors of springs, shape (n_springs, n_cells).

    The factor of a spring is the mean factor of the cells that contain the spring. In a lattice of squares each of
    these cells contributes the same stiffness to the spring, so the factor is exact.
    """
    lattice = model.lattice
    middle = lattice.position[lattice.ends].mean(axis=1)
    near = cKDTree(lattice.cells.position).query_ball_point(middle, 0.51 * SPACING)
    share = np.zeros((len(middle), len(lattice.cells)))
    for spring, cells in enumerate(near):
        share[spring, cells] = 1.0 / len(cells)
    return torch.as_tensor(share, dtype=torch.float32)


def target(x: torch.Tensor) -> torch.Tensor:
    """Height of the target curve [m] at x [m]: level at both ends, `RISE` in the middle."""
    return 0.5 * RISE * (1.0 - torch.cos(2.0 * math.pi * x / LENGTH))


class Beam:
    """The beam, its design variables and its target.

    Attributes:
        sim: The simulation.
        log: Logarithm of the ratio of stiffness and nominal stiffness of each cell, shape (n_cells,).
    """

    def __init__(self):
        self.sim = simulation()
        lattice = self.sim.model.lattice
        self.log = wb.Bounded(torch.zeros(len(lattice.cells)), math.log(LOWER), math.log(UPPER))
        self._nominal = self.sim.parameter("stiffness")
        self._share = cells_of_springs(self.sim.model)
        self.line = torch.as_tensor(np.abs(lattice.position[:, 1]) < 1e-6)
        self._control = (INTERVAL * torch.arange(1, STEPS + 1)[:, None] / 0.4).clamp(max=1.0)
        pairs = cKDTree(lattice.cells.position).query_pairs(1.01 * SPACING, output_type="ndarray")
        self._neighbours = torch.as_tensor(pairs)

    def stiffness(self, log: torch.Tensor) -> torch.Tensor:
        """Spring constants [N/m] for a field of the cells, shape (1, n_springs)."""
        return self._nominal * (self._share @ log.exp())

    def at_rest(self, log: torch.Tensor) -> torch.Tensor:
        """Positions of the expanded beam at rest [m], shape (n, 2); differentiable."""
        return self.sim.rollout(self._control, STEPS, stiffness=self.stiffness(log)).final.position[0]

    def miss(self, position: torch.Tensor) -> torch.Tensor:
        """Mean squared vertical distance of the centre line from the target curve [m^2]."""
        x, y = position[self.line].double().T
        return (y - target(x)).square().mean()

    def loss(self) -> torch.Tensor:
        """The loss [mm^2]."""
        log = self.log()
        i, j = self._neighbours.T
        return 1e6 * (self.miss(self.at_rest(log)) + SMOOTH * (log[i] - log[j]).square().mean())

    def static(self, log: torch.Tensor) -> np.ndarray:
        """Positions at rest by Newton's method [m], shape (n, 2), independent of the motion.

        The layer expands in increments: from the straight beam at full expansion Newton's method may not converge.
        """
        model = wb.Simulation(scene(), self.sim.solver, INTERVAL, self.sim.substeps).model
        lattice = model.lattice
        model.stiffness.assign(self.stiffness(log).detach().numpy())
        for share in np.arange(1, GROWTH_PARTS + 1) / GROWTH_PARTS:
            grown = lattice.rest_length.copy()
            grown[lattice.drive[:, 0].astype(int)] *= 1.0 + share * lattice.drive[:, 2]
            model.rest_length.assign(grown[None].astype(np.float32))  # signals are unknown to `equilibrium`
            x = equilibrium(model, parts=1)
            model = dataclasses.replace(model, lattice=dataclasses.replace(lattice, position=x))  # where it starts next
        left = np.abs(forces(model, x)[~lattice.regions["root"]]).max()
        if left > 1e-6 * model.stiffness.numpy().max() * STRAIN * SPACING:
            raise RuntimeError(f"the static solution is none: {left:.3g} N are left")
        return x


def check(beam: Beam) -> None:
    """Print the derivative of the loss along its gradient, by the rollout's gradient and by static differences."""
    log = (0.5 * torch.randn(len(beam.log()), generator=torch.Generator().manual_seed(0))).requires_grad_()
    (gradient,) = torch.autograd.grad(beam.miss(beam.at_rest(log)), log)
    direction, size = gradient / gradient.norm(), 1e-2
    with torch.no_grad():
        up, down = (beam.miss(torch.as_tensor(beam.static(log + s * size * direction))) for s in (1.0, -1.0))
    print(
        f"slope at a random design [mm^2]: {1e6 * float(gradient.norm()):.5f}, by differences of the static problem "
        f"{1e6 * float(up - down) / (2.0 * size):.5f}",
        flush=True,
    )


def main() -> None:
    """Check, design, verify, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, default=sized(12, 1), help="of four steps of L-BFGS each")
    options = parser.parse_args()
    beam = Beam()
    lattice = beam.sim.model.lattice
    print(
        f"{len(lattice)} masses, {len(lattice.ends)} springs, {len(lattice.cells)} design variables, "
        f"{beam.sim.substeps} steps in {INTERVAL} s"
    )
    check(beam)
    with torch.no_grad():
        before = beam.at_rest(beam.log())
    history = wb.fit(
        beam.log.parameters(), beam.loss, torch.optim.LBFGS, iterations=options.iterations, max_iter=4,
        line_search_fn="strong_wolfe",
    )  # fmt: skip
    with torch.no_grad():
        log = beam.log()
        after, static = beam.at_rest(log), beam.static(log)
    print("loss [mm^2]:", " ".join(f"{v:.4f}" for v in history.loss))
    for name, x in (("nominal", before), ("designed", after), ("designed, static", torch.as_tensor(static))):
        away = (x[beam.line, 1].double() - target(x[beam.line, 0].double())).abs()
        rms, most = 1e3 * float(away.square().mean()) ** 0.5, 1e3 * float(away.max())
        print(f"{name}: {rms:.3f} mm (rms) from the curve, {most:.3f} at most")
    print(f"rollout against static: {1e3 * np.abs(after.numpy() - static).max():.4f} mm at most")
    factor = log.exp()
    print(f"stiffness of the cells {float(factor.min()):.2f} to {float(factor.max()):.2f} of the nominal one")
    draw(beam, history, before, static, log)


def draw(beam: Beam, history: wb.optimize.History, before: torch.Tensor, static: np.ndarray, log: torch.Tensor) -> None:
    """Draw the nominal and the designed beam with the target, the field of stiffness by colour, and the loss."""
    from matplotlib.figure import Figure

    lattice = beam.sim.model.lattice
    figure = Figure(figsize=(9.0, 7.0), dpi=110, layout="constrained")
    first, second, third = figure.subplots(3, 1, height_ratios=[1.0, 1.0, 0.8])
    camera = wb.view.Camera.around(beam.sim.scene, np.concatenate([before.numpy(), static]))
    stiffness = np.log10(np.exp(log.numpy()))
    x = torch.linspace(0.0, 1.08 * LENGTH, 200)
    for ax, position, colors, title in (
        (first, before.numpy(), {"control": np.ones(1)}, "one stiffness; the layer that grows is tinted"),
        (second, static, {"value": stiffness, "label": "log10 of stiffness per nominal"}, "designed"),
    ):
        wb.view.draw(beam.sim.scene, lattice.cells, lattice.carry @ position, ax, camera=camera, **colors)
        ax.plot(x, target(x), "k--", lw=1.2, zorder=9, label="target of the centre line")
        ax.plot(*position[beam.line.numpy()].T, "tab:orange", lw=1.8, zorder=8, label="centre line")
        ax.set_title(title)
    first.legend(frameon=False, loc="upper left")
    third.semilogy(history.loss)
    third.set(xlabel="iteration of four steps of L-BFGS", ylabel="loss [mm^2]")
    figure.savefig(HERE / "cronos_design.png")


if __name__ == "__main__":
    main()
