"""Elements: one file for each energy, nodes, and the table of all kinds."""

__all__: list[str] = []
