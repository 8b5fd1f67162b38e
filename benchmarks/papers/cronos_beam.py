"""Cronos figure 5: the first frequency of a cantilever against its length, width and height, and why width matters.

    python benchmarks/papers/cronos_beam.py [--wide]

A beam bent by a tip load is released; its frequency follows from the zero crossings of its tip. The motion starts from
static equilibrium, while the paper lets the beam settle with drag for half a second; both methods are compared on one
beam. Theory is f = 1.8751^2 / 2 pi sqrt(E I / rho A L^4) (Euler and Bernoulli; the factor g under the root in the paper
is a slip). Writes ``cronos_beam.png`` beside this file. ``--wide`` adds the widest beams at 8 cells, which takes a
minute or two more.
"""

import argparse
import dataclasses
import os

os.environ.setdefault("WARPBOTS_PRECISION", "float64")  # at strains of 1e-5 single precision loses up to a tenth

import numpy as np
import torch
import warp as wp
from cronos_common import (
    HERE,
    POISSONS_RATIO,
    beam,
    counted_frequency,
    crossing_frequency,
    euler_bernoulli,
    sized,
    slope,
    swing,
    timoshenko,
    tip_height,
    wb,
)
from numpy.polynomial import Legendre
from scipy.linalg import eigh

from warpbots.solvers.mass_spring import MassSpringModel, equilibrium, natural_modes, spectrum

MATERIAL = wb.Material(1e9, POISSONS_RATIO, 1000.0)
LENGTH, SIDE, SPACING = 1.0, 0.1, sized(0.025, 0.05)
DEFLECTION = 3e-4
"""Of the tip [m]."""
SAMPLES = 40
"""Recorded values in a period."""
INTEGRATORS = ("euler", "verlet", "rk4")
LENGTHS, WIDTHS = sized((0.6, 0.8, 1.0, 1.2, 1.4), (0.3, 0.4)), sized((0.05, 0.1, 0.2, 0.4), (0.05, 0.1))
HEIGHTS = sized((0.05, 0.1, 0.15, 0.2), (0.1, 0.2))
EXPECTED = {"length": -2.0, "width": 0.0, "height": 1.0}
LATTICES = {
    "cells own the stiffness": {},
    "all springs as in the interior": {"stiffness": "interior"},
    "the same, masses rho a^3": {"stiffness": "interior", "mass": "interior"},
    "the same, total mass in equal parts": {"stiffness": "interior", "mass": "equal"},
    "k ~ 1 / l, total mass in equal parts": {"stiffness": "1 / l", "mass": "equal"},
}
"""Lattices whose frequency is followed over the width; arguments of `changed`."""


def simulation(size: tuple[float, float, float], integrator: str, drag: float = 0.0) -> wb.Simulation:
    """Simulation of a beam with the tip load that deflects the tip by `DEFLECTION`."""
    length, width, height = size
    load = 3.0 * MATERIAL.youngs_modulus * width * height**3 / 12.0 * DEFLECTION / length**3
    solver = wb.MassSpring(SPACING, integrator=integrator, drag=drag)
    return wb.Simulation(beam(size, MATERIAL, load), solver, 1.0 / (SAMPLES * euler_bernoulli(size, MATERIAL)), None)


def first_mode(size: tuple[float, float, float], spacing: float, **change: str) -> float:
    """Frequency of the first mode that bends along the height [Hz], by eigenvalues; narrow beams have lower modes."""
    model = changed(wb.MassSpring(spacing).build(beam(size, MATERIAL)), **change)
    frequency, shape = natural_modes(model, 3)
    upwards = shape[:, :, 2] @ model.mass.numpy()[0]
    return float(frequency[np.argmax(np.abs(upwards))])


def changed(model: MassSpringModel, stiffness: str = "", mass: str = "") -> MassSpringModel:
    """A lattice with uniform stiffness or mass in place of the sums over cells.

    Args:
        model: The original lattice.
        stiffness: With ``"interior"``, each spring has the stiffness of a spring of its kind in the interior. With
            ``"1 / l"``, stiffness is inversely proportional to length, with the same Young's modulus along the lattice
            in the interior. Otherwise the stiffness is unchanged.
        mass: With ``"interior"``, each mass equals a mass in the interior. With ``"equal"``, each mass is an equal part
            of the total mass. Otherwise the masses are unchanged.
    """
    made, a = model.lattice, model.lattice.rest_length.min()
    kind = np.rint((made.rest_length / a) ** 2).astype(int)  # 1, 2 and 3: edges, diagonals of faces and of cells
    k, m = made.stiffness, made.mass
    if stiffness == "interior":
        block = wb.SoftBody("block", wb.shapes.Box((0.0,) * 3, (2.0 * a,) * 3), MATERIAL)
        inside = wb.MassSpring(a).build(wb.Scene([block])).lattice
        kinds = np.rint((inside.rest_length / a) ** 2).astype(int)
        k = np.array([0.0] + [inside.stiffness[kinds == c].max() for c in (1, 2, 3)])[kind]
    elif stiffness:
        ratio = 1.0 / np.sqrt(np.array([np.inf, 1.0, 2.0, 3.0]))
        C11, C12 = ratio @ (0, 1, 2, 4 / 3) / a, ratio @ (0, 0, 1, 4 / 3) / a
        k = MATERIAL.youngs_modulus / (C11 - 2.0 * C12**2 / (C11 + C12)) * ratio[kind]
    if mass == "interior":
        m = np.full(len(made), MATERIAL.density * a**3)
    elif mass:
        m = np.full(len(made), made.mass.mean())

    def like(array: wp.array, values: np.ndarray) -> wp.array:
        return wp.array(values[None], dtype=array.dtype, device=model.device)

    return dataclasses.replace(model, stiffness=like(model.stiffness, k), mass=like(model.mass, m))


def plate(size: tuple[float, float, float]) -> float:
    """Ratio of the first frequencies of a thin cantilever plate and of a beam (Kirchhoff plate, by Ritz's method).

    A narrow strip curves transversely and is a beam. A very wide strip cannot curve transversely, and the ratio rises
    to 1 / sqrt(1 - nu^2). The deflection is a polynomial: along the plate in x in (0, 1), with x^2 as a factor, and
    across the plate an even polynomial in y in (-1, 1).
    """
    y, weight = np.polynomial.legendre.leggauss(80)
    x = 0.5 * (y + 1.0)
    along = [Legendre.basis(i, domain=(0.0, 1.0)) for i in range(30)]
    P = [np.array([p.deriv(n)(x) for p in along]) for n in range(3)]
    X = x**2 * P[0], 2.0 * x * P[0] + x**2 * P[1], 2.0 * P[0] + 4.0 * x * P[1] + x**2 * P[2]
    Y = [np.array([Legendre.basis(2 * j).deriv(n)(y) for j in range(6)]) for n in range(3)]

    def product(p: int, q: int, r: int, s: int) -> np.ndarray:
        """Integrals of products of two terms, for all pairs of terms.

        The first term is differentiated (p, q) times in (x, y), the second term (r, s) times.
        """
        return np.kron((X[p] * weight) @ X[r].T, (Y[q] * weight) @ Y[s].T)

    aspect, nu = (2.0 * size[0] / size[1]) ** 2, POISSONS_RATIO
    K = product(2, 0, 2, 0) + aspect**2 * product(0, 2, 0, 2)
    K += aspect * (nu * (product(2, 0, 0, 2) + product(0, 2, 2, 0)) + 2.0 * (1.0 - nu) * product(1, 1, 1, 1))
    lowest = eigh(K, product(0, 0, 0, 0), eigvals_only=True, subset_by_index=(0, 0))[0]
    return float(np.sqrt(lowest / (1.0 - nu**2)) / 1.8751041**2)


def released(size: tuple[float, float, float], integrator: str, periods: float, settle: float = 0.0) -> dict:
    """Frequencies of a released beam [Hz], from the times and number of zero crossings and the peak of the spectrum.

    Args:
        size: Length, width and height of the beam [m].
        integrator: Integrator of the lattice.
        periods: Length of the record [periods].
        settle: Time for which the straight beam settles under load and drag before the release, as in the paper [s]; 0
            to start in static equilibrium.
    """
    theory = euler_bernoulli(size, MATERIAL)
    sim = simulation(size, integrator, drag=4.0 * np.pi * theory if settle else 0.0)
    start = equilibrium(sim.model, parts=1)
    if settle:
        with torch.no_grad():
            start = sim.rollout(None, round(settle / sim.dt)).final.position[0].numpy()
    record = swing(sim, start, periods / theory, load=torch.zeros(1), drag=torch.zeros(1))
    found = {
        "crossings": crossing_frequency(record, sim.dt),
        "counted": counted_frequency(record, sim.dt),
        "start": float(tip_height(sim.model, torch.as_tensor(start)[None])),
    }
    if periods > 8:  # shorter records have no peak apart from the mean
        found["peak"] = float(spectrum(record, sim.dt).peaks(1)[0])
    return found


def base() -> None:
    """Print all measures of the frequency of one long motion, with the release as in the paper and as here."""
    size = (LENGTH, SIDE, SIDE)
    theory, eigenvalue = euler_bernoulli(size, MATERIAL), first_mode(size, SPACING)
    print(f"beam {size} m, cells of {SPACING} m: theory {theory:.4f} Hz, eigenvalue {eigenvalue:.4f} Hz")
    ways = {
        "euler from equilibrium": ("euler", 9.0),
        "euler after 0.5 s with drag": ("euler", 9.0, 0.5),
        "verlet from equilibrium": ("verlet", 9.0),
        "rk4 from equilibrium": ("rk4", 9.0),
    }
    for name, way in ways.items():
        f = released(size, *way)
        away = {n: f"{f[n]:.4f} Hz ({100 * (f[n] / eigenvalue - 1):+.3f} %)" for n in ("crossings", "peak")}
        print(
            f"  {name} (tip {1e3 * f['start']:.4f} mm): crossings {away['crossings']}, spectrum {away['peak']}; "
            f"counted {f['counted']:.3f} Hz",
            flush=True,
        )


def sweeps() -> dict:
    """Frequencies for various values of each dimension of the beam.

    The result maps the name of the dimension to its values [m], the frequencies by theory and by Timoshenko [Hz], and a
    row of frequencies for each integrator [Hz].
    """
    found = {}
    for axis, (name, values) in enumerate((("length", LENGTHS), ("width", WIDTHS), ("height", HEIGHTS))):
        sizes = [tuple(v if a == axis else s for a, s in enumerate((LENGTH, SIDE, SIDE))) for v in values]
        theory, thick = (np.array([f(s, MATERIAL) for s in sizes]) for f in (euler_bernoulli, timoshenko))
        rows = {i: np.array([released(s, i, 2.3)["crossings"] for s in sizes]) for i in INTEGRATORS}
        eigenvalues = np.array([first_mode(s, SPACING) for s in sizes])
        print(f"{name} [m]: {', '.join(f'{v:g}' for v in values)}; theory {np.array2string(theory, precision=3)} Hz")
        away, exponent = _percent(thick / theory), slope(values, thick)
        print(f"  exponent of theory {EXPECTED[name]:+.0f}, Timoshenko {away} from it, exponent {exponent:+.4f}")
        for integrator, row in (rows | {"eigenvalues": eigenvalues}).items():
            print(f"  {integrator}: {_percent(row / theory)}, exponent {slope(values, row):+.4f}", flush=True)
        found[name] = (values, theory, thick, rows)
    return found


def resolutions() -> list[tuple[int, float, float, float]]:
    """Frequencies of a beam twenty times as long as high.

    Each row has the number of cells through the height, and the frequencies from the eigenvalue, by Timoshenko and by
    theory [Hz].
    """
    found = []
    print(f"slender beam, length / height {LENGTH / 0.05:g}")
    for cells, across in sized(((2, 2), (4, 4), (8, 8), (8, 2), (16, 2)), ((2, 2), (4, 1))):
        size = (LENGTH, 0.05 * across / cells, 0.05)
        theory, thick, f = euler_bernoulli(size, MATERIAL), timoshenko(size, MATERIAL), first_mode(size, 0.05 / cells)
        found.append((cells, f, thick, theory))
        print(
            f"  {cells} x {across} cells: {100 * (f / theory - 1):+.2f} % from Euler and Bernoulli, "
            f"{100 * (f / thick - 1):+.2f} % from Timoshenko",
            flush=True,
        )
    return found


def heights() -> None:
    """Print the ratio of frequency and theory for various heights.

    The beams have four cells through the height, or the same spacing for each kind of lattice.
    """
    square = [(LENGTH, height, height) for height in HEIGHTS]
    f = np.array([first_mode(size, size[2] / 4) for size in square])
    away = _percent(f / [euler_bernoulli(size, MATERIAL) for size in square])
    print(f"height {HEIGHTS} m, 4 cells in each: {away}, exponent {slope(HEIGHTS, f):+.4f}")
    sizes = [(LENGTH, SIDE, height) for height in HEIGHTS]
    theory = np.array([euler_bernoulli(size, MATERIAL) for size in sizes])
    print(f"height {HEIGHTS} m, cells of {SPACING} m")
    for name, change in LATTICES.items():
        f = np.array([first_mode(size, SPACING, **change) for size in sizes])
        print(f"  {name}: {_percent(f / theory)}, exponent {slope(HEIGHTS, f):+.3f}", flush=True)


def widths(wide: bool) -> dict:
    """Ratio of frequency and theory for various ratios of width and height, as name of lattice -> (widths, ratios)."""
    theory = euler_bernoulli((LENGTH, SIDE, SIDE), MATERIAL)
    found = {}
    across = np.array(sized([1, 2, 4, 8, 16, 32], [1, 2, 4]))
    thin = np.array([plate((LENGTH, SIDE * n / 4, SIDE)) for n in across])
    print(f"width / height {across / 4}\n  thin plate over beam {_percent(thin)}")
    for name, change in LATTICES.items():
        ratio = [first_mode((LENGTH, SIDE * n / 4, SIDE), SIDE / 4, **change) / theory for n in across]
        found[f"{name}, 4 cells"] = (across / 4, np.array(ratio))
        print(f"  {name}: {_percent(ratio)}; {_percent(np.divide(ratio, ratio[2]))} from the square one", flush=True)
    chosen = ("cells own the stiffness", "the same, masses rho a^3", "the same, total mass in equal parts")
    for cells, some in sized(((2, (1, 2, 4, 8, 16, 32)), (8, (2, 4, 8))), ((2, (1, 2)),)):
        for name in chosen:
            across = (*some, 16, 32) if wide and cells == 8 and name == chosen[0] else some
            of = [(LENGTH, SIDE * n / cells, SIDE) for n in across]
            ratio = [first_mode(size, SIDE / cells, **LATTICES[name]) / theory for size in of]
            square = ratio[across.index(cells)]
            print(
                f"  {cells} cells, width / height {np.divide(across, cells)}, {name}: {_percent(ratio)}; "
                f"{_percent(np.divide(ratio, square))} from the square one",
                flush=True,
            )
    return found


def _percent(ratio: np.ndarray) -> str:
    """Text of ratios as deviations from 1."""
    return ", ".join(f"{100 * (r - 1):+.2f}" for r in np.ravel(ratio)) + " %"


def draw(found: dict, resolution: list, lattices: dict) -> None:
    """Draw figure 5 in the upper row, and the effects of resolution and of the kind of lattice in the lower row."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.0, 7.0), dpi=110, layout="constrained")
    axes = figure.subplots(2, 3)
    marks = dict(zip(INTEGRATORS, "o+x", strict=True))
    for ax, (name, (values, theory, thick, rows)) in zip(axes[0], found.items(), strict=True):
        ax.plot(values, theory, "k-", label="Euler, Bernoulli")
        ax.plot(values, thick, "k:", label="Timoshenko")
        for integrator, row in rows.items():
            ax.plot(values, row, marks[integrator], label=integrator, fillstyle="none")
        ax.set(xlabel=f"{name} [m]", ylabel="first frequency [Hz]", xscale="log", yscale="log", title=name)
        ax.set_xticks(values, [f"{v:g}" for v in values])
        if name == "width":
            ax.set(yscale="linear", ylim=(0.9 * theory[0], 1.1 * theory[0]))
        else:
            ax.set_yticks(theory, [f"{f:.1f}" for f in theory])
        ax.minorticks_off()
    axes[0, 0].legend(frameon=False)
    square = [r for k, r in enumerate(resolution) if k < 3 or r[0] > 8]
    cells = [r[0] for r in square]
    for column, name in ((3, "Euler, Bernoulli"), (2, "Timoshenko")):
        axes[1, 0].plot(cells, [100 * (r[1] / r[column] - 1) for r in square], "o-", label=f"from {name}")
    axes[1, 0].set(xscale="log", xlabel="cells through the height", ylabel="deviation [%]", title="slender, L / H = 20")
    axes[1, 0].set_xticks(cells, cells)
    axes[1, 0].minorticks_off()
    axes[1, 0].axhline(0.0, color="k", lw=0.5)
    axes[1, 0].legend(frameon=False)
    for ax, relative in ((axes[1, 1], False), (axes[1, 2], True)):
        for number, name in enumerate(LATTICES):
            ratio, f = lattices[f"{name}, 4 cells"]
            base = f[list(ratio).index(1.0)] if relative else 1.0
            ax.plot(ratio, 100 * (f / base - 1), "o-", color=f"C{number}", label=name)
        ax.axhline(0.0, color="k", lw=0.5)
        ax.set(xscale="log", xlabel="width / height", title="by lattice, 4 cells through the height")
        ax.set_xticks(ratio, [f"{r:g}" for r in ratio])
        ax.minorticks_off()
    thin = np.array([plate((LENGTH, SIDE * r, SIDE)) for r in ratio])
    axes[1, 1].set_ylabel("deviation from Euler, Bernoulli [%]")
    axes[1, 1].legend(frameon=False, fontsize=7)
    axes[1, 2].plot(ratio, 100 * (thin / thin[list(ratio).index(1.0)] - 1), "k--", label="thin plate")
    axes[1, 2].set_ylabel("deviation from width = height [%]")
    axes[1, 2].legend(frameon=False)
    figure.savefig(HERE / "cronos_beam.png")


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wide", action="store_true", help="the widest beams at 8 cells, too")
    options = parser.parse_args()
    base()
    found = sweeps()
    slender = resolutions()
    heights()
    draw(found, slender, widths(options.wide))


if __name__ == "__main__":
    main()
