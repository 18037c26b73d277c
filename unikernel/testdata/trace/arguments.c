/* Arguments of system calls that other tests do not cover: wrong times, addresses and flags. Events of directories, and sysinfo(2). */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *error(long r) { return r == -1 ? strerror(errno) : "ok"; }
#define SHOW(x) do { errno = 0; long r_ = (long)(x); printf("%s: %ld, %s\n", #x, r_, error(r_)); } while (0)
#define FAILS(x) do { errno = 0; long r_ = (long)(x); printf("%s: %s\n", #x, error(r_)); } while (0)

static struct sockaddr_in to = { .sin_family = AF_INET };
static int receiver, sender;
static struct mmsghdr messages[4];
static void *const bad = (void *)1;

static void transmit(int n)
{
	while (n-- > 0)
		sendto(sender, "x", 1, 0, (void *)&to, sizeof to);
}

static long receive(int n, int flags, void *timeout) { return syscall(SYS_recvmmsg, receiver, messages, n, flags, timeout); }

/* recvmmsg(2): the timeout is checked first, is looked at after each message, and is updated. */
static void recvmmsgs(void)
{
	static struct iovec parts[4];
	static char text[4][8];
	socklen_t size = sizeof to;
	struct timespec before = { -1, 0 }, large = { 0, 1000000000 }, none = { 0, 0 }, some = { 100, 0 }, far = { 1L << 40, 0 };
	receiver = socket(AF_INET, SOCK_DGRAM, 0);
	sender = socket(AF_INET, SOCK_DGRAM, 0);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	bind(receiver, (void *)&to, sizeof to);
	getsockname(receiver, (void *)&to, &size);
	for (int i = 0; i < 4; i++) {
		parts[i] = (struct iovec){ text[i], sizeof text[i] };
		messages[i].msg_hdr.msg_iov = &parts[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	transmit(1);
	SHOW(receive(1, 0, &before));
	SHOW(receive(1, 0, &large));
	SHOW(receive(1, 0, bad));
	SHOW(syscall(SYS_recvmmsg, -1, messages, 1, 0, &before));
	SHOW(syscall(SYS_recvmmsg, -1, messages, 1, 0, bad));
	SHOW(receive(0, 0, &far));
	printf("%d\n", far.tv_sec == 1L << 40);
	SHOW(receive(4, 0, &none));
	SHOW(receive(4, MSG_DONTWAIT, &some));
	printf("%d\n", some.tv_sec == 100);
	transmit(1);
	SHOW(receive(4, MSG_WAITFORONE, &some));
	printf("%d\n", some.tv_sec < 100);
	fflush(stdout);
	int child = fork();
	if (child == 0)
		_exit(receive(3, 0, 0));
	for (int i = 0; i < 3; i++) {
		usleep(20000);
		SHOW(waitpid(child, 0, WNOHANG));
		transmit(1);
	}
	int status;
	waitpid(child, &status, 0);
	printf("the child received %d messages\n", WEXITSTATUS(status));
}

/* Clocks: no call here would set a clock, even if it had the right to. */
static void clocks(void)
{
	struct timespec now = { 1, 0 }, wrong = { 0, -1 }, far = { 1L << 40, 0 };
	struct timeval distant = { 1L << 40, 0 }, early = { 1, -1 }, late = { 1, 1000000 };
	struct timezone zone = { 7, 7 };
	for (int clock = 1; clock < 20; clock++)
		printf("clock %d: %s, ", clock, error(syscall(SYS_clock_settime, clock, &now)));
	puts("");
	FAILS(syscall(SYS_clock_settime, 7, bad));
	FAILS(syscall(SYS_clock_settime, -1, &now));
	FAILS(syscall(SYS_clock_settime, CLOCK_REALTIME, bad));
	FAILS(syscall(SYS_clock_settime, CLOCK_REALTIME, &wrong));
	FAILS(syscall(SYS_clock_settime, CLOCK_REALTIME, &far));
	FAILS(syscall(SYS_clock_settime, ~99999999 << 3 | 2, &now)); /* the clock of a process that does not exist */
	FAILS(syscall(SYS_settimeofday, bad, 0));
	FAILS(syscall(SYS_settimeofday, 0, bad));
	FAILS(syscall(SYS_settimeofday, &distant, bad));
	FAILS(syscall(SYS_settimeofday, &distant, 0));
	FAILS(syscall(SYS_settimeofday, &early, 0));
	FAILS(syscall(SYS_settimeofday, &late, 0));
	FAILS(syscall(SYS_gettimeofday, 0, 0));
	FAILS(syscall(SYS_gettimeofday, 0, bad));
	FAILS(syscall(SYS_gettimeofday, 0, &zone));
	printf("%d %d\n", zone.tz_minuteswest, zone.tz_dsttime);
	FAILS(syscall(SYS_sched_rr_get_interval, 0, 0));
	FAILS(syscall(SYS_sched_getparam, 0, 0));
}

static void kinds(void)
{
	int pair[2];
	for (int type = 1; type < 6; type += type == 2 ? 2 : 1)
		for (int protocol = 0; protocol < 2; protocol++)
			printf("%d, %d: %s, ", type, protocol, error(socketpair(AF_INET, type, protocol * IPPROTO_UDP, pair)));
	puts("");
	FAILS(socketpair(0, SOCK_STREAM, 0, pair));
	FAILS(socketpair(99, SOCK_STREAM, 0, pair));
	FAILS(socketpair(99, SOCK_STREAM, 0, bad));
	FAILS(socketpair(AF_INET, SOCK_STREAM, 0, bad));
	FAILS(socketpair(AF_UNIX, 9, 0, bad));
	FAILS(socketpair(AF_NETLINK, SOCK_STREAM, 0, pair));
	for (unsigned size = 0; size < 64; size++)
		if (size != 0 && size != 21 && size != 30 && mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | size << 26, -1, 0) != MAP_FAILED)
			printf("pages of 2^%u bytes\n", size);
	FAILS(mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | 12u << 26, -1, 0));
}

/* inotify(7): which events of a directory have IN_ISDIR. */
static void directories(void)
{
	char name[] = "/tmp/argumentsXXXXXX", inner[64], moved[64], buffer[4096];
	int fd = inotify_init1(IN_NONBLOCK);
	if (!mkdtemp(name))
		return;
	snprintf(inner, sizeof inner, "%s/inner", name);
	snprintf(moved, sizeof moved, "%s/moved", name);
	mkdir(inner, 0755);
	SHOW(inotify_add_watch(fd, name, IN_MOVE));
	SHOW(inotify_add_watch(fd, inner, IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF));
	chmod(inner, 0700);
	rename(inner, moved);
	rmdir(moved);
	rmdir(name);
	int n = read(fd, buffer, sizeof buffer);
	for (int at = 0; at < n; at += sizeof(struct inotify_event) + ((struct inotify_event *)(buffer + at))->len) {
		struct inotify_event *e = (void *)(buffer + at);
		printf("watch %d, event %x, name %s\n", e->wd, e->mask, e->len ? e->name : "");
	}
	close(fd);
}

/* sysinfo(2) agrees with /proc/uptime and /proc/loadavg. */
static void figures(void)
{
	struct sysinfo s;
	double up, load;
	for (int i = 0; i < 100; i++) { /* again if a sample was taken between the reads */
		FILE *u = fopen("/proc/uptime", "r"), *l = fopen("/proc/loadavg", "r");
		int n = fscanf(u, "%lf", &up) + fscanf(l, "%lf", &load);
		fclose(u);
		fclose(l);
		if (n == 2 && sysinfo(&s) == 0 && s.uptime >= up && s.uptime <= up + 30 && (s.loads[0] / 65536.0 - load) * (s.loads[0] / 65536.0 - load) < 0.0004) {
			puts("the figures agree");
			return;
		}
	}
	printf("uptime %ld and %f, load %f and %f\n", s.uptime, up, s.loads[0] / 65536.0, load);
}

/* sysinfo(2) agrees with /proc/meminfo. */
static void memory(void)
{
	struct sysinfo s;
	unsigned long total = 0, free = 0;
	FILE *f = fopen("/proc/meminfo", "r");
	int n = fscanf(f, "MemTotal: %lu kB MemFree: %lu kB", &total, &free);
	fclose(f);
	if (n != 2 || sysinfo(&s) != 0 || s.totalram * s.mem_unit >> 10 != total || s.freeram > s.totalram) {
		printf("total memory %lu and %lu kB\n", s.totalram * s.mem_unit >> 10, total);
		return;
	}
	puts("the memory agrees");
}

/* One call reads and writes all bytes of a file. */
static void large(void)
{
	enum { size = 9 << 20 };
	char name[] = "/tmp/argumentsXXXXXX", *bytes = malloc(size);
	volatile long huge = 1l << 62; /* volatile: the compiler would warn */
	int fd = mkstemp(name), zero = open("/dev/zero", O_RDONLY);
	memset(bytes, 1, size);
	SHOW(write(fd, bytes, size));
	SHOW(pwrite(fd, bytes, size, 10));
	SHOW(lseek(fd, 0, SEEK_END));
	SHOW(pread(fd, bytes, size, 100));
	SHOW(lseek(fd, 1000, SEEK_SET));
	SHOW(read(fd, bytes, size));
	SHOW(read(fd, bytes, size));
	SHOW(read(zero, bytes, size));
	SHOW(bytes[size - 1]);
	SHOW(read(fd, bytes, huge));
	SHOW(pread(fd, bytes, huge, 0));
	SHOW(pread(fd, bytes, huge, huge));
	SHOW(write(fd, bytes, huge >> 15));
	SHOW(lseek(fd, 0, SEEK_CUR));
	unlink(name);
	close(fd);
	close(zero);
	free(bytes);
}

/* A page of the buffer is missing: the call ends before it, and the offset agrees with the result. */
static void hole(void)
{
	enum { size = 9 << 20, at = 5 << 20 };
	char name[] = "/tmp/argumentsXXXXXX", *bytes = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = mkstemp(name), zero = open("/dev/zero", O_RDWR);
	write(fd, bytes, size);
	mprotect(bytes + at, 4096, PROT_NONE);
	for (int i = 0; i < 2; i++) {
		lseek(fd, 0, SEEK_SET);
		SHOW(i ? write(fd, bytes, size) : read(fd, bytes, size));
		SHOW(lseek(fd, 0, SEEK_CUR));
		SHOW(i ? write(fd, bytes + at, size) : read(fd, bytes + at, size));
		SHOW(lseek(fd, 0, SEEK_CUR));
		SHOW(i ? pwrite(fd, bytes + 3, size, 7) : pread(fd, bytes + 3, size, 7));
	}
	SHOW(lseek(fd, 0, SEEK_END));
	SHOW(read(zero, bytes, size));
	SHOW(write(zero, bytes, size));
	unlink(name);
	close(fd);
	close(zero);
	munmap(bytes, size);
}

/* Two processes append by one open file: each write is one piece. RLIMIT_FSIZE ends a write. */
static void pieces(void)
{
	enum { size = 9 << 20 };
	char name[] = "/tmp/argumentsXXXXXX", *bytes = malloc(2 * size);
	int fd = mkstemp(name), changes = 0;
	struct rlimit limit = { 5 << 20, RLIM_INFINITY };
	fcntl(fd, F_SETFL, O_APPEND);
	int child = fork();
	memset(bytes, child ? 1 : 2, size);
	long n = write(fd, bytes, size);
	if (child == 0)
		_exit(n != size);
	int status;
	waitpid(child, &status, 0);
	SHOW(n);
	SHOW(status);
	SHOW(lseek(fd, 0, SEEK_CUR));
	SHOW(pread(fd, bytes, 2 * size, 0));
	for (int i = 1; i < 2 * size; i++)
		changes += bytes[i] != bytes[i - 1];
	SHOW(changes);
	fflush(stdout);
	if (fork() == 0) {
		signal(SIGXFSZ, SIG_IGN);
		fcntl(fd, F_SETFL, 0);
		setrlimit(RLIMIT_FSIZE, &limit);
		SHOW(pwrite(fd, bytes, size, 1000));
		SHOW(pwrite(fd, bytes, size, 1 << 20));
		SHOW(pwrite(fd, bytes, size, 5 << 20));
		fcntl(fd, F_SETFL, O_APPEND);
		SHOW(write(fd, bytes, size));
		_exit(0);
	}
	wait(0);
	unlink(name);
	close(fd);
	free(bytes);
}

static void tick(int n) { (void)n; }

/* A signal ends a read of /dev/zero early, and no transfer of a file. */
static void interrupted(void)
{
	enum { size = 32 << 20, part = 9 << 20 };
	char name[] = "/tmp/argumentsXXXXXX", *bytes = malloc(size);
	int fd = mkstemp(name), zero = open("/dev/zero", O_RDONLY), early = 0, whole = 0;
	struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { 0 };
	struct sigaction action = { .sa_handler = tick, .sa_flags = SA_RESTART };
	sigaction(SIGALRM, &action, 0);
	setitimer(ITIMER_REAL, &often, 0);
	for (int i = 0; i < 1000 && !early; i++) {
		long n = read(zero, bytes, size);
		early = n > 0 && n < size;
	}
	for (int i = 0; i < 10; i++)
		whole += pwrite(fd, bytes, part, 0) == part && pread(fd, bytes, part, 0) == part;
	setitimer(ITIMER_REAL, &never, 0);
	SHOW(early);
	SHOW(whole);
	unlink(name);
	close(fd);
	close(zero);
	free(bytes);
}

int main(void)
{
	setvbuf(stdout, 0, _IONBF, 0);
	recvmmsgs();
	clocks();
	kinds();
	directories();
	figures();
	memory();
	large();
	hole();
	pieces();
	interrupted();
	return 0;
}
