"""How finely ChainQueen's arm that swings up has to be divided: bend and swing under one constant pressure.

    python benchmarks/papers/chainqueen_bend.py

The four chambers on one side of the arm (E = 300) get a quarter of their pressure at once, and the end swings about its
static place. A decaying cosine is fitted to two seconds of this motion, for several numbers of cells across the arm, in
the largest stable step and in half of it: its constant is the static deflection, and what its amplitude loses is
damping of the solver alone, because the material has none.
"""

import os

os.environ.setdefault("WARPBOTS_PRECISION", "float64")  # as the swings

import itertools

import numpy as np
import refined
import torch
from chainqueen_common import KILO, Size, options, sized, wb
from chainqueen_swing_up import arm
from scipy.optimize import least_squares

CELLS = sized((3, 4, 6, 8), (3,))
"""Numbers of cells across the arm."""
SIGNAL, MODULUS = 0.25, 300 * KILO
STEPS = sized(200, 8)
"""Control intervals of 10 ms."""
PERIOD = 0.7
"""Initial estimate of the period [s]."""


def swing(sim: wb.Simulation) -> np.ndarray:
    """Deflections of the end along x after each control interval [m], shape (STEPS,)."""
    end = sim.region("end")
    signals = torch.tensor([SIGNAL * ("chamber 1" in pressure.name) for pressure in sim.scene.actuators])
    modulus = torch.full_like(sim.parameter("youngs_modulus"), MODULUS)
    with torch.no_grad():
        motion = sim.rollout(
            signals.expand(STEPS, -1),
            STEPS,
            observe=lambda state: state.position[:, end, 0].mean(dim=1),
            youngs_modulus=modulus,
        )
    start = sim.state().position[0, end, 0].mean()
    return (motion.observation[0] - start).cpu().numpy()


def fitted(time: np.ndarray, deflection: np.ndarray) -> np.ndarray:
    """Static deflection [m], period [s] and decay of the amplitude [1/s] of a decaying cosine.

    Args:
        time: Times [s], shape (n,).
        deflection: Deflections [m], shape (n,).
    """

    def difference(p: np.ndarray) -> np.ndarray:
        static, period, decay, amplitude, phase = p
        return static + amplitude * np.exp(-decay * time) * np.cos(2.0 * np.pi * time / period + phase) - deflection

    mean = deflection.mean()
    return least_squares(difference, [mean, PERIOD, 0.0, -mean, 0.0]).x[:3]


def main() -> None:
    """Print the table."""
    chosen, time = options(__doc__), 0.01 * np.arange(1, STEPS + 1)
    print("| cells across | particles | steps | static deflection [mm] | period [s] | decay of the amplitude [1/s] |")
    print("|---|---|---|---|---|---|")
    for cells, finer in itertools.product(CELLS, (1, 2)):
        coarse = arm(chosen.device, Size(3 / cells))
        sim = refined.again(coarse, refined.Refinement(steps=finer), "dx")
        static, period, decay = fitted(time, swing(sim))
        print(
            f"| {cells} | {len(sim.model.matter.position)} | {STEPS * sim.substeps} | {-static / 1e-3:.1f} | "
            f"{period:.3f} | {decay:.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
