"""Where results are stored: the root and its folders, leases on them, their index, plan files, archives."""
