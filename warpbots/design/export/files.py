"""Writes printed parts: one file for each part, in mm, and a report. Either all files are written or none."""

import ctypes
import locale
import re
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from warpbots.design.export.checks import Fault
from warpbots.design.export.report import PrintReport
from warpbots.output_files import replacing
from warpbots.scene.field_types import checked

if TYPE_CHECKING:
    import trimesh

__all__ = ["PrintError", "write"]

_REPORT = "report.md"


class PrintError(ValueError):
    """Raised if parts cannot be printed; the message names every fault.

    Attributes:
        faults: The faults that prevent printing.
    """

    def __init__(self, faults: tuple[Fault, ...]):
        """Make the message from the faults, one line for each."""
        lines = [f"{fault}" for fault in faults]
        super().__init__("\n".join([*lines, "nothing was written; use anyway=True to write it nevertheless"]))
        self.faults = faults


@checked
def write(
    folder: str | Path, report: PrintReport, format: Literal["stl", "3mf"] = "stl", anyway: bool = False
) -> list[Path]:
    """Write one file for each part, in mm, and the report as ``report.md``.

    Before a new file replaces an older file, trimesh reads the new file, and the result is compared with the part.

    Args:
        folder: Folder of the files; it is created if its parent exists.
        report: The result of `check`.
        format: ``"stl"`` for binary STL, or ``"3mf"``, a format that states the unit of length (millimetre).
        anyway: Whether to write the files even if faults prevent printing; the report names the faults.

    Returns:
        Paths of the files of the parts, then the path of the report.

    Raises:
        PrintError: There are faults that prevent printing.
        ValueError: The format is unknown, two parts would have the same file name, or a file differs from its part.
        OSError: The folder cannot be written to.
        ImportError: A package for 3MF is not installed.
    """
    if format not in ("stl", "3mf"):
        raise ValueError(f"write: format must be 'stl' or '3mf', got {format!r}")
    faults = tuple(fault for fault in report.faults if fault.prevents)
    if faults and not anyway:
        raise PrintError(faults)
    names = _file_names([part.name for part in report.parts], format)
    folder = Path(folder)
    made = not folder.exists()
    if made:
        folder.mkdir()
    paths = [folder / name for name in [*names, _REPORT]]
    try:
        with replacing(*paths) as temporary:
            for path, part in zip(temporary, report.parts, strict=False):
                (_write_3mf if format == "3mf" else _write_stl)(path, part.name, part.mesh)
                _compare(path, part.name, part.mesh)
            temporary[-1].write_text(report.text(names), encoding="utf-8")
    except BaseException:
        if made:
            folder.rmdir()
        raise
    return paths


def _file_names(parts: list[str], format: str) -> list[str]:
    """File names made of the names of the parts, with _ for characters that some file systems refuse."""
    names = [re.sub(r"[^\w.-]+", "_", part).strip("._") + f".{format}" for part in parts]
    lowered = [name.lower() for name in names]
    for k, name in enumerate(lowered):
        if name in lowered[:k] or name.startswith("."):
            raise ValueError(f"write: the part {parts[k]!r} has no file name of its own ({names[k]!r}); rename it")
    return names


def _write_stl(path: Path, name: str, mesh: "trimesh.Trimesh") -> None:
    mesh.export(path, file_type="stl")


def _write_3mf(path: Path, name: str, mesh: "trimesh.Trimesh") -> None:
    """Write a 3MF file with the library of the 3MF Consortium.

    The library refuses some attributes that trimesh would write.
    """
    try:
        import lib3mf
        import lxml  # noqa: F401  # with which trimesh reads 3MF
        import networkx  # noqa: F401
    except ImportError:
        raise ImportError('3MF needs lib3mf, lxml and networkx: pip install "warpbots[print]"') from None
    model = lib3mf.get_wrapper().CreateModel()
    model.SetUnit(lib3mf.ModelUnit.MilliMeter)
    part = model.AddMeshObject()
    part.SetName(name)
    part.SetGeometry(
        [lib3mf.Position((ctypes.c_float * 3)(*vertex)) for vertex in mesh.vertices],
        [lib3mf.Triangle((ctypes.c_uint32 * 3)(*face)) for face in mesh.faces],
    )
    model.AddBuildItem(part, lib3mf.get_wrapper().GetIdentityTransform())
    chosen = locale.setlocale(locale.LC_ALL)
    try:
        model.QueryWriter("3mf").WriteToFile(str(path))
    finally:
        locale.setlocale(locale.LC_ALL, chosen)  # lib3mf leaves the process in the locale "C", which reads ASCII alone


def _compare(path: Path, name: str, mesh: "trimesh.Trimesh") -> None:
    """Raise if the content of a file differs from the part."""
    import trimesh

    found = trimesh.load(path, force="mesh")
    assert isinstance(found, trimesh.Trimesh)
    same = np.allclose(found.bounds, mesh.bounds, atol=1e-3) and np.isclose(found.volume, mesh.volume, rtol=1e-4)
    if not (found.is_watertight and found.is_winding_consistent and same):
        raise ValueError(
            f"write: the file of the part {name!r} holds {found.volume:.6g} mm^3 "
            f"{'' if found.is_watertight else 'within an open mesh '}instead of {mesh.volume:.6g} mm^3; its mesh has "
            f"details below the precision of the format: simplify it"
        )
