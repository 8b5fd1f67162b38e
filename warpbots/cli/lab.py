"""``warpbots lab``: makes the notebooks of a lab, and grades what students hand in."""

import argparse

__all__ = ["grade_lab", "make_lab"]


def make_lab(options: argparse.Namespace) -> None:
    """Write the forms of labs into the folder of a course."""
    from warpbots.labs import forms, source

    for path in options.source:
        for made in forms.write(source.read(path), options.out):
            print(f"wrote {made}")


def grade_lab(options: argparse.Namespace) -> None:
    """Grade the notebooks in a folder; print a line for each student."""
    from warpbots.labs import grade, source

    lab = source.read(options.source)
    grades = grade.grade(options.folder, lab, options.out, options.parallel, options.timeout)
    names = [question.name for question in lab.questions]
    longest = max(len("student"), *(len(one.student) for one in grades))
    print("  ".join([f"{'student':{longest}}", *names, "total"]))
    for one in grades:
        shown = ["-" if one.points[name] is None else str(one.points[name]) for name in names]
        columns = [f"{points:>{len(name)}}" for points, name in zip(shown, names, strict=True)]
        print("  ".join([f"{one.student:{longest}}", *columns, f"{one.total:>5}"]))
        for remark in one.remarks:
            print(f"{'':{longest}}  {remark}")
    if any(question.open for question in lab.questions):
        print("open questions (-) are for a person to read")
