"""How tests compile printed C++."""

STRICT = ["-std=c++17", "-O2", "-ffp-contract=off"]
STRICT += ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
