"""Control laws as C99 without allocation, with test vectors and a program that checks them."""
