from __future__ import annotations

import pytest
from pydantic import BaseModel, ValidationError, model_validator

from pulsar_advisor.model.text.problems import problems


class Door(BaseModel):
    width: int
    key: str

    @model_validator(mode="after")
    def _fits(self) -> Door:
        if self.width > 2:
            raise ValueError("no door is that wide")
        return self


class House(BaseModel):
    doors: list[Door]


@pytest.mark.parametrize(
    ("doors", "said"),
    [
        ([{"width": 3, "key": "hunter2"}], ["doors.0: no door is that wide"]),
        (
            [{"width": 1, "key": "x"}, {"width": "hunter2"}],
            [
                "doors.1.width: Input should be a valid integer, unable to parse string as an integer",
                "doors.1.key: Field required",
            ],
        ),
    ],
)
def test_each_problem_is_named_with_its_place_and_without_the_value(doors: list[object], said: list[str]) -> None:
    with pytest.raises(ValidationError) as refused:
        House.model_validate({"doors": doors})
    assert problems(refused.value) == said


def test_a_problem_of_the_whole_document_has_no_place() -> None:
    with pytest.raises(ValidationError) as refused:
        Door.model_validate({"width": 3, "key": ""})
    assert problems(refused.value) == ["no door is that wide"]
