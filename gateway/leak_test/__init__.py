"""Plants marked sessions and memory for made-up people in a scratch gateway, asks for everything as everybody, and
finds every mark that reached somebody whom the policy keeps it from."""
