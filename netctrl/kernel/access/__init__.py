"""An access link in the kernel in virtual time: premium, regulated and cross traffic under a tracking law."""
