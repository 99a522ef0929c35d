"""Nobody raises themselves (design section 5): what a change would give is compared before it is made."""
