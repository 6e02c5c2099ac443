/* Starts a kernel as a process that ends with the one that started it, and that can't write to the host's files:
 *
 *   launch PARENT must|may PROGRAM ARGUMENTS...
 *
 * What it may write to is its working folder, and memory in /dev/shm. Everything else is a read-only mount in a
 * namespace of its own, which root can make, and other users with a user namespace. Where the host allows neither, the
 * process gives up its right to write by Landlock, which leaves it the files' times and permissions. `must`: without
 * either it doesn't start. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHARED "/dev/shm"
#ifndef MOUNT_ATTR_RDONLY
struct mount_attr { __u64 attr_set, attr_clr, propagation, userns_fd; };
#define MOUNT_ATTR_RDONLY 1
#endif

static int put(const char *path, const char *text) {
  int file = open(path, O_WRONLY | O_CLOEXEC);
  int failed = file < 0 || write(file, text, strlen(text)) < 0;
  if (file >= 0) close(file);
  return failed;
}

/* A mount namespace; for a user it is one of a user namespace, in which the user has the same number. */
static int own_mounts(void) {
  char users[64], groups[64];
  snprintf(users, sizeof users, "%u %u 1", geteuid(), geteuid());
  snprintf(groups, sizeof groups, "%u %u 1", getegid(), getegid());
  if (!unshare(CLONE_NEWNS)) return 0;
  return unshare(CLONE_NEWUSER | CLONE_NEWNS) || put("/proc/self/setgroups", "deny") || put("/proc/self/uid_map", users) ||
         put("/proc/self/gid_map", groups);
}

static int writable(const char *path, int yes, int flags) {
  struct mount_attr how = {.attr_set = yes ? 0 : MOUNT_ATTR_RDONLY, .attr_clr = yes ? MOUNT_ATTR_RDONLY : 0};
  return syscall(SYS_mount_setattr, AT_FDCWD, path, flags, &how, sizeof how);
}

static int mount_read_only(const char *folder) {
  struct stat seen;
  int memory = !stat(SHARED, &seen);
  return own_mounts() || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
         (memory && mount("none", SHARED, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")) ||
         mount(folder, folder, NULL, MS_BIND, NULL) || writable("/", 0, AT_RECURSIVE) || writable(folder, 1, 0) ||
         (memory && writable(SHARED, 1, 0)) || chdir(folder);
}

static int allow(int rules, const char *path, __u64 rights) {
  struct landlock_path_beneath_attr rule = {rights, open(path, O_PATH | O_CLOEXEC)};
  int failed = rule.parent_fd < 0 || syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  if (rule.parent_fd >= 0) close(rule.parent_fd);
  return failed;
}

/* All rights to change a file or folder; those that this version of Landlock doesn't have are left out. */
static int give_up_writing(const char *folder) {
  long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) return -1;
  struct landlock_ruleset_attr all = {LANDLOCK_ACCESS_FS_WRITE_FILE | 0x1ff0}; /* remove and make anything */
  if (version >= 2) all.handled_access_fs |= 1 << 13;                        /* link and rename across folders */
  if (version >= 3) all.handled_access_fs |= 1 << 14;                        /* truncate */
  int rules = syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);
  if (rules < 0 || allow(rules, folder, all.handled_access_fs)) return -1;
  allow(rules, SHARED, all.handled_access_fs);
  allow(rules, "/dev/null", LANDLOCK_ACCESS_FS_WRITE_FILE);
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_landlock_restrict_self, rules, 0);
}

int main(int count, char **words) {
  char folder[4096];
  if (count < 4) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != atoi(words[1])) return 1; /* which has ended meanwhile */
  if (!getcwd(folder, sizeof folder)) return 1;
  if (mount_read_only(folder) && give_up_writing(folder) && !strcmp(words[2], "must")) {
    fprintf(stderr, "netctrl: the host's files can't be made read-only: %s\n", strerror(errno));
    return 1;
  }
  execv(words[3], words + 3);
  fprintf(stderr, "netctrl: %s: %s\n", words[3], strerror(errno));
  return 1;
}
