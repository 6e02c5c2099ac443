"""The Design file, and what each method writes into it."""
