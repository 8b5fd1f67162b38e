"""USD and mesh files with accidents: lines lost and doubled, other numbers, names and types, ends cut off, noise."""

import re
from pathlib import Path

import fuzz_scenes
import numpy as np

import warpbots as wb

EXAMPLES = Path(__file__).parents[2] / "usd_scenes"

_WORDS = ("Cube", "Mesh", "Sphere", "Xform", "float", "int", "token", "point3f[]", "rel", "def", "over", "uniform", "X")
_NUMBERS = ("0", "-1", "nan", "inf", "-inf", "1e39", "1e-320", "1e400", "99999999999", '"a"', "", "None", "[]", "(1,2)")


def originals(folder: Path, seed: int) -> Path:
    """A file that is sound: an example, or a random scene as warpbots writes it; a third of them binary."""
    rng = np.random.default_rng(seed)
    examples = sorted(EXAMPLES.glob("*.usda"))
    if rng.random() < 0.3:
        return examples[rng.integers(len(examples))]
    path = folder / f"scene{'.usdc' if rng.random() < 0.2 else '.usda'}"
    while True:
        draw = fuzz_scenes.Draw(seed)
        try:
            wb.usd.write(path, draw.scene()())
            return path
        except wb.SceneError:
            seed += 10**6


def spoilt(content: bytes, rng: np.random.Generator) -> bytes:
    """One accident."""
    text = content.isascii() and b"\n" in content
    if rng.random() < 0.15 or not text:  # in the bytes
        content = bytearray(content)
        at = int(rng.integers(len(content)))
        kind = rng.integers(3)
        if kind == 0:
            return bytes(content[:at])
        if kind == 1:
            content[at : at + 8] = rng.bytes(8)
        else:
            content[at:at] = rng.bytes(int(rng.integers(1, 64)))
        return bytes(content)
    lines = content.decode(errors="replace").splitlines(keepends=True)
    k = int(rng.integers(len(lines)))
    kind = rng.integers(6)
    if kind == 0:
        del lines[k : k + int(rng.integers(1, 4))]
    elif kind == 1:
        lines[k:k] = lines[k : k + int(rng.integers(1, 4))]
    elif kind == 2:
        j = int(rng.integers(len(lines)))
        lines[k], lines[j] = lines[j], lines[k]
    else:
        pattern = {3: r"-?\d+\.?\d*(e-?\d+)?", 4: r"[A-Za-z_:]+", 5: r'"[^"]*"|<[^>]*>'}[int(kind)]
        having = [i for i, line in enumerate(lines) if re.search(pattern, line)]
        if having:
            k = having[rng.integers(len(having))]
            words = list(re.finditer(pattern, lines[k]))
            word = words[rng.integers(len(words))]
            new = {3: _NUMBERS, 4: _WORDS, 5: ('""', '"abc"', "</A>", "</>", "<abc>", "@./a.usda@")}[int(kind)]
            lines[k] = lines[k][: word.start()] + new[rng.integers(len(new))] + lines[k][word.end() :]
    return "".join(lines).encode()


def read(folder: Path, seed: int) -> None:
    """Read a spoilt file, and write what was read."""
    rng = np.random.default_rng(seed)
    source = originals(folder, seed)
    content = source.read_bytes()
    for _ in range(rng.integers(1, 4)):
        content = spoilt(content, rng) or b"\n"
    path = folder / f"spoilt{source.suffix}"
    path.write_bytes(content)
    material = wb.Material(1e4) if rng.random() < 0.5 else None
    scene = wb.usd.read(path, material)
    wb.usd.write(folder / "again.usda", scene)


def read_mesh(folder: Path, seed: int) -> None:
    """Read a spoilt mesh, as a solid and as cloth."""
    import trimesh

    rng = np.random.default_rng(seed)
    bodies = [trimesh.creation.box((0.1, 0.2, 0.3)), trimesh.creation.icosphere(1, 0.1).apply_translation([1, 0, 0])]
    kind = ("obj", "stl", "stl_ascii", "ply", "off", "gltf", "glb", "dae")[rng.integers(8)]
    path = folder / f"spoilt.{kind.removesuffix('_ascii')}"
    thing = trimesh.Scene(bodies) if kind in ("gltf", "glb") else trimesh.util.concatenate(bodies)
    content = thing.export(file_type=kind)
    if kind == "gltf":
        for name, part in content.items():
            (folder / name).write_bytes(part)
        content = content["model.gltf"]
    content = content.encode() if isinstance(content, str) else content
    for _ in range(rng.integers(1, 4)):
        content = spoilt(content, rng) or b"\n"
    path.write_bytes(content)
    wb.shapes.load_sheet(path, 1e-3) if rng.random() < 0.3 else wb.shapes.load_mesh(path)
