/* SIGIO and SIGURG: owners of files and their signals; signals of timers. */
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
#include <sys/signalfd.h>
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

static timer_t timer(int notify, int value)
{
	struct sigevent e = { .sigev_notify = notify, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = value };
	timer_t id;
	if (timer_create(CLOCK_MONOTONIC, &e, &id))
		printf("timer_create: %s\n", strerror(errno));
	return id;
}

static void start(timer_t id, long first, long interval)
{
	struct itimerspec t = { { 0, interval }, { 0, first } };
	timer_settime(id, 0, &t, 0);
}

static void timers(void)
{
	printf("-- timers\n");
	timer_t a = timer(SIGEV_SIGNAL, 7), b = timer(SIGEV_SIGNAL, 8);
	siginfo_t i;
	start(a, 1000000, 0);
	sigwaitinfo(&set, &i);
	printf("%d code %d value %d overrun %d of the first timer: %d\n", i.si_signo, i.si_code, i.si_value.sival_int, i.si_overrun,
		i.si_timerid == *(int *)&a);
	/* a timer has one pending signal, which counts the expirations after the first */
	start(a, 1000000, 1000000), start(b, 1000000, 0);
	struct timespec most = { 0, 50000000 };
	nanosleep(&most, 0);
	int overrun[2];
	for (int n = 0; n < 2; n++) {
		sigwaitinfo(&set, &i);
		overrun[i.si_value.sival_int - 7] = i.si_overrun;
	}
	printf("overrun %d %d\n", overrun[0] > 0, overrun[1]);
	struct timespec none = { 0, 0 };
	for (start(a, 0, 0); sigtimedwait(&set, &i, &none) > 0;) {
	}
	int fd = signalfd(-1, &set, 0);
	struct signalfd_siginfo s;
	start(b, 1000000, 0);
	read(fd, &s, sizeof s);
	printf("signalfd: %d code %d int %d ptr %llx tid %d overrun %d pid %d uid %d\n", s.ssi_signo, s.ssi_code, s.ssi_int,
		(unsigned long long)s.ssi_ptr, s.ssi_tid == *(unsigned *)&b, s.ssi_overrun, s.ssi_pid, s.ssi_uid);
	close(fd);
	timer_delete(a), timer_delete(b);
}

static void expired(union sigval v)
{
	char b = v.sival_int;
	write(base, &b, 1);
}

/* a timer whose expirations start threads of the C library */
static void threads(void)
{
	printf("-- threads\n");
	struct sigevent e = { .sigev_notify = SIGEV_THREAD, .sigev_notify_function = expired, .sigev_value.sival_int = '!' };
	timer_t id;
	int p[2];
	pipe(p);
	base = p[1];
	timer_create(CLOCK_MONOTONIC, &e, &id);
	start(id, 1000000, 1000000);
	char b[2];
	struct pollfd f = { p[0], POLLIN };
	for (int n = 0; n < 3; n++)
		printf("%c\n", poll(&f, 1, 10000) == 1 && read(p[0], b, 1) == 1 ? b[0] : '?');
	timer_delete(id);
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
	timers();
	threads();
	return 0;
}
