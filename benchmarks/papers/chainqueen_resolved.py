"""ChainQueen's biped with cables on several grids at once, so that its gait belongs to none of them.

    python benchmarks/papers/chainqueen_resolved.py

Beginning with the stored gait of `chainqueen_biped`, which loses distance on a finer grid, the table of controls is
optimised further on all grids `LEARNT` at once: the loss is the mean of their losses, and a rollout is a walk on each.
Steps are small, as the gait is lost in steps of 0.01; the best of few is kept, since in later ones the walk on the grid
of the stored gait becomes longer and the one on the finer grid shorter.
Writes ``stored/chainqueen_biped_grids.npz`` and a film strip on a grid that the search has not seen,
``chainqueen_biped_grids.png``, beside this file; `chainqueen_biped` plays the result with ``--refine``.
"""

import time

import refined
import torch
from chainqueen_biped import HOLD, STEPS, biped, loss, motion
from chainqueen_common import film, options, sized, wb

LEARNT = sized((1.0, 0.85), (1.0, 1.5))
"""Factors of the size of cells on the grids that the search sees."""
SHOWN = sized(0.75, 1.5)
"""Factor of the grid in the film strip."""
ITERATIONS = sized(6, 1)


def main() -> None:
    """Optimise the stored gait on several grids, print its distances, store and draw it."""
    chosen = options(__doc__)
    alone = biped(chosen.device)
    sims = {cells: refined.again(alone, refined.Refinement(cells=cells), "dx") for cells in LEARNT}
    table = refined.kept("chainqueen_biped")["control"][:STEPS:HOLD].clone().requires_grad_()
    steps = []

    def mean() -> torch.Tensor:
        losses = torch.stack([loss(sim, table) for sim in sims.values()])
        steps.append([-d for d in losses.tolist()])
        print(", ".join(f"{d:.3f}" for d in steps[-1]), flush=True)
        return losses.mean()

    began = time.process_time()
    method = wb.methods.Torch(lr=2e-3, max_norm=0.1)
    history = wb.minimize(mean, wb.Unknown(table, -1.0, 1.0), method, iterations=ITERATIONS, progress=False)
    seconds = time.process_time() - began
    for cells, first, best in zip(LEARNT, steps[0], steps[history.best], strict=True):
        print(f"cells of {cells:g} times the size: {first:.3f} -> {best:.3f} m")
    print(f"iteration {history.best} of {ITERATIONS}, {seconds:.0f} s of CPU time")
    with torch.no_grad():
        refined.keep("chainqueen_biped_grids", control=motion(alone, table).control[0])
        shown = refined.again(alone, refined.Refinement(cells=SHOWN), "dx")
        film("chainqueen_biped_grids", motion(shown, table), chosen.out)


if __name__ == "__main__":
    main()
