"""Where results lie: the root and its folders, leases on them, the shapes of shared documents, plan files."""
