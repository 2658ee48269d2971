"""The large weights of geocalib, in the folder ``weights``."""
