"""What is installed, and what it runs on."""

from canvas import Drawing

EXTRAS = (
    ("notebook", "tutorials"),
    ("robots", "URDF, MJCF"),
    ("tet", "tetrahedra"),
    ("print", "3MF, STL"),
    ("rl, labs", "learning, courses"),
)


def draw() -> Drawing:
    """A stack of boxes."""
    d = Drawing(
        "The installed packages",
        "Your program or notebook uses warpbots, a pure Python package. warpbots uses NVIDIA Warp, which compiles "
        "kernels for the CPU or a CUDA GPU at their first use and keeps them, PyTorch for gradients, and OpenUSD for "
        "files. Extras add notebooks, robots from URDF and MJCF, tetrahedra of solids, printing, learning and labs.",
        366,
    )
    d.labelled((20, 20), (450, 56), "your notebook, your program", "wash", "grey")
    d.labelled((20, 92), (450, 76), "warpbots", "sky", "blue", "Python, nothing to compile")
    d.labelled((20, 184), (178, 76), "NVIDIA Warp", "mint", "green", "kernels")
    d.labelled((210, 184), (124, 76), "PyTorch", "wash", "grey", "gradients")
    d.labelled((346, 184), (124, 76), "OpenUSD", "wash", "grey", "files")
    d.arrow((109, 264), (109, 296), "green", 3)
    d.note((126, 288), "compiled at first use, then cached", anchor="start")
    d.labelled((20, 302), (83, 48), "CPU", "paper", "green")
    d.labelled((115, 302), (83, 48), "CUDA", "paper", "green")
    d.text((590, 40), "extras", bold=True)
    for k, (extra, what) in enumerate(EXTRAS):
        y = 60 + 60 * k
        d.box((500, y), (180, 52), "sand", "orange")
        d.text((590, y + 23), extra, bold=True, size=19)
        d.note((590, y + 44), what)
    return d
