"""A bar along x that is held behind a face."""

import numpy as np

from warpbots.scene import Box, Constraint, Load, Material, Scene, SoftBody

E, RHO, LENGTH, DX = 1e5, 1000.0, 1.0, 1.0 / 8.0
"""Young's modulus [Pa], density [kg/m^dim], length before the face and size of a cell [m]; Poisson's ratio is 0."""


def bar(dim: int, damping: float = 0.0, stress: float = 0.0, face: float = 0.0) -> Scene:
    """Two cells wide, held two cells deep behind x = `face`, with a load on its last cell."""
    lower, upper = np.array([face - 2 * DX, *(0.0,) * (dim - 1)]), np.array([face + LENGTH, *(2 * DX,) * (dim - 1)])

    def part(first: float, last: float) -> Box:
        return Box((first, *lower[1:]), (last, *upper[1:]))

    regions = {"root": part(lower[0], face), "tip": part(upper[0] - DX, upper[0])}
    body = SoftBody("bar", Box(lower, upper), Material(E, 0.0, RHO, "linear", damping=damping), regions=regions)
    return Scene(
        (body,),
        gravity=(0.0,) * dim,
        domain=((-0.5,) * dim, (1.5, *(0.75,) * (dim - 1))),
        constraints=(Constraint("root"),),
        loads=(Load("tip", (stress * (2 * DX) ** (dim - 1), *(0.0,) * (dim - 1))),) if stress else (),
    )
