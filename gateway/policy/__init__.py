"""What a request may do: facts, invariants, and the rows of a document, decided by Casbin on small slices."""
