"""Cronos figure 7: the energy of a beam that settles under a load for half a second and is then released.

    python benchmarks/papers/cronos_energy.py

After the release, which removes load and drag, the sum of elastic, gravitational and kinetic energy should be constant.
It does not include the potential of the load, so only the time after the release counts. Semi-implicit Euler conserves,
to order 2, the energy computed with the mean of the two velocities around a position (it is Verlet's method with
velocities half a step late); it is printed as well. Writes ``cronos_energy.png`` beside this file.
"""

import dataclasses
import os

os.environ.setdefault("WARPBOTS_PRECISION", "float64")  # bands of 1e-4 over 1e5 steps

import numpy as np
import torch
from cronos_common import HERE, POISSONS_RATIO, beam, sized, slope, wb

from warpbots.solvers.mass_spring import MassSpringModel, MassSpringState, forces

MATERIAL = wb.Material(1e7, POISSONS_RATIO, 1000.0)
SIZE, SPACING, LOAD, GRAVITY = (0.5, 0.1, 0.1), 0.05, 20.0, 9.81
DRAG = 60.0
"""While the beam settles [1/s], about twice the angular frequency of its first mode: critical."""
SETTLE, SECONDS = sized((0.5, 5.0), (0.02, 0.6))
"""How long it is held by the load, and watched after [s]."""
INTERVAL = 2e-3
STEPS = (16, 32)
"""Steps in an interval: 0.29 and 0.14 of the stability bound."""
KINDS = ("elastic", "potential", "kinetic")


def motion(integrator: str, substeps: int) -> tuple[wb.Simulation, list[MassSpringState], int]:
    """Simulate the beam; return the simulation, the states after each interval, and the number of loaded states."""
    scene = beam(SIZE, MATERIAL, LOAD, GRAVITY)
    sim = wb.Simulation(scene, wb.MassSpring(SPACING, integrator=integrator, drag=DRAG), INTERVAL, substeps)
    state, states = sim.state(), []

    def keep(s: MassSpringState) -> torch.Tensor:
        states.append(dataclasses.replace(s, position=s.position.clone(), velocity=s.velocity.clone()))
        return s.time

    loaded, released = round(SETTLE / INTERVAL), round(SECONDS / INTERVAL)
    with torch.no_grad():
        state = sim.rollout(None, loaded, state, observe=keep).final
        sim.rollout(None, released, state, observe=keep, load=torch.zeros(1), drag=torch.zeros(1))
    return sim, states, loaded


def centred(model: MassSpringModel, state: MassSpringState, dt: float) -> MassSpringState:
    """A state of semi-implicit Euler with the mean of the velocities before and after its next kick.

    Load and drag are not included, so the function applies only after the release.
    """
    pull = forces(model, state.position[0].numpy()) / model.mass.numpy()[0][:, None] + model.gravity.numpy()[0]
    pull[model.lattice.regions["root"]] = 0.0
    return dataclasses.replace(state, velocity=state.velocity + 0.5 * dt * torch.as_tensor(pull))


def energies(sim: wb.Simulation, states: list[MassSpringState]) -> dict[str, np.ndarray]:
    """Energies of each state by kind [J]."""
    read = [sim.sense(s) for s in states]
    return {kind: np.array([float(getattr(r, f"{kind}_energy")) for r in read]) for kind in KINDS}


def total(sim: wb.Simulation, states: list[MassSpringState]) -> np.ndarray:
    """Total energy of each state [J]."""
    return sum(energies(sim, states).values())


def band_and_drift(values: np.ndarray, scale: float) -> tuple[float, float]:
    """Width of the band of `values`, and rise of a straight line through them, both divided by `scale`."""
    t = np.linspace(-0.5, 0.5, len(values))
    return float(np.ptp(values)) / scale, float(np.polyfit(t, values, 1)[0]) / scale


def main() -> None:
    """Simulate, print and draw."""
    curves, bands = {}, {}
    for integrator in ("euler", "verlet"):
        for substeps in STEPS:
            sim, states, loaded = motion(integrator, substeps)
            dt, free = sim.dt / substeps, states[loaded - 1 :]
            parts = energies(sim, states)
            swing = np.ptp(
                parts["kinetic"][loaded:]
            )  # relative to the energy exchanged, not to the arbitrary zero of height
            rows = {integrator: total(sim, free)}
            if integrator == "euler":
                rows["euler, centred velocity"] = total(sim, [centred(sim.model, s, dt) for s in free])
            for name, values in rows.items():
                band, drift = band_and_drift(values, swing)
                bands.setdefault(name, []).append(band)
                print(
                    f"{name}, step {1e6 * dt:.1f} us ({dt / sim.max_time_step:.2f} of the bound): total "
                    f"{1e3 * values.mean():.4f} mJ, kinetic up to {1e3 * swing:.4f} mJ; band {band:.3e} and drift "
                    f"{drift:+.1e} of that in {SECONDS} s",
                    flush=True,
                )
                curves[name, substeps] = values
            curves[integrator, substeps, "parts"] = parts
    for name, band in bands.items():
        print(f"{name}: the band is of order {slope(1.0 / np.array(STEPS), np.array(band)):.2f} in the step")
    draw(curves)


def draw(curves: dict) -> None:
    """Draw figure 7: the parts and the total of the energy with Euler, and a close-up of the total of each scheme."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 4.0), dpi=110, layout="constrained")
    left, right = figure.subplots(1, 2)
    parts = curves["euler", STEPS[0], "parts"]
    shown = round((SETTLE + 0.5) / INTERVAL)
    time = INTERVAL * np.arange(1, shown + 1)
    for name, values in parts.items():
        left.plot(time, 1e3 * (values[:shown] - (parts[name][0] if name == "potential" else 0.0)), label=name)
    whole = sum(parts.values()) - parts["potential"][0]
    left.plot(time, 1e3 * whole[:shown], "k", label="total")
    left.axvline(SETTLE, color="0.6")
    left.set(xlabel="t [s]", ylabel="energy [mJ]", title="semi-implicit Euler; load and drag end at the line")
    left.legend(frameon=False, loc=(0.22, 0.58))
    swing = np.ptp(parts["kinetic"][round(SETTLE / INTERVAL) :])
    for (name, substeps, *rest), values in curves.items():
        if not rest and name != "euler, centred velocity":
            time = SETTLE + INTERVAL * np.arange(len(values))
            close = time < SETTLE + 1.0
            label = f"{name}, {1e6 * INTERVAL / substeps:.0f} us"
            right.plot(time[close], (values[close] - values.mean()) / swing, lw=0.8, label=label)
    right.set(xlabel="t [s]", ylabel="total, about its mean, per largest kinetic", title="close up")
    right.margins(y=0.2)
    right.legend(frameon=False, ncols=2)
    figure.savefig(HERE / "cronos_energy.png")


if __name__ == "__main__":
    main()
