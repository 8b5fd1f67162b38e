"""Rigid bones in soft bodies: the nodes that are bound to bones, and a global step that moves nodes and bones."""

__all__: list[str] = []
