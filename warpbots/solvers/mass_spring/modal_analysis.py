"""Linear analysis of a lattice: its stiffness matrix, natural frequencies and modes; computed on the host."""

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import coo_matrix, csr_matrix, diags
from scipy.sparse.linalg import LinearOperator, eigsh

from warpbots.scene import FREEDOMS
from warpbots.solvers.mass_spring.constraints import FREE
from warpbots.solvers.mass_spring.model import MassSpringModel

__all__ = [
    "frequency_limit",
    "highest_frequency",
    "free_motions",
    "natural_modes",
    "spring_constants",
    "stiffness_matrix",
]


def spring_constants(model: MassSpringModel, world: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Stiffness [N/m], rest length [m] and damping [N s/m] of the springs, each of shape (n_springs,).

    Args:
        model: Model of the springs.
        world: Index of the world.
    """
    arrays = model.stiffness, model.rest_length, model.damping
    k, l0, c = (a.numpy()[world].astype(np.float64) for a in arrays)
    ratio = model.youngs_modulus.numpy()[world].astype(np.float64) / model.scene_modulus.numpy()[world]
    return ratio * k, l0, ratio * c


def stiffness_matrix(model: MassSpringModel, world: int = 0, position: np.ndarray | None = None) -> csr_matrix:
    """Stiffness matrix: the Hessian of the elastic energy [N/m], shape (n_masses dim, n_masses dim).

    Args:
        model: Model to analyse.
        world: Index of the world.
        position: Positions about which to linearise [m], shape (n_masses, dim); None for positions at rest.
    """
    x = model.lattice.position if position is None else position
    k, l0, _ = spring_constants(model, world)
    (i, j), dim = model.lattice.ends.T, model.dim
    d = x[j] - x[i]
    length = np.linalg.norm(d, axis=1)
    n = d / length[:, None]
    along = n[:, :, None] * n[:, None, :]
    block = k[:, None, None] * (along + (1.0 - l0 / length)[:, None, None] * (np.eye(dim) - along))
    a, b = np.indices((dim, dim)).reshape(2, -1)
    rows, columns, values = [], [], []
    for row, column, sign in ((i, i, 1.0), (j, j, 1.0), (i, j, -1.0), (j, i, -1.0)):
        rows.append(dim * row[:, None] + a)
        columns.append(dim * column[:, None] + b)
        values.append(sign * block.reshape(len(k), -1))
    values, rows, columns = (np.concatenate([*map(np.ravel, part)]) for part in (values, rows, columns))
    return coo_matrix((values, (rows, columns)), shape=(x.size, x.size)).tocsr()


def free_motions(model: MassSpringModel) -> csr_matrix:
    """Orthonormal basis, as columns, of the motions that the constraints allow, shape (n_masses dim, n_free)."""
    dim, n = model.dim, len(model.lattice)
    freedom, direction = model.freedom.numpy(), model.direction.numpy().astype(np.float64)
    rows, columns, values, count = [], [], [], 0
    for kind in range(FREE + 1):
        chosen = np.flatnonzero(freedom == kind)
        if not len(chosen) or (kind < FREE and FREEDOMS[kind] == "fixed"):
            continue
        basis = np.tile(np.eye(dim), (len(chosen), 1, 1))
        if kind < FREE:  # the first vector of the frame is the direction; a line keeps it, a plane the others
            frame = np.linalg.qr(np.concatenate([direction[chosen][:, :, None], basis], axis=2))[0]
            basis = frame[:, :, :1] if FREEDOMS[kind] == "line" else frame[:, :, 1:]
        each = basis.shape[2]
        rows.append(np.broadcast_to(dim * chosen[:, None, None] + np.arange(dim)[None, :, None], basis.shape))
        number = count + each * np.arange(len(chosen))[:, None, None] + np.arange(each)[None, None, :]
        columns.append(np.broadcast_to(number, basis.shape))
        values.append(basis)
        count += each * len(chosen)
    flat = [
        np.concatenate([v.reshape(-1) for v in group]) if group else np.zeros(0) for group in (values, rows, columns)
    ]
    return coo_matrix((flat[0], (flat[1].astype(int), flat[2].astype(int))), shape=(n * dim, count)).tocsr()


def natural_modes(
    model: MassSpringModel, count: int, world: int = 0, position: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Lowest natural frequencies f and mode shapes u, without damping: K u = (2 pi f)^2 M u.

    Args:
        model: Model to analyse.
        count: Number of modes to compute; an unconstrained body has 3 (2D) or 6 (3D) modes of frequency 0.
        world: Index of the world.
        position: Positions about which to linearise [m], shape (n_masses, dim); None for positions at rest.

    Returns:
        Frequencies [Hz], in increasing order, shape (count,), and mode shapes [kg^-1/2], shape (count, n_masses, dim).
        Each mode shape has unit modal mass, and its entry of largest magnitude is positive.

    Raises:
        ValueError: `count` is above the number of motions that the constraints allow.
    """
    Z = free_motions(model)
    if not 0 < count <= Z.shape[1]:
        raise ValueError(
            f"natural_modes: count must be in 1 to {Z.shape[1]}, the motions that the constraints allow, got {count}"
        )
    mass = np.repeat(model.mass.numpy()[world].astype(np.float64), model.dim)
    K = Z.T @ stiffness_matrix(model, world, position) @ Z
    M = (Z.T @ diags(mass) @ Z).tocsc()
    if count < K.shape[0]:
        start = np.random.default_rng(0).standard_normal(K.shape[0])
        below = -1e-6 * abs(K.diagonal()).max() / M.diagonal().max()  # just below zero, as K may be singular
        values, vectors = eigsh(K.tocsc(), count, M, sigma=below, which="LM", v0=start)
    else:  # Lanczos' method cannot compute all modes
        values, vectors = eigh(K.toarray(), M.toarray())
    order = np.argsort(values)
    frequency = np.sqrt(np.maximum(values[order], 0.0)) / (2.0 * np.pi)
    shapes = (Z @ vectors[:, order]).T
    shapes *= np.sign(shapes[np.arange(count), np.abs(shapes).argmax(axis=1)])[:, None]
    return frequency, shapes.reshape(count, len(model.lattice), model.dim)


def highest_frequency(model: MassSpringModel) -> tuple[float, float]:
    """Highest natural frequency [rad/s] about rest, the largest of all worlds, and its damping ratio [1].

    Both numbers are 0 if the constraints allow no motion.

    The residual of the Lanczos method on M^-1/2 K M^-1/2 is added to the eigenvalue, so that the frequency is an upper
    bound, up to rounding. If the damping along the springs is proportional to their stiffness, the damping ratio is
    also largest at this frequency.
    """
    found = (0.0, 0.0)
    K0 = None
    for world in range(model.worlds):
        (k, l0, c), m = spring_constants(model, world), model.mass.numpy()[world]
        same = K0 is not None and all(np.array_equal(a, b) for a, b in zip(K0, (k, l0, m, c), strict=True))
        if same:
            continue
        K0 = (k, l0, m, c)
        found = max(found, _highest(model, world))
    return found


def frequency_limit(model: MassSpringModel) -> tuple[float, float]:
    """Upper bounds of the two results of `highest_frequency`, at a fraction of the cost.

    With the displacements a and b of the ends of a spring along its direction n, (a - b)^2 <= 2 a^2 + 2 b^2. So the
    block diagonal matrix with one block B_i = 2 sum_j k_ij n n^T for each mass is an upper bound of K, and w^2 is at
    most the largest eigenvalue of all B_i / m_i.
    """
    (i, j), count, dim = model.lattice.ends.T, len(model.lattice), model.dim
    d = model.lattice.position[j] - model.lattice.position[i]
    length = np.linalg.norm(d, axis=1)
    n = d / length[:, None]
    along = n[:, :, None] * n[:, None, :]
    found = (0.0, 0.0)
    for world in range(model.worlds):
        (k, l0, c), m = spring_constants(model, world), model.mass.numpy()[world].astype(np.float64)
        tense = np.maximum(0.0, 1.0 - l0 / length)  # relative transverse stiffness under tension
        block = 2.0 * k[:, None, None] * (along + tense[:, None, None] * (np.eye(dim) - along))
        both = [np.bincount(np.r_[i, j], np.r_[e, e], count) for e in block.reshape(len(k), -1).T]
        B = np.stack(both, axis=1).reshape(count, dim, dim) / m[:, None, None]
        omega = float(np.sqrt(np.linalg.eigvalsh(B).max()))
        found = max(found, (omega, float((c / k).max(initial=0.0) * omega / 2.0)))
    return found


def _highest(model: MassSpringModel, world: int) -> tuple[float, float]:
    Z = free_motions(model)
    root = 1.0 / np.sqrt(Z.T.power(2) @ np.repeat(model.mass.numpy()[world].astype(np.float64), model.dim))
    K = Z.T @ stiffness_matrix(model, world) @ Z
    size = K.shape[0]
    if size < 2:
        return (float(root[0] * np.sqrt(K[0, 0])), 0.0) if size else (0.0, 0.0)
    operator = LinearOperator((size, size), matvec=lambda u: root * (K @ (root * u)), dtype=np.float64)
    start = np.random.default_rng(0).standard_normal(size)
    values, vectors = eigsh(operator, 1, which="LA", tol=1e-3, v0=start)
    residual = np.linalg.norm(operator @ vectors[:, 0] - values[0] * vectors[:, 0])
    omega = float(np.sqrt(values[0] + residual))
    k, _, c = spring_constants(model, world)
    return omega, float((c / k).max() * omega / 2.0)
