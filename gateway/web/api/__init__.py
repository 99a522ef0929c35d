"""The REST API: each endpoint is one row of a table, an operation with its path and shapes (interface, REST)."""
