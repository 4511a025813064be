"""One file per revision, in numerical order."""
