/* seccomp(2): modes, actions, inheritance, threads, and a tracer. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *error(long r) { return r < 0 ? strerror(errno) : "ok"; }
#define SHOW(x) do { errno = 0; long r_ = (x); printf("%s: %s\n", #x, error(r_)); } while (0)

static void mode(void)
{
	char line[256];
	FILE *f = fopen("/proc/thread-self/status", "r");
	while (fgets(line, sizeof line, f))
		if (!strncmp(line, "Seccomp", 7) || !strncmp(line, "NoNewPrivs", 10))
			fputs(line, stdout);
	fclose(f);
}

/* Installs a filter that returns an action for one call, and allows all others. */
static long filter(int call, unsigned action, unsigned flags)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = {sizeof f / sizeof *f, f};
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &p);
}

static long one(unsigned short code, unsigned k)
{
	struct sock_filter f[] = {{code, 0, 0, k}, BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog p = {2, f};
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p);
}

static void in_child(const char *what, void (*f)(void))
{
	int s;
	printf("-- %s\n", what);
	fflush(stdout);
	pid_t p = fork();
	if (p == 0) {
		f();
		fflush(stdout);
		_exit(0);
	}
	waitpid(p, &s, 0);
	if (WIFEXITED(s))
		printf("exited with %d\n", WEXITSTATUS(s));
	else
		printf("killed by %d\n", WTERMSIG(s));
}

static void strict(void)
{
	SHOW(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
	fflush(stdout);
	write(1, "strict\n", 7);
	syscall(SYS_getppid);
}

static void strict_exit(void)
{
	fflush(stdout);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	syscall(SYS_exit, 3);
}

static void errors(void)
{
	SHOW(filter(SYS_getppid, SECCOMP_RET_ERRNO | 13, 0));
	SHOW(syscall(SYS_getppid));
	SHOW(filter(SYS_getppid, SECCOMP_RET_ERRNO | 5, 0));
	SHOW(syscall(SYS_getppid));
	SHOW(filter(SYS_getppid, SECCOMP_RET_LOG, 0));
	SHOW(syscall(SYS_getppid));
	SHOW(filter(SYS_getpgid, SECCOMP_RET_ERRNO | 60000, 0));
	errno = 0;
	long r = syscall(SYS_getpgid, 0);
	printf("%ld %d\n", r, errno);
	SHOW(filter(SYS_gettid, SECCOMP_RET_TRACE | 7, 0));
	SHOW(syscall(SYS_gettid));
	SHOW(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
	printf("mode %d\n", prctl(PR_GET_SECCOMP));
	mode();
	fflush(stdout);
	if (fork() == 0) {
		SHOW(syscall(SYS_getppid));
		mode();
		fflush(stdout);
		execl("/proc/self/exe", "filters", "again", NULL);
	}
	wait(NULL);
}

static void on_sys(int n, siginfo_t *i, void *c)
{
	printf("signal %d code %d errno %d call %d arch %x, rax %lld\n", n, i->si_code, i->si_errno, i->si_syscall, i->si_arch,
	       ((ucontext_t *)c)->uc_mcontext.gregs[13]);
	((ucontext_t *)c)->uc_mcontext.gregs[13] = 77;
}

static void trap(void)
{
	struct sigaction a = {.sa_sigaction = on_sys, .sa_flags = SA_SIGINFO};
	sigaction(SIGSYS, &a, 0);
	SHOW(filter(SYS_getppid, SECCOMP_RET_TRAP | 99, 0));
	printf("%ld\n", syscall(SYS_getppid));
	signal(SIGSYS, SIG_IGN);
	fflush(stdout);
	syscall(SYS_getppid);
}

static void kill_process(void)
{
	SHOW(filter(SYS_getppid, SECCOMP_RET_KILL_PROCESS, 0));
	fflush(stdout);
	syscall(SYS_getppid);
}

static void unknown(void)
{
	SHOW(filter(SYS_getppid, 0x12340000, 0));
	fflush(stdout);
	syscall(SYS_getppid);
}

static void *killed(void *arg)
{
	filter(SYS_getppid, SECCOMP_RET_KILL_THREAD, 0);
	syscall(SYS_getppid);
	return arg;
}

static void kill_thread(void)
{
	pthread_t t;
	pthread_create(&t, 0, killed, 0);
	pthread_join(t, 0);
	printf("the other thread lives\n");
}

static int stage;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static void turn(int to)
{
	pthread_mutex_lock(&m);
	stage = to;
	pthread_cond_broadcast(&c);
	pthread_mutex_unlock(&m);
}
static void await(int s)
{
	pthread_mutex_lock(&m);
	while (stage < s)
		pthread_cond_wait(&c, &m);
	pthread_mutex_unlock(&m);
}

static void *peer(void *arg)
{
	await(1);
	SHOW(syscall(SYS_getppid));
	mode();
	SHOW(filter(SYS_getpgid, SECCOMP_RET_ERRNO | 9, 0));
	turn(2);
	await(3);
	return arg;
}

static void synchronized(void)
{
	pthread_t t;
	pthread_create(&t, 0, peer, 0);
	SHOW(filter(SYS_getppid, SECCOMP_RET_ERRNO | 8, SECCOMP_FILTER_FLAG_TSYNC));
	turn(1);
	await(2);
	long r = filter(SYS_getppid, SECCOMP_RET_ERRNO | 8, SECCOMP_FILTER_FLAG_TSYNC);
	printf("a thread is in the way: %d\n", r > 0);
	SHOW(filter(SYS_getppid, SECCOMP_RET_ERRNO | 8, SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH));
	turn(3);
	pthread_join(t, 0);
}

static void traced(void)
{
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	filter(SYS_getppid, SECCOMP_RET_TRACE | 55, 0);
	long a = syscall(SYS_getppid), b = syscall(SYS_getppid);
	int prevented = b == -1 && errno == ENOSYS;
	long c = syscall(SYS_getppid);
	_exit(a == getpid() && prevented && c == a ? 21 : 22);
}

static void tracer(void)
{
	int s;
	fflush(stdout);
	pid_t p = fork();
	if (p == 0)
		traced();
	waitpid(p, &s, 0);
	ptrace(PTRACE_SETOPTIONS, p, 0, PTRACE_O_TRACESECCOMP);
	static const unsigned long numbers[] = {SYS_getpid, -1, 1UL << 63 | SYS_getpid};
	for (int i = 0; i < 3; i++) {
		struct user_regs_struct r;
		unsigned long message;
		ptrace(PTRACE_CONT, p, 0, 0);
		waitpid(p, &s, 0);
		ptrace(PTRACE_GETEVENTMSG, p, 0, &message);
		ptrace(PTRACE_GETREGS, p, 0, &r);
		struct __ptrace_syscall_info info;
		long size = ptrace(PTRACE_GET_SYSCALL_INFO, p, sizeof info, &info);
		printf("status %x message %lu call %lld rax %lld, info %ld op %d %u\n", s, message, (long long)r.orig_rax, (long long)r.rax, size, info.op, info.seccomp.ret_data);
		r.orig_rax = numbers[i];
		ptrace(PTRACE_SETREGS, p, 0, &r);
	}
	ptrace(PTRACE_CONT, p, 0, 0);
	waitpid(p, &s, 0);
	printf("status %x\n", s);
}

static void privileges(void)
{
	if (setuid(1000))
		printf("setuid: %s\n", strerror(errno));
	SHOW(filter(SYS_getppid, SECCOMP_RET_ERRNO | 13, 0));
	SHOW(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	SHOW(filter(SYS_getppid, SECCOMP_RET_ERRNO | 13, 0));
	SHOW(syscall(SYS_getppid));
}

static void invalid(void)
{
	unsigned action = SECCOMP_RET_TRAP;
	SHOW(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action));
	action = 0x12340000;
	SHOW(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action));
	SHOW(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 1, &action));
	SHOW(syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, 8));
	SHOW(syscall(SYS_seccomp, 99, 0, 0));
	SHOW(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, 0));
	SHOW(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, 8));
	SHOW(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0x8000, 8));
	SHOW(filter(SYS_getppid, SECCOMP_RET_ALLOW, SECCOMP_FILTER_FLAG_TSYNC_ESRCH));
	struct sock_fprog p = {0, 0};
	SHOW(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p));
	SHOW(one(BPF_LD | BPF_W | BPF_ABS, 64));
	SHOW(one(BPF_LD | BPF_W | BPF_ABS, 2));
	SHOW(one(BPF_LD | BPF_H | BPF_ABS, 0));
	SHOW(one(BPF_LD | BPF_W | BPF_IND, 0));
	SHOW(one(BPF_LDX | BPF_B | BPF_MSH, 0));
	SHOW(one(BPF_ALU | BPF_MOD | BPF_K, 3));
	SHOW(one(BPF_ALU | BPF_DIV | BPF_K, 0));
	SHOW(one(BPF_LD | BPF_W | BPF_LEN, 0));
	SHOW(one(BPF_LD | BPF_MEM, 1));
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		SHOW(syscall(SYS_getppid));
		return 0;
	}
	mode();
	in_child("strict", strict);
	in_child("exit of strict", strict_exit);
	in_child("errors", errors);
	in_child("trap", trap);
	in_child("kill", kill_process);
	in_child("unknown action", unknown);
	in_child("kill a thread", kill_thread);
	in_child("all threads", synchronized);
	in_child("tracer", tracer);
	in_child("privileges", privileges);
	in_child("invalid", invalid);
	return 0;
}
