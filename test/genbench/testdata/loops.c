// Bare loops of the system calls that the packet engine's methods make, for the
// bench beside them: the same socket, the same options, the same frame, and
// nothing else.
//
//	loops udp|raw|mmsg|udpgso|packet|xdp INTERFACE DESTINATION
//	loops paced INTERFACE GAP COUNT
//
// paced sends single frames, each GAP nanoseconds after the one before, by watching the clock.
//
// udp, raw and packet take one call a frame or, like the method packet, a batch. xdp does
// less than any generator can: its descriptors are written once, and all are of one frame.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

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

// ring is one that AF_XDP shares, of as many slots as xdp has frames under way.
struct ring {
	uint32_t *producer, *consumer;
	char *slots;
};

enum { under_way = 4096, chunk = 4096, max_tx_skb_budget = 9 };

static struct ring ring(int fd, off_t which, const struct xdp_ring_offset *at, size_t slot) {
	char *m = mmap(0, at->desc + under_way * slot, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, which);
	if (m == MAP_FAILED)
		die("mmap");
	return (struct ring){(uint32_t *)(m + at->producer), (uint32_t *)(m + at->consumer), m + at->desc};
}

static void option(int fd, int name, int to) {
	if (setsockopt(fd, SOL_XDP, name, &to, sizeof to) && name != max_tx_skb_budget)
		die("setsockopt");
}

// xdp hands over all that there is room for, and has the kernel send it.
static void xdp(const char *interface) {
	static char memory[chunk] __attribute__((aligned(chunk)));
	int fd = socket(AF_XDP, SOCK_RAW, 0), size = 64 << 20;
	struct xdp_umem_reg umem = {.addr = (uintptr_t)memory, .len = chunk, .chunk_size = chunk};
	struct sockaddr_xdp a = {.sxdp_family = AF_XDP, .sxdp_ifindex = if_nametoindex(interface), .sxdp_flags = XDP_USE_NEED_WAKEUP | XDP_COPY};
	struct xdp_mmap_offsets at;
	socklen_t n = sizeof at;
	if (fd < 0 || setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &umem, sizeof umem))
		die("AF_XDP");
	option(fd, XDP_UMEM_FILL_RING, under_way);
	option(fd, XDP_UMEM_COMPLETION_RING, under_way);
	option(fd, XDP_TX_RING, under_way);
	option(fd, max_tx_skb_budget, under_way);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
	if (getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &at, &n))
		die("XDP_MMAP_OFFSETS");
	struct ring out = ring(fd, XDP_PGOFF_TX_RING, &at.tx, sizeof(struct xdp_desc));
	struct ring done = ring(fd, XDP_UMEM_PGOFF_COMPLETION_RING, &at.cr, sizeof(uint64_t));
	for (int tries = 0; bind(fd, (struct sockaddr *)&a, sizeof a); tries++) {
		if (errno != EBUSY || tries == 100)
			die("bind");
		usleep(10000); // the kernel frees the queue of who had it in the background
	}
	memcpy(memory, frame, sizeof frame);
	for (int i = 0; i < under_way; i++)
		((struct xdp_desc *)out.slots)[i] = (struct xdp_desc){.len = sizeof frame};
	for (;;) {
		uint32_t left = __atomic_load_n(done.producer, __ATOMIC_ACQUIRE);
		__atomic_store_n(done.consumer, left, __ATOMIC_RELEASE);
		__atomic_store_n(out.producer, left + under_way, __ATOMIC_RELEASE);
		if (sendto(fd, 0, 0, MSG_DONTWAIT, 0, 0) < 0 && errno != EAGAIN && errno != EBUSY)
			room(fd);
	}
}

static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static int paced(int fd, int64_t gap, long count) {
	for (int64_t due = now(); count > 0; count--, due += gap) {
		while (now() < due)
			;
		if (send(fd, frame, sizeof frame, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
			die("send");
	}
	return 0;
}

int main(int argc, char **argv) {
	if (argc != 4 && argc != 5) {
		fprintf(stderr, "loops METHOD INTERFACE DESTINATION\n");
		return 2;
	}
	cpu_set_t first; // as a worker of the engine
	CPU_ZERO(&first);
	CPU_SET(0, &first);
	sched_setaffinity(0, sizeof first, &first);
	if (argc == 5)
		return paced(packet(argv[2]), atoll(argv[3]), atol(argv[4]));
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
	if (!strcmp(argv[1], "xdp"))
		xdp(argv[2]);
	if (!strcmp(argv[1], "udpgso")) {
		int fd = inet(argv[2], argv[3], SOCK_DGRAM, 0, port);
		if (setsockopt(fd, IPPROTO_UDP, udp_segment, &size, sizeof size))
			die("UDP_SEGMENT");
		singles(fd, train, sizeof train);
	}
	fprintf(stderr, "no method %s\n", argv[1]);
	return 2;
}
