"""Construction of lattices of masses and springs, on the host, from the shapes of a scene."""

from warpbots.solvers.mass_spring.lattice.assembly import Lattice, LatticeConstants, assemble
from warpbots.solvers.mass_spring.lattice.lattice_cells import POISSONS_RATIO, SHEAR, Cells
from warpbots.solvers.mass_spring.lattice.merged_masses import attached
from warpbots.solvers.mass_spring.lattice.scattered import scattered_cells
from warpbots.solvers.mass_spring.lattice.truss_bars import finer, truss_cells
from warpbots.solvers.mass_spring.lattice.voxel import voxel_cells

__all__ = [
    "POISSONS_RATIO",
    "SHEAR",
    "Cells",
    "Lattice",
    "LatticeConstants",
    "assemble",
    "attached",
    "finer",
    "scattered_cells",
    "truss_cells",
    "voxel_cells",
]
