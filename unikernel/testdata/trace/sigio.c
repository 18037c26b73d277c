/* SIGIO and SIGURG: owners of files and their signals. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static const char *error(long r) { return r == -1 ? strerror(errno) : "ok"; }
#define SHOW(x) do { errno = 0; long r_ = (long)(x); printf("%s: %s\n", #x, error(r_)); } while (0)

static int base; /* the first descriptor of a pair: numbers are relative to it */
static sigset_t set;

/* Prints the signals that arrive within a time. Equal ones in a row are printed once. */
static void expect(const char *what)
{
	struct timespec t = { 0, 100000000 };
	siginfo_t i;
	char last[100] = "", line[100];
	int n;
	printf("%s:", what);
	while ((n = sigtimedwait(&set, &i, &t)) > 0) {
		if (i.si_code == SI_KERNEL)
			sprintf(line, " %d from the kernel", n);
		else
			sprintf(line, " %d code %d band %lx fd %d", n, i.si_code, i.si_band, i.si_fd - base);
		if (strcmp(line, last))
			printf("%s", line);
		strcpy(last, line);
	}
	printf("\n");
}

static void async(int fd, int owner, int sig)
{
	fcntl(fd, F_SETOWN, owner);
	fcntl(fd, F_SETSIG, sig);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_ASYNC);
}

static void owners(void)
{
	printf("-- owners\n");
	int p[2];
	pipe(p);
	printf("%d %d\n", fcntl(p[0], F_GETOWN), fcntl(p[0], F_GETSIG));
	SHOW(fcntl(p[0], F_SETOWN, 999999));
	SHOW(fcntl(p[0], F_SETOWN, -999999));
	SHOW(fcntl(p[0], F_SETOWN, getpid()));
	printf("mine %d\n", fcntl(p[0], F_GETOWN) == getpid());
	SHOW(fcntl(p[0], F_SETOWN, -getpgrp()));
	struct f_owner_ex o = { 9, 9 };
	SHOW(fcntl(p[0], F_GETOWN_EX, &o));
	printf("group %d %d\n", o.type == F_OWNER_PGRP, o.pid == getpgrp());
	o.type = 3;
	SHOW(fcntl(p[0], F_SETOWN_EX, &o));
	o.type = F_OWNER_TID, o.pid = syscall(SYS_gettid);
	SHOW(fcntl(p[0], F_SETOWN_EX, &o));
	o.pid = 0;
	SHOW(fcntl(p[0], F_GETOWN_EX, &o));
	printf("thread %d %d\n", o.type == F_OWNER_TID, o.pid == getpid());
	SHOW(fcntl(p[0], F_SETSIG, 65));
	SHOW(fcntl(p[0], F_SETSIG, -1));
	SHOW(fcntl(p[0], F_SETSIG, SIGRTMIN));
	printf("signal %d\n", fcntl(p[0], F_GETSIG) == SIGRTMIN);
	SHOW(fcntl(p[0], F_SETOWN, 0));
	printf("%d\n", fcntl(p[0], F_GETOWN));
	SHOW(syscall(SYS_fcntl, p[0], F_SETOWN_EX, 8));
	pid_t child = fork();
	if (child == 0)
		pause();
	SHOW(fcntl(p[0], F_SETOWN, child));
	kill(child, SIGKILL);
	wait(0);
	printf("gone %d\n", fcntl(p[0], F_GETOWN));
	int on = 1, file = open("/tmp/loam-sigio", O_RDWR | O_CREAT, 0600), v = 0;
	SHOW(ioctl(file, FIOASYNC, &on));
	SHOW(fcntl(file, F_SETFL, O_ASYNC));
	printf("kept %d\n", !!(fcntl(file, F_GETFL) & O_ASYNC));
	SHOW(ioctl(p[0], FIOASYNC, &on));
	printf("set %d\n", !!(fcntl(p[0], F_GETFL) & O_ASYNC));
	SHOW(ioctl(p[0], FIOGETOWN, &v));
	int s = socket(AF_INET, SOCK_DGRAM, 0);
	v = getpid();
	SHOW(ioctl(s, FIOSETOWN, &v));
	v = 0;
	SHOW(ioctl(s, SIOCGPGRP, &v));
	printf("mine %d\n", v == getpid());
	close(s), close(file), close(p[0]), close(p[1]);
	unlink("/tmp/loam-sigio");
}

static void pipes(void)
{
	printf("-- pipes\n");
	int p[2];
	pipe(p);
	base = p[0];
	char b[10];
	async(p[0], getpid(), 0);
	write(p[1], "x", 1);
	expect("write");
	fcntl(p[0], F_SETSIG, SIGRTMIN);
	write(p[1], "x", 1);
	expect("write with a signal");
	fcntl(p[0], F_SETSIG, SIGIO);
	write(p[1], "x", 1);
	expect("write with SIGIO");
	async(p[1], getpid(), SIGRTMIN + 1);
	read(p[0], b, 10);
	expect("read");
	fcntl(p[0], F_SETFL, 0);
	write(p[1], "x", 1);
	expect("switched off");
	fcntl(p[0], F_SETFL, O_ASYNC);
	int d = dup(p[0]);
	write(p[1], "x", 1);
	expect("by the old descriptor");
	close(d);
	close(p[1]);
	expect("closed");
	close(p[0]);
}

static void unixes(void)
{
	printf("-- sockets\n");
	int s[2];
	char b[10];
	socketpair(AF_UNIX, SOCK_STREAM, 0, s);
	base = s[0];
	async(s[0], getpid(), SIGRTMIN);
	write(s[1], "x", 1);
	expect("stream");
	read(s[0], b, 10);
	expect("read");
	shutdown(s[1], SHUT_WR);
	expect("shut down");
	close(s[1]);
	expect("closed");
	close(s[0]);
	socketpair(AF_UNIX, SOCK_DGRAM, 0, s);
	base = s[0];
	async(s[0], getpid(), SIGRTMIN);
	write(s[1], "x", 1);
	expect("datagram");
	close(s[0]), close(s[1]);
	int u = socket(AF_INET, SOCK_DGRAM, 0);
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof a;
	bind(u, (struct sockaddr *)&a, n);
	getsockname(u, (struct sockaddr *)&a, &n);
	base = u;
	async(u, getpid(), SIGRTMIN);
	sendto(u, "x", 1, 0, (struct sockaddr *)&a, n);
	expect("UDP");
	close(u);
}

static void urgent(void)
{
	printf("-- TCP\n");
	int l = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof a;
	bind(l, (struct sockaddr *)&a, n);
	listen(l, 1);
	getsockname(l, (struct sockaddr *)&a, &n);
	base = l;
	async(l, getpid(), SIGRTMIN);
	connect(c, (struct sockaddr *)&a, n);
	expect("listener");
	int s = accept(l, 0, 0);
	close(l);
	expect("listener closed");
	base = s;
	fcntl(s, F_SETOWN, getpid());
	send(c, "u", 1, MSG_OOB);
	expect("urgent");
	char b[10];
	printf("%zd\n", recv(s, b, 10, MSG_OOB));
	send(c, "data", 4, 0);
	expect("data without O_ASYNC");
	read(s, b, 10);
	async(s, getpid(), SIGRTMIN);
	send(c, "data", 4, 0);
	expect("data");
	send(c, "v", 1, MSG_OOB);
	expect("urgent and O_ASYNC");
	recv(s, b, 10, MSG_OOB);
	close(s), close(c); /* the end after urgent data differs: see CAVEATS.md */
}

static void terminals(void)
{
	printf("-- terminals\n");
	int m, t;
	struct termios raw;
	char b[10];
	openpty(&m, &t, 0, 0, 0);
	tcgetattr(t, &raw);
	cfmakeraw(&raw);
	tcsetattr(t, TCSANOW, &raw);
	base = t;
	fcntl(t, F_SETFL, O_RDWR | O_ASYNC); /* without an owner it is the caller */
	printf("mine %d\n", fcntl(t, F_GETOWN) == getpid());
	write(m, "x", 1);
	expect("key");
	fcntl(t, F_SETSIG, SIGRTMIN);
	write(m, "y", 1);
	expect("key with a signal");
	read(t, b, 10);
	expect("read");
	close(m), close(t);
}

static void groups(void)
{
	printf("-- groups and threads\n");
	int p[2], ready[2];
	pipe(p), pipe(ready);
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		setpgid(0, 0);
		write(ready[1], "x", 1);
		struct timespec t = { 5, 0 };
		siginfo_t i;
		int n = sigtimedwait(&set, &i, &t);
		printf("child: %d\n", n);
		fflush(stdout);
		_exit(0);
	}
	char b;
	read(ready[0], &b, 1);
	async(p[0], -child, 0);
	write(p[1], "x", 1);
	wait(0);
	expect("parent");
	/* another user may not be signalled */
	child = fork();
	if (child == 0) {
		setresuid(4711, 4711, 4711);
		struct timespec t = { 0, 100000000 };
		fcntl(p[0], F_SETOWN, getppid());
		write(p[1], "x", 1);
		nanosleep(&t, 0);
		_exit(0);
	}
	wait(0);
	expect("of another user");
}

int main(void)
{
	sigemptyset(&set);
	sigaddset(&set, SIGIO), sigaddset(&set, SIGURG), sigaddset(&set, SIGRTMIN), sigaddset(&set, SIGRTMIN + 1);
	sigprocmask(SIG_BLOCK, &set, 0);
	owners();
	pipes();
	unixes();
	urgent();
	terminals();
	groups();
	return 0;
}
