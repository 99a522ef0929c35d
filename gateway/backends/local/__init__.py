"""What lives in this process alone: its clock, its audit buffer and the epochs it has heard of."""
