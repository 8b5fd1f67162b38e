"""The stage: files, layers, units, attributes, an inventory of its prims, and settings of the whole scene."""

__all__: list[str] = []
