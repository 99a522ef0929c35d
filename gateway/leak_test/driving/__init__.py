"""One file for each kind of route and tool: how it is asked for, of whom, from where, and what its answer may show."""
