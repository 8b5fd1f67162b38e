"""Geometry: shapes of a scene as prims and prims as shapes, obstacles, and physics materials."""

__all__: list[str] = []
