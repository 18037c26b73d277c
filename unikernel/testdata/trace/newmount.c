/* fsopen(2), fsconfig(2), fsmount(2), move_mount(2), open_tree(2), fspick(2), mount_setattr(2), and MS_MOVE of mount(2). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *error(long r) { return r == -1 ? strerror(errno) : "ok"; }
/* Shows a result, and of a descriptor only that there is one. */
#define SHOW(x) do { errno = 0; long r_ = (long)(x); printf("%s: %s\n", #x, error(r_)); } while (0)
#define OPEN(fd, x) do { errno = 0; fd = (x); printf("%s: %s\n", #x, error(fd)); } while (0)

static int exists(const char *path) { return access(path, F_OK); }

static int make(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY, 0644);
	return fd < 0 ? -1 : close(fd);
}

static int opens(const char *path)
{
	int fd = open(path, O_WRONLY);
	return fd < 0 ? -1 : close(fd);
}

static void flags(const char *path)
{
	struct statvfs s;
	statvfs(path, &s);
	printf("flags of %s: %lx\n", path, s.f_flag & (ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC));
}

/* Shows the mounts below /tmp/nm in /proc/self/mounts: place, type, and whether they are read-only. */
static void mounts(void)
{
	char line[4096], from[1000], to[1000], type[100], how[1000];
	FILE *f = fopen("/proc/self/mounts", "r");
	while (fgets(line, sizeof line, f))
		if (sscanf(line, "%999s %999s %99s %999s", from, to, type, how) == 4 && !strncmp(to, "/tmp/nm", 7))
			printf("mounted: %s %s %.2s\n", to, type, how);
	fclose(f);
}

static int attr(int dir, const char *path, unsigned how, unsigned long set, unsigned long clear)
{
	struct mount_attr a = { set, clear };
	return mount_setattr(dir, path, how, &a, sizeof a);
}

static void configure(void)
{
	int fd, m;
	puts("-- configure");
	SHOW(fsopen("nosuch", 0));
	SHOW(fsopen("tmpfs", 2));
	SHOW(fsopen(NULL, 0));
	OPEN(fd, fsopen("tmpfs", FSOPEN_CLOEXEC));
	printf("close-on-exec %d\n", fcntl(fd, F_GETFD));
	SHOW(fsconfig(-1, FSCONFIG_CMD_CREATE, 0, 0, 0));
	SHOW(fsconfig(1000, FSCONFIG_CMD_CREATE, 0, 0, 0));
	SHOW(fsconfig(1, FSCONFIG_CMD_CREATE, 0, 0, 0));
	SHOW(fsconfig(fd, 100, 0, 0, 0));
	SHOW(fsconfig(fd, FSCONFIG_SET_FLAG, 0, 0, 0));
	SHOW(fsconfig(fd, FSCONFIG_SET_FLAG, "ro", "x", 0));
	SHOW(fsconfig(fd, FSCONFIG_SET_STRING, "size", 0, 0));
	SHOW(fsconfig(fd, FSCONFIG_SET_STRING, "size", "x", 0));
	SHOW(fsconfig(fd, FSCONFIG_SET_STRING, "nosuch", "1", 0));
	SHOW(fsconfig(fd, FSCONFIG_SET_FLAG, "nosuch", 0, 0));
	SHOW(fsconfig(fd, FSCONFIG_SET_FD, "x", 0, -1));
	SHOW(fsconfig(fd, FSCONFIG_SET_STRING, "source", "mem", 0));
	SHOW(fsconfig(fd, FSCONFIG_SET_STRING, "source", "mem", 0));
	SHOW(fsconfig(fd, FSCONFIG_SET_STRING, "size", "1m", 0));
	SHOW(fsconfig(fd, FSCONFIG_SET_STRING, "mode", "0751", 0));
	SHOW(fsmount(fd, 0, 0));
	SHOW(fsconfig(fd, FSCONFIG_CMD_RECONFIGURE, 0, 0, 0));
	SHOW(fsconfig(fd, FSCONFIG_CMD_CREATE, 0, "x", 0));
	SHOW(fsconfig(fd, FSCONFIG_CMD_CREATE, 0, 0, 0));
	SHOW(fsconfig(fd, FSCONFIG_CMD_CREATE, 0, 0, 0));
	SHOW(fsconfig(fd, FSCONFIG_SET_STRING, "size", "1m", 0));
	SHOW(fsmount(fd, 2, 0));
	SHOW(fsmount(fd, 0, 0x30));
	SHOW(fsmount(fd, 0, 1 << 30));
	SHOW(fsmount(1000, 0, 0));
	SHOW(fsmount(1, 0, 0));
	OPEN(m, fsmount(fd, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC));
	SHOW(fsmount(fd, 0, 0));
	struct stat s;
	fstat(m, &s);
	printf("mode %o\n", s.st_mode);
	SHOW(read(m, &s, 1));
	SHOW(mkdirat(m, "d", 0755));
	SHOW(fstatat(m, "d/..", &s, 0));
	SHOW(fstatat(m, "../tmp", &s, 0));
	SHOW(exists("/tmp/nm/a/d"));
	SHOW(move_mount(m, "", AT_FDCWD, "/tmp/nm/a", 0));
	SHOW(move_mount(m, "", AT_FDCWD, "/tmp/nm/a", 8 | MOVE_MOUNT_F_EMPTY_PATH));
	SHOW(move_mount(m, "", AT_FDCWD, "/tmp/nm/file", MOVE_MOUNT_F_EMPTY_PATH));
	SHOW(move_mount(m, "d", AT_FDCWD, "/tmp/nm/a", 0));
	SHOW(move_mount(1000, "", AT_FDCWD, "/tmp/nm/a", MOVE_MOUNT_F_EMPTY_PATH));
	SHOW(move_mount(m, "", AT_FDCWD, "/tmp/nm/nosuch", MOVE_MOUNT_F_EMPTY_PATH));
	SHOW(move_mount(m, "", AT_FDCWD, "/tmp/nm/a", MOVE_MOUNT_F_EMPTY_PATH));
	SHOW(exists("/tmp/nm/a/d"));
	SHOW(fstatat(m, "../file", &s, 0));
	flags("/tmp/nm/a");
	mounts();
	close(m);
	close(fd);
}

/* Shows whether file systems of which there is only one can be mounted by a process with another root, and proc be read-only there alone. */
static void inJail(void)
{
	puts("-- in a jail");
	mkdir("/tmp/nm/jail", 0755);
	mkdir("/tmp/nm/jail/proc", 0755);
	mkdir("/tmp/nm/jail/sys", 0755);
	if (fork() == 0) {
		int fd, m;
		if (chroot("/tmp/nm/jail") || chdir("/"))
			_exit(1);
		SHOW(mount("proc", "/proc", "proc", 0, 0));
		SHOW(exists("/proc/self/status"));
		SHOW(exists("/proc/tmp"));
		SHOW(mount("sys", "/sys", "sysfs", MS_RDONLY, 0));
		SHOW(exists("/sys/devices/system/cpu/online"));
		SHOW(umount("/proc"));
		SHOW(exists("/proc/self/status"));
		OPEN(fd, fsopen("proc", 0));
		SHOW(fsconfig(fd, FSCONFIG_CMD_CREATE, 0, 0, 0));
		OPEN(m, fsmount(fd, 0, 0));
		SHOW(move_mount(m, "", AT_FDCWD, "/proc", MOVE_MOUNT_F_EMPTY_PATH));
		SHOW(exists("/proc/self/status"));
		close(m);
		close(fd);
		SHOW(umount("/proc"));
		OPEN(fd, fsopen("proc", 0));
		SHOW(fsconfig(fd, FSCONFIG_SET_FLAG, "ro", 0, 0));
		SHOW(fsconfig(fd, FSCONFIG_CMD_CREATE, 0, 0, 0));
		OPEN(m, fsmount(fd, 0, 0));
		SHOW(move_mount(m, "", AT_FDCWD, "/proc", MOVE_MOUNT_F_EMPTY_PATH));
		SHOW(opens("/proc/self/comm"));
		_exit(0);
	}
	wait(0);
	SHOW(opens("/proc/self/comm"));
}

/* Shows that mounts of another mount namespace cannot be used. */
static void elsewhere(void)
{
	char path[100], byte;
	int ready[2], end[2];
	puts("-- elsewhere");
	if (pipe(ready) || pipe(end))
		return;
	int child = fork();
	if (child == 0) {
		close(end[1]);
		unshare(CLONE_NEWNS);
		write(ready[1], "", 1);
		read(end[0], &byte, 1);
		_exit(0);
	}
	read(ready[0], &byte, 1);
	snprintf(path, sizeof path, "/proc/%d/root", child);
	SHOW(mount(path, "/tmp/nm/a", 0, MS_BIND, 0));
	SHOW(mount("/tmp/nm/b", path, 0, MS_BIND, 0));
	SHOW(mount("x", path, "tmpfs", 0, 0));
	SHOW(mount(0, path, 0, MS_REMOUNT | MS_BIND | MS_RDONLY, 0));
	SHOW(mount(path, "/tmp/nm/a", 0, MS_MOVE, 0));
	SHOW(open_tree(AT_FDCWD, path, OPEN_TREE_CLONE));
	SHOW(attr(AT_FDCWD, path, 0, MOUNT_ATTR_RDONLY, 0));
	SHOW(umount(path));
	close(end[1]);
	waitpid(child, 0, 0);
}

static void moves(void)
{
	int t;
	puts("-- moves");
	SHOW(mkdir("/tmp/nm/a/d/e", 0755));
	SHOW(mount("x", "/tmp/nm/a/d", "tmpfs", 0, 0));
	SHOW(mkdir("/tmp/nm/a/d/f", 0755));
	SHOW(mount("/tmp/nm/a", "/tmp/nm/a/d/f", 0, MS_MOVE, 0));
	SHOW(mount("/tmp/nm/b", "/tmp/nm/c", 0, MS_MOVE, 0));
	SHOW(mount("/tmp/nm/a", "/tmp/nm/file", 0, MS_MOVE, 0));
	SHOW(mount("/tmp/nm/a", "/tmp/nm/b", 0, MS_MOVE, 0));
	SHOW(exists("/tmp/nm/a/d"));
	SHOW(exists("/tmp/nm/b/d/f"));
	mounts();
	SHOW(move_mount(AT_FDCWD, "/tmp/nm/b/d", AT_FDCWD, "/tmp/nm/c", 0));
	SHOW(exists("/tmp/nm/c/f"));
	SHOW(exists("/tmp/nm/b/d/e"));
	mounts();
	OPEN(t, open_tree(AT_FDCWD, "/tmp/nm/c", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
	SHOW(move_mount(t, "", AT_FDCWD, "/tmp/nm/a", MOVE_MOUNT_F_EMPTY_PATH));
	SHOW(make("/tmp/nm/c/new"));
	SHOW(exists("/tmp/nm/a/new"));
	close(t);
	SHOW(umount("/tmp/nm/a"));
	SHOW(exists("/tmp/nm/a/new"));
	SHOW(open_tree(AT_FDCWD, "/tmp/nm/c", AT_RECURSIVE));
	SHOW(open_tree(AT_FDCWD, "/tmp/nm/c", 4));
	SHOW(open_tree(AT_FDCWD, "", 0));
	OPEN(t, open_tree(AT_FDCWD, "/tmp/nm/file", OPEN_TREE_CLONE));
	SHOW(move_mount(t, "", AT_FDCWD, "/tmp/nm/c", MOVE_MOUNT_F_EMPTY_PATH));
	SHOW(move_mount(t, "", AT_FDCWD, "/tmp/nm/c/new", MOVE_MOUNT_F_EMPTY_PATH));
	close(t);
	SHOW(umount("/tmp/nm/c/new"));
	OPEN(t, open_tree(AT_FDCWD, "/tmp/nm/c", 0));
	printf("flags %x\n", fcntl(t, F_GETFL) & O_PATH);
	close(t);
}

/* Shows whether a file system is writable by two mounts, and what statfs(2) and /proc say. */
static void modes(void)
{
	static const char *mounts[] = { "/tmp/nm/c", "/tmp/nm/bound" };
	for (int i = 0; i < 2; i++) {
		char line[400], path[100], own[4] = "", super[4] = "";
		struct statfs s;
		FILE *f = fopen("/proc/self/mountinfo", "r");
		while (fgets(line, sizeof line, f)) {
			char at[100], flags[100], rest[200], *p = strstr(line, " - ");
			sscanf(line, "%*s %*s %*s %*s %99s %99s", at, flags);
			if (p && !strcmp(at, mounts[i]) && sscanf(p, " - %*s %*s %199s", rest) == 1)
				sprintf(own, "%.2s", flags), sprintf(super, "%.2s", rest);
		}
		fclose(f);
		sprintf(path, "%s/file", mounts[i]);
		statfs(mounts[i], &s);
		int fd = open(path, O_CREAT | O_WRONLY, 0600);
		printf("%s: %s, %s, ST_RDONLY %ld, %s\n", mounts[i], own, super, (long)s.f_flags & 1, fd < 0 ? strerror(errno) : "writable");
		if (fd >= 0)
			close(fd), unlink(path);
	}
}

static void change(void)
{
	int fd;
	puts("-- change");
	SHOW(fspick(AT_FDCWD, "", 0));
	SHOW(fspick(AT_FDCWD, "/tmp/nm/c/f", 0));
	SHOW(fspick(AT_FDCWD, "/tmp/nm/c", 16));
	OPEN(fd, fspick(AT_FDCWD, "/tmp/nm/c", FSPICK_CLOEXEC));
	SHOW(fsconfig(fd, FSCONFIG_CMD_CREATE, 0, 0, 0));
	SHOW(fsconfig(fd, FSCONFIG_SET_FLAG, "ro", 0, 0));
	SHOW(fsconfig(fd, FSCONFIG_CMD_RECONFIGURE, 0, 0, 0));
	SHOW(make("/tmp/nm/c/x"));
	SHOW(fsconfig(fd, FSCONFIG_SET_FLAG, "rw", 0, 0));
	SHOW(fsconfig(fd, FSCONFIG_CMD_RECONFIGURE, 0, 0, 0));
	SHOW(make("/tmp/nm/c/x"));
	SHOW(mkdir("/tmp/nm/bound", 0755));
	SHOW(mount("/tmp/nm/c", "/tmp/nm/bound", 0, MS_BIND, 0));
	SHOW(fsconfig(fd, FSCONFIG_CMD_RECONFIGURE, 0, 0, 0));
	modes();
	SHOW(fsconfig(fd, FSCONFIG_SET_FLAG, "ro", 0, 0));
	modes();
	SHOW(fsconfig(fd, FSCONFIG_CMD_RECONFIGURE, 0, 0, 0));
	modes();
	SHOW(mount(0, "/tmp/nm/bound", 0, MS_REMOUNT | MS_BIND, 0));
	modes();
	SHOW(mount(0, "/tmp/nm/bound", 0, MS_REMOUNT, 0));
	modes();
	SHOW(mount(0, "/tmp/nm/bound", 0, MS_REMOUNT | MS_RDONLY, 0));
	modes();
	SHOW(fsconfig(fd, FSCONFIG_SET_FLAG, "rw", 0, 0));
	SHOW(fsconfig(fd, FSCONFIG_CMD_RECONFIGURE, 0, 0, 0));
	modes();
	SHOW(umount("/tmp/nm/bound"));
	SHOW(rmdir("/tmp/nm/bound"));
	close(fd);
	SHOW(attr(AT_FDCWD, "/tmp/nm/c", 0, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV, 0));
	flags("/tmp/nm/c");
	SHOW(make("/tmp/nm/c/y"));
	SHOW(attr(AT_FDCWD, "/tmp/nm/c", AT_RECURSIVE, MOUNT_ATTR_NOSUID, MOUNT_ATTR_RDONLY));
	flags("/tmp/nm/c");
	SHOW(make("/tmp/nm/c/y"));
	SHOW(attr(AT_FDCWD, "/tmp/nm/c/f", 0, MOUNT_ATTR_RDONLY, 0));
	SHOW(attr(AT_FDCWD, "/tmp/nm/c", 1, 0, 0));
	SHOW(attr(AT_FDCWD, "/tmp/nm/c", 0, 1ul << 40, 0));
	SHOW(attr(AT_FDCWD, "/tmp/nm/c", 0, MOUNT_ATTR_NOATIME, 0));
	SHOW(attr(AT_FDCWD, "/tmp/nm/c", 0, MOUNT_ATTR_NOATIME, MOUNT_ATTR__ATIME));
	SHOW(mount_setattr(AT_FDCWD, "/tmp/nm/c", 0, 0, 32));
	SHOW(mount_setattr(AT_FDCWD, "/tmp/nm/c", 0, 0, 16));
	SHOW(mount_setattr(AT_FDCWD, "/tmp/nm/c", 0, 0, 100000));
	fd = fsopen("tmpfs", 0);
	if (setresuid(1000, 1000, 1000))
		exit(1);
	puts("-- without a right");
	SHOW(fsconfig(fd, FSCONFIG_SET_STRING, "size", "1m", 0));
	SHOW(fsconfig(fd, FSCONFIG_CMD_CREATE, 0, 0, 0));
	SHOW(fsmount(fd, 0, 0));
	SHOW(fsopen("tmpfs", 0));
	SHOW(fspick(AT_FDCWD, "/tmp/nm/c", 0));
	SHOW(fsmount(1000, 0, 0));
	SHOW(move_mount(1000, "", 1000, "", 0));
	SHOW(open_tree(AT_FDCWD, "/tmp/nm/c", OPEN_TREE_CLONE));
	SHOW(close(open_tree(AT_FDCWD, "/tmp/nm/c", 0)));
	SHOW(attr(AT_FDCWD, "/tmp/nm/c", 0, MOUNT_ATTR_RDONLY, 0));
}

/* Shows the events of a file, for at most so many milliseconds. */
static void events(int fd, int set, int most)
{
	struct epoll_event e = { 0 };
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLPRI };
	if (set >= 0)
		printf("epoll: %d, %x\n", epoll_wait(set, &e, 1, most), e.events);
	else
		printf("poll: %d, %x\n", poll(&p, 1, most), p.revents);
}

/* The files with mounts report changes to poll and epoll. */
static void reports(void)
{
	static const char *names[] = { "/proc/self/mounts", "/proc/self/mountinfo" };
	for (int i = 0; i < 2; i++) {
		int fd = open(names[i], O_RDONLY), set = epoll_create1(0);
		struct epoll_event e = { .events = EPOLLPRI };
		puts(names[i]);
		events(fd, -1, 0);
		SHOW(mount("x", "/tmp/nm/c", "tmpfs", 0, 0));
		events(fd, -1, 0);
		events(fd, -1, 0);
		SHOW(mount(0, "/tmp/nm/c", 0, MS_REMOUNT | MS_BIND | MS_NOEXEC, 0));
		events(fd, -1, 0);
		SHOW(epoll_ctl(set, EPOLL_CTL_ADD, fd, &e));
		events(fd, set, 0);
		int child = fork();
		if (child == 0) {
			usleep(100000);
			_exit(umount("/tmp/nm/c") != 0);
		}
		events(fd, set, 20000);
		events(fd, set, 0);
		waitpid(child, 0, 0);
		SHOW(epoll_ctl(set, EPOLL_CTL_DEL, fd, 0));
		close(set);
		close(fd);
	}
}

int main(void)
{
	setvbuf(stdout, 0, _IONBF, 0);
	umask(022);
	if (unshare(CLONE_NEWNS) || mount(0, "/", 0, MS_REC | MS_PRIVATE, 0) || mount("x", "/tmp", "tmpfs", 0, 0))
		return 1;
	mkdir("/tmp/nm", 0755);
	mkdir("/tmp/nm/a", 0755);
	mkdir("/tmp/nm/b", 0755);
	mkdir("/tmp/nm/c", 0755);
	make("/tmp/nm/file");
	configure();
	inJail();
	elsewhere();
	moves();
	change();
	reports();
	return 0;
}
