"""The stage: files, layers, units, attributes, an inventory of its prims, and what holds for the whole scene."""

__all__: list[str] = []
