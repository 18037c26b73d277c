/* UDP-Lite (udplite(7)), and the list of addresses by SIOCGIFCONF (netdevice(7)). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LITE = 136, SEND = 10, RECV = 11, UDP = 17 };
static const char *error(long r) { return r == -1 ? strerror(errno) : "ok"; }
#define SHOW(x) do { errno = 0; long r_ = (long)(x); printf("%s: %ld, %s\n", #x, r_, error(r_)); } while (0)

static char b[100];

static long set(int s, int level, int option, int v) { return setsockopt(s, level, option, &v, sizeof v); }
static long get(int s, int level, int option)
{
	int v = -2;
	socklen_t n = sizeof v;
	return getsockopt(s, level, option, &v, &n) ? -1 : v;
}

static void options(int s)
{
	static const int values[] = { 0, 1, 7, 8, 9, 65535, 65536, -1, 0 };
	for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
		printf("%d:\n", values[i]);
		SHOW(set(s, LITE, SEND, values[i]));
		SHOW(get(s, LITE, SEND));
		SHOW(set(s, UDP, RECV, values[i]));
		SHOW(get(s, LITE, RECV));
		SHOW(get(s, UDP, RECV));
	}
	SHOW(set(s, LITE, 12, 0));
	SHOW(get(s, LITE, 12));
}

static int bound(int family, int protocol, int port)
{
	struct sockaddr_in a = { AF_INET, htons(port), { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_in6 a6 = { AF_INET6, htons(port), 0, IN6ADDR_LOOPBACK_INIT };
	int s = socket(family, SOCK_DGRAM, protocol);
	if (bind(s, family == AF_INET ? (void *)&a : (void *)&a6, family == AF_INET ? sizeof a : sizeof a6))
		printf("bind: %s\n", strerror(errno));
	return s;
}

/* Sends datagrams with each coverage to receivers that want each, and shows the header and which arrive. */
static void datagrams(int family)
{
	static const int covered[] = { 0, 8, 9, 12, 13, 20 }, wanted[] = { -2, 0, 8, 9, 12, 13 };
	int raw = socket(family, SOCK_RAW, LITE), header = family == AF_INET ? 20 : 0;
	struct sockaddr_in to = { AF_INET, htons(40137), { htonl(INADDR_LOOPBACK) } };
	struct sockaddr_in6 to6 = { AF_INET6, htons(40137), 0, IN6ADDR_LOOPBACK_INIT };
	for (unsigned i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		int from = bound(family, LITE, 40136), at = bound(family, LITE, 40137), other = bound(family, UDP, 40137);
		connect(from, family == AF_INET ? (void *)&to : (void *)&to6, family == AF_INET ? sizeof to : sizeof to6);
		if (wanted[i] != -2)
			set(at, LITE, RECV, wanted[i]);
		for (unsigned k = 0; k < sizeof covered / sizeof *covered; k++) {
			set(from, LITE, SEND, covered[k]);
			send(from, "some", 4, 0);
			unsigned char p[100];
			int n = recv(raw, p, sizeof p, 0) - header;
			printf("wanted %d, coverage %d: %d bytes:", wanted[i], covered[k], n);
			for (int j = 0; j < n; j++)
				printf(" %02x", p[header + j]);
			set(from, LITE, SEND, 0);
			send(from, "last one", 8, 0);
			recv(raw, p, sizeof p, 0);
			while ((n = recv(at, b, sizeof b, 0)) > 0 && n != 8)
				printf(", arrives with %d bytes", n);
			printf("\n");
		}
		SHOW(recv(other, b, sizeof b, MSG_DONTWAIT)); /* the ports are not those of UDP */
		close(at), close(other);
		send(from, "x", 1, 0);
		SHOW(recv(from, b, sizeof b, 0)); /* port unreachable */
		recv(raw, b, sizeof b, 0);
		close(from);
	}
	close(raw);
}

static void list(int s, int size, void *to)
{
	struct ifconf c = { size };
	c.ifc_buf = to;
	int r = ioctl(s, SIOCGIFCONF, &c);
	printf("list of %d bytes: %s, %d", size, error(r), r == 0 && !to ? c.ifc_len % 40 : c.ifc_len);
	if (r == 0 && to && c.ifc_len > 0) {
		struct sockaddr_in *a = (void *)&c.ifc_req[0].ifr_addr;
		printf(", %s %d %d %x", c.ifc_req[0].ifr_name, a->sin_family, a->sin_port, ntohl(a->sin_addr.s_addr));
	}
	printf("\n");
}

int main(void)
{
	setvbuf(stdout, 0, _IONBF, 0);
	int s = socket(AF_INET, SOCK_DGRAM, LITE), u = socket(AF_INET, SOCK_DGRAM, 0), file = open("/dev/null", O_RDWR);
	SHOW(socket(AF_INET, SOCK_STREAM, LITE));
	SHOW(get(s, SOL_SOCKET, SO_PROTOCOL));
	SHOW(get(s, SOL_SOCKET, SO_TYPE));
	SHOW(set(u, UDP, SEND, 8));
	SHOW(get(u, UDP, RECV));
	SHOW(set(u, LITE, SEND, 8));
	SHOW(get(u, LITE, SEND));
	options(s);
	datagrams(AF_INET);
	datagrams(AF_INET6);

	char room[80];
	list(s, 0, 0);
	list(s, 0, room);
	list(s, 39, room);
	list(s, 40, room);
	list(s, -1, room);
	list(s, 40, (void *)8);
	list(socket(AF_UNIX, SOCK_STREAM, 0), 40, room);
	SHOW(ioctl(s, SIOCGIFCONF, 8));
	SHOW(ioctl(file, SIOCGIFCONF, 8));
	SHOW(ioctl(-1, SIOCGIFCONF, 8));
	return 0;
}
