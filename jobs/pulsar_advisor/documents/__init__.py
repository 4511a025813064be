"""The documents that stages write and read: one module for each kind, with its type, its version and its readers."""
