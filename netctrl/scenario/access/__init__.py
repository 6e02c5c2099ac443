"""Access link: premium traffic beside others."""
