"""Implicit Euler with incremental potential contact (Li et al. 2020), as a reference for soft bodies of tetrahedra.

Barriers, friction and continuous collision detection come from the IPC Toolkit. Everything else is independent of the
solvers of warpbots: neo-Hookean tetrahedra, lumped masses and Newton's method in NumPy, in double precision on one
thread. Matrices are dense, because for a hundred nodes dense factorisation is faster than sparse factorisation.
"""

import contextlib
import itertools
import time
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from degenerate_contacts import surfaces
from scipy.linalg import lapack

import warpbots as wb

try:
    import ipctk
except ImportError:
    raise ImportError("incremental potential contact needs the IPC Toolkit: pip install ipctk") from None

ACTIVATION, TOLERANCE, LIMIT = 0.01, 1e-5, 500
"""Distance at which barriers begin, last Newton step [mean edges], and largest number of iterations of a step."""
STICKING = 1e-3
"""Speed up to which friction is smoothed, 1e-3 of the speed of the bodies [m/s]."""

LEVI_CIVITA = np.cross(np.eye(3)[:, None], np.eye(3))
CURVATURE = np.einsum("ikm,jln->ijklmn", LEVI_CIVITA, LEVI_CIVITA).reshape(81, 9)
"""Second derivative of det F, linear in F."""


class Clock:
    """Counter of the CPU time of each part of the method [s]."""

    def __init__(self):
        self.seconds: dict[str, float] = defaultdict(float)

    @contextlib.contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        """Context whose CPU time is added to a part."""
        begun = time.process_time()
        yield
        self.seconds[part] += time.process_time() - begun


class Tetrahedra:
    """Linear tetrahedra with the energy density Psi = mu/2 (F : F - 3) - mu ln J + lambda/2 (ln J)^2.

    Args:
        rest: Positions of the nodes at rest [m], shape (nodes, 3).
        tets: Node indices of the tetrahedra, which have positive volumes, shape (tets, 4).
        E: Young's modulus [Pa].
        nu: Poisson's ratio.
    """

    def __init__(self, rest: np.ndarray, tets: np.ndarray, E: float, nu: float):
        corners = rest[tets]
        edges = (corners[:, 1:] - corners[:, :1]).swapaxes(1, 2)
        inverse = np.linalg.inv(edges)
        slopes = np.concatenate([-inverse.sum(axis=1, keepdims=True), inverse], axis=1)  # of the shape functions
        self.tets, self.slopes, self.volume = tets, slopes, np.linalg.det(edges) / 6.0
        self.mu, self.lam = E / (2.0 * (1.0 + nu)), E * nu / ((1.0 + nu) * (1.0 - 2.0 * nu))
        self.dF = np.einsum("tal,ik->tilak", slopes, np.eye(3)).reshape(-1, 9, 12)  # dF / dx
        dofs = (3 * tets[:, :, None] + np.arange(3)).reshape(-1, 12)
        self.size = rest.size
        self.rows, self.entries = dofs.ravel(), (dofs[:, :, None] * rest.size + dofs[:, None]).ravel()

    def deformation(self, x: np.ndarray) -> np.ndarray:
        """Deformation gradients F at the positions x, or their change for a displacement x."""
        return x[self.tets].swapaxes(1, 2) @ self.slopes

    def energy(self, x: np.ndarray) -> float:
        """The elastic energy [J]; infinite if a tetrahedron is inverted."""
        F = self.deformation(x)
        J = np.linalg.det(F)
        if J.min(initial=1.0) <= 0.0:
            return np.inf
        log = np.log(J)
        return self.volume @ (self.mu * (0.5 * (F * F).sum((1, 2)) - 1.5 - log) + 0.5 * self.lam * log**2)

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """The gradient of the energy [N], shape (nodes * 3,)."""
        F = self.deformation(x)
        across = self.lam * np.log(np.linalg.det(F)) - self.mu
        P = self.mu * F + across[:, None, None] * np.linalg.inv(F).swapaxes(1, 2)
        per_tet = (self.volume[:, None] * P.reshape(-1, 9))[:, None] @ self.dF
        return np.bincount(self.rows, per_tet.ravel(), self.size)

    def hessian(self, x: np.ndarray, projected: bool) -> np.ndarray:
        """The Hessian of the energy [N/m]; if `projected`, negative eigenvalues of each tetrahedron are removed."""
        F = self.deformation(x)
        J = np.linalg.det(F)
        cofactor = (J[:, None, None] * np.linalg.inv(F).swapaxes(1, 2)).reshape(-1, 9)
        across = (self.lam * np.log(J) - self.mu) / J
        along = (self.lam / J - across) / J
        A = along[:, None, None] * cofactor[:, :, None] * cofactor[:, None]
        A += across[:, None, None] * (F.reshape(-1, 9) @ CURVATURE.T).reshape(-1, 9, 9)
        A += self.mu * np.eye(9)
        if projected:
            values, vectors = np.linalg.eigh(A)
            A = (vectors * np.maximum(values, 0.0)[:, None]) @ vectors.swapaxes(1, 2)
        blocks = self.volume[:, None, None] * (self.dF.swapaxes(1, 2) @ A @ self.dF)
        return np.bincount(self.entries, blocks.ravel(), self.size**2).reshape(self.size, self.size)

    def longest(self, x: np.ndarray, p: np.ndarray) -> float:
        """Fraction t of the displacement p at which the first tetrahedron becomes flat: det(1 + t F^-1 dF) = 0."""
        change = np.linalg.inv(self.deformation(x)) @ self.deformation(p)
        far = (change**2).sum((1, 2)) >= 1.0
        values = np.linalg.eigvals(change[far])
        compressing = -values.real[np.abs(values.imag) < 1e-12]
        return 1.0 / max(compressing.max(initial=0.0), 1e-12)


class Contacts:
    """Barriers, lagged friction and collision detection of the IPC Toolkit; energies are multiplied by h^2.

    Args:
        start: Positions of all vertices, beginning with the vertices of soft bodies [m], shape (vertices, 3).
        faces: Vertex indices of the triangles.
        moving: Number of vertices of soft bodies; at least one of them takes part in every contact.
        dt: Length of a step h [s].
        activation: Distance beyond `least` at which barriers begin [m].
        least: Distance that is never reached [m].
        friction: Coulomb coefficient.
    """

    def __init__(
        self,
        start: np.ndarray,
        faces: np.ndarray,
        moving: int,
        dt: float,
        activation: float,
        least: float,
        friction: float,
    ):
        edges = np.unique(np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0)
        self.mesh = ipctk.CollisionMesh(start, edges, faces)
        self.mesh.can_collide = ipctk.make_static_obstacle_filter(moving)
        self.diagonal = ipctk.world_bbox_diagonal_length(start)
        self.dt, self.activation, self.least, self.coefficient = dt, activation, least, friction
        self.broad, self.narrow = ipctk.SweepAndPrune(), ipctk.AdditiveCCD()
        self.smooth, self.sliding = ipctk.FrictionPotential(STICKING), ipctk.TangentialCollisions()

    def begin(self, x: np.ndarray, mass: float, matter: np.ndarray, dofs: np.ndarray) -> None:
        """Begin a step at x: choose the stiffness of barriers that balances the gradients of matter and barriers."""
        self.before, pairs, unit = x, self.near(x), ipctk.BarrierPotential(self.activation, 1.0)
        push = unit.gradient(pairs, self.mesh, x)[dofs]
        self.stiffness, self.stiffest = ipctk.initial_barrier_stiffness(
            self.diagonal, unit.barrier, self.activation, mass, matter[dofs], push, dmin=self.least
        )
        self.distance = pairs.compute_minimum_distance(self.mesh, x)
        self.barrier = ipctk.BarrierPotential(self.activation, self.stiffness)

    def stiffen(self, x: np.ndarray, pairs: ipctk.NormalCollisions) -> None:
        """Double the stiffness if the least distance is tiny and still decreases."""
        last, self.distance = self.distance, pairs.compute_minimum_distance(self.mesh, x)
        self.stiffness = ipctk.update_barrier_stiffness(
            last, self.distance, self.stiffest, self.stiffness, self.diagonal, dmin=self.least
        )
        self.barrier = ipctk.BarrierPotential(self.activation, self.stiffness)

    def lag(self, x: np.ndarray) -> None:
        """Update friction with the normal forces and contact planes at x."""
        self.sliding.build(self.mesh, x, self.near(x), self.barrier, self.coefficient)

    def near(self, x: np.ndarray, candidates: ipctk.Candidates | None = None) -> ipctk.NormalCollisions:
        """Pairs that are close enough for a barrier."""
        pairs = ipctk.NormalCollisions()
        if candidates is None:
            pairs.build(self.mesh, x, self.activation, self.least, self.broad)
        else:
            pairs.build(candidates, self.mesh, x, self.activation, self.least)
        return pairs

    def along(self, x: np.ndarray, end: np.ndarray) -> ipctk.Candidates:
        """Pairs that may come close on the path from x to `end`."""
        candidates = ipctk.Candidates()
        candidates.build(self.mesh, x, end, 0.5 * (self.activation + self.least), self.broad)
        return candidates

    def free(self, x: np.ndarray, end: np.ndarray, candidates: ipctk.Candidates) -> float:
        """Fraction of the path that is free of collisions."""
        return candidates.compute_collision_free_stepsize(self.mesh, x, end, self.least, self.narrow)

    def energy(self, x: np.ndarray, pairs: ipctk.NormalCollisions) -> float:
        """Potential of barriers and friction [kg m^2]."""
        sliding = self.smooth(self.sliding, self.mesh, (x - self.before) / self.dt)
        return self.barrier(pairs, self.mesh, x) + self.dt * sliding

    def gradient(self, x: np.ndarray, pairs: ipctk.NormalCollisions) -> np.ndarray:
        """Gradient of barriers and friction [kg m], shape (vertices * 3,)."""
        sliding = self.smooth.gradient(self.sliding, self.mesh, (x - self.before) / self.dt)
        return self.barrier.gradient(pairs, self.mesh, x) + sliding

    def hessian(self, x: np.ndarray, pairs: ipctk.NormalCollisions, projected: bool) -> np.ndarray:
        """Hessian of barriers and friction [kg]; if `projected`, negative eigenvalues of each pair are removed."""
        method = ipctk.PSDProjectionMethod.CLAMP if projected else ipctk.PSDProjectionMethod.NONE
        sliding = self.smooth.hessian(self.sliding, self.mesh, (x - self.before) / self.dt, method)
        return (self.barrier.hessian(pairs, self.mesh, x, method) + sliding / self.dt).toarray()


class IncrementalPotential:
    """Steps of implicit Euler: minima of 1/2 |x - y|_M^2 + h^2 Psi + kappa B + h^2 D (Li et al. 2020).

    Args:
        described: Scene with soft bodies of tetrahedra, all with the same neo-Hookean material, obstacles of triangles,
            and constraints that hold half-spaces.
        dt: Length of a step h [s].
        lags: Largest number of updates of friction, each with the normal forces and contact planes at the last minimum.
        activation: Distance beyond `least` at which barriers begin [mean edges].
        least: Distance that surfaces keep [mean edges of the finest body].

    Attributes:
        iterations: Number of Newton iterations of each step.
        lagging: Number of steps in which a further update of friction would still change the minimum.
        clock: CPU time of each part.
    """

    def __init__(
        self, described: wb.Scene, dt: float, lags: int = 1, activation: float = ACTIVATION, least: float = 0.0
    ):
        bodies, (fixed, faces) = described.soft, surfaces(described)
        rest = np.concatenate([body.shape.vertices for body in bodies])
        counts = [len(body.shape.vertices) for body in bodies]
        first = np.cumsum([0, *counts[:-1]])
        tets = np.concatenate([body.shape.tets + n for body, n in zip(bodies, first, strict=True)])
        free, held = np.ones(len(rest), dtype=bool), {constraint.region for constraint in described.constraints}
        for body, n in zip(bodies, first, strict=True):
            for half in (body.regions[name] for name in held & set(body.regions)):
                free[n : n + len(body.shape.vertices)] &= (body.shape.vertices - half.point) @ half.normal > 0.0
        material, friction = bodies[0].material, bodies[0].friction
        if material.law != "neo_hookean" or any(body.material != material for body in bodies):
            raise ValueError("IncrementalPotential: all bodies must be of the same neo-Hookean material")
        if any(solid.friction != friction for solid in (*bodies, *described.obstacles)):
            raise ValueError("IncrementalPotential: all bodies and obstacles must have the same friction")
        self.solid = Tetrahedra(rest, tets[free[tets].any(axis=1)], material.youngs_modulus, material.poissons_ratio)
        volumes = np.concatenate([body.shape.volumes for body in bodies])
        self.mass = np.bincount(tets.ravel(), np.repeat(material.density * volumes / 4.0, 4))[:, None]
        pairs = np.concatenate([tets[:, list(pair)] for pair in itertools.combinations(range(4), 2)])
        edges = np.unique(np.sort(pairs, axis=1), axis=0)
        lengths = np.linalg.norm(rest[edges[:, 1]] - rest[edges[:, 0]], axis=1)
        body = np.searchsorted(first, edges[:, 0], side="right")
        finest = min(lengths[body == k].mean() for k in np.unique(body))
        self.edge = lengths.mean()
        self.x, self.fixed, self.dt, self.lags = rest, fixed, dt, lags
        self.contacts = Contacts(
            self.vertices(rest),
            faces,
            int(np.flatnonzero(free)[-1]) + 1,
            dt,
            activation * self.edge,
            least * finest,
            friction,
        )
        self.v = np.repeat([body.velocity or (0.0,) * 3 for body in bodies], counts, axis=0) * free[:, None]
        self.gravity = np.array(described.gravity) * free[:, None]
        self.dofs = np.flatnonzero(np.repeat(free, 3))
        self.iterations, self.lagging, self.clock = [], 0, Clock()
        ipctk.set_num_threads(1)
        ipctk.set_logger_level(ipctk.error)

    def vertices(self, x: np.ndarray) -> np.ndarray:
        """Positions of nodes and of vertices of obstacles, in the form that the IPC Toolkit expects."""
        return np.asfortranarray(np.concatenate([x, self.fixed]))

    def step(self) -> tuple[np.ndarray, int]:
        """Take a step; return the positions of the nodes [m], and the number of shorter steps, which is 0.

        Raises:
            SimulationError: Newton's method does not converge.
        """
        h, x = self.dt, self.x
        self.aim = x + h * self.v + h * h * self.gravity
        self.iterations.append(0)
        with self.clock("elasticity"):
            matter = (self.mass * (x - self.aim)).ravel() + h * h * self.solid.gradient(x)
        with self.clock("contact"):
            self.contacts.begin(self.vertices(x), self.mass.mean(), matter, self.dofs)
        for lag in range(self.lags):
            with self.clock("contact"):
                self.contacts.lag(self.vertices(x))
            before, x = self.iterations[-1], self.minimum(x)
            if lag and self.iterations[-1] == before:
                break
        else:
            self.lagging += 1
        self.x, self.v = x, (x - self.x) / h
        return self.x, 0

    def minimum(self, x: np.ndarray) -> np.ndarray:
        """Minimise the incremental potential by Newton's method, until a Newton step is small."""
        with self.clock("contact"):
            pairs = self.contacts.near(self.vertices(x))
        while True:
            p = self.direction(x, pairs)
            length = np.abs(p).max()
            if length <= TOLERANCE * self.edge:
                return x
            if self.iterations[-1] == LIMIT:
                raise wb.SimulationError(
                    f"no minimum in {LIMIT} iterations: the next would move nodes by {length:.2g} m"
                )
            self.iterations[-1] += 1
            x, pairs = self.descended(x, p, pairs)
            with self.clock("contact"):
                self.contacts.stiffen(self.vertices(x), pairs)

    def direction(self, x: np.ndarray, pairs: ipctk.NormalCollisions) -> np.ndarray:
        """Newton step; Hessians are projected if their sum is not positive definite."""
        h, dofs, n = self.dt, self.dofs, x.size
        with self.clock("elasticity"):
            gradient = (self.mass * (x - self.aim)).ravel() + h * h * self.solid.gradient(x)
        with self.clock("contact"):
            gradient += self.contacts.gradient(self.vertices(x), pairs)[:n]
        for projected in (False, True):
            with self.clock("elasticity"):
                H = h * h * self.solid.hessian(x, projected)
                H[np.diag_indices(n)] += np.repeat(self.mass, 3)
            with self.clock("contact"):
                H += self.contacts.hessian(self.vertices(x), pairs, projected)[:n, :n]
            with self.clock("Cholesky"):
                _, step, fault = lapack.dposv(H[np.ix_(dofs, dofs)], -gradient[dofs])
            if not fault:
                break
        p = np.zeros(n)
        p[dofs] = step
        return p.reshape(-1, 3)

    def descended(
        self, x: np.ndarray, p: np.ndarray, pairs: ipctk.NormalCollisions
    ) -> tuple[np.ndarray, ipctk.NormalCollisions]:
        """Search along the part of a step without collisions and inversions for positions of lower energy.

        Returns the positions and the pairs at these positions.
        """
        now = self.energy(x, pairs)
        with self.clock("elasticity"):
            part = min(1.0, 0.9 * self.solid.longest(x, p))
        begin, end = self.vertices(x), self.vertices(x + part * p)
        with self.clock("collision detection"):
            candidates = self.contacts.along(begin, end)
            part *= self.contacts.free(begin, end, candidates)
        while part > 1e-14:
            y = x + part * p
            with self.clock("contact"):
                pairs = self.contacts.near(self.vertices(y), candidates)
            if self.energy(y, pairs) <= now:
                return y, pairs
            part *= 0.5
        raise wb.SimulationError(f"the energy does not fall along a Newton step of {np.abs(p).max():.2g} m")

    def energy(self, x: np.ndarray, pairs: ipctk.NormalCollisions) -> float:
        """Value of the incremental potential, multiplied by h^2 [kg m^2]."""
        with self.clock("elasticity"):
            matter = 0.5 * float((self.mass * (x - self.aim) ** 2).sum()) + self.dt**2 * self.solid.energy(x)
        with self.clock("contact"):
            return matter + self.contacts.energy(self.vertices(x), pairs)
