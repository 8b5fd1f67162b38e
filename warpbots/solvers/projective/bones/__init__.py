"""Rigid bones in soft bodies: which nodes follow them, and a global step that moves both."""

__all__: list[str] = []
