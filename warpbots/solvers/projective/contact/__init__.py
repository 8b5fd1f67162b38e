"""Contact: detection, Coulomb's law, the solver for the contact forces of a world, and the adjoint of contacts."""

__all__: list[str] = []
