"""Energies and momenta of matter, for the readings of solvers of soft bodies.

Each point of matter contributes its terms (T, U, p, L): kinetic energy, potential energy, momentum and angular
momentum. Sums over the matter of a world are computed in double precision and in a fixed order, so that they repeat to
the bit. On a CPU this is the order of the points; on a GPU with n lanes, each lane first adds up every n-th point, and
then the lanes are added up.
"""

import dataclasses
import functools

import warp as wp

from warpbots.numerics import launch, launch_lanes, launch_own_adjoint, parallel, real, sum_of_lanes, vector
from warpbots.solvers.array_fields import Array, ArrayFields

__all__ = [
    "MatterReadings",
    "MatterTerms",
    "add_up",
    "adj_add_up",
    "matter_readings",
    "matter_terms",
    "moment_kernel",
    "moment_type",
    "motion_kernel",
    "motion_terms",
    "terms_type",
]

_LANES = 64
_HALF = wp.constant(wp.float64(0.5))


def terms_type(dim: int) -> type:
    """Type of the terms (T, U, p, L) of a point; L is a number in 2D and a vector in 3D."""
    return wp.types.vector({2: 5, 3: 8}[dim], wp.float64)


def moment_type(dim: int) -> type:
    """Type of a torque or an angular momentum: a number in 2D, a vector in 3D."""
    return {2: real, 3: vector(3)}[dim]


_WIDE = {
    wp.float32: wp.float64, wp.vec2f: wp.vec2d, wp.vec3f: wp.vec3d,
    wp.float64: wp.float64, wp.vec2d: wp.vec2d, wp.vec3d: wp.vec3d,
    terms_type(2): terms_type(2), terms_type(3): terms_type(3),
}  # fmt: skip
"""Type of values -> double-precision type in which they are summed."""


@dataclasses.dataclass(frozen=True, eq=False)
class MatterReadings(ArrayFields[Array]):
    """Energies and momenta of a state.

    Attributes:
        kinetic_energy: Kinetic energy [J], shape (worlds,).
        elastic_energy: Elastic energy [J], shape (worlds,).
        potential_energy: Potential energy in the field of gravity, 0 at the origin [J], shape (worlds,).
        momentum: Momentum [kg m/s], shape (worlds,), vector.
        angular_momentum: Angular momentum about the origin [kg m^2/s], shape (worlds,): a number in 2D, a vector in 3D.
    """

    kinetic_energy: Array
    elastic_energy: Array
    potential_energy: Array
    momentum: Array
    angular_momentum: Array


def matter_readings(worlds: int, dim: int, device: wp.Device, requires_grad: bool) -> list[wp.array]:
    """Fresh arrays for the fields of `MatterReadings`."""
    return [
        wp.zeros(worlds, dtype=dtype, device=device, requires_grad=requires_grad)
        for dtype in (real, real, real, vector(dim), moment_type(dim))
    ]


@dataclasses.dataclass(frozen=True)
class MatterTerms:
    """Contributions of the matter of a world to its readings, with gradients.

    Attributes:
        dim: 2 or 3.
        motion: Terms (T, U, p, L) of each point [J, kg m/s, kg m^2/s], shape (worlds, n_points), vector.
        elastic: Elastic energies [J], shape (worlds, n_elements).
        total: Sums of the terms over all points, shape (worlds,), vector.
    """

    dim: int
    motion: wp.array
    elastic: wp.array
    total: wp.array

    def add_up(self, to: MatterReadings[wp.array]) -> None:
        """Write the sums over all points and elements."""
        add_up(self.elastic, to.elastic_energy)
        add_up(self.motion, self.total)
        launch(split_kernel(self.dim), len(self.total), self._split(to), [], self.total.device)

    def adj_add_up(self, to: MatterReadings[wp.array]) -> None:
        """Adjoint of `add_up`: write the gradients of the terms from the gradients of the readings."""
        self.total.grad.zero_()
        launch_own_adjoint(split_kernel(self.dim), len(self.total), self._split(to), self.total.device)
        adj_add_up(self.motion, self.total)
        adj_add_up(self.elastic, to.elastic_energy)

    def _split(self, to: MatterReadings[wp.array]) -> list[wp.array]:
        return [self.total, to.kinetic_energy, to.potential_energy, to.momentum, to.angular_momentum]


def matter_terms(worlds: int, points: int, elastic: wp.array, dim: int) -> MatterTerms:
    """Fresh arrays for the terms of `points` points in each world, beside elastic energies, shape (worlds, n)."""
    motion, total = (
        wp.zeros(shape, dtype=terms_type(dim), device=elastic.device, requires_grad=True)
        for shape in ((worlds, points), worlds)
    )
    return MatterTerms(dim, motion, elastic, total)


@functools.cache
def motion_terms(dim: int) -> wp.Function:
    """Warp function from mass, position, velocity and gravity of a point to its terms."""
    vec, terms = vector(dim), terms_type(dim)

    if dim == 2:

        @wp.func
        def motion_terms_in_plane(m: wp.float64, x: vec, v: vec, g: vec):
            """m v^2 / 2, -m g . x, m v and x × m v."""
            at = wp.vec2d(x)
            p = m * wp.vec2d(v)
            kinetic = _HALF * wp.dot(p, wp.vec2d(v))
            return terms(kinetic, -m * wp.dot(wp.vec2d(g), at), p[0], p[1], at[0] * p[1] - at[1] * p[0])

        return motion_terms_in_plane

    @wp.func
    def motion_terms_in_space(m: wp.float64, x: vec, v: vec, g: vec):
        """m v^2 / 2, -m g . x, m v and x × m v."""
        at = wp.vec3d(x)
        p = m * wp.vec3d(v)
        L = wp.cross(at, p)
        kinetic = _HALF * wp.dot(p, wp.vec3d(v))
        return terms(kinetic, -m * wp.dot(wp.vec3d(g), at), p[0], p[1], p[2], L[0], L[1], L[2])

    return motion_terms_in_space


@functools.cache
def motion_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, points): terms of each point; differentiated by Warp."""
    vec, terms, motion = vector(dim), terms_type(dim), motion_terms(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.matter_{dim}d"))
    def measure_points(
        # model
        mass: wp.array2d[real],
        gravity: wp.array[vec],
        # state
        x: wp.array2d[vec],
        v: wp.array2d[vec],
        # out
        terms_out: wp.array2d[terms],
    ):
        """(T, U, p, L)."""
        w, i = wp.tid()
        terms_out[w, i] = motion(wp.float64(mass[w, i]), x[w, i], v[w, i], gravity[w])

    return measure_points


@functools.cache
def moment_kernel(dim: int) -> wp.Kernel:
    """Kernel over (worlds, supports, points): torques of the forces of points on supports; differentiated by Warp."""
    vec, moment = vector(dim), moment_type(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.matter_{dim}d"))
    def measure_moments(
        # state
        x: wp.array2d[vec],
        # work
        force: wp.array3d[vec],
        # out
        moment_out: wp.array3d[moment],
    ):
        """x × f, about the origin."""
        w, o, i = wp.tid()
        f = force[w, o, i]
        at = x[w, i]
        if wp.static(dim == 2):
            moment_out[w, o, i] = at[0] * f[1] - at[1] * f[0]
        else:
            moment_out[w, o, i] = wp.cross(at, f)

    return measure_moments


@functools.cache
def split_kernel(dim: int) -> wp.Kernel:
    """Kernel over worlds: the readings of `MatterTerms.total`; differentiated by Warp."""
    vec, terms, spin = vector(dim), terms_type(dim), moment_type(dim)

    @wp.kernel(module=wp.get_module(f"warpbots.matter_{dim}d"))
    def split_terms(
        # work
        total: wp.array[terms],
        # out
        kinetic_out: wp.array[real],
        potential_out: wp.array[real],
        momentum_out: wp.array[vec],
        spin_out: wp.array[spin],
    ):
        """T, U, p and L."""
        w = wp.tid()
        t = total[w]
        kinetic_out[w] = real(t[0])
        potential_out[w] = real(t[1])
        if wp.static(dim == 2):
            momentum_out[w] = vec(real(t[2]), real(t[3]))
            spin_out[w] = real(t[4])
        else:
            momentum_out[w] = vec(real(t[2]), real(t[3]), real(t[4]))
            spin_out[w] = vec(real(t[5]), real(t[6]), real(t[7]))

    return split_terms


def add_up(values: wp.array, total_out: wp.array) -> None:
    """Sum over the points of a world.

    Args:
        values: Values of the points, shape (worlds, n).
        total_out: Sum of the values in each world, shape (worlds,).
    """
    lanes = _LANES if parallel(values.device) else 1
    launch_lanes(_sum_kernel(values.dtype), values.shape[0], lanes, [values], [total_out], values.device)


def adj_add_up(values: wp.array, total: wp.array) -> None:
    """Adjoint of `add_up`: write the gradient with respect to `values` from the gradient with respect to `total`."""
    launch(_spread_kernel(values.dtype), values.shape, [total.grad], [values.grad], values.device)


def _sum_module(dtype: type) -> wp.Module:
    """Module of the kernels that sum values of type `dtype`."""
    name = {terms_type(dim): f"terms_{dim}d" for dim in (2, 3)}.get(dtype, dtype.__name__)
    return wp.get_module(f"warpbots.sums_{name}")


@functools.cache
def _sum_kernel(dtype: type) -> wp.Kernel:
    """Kernel over (worlds, lanes) that sums the values of points, for values of type `dtype`."""
    wide = _WIDE[dtype]

    total_of = sum_of_lanes(wide)

    @wp.kernel(module=_sum_module(dtype), enable_backward=False)
    def sum_points(values: wp.array2d[dtype], total_out: wp.array[dtype]):
        """S = sum_i a_i."""
        w, lane = wp.tid()
        total = wide(wp.float64(0.0))
        for i in range(lane, values.shape[1], wp.block_dim()):
            total += wide(values[w, i])
        added = total_of(total)
        if lane == 0:
            total_out[w] = dtype(added)

    return sum_points


@functools.cache
def _spread_kernel(dtype: type) -> wp.Kernel:
    """Kernel over (worlds, points): the adjoint of the sum, for values of type `dtype`."""

    @wp.kernel(module=_sum_module(dtype), enable_backward=False)
    def spread_total(total_adj: wp.array[dtype], values_adj_out: wp.array2d[dtype]):
        """a_i* = S* for the sum S of the values a_i; an asterisk marks a gradient."""
        w, i = wp.tid()
        values_adj_out[w, i] = total_adj[w]

    return spread_total
