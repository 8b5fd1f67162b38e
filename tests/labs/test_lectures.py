"""Every lab: the right answers get all points, for several students; wrong ones and wrong units get none."""

import pytest
from submissions import LABS, hand_in, questions, solution_of, source, submission
from wrong_answers import CLOSE, UNITS, WRONG

from warpbots.labs import grade


def names(path):
    return path.stem


def changed(lab, name, answer):
    """An answer: itself, or the solution of a question with a part replaced."""
    if isinstance(answer, str):
        return answer
    right, other = answer
    solution = solution_of(lab, name)
    assert right in solution
    return solution.replace(right, other)


@pytest.mark.parametrize("path", LABS, ids=names)
def test_a_lab_has_goals_a_drawing_and_an_open_question(path):
    lab = source.read(path)
    assert 3 <= len(questions(lab)) <= 5
    assert sum(question.open for question in lab.questions) == 1
    first = lab.cells[0]
    for part in ("**Goals.**", "**Time.**", "**Before.**"):
        assert part in first.source
    assert first.attachments
    assert set(WRONG[lab.name]) == set(questions(lab))


@pytest.mark.slow
@pytest.mark.parametrize("path", LABS, ids=names)
def test_a_lab_tells_right_from_wrong(path, tmp_path):
    lab = source.read(path)
    folder = tmp_path / "submitted"
    for student in ("ada", "bob"):
        hand_in(folder, lab, student, submission(lab, student))
    wrong, units, close = (
        {name: changed(lab, name, answer) for name, answer in answers.get(lab.name, {}).items()}
        for answers in (WRONG, UNITS, CLOSE)
    )
    hand_in(folder, lab, "wrong", submission(lab, "wrong", wrong))
    hand_in(folder, lab, "blank", submission(lab, "blank", dict.fromkeys(questions(lab))))
    hand_in(folder, lab, "unit", submission(lab, "unit", units))
    if close:
        hand_in(folder, lab, "close", submission(lab, "close", close))
    grades = {one.student: one for one in grade.grade(folder, lab, timeout=120.0)}
    full = {question.name: question.points for question in lab.questions if not question.open}
    for student in ("ada", "bob"):
        assert {name: grades[student].points[name] for name in full} == full, grades[student].said
    for student in ("wrong", "blank"):
        assert grades[student].total == 0, grades[student].points
    assert {name for name in units if grades["unit"].points[name]} == set(), grades["unit"].points
    assert {name for name in close if grades["close"].points[name]} == set(), grades["close"].points
    assert all("no answer yet" in said for said in grades["blank"].said.values())
