"""What a step of `Coupled` exchanges: an impulse at every particle that touches, and their sum on the body."""

import numpy as np
from canvas import Drawing, View

RADIUS, SPEED, MASS = 1.0, 1.0, 60.0  # of the ball; its mass per mass of a particle


def exchange(normals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Impulses on particles at rest (particles, 2), and the velocity of the ball afterwards (2).

    No particle approaches the ball after the step, and an impulse can only push; projected Gauss-Seidel.
    """
    impulse, ball = np.zeros(len(normals)), np.array([0.0, -SPEED])
    for _ in range(200):
        for k, n in enumerate(normals):  # n points out of the ball
            approach = ball @ n - impulse[k]
            change = max(impulse[k] + approach / (1 + 1 / MASS), 0.0) - impulse[k]
            impulse[k] += change
            ball = ball - change * n / MASS
    return impulse[:, None] * normals, ball


def draw() -> Drawing:
    """Before, and the exchange."""
    d = Drawing(
        "Exchange of impulses between matter and a rigid body",
        "Left: a rigid ball falls into particles of sand; those within reach are marked. Right: every particle that "
        "the ball approaches gets an impulse, here without friction along the normal, and the ball gets the "
        "opposite of their sum, so that momentum is conserved to rounding.",
        350,
    )
    rng = np.random.default_rng(3)
    grid = np.stack(np.meshgrid(np.arange(15) * 0.28 - 1.96, np.arange(7) * 0.28 - 1.9), -1).reshape(-1, 2)
    sand = grid + rng.uniform(-0.07, 0.07, grid.shape)
    distance = np.linalg.norm(sand, axis=1)
    sand, distance = sand[distance > RADIUS + 0.03], distance[distance > RADIUS + 0.03]
    touching = distance < RADIUS + 0.2
    normals = sand[touching] / distance[touching, None]
    impulses, after = exchange(normals)
    for centre, words in ((178, "particles within reach"), (522, "impulses, and their sum")):
        view = View((centre, 164), 76)
        for p in sand[~touching]:
            d.circle(view(p), 6, "sand")
        for p in sand[touching]:
            d.circle(view(p), 7, "orange")
        d.circle(view((0, 0)), RADIUS * 76, "sky", "blue", 2.5)
        d.text((centre, 338), words)
    left, right = View((178, 164), 76), View((522, 164), 76)
    d.arrow(left((0, 0)), left((0, -0.85 * SPEED)), "blue", 5)
    d.text(left((0.14, -0.1)), "*V*", "blue", 25, "start", bold=True)
    for p, impulse in zip(sand[touching], impulses, strict=True):
        if np.linalg.norm(impulse) > 0.03:
            d.arrow(right(p), right(p + 0.62 * impulse), "purple", 3)
    total = -impulses.sum(0)
    d.arrow(right((0, -0.55)), right(np.array([0, -0.55]) + 0.2 * total), "purple", 6)
    d.text(right((0.2, 0.3)), "−Σ *p*_{i}", "purple", 23, "start")
    d.text(right((1.24, 0.08)), "*p*_{i}", "purple", 23)
    d.note((178, 30), "*V* of the ball: approaching")
    d.note((522, 30), f"afterwards: {-100 * after[1]:.0f} % of its speed")
    return d
