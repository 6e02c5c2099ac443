/* getrandom(2) from a seed: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). For a laboratory, never for secrets. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static uint64_t state;
static int seeded;

static uint64_t next(void) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

ssize_t getrandom(void *buffer, size_t length, unsigned flags) {
  (void)flags;
  if (!seeded) {
    const char *seed = getenv("NETCTRL_SEED");
    state = seed ? strtoull(seed, NULL, 10) : 0;
    seeded = 1;
  }
  for (size_t at = 0; at < length;) {
    uint64_t word = next();
    size_t count = length - at < sizeof word ? length - at : sizeof word;
    memcpy((char *)buffer + at, &word, count);
    at += count;
  }
  return (ssize_t)length;
}
