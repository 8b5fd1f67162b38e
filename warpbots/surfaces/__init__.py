"""Surfaces of shapes and of soft bodies as triangles, which pictures and files show."""

__all__ = []
