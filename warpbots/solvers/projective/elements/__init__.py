"""Elements: one file for each energy, a file for nodes, and the table of all kinds of elements."""

__all__: list[str] = []
