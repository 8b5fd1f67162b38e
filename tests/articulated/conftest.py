"""What tests of articulated bodies share."""

import pytest


@pytest.fixture
def write(tmp_path):
    def write(text, name="robot.xml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write
