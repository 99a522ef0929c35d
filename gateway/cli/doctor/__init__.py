"""`gateway doctor`: looks at everything the gateway stands on, and says of each finding what to do."""
