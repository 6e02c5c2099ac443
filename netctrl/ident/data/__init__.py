"""What is identified from: signals in any form, their flaws, missing outputs and pure delays."""
