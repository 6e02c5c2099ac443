/* What is loaded before the kernel, and answers for the C library: getrandom(2) and ptrace(2). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

/* getrandom(2) from a seed: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). For a laboratory, never for secrets. */
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

/* ptrace(2) with all extended registers of the host's processor. Linux 6.1 as a program keeps their first 2696 bytes, and
 * a host whose processor has more, such as AMX's, refuses to set a part of them (EFAULT). The rest is set to 0, its
 * initial state: a process has AMX only when it asks for it, and the kernel inside doesn't know of it.
 *
 * Processes that it traces end with the kernel: otherwise what runs inside would go on outside. */
#define LARGEST (64 * 1024)
#define OLD_SET_OPTIONS 21 /* PTRACE_OLDSETOPTIONS */

typedef long (*ptrace_function)(int request, pid_t pid, void *address, void *data);

static ptrace_function of_library;
static size_t whole; /* bytes of the host's extended registers */
static char registers[LARGEST] __attribute__((aligned(64)));

/* How many bytes a request to set registers has to have. */
static size_t needed(pid_t pid) {
  if (!whole) {
    struct iovec all = {registers, sizeof registers};
    if (of_library(PTRACE_GETREGSET, pid, (void *)NT_X86_XSTATE, &all)) return 0;
    whole = all.iov_len;
    memset(registers, 0, sizeof registers);
  }
  return whole;
}

/* User Mode Linux always gives four arguments. */
long ptrace(enum __ptrace_request request, ...) {
  va_list rest;
  va_start(rest, request);
  pid_t pid = va_arg(rest, pid_t);
  void *address = va_arg(rest, void *), *data = va_arg(rest, void *);
  va_end(rest);
  if (!of_library) of_library = (ptrace_function)dlsym(RTLD_NEXT, "ptrace");
  struct iovec all = {registers, 0};
  if (request == PTRACE_SETREGSET && address == (void *)NT_X86_XSTATE) {
    const struct iovec *part = data;
    all.iov_len = needed(pid);
    if (part->iov_len < all.iov_len) {
      memcpy(registers, part->iov_base, part->iov_len);
      data = &all;
    }
  }
  if (request == PTRACE_SETOPTIONS || request == (enum __ptrace_request)OLD_SET_OPTIONS)
    data = (void *)((uintptr_t)data | PTRACE_O_EXITKILL);
  return of_library(request, pid, address, data);
}
