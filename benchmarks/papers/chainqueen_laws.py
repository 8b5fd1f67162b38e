"""ChainQueen section 3.3: a nearly incompressible actuator that oscillates, neo-Hookean beside fixed corotated.

    python benchmarks/papers/chainqueen_laws.py

An actuator of 0.1 x 0.3 hangs from a ceiling; a muscle along it stretches and contracts it twice a second, with nu =
0.49. The result printed in the paper is a "modest, but not insignificant" effect of the law on the motion, at a
negligible difference of time. Both laws are the same at small strains, so the muscle is also driven at a fiftieth of
its stress, where the motions must agree. Times are the smallest of several rounds in which the laws take turns. Writes
``chainqueen_laws.png`` beside this file.
"""

import functools
import time

import numpy as np
import refined
import torch
from chainqueen_common import HERE, KILO, options, sized, wb

LAWS = ("fixed_corotated", "neo_hookean")
LENGTH, WIDTH, TOP = 0.3, 0.1, 0.5
STEPS, DT = sized(300, 6), 0.01
FREQUENCY = 2.0
"""Of the control signal [Hz]."""
STRESS = {"full stress": 1.0, "a fiftieth of it": 0.02}
"""Amplitudes of the signal."""
ROUNDS = sized(3, 1)


def actuator(law: str, device: str | None) -> wb.Simulation:
    """Simulation of the actuator; E = 20, nu = 0.49 and density 1 in the paper's units, and a stress of up to 3."""
    box, left, right = wb.shapes.Box, 0.5 - 0.5 * WIDTH, 0.5 + 0.5 * WIDTH
    shape, bottom = box((left, TOP - LENGTH), (right, TOP)), TOP - LENGTH
    regions = {
        "root": box((left, TOP - 0.025), (right, TOP)), "end": box((left, bottom), (right, bottom + 0.025)),
        "arm": shape,
    }  # fmt: skip
    body = wb.SoftBody("actuator", shape, wb.Material(20 * KILO, 0.49, KILO, law=law, damping=5e-4), regions)
    muscle = wb.actuators.Muscle("muscle", "arm", (0.0, 1.0), 3 * KILO)
    scene = wb.Scene(
        [body], [muscle], constraints=[wb.Constraint("root")], gravity=(0.0, 0.0), domain=((0.3, -0.3), (0.7, 0.55))
    )
    return wb.Simulation(scene, wb.MPM(dx=WIDTH / 8), DT, device=device)


def extension(sim: wb.Simulation, amplitude: float) -> np.ndarray:
    """How much longer the actuator is after each control interval, as a share of its length, shape (STEPS,)."""
    t = DT * (torch.arange(STEPS) + 0.5)
    control = amplitude * torch.sin(2.0 * torch.pi * FREQUENCY * t)[:, None]
    with torch.no_grad():
        end = sim.rollout(control, STEPS, observe=lambda s: sim.center_of_mass(s, "end")).observation[0, :, 1]
    return (sim.center_of_mass(sim.state(), "end")[0, 1] - end).numpy() / LENGTH


def play(how: refined.Refinement, sim: wb.Simulation) -> float:
    """Range of the extension at full stress, finer."""
    return float(np.ptp(extension(refined.again(sim, how, "dx"), 1.0)))


def effect(motions: dict[str, np.ndarray]) -> tuple[float, float, float]:
    """Ranges of both motions, and the root mean square of their difference relative to the range of the first."""
    first, second = (motions[law] for law in LAWS)
    return np.ptp(first), np.ptp(second), float(np.sqrt(np.mean((second - first) ** 2)) / np.ptp(first))


def draw(motions: dict[str, dict[str, np.ndarray]]) -> None:
    """Draw the extension over time at all amplitudes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 3.6), dpi=110, layout="constrained")
    t = DT * np.arange(1, STEPS + 1)
    for ax, (name, found) in zip(figure.subplots(1, len(motions)), motions.items(), strict=True):
        for law, line in zip(LAWS, ("-", "--"), strict=True):
            ax.plot(t, 100.0 * found[law], line, label=law)
        ax.set(xlabel="t [s]", ylabel="extension [%]", title=f"{name}: laws {100.0 * effect(found)[2]:.1f} % apart")
        ax.legend(frameon=False, loc="lower left")
    figure.savefig(HERE / "chainqueen_laws.png")


def main() -> None:
    """Print the row of the table, and draw the figure."""
    chosen = options(__doc__, "refine")
    sims = {law: actuator(law, chosen.device) for law in LAWS}
    if chosen.refine:
        refined.table({law: functools.partial(play, sim=sim) for law, sim in sims.items()}, 0.5, "range of extension")
        return
    print(sims[LAWS[0]].model.summary(), f"{sims[LAWS[0]].substeps} substeps", flush=True)
    motions, seconds = {}, {law: [] for law in LAWS}
    for name, amplitude in STRESS.items():
        motions[name] = {}
        for _ in range(ROUNDS):
            for law, sim in sims.items():
                begun = time.process_time()
                motions[name][law] = extension(sim, amplitude)
                seconds[law].append(time.process_time() - begun)
        first, second, apart = effect(motions[name])
        ends = ", ".join(f"{law} {100 * m.min():+.2f} to {100 * m.max():+.2f} %" for law, m in motions[name].items())
        print(f"{name}: extension {ends}; range {second / first - 1.0:+.2%}, {apart:.2%} apart", flush=True)
    ratio = min(seconds[LAWS[1]]) / min(seconds[LAWS[0]])
    print(f"time of {LAWS[1]} relative to {LAWS[0]}: {ratio:.3f} ({min(seconds[LAWS[0]]):.2f} s)")
    draw(motions)


if __name__ == "__main__":
    main()
