"""Load as each load manager's leader sees it, and what becomes of it when bundles move."""
