"""The state of one cluster at one moment, and the rules that its names and policies follow."""
