"""``warpbots new``: makes a project with a scene, a training script and a test."""

import argparse
import shutil
from pathlib import Path

from warpbots.output_files import temporary_folder

__all__ = ["new"]

_PROJECT = Path(__file__).parent / "project"


def new(options: argparse.Namespace) -> None:
    """Make a folder with copies of the files in `project/`; if an error occurs, no folder is left behind.

    Raises:
        OSError: A file or folder of the given name exists, or the folder cannot be made.
    """
    folder = Path(options.name)
    if folder.exists() or folder.is_symlink():
        raise FileExistsError(f"{folder} exists; choose another name, or remove it")
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"cannot make {folder}: there is no folder {folder.parent}")
    with temporary_folder(folder.parent) as temporary:
        made = temporary / folder.name
        shutil.copytree(_PROJECT, made, ignore=shutil.ignore_patterns("__pycache__"))
        for path in made.iterdir():
            path.write_text(path.read_text(encoding="utf-8").replace("PROJECT", folder.name), encoding="utf-8")
        made.replace(folder)
    print(f"made {folder}: {', '.join(sorted(path.name for path in folder.iterdir()))}")
    print(f"next: cd {folder}, then: python train.py --iterations 25")
