"""What callers can do: each operation with the action that is asked about before it runs."""
