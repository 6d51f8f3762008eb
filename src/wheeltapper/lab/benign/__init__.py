"""Runs that look ill to somebody and are not. One table a system, of the type in lab/faults."""
