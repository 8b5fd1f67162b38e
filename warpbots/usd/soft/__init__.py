"""Soft bodies and sheets as prims, and prims whose points follow their particles."""

__all__: list[str] = []
