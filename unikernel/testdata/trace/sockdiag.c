/* Lists of sockets by sock_diag(7), as ss reads them. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { LISTEN = 40161, UDP = 40162, LISTEN6 = 40163, LOCAL6 = 40164 };

static unsigned inode(int fd)
{
	struct stat s;
	fstat(fd, &s);
	return s.st_ino;
}

static int listener(int family, int port, int backlog)
{
	struct sockaddr_in a = { AF_INET, htons(port), { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_in6 a6 = { AF_INET6, htons(port), 0, IN6ADDR_ANY_INIT };
	int s = socket(family, SOCK_STREAM, 0);
	if (port == LOCAL6)
		a6.sin6_addr = in6addr_loopback;
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int));
	if (bind(s, family == AF_INET ? (void *)&a : (void *)&a6, family == AF_INET ? sizeof a : sizeof a6) || listen(s, backlog))
		perror("listen");
	return s;
}

/* Prints the port, or P for a port that the kernel has chosen. */
static const char *port(unsigned short p, char *b)
{
	snprintf(b, 20, ntohs(p) >= LISTEN && ntohs(p) <= LOCAL6 ? "%d" : "P", ntohs(p));
	return ntohs(p) ? b : "0";
}

static int own(unsigned ino, const int *fds, int n)
{
	for (int i = 0; i < n; i++)
		if (inode(fds[i]) == ino)
			return i;
	return -1;
}

static void show_inet(const struct nlmsghdr *h, const int *fds, int n)
{
	const struct inet_diag_msg *m = NLMSG_DATA(h);
	int i = own(m->idiag_inode, fds, n), rest = h->nlmsg_len - NLMSG_LENGTH(sizeof *m);
	char from[20], to[20], a[50], b[50];
	if (i == -1)
		return;
	inet_ntop(m->idiag_family, m->id.idiag_src, a, sizeof a);
	inet_ntop(m->idiag_family, m->id.idiag_dst, b, sizeof b);
	printf("  socket %d: family %d, state %d, %s:%s to %s:%s, queues %u %u, uid %u, interface %u;", i, m->idiag_family, m->idiag_state, a,
		port(m->id.idiag_sport, from), b, port(m->id.idiag_dport, to), m->idiag_rqueue, m->idiag_wqueue, m->idiag_uid, m->id.idiag_if);
	for (const struct rtattr *r = (void *)(m + 1); RTA_OK(r, rest); r = RTA_NEXT(r, rest))
		switch (r->rta_type) {
		case INET_DIAG_CONG: printf(" congestion%s", *(char *)RTA_DATA(r) ? "" : " missing"); break;
		case INET_DIAG_TOS: printf(" tos %d", *(unsigned char *)RTA_DATA(r)); break;
		case INET_DIAG_SKV6ONLY: printf(" v6only %d", *(unsigned char *)RTA_DATA(r)); break;
		case INET_DIAG_INFO: printf(" info of state %d", ((struct tcp_info *)RTA_DATA(r))->tcpi_state); break;
		case INET_DIAG_SKMEMINFO: printf(" memory"); break;
		}
	printf("\n");
}

static void show_unix(const struct nlmsghdr *h, const int *fds, int n)
{
	const struct unix_diag_msg *m = NLMSG_DATA(h);
	int i = own(m->udiag_ino, fds, n), rest = h->nlmsg_len - NLMSG_LENGTH(sizeof *m);
	if (i == -1)
		return;
	printf("  socket %d: type %d, state %d;", i, m->udiag_type, m->udiag_state);
	for (const struct rtattr *r = (void *)(m + 1); RTA_OK(r, rest); r = RTA_NEXT(r, rest))
		switch (r->rta_type) {
		case UNIX_DIAG_NAME: printf(" name @%.*s", (int)RTA_PAYLOAD(r) - 1, (char *)RTA_DATA(r) + 1); break;
		case UNIX_DIAG_PEER: printf(" peer %d", own(*(unsigned *)RTA_DATA(r), fds, n)); break;
		case UNIX_DIAG_RQLEN: printf(" queues %u", ((struct unix_diag_rqlen *)RTA_DATA(r))->udiag_rqueue); break;
		}
	printf("\n");
}

static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Sends a request and shows the answers for the sockets in fds, in the order of the text. */
static void list(const char *name, int type, const void *request, int size, const int *fds, int n)
{
	static char b[1 << 20];
	struct { struct nlmsghdr h; char body[100]; } q = { { NLMSG_LENGTH(size), type, NLM_F_REQUEST | NLM_F_DUMP, 7, 0 }, { 0 } };
	int s = socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG), family = *(unsigned char *)request;
	char *text = 0, *lines[100];
	size_t length, count = 0;
	FILE *out = stdout;
	memcpy(q.body, request, size);
	printf("%s:\n", name);
	if (s == -1 || send(s, &q, q.h.nlmsg_len, 0) == -1) {
		printf("  %s\n", strerror(errno));
		return;
	}
	stdout = open_memstream(&text, &length);
	for (int done = 0; !done;) {
		int got = recv(s, b, sizeof b, 0);
		for (struct nlmsghdr *h = (void *)b; NLMSG_OK(h, got); h = NLMSG_NEXT(h, got)) {
			if (h->nlmsg_type == NLMSG_ERROR)
				printf("  error %s\n", strerror(-((struct nlmsgerr *)NLMSG_DATA(h))->error));
			if (h->nlmsg_type == NLMSG_DONE && *(int *)NLMSG_DATA(h))
				printf("  end %s\n", strerror(-*(int *)NLMSG_DATA(h)));
			done = h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR;
			if (!done && h->nlmsg_seq == 7 && family == AF_UNIX)
				show_unix(h, fds, n);
			else if (!done && h->nlmsg_seq == 7)
				show_inet(h, fds, n);
		}
	}
	fclose(stdout);
	stdout = out;
	for (char *l = strtok(text, "\n"); l; l = strtok(0, "\n"))
		lines[count++] = l;
	qsort(lines, count, sizeof *lines, compare);
	for (size_t i = 0; i < count; i++)
		puts(lines[i]);
	close(s);
}

static void inet(const char *name, int family, int protocol, unsigned states, const int *fds, int n)
{
	struct inet_diag_req_v2 q = { family, protocol, 0, 0, states, { 0 } };
	if (protocol == IPPROTO_TCP)
		q.idiag_ext = 1 << (INET_DIAG_CONG - 1) | 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_SKMEMINFO - 1) | 1 << (INET_DIAG_TOS - 1);
	list(name, SOCK_DIAG_BY_FAMILY, &q, sizeof q, fds, n);
}

int main(void)
{
	struct sockaddr_in to = { AF_INET, htons(LISTEN), { htonl(INADDR_LOOPBACK) } }, at = { AF_INET, htons(UDP), { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_un name = { AF_UNIX, "\0loam-sockdiag" };
	socklen_t length = offsetof(struct sockaddr_un, sun_path) + sizeof "\0loam-sockdiag" - 1;
	int fds[10], n = 0, pair[2];
	fds[n++] = listener(AF_INET, LISTEN, 5);
	fds[n++] = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fds[1], (void *)&to, sizeof to))
		perror("connect");
	inet("a connection waits", AF_INET, IPPROTO_TCP, 1 << 10, fds, n);
	fds[n++] = accept(fds[0], 0, 0);
	if (send(fds[1], "hello", 5, 0) != 5)
		perror("send");
	recv(fds[2], (char[10]){ 0 }, 10, MSG_PEEK);
	fds[n++] = listener(AF_INET6, LISTEN6, 7);
	fds[n++] = socket(AF_INET, SOCK_DGRAM, 0);
	fds[n++] = listener(AF_INET6, LOCAL6, 7);
	if (bind(fds[4], (void *)&at, sizeof at))
		perror("bind");
	inet("TCP", AF_INET, IPPROTO_TCP, -1, fds, n);
	inet("TCP, established", AF_INET, IPPROTO_TCP, 1 << 1, fds, n);
	inet("TCP, listening", AF_INET, IPPROTO_TCP, 1 << 10, fds, n);
	inet("TCP, IPv6", AF_INET6, IPPROTO_TCP, -1, fds, n);
	inet("UDP", AF_INET, IPPROTO_UDP, -1, fds, n);
	fds[n++] = socket(AF_INET, SOCK_DGRAM, 0);
	if (connect(fds[6], (void *)&at, sizeof at))
		perror("connect");
	inet("UDP", AF_INET, IPPROTO_UDP, -1, fds, n);
	inet("an unknown protocol", AF_INET, 201, -1, fds, n);
	list("a family without a list", SOCK_DIAG_BY_FAMILY, &(struct inet_diag_req_v2){ AF_ROSE }, sizeof(struct inet_diag_req_v2), fds, n);
	list("an unknown family", SOCK_DIAG_BY_FAMILY, &(struct inet_diag_req_v2){ 77 }, sizeof(struct inet_diag_req_v2), fds, n);
	list("a request that is too short", SOCK_DIAG_BY_FAMILY, &(struct inet_diag_req_v2){ AF_INET }, 8, fds, n);
	list("an unknown type", 30, &(struct inet_diag_req_v2){ AF_INET }, sizeof(struct inet_diag_req_v2), fds, n);

	n = 0;
	fds[n++] = socket(AF_UNIX, SOCK_STREAM, 0);
	if (bind(fds[0], (void *)&name, length) || listen(fds[0], 4))
		perror("bind");
	fds[n++] = socket(AF_UNIX, SOCK_STREAM, 0);
	if (connect(fds[1], (void *)&name, length))
		perror("connect");
	struct unix_diag_req q = { AF_UNIX, 0, 0, -1, 0, UDIAG_SHOW_NAME | UDIAG_SHOW_RQLEN, { 0 } };
	list("Unix, a connection waits", SOCK_DIAG_BY_FAMILY, &q, sizeof q, fds, n);
	fds[n++] = accept(fds[0], 0, 0);
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		perror("socketpair");
	fds[n++] = pair[0];
	fds[n++] = pair[1];
	fds[n++] = socket(AF_UNIX, SOCK_DGRAM, 0);
	q.udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_PEER;
	list("Unix", SOCK_DIAG_BY_FAMILY, &q, sizeof q, fds, n);
	q.udiag_states = 1 << 10;
	list("Unix, listening", SOCK_DIAG_BY_FAMILY, &q, sizeof q, fds, n);
	return 0;
}
