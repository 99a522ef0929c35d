"""Turns a credential into the person who calls: token → principal → profile (design section 5)."""
