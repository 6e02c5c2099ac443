"""Access link: premium traffic that shares a link with other traffic."""
