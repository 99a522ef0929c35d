"""Turns HTTP into calls of the pipeline, and what it says into answers."""
