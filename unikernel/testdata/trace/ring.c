/* Receive rings of packet sockets (packet(7), PACKET_RX_RING), with slots (version 2) and blocks (version 3). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PORT = 40151, BLOCK = 4 * 4096, BLOCKS = 8, FRAME = 2048 };
static const char *error(long r) { return r == -1 ? strerror(errno) : "ok"; }
#define SHOW(x) do { errno = 0; long r_ = (long)(x); printf("%s: %s\n", #x, error(r_)); } while (0)

static long set(int s, int option, int v) { return setsockopt(s, SOL_PACKET, option, &v, sizeof v); }

static void header_length(int s, int version, socklen_t n)
{
	int v = version;
	long r = getsockopt(s, SOL_PACKET, PACKET_HDRLEN, &v, &n);
	printf("header of version %d, %s: %d, %u bytes\n", version, error(r), r ? 0 : v, r ? 0 : n);
}

/* Opens a packet socket with a ring on the loopback interface. Frames of other programs are not counted: see mine. */
static int ring(int version, char **memory)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = if_nametoindex("lo") };
	struct tpacket_req3 q = { BLOCK, BLOCKS, FRAME, BLOCK / FRAME * BLOCKS, 20, 0, 0 };
	int s = socket(AF_PACKET, SOCK_RAW, 0);
	size_t size = BLOCK * BLOCKS;
	SHOW(set(s, PACKET_VERSION, version));
	errno = 0;
	printf("mmap without a ring: %s\n", error((long)mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, s, 0)));
	SHOW(setsockopt(s, SOL_PACKET, PACKET_RX_RING, &q, version == TPACKET_V3 ? sizeof q : sizeof(struct tpacket_req)));
	printf("mmap of a part: %s\n", error((long)mmap(0, size / 2, PROT_READ | PROT_WRITE, MAP_SHARED, s, 0)));
	printf("mmap at an offset: %s\n", error((long)mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, s, 4096)));
	*memory = mmap(0, size, PROT_READ | PROT_WRITE, MAP_SHARED, s, 0);
	printf("mmap: %s\n", error((long)*memory));
	SHOW(set(s, PACKET_VERSION, TPACKET_V1));
	SHOW(madvise(*memory, size, MADV_REMOVE));
	SHOW(bind(s, (void *)&a, sizeof a));
	return s;
}

/* Sends count datagrams of growing size from a fresh socket. */
static void send_all(int count)
{
	struct sockaddr_in to = { AF_INET, htons(PORT), { htonl(INADDR_LOOPBACK) } };
	int s = socket(AF_INET, SOCK_DGRAM, 0), r = socket(AF_INET, SOCK_DGRAM, 0);
	char text[1500];
	if (bind(r, (void *)&to, sizeof to))
		printf("bind: %s\n", strerror(errno));
	for (int i = 0; i < count; i++) {
		memset(text, 'a' + i % 26, sizeof text);
		if (sendto(s, text, 100 + 10 * i, 0, (void *)&to, sizeof to) == -1)
			printf("sendto: %s\n", strerror(errno));
		recv(r, text, sizeof text, 0);
	}
	close(s);
	close(r);
}

/* Reports whether a received frame is a datagram to PORT: the socket also gets each sent frame. */
static int mine(const unsigned char *frame, const struct sockaddr_ll *from)
{
	return frame[12] == 8 && frame[13] == 0 && frame[23] == IPPROTO_UDP && (frame[36] << 8 | frame[37]) == PORT
		&& from->sll_pkttype == PACKET_HOST;
}

static void show(int number, const unsigned char *frame, unsigned len, unsigned snap, int mac, int net)
{
	int sum = 0;
	for (unsigned i = 42; i < snap; i++)
		sum += frame[i];
	printf("%d: %u of %u bytes at %d and %d, %c, %d\n", number, snap, len, mac, net, frame[42], sum);
}

static void slots(int count)
{
	char *memory;
	int s = ring(TPACKET_V2, &memory), seen = 0, sent = 0;
	for (int i = 0; seen < 3 * count; i++) {
		if (seen == sent) { /* the ring has room for so many frames, each of them sent and received */
			send_all(count);
			sent += count;
		}
		char *at = memory + i % (BLOCK / FRAME * BLOCKS) * FRAME;
		struct tpacket2_hdr *h = (void *)at;
		struct pollfd p = { s, POLLIN, 0 };
		while (!(__atomic_load_n(&h->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
			if (poll(&p, 1, 5000) <= 0) {
				printf("no more frames after %d\n", seen);
				exit(1);
			}
		if (mine((void *)(at + h->tp_mac), (void *)(at + TPACKET_ALIGN(sizeof *h))))
			show(seen++, (void *)(at + h->tp_mac), h->tp_len, h->tp_snaplen, h->tp_mac, h->tp_net);
		__atomic_store_n(&h->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	}
	close(s);
	SHOW(munmap(memory, BLOCK * BLOCKS));
}

static int walk(char *block, int seen)
{
	struct tpacket_block_desc *d = (void *)block;
	char *at = block + d->hdr.bh1.offset_to_first_pkt;
	for (unsigned i = 0; i < d->hdr.bh1.num_pkts; i++) {
		struct tpacket3_hdr *h = (void *)at;
		if (mine((void *)(at + h->tp_mac), (void *)(at + TPACKET_ALIGN(sizeof *h))))
			show(seen++, (void *)(at + h->tp_mac), h->tp_len, h->tp_snaplen, h->tp_mac, h->tp_net);
		at += h->tp_next_offset;
	}
	return seen;
}

static void blocks(int count)
{
	char *memory;
	int s = ring(TPACKET_V3, &memory), seen = 0;
	if (fork() == 0) { /* the ring is shared with the child, which sends */
		send_all(count);
		munmap(memory, BLOCK * BLOCKS);
		_exit(0);
	}
	for (int i = 0; seen < count; i++) {
		struct tpacket_block_desc *d = (void *)(memory + i % BLOCKS * BLOCK);
		struct pollfd p = { s, POLLIN, 0 };
		while (!(__atomic_load_n(&d->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER))
			if (poll(&p, 1, 5000) <= 0) {
				printf("no more frames after %d\n", seen);
				exit(1);
			}
		seen = walk((void *)d, seen);
		__atomic_store_n(&d->hdr.bh1.block_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
	}
	wait(0);
	SHOW(munmap(memory, BLOCK));
	SHOW(munmap(memory + BLOCK, BLOCK * (BLOCKS - 1)));
	struct tpacket_req3 none = { 0 };
	SHOW(setsockopt(s, SOL_PACKET, PACKET_RX_RING, &none, sizeof none));
}

int main(void)
{
	int s = socket(AF_PACKET, SOCK_RAW, 0);
	for (int version = -1; version < 4; version++)
		header_length(s, version, 4);
	header_length(s, TPACKET_V3, 3);
	header_length(s, TPACKET_V3, 8);
	slots(25);
	blocks(60);
	return 0;
}
