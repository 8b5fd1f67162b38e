"""Contact: detection, Coulomb's law, the forces of all contacts of a world, and what each adds to the adjoint."""

__all__: list[str] = []
