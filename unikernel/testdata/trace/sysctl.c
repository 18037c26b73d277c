/* Settings in /proc/sys: what may be written, and the effect. On Linux, the program changes only namespaces of its own. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *error(long r) { return r == -1 ? strerror(errno) : "ok"; }
#define SHOW(x) do { errno = 0; long r_ = (long)(x); printf("%s: %ld, %s\n", #x, r_, error(r_)); } while (0)

static char path[200];

static const char *full(const char *name)
{
	snprintf(path, sizeof path, "/proc/sys/%s", name);
	return path;
}

static int set(const char *name, const char *text)
{
	int fd = open(full(name), O_WRONLY | O_TRUNC), r = -1;
	if (fd >= 0) {
		r = write(fd, text, strlen(text));
		int e = errno;
		close(fd);
		errno = e;
	}
	return r;
}

static const char *get(const char *name)
{
	static char text[200];
	int fd = open(full(name), O_RDONLY), n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n < 0 ? 0 : n] = 0;
	return text;
}

#define TRY(name, text) do { SHOW(set(name, text)); printf("%s is %s", name, get(name)); } while (0)

static int bound(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0), r = bind(fd, (struct sockaddr *)&a, sizeof a), e = errno;
	close(fd);
	errno = e;
	return r;
}

/* The number of connections to a listener that succeed without accept. */
static int backlog(int n)
{
	struct sockaddr_un { sa_family_t family; char name[20]; } a = { AF_UNIX, "\0sysctl" };
	int l = socket(AF_UNIX, SOCK_STREAM, 0), fds[20], i = 0;
	bind(l, (struct sockaddr *)&a, sizeof a);
	listen(l, n);
	for (; i < 20; i++) {
		fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		if (connect(fds[i], (struct sockaddr *)&a, sizeof a))
			break;
	}
	for (int j = 0; j <= i && j < 20; j++)
		close(fds[j]);
	close(l);
	return i;
}

/* Writes a part of a text to a setting at an offset. */
static long put(const char *name, const char *text, size_t n, off_t at, int flags)
{
	int fd = open(full(name), O_WRONLY | flags), e;
	long r = at ? pwrite(fd, text, n, at) : write(fd, text, n);
	e = errno;
	close(fd);
	errno = e;
	return r;
}

#define PUT(name, text, at) do { SHOW(put(name, text, sizeof(text) - 1, at, 0)); printf("%s is %s", name, get(name)); } while (0)

/* Several numbers, space, garbage, and writes at an offset. */
static void writes(void)
{
	static const char *name = "net/core/somaxconn";
	char text[100];
	int fd;
	PUT(name, "16 9", 0);
	PUT(name, "17\t9\n", 0);
	PUT(name, "18 x", 0);
	PUT(name, "19,9", 0);
	PUT(name, " \t\n\v\f\r20", 0);
	PUT(name, "21\n\n", 0);
	PUT(name, "22\v", 0);
	PUT(name, "23\0", 0);
	PUT(name, "24\0x", 0);
	PUT(name, "\00025", 0);
	PUT(name, "2147483647", 0);
	PUT(name, "2147483648", 0);
	PUT(name, "4294967297", 0);
	PUT(name, "18446744073709551617", 0);
	PUT(name, "-2147483648", 0);
	PUT(name, "-", 0);
	PUT(name, "-0", 0);
	PUT(name, "- 1", 0);
	PUT(name, "0x", 0);
	PUT(name, "0X1f", 0);
	PUT(name, "26", 1);
	PUT(name, "x", 1);
	PUT(name, "27 ", 5);
	SHOW(put(name, "28", 2, 0, O_APPEND));
	SHOW(put(name, "30", 0, 0, 0));
	printf("%s", get(name));
	fd = open(full(name), O_RDWR);
	SHOW(write(fd, "31", 2));
	SHOW(write(fd, "32", 2));
	SHOW(lseek(fd, 0, SEEK_CUR));
	SHOW(lseek(fd, 0, SEEK_SET));
	SHOW(write(fd, "33 4", 4));
	SHOW(lseek(fd, 0, SEEK_CUR));
	SHOW(pread(fd, text, sizeof text, 0));
	SHOW(ftruncate(fd, 0));
	SHOW(lseek(fd, 0, SEEK_SET));
	SHOW(write(fd, "34", 2));
	SHOW(pread(fd, text, sizeof text, 0));
	printf("%.3s", text);
	close(fd);
	memset(text, ' ', sizeof text);
	memcpy(text + 90, "35", 2);
	SHOW(put(name, text, 92, 0, 0));
	static char large[10000];
	memset(large, ' ', sizeof large);
	memcpy(large + 5000, "36", 2);
	SHOW(put(name, large, sizeof large, 0, 0));
	memcpy(large + 4000, "37", 2);
	SHOW(put(name, large, sizeof large, 0, 0));
	printf("%s", get(name));

	name = "kernel/hostname";
	PUT(name, "host", 0);
	PUT(name, "XY", 1);
	PUT(name, "Z", 3);
	PUT(name, "far", 9);
	PUT(name, "a b\0c", 0);
	PUT(name, "\n", 0);
	PUT(name, "again\n", 0);
	fd = open(full(name), O_WRONLY);
	SHOW(write(fd, "one", 3));
	SHOW(write(fd, "two", 3));
	close(fd);
	printf("%s", get(name));
}

/* Drops all capabilities but those in the mask. */
static int keep(unsigned mask)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct d[2] = { { mask, mask, 0 } };
	return syscall(SYS_capset, &h, d);
}

/* Shows what a child may do that has a user ID and some capabilities. */
static void as(int uid, unsigned capabilities)
{
	int fd = open(full("kernel/hostname"), O_WRONLY), net = open(full("net/core/somaxconn"), O_WRONLY);
	printf("-- user %d, capabilities %x\n", uid, capabilities);
	if (fork() == 0) {
		prctl(PR_SET_KEEPCAPS, 1);
		if (setresgid(uid, uid, uid) || setgroups(0, 0) || setresuid(uid, uid, uid) || keep(capabilities))
			_exit(1);
		SHOW(set("kernel/hostname", "x"));
		SHOW(set("net/core/somaxconn", "100"));
		SHOW(write(fd, "y", 1));
		SHOW(write(net, "101", 3));
		SHOW(access(full("kernel/hostname"), R_OK));
		SHOW(access(full("kernel/hostname"), W_OK));
		SHOW(access(full("kernel/hostname"), X_OK));
		SHOW(access(full("kernel/ostype"), R_OK));
		SHOW(access(full("kernel/ostype"), W_OK));
		SHOW(chmod(full("kernel/hostname"), 0666));
		SHOW(truncate(full("kernel/hostname"), 0));
		_exit(0);
	}
	wait(0);
	close(fd), close(net);
}

/* The mount of /proc is read-only. */
static void readOnly(void)
{
	int fd = open(full("kernel/hostname"), O_WRONLY);
	puts("-- a read-only mount");
	if (unshare(CLONE_NEWNS) || mount(0, "/", 0, MS_REC | MS_PRIVATE, 0) || mount("/proc", "/proc", 0, MS_BIND, 0) ||
		mount(0, "/proc", 0, MS_BIND | MS_REMOUNT | MS_RDONLY, 0))
		return;
	SHOW(set("kernel/hostname", "x"));
	SHOW(access(full("kernel/hostname"), W_OK));
	SHOW(write(fd, "y", 1));
	umount("/proc");
	close(fd);
}

int main(void)
{
	struct utsname u;
	setvbuf(stdout, 0, _IONBF, 0);
	uname(&u);
	if (!strstr(u.release, "loam") && unshare(CLONE_NEWUTS | CLONE_NEWNET))
		return 1;
	TRY("kernel/hostname", "one\ntwo\n");
	uname(&u);
	printf("uname: %s\n", u.nodename);
	TRY("kernel/hostname", "0123456789012345678901234567890123456789012345678901234567890123456789");
	TRY("kernel/domainname", "example");
	TRY("kernel/hostname", "three");

	SHOW(set("net/core/somaxconn", "4096\n"));
	TRY("net/core/somaxconn", "");
	TRY("net/core/somaxconn", "\n");
	TRY("net/core/somaxconn", "x");
	TRY("net/core/somaxconn", "-1");
	TRY("net/core/somaxconn", "99999999999");
	TRY("net/core/somaxconn", "7x");
	TRY("net/core/somaxconn", "7,8");
	TRY("net/core/somaxconn", " 0x10 \n");
	TRY("net/core/somaxconn", "010\n");
	TRY("net/core/somaxconn", "00000000000000000000012");
	TRY("net/core/somaxconn", "+12");
	TRY("net/core/somaxconn", "3");
	printf("%d connections wait\n", backlog(100));
	TRY("net/core/somaxconn", "65535");

	TRY("net/ipv4/ip_unprivileged_port_start", "65536");
	TRY("net/ipv4/ip_unprivileged_port_start", "70");
	SHOW(set("kernel/ostype", "x"));
	SHOW(set("kernel/cap_last_cap", "x"));
	SHOW(access(full("kernel/hostname"), W_OK));
	writes();
	as(0, 0);
	as(0, 1 << CAP_NET_ADMIN);
	as(12345, 0);
	as(12345, 1 << CAP_DAC_OVERRIDE);
	as(12345, 1 << CAP_NET_ADMIN);
	as(12345, 1 << CAP_SYS_ADMIN);
	readOnly();
	if (setresuid(12345, 12345, 12345))
		return 1;
	SHOW(set("kernel/hostname", "four"));
	SHOW(set("net/core/somaxconn", "5"));
	SHOW(bound(80));
	SHOW(bound(69));
	return 0;
}
