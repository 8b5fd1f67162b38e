"""MLS-MPM once more: written from the equations of the papers with plain loops over nodes, in PyTorch and float64.

It shares no code with warpbots: stresses are torch's derivatives of the energies, cable forces those of the cables'
energy, and all gradients are torch's own. Slow, and for one world at a time.

    Hu et al. 2019, "ChainQueen", eq. 4-11, 14-17; Hu et al. 2018, "A moving least squares material point method".
"""

import dataclasses
import itertools

import torch

from warpbots.scene import Cable, HalfSpace, Muscle, Pressure, Scene


@dataclasses.dataclass
class Particles:
    """One world: x, v (n, dim), C, F (n, dim, dim), E, nu, rho, V (n,), loads f (n, dim) and damping beta (n,)."""

    x: torch.Tensor
    v: torch.Tensor
    C: torch.Tensor
    F: torch.Tensor
    E: torch.Tensor
    nu: torch.Tensor
    rho: torch.Tensor
    V: torch.Tensor
    f: torch.Tensor
    beta: torch.Tensor | None = None


def polar_rotation(F: torch.Tensor) -> torch.Tensor:
    """Rotation of F by Newton's iteration R <- (R + R^-T)/2 (Higham 1986); quadratic, and so is its derivative."""
    R = F
    for _ in range(12):
        R = (R + torch.linalg.inv(R).transpose(-1, -2)) / 2
    return R


def energy_density(law: str, p: int, F: torch.Tensor, E: torch.Tensor, nu: torch.Tensor) -> torch.Tensor:
    """Psi of every particle, shape (n,)."""
    dim = F.shape[-1]
    mu, lam = E / (2 * (1 + nu)), E * nu / ((1 + nu) * (1 - 2 * nu))
    J = torch.linalg.det(F)
    I = torch.eye(dim, dtype=F.dtype)

    def norm2(A):
        return (A * A).sum((-1, -2))

    def trace(A):
        return A.diagonal(dim1=-2, dim2=-1).sum(-1)

    if law == "neo_hookean":
        Psi = mu / 2 * (norm2(F) - dim) - mu * torch.log(J) + lam / 2 * torch.log(J) ** 2
    elif law == "fixed_corotated":
        Psi = mu * norm2(F - polar_rotation(F)) + lam / 2 * (J - 1) ** 2
    elif law == "linear":
        e = (F + F.transpose(-1, -2)) / 2 - I
        Psi = mu * norm2(e) + lam / 2 * trace(e) ** 2
    elif law == "st_venant_kirchhoff":
        G = (F.transpose(-1, -2) @ F - I) / 2
        Psi = mu * norm2(G) + lam / 2 * trace(G) ** 2
    else:
        raise ValueError(f"there is no reference for {law!r}: write one")
    return Psi + (E / (3 * (1 - 2 * nu)) * (J - 1) ** p if p else 0.0)


def kirchhoff_stress(scene: Scene, rest: torch.Tensor, s: Particles, u: torch.Tensor) -> torch.Tensor:
    """P F^T with P = dPsi/dF, and u F sigma F^T for every stress actuator (eq. 15 as in A69)."""
    material = scene.bodies[0].material
    Psi = energy_density(material.law, material.incompressibility, s.F, s.E, s.nu)
    (P,) = torch.autograd.grad(Psi.sum(), s.F, create_graph=True)
    for k, actuator in enumerate(scene.actuators):
        if isinstance(actuator, Cable):
            continue
        box = scene.bodies[0].regions[actuator.region]
        lower, upper = (torch.tensor(c, dtype=rest.dtype) for c in (box.lower, box.upper))
        inside = ((rest >= lower) & (rest <= upper)).all(-1)
        if isinstance(actuator, Pressure):
            sigma = -actuator.max_pressure * torch.eye(rest.shape[1], dtype=rest.dtype)
        else:
            assert isinstance(actuator, Muscle)
            n = torch.tensor(actuator.direction, dtype=rest.dtype)
            n = n / n.norm()
            sigma = actuator.max_stress * torch.outer(n, n)
        P = P + inside[:, None, None] * (u[k] * s.F @ sigma)
    return P @ s.F.transpose(-1, -2) + viscous_stress(material.incompressibility, s)


def viscous_stress(p: int, s: Particles) -> torch.Tensor | float:
    """Hooke's law of the symmetric part of C, times beta."""
    if s.beta is None:
        return 0.0
    mu, lam = s.E / (2 * (1 + s.nu)), s.E * s.nu / ((1 + s.nu) * (1 - 2 * s.nu))
    lam = lam + (2 * s.E / (3 * (1 - 2 * s.nu)) if p == 2 else 0.0)
    d = (s.C + s.C.transpose(-1, -2)) / 2
    trace = d.diagonal(dim1=-2, dim2=-1).sum(-1)[:, None, None]
    return s.beta[:, None, None] * (
        2 * mu[:, None, None] * d + lam[:, None, None] * trace * torch.eye(d.shape[-1], dtype=d.dtype)
    )


def held_particles(scene: Scene, rest: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """For each constraint which particles it holds, and the projection onto what it permits."""
    found, I = [], torch.eye(rest.shape[1], dtype=rest.dtype)
    for constraint in scene.constraints:
        box = scene.bodies[0].regions[constraint.region]
        lower, upper = (torch.tensor(c, dtype=rest.dtype) for c in (box.lower, box.upper))
        permitted = 0.0 * I
        if constraint.direction is not None:
            n = torch.tensor(constraint.direction, dtype=rest.dtype)
            along = torch.outer(n, n) / n.dot(n)
            permitted = along if constraint.freedom == "line" else I - along
        found.append((((rest >= lower) & (rest <= upper)).all(-1), permitted))
    return found


def route_length(p: torch.Tensor) -> torch.Tensor:
    """sum |p_{i+1} - p_i|."""
    return (p[1:] - p[:-1]).norm(dim=1).sum()


def cable_forces(scene: Scene, rest: torch.Tensor, x: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """Minus the gradient of k/2 max(0, L - R (1 - u))^2, shape (n, dim)."""
    total = 0.0 * x
    for k, cable in enumerate(scene.actuators):
        if not isinstance(cable, Cable):
            continue
        waypoints = torch.tensor(cable.waypoints, dtype=rest.dtype)
        particle = torch.cdist(waypoints, rest).argmin(1)
        R = route_length(rest[particle]) if cable.rest_length is None else cable.rest_length
        p = x[particle]
        energy = cable.stiffness / 2 * torch.relu(route_length(p) - R * (1 - u[k])) ** 2
        (slope,) = torch.autograd.grad(energy, p, create_graph=True)
        total = total.index_add(0, particle, -slope)
    return total


def after_contact(scene: Scene, position: torch.Tensor, v: torch.Tensor, mu: torch.Tensor) -> torch.Tensor:
    """Velocity of one node after all obstacles it lies in, the one with the nearest surface first (section 3.2)."""
    touching = []
    for k, obstacle in enumerate(scene.obstacles):
        assert isinstance(obstacle.shape, HalfSpace)
        n = torch.tensor(obstacle.shape.normal, dtype=v.dtype)
        distance = float((position - torch.tensor(obstacle.shape.point, dtype=v.dtype)) @ n)
        if distance <= 0.0:
            touching.append((-distance, n, obstacle.condition, mu[k]))
    for _, n, condition, coefficient in sorted(touching, key=lambda c: c[0]):
        v_n = v @ n
        v_t = v - v_n * n
        if condition == "sticky":
            v = 0.0 * v
        elif condition == "slip" or (condition == "separate" and v_n < 0.0):
            v = v_t
        elif condition == "friction" and v_n < 0.0:
            sticks = v_t.detach().norm() <= -coefficient * v_n
            v = 0.0 * v if sticks else v_t * (1.0 + coefficient * v_n / v_t.norm())
    return v


def step(scene: Scene, rest, s: Particles, u, g, mu, dx: float, dt: float) -> Particles:
    """One step of `dt` [s]; nodes lie on multiples of `dx` [m].

    `rest` are the positions at rest, `u` the controls, `g` gravity, `mu` the obstacles' coefficients.
    """
    dim = s.x.shape[1]
    base = torch.floor(s.x.detach() / dx - 0.5)
    f = s.x / dx - base
    w = torch.stack([(1.5 - f) ** 2 / 2, 0.75 - (f - 1) ** 2, (f - 0.5) ** 2 / 2])
    offsets = [torch.tensor(o) for o in itertools.product(range(3), repeat=dim)]
    weight = [torch.stack([w[o[a], :, a] for a in range(dim)]).prod(0) for o in offsets]
    corner = base.long().min(0).values
    sides = base.long().max(0).values - corner + 3
    strides = torch.tensor([int(sides[a + 1 :].prod()) for a in range(dim)])

    def flat(cell):
        return cell.long() @ strides

    # particles to grid, eq. 4-6
    m = s.rho * s.V
    tau = kirchhoff_stress(scene, rest, s, u)
    force = s.f + cable_forces(scene, rest, s.x, u)
    constraints = held_particles(scene, rest)
    A = m[:, None, None] * s.C - dt * 4 / dx**2 * s.V[:, None, None] * tau
    nodes = int(sides.prod())
    mass = torch.zeros(nodes, dtype=s.x.dtype)
    momentum = torch.zeros(nodes, dim, dtype=s.x.dtype)
    share = torch.zeros(nodes, 1 + len(constraints), dtype=s.x.dtype)
    held = torch.stack([torch.ones_like(s.V), *(p.to(s.V) for p, _ in constraints)], dim=1) * s.V[:, None]
    for o, w_i in zip(offsets, weight, strict=True):
        node = base + o
        d = node * dx - s.x
        index = flat(node - corner)
        mass = mass.index_add(0, index, w_i * m)
        q = m[:, None] * s.v + (A @ d[..., None])[..., 0] + dt * force
        momentum = momentum.index_add(0, index, w_i[:, None] * q)
        share = share.index_add(0, index, (w_i[:, None] * held).detach())

    # grid, eq. 7
    velocity = momentum / torch.where(mass > 0.0, mass, 1.0)[:, None] + dt * g
    cells = torch.tensor(list(itertools.product(*(range(int(k)) for k in sides))))
    velocity = torch.stack([
        after_contact(scene, (corner + cell) * dx, v, mu) if m_i > 0.0 else v
        for cell, v, m_i in zip(cells, velocity.unbind(), mass.detach(), strict=True)
    ])  # fmt: skip

    for k, (_, permitted) in enumerate(constraints):
        velocity = torch.where(share[:, 1 + k : 2 + k] > share[:, :1] / 9, velocity @ permitted, velocity)

    # grid to particles, eq. 8-11
    v, C = torch.zeros_like(s.v), torch.zeros_like(s.C)
    for o, w_i in zip(offsets, weight, strict=True):
        node = base + o
        v_i = velocity[flat(node - corner)]
        v = v + w_i[:, None] * v_i
        C = C + 4 / dx**2 * w_i[:, None, None] * v_i[:, :, None] * (node * dx - s.x)[:, None, :]
    for particles, permitted in constraints:
        v = torch.where(particles[:, None], v @ permitted, v)
    return dataclasses.replace(s, x=s.x + dt * v, v=v, C=C, F=s.F + dt * C @ s.F)
