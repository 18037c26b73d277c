/* Ports below 1024 (ip(7)): only a thread with CAP_NET_BIND_SERVICE may bind them. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void bind_to(int family, int type, int port)
{
	int s = socket(family, type, 0);
	struct sockaddr_in a = {AF_INET, htons(port), {htonl(INADDR_LOOPBACK)}};
	struct sockaddr_in6 a6 = {AF_INET6, htons(port), 0, IN6ADDR_LOOPBACK_INIT};
	errno = 0;
	int r = family == AF_INET ? bind(s, (void *)&a, sizeof a) : bind(s, (void *)&a6, sizeof a6);
	printf("%s %s port %d: %d, %s\n", family == AF_INET ? "IPv4" : "IPv6", type == SOCK_STREAM ? "TCP" : "UDP", port, r, strerror(errno));
	close(s);
}

static void all(const char *who)
{
	printf("%s\n", who);
	for (int i = 0; i < 4; i++) {
		int family = i & 1 ? AF_INET6 : AF_INET, type = i & 2 ? SOCK_DGRAM : SOCK_STREAM;
		bind_to(family, type, 997), bind_to(family, type, 1023), bind_to(family, type, 0);
	}
	bind_to(AF_INET, SOCK_STREAM, 1024);
}

/* The order of errors: the family and, for IPv4, the address come before the port. */
static void order(int family, int type)
{
	int s = socket(family, type, 0), r;
	struct sockaddr_in a = {AF_INET, htons(997), {htonl(0xc0000201)}};
	struct sockaddr_in6 a6 = {AF_INET6, htons(997), 0, {{{0x20, 1, 0xd, 0xb8, [15] = 1}}}};
	char b[sizeof a6] = {0};
	if (family == AF_INET)
		memcpy(b, &a, sizeof a);
	else
		memcpy(b, &a6, sizeof a6);
	errno = 0;
	r = bind(s, (void *)b, sizeof b);
	printf("an address of another machine: %d, %s\n", r, strerror(errno));
	((struct sockaddr *)b)->sa_family = AF_APPLETALK;
	errno = 0;
	r = bind(s, (void *)b, sizeof b);
	printf("another family: %d, %s\n", r, strerror(errno));
	close(s);
}

int main(void)
{
	setvbuf(stdout, 0, _IONBF, 0);
	all("root");
	if (setresuid(65534, 65534, 65534))
		return 1;
	all("another user");
	order(AF_INET, SOCK_STREAM), order(AF_INET, SOCK_DGRAM), order(AF_INET6, SOCK_STREAM), order(AF_INET6, SOCK_DGRAM);
	return 0;
}
