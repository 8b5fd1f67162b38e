"""Registers, stack and spills of kernels on a GPU, determined without a GPU.

    WARPBOTS_PARALLEL=1 python benchmarks/launches.py --ptx FOLDER
    pip install nvidia-cuda-nvcc
    python benchmarks/registers.py PTXAS FOLDER [--least 128]

PTXAS is the path of CUDA's assembler, which is `nvidia/cu13/bin/ptxas` in that package. FOLDER is the output of
`launches.py` or of `tests/test_cuda_source.py`.
"""

import argparse
import dataclasses
import pathlib
import re
import subprocess
import tempfile

__all__ = ["Needs", "assembled", "needs"]


@dataclasses.dataclass(frozen=True)
class Needs:
    """Resources that each thread of a kernel needs.

    Attributes:
        kernel: Name of the kernel.
        registers: Number of registers of 32 bits.
        stack: Size of the local memory [B].
        stores: Size of all spill stores [B].
        loads: Size of all spill loads [B].
    """

    kernel: str
    registers: int
    stack: int
    stores: int
    loads: int


def needs(said: str) -> list[Needs]:
    """Resources of every kernel, from the output of ``ptxas -v``."""
    kernels = re.findall(
        r"Compiling entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads"
        r".*?Used (\d+) registers",
        said,
        re.S,
    )
    return [Needs(_short(name), int(registers), *map(int, memory)) for name, *memory, registers in kernels]


def _short(entry: str) -> str:
    """Name of a kernel without the hash and the enclosing functions, which are part of the name of its entry."""
    name, _, direction = re.sub(r"(_kernel)?_[0-9a-f]{8}_cuda_kernel", "|", entry).partition("|_")
    return name.rpartition("__locals__")[2] + " (adjoint)" * (direction == "backward")


def assembled(program: str, path: pathlib.Path, arch: str = "sm_90") -> list[Needs]:
    """Resources of the kernels of a PTX file.

    Raises:
        RuntimeError: The assembler refuses the file.
    """
    with tempfile.NamedTemporaryFile(suffix=".ptx") as clean:
        clean.write(path.read_bytes().rstrip(b"\0"))  # Warp ends its PTX with a zero
        clean.flush()
        words = [program, "-v", f"-arch={arch}", "-o", "/dev/null", clean.name]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{path.name}: {done.stderr.strip()[-500:]}")
    return needs(done.stderr)


def main() -> None:
    """Print the table; the kernels with the most spills come first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ptxas", help="the assembler")
    parser.add_argument("folder", type=pathlib.Path, help="where the files of PTX are")
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument(
        "--least", type=int, default=0, help="registers below which a kernel without spills is left out"
    )
    options = parser.parse_args()
    rows = [
        row for path in sorted(options.folder.glob("*.ptx")) for row in assembled(options.ptxas, path, options.arch)
    ]
    rows.sort(key=lambda row: (-row.stores - row.loads, -row.registers))
    print("| kernel | registers | stack [B] | spill stores [B] | spill loads [B] |\n|---|---|---|---|---|")
    for row in rows:
        if row.registers >= options.least:
            print(f"| {row.kernel} | {row.registers} | {row.stack} | {row.stores} | {row.loads} |")


if __name__ == "__main__":
    main()
