/* Law of a link's queue that sets a marking probability each epoch: a program inside the kernel, in front of the queue.
 *
 * The law is netctrl's, printed as C++ (law.h), and the classifier is that of `netctrl linux mark`. It needs no
 * interpreter and no library, so it makes the same system calls on all machines: each reading of the clock takes time
 * inside, and the kernel's random numbers depend on when and where they are asked for. It is ready before time 0, and
 * its results are the packets that were marked and dropped so far, and the probability, at each sample. */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "law.h"

namespace {

enum { LINE = 3, SETTINGS = 10, COUNTERS, PROGRAM }; /* descriptors, as in plan.py and marker.py */
const uint64_t SECOND = 1000000000;
const double DRAWS = 4294967296.0;

struct Settings { uint64_t threshold, deadline, drop; };
struct Counters { uint64_t packets, bytes, marked, dropped, spared, aggregates, segments; };
struct Row { uint64_t marked, dropped; double probability; };

template <class Made> Made check(Made made, const char *what) {
  if (made >= 0) return made;
  perror(what);
  exit(1);
}

uint64_t now() {
  timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec * SECOND + at.tv_nsec;
}

void sleep_until(uint64_t at) {
  timespec when = {time_t(at / SECOND), long(at % SECOND)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, nullptr) == EINTR)
    ;
}

int bpf(int command, bpf_attr &attributes, const char *what) {
  return check(int(syscall(SYS_bpf, command, &attributes, sizeof attributes)), what);
}

/* ---- the classifier ---- */

void make_map(int descriptor, uint32_t size) {
  bpf_attr attributes = {};
  attributes.map_type = BPF_MAP_TYPE_ARRAY;
  attributes.key_size = 4;
  attributes.value_size = size;
  attributes.max_entries = 1;
  check(dup2(bpf(BPF_MAP_CREATE, attributes, "make a map"), descriptor), "keep a map");
}

void element(int command, int map, void *value, const char *what) {
  uint32_t key = 0;
  bpf_attr attributes = {};
  attributes.map_fd = map;
  attributes.key = uint64_t(&key);
  attributes.value = uint64_t(value);
  bpf(command, attributes, what);
}

void set_threshold(uint64_t threshold) {
  Settings settings = {threshold, UINT64_MAX, 1};
  element(BPF_MAP_UPDATE_ELEM, SETTINGS, &settings, "set the probability");
}

Counters counts() {
  Counters found;
  element(BPF_MAP_LOOKUP_ELEM, COUNTERS, &found, "read the counters");
  return found;
}

/* Bytes of a word in hexadecimal, in its place. */
size_t decoded(char *word) {
  size_t size = strlen(word) / 2;
  for (size_t k = 0; k < size; k++) {
    char digits[3] = {word[2 * k], word[2 * k + 1], 0};
    word[k] = char(strtoul(digits, nullptr, 16));
  }
  return size;
}

void load_program(char *word) {
  bpf_attr attributes = {};
  attributes.prog_type = BPF_PROG_TYPE_SCHED_CLS;
  attributes.insn_cnt = decoded(word) / 8;
  attributes.insns = uint64_t(word);
  attributes.license = uint64_t("BSD");
  check(dup2(bpf(BPF_PROG_LOAD, attributes, "load the classifier"), PROGRAM), "keep the classifier");
}

/* ---- rtnetlink ---- */

char answer[65536];
int route;

/* The kernel's answer to a request, for a queue or class; its payload is at least that of an acknowledgement. */
nlmsghdr *asked(const void *request, size_t size, const char *what) {
  check(send(route, request, size, 0), what);
  ssize_t got = check(recv(route, answer, sizeof answer, 0), what);
  nlmsghdr *head = reinterpret_cast<nlmsghdr *>(answer);
  if (!NLMSG_OK(head, uint32_t(got))) errno = EBADMSG, check(-1, what);
  if (head->nlmsg_type == NLMSG_ERROR && (errno = -static_cast<nlmsgerr *>(NLMSG_DATA(head))->error)) check(-1, what);
  return head;
}

nlmsghdr *asked(uint16_t type, int interface, uint32_t handle, uint32_t parent, const char *what) {
  struct { nlmsghdr head; tcmsg body; } request = {};
  request.head.nlmsg_len = sizeof request;
  request.head.nlmsg_type = type;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ECHO;
  request.body.tcm_ifindex = interface;
  request.body.tcm_handle = handle;
  request.body.tcm_parent = parent;
  return asked(&request, sizeof request, what);
}

/* The attribute of a type among those of a length; null: there is none. */
rtattr *found(rtattr *each, int left, int type) {
  for (; RTA_OK(each, left); each = RTA_NEXT(each, left))
    if ((each->rta_type & NLA_TYPE_MASK) == type) return each;
  return nullptr;
}

/* Payload of an attribute within another one, zeros where there is none. */
template <class Value> Value inner(nlmsghdr *head, int outer, int type) {
  Value value = {};
  rtattr *all = found(TCA_RTA(NLMSG_DATA(head)), TCA_PAYLOAD(head), outer);
  rtattr *one = all ? found(static_cast<rtattr *>(RTA_DATA(all)), RTA_PAYLOAD(all), type) : nullptr;
  if (one && RTA_PAYLOAD(one) >= sizeof value) memcpy(&value, RTA_DATA(one), sizeof value);
  return value;
}

} // namespace

/* marker INTERFACE PARENT PACKET EPOCH INTERVAL SAMPLES CLASSIFIER FILTER PARAMETERS...: an interface's index, the class
 * that has the queue, the size of packets [byte], times [ns], the number of samples, instructions and the request that
 * attaches them in hexadecimal, and the law's parameters. */
int main(int count, char **words) {
  if (count != 9 + LAW_PARAMETERS) return 2;
  const int interface = atoi(words[1]);
  const uint32_t parent = strtoul(words[2], nullptr, 10);
  const double packet = strtod(words[3], nullptr);
  const uint64_t epoch = strtoull(words[4], nullptr, 10), interval = strtoull(words[5], nullptr, 10);
  const uint64_t samples = strtoull(words[6], nullptr, 10);
  const Law law = read_law(words + 9);
  Row *rows = static_cast<Row *>(calloc(samples + 1, sizeof *rows));
  if (!rows) check(-1, "memory for samples");
  make_map(SETTINGS, sizeof(Settings));
  make_map(COUNTERS, sizeof(Counters));
  set_threshold(0);
  load_program(words[7]);
  route = check(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE), "open a netlink socket");
  size_t size = decoded(words[8]);
  asked(words[8], size, "attach the classifier");
  uint64_t begin, threshold = 0;
  check(write(LINE, "", 1), "say that it is ready");
  if (read(LINE, &begin, sizeof begin) != sizeof begin) check(-1, "learn when time 0 is");
  sleep_until(begin);
  Law::State state;
  uint64_t before = now(), due = before, arrived = counts().bytes;
  for (uint64_t taken = 0;;) {
    due = std::max(due + epoch, before);
    for (uint64_t at; taken < samples && (at = begin + interval * (taken + 1)) <= due; taken++) {
      sleep_until(at);
      Counters seen = counts();
      rows[taken] = Row{seen.marked, seen.dropped, double(threshold) / DRAWS};
    }
    if (taken == samples) break;
    sleep_until(due);
    nlmsghdr *queue = asked(RTM_GETQDISC, interface, 0, parent, "read the queue");
    const double waiting = inner<gnet_stats_queue>(queue, TCA_STATS2, TCA_STATS_QUEUE).backlog;
    nlmsghdr *shaped = asked(RTM_GETTCLASS, interface, parent, 0, "read the link's rate");
    const uint64_t slow = inner<tc_htb_opt>(shaped, TCA_OPTIONS, TCA_HTB_PARMS).rate.rate;
    const double rate = std::max(slow, inner<uint64_t>(shaped, TCA_OPTIONS, TCA_HTB_RATE64));
    const Counters seen = counts();
    const uint64_t at = now();
    const double elapsed = double(at - before) / double(SECOND);
    state = law.Next(state, Seen{elapsed, double(seen.bytes - arrived) / packet, 0.0, waiting / packet, rate / packet});
    if (!(state.probability >= 0.0 && state.probability <= 1.0)) {
      fprintf(stderr, "the law's probability is %g\n", state.probability);
      return 1;
    }
    threshold = uint64_t(std::nearbyint(state.probability * DRAWS));
    set_threshold(threshold);
    before = at;
    arrived = seen.bytes;
  }
  const char *from = reinterpret_cast<const char *>(rows), *end = from + samples * sizeof *rows;
  for (ssize_t put; from < end; from += put) put = check(write(LINE, from, end - from), "tell the samples");
  return 0;
}
