"""Cronos figure 8: natural frequencies of a 10 m cantilever by eigenvalues, compared with the spectrum of its tip.

    python benchmarks/papers/cronos_frequencies.py

Four motions: small about rest; swings through rest, released from increasing deflections; small about the beam
deflected by a load; and the sag of a straight beam when gravity is switched on. Eigenvalues are computed about rest
and, where it differs, about the equilibrium of the motion. The two lowest modes in the plane of the load count; the
beam is half as wide as high, so that they do not mix with lateral modes. Writes
``cronos_frequencies.png`` beside this file.
"""

import os

os.environ.setdefault("WARPBOTS_PRECISION", "float64")  # the second mode is 1e-3 of the first in these motions

import numpy as np
import torch
from cronos_common import HERE, POISSONS_RATIO, beam, sized, slope, swing, wb

from warpbots.solvers.mass_spring import MassSpringModel, Spectrum, equilibrium, natural_modes, spectrum

MATERIAL = wb.Material(1e7, POISSONS_RATIO, 1000.0)
SIZE, SPACING = (10.0, 0.5, 1.0), sized(0.25, 0.5)
PERIODS, SAMPLES = sized((24, 80), (4, 40))
"""Of the first mode that are recorded, and values in each."""
SMALL = 1e-3
"""Deflection over length that is small, and what a load changes by for a small motion about a large deflection."""
DEFLECTIONS = sized((0.05, 0.1, 0.2, 0.3, 0.4), (0.05, 0.1, 0.2))
"""Tip deflections over length from which the beam is let go, by linear theory."""
HELD = 0.4
"""The same for the beam that a load holds and for the one that sags."""


def load_for(deflection: float) -> float:
    """Tip load [N] that deflects the tip by `deflection` lengths in linear theory."""
    length, width, height = SIZE
    return 3.0 * MATERIAL.youngs_modulus * width * height**3 / 12.0 * deflection / length**2


def in_plane(model: MassSpringModel, position: np.ndarray | None = None) -> np.ndarray:
    """The two lowest frequencies of modes in the x-z plane [Hz]."""
    frequency, shape = natural_modes(model, 6, position=position)
    x, y, z = np.abs(shape).sum(axis=1).T
    return frequency[y < 0.5 * (x + z)][:2]


def peaks(found: Spectrum, near: np.ndarray) -> np.ndarray:
    """Frequency of the highest peak within a seventh of each frequency in `near` [Hz]; harmonics are farther away."""
    result = []
    for f in near:
        inside = np.abs(found.frequency / f - 1.0) < 1.0 / 7.0
        result.append(Spectrum(found.frequency, np.where(inside, found.amplitude, 0.0)).peaks(1)[0])
    return np.array(result)


def build(load: float = 0.0, gravity: float = 0.0) -> tuple[wb.Simulation, np.ndarray]:
    """Simulation of the beam under a load [N] and gravity [m/s^2], and its positions in static equilibrium [m]."""
    scene = beam(SIZE, MATERIAL, load, gravity)
    model = wb.MassSpring(SPACING).build(scene)
    interval = 1.0 / (SAMPLES * in_plane(model)[0])
    sim = wb.Simulation(scene, wb.MassSpring(SPACING, integrator="verlet"), interval, None)
    return sim, equilibrium(sim.model)


def record(sim: wb.Simulation, start: np.ndarray, **parameters: torch.Tensor) -> np.ndarray:
    """Height of the tip over time [m], in a motion from the positions `start`."""
    return swing(sim, start, PERIODS * SAMPLES * sim.dt, **parameters)


def line(name: str, measured: np.ndarray, rest: np.ndarray, static: np.ndarray | None = None) -> None:
    """Print the frequencies of one motion, and the eigenvalues."""
    text = f"{name}: peaks {measured[0]:.5f} and {measured[1]:.5f} Hz"
    for where, f in (("rest", rest), ("equilibrium", static)):
        if f is not None:
            away = 100.0 * (measured / f - 1.0)
            text += f"; eigenvalues about {where} {f[0]:.5f} and {f[1]:.5f} Hz ({away[0]:+.3f} and {away[1]:+.3f} %)"
    print(text, flush=True)


def main() -> None:
    """Simulate, print and draw."""
    shown, swings = [], []
    rest = None
    for deflection in (SMALL, *DEFLECTIONS):
        sim, start = build(load_for(deflection))
        rest = in_plane(sim.model)
        motion = record(sim, start, load=torch.zeros(1))
        found = spectrum(motion, sim.dt)
        measured = peaks(found, rest)
        tip = abs(motion).max() / SIZE[0]
        line(f"let go at {tip:.4f} lengths", measured, rest)
        swings.append((tip, *(measured / rest)))
        if deflection in (SMALL, DEFLECTIONS[-1]):
            shown.append((f"let go at {tip:.3f} lengths", found, rest, None))

    _, start = build((1.0 + SMALL) * load_for(HELD))
    sim, held = build(load_for(HELD))
    static = in_plane(sim.model, held)
    motion = record(sim, start)
    found = spectrum(motion, sim.dt)
    name = f"small, about a load's {abs(motion.mean()) / SIZE[0]:.3f} lengths"
    line(name, peaks(found, static), rest, static)
    shown.append((name, found, rest, static))

    weight = MATERIAL.density * np.prod(SIZE)
    gravity = 8.0 / 3.0 * load_for(HELD / 2.0) / weight  # a spread load bends the tip by w L^3 / 8 E I; the sag doubles
    sim, start = build(gravity=gravity)
    static = in_plane(sim.model, start)
    motion = record(sim, sim.model.lattice.position)
    found = spectrum(motion, sim.dt)
    name = f"sags by up to {abs(motion).max() / SIZE[0]:.3f} lengths"
    line(name, peaks(found, static), rest, static)
    shown.append((name, found, rest, static))
    tip, *ratios = np.array(swings[2:]).T
    first, second = (slope(tip, np.abs(r - 1.0)) for r in ratios)
    print(f"with the amplitude the peaks leave the eigenvalues about rest with powers of {first:.2f} and {second:.2f}")
    draw(shown, np.array(swings))


def draw(shown: list, swings: np.ndarray) -> None:
    """Draw spectra with eigenvalues, a close-up of the first peak, and the frequency over the amplitude."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14.0, 6.0), dpi=100, layout="constrained")
    axes = figure.subplots(2, 5, width_ratios=(1, 1, 1, 1, 1.1))
    for (name, found, rest, static), (whole, close) in zip(shown, axes[:, :4].T, strict=True):
        whole.semilogy(found.frequency, found.amplitude, lw=1.0)
        close.plot(found.frequency, found.amplitude, lw=1.0)
        for ax in (whole, close):
            for f in rest:
                ax.axvline(f, color="C3", ls="--", lw=0.9, label="eigenvalue about rest")
            for f in static if static is not None else ():
                ax.axvline(f, color="C2", ls=":", lw=1.5, label="about equilibrium")
        whole.set(xlim=(0.0, 1.25 * rest[1]), ylim=(1e-6 * found.amplitude.max(), None), title=name)
        top = 1.4 * found.amplitude.max()  # room for the legend
        close.set(xlim=(0.8 * rest[0], 1.2 * rest[0]), ylim=(-0.03 * top, top), xlabel="f [Hz]")
        whole.title.set_fontsize(9)
        handles = dict(zip(*close.get_legend_handles_labels()[::-1], strict=True))
        close.legend(handles.values(), handles.keys(), loc="upper left", fontsize=7)
    axes[0, 0].set_ylabel("amplitude of the tip [m]")
    axes[1, 0].set_ylabel("the first peak, close up [m]")
    for ax, column, name in ((axes[0, 4], 1, "first"), (axes[1, 4], 2, "second")):
        ax.plot(swings[:, 0], 100.0 * (swings[:, column] - 1.0), "o-")
        ax.axhline(0.0, color="C3", ls="--", lw=0.9)
        ax.set(xlabel="amplitude of the tip [lengths]", ylabel=f"{name} peak from its eigenvalue [%]")
    figure.savefig(HERE / "cronos_frequencies.png")


if __name__ == "__main__":
    main()
