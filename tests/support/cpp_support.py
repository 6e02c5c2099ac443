"""How tests compile printed C++."""

STRICT = [
    "-std=c++17",
    "-O2",
    "-ffp-contract=off",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wconversion",
    "-Wshadow",
    "-Werror",
]
