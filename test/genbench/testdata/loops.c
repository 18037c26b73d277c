// Bare loops of the system calls that the packet engine's methods make, for the
// bench beside them: the same socket, the same options, the same frame, and
// nothing else.
//
//	loops udp|raw|mmsg|udpgso|packet INTERFACE DESTINATION
//
// udp, raw and packet take one call a frame or, like the method packet, a batch.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { batch = 64, payload = 18, port = 9, udp_segment = 103 };

// A UDP datagram in an Ethernet frame of 64 bytes with its check sequence.
static unsigned char frame[60] = {
	2, 0, 0, 0, 0, 0x99, 2, 0, 0, 0, 0, 1, 8, 0,
	0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
	4, 0, 0, port, 0, 26, 0, 0,
};

static void die(const char *what) {
	perror(what);
	exit(1);
}

// room waits where the method waits: for the socket, or a moment.
static void room(int fd) {
	struct pollfd p = {fd, POLLOUT, 0};
	if (errno == EAGAIN)
		poll(&p, 1, 10);
	else if (errno != ENOBUFS && errno != EINTR && errno != ECONNREFUSED)
		die("send");
}

static int inet(const char *by, const char *to, int kind, int protocol, int portno) {
	int fd = socket(AF_INET, kind | SOCK_NONBLOCK, protocol), size = 4 << 20;
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(portno)};
	if (fd < 0 || inet_pton(AF_INET, to, &a.sin_addr) != 1)
		die("socket");
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
	if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, by, strlen(by)))
		die("SO_BINDTODEVICE");
	if (connect(fd, (struct sockaddr *)&a, sizeof a))
		die("connect");
	return fd;
}

static int packet(const char *interface) {
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0), size = 4 << 20, one = 1;
	struct sockaddr_ll a = {.sll_family = AF_PACKET, .sll_ifindex = if_nametoindex(interface)};
	if (fd < 0)
		die("socket");
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
	if (setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof one) || bind(fd, (struct sockaddr *)&a, sizeof a))
		die("bind");
	return fd;
}

static void singles(int fd, const void *b, size_t n) {
	for (;;)
		if (send(fd, b, n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			room(fd);
}

static void batches(int fd, void *b, size_t n) {
	struct iovec v[batch];
	struct mmsghdr m[batch];
	memset(m, 0, sizeof m);
	for (int i = 0; i < batch; i++) {
		v[i] = (struct iovec){b, n};
		m[i].msg_hdr.msg_iov = &v[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	for (;;)
		if (sendmmsg(fd, m, batch, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			room(fd);
}

int main(int argc, char **argv) {
	if (argc != 4) {
		fprintf(stderr, "loops METHOD INTERFACE DESTINATION\n");
		return 2;
	}
	cpu_set_t first; // as a worker of the engine
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	sched_setaffinity(0, sizeof first, &first);
	static unsigned char train[batch * payload];
	int size = payload;
	if (!strcmp(argv[1], "udp"))
		singles(inet(argv[2], argv[3], SOCK_DGRAM, 0, port), frame + 42, payload);
	if (!strcmp(argv[1], "mmsg"))
		batches(inet(argv[2], argv[3], SOCK_DGRAM, 0, port), frame + 42, payload);
	if (!strcmp(argv[1], "raw")) {
		inet_pton(AF_INET, argv[3], frame + 30);
		singles(inet(argv[2], argv[3], SOCK_RAW, IPPROTO_RAW, 0), frame + 14, 46);
	}
	if (!strcmp(argv[1], "packet"))
		batches(packet(argv[2]), frame, sizeof frame);
	if (!strcmp(argv[1], "udpgso")) {
		int fd = inet(argv[2], argv[3], SOCK_DGRAM, 0, port);
		if (setsockopt(fd, IPPROTO_UDP, udp_segment, &size, sizeof size))
			die("UDP_SEGMENT");
		singles(fd, train, sizeof train);
	}
	fprintf(stderr, "no method %s\n", argv[1]);
	return 2;
}
