"""Names, lists and problems in sentences for people."""
