"""Where results are stored: the root and its folders, leases on them, the shapes of shared documents, plan files."""
