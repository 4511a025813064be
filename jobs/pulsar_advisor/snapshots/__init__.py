"""Raw snapshots as a whole: carry one to another machine, sum one up, remove old ones."""
