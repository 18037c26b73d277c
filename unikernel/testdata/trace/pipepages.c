/* Capacity of pipes in pages, packets, and how calls on pipes count pages. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static char block[1 << 20];

/* Opens a pipe in non-blocking mode. */
static void open_pipe(int p[2], int flags)
{
	if (pipe2(p, O_NONBLOCK | flags))
		printf("pipe2: %s\n", strerror(errno));
}

static void close_pipe(int p[2])
{
	close(p[0]);
	close(p[1]);
}

/* Shows the result of a call, and the state of the pipe after it. */
static void show(const char *what, int p[2], long result)
{
	int error = errno, held = -1;
	ioctl(p[0], FIONREAD, &held);
	struct pollfd f[2] = {{p[0], POLLIN, 0}, {p[1], POLLOUT, 0}};
	poll(f, 2, 0);
	printf("%s: %ld%s%s, %d bytes, poll %x %x\n", what, result, result < 0 ? " " : "", result < 0 ? strerror(error) : "", held, f[0].revents, f[1].revents);
}

/* Writes n bytes at a time until the pipe is full. */
static void fill(int p[2], long n)
{
	int count = 0;
	long last;
	while ((last = write(p[1], block, n)) == n)
		count++;
	char what[40];
	snprintf(what, sizeof what, "%d writes of %ld, then", count, n);
	show(what, p, last);
}

static void capacity(void)
{
	static const int sizes[] = {60, 1000, 2048, 2049, 4095, 4096, 4097, 5000, 10000, 65535, 65536, 65537, 100000};
	for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++) {
		int p[2];
		open_pipe(p, 0);
		fill(p, sizes[i]);
		show("one more byte", p, write(p[1], block, 1));
		show("read of 1", p, read(p[0], block, 1));
		show("write of 1", p, write(p[1], block, 1));
		show("read of 4095", p, read(p[0], block, 4095));
		show("write of 4096", p, write(p[1], block, 4096));
		show("read of 4097", p, read(p[0], block, 4097));
		show("write of 9000", p, write(p[1], block, 9000));
		show("read of all", p, read(p[0], block, sizeof block));
		close_pipe(p);
	}
}

static void resized(void)
{
	static const int sizes[] = {0, 1, 4096, 4097, 12288, 65536, 65537, 1 << 20, 1000000};
	for (int i = 0; i < (int)(sizeof sizes / sizeof *sizes); i++) {
		int p[2];
		open_pipe(p, 0);
		int n = fcntl(p[1], F_SETPIPE_SZ, sizes[i]);
		printf("set %d: %d, get %d\n", sizes[i], n, fcntl(p[0], F_GETPIPE_SZ));
		fill(p, 3000);
		close_pipe(p);
	}
	int p[2];
	open_pipe(p, 0);
	for (int i = 0; i < 3; i++)
		write(p[1], block, 3000);
	show("set to two pages", p, fcntl(p[1], F_SETPIPE_SZ, 8192));
	show("set to three pages", p, fcntl(p[1], F_SETPIPE_SZ, 12288));
	show("set -1", p, fcntl(p[1], F_SETPIPE_SZ, -1));
	fill(p, 4096);
	show("read", p, read(p[0], block, 20000));
	close_pipe(p);
}

/* Writes s, in packets if the flag is set. */
static void put(int p[2], const char *s, int packets)
{
	fcntl(p[1], F_SETFL, O_NONBLOCK | (packets ? O_DIRECT : 0));
	write(p[1], s, strlen(s));
}

static void packets(void)
{
	int p[2];
	open_pipe(p, O_DIRECT);
	printf("flags %d %d\n", !!(fcntl(p[0], F_GETFL) & O_DIRECT), !!(fcntl(p[1], F_GETFL) & O_DIRECT));
	put(p, "one", 1);
	put(p, "second", 1);
	show("write of nothing", p, write(p[1], block, 0));
	show("read of a packet", p, read(p[0], block, 100));
	show("read of a part", p, read(p[0], block, 2));
	show("the rest is dropped", p, read(p[0], block, 2));
	show("write of 10000", p, write(p[1], block, 10000));
	for (int i = 0; i < 4; i++)
		show("read of 10000", p, read(p[0], block, 10000));
	fill(p, 1);
	show("read of 1", p, read(p[0], block, 1));
	show("read of 0", p, read(p[0], block, 0));
	close_pipe(p);

	open_pipe(p, 0);
	put(p, "stream", 0);
	put(p, "joins", 1);
	put(p, "packet", 1);
	put(p, "begins a page", 0);
	put(p, " and joins", 0);
	printf("flags %d\n", !!(fcntl(p[1], F_GETFL) & O_DIRECT));
	show("read of 3", p, read(p[0], block, 3));
	show("read of 12", p, read(p[0], block, 12));
	show("read of the stream", p, read(p[0], block, 100));
	close_pipe(p);
}

/* Copies between pipes keep pages and packets. */
static void copies(void)
{
	int p[2], q[2];
	open_pipe(p, 0);
	open_pipe(q, 0);
	put(p, "packet", 1);
	put(p, "page", 0);
	put(p, " and next", 0);
	show("tee", q, tee(p[0], q[1], 100, SPLICE_F_NONBLOCK));
	put(q, "more", 0);
	show("read", q, read(q[0], block, 100));
	show("read", q, read(q[0], block, 100));
	show("splice of 2", q, splice(p[0], 0, q[1], 0, 2, SPLICE_F_NONBLOCK));
	show("splice of all", q, splice(p[0], 0, q[1], 0, 100, SPLICE_F_NONBLOCK));
	put(q, "joins", 0);
	show("from", p, read(p[0], block, 100));
	show("read", q, read(q[0], block, 100));
	show("read", q, read(q[0], block, 100));

	for (int i = 0; i < 20; i++)
		write(p[1], block, 3000);
	show("splice to a full pipe", q, splice(p[0], 0, q[1], 0, 100000, SPLICE_F_NONBLOCK));
	show("splice again", q, splice(p[0], 0, q[1], 0, 100000, SPLICE_F_NONBLOCK));
	show("tee to a full pipe", q, tee(p[0], q[1], 100000, SPLICE_F_NONBLOCK));
	close_pipe(p);
	close_pipe(q);

	char name[] = "/tmp/pipepages-XXXXXX";
	int f = mkstemp(name);
	unlink(name);
	ftruncate(f, 200000);
	open_pipe(p, 0);
	for (int i = 0; i < 3; i++) {
		loff_t at = 0;
		show("splice of a file", p, splice(f, &at, p[1], 0, 5, SPLICE_F_NONBLOCK));
	}
	put(p, "write", 0);
	loff_t at = 0;
	show("splice of the whole file", p, splice(f, &at, p[1], 0, 200000, SPLICE_F_NONBLOCK));
	show("write", p, write(p[1], block, 1));
	at = 0;
	show("splice to a file", p, splice(p[0], 0, f, &at, 200000, SPLICE_F_NONBLOCK));
	close_pipe(p);
	close(f);
}

/* A blocking vmsplice waits for room, but not for more room after its first bytes. */
static void mapped(void)
{
	static char memory[2][1 << 17] __attribute__((aligned(4096)));
	int p[2];
	alarm(100);
	open_pipe(p, 0);
	fcntl(p[1], F_SETFL, 0);
	struct iovec v[2] = {{memory[0], sizeof memory[0]}, {memory[1], sizeof memory[1]}};
	show("vmsplice", p, vmsplice(p[1], v, 2, 0));
	show("vmsplice without waiting", p, vmsplice(p[1], v, 2, SPLICE_F_NONBLOCK));
	show("read", p, read(p[0], block, 8192));
	show("vmsplice to two pages", p, vmsplice(p[1], v, 2, 0));
	close(p[0]);
	signal(SIGPIPE, SIG_IGN);
	long n = vmsplice(p[1], v, 2, 0);
	printf("vmsplice without a reader: %ld %s\n", n, strerror(errno));
	close(p[1]);
}

static void named(void)
{
	char dir[] = "/tmp/pipepages-XXXXXX", path[60];
	mkdtemp(dir);
	snprintf(path, sizeof path, "%s/fifo", dir);
	mkfifo(path, 0600);
	int p[2] = {open(path, O_RDONLY | O_NONBLOCK)};
	p[1] = open(path, O_WRONLY | O_NONBLOCK);
	fill(p, 2100);
	show("read", p, read(p[0], block, sizeof block));
	put(p, "one", 1);
	put(p, "two", 1);
	show("read of a packet", p, read(p[0], block, 100));
	close_pipe(p);
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_DIRECT);
	printf("open with O_DIRECT: %s\n", fd < 0 ? strerror(errno) : "ok");
	unlink(path);
	rmdir(dir);
}

int main(void)
{
	capacity();
	resized();
	packets();
	copies();
	mapped();
	named();
}
