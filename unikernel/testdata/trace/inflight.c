/* The number of descriptors in messages of a user is limited by RLIMIT_NOFILE (unix(7), ETOOMANYREFS). The depth of sockets in messages is not. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT = 64, MOST = 253, OTHER = 54321 };
static int s[2];

/* Sends a descriptor n times in a message. */
static const char *pass(int to, int fd, int n)
{
	struct iovec v = { "x", 1 };
	static char c[CMSG_SPACE((MOST + 1) * sizeof(int))];
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = c, .msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	*CMSG_FIRSTHDR(&m) = (struct cmsghdr){ CMSG_LEN(n * sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
	for (int i = 0; i < n; i++)
		((int *)CMSG_DATA(CMSG_FIRSTHDR(&m)))[i] = fd;
	return sendmsg(to, &m, MSG_DONTWAIT) == 1 ? "ok" : strerror(errno);
}

/* Sends a descriptor until that fails, at most so many times. */
static void fill(int most)
{
	const char *error = "ok";
	int n = 0;
	while (n < most && !strcmp(error = pass(s[1], 0, 1), "ok"))
		n++;
	printf("%d descriptors, then: %s\n", n, error);
}

static void receive(int n)
{
	char b;
	struct iovec v = { &b, 1 };
	for (struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 }; n--;)
		recvmsg(s[0], &m, 0);
}

/* Sends each socket in a message to the next one. */
static void chain(void)
{
	int q[2], n = 0;
	const char *error = "ok";
	socketpair(AF_UNIX, SOCK_STREAM, 0, s);
	for (int f = s[0]; n < 2 * LIMIT; f = q[0], n++) {
		socketpair(AF_UNIX, SOCK_STREAM, 0, q);
		if (strcmp(error = pass(q[1], f, 1), "ok"))
			break;
		close(f), close(q[1]);
	}
	printf("a chain of %d sockets, then: %s\n", n, error);
	close(q[0]), close(q[1]);
}

static void all(void)
{
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ LIMIT, LIMIT });
	socketpair(AF_UNIX, SOCK_STREAM, 0, s);
	fill(2 * LIMIT);
	printf("bad: %s\n", pass(s[1], -1, 1));
	receive(1);
	fill(2);
	receive(5);
	printf("many: %s\n", pass(s[1], 0, 100));
	printf("one more: %s\n", pass(s[1], 0, 1));
	printf("too many in a message: %s\n", pass(s[1], 0, MOST + 1));
	printf("no descriptor: %zd\n", send(s[1], "x", 1, 0));
	close(s[0]), close(s[1]);
	chain();
	socketpair(AF_UNIX, SOCK_DGRAM, 0, s);
	fill(2);
}

int main(void)
{
	int null = open("/dev/null", O_RDONLY);
	dup2(null, 0);
	setvbuf(stdout, 0, _IONBF, 0);
	all(); /* a privileged user has no limit */
	if (fork() == 0) {
		if (setresuid(OTHER, OTHER, OTHER))
			return 1;
		all();
		_exit(0);
	}
	wait(0);
	return 0;
}
