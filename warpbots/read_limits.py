"""Limits the memory that reading a file may take, by the counts in its header and by its unpacked size."""

import contextlib
import json
import re
import struct
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

from warpbots.scene.memory_limit import refuse_excess
from warpbots.scene.record import SceneError

__all__ = ["bounded_memory", "refuse_claims", "refuse_unpacking"]

_RATIO = 60.0
"""Largest ratio of unpacked to packed bytes; meshes as XML have 5 to 30."""

_SMALL = 2**24
"""Unpacked size that is allowed at any ratio [bytes]."""

_HEADER = 2**20
"""Length of the text that is searched for counts in files that are partly binary [bytes]."""

_ROOM = 2**30
"""Memory that a reader may take in addition to its file, for libraries that it loads [bytes]."""

_TAGS = 1e7
"""Largest tag of nodes that any file may have."""

_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ": "xz", b"7z\xbc\xaf": "7-Zip", b"\x28\xb5\x2f\xfd": "zstd"}
"""First bytes of compressed files, whose size is unknown before they are unpacked."""

_CLAIM = "{}: it claims to have {} {}, and with its {} bytes it can have {} at most; export it again"


def refuse_unpacking(path: Path, each: float = 1.0) -> None:
    """Raise if a file is an archive that unpacks to much more than its size, or to an unknown size.

    Args:
        path: The file.
        each: Memory that reading the file takes, per unpacked byte [bytes].

    Raises:
        SceneError: The file is an archive that unpacks to too much, or to an unknown size.
    """
    with path.open("rb") as file:
        start = file.read(8)
    for mark, name in _PACKED.items():
        if start.startswith(mark):
            raise SceneError(f"{path}: the file is packed by {name}; unpack it first")
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as archive:
            total = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError) as fault:
        raise SceneError(f"{path}: the archive cannot be read: {fault}; get another copy") from fault
    size = path.stat().st_size
    if total > max(_SMALL, _RATIO * size):
        raise SceneError(
            f"{path}: its {size / 1e6:.3g} MB would unpack to {total / 1e6:.3g} MB, {total / size:.0f} times as much; "
            f"at most {_RATIO:g} times are read: unpack it, check what it holds, and export it again"
        )
    refuse_excess(total, each, f"{path}: its unpacked bytes", "use a smaller file or a machine with more memory")


def refuse_claims(path: Path) -> None:
    """Raise if the header of a mesh file claims more elements than the bytes of the file can hold.

    Readers of meshes allocate memory for the counts in a header before they check the contents. Archives are checked by
    `refuse_unpacking`.

    Raises:
        SceneError: The header claims too many elements, or `refuse_unpacking` raises.
    """
    refuse_unpacking(path)
    find = _CLAIMS.get(path.suffix.lower())
    if find is None:
        return
    size = path.stat().st_size
    for what, count, least in find(path):
        if count * least > size:
            raise SceneError(_CLAIM.format(path, f"{count:.3g}", what, size, f"{size / least:.3g}"))


Claims = Iterator[tuple[str, float, float]]
"""For each claim: the kind of the elements, their number, and the least number of bytes for each element."""


def _ply(path: Path) -> Claims:
    text = _start(path).partition(b"end_header")[0]
    least = 1.0 if re.search(rb"format\s+binary", text) else 2.0
    for element in re.finditer(rb"element\s+(\w+)\s+(\d+)((?:\s+property\s[^\n]*)*)", text):
        yield f"elements {element[1].decode()!r}", float(element[2]), least * max(1, element[3].count(b"property"))


def _off(path: Path) -> Claims:
    lines = [line.partition(b"#")[0] for line in _start(path).splitlines()]
    numbers = re.findall(rb"(?<![\w.])\d+(?![\w.])", b" ".join(lines)[:200])[:3]
    for what, number in zip(("vertices", "faces"), numbers, strict=False):
        yield what, float(number), 4.0


def _gmsh(path: Path) -> Claims:
    """Counts after the names of sections and, from version 4 on, largest tags.

    Readers allocate arrays of these sizes.
    """
    for section in re.finditer(rb"\$(Nodes|Elements|Periodic|Entities|PhysicalNames)\s+([\d \t]+)", path.read_bytes()):
        numbers = [float(number) for number in section[2].split()]
        for number in numbers[:2]:
            yield section[1].decode().lower(), number, 1.0
        for number in numbers[2:4]:
            if number > _TAGS:
                yield f"tags of {section[1].decode().lower()}", number, 1.0


def _vtk(path: Path) -> Claims:
    words = rb"(POINTS|CELLS|CELL_TYPES|POINT_DATA|CELL_DATA|VERTICES|LINES|POLYGONS)"
    for section in re.finditer(rb"(?m)^" + words + rb"\s+(?:[A-Za-z]\w*\s+)?(\d+)(?:[ \t]+(\d+))?", path.read_bytes()):
        for number in section.groups()[1:]:
            yield section[1].decode().lower(), float(number or 0), 1.0


def _vtu(path: Path) -> Claims:
    for name, number in re.findall(rb"Number[oO]f(\w+)\s*=\s*[\"']\s*(\d+)", path.read_bytes()):
        yield name.decode().lower(), float(number), 0.01  # coordinates may be packed


def _xdmf(path: Path) -> Claims:
    """Counts of the numbers in the file itself; data in separate HDF or binary files are not counted."""
    for item in re.finditer(rb"<(?:\w+:)?DataItem\b[^>]*>", path.read_bytes()):
        dimensions = re.search(rb"\bDimensions\s*=\s*[\"']([\d\s]+)", item[0])
        if dimensions and not re.search(rb"Format\s*=\s*[\"'](HDF|Binary)", item[0]):
            count = 1.0
            for number in dimensions[1].split():
                count *= float(number)
            yield "numbers", count, 1.0


def _glb(path: Path) -> Claims:
    with path.open("rb") as file:
        head = file.read(20)
        if len(head) < 20 or head[:4] != b"glTF":
            return
        length, kind = struct.unpack("<I4s", head[12:20])
        yield "bytes of JSON", float(length), 1.0
        if kind == b"JSON" and length <= path.stat().st_size:
            yield from _accessors(file.read(length), path.stat().st_size)


def _gltf(path: Path) -> Claims:
    beside = sum(file.stat().st_size for file in path.parent.iterdir() if file.is_file())
    yield from _accessors(path.read_bytes(), beside)


def _accessors(text: bytes, size: int) -> Claims:
    """Counts of glTF accessors that exceed `size`, the number of bytes of all buffers."""
    try:
        accessors = json.loads(text).get("accessors", [])
        counts = [float(accessor["count"]) for accessor in accessors]
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return  # the reader says what is wrong
    for count in counts:
        if count > size:
            yield "values in an accessor", count, 1.0


def _count_first(path: Path) -> Claims:
    """The first number of the file, which is a count in the formats of TetGen."""
    found = re.search(rb"(?m)^\s*(\d+)\b", re.sub(rb"#[^\n]*", b"", _start(path)))
    if found:
        yield "entries", float(found[1]), 2.0


def _medit(path: Path) -> Claims:
    words = rb"(Vertices|Triangles|Tetrahedra|Quadrilaterals|Hexahedra|Edges|Corners|Prisms|Pyramids)\s+(\d+)"
    for section in re.finditer(words, path.read_bytes(), re.IGNORECASE):
        yield section[1].decode().lower(), float(section[2]), 2.0


_CLAIMS: dict[str, Callable[[Path], Claims]] = {
    ".ply": _ply, ".off": _off, ".msh": _gmsh, ".vtk": _vtk, ".vtu": _vtu, ".xdmf": _xdmf, ".xmf": _xdmf, ".glb": _glb,
    ".gltf": _gltf, ".node": _count_first, ".ele": _count_first, ".mesh": _medit,
}  # fmt: skip
"""Functions that find the claims of a header, by ending of the file name; readers check a binary STL themselves."""


def _start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_HEADER)


@contextlib.contextmanager
def bounded_memory(path: Path, each: float) -> Iterator[None]:
    """Limit the memory of the block, which reads a file, to the most that this can need; effective only on Linux.

    Some formats have counts outside of their headers; `refuse_claims` does not check these counts. An allocation beyond
    the limit fails instead of filling the memory.

    Args:
        path: The file.
        each: Largest memory that reading the file takes, per byte of the file [bytes].

    Raises:
        SceneError: Reading the file would need more memory than the limit.
    """
    if sys.platform != "linux":
        yield
        return
    import resource

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = used + _ROOM + int(each * path.stat().st_size)
    resource.setrlimit(resource.RLIMIT_AS, (most if soft < 0 else min(soft, most), hard))
    try:
        yield
    except MemoryError as fault:
        raise SceneError(
            f"{path}: its {path.stat().st_size / 1e6:.3g} MB claim to need more than {(most - used) / 1e9:.3g} GB of "
            f"memory ({' '.join(str(fault).split())[:200] or 'out of memory'}); export it again"
        ) from fault
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
