/* Settings in /proc/sys: what may be written, and the effect. On Linux, the program changes only namespaces of its own. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
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
	if (setresuid(12345, 12345, 12345))
		return 1;
	SHOW(set("kernel/hostname", "four"));
	SHOW(set("net/core/somaxconn", "5"));
	SHOW(bound(80));
	SHOW(bound(69));
	return 0;
}
