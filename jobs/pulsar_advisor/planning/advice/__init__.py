"""From plans to advice: what to do, what it brings, and whether enough is known to say so."""
