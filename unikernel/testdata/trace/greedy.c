/*
 * Processes of an ordinary user make the kernel allocate memory, as much as they get, on a machine with little memory. Meanwhile a
 * server answers a client, which checks each reply. Afterwards another process can use half of the memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { USER = 1000, GREEDY = 3, LONGEST = 15 };

static struct { volatile long replies, wrong; volatile int stop, refused[GREEDY]; } *shared;
static int me; /* number of a greedy process */

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Connected sockets with full buffers. */
static void sockets(void)
{
	static char b[65536];
	for (int p[2]; socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, p) == 0;) {
		while (write(p[1], b, sizeof b) > 0)
			;
		while (write(p[0], b, sizeof b) > 0)
			;
	}
}

/* A chain of sockets: each is in a message to the next one. */
static void chains(void)
{
	int p[2], q[2];
	union { char b[CMSG_SPACE(sizeof(int))]; struct cmsghdr c; } u = { .c = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec v = { "x", 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1, .msg_control = u.b, .msg_controllen = sizeof u.b };
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, p))
		return;
	for (int f = p[0]; socketpair(AF_UNIX, SOCK_STREAM, 0, q) == 0; f = q[0]) {
		memcpy(CMSG_DATA(&u.c), &f, sizeof f);
		if (sendmsg(q[1], &m, 0) < 0)
			return;
		close(f), close(q[1]);
	}
}

/* Memory of the process. */
static void memory(void)
{
	enum { SIZE = 1 << 20 };
	for (char *p; (p = mmap(0, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED;)
		for (int i = 0; i < SIZE; i += 4096)
			p[i] = 1;
}

static void both(void) { me ? memory() : sockets(); }

/* Files with long names. */
static void names(void)
{
	char name[300];
	for (long i = 0;; i++) {
		sprintf(name, "/dev/shm/%0200d.%ld", me, i);
		int f = open(name, O_CREAT | O_RDWR, 0666);
		if (f < 0)
			return;
		close(f);
	}
}

static const struct kind { const char *name; void (*f)(void); } kinds[] = { { "sockets", sockets }, { "chains", chains }, { "both", both }, { "names", names } };

static pid_t served[2];

static void serve(void)
{
	int s[2];
	char in[32], out[32];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s))
		exit(1);
	if ((served[0] = fork()) == 0) {
		close(s[0]);
		for (ssize_t n; (n = read(s[1], in, sizeof in)) > 0;)
			if (write(s[1], in, n) != n)
				break;
		_exit(0);
	}
	if ((served[1] = fork()) == 0) {
		close(s[1]);
		while (!shared->stop) {
			memset(out, shared->replies, sizeof out);
			if (write(s[0], out, sizeof out) != sizeof out || recv(s[0], in, sizeof in, MSG_WAITALL) != sizeof in || memcmp(in, out, sizeof in))
				shared->wrong++;
			shared->replies++;
			usleep(10000);
		}
		_exit(0);
	}
	close(s[0]), close(s[1]);
}

/* Runs a greedy process as an ordinary user with all descriptors that it can have. */
static void greed(void (*f)(void))
{
	struct rlimit r;
	getrlimit(RLIMIT_NOFILE, &r);
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
	if (setgroups(0, 0) || setresgid(USER, USER, USER) || setresuid(USER, USER, USER))
		_exit(1);
	f();
	shared->refused[me] = 1;
	for (;;)
		pause();
}

static void run(const struct kind *k)
{
	pid_t greedy[GREEDY];
	for (me = 0; me < GREEDY; me++) {
		shared->refused[me] = 0;
		if ((greedy[me] = fork()) == 0)
			greed(k->f);
	}
	int left = GREEDY;
	for (double end = now() + LONGEST; left && now() < end; usleep(20000)) {
		left = 0;
		for (int i = 0; i < GREEDY; i++) {
			if (greedy[i] > 0 && waitpid(greedy[i], 0, WNOHANG) == greedy[i])
				greedy[i] = 0;
			left += greedy[i] > 0 && !shared->refused[i];
		}
	}
	for (int i = 0; i < GREEDY; i++)
		if (greedy[i] > 0)
			kill(greedy[i], SIGKILL), waitpid(greedy[i], 0, 0);
	struct sysinfo s;
	sysinfo(&s);
	int status = -1;
	pid_t p = fork();
	if (p == 0) {
		long size = s.totalram * s.mem_unit / 2;
		char *b = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (b == MAP_FAILED)
			_exit(1);
		for (long i = 0; i < size; i += 4096)
			b[i] = 1;
		_exit(0);
	}
	waitpid(p, &status, 0);
	int alive = 0;
	for (int i = 0; i < 2; i++)
		alive += waitpid(served[i], 0, WNOHANG) == 0;
	printf("%s: %d of 2 others run, %ld wrong replies, half of the memory: %x\n", k->name, alive, shared->wrong, status);
}

int main(void)
{
	setvbuf(stdout, 0, _IONBF, 0);
	shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	serve();
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
		run(&kinds[i]);
	shared->stop = 1;
	while (wait(0) > 0)
		;
	return 0;
}
