"""The real Linux kernel in virtual time: built as a user-mode program, booted for one run, and read."""
