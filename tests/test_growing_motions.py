"""The growth of motions from the matrices of small systems, whose eigenvalues NumPy computes."""

import numpy as np
import pytest
from scipy.linalg import eigh

from warpbots.solvers.growing_motions import growing_motions, linear_fields

SIZE, H = 12, 0.5


def system(seed: int, squares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Masses, and a stiffness matrix with the given squares of frequencies."""
    random = np.random.default_rng(seed)
    mass = random.uniform(0.5, 2.0, len(squares))
    Q = np.linalg.qr(random.standard_normal((len(squares),) * 2))[0] * np.sqrt(mass)[:, None]
    return mass, Q * squares @ Q.T


def judged(
    systems: list, neutral: float = 1e-5, broken: int | None = None, damping: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Growth and motions of several systems at the same time, one of which may have a broken product.

    The damping is in proportion to the masses [1/s].
    """
    part = np.repeat(np.arange(len(systems)), SIZE)

    def product(g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        given = zip(systems, np.split(g, len(systems)), strict=True)
        rows = []
        for (m, K), v in given:
            u = np.linalg.solve((1.0 + H * damping) * np.diag(m) + H**2 * K, v)
            rows.append((m * u, H**2 * K @ u))
        if broken is not None:
            rows[broken] = np.full((2, SIZE), np.nan)
        return tuple(np.concatenate(part) for part in zip(*rows, strict=True))

    start = np.random.default_rng(1).standard_normal(len(part))
    mass = np.concatenate([m for m, _ in systems])
    return growing_motions(product, start, mass, part, np.full(len(systems), neutral), 1e-7, 1e-9)


@pytest.mark.parametrize("damping", [0.0, 0.5])
@pytest.mark.parametrize("square", [-100.0, -9.0, -0.5])
def test_the_growth_and_the_motion_are_those_of_the_matrices(square, damping):
    """For growth that is fast and slow compared with the step, and damping; two other systems have no part in it."""
    stable, rest = 10.0 ** np.arange(SIZE), 10.0 ** np.arange(1, SIZE)
    systems = [system(0, stable), system(1, np.append(square, rest)), system(2, np.append(0.0, rest))]
    growth, motion = judged(systems, damping=damping)
    assert growth[0] == growth[2] == 0.0
    assert growth[1] == pytest.approx(np.sqrt(-square) * H, rel=0.03)
    m, K = systems[1]
    mode, found = eigh(K, np.diag(m))[1][:, 0], motion[SIZE : 2 * SIZE]
    along = (mode * m) @ found / np.sqrt((found * m) @ found)
    assert abs(along) > 0.98


def test_several_motions_that_grow_and_a_stiffness_within_its_error():
    """One of three growing motions is found; a stiffness that is negative by less than its error counts as neutral."""
    growth, _ = judged([system(0, np.append([-4.0, -3.0, -2.0], 10.0 ** np.arange(SIZE - 3)))])
    assert 1.4 < growth[0] / H < 2.01
    slow = [system(0, np.append(-0.1, 10.0 ** np.arange(1, SIZE)))]
    assert judged(slow)[0][0] > 0.0
    assert judged(slow, neutral=0.03)[0][0] == 0.0


def test_a_product_that_is_not_finite_says_so_for_its_part():
    systems = [system(k, 10.0 ** np.arange(SIZE)) for k in range(2)]
    growth, _ = judged(systems, broken=1)
    assert np.isnan(growth[1]) and growth[0] == 0.0


def test_a_field_is_linear_in_each_part():
    x = np.random.default_rng(0).standard_normal((20, 3))
    part = np.arange(20) % 2
    field = linear_fields(x, part)
    for p in range(2):
        A = np.column_stack([x[part == p], np.ones(10)])
        found, rest, rank, _ = np.linalg.lstsq(A, field[part == p], rcond=None)
        assert rank == 4 and rest.max() < 1e-25 and np.linalg.matrix_rank(found) == 3
