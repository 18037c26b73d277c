/* The end of TCP connections: resets with unread data, resets after a FIN, getpeername, shutdown and SIGURG afterwards. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const char *error(long r) { return r == -1 ? strerror(errno) : "ok"; }
#define SHOW(x) do { errno = 0; long r_ = (long)(x); printf("%s: %ld, %s\n", #x, r_, error(r_)); } while (0)

static struct sockaddr_in name;
static socklen_t length;
static char b[100];

static int peer(int fd) { return length = sizeof name, getpeername(fd, (struct sockaddr *)&name, &length); }

/* A client and a server that are connected. */
static int client, server;
static void pair(const char *what)
{
	int l = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	printf("-- %s\n", what);
	bind(l, (struct sockaddr *)&a, sizeof a);
	listen(l, 5);
	length = sizeof a;
	getsockname(l, (struct sockaddr *)&a, &length);
	client = socket(AF_INET, SOCK_STREAM, 0);
	connect(client, (struct sockaddr *)&a, sizeof a);
	server = accept(l, 0, 0);
	close(l);
}

/* Closes a socket with a reset. */
static void reset(int fd)
{
	struct linger l = { 1, 0 };
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
	close(fd);
}

/* Waits for one of the events, and shows all that hold then. */
static void await(int fd, int events)
{
	struct pollfd p = { fd, events };
	poll(&p, 1, 10000);
	p.events = POLLIN | POLLOUT | POLLRDHUP;
	poll(&p, 1, 0);
	printf("events %x\n", p.revents);
}

/* Waits until a connection is over. */
static void over(int fd)
{
	for (int i = 0; i < 1000 && peer(fd) == 0; i++)
		usleep(10000);
}

static int pending(int fd)
{
	int e = -1;
	socklen_t n = sizeof e;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &n);
	return e;
}

static int state(int fd)
{
	struct tcp_info i;
	socklen_t n = sizeof i;
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &i, &n) ? -1 : i.tcpi_state;
}

static void after(int fd)
{
	SHOW(peer(fd));
	SHOW(shutdown(fd, SHUT_WR));
	SHOW(shutdown(fd, SHUT_RD));
	SHOW(send(fd, "x", 1, MSG_NOSIGNAL));
	SHOW(recv(fd, b, sizeof b, MSG_DONTWAIT));
	SHOW(state(fd));
	close(fd);
}

static void urgent(void)
{
	sigset_t set;
	struct timespec soon = { 0, 100000000 }, long_ = { 10, 0 };
	pair("urgent data and then the end");
	sigemptyset(&set);
	sigaddset(&set, SIGURG);
	sigprocmask(SIG_BLOCK, &set, 0);
	fcntl(client, F_SETOWN, getpid());
	send(server, "abc", 3, MSG_OOB);
	printf("signal %d\n", sigtimedwait(&set, 0, &long_));
	close(server);
	await(client, POLLRDHUP);
	printf("signal %d\n", sigtimedwait(&set, 0, &soon));
	SHOW(recv(client, b, sizeof b, 0));
	SHOW(recv(client, b, sizeof b, MSG_OOB));
	SHOW(recv(client, b, sizeof b, 0));
	printf("signal %d\n", sigtimedwait(&set, 0, &soon));
	close(client);
}

int main(void)
{
	setvbuf(stdout, 0, _IONBF, 0);
	pair("reset with unread data");
	send(server, "data", 4, 0);
	reset(server);
	await(client, 0);
	SHOW(peer(client));
	SHOW(shutdown(client, SHUT_WR));
	SHOW(recv(client, b, 2, 0));
	SHOW(recv(client, b, sizeof b, 0));
	SHOW(recv(client, b, sizeof b, 0));
	SHOW(recv(client, b, sizeof b, 0));
	after(client);

	pair("reset, and a write");
	reset(server);
	await(client, 0);
	SHOW(send(client, "x", 1, MSG_NOSIGNAL));
	after(client);

	pair("reset, and SO_ERROR");
	reset(server);
	await(client, 0);
	SHOW(pending(client));
	SHOW(pending(client));
	after(client);

	pair("reset after the end of the stream");
	send(server, "data", 4, 0);
	shutdown(server, SHUT_WR);
	await(client, POLLRDHUP);
	SHOW(peer(client));
	reset(server);
	await(client, 0);
	SHOW(peer(client));
	SHOW(recv(client, b, sizeof b, 0));
	SHOW(recv(client, b, sizeof b, 0));
	SHOW(pending(client));
	after(client);

	pair("reset after the end of the stream, and a write");
	shutdown(server, SHUT_WR);
	await(client, POLLRDHUP);
	reset(server);
	await(client, 0);
	SHOW(send(client, "x", 1, MSG_NOSIGNAL));
	after(client);

	pair("unread data at close");
	send(client, "data", 4, 0);
	await(server, POLLIN);
	send(server, "answer", 6, 0);
	close(server);
	await(client, 0);
	SHOW(recv(client, b, sizeof b, 0));
	SHOW(recv(client, b, sizeof b, 0));
	after(client);

	pair("closed by both, this side first");
	SHOW(shutdown(client, SHUT_WR));
	await(server, POLLRDHUP);
	SHOW(peer(client));
	SHOW(peer(server));
	SHOW(shutdown(server, SHUT_WR));
	await(client, POLLHUP);
	after(client);
	over(server);
	after(server);

	urgent();

	printf("-- reset before accept\n");
	int l = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	bind(l, (struct sockaddr *)&a, sizeof a);
	listen(l, 5);
	length = sizeof a;
	getsockname(l, (struct sockaddr *)&a, &length);
	client = socket(AF_INET, SOCK_STREAM, 0);
	connect(client, (struct sockaddr *)&a, sizeof a);
	await(l, POLLIN);
	reset(client);
	length = sizeof name;
	server = accept(l, (struct sockaddr *)&name, &length);
	printf("from %x\n", ntohl(name.sin_addr.s_addr));
	await(server, 0);
	SHOW(recv(server, b, sizeof b, 0));
	after(server);
	return 0;
}
