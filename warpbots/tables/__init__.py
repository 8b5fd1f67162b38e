"""Short tables of scenes and simulations, for `print` and for notebooks."""

from warpbots.tables.scene_table import scene_sections, scene_table
from warpbots.tables.table import Table, TableSection, size

__all__ = ["TableSection", "Table", "scene_sections", "scene_table", "size"]
