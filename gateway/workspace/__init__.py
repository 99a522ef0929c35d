"""Turns an agent's folder of Markdown files into texts that a turn may use, and back (design section 6)."""
