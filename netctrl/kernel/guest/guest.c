/* First process of a laboratory's kernel: carries out a plan that netctrl wrote, and ends the machine.
 *
 * A plan is a sequence of records {kind, length, payload}, as netctrl/kernel/plan.py writes them; so are the results.
 * Programs that poll would stop virtual time: everything here blocks, and makes few system calls, as each costs a
 * round trip between processes of the host.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NAMESPACE = 1, SYSCTL, NETLINK, CHANGE, WATCH, TCP_SINK, TCP_FLOW, UDP_SINK, UDP_FLOW, PROGRAM, RUN, WEB, CAPTURE, GATE };
enum { READING = 1, TRANSFER, ARRIVALS, OBJECT, ENDED, FAILED, STATUS, SAID };
enum { BESIDE, ALONE, PREPARED }; /* programs */

#define FOLDER "/run/netctrl"
#define FIRST_NAMESPACE 1000 /* descriptor of namespace 0: plans name namespaces of interfaces by it */
#define STACK (64 * 1024)
#define PAGE 4096
#define PAGES 256
#define BLOCK (PAGES * PAGE)
#define BATCH 256
#define UNSENT (64 * 1024)
#define LOW_WATER (30 * 1024)
#define BUFFER (64 << 20)
#define LOOK_NS 10000000ull
#define SNAP 128u /* of a packet that is captured [byte] */
#define SECOND 1000000000ull
#define FRAME 1514u /* longest one without a VLAN's tag [byte] */
#define TICKS(size) (((size) * 1000 + 63) / 64) /* of as many microseconds */
#define LINE 3 /* descriptor of a prepared program's line to us */
#define SO_TXTIME_ 61 /* SO_TXTIME, SCM_TXTIME */

static FILE *results;
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;
static uint64_t begin; /* CLOCK_MONOTONIC at time 0 of the plan */
static uint64_t ends;
static int64_t epoch; /* CLOCK_REALTIME - CLOCK_MONOTONIC */
/* What is sent is one page again and again: a new thread costs as much as the pages that its process has touched. */
static char zeros[PAGE];

static void put(uint32_t kind, const void *head, size_t head_size, const void *body, size_t body_size) {
  uint32_t words[2] = {kind, (uint32_t)(head_size + body_size)};
  pthread_mutex_lock(&writing);
  fwrite(words, sizeof words, 1, results);
  fwrite(head, head_size, 1, results);
  if (body_size) fwrite(body, body_size, 1, results);
  pthread_mutex_unlock(&writing);
}

static uint64_t now(clockid_t clock) {
  struct timespec at;
  clock_gettime(clock, &at);
  return at.tv_sec * SECOND + at.tv_nsec;
}

static void power_off(void) {
  fflush(NULL);
  sync();
  reboot(RB_POWER_OFF);
  pause();
}

static void end_run(void) {
  uint64_t at = begin ? now(CLOCK_MONOTONIC) - begin : 0;
  put(ENDED, &at, sizeof at, NULL, 0);
  power_off();
}

static void fail(const char *form, ...) {
  char text[512];
  va_list words;
  int error = errno;
  va_start(words, form);
  int length = vsnprintf(text, sizeof text, form, words);
  va_end(words);
  if (error) snprintf(text + length, sizeof text - length, ": %s", strerror(error));
  fprintf(stderr, "netctrl: %s\n", text);
  if (results) put(FAILED, text, strlen(text), NULL, 0);
  power_off();
}

#define CHECK(made, ...) do { if ((made) < 0) fail(__VA_ARGS__); } while (0)

static void sleep_until(uint64_t at) {
  uint64_t due = begin + at;
  struct timespec when = {due / SECOND, due % SECOND};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR)
    ;
}

static void enter(uint32_t number) { CHECK(setns(FIRST_NAMESPACE + number, CLONE_NEWNET), "enter namespace %u", number); }

static void thread(void *(*work)(void *), void *what) {
  pthread_t made;
  pthread_attr_t how;
  pthread_attr_init(&how);
  pthread_attr_setstacksize(&how, STACK);
  errno = pthread_create(&made, &how, work, what);
  if (errno) fail("start a thread");
  pthread_detach(made);
}

static void set(int socket, int level, int option, int value, const char *name) {
  CHECK(setsockopt(socket, level, option, &value, sizeof value), "set %s to %d", name, value);
}

static struct sockaddr_in place(uint32_t address, uint16_t port) {
  return (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = address};
}

/* ---- netlink ---- */

static int open_netlink(void) {
  int made = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  CHECK(made, "open a netlink socket");
  set(made, SOL_NETLINK, NETLINK_EXT_ACK, 1, "NETLINK_EXT_ACK");
  set(made, SOL_NETLINK, NETLINK_CAP_ACK, 1, "NETLINK_CAP_ACK");
  return made;
}

/* Send a prepared message that asks for an acknowledgement; `number` is its record's, for people. */
static void request(int socket, const void *message, uint32_t size, uint32_t number) {
  char answer[8192];
  CHECK(send(socket, message, size, 0), "send request %u", number);
  ssize_t got = recv(socket, answer, sizeof answer, 0);
  CHECK(got, "read the answer to request %u", number);
  struct nlmsghdr *head = (struct nlmsghdr *)answer;
  if (head->nlmsg_type != NLMSG_ERROR) return;
  struct nlmsgerr *error = NLMSG_DATA(head);
  if (!error->error) return;
  const char *said = "";
  struct rtattr *each = (struct rtattr *)(error + 1);
  if (head->nlmsg_flags & NLM_F_ACK_TLVS)
    for (int left = got - ((char *)each - answer); RTA_OK(each, left); each = RTA_NEXT(each, left))
      if (each->rta_type == NLMSGERR_ATTR_MSG) said = RTA_DATA(each);
  errno = -error->error;
  fail("request %u%s%s", number, *said ? ": " : "", said);
}

/* ---- records ---- */

struct change { uint64_t at; uint32_t namespace, number; const void *message; uint32_t size; };
struct query { uint32_t namespace, index, parent; };
struct watch { uint64_t interval; uint32_t samples, queries; struct query query[]; };
struct sink { uint32_t namespace, port, window, spare; char congestion[16]; }; /* window [byte]; 0: any */
struct tcp_flow {
  uint64_t start, stop, size, asked; /* asked: when the sender of the scenario began, before its access line */
  uint64_t every; /* 0: the size is sent once, else again and again, so much later */
  uint64_t pace; /* greatest rate of payload [byte/s]; 0: any */
  uint32_t namespace, group, to, from, port, segment;
  uint32_t mark, spare; /* by which a program that paces it finds its socket; 0: none does */
  char congestion[16];
};
struct web {
  struct tcp_flow flow;
  uint32_t pages, objects;
  uint64_t draws[]; /* for each page its pause before [ns], then the sizes of its objects */
};
struct udp_flow { uint32_t namespace, stream, to, port, payload, count; uint64_t times[]; };
struct program { uint64_t start; uint32_t namespace, way, words, settings; char text[]; };
struct run { uint64_t duration, grace; };
struct capture { uint64_t most; uint32_t namespace, index; char file[]; }; /* most [byte] */

struct gate { uint32_t namespace, index, limit, header, most, count; struct { uint64_t at, size; } rows[]; }; /* [byte] */

struct transfer { const struct tcp_flow *flow; int socket; uint32_t number; };

static struct transfer *transfers;
static uint32_t transfer_count;
static struct change *changes;
static uint32_t change_count;

/* ---- TCP ---- */

static void set_congestion(int socket, const char *name) {
  char known[256] = "";
  if (!setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name, strlen(name))) return;
  int error = errno, list = open("/proc/sys/net/ipv4/tcp_available_congestion_control", O_RDONLY | O_CLOEXEC);
  if (list >= 0 && read(list, known, sizeof known - 1) > 0) known[strcspn(known, "\n")] = 0;
  errno = error;
  fail("take the congestion control %s (there are %s)", name, known);
}

/* Something of a given size that is sent over a connection of its own. The sink finds it by the sender's address. */
struct object {
  const struct tcp_flow *flow;
  uint64_t size, asked;
  struct sockaddr_in from;
  struct object *next;
  sem_t arrived;
};

#define BUCKETS 4096
static struct object *objects[BUCKETS];
static pthread_mutex_t listed = PTHREAD_MUTEX_INITIALIZER;

static struct object **bucket(const struct sockaddr_in *from) {
  return &objects[(from->sin_addr.s_addr * 31 + from->sin_port) % BUCKETS];
}

static void list_object(struct object *object) {
  pthread_mutex_lock(&listed);
  object->next = *bucket(&object->from);
  *bucket(&object->from) = object;
  pthread_mutex_unlock(&listed);
}

/* The object that is sent from there, or NULL; its place in the list is told. */
static struct object *object_of(const struct sockaddr_in *from, struct object ***listed_at) {
  for (struct object **each = bucket(from); *each; each = &(*each)->next)
    if ((*each)->from.sin_addr.s_addr == from->sin_addr.s_addr && (*each)->from.sin_port == from->sin_port) {
      *listed_at = each;
      return *each;
    }
  return NULL;
}

/* How much of what is sent again and again over this connection comes at a time; 0: that isn't what it has. */
static uint64_t part_of(const struct sockaddr_in *from) {
  struct object **at;
  pthread_mutex_lock(&listed);
  struct object *object = object_of(from, &at);
  pthread_mutex_unlock(&listed);
  return object && object->flow->every ? object->size : 0;
}

/* The last byte of an object came, if one was sent over this connection: note it. */
static void object_came(const struct sockaddr_in *from) {
  uint64_t at = now(CLOCK_MONOTONIC) - begin;
  struct object **listed_at;
  pthread_mutex_lock(&listed);
  struct object *object = object_of(from, &listed_at);
  if (object) {
    struct { uint64_t asked, at, size; uint32_t group, spare; } row = {object->asked, at, object->size, object->flow->group, 0};
    put(OBJECT, &row, sizeof row, NULL, 0);
    if (object->flow->every) {
      object->asked += object->flow->every;
    } else {
      *listed_at = object->next;
      sem_post(&object->arrived);
    }
  }
  pthread_mutex_unlock(&listed);
}

/* A thread that takes connections, one after the other. */
struct absorber {
  int socket;
  struct sockaddr_in from;
  int low; /* how much is read at a time, at least */
  sem_t given;
  struct absorber *next; /* of those without a connection */
};

static struct absorber *idle;

/* Parts of a size. Waiting and reading are two calls: one that has read the beginning of a piece would wait for as much
 * again as a piece has. */
static void absorb_parts(struct absorber *own, uint64_t size) {
  for (uint64_t left = size;;) {
    int piece = left < LOW_WATER ? left : LOW_WATER;
    struct pollfd there = {.fd = own->socket, .events = POLLIN};
    set(own->socket, SOL_SOCKET, SO_RCVLOWAT, piece, "SO_RCVLOWAT");
    if (poll(&there, 1, -1) < 0) continue;
    ssize_t got = recv(own->socket, zeros, piece, MSG_TRUNC | MSG_DONTWAIT);
    if (got <= 0) return;
    left -= got;
    if (left) continue;
    object_came(&own->from);
    left = size;
  }
}

static void *absorb(void *what) {
  struct absorber *own = what;
  for (;;) {
    ssize_t got;
    while (sem_wait(&own->given))
      ;
    uint64_t part = part_of(&own->from);
    set(own->socket, SOL_SOCKET, SO_RCVLOWAT, own->low, "SO_RCVLOWAT");
    if (part) {
      absorb_parts(own, part);
    } else {
      while ((got = recv(own->socket, zeros, BLOCK, MSG_TRUNC | MSG_WAITALL)) > 0)
        ;
      if (!got) object_came(&own->from);
    }
    close(own->socket);
    pthread_mutex_lock(&listed);
    own->next = idle;
    idle = own;
    pthread_mutex_unlock(&listed);
  }
  return NULL;
}

static void *tcp_sink(void *what) {
  const struct sink *sink = what;
  enter(sink->namespace);
  int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(made, "open a TCP socket");
  struct sockaddr_in at = place(INADDR_ANY, sink->port);
  set_congestion(made, sink->congestion);
  /* The kernel takes it twice, of which the window is half. */
  if (sink->window) set(made, SOL_SOCKET, SO_RCVBUFFORCE, sink->window, "SO_RCVBUFFORCE");
  CHECK(bind(made, (struct sockaddr *)&at, sizeof at), "bind TCP port %u", sink->port);
  CHECK(listen(made, 4096), "listen on port %u", sink->port);
  for (;;) {
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    int socket = accept4(made, (struct sockaddr *)&from, &size, SOCK_CLOEXEC);
    CHECK(socket, "accept a connection");
    pthread_mutex_lock(&listed);
    struct absorber *absorber = idle;
    if (absorber) idle = absorber->next;
    pthread_mutex_unlock(&listed);
    if (!absorber) {
      absorber = calloc(1, sizeof *absorber);
      if (!absorber) fail("memory for a connection");
      sem_init(&absorber->given, 0, 0);
      thread(absorb, absorber);
    }
    absorber->socket = socket;
    absorber->from = from;
    absorber->low = sink->window ? 1 : LOW_WATER; /* what isn't read takes its part of a window */
    sem_post(&absorber->given);
  }
  return NULL;
}

/* A socket of a flow, bound to its address; the thread is in the flow's namespace. */
static int open_flow(const struct tcp_flow *flow, struct sockaddr_in *from) {
  int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(made, "open a TCP socket");
  set_congestion(made, flow->congestion);
  set(made, IPPROTO_TCP, TCP_MAXSEG, flow->segment, "TCP_MAXSEG");
  set(made, IPPROTO_TCP, TCP_NOTSENT_LOWAT, UNSENT, "TCP_NOTSENT_LOWAT");
  if (flow->every) set(made, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
  if (flow->mark) set(made, SOL_SOCKET, SO_MARK, (int)flow->mark, "SO_MARK");
  if (flow->pace) CHECK(setsockopt(made, SOL_SOCKET, SO_MAX_PACING_RATE, &flow->pace, 8), "pace a flow");
  *from = place(flow->from, 0);
  socklen_t size = sizeof *from;
  CHECK(bind(made, (struct sockaddr *)from, size), "bind a flow of group %u", flow->group);
  CHECK(getsockname(made, (struct sockaddr *)from, &size), "read the port of a flow of group %u", flow->group);
  return made;
}

/* At most a block of zeros, by one call. */
static ssize_t send_zeros(int socket, uint64_t most) {
  struct iovec parts[PAGES];
  struct msghdr message = {.msg_iov = parts};
  size_t left = most < BLOCK ? most : BLOCK;
  for (size_t part; left; left -= part) {
    part = left < PAGE ? left : PAGE;
    parts[message.msg_iovlen++] = (struct iovec){zeros, part};
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL);
}

static void send_on(int socket, const struct tcp_flow *flow, uint64_t size) {
  struct sockaddr_in to = place(flow->to, flow->port);
  /* A connection that isn't answered, or is ended while it is made, sends nothing. */
  if (connect(socket, (struct sockaddr *)&to, sizeof to)) return;
  for (uint64_t at = flow->start;; at += flow->every) {
    for (uint64_t left = size; !size || left;) {
      ssize_t sent = send_zeros(socket, size ? left : BLOCK);
      if (sent < 0) return; /* shut down at its end */
      left -= sent;
    }
    if (!flow->every) break;
    sleep_until(at + flow->every);
  }
  shutdown(socket, SHUT_WR);
}

static void *tcp_flow(void *what) {
  struct transfer *transfer = what;
  struct object object = {.flow = transfer->flow, .size = transfer->flow->size, .asked = transfer->flow->asked};
  enter(object.flow->namespace);
  int made = open_flow(object.flow, &object.from);
  sleep_until(object.flow->start);
  transfer->socket = made;
  if (object.size) list_object(&object);
  send_on(made, object.flow, object.size);
  for (;;) pause(); /* `object` is listed */
  return NULL;
}

/* A thread of a session, which sends one object of each page. */
struct worker {
  struct object object;
  sem_t given, *done;
};

static void *send_objects(void *what) {
  struct worker *worker = what;
  struct object *object = &worker->object;
  enter(object->flow->namespace);
  for (;;) {
    while (sem_wait(&worker->given))
      ;
    int made = open_flow(object->flow, &object->from);
    list_object(object);
    send_on(made, object->flow, object->size);
    while (sem_wait(&object->arrived))
      ;
    close(made);
    sem_post(worker->done);
  }
  return NULL;
}

/* Pages of objects, which are asked for at once; a pause after the last byte of each page. */
static void *web(void *what) {
  const struct web *web = what;
  const struct tcp_flow *flow = &web->flow;
  const uint64_t *draw = web->draws;
  struct worker *workers = calloc(web->objects, sizeof *workers);
  sem_t done;
  if (!workers) fail("memory for a session");
  sem_init(&done, 0, 0);
  for (uint32_t k = 0; k < web->objects; k++) {
    workers[k].object.flow = flow;
    workers[k].done = &done;
    sem_init(&workers[k].given, 0, 0);
    sem_init(&workers[k].object.arrived, 0, 0);
    thread(send_objects, &workers[k]);
  }
  uint64_t at = flow->start;
  for (uint32_t number = 0; number < web->pages; number++) {
    sleep_until(at + *draw++);
    uint64_t begun = now(CLOCK_MONOTONIC) - begin;
    if (begun >= flow->stop) break;
    for (uint32_t k = 0; k < web->objects; k++) {
      workers[k].object.size = *draw++;
      workers[k].object.asked = begun - (flow->start - flow->asked);
      sem_post(&workers[k].given);
    }
    for (uint32_t k = 0; k < web->objects; k++)
      while (sem_wait(&done))
        ;
    at = now(CLOCK_MONOTONIC) - begin;
  }
  for (;;) pause(); /* the workers use `done` */
  return NULL;
}

static void look_at(struct transfer *transfer, uint64_t at) {
  struct tcp_info seen;
  socklen_t size = sizeof seen;
  if (getsockopt(transfer->socket, IPPROTO_TCP, TCP_INFO, &seen, &size)) return;
  struct { uint64_t at; uint32_t number, rtt_us, least_us, window; uint64_t acked, sent, resent; } row = {
      at, transfer->number, seen.tcpi_rtt, seen.tcpi_min_rtt, seen.tcpi_snd_cwnd, seen.tcpi_bytes_acked,
      seen.tcpi_bytes_sent, seen.tcpi_bytes_retrans};
  put(TRANSFER, &row, sizeof row, NULL, 0);
}

/* ---- UDP ---- */

static void *udp_flow(void *what) {
  const struct udp_flow *flow = what;
  enter(flow->namespace);
  int made = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  CHECK(made, "open a UDP socket");
  struct { clockid_t clock; uint32_t flags; } timed = {CLOCK_MONOTONIC, 0};
  CHECK(setsockopt(made, SOL_SOCKET, SO_TXTIME_, &timed, sizeof timed), "set SO_TXTIME");
  set(made, SOL_SOCKET, SO_SNDBUFFORCE, BUFFER, "SO_SNDBUFFORCE");
  struct sockaddr_in to = place(flow->to, flow->port);
  CHECK(connect(made, (struct sockaddr *)&to, sizeof to), "connect stream %u", flow->stream);
  struct mmsghdr *messages = calloc(BATCH, sizeof *messages);
  struct iovec(*parts)[2] = calloc(BATCH, sizeof *parts);
  uint32_t(*heads)[2] = calloc(BATCH, sizeof *heads);
  char(*controls)[CMSG_SPACE(sizeof(uint64_t))] = calloc(BATCH, sizeof *controls);
  if (!messages || !parts || !heads || !controls) fail("memory for stream %u", flow->stream);
  for (uint32_t first = 0; first < flow->count;) {
    uint32_t last = first;
    /* As many as a batch holds, or are due within a second: the queue of the interface keeps them until then. */
    while (last < flow->count && last - first < BATCH && flow->times[last] < flow->times[first] + SECOND) {
      uint32_t k = last - first;
      heads[k][0] = flow->stream;
      heads[k][1] = last;
      parts[k][0] = (struct iovec){heads[k], sizeof heads[k]};
      parts[k][1] = (struct iovec){zeros, flow->payload - sizeof heads[k]};
      messages[k].msg_hdr = (struct msghdr){.msg_iov = parts[k], .msg_iovlen = 2, .msg_control = controls[k],
                                            .msg_controllen = sizeof controls[k]};
      struct cmsghdr *due = CMSG_FIRSTHDR(&messages[k].msg_hdr);
      *due = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SO_TXTIME_, .cmsg_len = CMSG_LEN(sizeof(uint64_t))};
      uint64_t at = begin + flow->times[last++];
      memcpy(CMSG_DATA(due), &at, sizeof at);
    }
    sleep_until(flow->times[first]);
    for (uint32_t done = first; done < last;) {
      int sent = sendmmsg(made, messages + done - first, last - done, 0);
      CHECK(sent, "send packets of stream %u", flow->stream);
      done += sent;
    }
    first = last;
  }
  return NULL;
}

/* Packets that have come, the beginnings of them, and when [ns after time 0]. */
struct batch {
  int socket;
  size_t size; /* of a beginning */
  char *starts;
  uint64_t at[BATCH];
  struct mmsghdr messages[BATCH];
  struct iovec parts[BATCH];
  char controls[BATCH][128];
};

static struct batch *batch_of(int socket, size_t size) {
  struct batch *made = calloc(1, sizeof *made);
  CHECK(socket, "open a socket for packets");
  if (!made || !(made->starts = calloc(BATCH, size))) fail("memory for packets");
  made->socket = socket;
  made->size = size;
  set(socket, SOL_SOCKET, SO_RCVBUFFORCE, 4 * BUFFER, "SO_RCVBUFFORCE");
  set(socket, SOL_SOCKET, SO_TIMESTAMPNS, 1, "SO_TIMESTAMPNS");
  return made;
}

/* How many have come, at most BATCH. */
static int receive(struct batch *batch) {
  for (int k = 0; k < BATCH; k++) {
    batch->parts[k] = (struct iovec){batch->starts + k * batch->size, batch->size};
    batch->messages[k].msg_hdr = (struct msghdr){.msg_iov = &batch->parts[k], .msg_iovlen = 1,
                                                 .msg_control = batch->controls[k],
                                                 .msg_controllen = sizeof batch->controls[k]};
  }
  int got = recvmmsg(batch->socket, batch->messages, BATCH, MSG_DONTWAIT | MSG_TRUNC, NULL);
  for (int k = 0; k < got; k++) {
    struct msghdr *head = &batch->messages[k].msg_hdr;
    struct timespec stamp = {0, 0};
    for (struct cmsghdr *each = CMSG_FIRSTHDR(head); each; each = CMSG_NXTHDR(head, each))
      if (each->cmsg_type == SO_TIMESTAMPNS) memcpy(&stamp, CMSG_DATA(each), sizeof stamp);
    batch->at[k] = stamp.tv_sec * SECOND + stamp.tv_nsec - epoch - begin;
  }
  return got;
}

static void *udp_sink(void *what) {
  const struct sink *sink = what;
  enter(sink->namespace);
  struct batch *batch = batch_of(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), 8);
  struct sockaddr_in at = place(INADDR_ANY, sink->port);
  CHECK(bind(batch->socket, (struct sockaddr *)&at, sizeof at), "bind UDP port %u", sink->port);
  struct { uint32_t stream, number, bytes, spare; uint64_t at; } rows[BATCH] = {0};
  for (uint64_t due = 0;; due += LOOK_NS) {
    sleep_until(due);
    int got;
    do {
      got = receive(batch);
      for (int k = 0; k < got; k++) {
        memcpy(&rows[k], batch->starts + k * batch->size, batch->size);
        rows[k].bytes = batch->messages[k].msg_len;
        rows[k].at = batch->at[k];
      }
      if (got > 0) put(ARRIVALS, rows, got * sizeof *rows, NULL, 0);
    } while (got == BATCH);
  }
  return NULL;
}

/* Packets as an interface begins to transmit them, as a pcap file with nanoseconds. */
static void *capture(void *what) {
  const struct capture *own = what;
  enter(own->namespace);
  struct batch *batch = batch_of(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(ETH_P_ALL)), SNAP);
  struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = own->index};
  CHECK(bind(batch->socket, (struct sockaddr *)&at, sizeof at), "capture packets");
  char path[128];
  snprintf(path, sizeof path, FOLDER "/%s", own->file);
  FILE *file = fopen(path, "w");
  if (!file) fail("open %s", path);
  struct { uint32_t magic; uint16_t major, minor; uint32_t zone, digits, snap, link; } head = {0xa1b23c4d, 2, 4, 0, 0, SNAP, 1};
  uint64_t written = fwrite(&head, 1, sizeof head, file);
  for (uint64_t due = 0;; due = due < ends && due + LOOK_NS > ends ? ends : due + LOOK_NS) {
    sleep_until(due);
    int got;
    do {
      got = receive(batch);
      for (int k = 0; k < got; k++) {
        uint32_t length = batch->messages[k].msg_len, kept = length < SNAP ? length : SNAP;
        uint32_t row[4] = {batch->at[k] / SECOND, batch->at[k] % SECOND, kept, length};
        if ((written += sizeof row + kept) > own->most) continue;
        fwrite(row, 1, sizeof row, file);
        fwrite(batch->starts + k * SNAP, 1, kept, file);
      }
    } while (got == BATCH);
    struct tpacket_stats seen = {0};
    socklen_t size = sizeof seen;
    errno = getsockopt(batch->socket, SOL_PACKET, PACKET_STATISTICS, &seen, &size) ? errno : 0;
    if (errno || seen.tp_drops) fail("capture all packets (%u are missing)", seen.tp_drops);
  }
  return NULL;
}

/* ---- links that may send so much at given times ---- */

/* Change of a token bucket (tbf), which has a token each microsecond and each byte takes one. It fills the bucket. */
struct bucket {
  struct nlmsghdr head;
  struct tcmsg at;
  struct rtattr kind;
  char name[4];
  struct rtattr options, parameters;
  struct tc_tbf_qopt shape;
  struct rtattr peak;
  uint32_t peak_rate[2];
  struct rtattr most;
  uint32_t most_size;
};

static struct tc_stats read_stats(const char *answer, ssize_t size) {
  struct tc_stats found = {0};
  struct rtattr *each = (struct rtattr *)(answer + offsetof(struct bucket, kind));
  for (int left = size - offsetof(struct bucket, kind); RTA_OK(each, left); each = RTA_NEXT(each, left))
    if (each->rta_type == TCA_STATS) memcpy(&found, RTA_DATA(each), sizeof found);
  return found;
}

/* The bucket is filled with what may be sent now, and at once closed again: then each packet counts as more than it holds.
 * A change alone sends nothing; a frame does that is too long for the bucket, which drops it and looks into its queue.
 * What is left waits for the rest of a packet that waits, and is lost where none does. */
static void *gate(void *what) {
  const struct gate *own = what;
  uint64_t credit = 0, sent = 0;
  char answer[8192], frame[FRAME + 4] = {[12] = 0x81}; /* a frame with a VLAN's tag may be so long */
  enter(own->namespace);
  CHECK(prctl(PR_SET_TIMERSLACK, 1), "wake in time");
  int netlink = open_netlink(), raw = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  CHECK(raw, "open a socket for frames");
  struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = (int)own->index};
  struct bucket open = {
      {sizeof open, RTM_NEWQDISC, NLM_F_REQUEST, 0, 0}, {.tcm_ifindex = (int)own->index, .tcm_parent = TC_H_ROOT},
      {sizeof open.kind + sizeof open.name, TCA_KIND}, "tbf",
      {sizeof open - offsetof(struct bucket, options), TCA_OPTIONS},
      {sizeof open.parameters + sizeof open.shape, TCA_TBF_PARMS},
      {.rate = {.linklayer = TC_LINKLAYER_ETHERNET, .overhead = own->header, .rate = 1000000},
       .peakrate = {.linklayer = TC_LINKLAYER_ETHERNET, .rate = UINT32_MAX}, .limit = own->limit},
      {sizeof open.peak + sizeof open.peak_rate, TCA_TBF_PRATE64}, {0, 1u << 30}, /* no time for any packet */
      {sizeof open.most + sizeof open.most_size, TCA_TBF_PBURST}, FRAME};
  struct bucket closed = open;
  closed.head.nlmsg_flags |= NLM_F_ECHO;
  closed.shape.rate.mpu = UINT16_MAX;
  closed.shape.buffer = TICKS(FRAME + own->header);
  for (uint32_t k = 0; k <= own->count; k++) {
    if (k) sleep_until(own->rows[k - 1].at);
    credit += k ? own->rows[k - 1].size : 0;
    if (credit >= own->most + own->header) { /* a packet that comes while it is open must not be too long for it */
      open.shape.buffer = TICKS(credit);
      CHECK(send(netlink, &open, sizeof open, 0), "open a link");
      if (sendto(raw, frame, sizeof frame, 0, (struct sockaddr *)&to, sizeof to) >= 0 || errno != ENOBUFS)
        fail("look into the queue of a link");
    }
    CHECK(send(netlink, &closed, sizeof closed, 0), "close a link");
    ssize_t got = recv(netlink, answer, sizeof answer, 0);
    CHECK(got, "read what a link has sent");
    errno = ((struct nlmsghdr *)answer)->nlmsg_type == NLMSG_ERROR ? -((struct nlmsgerr *)(answer + NLMSG_HDRLEN))->error : 0;
    if (errno) fail("open and close a link");
    struct tc_stats seen = read_stats(answer, got);
    uint64_t all = seen.bytes + (uint64_t)seen.packets * own->header;
    credit = seen.qlen ? credit - (all - sent) : 0;
    sent = all;
  }
  return NULL;
}

/* ---- what happens at given times: readings, changes, ends of flows ---- */

static void *make_changes(void *unused) {
  (void)unused;
  for (uint32_t k = 0; k < change_count; k++) {
    struct change *change = &changes[k];
    sleep_until(change->at);
    enter(change->namespace);
    int socket = open_netlink();
    request(socket, change->message, change->size, change->number);
    close(socket);
  }
  return NULL;
}

static int by_stop(const void *one, const void *other) {
  const struct transfer *const *a = one, *const *b = other;
  uint64_t x = (*a)->flow->stop, y = (*b)->flow->stop;
  return (x > y) - (x < y);
}

static void *end_flows(void *unused) {
  (void)unused;
  struct transfer **order = calloc(transfer_count + 1, sizeof *order);
  for (uint32_t k = 0; k < transfer_count; k++) order[k] = &transfers[k];
  qsort(order, transfer_count, sizeof *order, by_stop);
  for (uint32_t k = 0; k < transfer_count && order[k]->flow->stop < ends; k++) {
    sleep_until(order[k]->flow->stop);
    struct linger at_once = {1, 0};
    setsockopt(order[k]->socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    shutdown(order[k]->socket, SHUT_RDWR);
  }
  free(order);
  return NULL;
}

static void *watch(void *what) {
  const struct watch *watch = what;
  int *sockets = calloc(watch->queries + 1, sizeof *sockets);
  static char answer[65536];
  for (uint32_t k = 0; k < watch->queries; k++) {
    enter(watch->query[k].namespace);
    sockets[k] = open_netlink();
  }
  for (uint32_t sample = 1; sample <= watch->samples; sample++) {
    uint64_t at = sample * watch->interval;
    sleep_until(at);
    for (uint32_t k = 0; k < watch->queries; k++) {
      struct { struct nlmsghdr head; struct tcmsg body; } ask = {
          {sizeof ask, RTM_GETQDISC, NLM_F_REQUEST | NLM_F_ECHO, sample, 0},
          {.tcm_ifindex = (int)watch->query[k].index, .tcm_parent = watch->query[k].parent}};
      CHECK(send(sockets[k], &ask, sizeof ask, 0), "ask for a queue");
      ssize_t got = recv(sockets[k], answer, sizeof answer, 0);
      CHECK(got, "read a queue");
      struct { uint64_t at; uint32_t query; } row = {at, k};
      put(READING, &row, 12, answer, got);
    }
    for (uint32_t k = 0; k < transfer_count; k++)
      if (transfers[k].socket >= 0) look_at(&transfers[k], at);
  }
  return NULL;
}

/* ---- programs ---- */

static void redirect(int to, const char *path) {
  int file = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
  CHECK(file, "open %s", path);
  CHECK(dup2(file, to), "redirect to %s", path);
  close(file);
}

/* Texts of a list, one behind the other; returns what stands behind them. */
static char *texts(char *text, uint32_t count, char **list) {
  for (uint32_t k = 0; k < count; k++, text += strlen(text) + 1) list[k] = text;
  list[count] = NULL;
  return text;
}

/* Start a program of the host's files, in its folder there; `line` is its descriptor LINE, -1: it has none. */
static pid_t execute(struct program *program, int line) {
  char **words = calloc(program->words + program->settings + 2, sizeof *words);
  char **settings = words + program->words + 1, *folder = program->text;
  if (!words) fail("memory for a program");
  texts(texts(folder + strlen(folder) + 1, program->words, words), program->settings, settings);
  pid_t child = fork();
  CHECK(child, "start %s", words[0]);
  if (child) return child;
  enter(program->namespace);
  redirect(STDOUT_FILENO, FOLDER "/stdout");
  redirect(STDERR_FILENO, FOLDER "/stderr");
  if (line >= 0) CHECK(dup2(line, LINE), "give %s its line", words[0]);
  signal(SIGPIPE, SIG_DFL);
  if (chdir(folder)) {
    fprintf(stderr, "%s: %s\n", folder, strerror(errno));
    _exit(126);
  }
  execve(words[0], words, settings);
  fprintf(stderr, "%s: %s\n", words[0], strerror(errno));
  _exit(127);
}

static const char *name_of(const struct program *program) { return program->text + strlen(program->text) + 1; }

static int exit_status(pid_t child) {
  int status;
  CHECK(waitpid(child, &status, 0), "wait for a program");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void check_status(const struct program *program, int code) {
  if (!code || now(CLOCK_MONOTONIC) >= begin + ends) return;
  errno = 0;
  fail("%s ended with status %d", name_of(program), code);
}

/* One that is alone ends the run, any other must not fail. */
static void *start_program(void *what) {
  struct program *program = what;
  sleep_until(program->start);
  int code = exit_status(execute(program, -1));
  if (program->way == ALONE) {
    uint64_t seen[2] = {code, now(CLOCK_MONOTONIC) - begin};
    put(STATUS, seen, sizeof seen, NULL, 0);
    end_run();
  }
  check_status(program, code);
  return NULL;
}

/* A program that is ready before time 0. It writes a byte to its line then, reads from it when time 0 is [ns of
 * CLOCK_MONOTONIC], and what it writes afterwards is a result. */
struct prepared { struct program *program; pid_t child; int line; uint32_t number; };

static struct prepared prepare(struct program *program, uint32_t number) {
  int line[2];
  char ready;
  CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, line), "make a line to %s", name_of(program));
  struct prepared made = {program, execute(program, line[1]), line[0], number};
  close(line[1]);
  if (read(line[0], &ready, 1) != 1) {
    int code = exit_status(made.child);
    errno = 0;
    fail("%s ended with status %d before the start", name_of(program), code);
  }
  return made;
}

static void *attend(void *what) {
  const struct prepared *own = what;
  char *said = NULL;
  size_t size = 0, room = 0;
  CHECK(write(own->line, &begin, sizeof begin), "tell %s when time 0 is", name_of(own->program));
  for (ssize_t got = 1; got > 0; size += got) {
    if (size == room && !(said = realloc(said, room += BLOCK))) fail("memory for what a program says");
    got = read(own->line, said + size, room - size);
    CHECK(got, "read what %s says", name_of(own->program));
  }
  put(SAID, &own->number, sizeof own->number, said, size);
  free(said);
  close(own->line);
  check_status(own->program, exit_status(own->child));
  return NULL;
}

/* ---- the plan ---- */

static void make_namespace(uint32_t number) {
  CHECK(unshare(CLONE_NEWNET), "make namespace %u", number);
  int made = open("/proc/thread-self/ns/net", O_RDONLY);
  CHECK(made, "open namespace %u", number);
  CHECK(dup3(made, FIRST_NAMESPACE + number, O_CLOEXEC), "keep namespace %u", number);
  close(made);
}

static void write_sysctl(const char *words) {
  uint32_t namespace;
  memcpy(&namespace, words, sizeof namespace);
  const char *path = words + sizeof namespace, *value = path + strlen(path) + 1;
  enter(namespace);
  int file = open(path, O_WRONLY);
  CHECK(file, "open %s", path);
  CHECK(write(file, value, strlen(value)), "write %s to %s", value, path);
  close(file);
}

static char *read_plan(size_t *size) {
  struct stat seen;
  int file = open(FOLDER "/plan", O_RDONLY);
  CHECK(file, "open the plan");
  CHECK(fstat(file, &seen), "look at the plan");
  char *plan = malloc(seen.st_size + 1);
  if (!plan) fail("memory for the plan");
  for (*size = 0; *size < (size_t)seen.st_size;) {
    ssize_t got = read(file, plan + *size, seen.st_size - *size);
    CHECK(got, "read the plan");
    if (!got) break;
    *size += got;
  }
  close(file);
  return plan;
}

static void make_device(const char *path, int major, int minor) {
  CHECK(mknod(path, S_IFCHR | 0666, makedev(major, minor)), "make %s", path);
  CHECK(chmod(path, 0666), "open up %s", path);
}

static void make_folder(const char *path, int mode) {
  CHECK(mkdir(path, mode), "make %s", path);
  CHECK(chmod(path, mode), "open up %s", path);
}

/* The root is the folder that the kernel runs in, with this program: another path on the kernel's command line would be
 * part of its entropy. The host's files take its place, read-only. What programs write is in memory, but for results,
 * which are in that folder. */
static void mount_all(void) {
  CHECK(mount("none", "/host", "hostfs", MS_RDONLY, "/"), "mount the host's files");
  CHECK(chdir("/host"), "enter the host's files");
  CHECK(mount(".", "/", NULL, MS_MOVE, NULL), "move the host's files");
  CHECK(chroot("."), "make the host's files the root");
  CHECK(chdir("/"), "enter the root");
  CHECK(mount("none", "/proc", "proc", 0, NULL), "mount /proc");
  CHECK(mount("none", "/sys", "sysfs", 0, NULL), "mount /sys");
  CHECK(mount("none", "/run", "tmpfs", 0, NULL), "mount /run");
  make_folder("/run/tmp", 01777);
  make_folder(FOLDER, 0755);
  CHECK(mount("none", FOLDER, "hostfs", 0, "/proc/self/cwd"), "mount " FOLDER);
  CHECK(mount("none", "/dev", "tmpfs", 0, NULL), "mount /dev");
  make_device("/dev/null", 1, 3);
  make_device("/dev/zero", 1, 5);
  make_device("/dev/full", 1, 7);
  make_device("/dev/random", 1, 8);
  make_device("/dev/urandom", 1, 9);
  make_device("/dev/tty", 5, 0);
  make_folder("/dev/net", 0755);
  make_device("/dev/net/tun", 10, 200);
  make_folder("/dev/shm", 01777);
  CHECK(symlink("/proc/self/fd", "/dev/fd"), "make /dev/fd");
}

int main(void) {
  struct rlimit files = {1 << 16, 1 << 16};
  size_t size;
  uint64_t grace = 0;
  signal(SIGPIPE, SIG_IGN);
  mount_all();
  CHECK(setrlimit(RLIMIT_NOFILE, &files), "raise the number of open files");
  results = fopen(FOLDER "/results", "w");
  if (!results) fail("open the file of results");
  setvbuf(results, NULL, _IOFBF, 1 << 20);
  char *plan = read_plan(&size);
  uint32_t namespaces = 0, number = 0, prepared_count = 0;
  struct prepared *prepared = NULL;
  int *netlink = NULL;
  for (size_t at = 0; at < size; number++) {
    uint32_t kind, length;
    memcpy(&kind, plan + at, 4);
    memcpy(&length, plan + at + 4, 4);
    char *body = plan + at + 8;
    at += 8 + length;
    if (kind == NAMESPACE) {
      make_namespace(namespaces);
      netlink = realloc(netlink, (namespaces + 1) * sizeof *netlink);
      netlink[namespaces++] = open_netlink();
    } else if (kind == SYSCTL) {
      write_sysctl(body);
    } else if (kind == NETLINK) {
      uint32_t namespace;
      memcpy(&namespace, body, 4);
      request(netlink[namespace], body + 4, length - 4, number);
    } else if (kind == CHANGE) {
      changes = realloc(changes, (change_count + 1) * sizeof *changes);
      struct change *change = &changes[change_count++];
      memcpy(&change->at, body, 8);
      memcpy(&change->namespace, body + 8, 4);
      change->message = body + 12;
      change->size = length - 12;
      change->number = number;
    } else if (kind == TCP_FLOW) {
      transfers = realloc(transfers, (transfer_count + 1) * sizeof *transfers);
      transfers[transfer_count] = (struct transfer){(void *)body, -1, transfer_count};
      transfer_count++;
    } else if (kind == PROGRAM && ((struct program *)body)->way == PREPARED) {
      prepared = realloc(prepared, (prepared_count + 1) * sizeof *prepared);
      prepared[prepared_count] = prepare((void *)body, prepared_count);
      prepared_count++;
    } else if (kind == RUN) {
      struct run *run = (void *)body;
      ends = run->duration;
      grace = run->grace;
    }
  }
  for (uint32_t k = 0; k < namespaces; k++) close(netlink[k]);
  begin = now(CLOCK_MONOTONIC);
  begin += 2 * SECOND - begin % SECOND; /* a round number, after all threads are ready */
  epoch = (int64_t)now(CLOCK_REALTIME) - (int64_t)now(CLOCK_MONOTONIC);
  uint32_t flow = 0;
  for (size_t at = 0; at < size;) {
    uint32_t kind, length;
    memcpy(&kind, plan + at, 4);
    memcpy(&length, plan + at + 4, 4);
    char *body = plan + at + 8;
    at += 8 + length;
    if (kind == TCP_SINK) thread(tcp_sink, body);
    if (kind == UDP_SINK) thread(udp_sink, body);
    if (kind == CAPTURE) thread(capture, body);
    if (kind == UDP_FLOW) thread(udp_flow, body);
    if (kind == TCP_FLOW) thread(tcp_flow, &transfers[flow++]);
    if (kind == GATE) thread(gate, body);
    if (kind == WATCH) thread(watch, body);
    if (kind == WEB) thread(web, body);
    if (kind == PROGRAM && ((struct program *)body)->way != PREPARED) thread(start_program, body);
  }
  for (uint32_t k = 0; k < prepared_count; k++) thread(attend, &prepared[k]);
  if (change_count) thread(make_changes, NULL);
  thread(end_flows, NULL);
  sleep_until(ends + grace);
  end_run();
}
