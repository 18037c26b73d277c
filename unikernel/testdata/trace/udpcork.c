/* MSG_MORE and UDP_CORK: several sends make one datagram. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#ifndef UDP_CORK
#define UDP_CORK 1
#endif

#define SHOW(x) do { errno = 0; long r_ = (long)(x); printf("%s: %ld, %s\n", #x, r_, r_ == -1 ? strerror(errno) : "ok"); } while (0)

static int family, out;
static struct sockaddr_storage names[2];
static socklen_t length;
static char big[65000];

/* Returns a socket that is bound to a port of the loopback interface, and stores its name. */
static int bound(struct sockaddr_storage *name)
{
	int fd = socket(family, SOCK_DGRAM, 0);
	memset(name, 0, sizeof *name);
	name->ss_family = family;
	if (family == AF_INET)
		((struct sockaddr_in *)name)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		((struct sockaddr_in6 *)name)->sin6_addr = in6addr_loopback;
	length = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	bind(fd, (struct sockaddr *)name, length);
	getsockname(fd, (struct sockaddr *)name, &length);
	return fd;
}

/* Shows the next datagram of a socket. */
static void show(const char *who, int fd)
{
	static char b[65536];
	struct pollfd p = { fd, POLLIN };
	int ready = poll(&p, 1, 10000);
	long n = ready ? recv(fd, b, sizeof b, 0) : -2;
	printf("%s: %ld \"%.*s\"\n", who, n, n > 0 && n < 100 ? (int)n : 0, b);
}

static long cork(int on) { return setsockopt(out, IPPROTO_UDP, UDP_CORK, &on, sizeof on); }

static long corked(void)
{
	int v = -1;
	socklen_t l = sizeof v;
	return getsockopt(out, IPPROTO_UDP, UDP_CORK, &v, &l) ? -1 : v;
}

static long to(int i, const char *s, int flags) { return sendto(out, s, strlen(s), flags, (struct sockaddr *)&names[i], length); }

static void datagrams(void)
{
	int a = bound(&names[0]), b = bound(&names[1]);
	struct iovec v[2] = { { "six", 3 }, { "teen", 4 } };
	struct msghdr h = { .msg_iov = v, .msg_iovlen = 2 };
	printf("-- family %d\n", family);
	out = socket(family, SOCK_DGRAM, 0);
	SHOW(send(out, "x", 1, MSG_MORE));
	SHOW(to(0, "one ", MSG_MORE));
	SHOW(to(1, "two ", MSG_MORE)); /* the first send decides on the destination */
	SHOW(send(out, "three", 5, 0));
	show("a", a);
	SHOW(to(1, "alone", 0));
	show("b", b);
	SHOW(to(0, "", MSG_MORE));
	SHOW(to(0, "", 0));
	show("a", a);
	SHOW(corked());
	SHOW(cork(7));
	SHOW(corked());
	SHOW(to(1, "held ", 0));
	SHOW(send(out, "back ", 5, 0));
	SHOW(sendmsg(out, &h, 0));
	SHOW(cork(0));
	SHOW(corked());
	show("b", b);
	SHOW(connect(out, (struct sockaddr *)&names[0], length));
	SHOW(sendmsg(out, &h, MSG_MORE));
	SHOW(write(out, "!", 1));
	show("a", a);
	SHOW(send(out, big, sizeof big, MSG_MORE));
	SHOW(send(out, big, sizeof big, 0)); /* too long: both parts are dropped */
	SHOW(send(out, "after", 5, 0));
	show("a", a);
	SHOW(send(out, "lost", 4, MSG_MORE));
	SHOW(close(out));
	SHOW(sendto(b, "last", 4, 0, (struct sockaddr *)&names[0], length));
	show("a", a);
	close(a);
	close(b);
}

int main(void)
{
	family = AF_INET;
	datagrams();
	family = AF_INET6;
	datagrams();
	out = socket(AF_INET, SOCK_STREAM, 0);
	SHOW(corked());
	SHOW(cork(1));
	return 0;
}
