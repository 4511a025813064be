"""A measurement renews its own rows of a file of results and leaves the others alone."""

from pathlib import Path

from results import record


def test_a_row_is_renewed_in_the_columns_that_were_measured(tmp_path: Path) -> None:
    file = tmp_path / "results.tsv"
    file.write_text("name\tmachine\tseconds\none\tidle\t3\ntwo\tbusy\t9\n")

    record(file, [{"name": "one", "seconds": "2"}, {"name": "three", "seconds": "4"}])

    assert file.read_text() == "name\tmachine\tseconds\none\tidle\t2\ntwo\tbusy\t9\nthree\t\t4\n"
