"""The chain of a gradient: forward with checkpoints, a segment again, and backwards."""

import numpy as np
from canvas import Drawing

STEPS = 16


def draw() -> Drawing:
    """Three rows of the same states."""
    every = round(np.sqrt(STEPS))
    d = Drawing(
        "A gradient with checkpoints",
        f"A rollout of {STEPS} control intervals. Forward: every {every}th state is stored. Backwards: from the last "
        "checkpoint to the first, a segment is simulated again and its states are kept; the adjoint of each interval "
        "then carries the gradient back to the start, and adds to the gradients of parameters and controls.",
        372,
    )
    x = 40 + (620 / STEPS) * np.arange(STEPS + 1)
    last = STEPS - every
    d.text((20, 36), "forward: every fourth state is stored", anchor="start", bold=True)
    d.text((20, 146), "once more, one segment: all its states", anchor="start", bold=True)
    d.text((20, 256), "backwards: the adjoint of each step", anchor="start", bold=True)
    for k in range(STEPS):
        d.arrow((x[k] + 9, 72), (x[k + 1] - 9, 72), "grey", 1.5)
        if k >= last:
            d.arrow((x[k] + 9, 182), (x[k + 1] - 9, 182), "grey", 1.5)
        d.arrow((x[k + 1] - 9, 292), (x[k] + 9, 292), "orange", 1.5)
    for k in range(STEPS + 1):
        kept = k % every == 0
        d.circle((x[k], 72), 8 if kept else 5, "blue" if kept else "paper", "blue")
        if k >= last:
            d.circle((x[k], 182), 8 if kept else 6, "blue", "blue")
        d.circle((x[k], 292), 6, "orange", "orange")
    d.line([(x[last], 84), (x[last], 168)], "blue", 2, dash="4 5")
    d.note((x[last] - 12, 118), "checkpoint", "blue", anchor="end")
    d.text((x[-1] + 10, 48), "loss", anchor="end")
    d.text((x[0] + 14, 340), "∂*L*/∂*x*_{0}", "orange")
    d.text((x[-1] - 14, 340), "∂*L*/∂*x*_{n}", "orange")
    d.text((350, 340), "+ ∂*L*/∂controls, + ∂*L*/∂parameters", "orange")
    return d
