/* wait4(2) and waitid(2) with __WALL, __WCLONE and __WNOTHREAD: children that send another signal than SIGCHLD, and children of threads. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *error(long r) { return r == -1 ? strerror(errno) : "ok"; }
#define SHOW(x) do { errno = 0; long r_ = (long)(x); printf("%s: %s, %s\n", #x, name(r_), error(r_)); } while (0)

static int normal, clone1, other;

static const char *name(long p)
{
	return p == normal ? "the child" : p == clone1 ? "the clone" : p == other ? "the other" : p > 0 ? "unknown" : p ? "-1" : "0";
}

/* Starts a child that sends a signal at its end, and ends at once. */
static int start(int n, int flags)
{
	int p = syscall(SYS_clone, n | flags, 0, 0, 0, 0);
	if (p == 0)
		_exit(3);
	return p;
}

/* Starts both kinds of children. They are zombies when the function returns. */
static void both(void)
{
	siginfo_t i;
	normal = start(SIGCHLD, 0);
	clone1 = start(SIGUSR1, 0);
	waitid(P_PID, normal, &i, WEXITED | WNOWAIT);
	waitid(P_PID, clone1, &i, WEXITED | WNOWAIT | __WALL);
}

static int id(int type, int p, int options)
{
	siginfo_t i = { 0 };
	return waitid(type, p, &i, options) ? -1 : i.si_pid;
}

static void *child_of_thread(void *flag)
{
	siginfo_t i;
	other = start(SIGCHLD, 0);
	waitid(P_PID, other, &i, WEXITED | WNOWAIT);
	SHOW(wait4(normal, 0, __WNOTHREAD | WNOHANG, 0));
	if (flag)
		SHOW(wait4(other, 0, __WNOTHREAD, 0));
	return 0;
}

static void thread(void *flag)
{
	pthread_t t;
	pthread_create(&t, 0, child_of_thread, flag);
	pthread_join(t, 0);
	usleep(100000); /* pthread_join may return before the thread has ended for the kernel */
}

static void *in_other_thread(void *unused)
{
	SHOW(wait4(-1, 0, __WNOTHREAD | WNOHANG, 0));
	SHOW(wait4(-1, 0, 0, 0));
	return 0;
}

/* A child that executes a program sends SIGCHLD. */
static void execs(void)
{
	int ends[2], p;
	char c;
	pipe2(ends, O_CLOEXEC);
	p = syscall(SYS_clone, SIGUSR1, 0, 0, 0, 0);
	if (p == 0) {
		execl("/proc/self/exe", "waits", "-", NULL);
		_exit(1);
	}
	clone1 = p;
	close(ends[1]);
	read(ends[0], &c, 1); /* the end of the pipe: the child has executed the program */
	close(ends[0]);
	SHOW(wait4(-1, 0, 0, 0));
}

/* A sibling belongs to the parent's thread, and sends the signal of the process that has created it. */
static void sibling(void)
{
	int p = syscall(SYS_clone, SIGUSR1, 0, 0, 0, 0);
	if (p == 0) {
		int q = start(0, CLONE_PARENT);
		_exit(q < 0);
	}
	clone1 = p;
	SHOW(wait4(p, 0, __WALL, 0));
	SHOW(wait4(-1, 0, 0, 0));
	SHOW(wait4(-1, 0, __WCLONE | __WNOTHREAD, 0) > 0);
	SHOW(wait4(-1, 0, __WALL, 0));
}

int main(int argc, char **argv)
{
	pthread_t t;
	if (argc > 1)
		return 0;
	setvbuf(stdout, 0, _IONBF, 0);
	signal(SIGUSR1, SIG_IGN);
	both();
	SHOW(wait4(-1, 0, __WCLONE | WNOHANG, 0));
	SHOW(wait4(-1, 0, __WCLONE | WNOHANG, 0));
	SHOW(wait4(normal, 0, __WCLONE | WNOHANG, 0));
	SHOW(wait4(-1, 0, 0, 0));
	SHOW(wait4(-1, 0, __WALL, 0));
	both();
	SHOW(wait4(clone1, 0, 0, 0));
	SHOW(wait4(-1, 0, 0, 0));
	SHOW(wait4(-1, 0, 0, 0));
	SHOW(wait4(-1, 0, __WALL, 0));
	both();
	SHOW(wait4(-1, 0, __WALL | __WCLONE, 0));
	SHOW(wait4(-1, 0, __WALL | __WCLONE, 0));
	both();
	SHOW(id(P_ALL, 0, WEXITED | __WCLONE));
	SHOW(id(P_PID, normal, WEXITED | __WCLONE));
	SHOW(id(P_PID, normal, WEXITED | __WALL | WNOWAIT));
	SHOW(id(P_PID, normal, WEXITED | __WNOTHREAD));
	SHOW(id(P_ALL, 0, WEXITED | 0x100));
	SHOW(id(P_ALL, 0, WEXITED | WUNTRACED));
	SHOW(id(P_ALL, 0, __WALL));
	SHOW(id(P_PID, -1, 0));
	SHOW(wait4(-1, 0, WEXITED, 0));
	SHOW(wait4(-1, 0, WNOWAIT, 0));
	normal = start(SIGCHLD, 0);
	thread(&t);
	thread(0);
	SHOW(wait4(-1, 0, __WNOTHREAD, 0));
	SHOW(wait4(-1, 0, __WNOTHREAD, 0));
	SHOW(wait4(-1, 0, __WNOTHREAD, 0));
	normal = start(SIGCHLD, 0);
	pthread_create(&t, 0, in_other_thread, 0);
	pthread_join(t, 0);
	execs();
	sibling();
	return 0;
}
