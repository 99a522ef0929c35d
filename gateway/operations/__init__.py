"""What people and admins do over REST and the command line: operations of the same shape as the tools."""
