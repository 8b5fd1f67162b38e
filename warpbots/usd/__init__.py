"""Reading and writing USD files; this is the only package that imports pxr."""

from warpbots.usd.reader import read, read_meshes
from warpbots.usd.writer import write

__all__ = ["read", "read_meshes", "write"]
