"""Contact: detection, Coulomb's law, the forces of all contacts of a world, and their adjoint."""

__all__: list[str] = []
