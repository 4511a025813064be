"""What an error says of names from elsewhere is one line that controls nothing, wherever it is shown."""

from __future__ import annotations

import pickle

from pulsar_advisor.model.errors import Refused


def test_a_name_in_a_message_can_begin_no_line_of_its_own_and_control_no_terminal() -> None:
    assert str(Refused("no bundle 'x\nerror: none\x1b[2J'")) == r"no bundle 'x\nerror: none\x1b[2J'"


def test_an_error_comes_back_unchanged_from_another_process() -> None:
    assert str(pickle.loads(pickle.dumps(Refused("a\nb")))) == r"a\nb"
