/* MSG_MORE and UDP_CORK: several sends make one datagram. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
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
static char big[65528];

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
	SHOW(send(out, big, 65000, MSG_MORE));
	SHOW(send(out, big, 65000, 0)); /* too long: both parts are dropped */
	SHOW(send(out, "after", 5, 0));
	show("a", a);
	SHOW(send(out, "lost", 4, MSG_MORE));
	SHOW(close(out));
	SHOW(sendto(b, "last", 4, 0, (struct sockaddr *)&names[0], length));
	show("a", a);
	close(a);
	close(b);
}

/* The first send checks its destination, and its errors hold nothing back. */
static void destinations(void)
{
	int a = bound(&names[0]);
	struct sockaddr_storage at = names[0];
	printf("-- destinations of family %d\n", family);
	out = socket(family, SOCK_DGRAM, 0);
	if (family == AF_INET)
		((struct sockaddr_in *)&at)->sin_port = 0;
	else
		((struct sockaddr_in6 *)&at)->sin6_port = 0;
	SHOW(sendto(out, "x", 1, MSG_MORE, (struct sockaddr *)&at, length));
	SHOW(to(0, "y", 0));
	show("a", a);
	close(out);
	close(a);
}

/* A datagram that is held back and a new peer. */
static void peers(void)
{
	int a = bound(&names[0]), b = bound(&names[1]);
	struct sockaddr nobody = { .sa_family = AF_UNSPEC };
	printf("-- peers of family %d\n", family);
	out = socket(family, SOCK_DGRAM, 0);
	SHOW(connect(out, (struct sockaddr *)&names[0], length));
	SHOW(send(out, "x", 1, MSG_MORE));
	SHOW(connect(out, &nobody, sizeof nobody));
	SHOW(send(out, "y", 1, 0));
	show("a", a);
	for (int i = 0; i < 2; i++) {
		SHOW(connect(out, (struct sockaddr *)&names[0], length));
		SHOW(i ? to(0, "x", MSG_MORE) : send(out, "x", 1, MSG_MORE));
		SHOW(connect(out, (struct sockaddr *)&names[1], length));
		SHOW(send(out, "y", 1, 0));
		if (family == AF_INET)
			show("b", b);
		else
			show("a", a);
	}
	close(out);
	close(a);
	close(b);
}

/* The longest datagrams, and one byte more. */
static void lengths(void)
{
	int a = bound(&names[0]), most = family == AF_INET ? 65507 : 65527;
	printf("-- lengths of family %d\n", family);
	out = socket(family, SOCK_DGRAM, 0);
	connect(out, (struct sockaddr *)&names[0], length);
	for (int more = 0; more < 2; more++) {
		SHOW(send(out, big, 65000, MSG_MORE));
		SHOW(send(out, big, most + more - 65000, 0));
		if (!more)
			show("a", a);
	}
	SHOW(send(out, "after", 5, 0));
	show("a", a);
	close(out);
	close(a);
}

/* The send that would be held back returns the error of an earlier datagram. */
static void errors(void)
{
	int a = bound(&names[0]), e;
	socklen_t l = sizeof e;
	printf("-- errors of family %d\n", family);
	out = socket(family, SOCK_DGRAM, 0);
	connect(out, (struct sockaddr *)&names[0], length);
	close(a);
	for (int i = 0; i < 2; i++) {
		struct pollfd p = { out, 0 };
		SHOW(send(out, "first", 5, 0));
		SHOW(poll(&p, 1, 10000));
		SHOW(cork(!i));
		SHOW(send(out, "held", 4, i ? MSG_MORE : 0));
		SHOW(cork(0));
		SHOW(getsockopt(out, SOL_SOCKET, SO_ERROR, &e, &l));
		printf("SO_ERROR: %d\n", e);
	}
	close(out);
}

/* A full send buffer loses nothing. */
static void bursts(void)
{
	int a = bound(&names[0]), small = 10000, sent = 0, arrived = 0;
	printf("-- bursts of family %d\n", family);
	out = socket(family, SOCK_DGRAM, 0);
	setsockopt(out, SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
	connect(out, (struct sockaddr *)&names[0], length);
	for (int i = 0; i < 50; i++) {
		for (int k = 0; k < 5; k++) {
			cork(1);
			sent += send(out, big, 8000, 0) == 8000;
			cork(0);
		}
		for (int k = 0; k < 5; k++) {
			struct pollfd p = { a, POLLIN };
			if (poll(&p, 1, 10000) != 1)
				break;
			arrived += recv(a, big, sizeof big, 0) == 8000;
		}
	}
	printf("%d were sent, %d arrived\n", sent, arrived);
	close(out);
	close(a);
}

/* Sends four parts. On Linux, a send returns EINVAL if another thread starts a datagram at the same time. */
static void *parts(void *failed)
{
	for (int i = 0; i < 4; i++) {
		long n;
		do
			n = send(out, "x", 1, MSG_MORE);
		while (n == -1 && errno == EINVAL);
		*(int *)failed |= n != 1;
	}
	return 0;
}

/* Threads that send parts at the same time lose nothing. */
static void threads(void)
{
	int a = bound(&names[0]), failed[4] = { 0 };
	long bytes = 0;
	printf("-- threads of family %d\n", family);
	out = socket(family, SOCK_DGRAM, 0);
	connect(out, (struct sockaddr *)&names[0], length);
	for (int i = 0; i < 50; i++) {
		pthread_t t[4];
		struct pollfd p = { a, POLLIN };
		for (int k = 0; k < 4; k++)
			pthread_create(&t[k], 0, parts, &failed[k]);
		for (int k = 0; k < 4; k++)
			pthread_join(t[k], 0);
		send(out, "", 0, 0);
		if (poll(&p, 1, 10000) == 1)
			bytes += recv(a, big, sizeof big, 0);
	}
	printf("%ld bytes arrived, %d failed\n", bytes, failed[0] + failed[1] + failed[2] + failed[3]);
	close(out);
	close(a);
}

static void all(int f)
{
	family = f;
	datagrams();
	destinations();
	peers();
	lengths();
	errors();
	bursts();
	threads();
}

int main(void)
{
	all(AF_INET);
	all(AF_INET6);
	out = socket(AF_INET, SOCK_STREAM, 0);
	SHOW(corked());
	SHOW(cork(1));
	return 0;
}
