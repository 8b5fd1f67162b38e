"""The force of a spring and its derivative, for all integrators (Cronos eq. 2, with damping along the spring).

A spring of stiffness k, rest length l0 and damping c pulls mass i towards mass j with

    f = (k (1 - l0 / l) + c u / l^2) d,   d = x_j - x_i,  l = |d|,  u = d . (v_j - v_i),

and mass j with -f; a spring whose ends coincide has no direction, and f = 0. For a loss L let m = dL/df_i - dL/df_j.
Then with q = m . d / l

    dL/dx_j = (k (1 - l0/l) + c u/l^2) m + (k l0/l - 2 c u/l^2) q/l d + c q/l (v_j - v_i),   dL/dv_j = c q/l d,
    dL/dk = (l - l0) q,   dL/dl0 = -k q,   dL/dc = u q/l,

and dL/dx_i = -dL/dx_j, dL/dv_i = -dL/dv_j. So the adjoint of a spring has the form of a spring. If springs can break, a
spring exerts (1 - b) f, with b = 1 for a broken spring and b = 0 for any other; so m becomes (1 - b) m, and dL/db =
-m . f.

Both kernels run over rows; each mass has a row of springs. On a CPU a row holds only the springs to masses of higher
index, and each spring is visited once and adds to both its ends. If threads of a CPU share the rows, each thread visits
the springs that lead into its slice, too, and adds only to masses of its slice. On a GPU a row holds all springs of its
mass, and each spring is visited from both ends. So no two threads write to the same place: there are no atomics, and
every run gives the same bits.
"""

import functools

import numpy as np
import warp as wp

from warpbots.numerics import NODE, Slice, real, within
from warpbots.numerics.simd import add, deposit, dot, fetch, index, item, multiply_add, scale, subtract
from warpbots.solvers.device_arrays import device_array

__all__ = ["adj_pull_kernel", "edges_of", "pull_kernel", "row_arrays", "rows_of", "spring_arrays"]


@functools.cache
def row_arrays() -> type:
    """Warp struct type that lists the springs at each mass."""

    @wp.struct
    class RowArrays:
        """Springs at each mass, as compressed rows: one row for each mass, one entry for each spring of the row.

        All worlds share the rows.

        start: Index of the first entry of the row of each mass, followed by the total number of entries, shape
            (n_masses + 1,).
        other: For each entry, the index of the mass at the other end of the spring, shape (n_entries,).
        spring: For each entry, the index of the spring, shape (n_entries,); an empty array if entry i is spring i.
        masses: Number of masses of one world.
        springs: Number of springs of one world.
        """

        start: wp.array[int]
        other: wp.array[int]
        spring: wp.array[int]
        masses: int
        springs: int

    return RowArrays


@functools.cache
def spring_arrays() -> type:
    """Warp struct type of the constants of springs."""

    @wp.struct
    class SpringArrays:
        """Constants of the springs of all worlds; each array has shape (worlds * n_springs,).

        k: Stiffness of each spring [N/m].
        l0: Rest length of each spring [m].
        c: Damping along each spring [N s/m]; kernels do not read this array if no spring of the model has damping.
        """

        k: wp.array[real]
        l0: wp.array[real]
        c: wp.array[real]

    return SpringArrays


def rows_of(ends: np.ndarray, masses: int, device: wp.Device, gather: bool) -> object:
    """List the springs at each mass in a Warp struct (`row_arrays`).

    Args:
        ends: Indices of the two masses that each spring joins, the lower index first, shape (n_springs, 2). The
            springs are sorted by their first mass.
        masses: Number of masses.
        device: Device of the arrays.
        gather: If true, the row of a mass holds all springs of the mass; if false, only its springs to masses with a
            higher index.
    """
    row, other, spring = ends[:, 0], ends[:, 1], np.zeros(0, dtype=int)
    if gather:
        number = np.arange(len(ends))
        row, other, spring = np.append(row, other), np.append(other, row), np.append(number, number)
        order = np.lexsort((other, row))
        row, other, spring = row[order], other[order], spring[order]
    rows = row_arrays()()
    rows.start = device_array(np.searchsorted(row, np.arange(masses + 1)), device, int)
    rows.other, rows.spring = device_array(other, device, int), device_array(spring, device, int)
    rows.masses, rows.springs = masses, len(ends)
    return rows


def edges_of(ends: np.ndarray, masses: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the springs lead that join each mass and the masses after it to others, each of shape (masses,), int.

    Args:
        ends: Indices of the two masses that each spring joins, the lower index first, shape (n_springs, 2).
        masses: Number of masses.

    Returns:
        For each mass m, the first mass with a spring to m or to a mass after m; and the last mass to which a spring
        leads from m or from a mass before m. Without such a spring m itself counts.
    """
    first, last = np.arange(masses), np.arange(masses)
    np.minimum.at(first, ends[:, 1], ends[:, 0])
    np.maximum.at(last, ends[:, 0], ends[:, 1])
    return np.minimum.accumulate(first[::-1])[::-1], np.maximum.accumulate(last)


@functools.cache
def pull_kernel(damped: bool, gather: bool, breaks: bool, edge: bool = False) -> wp.Kernel:
    """Kernel over the masses of all worlds: adds the forces of the springs to the forces on the masses.

    Args:
        damped: Whether springs have damping.
        gather: Whether the row of a mass holds all its springs (`rows_of`).
        breaks: Whether springs can be broken.
        edge: Whether rows or their springs are partly outside of the slice (`Edges`).
    """
    RowArrays, SpringArrays, belongs = row_arrays(), spring_arrays(), within(edge)
    variant = f"{damped:d}{gather:d}{breaks:d}{edge:d}"

    @wp.kernel(module=wp.get_module(f"warpbots.springs.pull_{variant}"), enable_backward=False)
    def pull(
        # launch
        part: Slice,
        # model
        rows: RowArrays,
        springs: SpringArrays,
        # state
        x: wp.array[NODE],
        v: wp.array[NODE],
        broken: wp.array[real],
        # out
        force_out: wp.array[NODE],
    ):
        """f_i += f and f_j -= f for each spring of row i, with the force f of the spring (see the module docstring).

        If rows hold all springs of a mass, the kernel adds to f_i only.
        """
        i = part.start + wp.tid()
        own = belongs(part, i)
        w = i // rows.masses
        first, spring = w * rows.masses, w * rows.springs
        mass = i - first
        x_i = fetch(x, i)
        total = NODE()
        e = index(rows.start, mass) - 1
        last = index(rows.start, mass + 1) - 1
        while e < last:  # not a range, which takes a third of the instructions of a spring
            e += 1
            j = first + index(rows.other, e)
            into = belongs(part, j)
            if not (own or into):
                continue
            s = spring + e
            if wp.static(gather):
                s = spring + index(rows.spring, e)
            d = subtract(fetch(x, j), x_i)
            l2 = dot(d, d)
            if l2 == real(0.0):
                continue
            q = item(springs.k, s) * (real(1.0) - item(springs.l0, s) / wp.sqrt(l2))
            if wp.static(damped):
                q += item(springs.c, s) * dot(d, subtract(fetch(v, j), fetch(v, i))) / l2
            if wp.static(breaks):
                q *= real(1.0) - item(broken, s)
            total = multiply_add(total, q, d)
            if wp.static(not gather):  # noqa: SIM102 (decides what is compiled)
                if into:
                    deposit(force_out, j, -q, d)
        if own:
            force_out[i] = add(force_out[i], total)

    return pull


@functools.cache
def adj_pull_kernel(damped: bool, gather: bool, breaks: bool, constants: bool, edge: bool = False) -> wp.Kernel:
    """Kernel over the masses of all worlds: adjoint of `pull_kernel`.

    Args:
        damped: Whether springs have damping.
        gather: Whether the row of a mass holds all its springs (`rows_of`).
        breaks: Whether springs can be broken.
        constants: Whether the kernel adds to the gradients with respect to the constants of the springs.
        edge: Whether rows or their springs are partly outside of the slice (`Edges`).
    """
    RowArrays, SpringArrays, belongs = row_arrays(), spring_arrays(), within(edge)
    variant = f"{damped:d}{gather:d}{breaks:d}{constants:d}{edge:d}"

    @wp.kernel(module=wp.get_module(f"warpbots.springs.adj_pull_{variant}"), enable_backward=False)
    def adj_pull(
        # launch
        part: Slice,
        # model
        rows: RowArrays,
        springs: SpringArrays,
        # state
        x: wp.array[NODE],
        v: wp.array[NODE],
        broken: wp.array[real],
        force_adj: wp.array[NODE],
        # out
        springs_adj_out: SpringArrays,
        broken_adj_out: wp.array[real],
        x_adj_out: wp.array[NODE],
        v_adj_out: wp.array[NODE],
    ):
        """x_j* += dL/dx_j and x_i* -= dL/dx_j for each spring, with dL/dx_j from the module docstring.

        An asterisk marks the gradient with respect to a quantity. If rows hold all springs of a mass, the kernel adds
        to x_i* only. The gradients with respect to the velocities follow in the same way. With `constants` the kernel
        also adds to the gradients with respect to k, l0 and c, and with `breaks` to the gradient with respect to
        `broken`.
        """
        i = part.start + wp.tid()
        own = belongs(part, i)
        w = i // rows.masses
        first, spring = w * rows.masses, w * rows.springs
        mass = i - first
        x_i = fetch(x, i)
        m_i = fetch(force_adj, i)
        x_total = NODE()
        v_total = NODE()
        e = index(rows.start, mass) - 1
        last = index(rows.start, mass + 1) - 1
        while e < last:
            e += 1
            other = index(rows.other, e)
            j = first + other
            into = belongs(part, j)
            if not (own or into):
                continue
            s = spring + e
            if wp.static(gather):
                s = spring + index(rows.spring, e)
            d = subtract(fetch(x, j), x_i)
            m = subtract(m_i, fetch(force_adj, j))
            if wp.static(breaks):
                along_whole = dot(m, d)
                m = scale(real(1.0) - item(broken, s), m)
            k = item(springs.k, s)
            l2 = dot(d, d)
            if l2 == real(0.0):
                continue
            inverse = real(1.0) / wp.sqrt(l2)
            q = dot(m, d) * inverse
            slack = item(springs.l0, s) * inverse
            along_m = k * (real(1.0) - slack)
            along_d = k * slack * q * inverse
            if wp.static(damped):
                c = item(springs.c, s) * inverse
                r = subtract(fetch(v, j), fetch(v, i))
                u = dot(d, r) * inverse
                along_m += c * u
                along_d -= real(2.0) * c * u * q * inverse
                x_total = multiply_add(x_total, c * q, r)
                v_total = multiply_add(v_total, c * q, d)
                if wp.static(not gather):  # noqa: SIM102
                    if into:
                        deposit(x_adj_out, j, c * q, r)
                        deposit(v_adj_out, j, c * q, d)
            g = multiply_add(scale(along_m, m), along_d, d)
            x_total = add(x_total, g)
            if wp.static(not gather):  # noqa: SIM102
                if into:
                    deposit(x_adj_out, j, real(1.0), g)
            once = own and other > mass
            if wp.static(constants):
                if springs_adj_out.k and once:
                    springs_adj_out.k[s] = springs_adj_out.k[s] + (real(1.0) - slack) * q / inverse
                if springs_adj_out.l0 and once:
                    springs_adj_out.l0[s] = springs_adj_out.l0[s] - k * q
            if wp.static(constants and damped):  # noqa: SIM102 (decides what is compiled)
                if springs_adj_out.c and once:
                    springs_adj_out.c[s] = springs_adj_out.c[s] + u * q
            if wp.static(breaks):  # noqa: SIM102
                if once:
                    broken_adj_out[s] = broken_adj_out[s] - along_m * along_whole
        if own:
            x_adj_out[i] = subtract(x_adj_out[i], x_total)
        if wp.static(damped):  # noqa: SIM102
            if own:
                v_adj_out[i] = subtract(v_adj_out[i], v_total)

    return adj_pull
