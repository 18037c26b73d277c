/* Calls of ptrace(2), seen from a tracer. The output does not depend on addresses and IDs. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <elf.h>

static const char *error(long r) { return r == -1 ? strerror(errno) : "ok"; }
#define SHOW(x) do { errno = 0; long r_ = (x); printf("%s: %s\n", #x, error(r_)); } while (0)

/* Waits for one event of a child, and shows it. */
static int status_of(pid_t pid)
{
	int s;
	if (waitpid(pid, &s, __WALL) < 0) {
		printf("waitpid: %s\n", strerror(errno));
		return -1;
	}
	if (WIFSTOPPED(s))
		printf("stopped by %d, event %d\n", WSTOPSIG(s), s >> 16);
	else if (WIFEXITED(s))
		printf("exited with %d\n", WEXITSTATUS(s));
	else
		printf("killed by %d\n", WTERMSIG(s));
	return s;
}

static volatile long value = 41;
static volatile int handled;
static void on_usr1(int n) { handled += n; }

static pid_t child(void (*f)(void))
{
	fflush(stdout);
	pid_t p = fork();
	if (p == 0) {
		f();
		_exit(0);
	}
	return p;
}

static void traced(void)
{
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	syscall(SYS_lseek, 7, 8, 9);
	signal(SIGUSR1, on_usr1);
	raise(SIGUSR1);
	_exit(handled == SIGUSR1 ? (int)value : 99);
}

static void basics(void)
{
	printf("-- basics\n");
	pid_t p = child(traced);
	status_of(p);
	siginfo_t i;
	struct user_regs_struct r;
	SHOW(ptrace(PTRACE_GETSIGINFO, p, 0, &i));
	printf("si_signo %d si_code %d own %d\n", i.si_signo, i.si_code, i.si_pid == p);
	SHOW(ptrace(PTRACE_SETOPTIONS, p, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL));
	SHOW(ptrace(PTRACE_SETOPTIONS, p, 0, 1 << 30));
	SHOW(ptrace(PTRACE_CONT, p, 0, 100));
	errno = 0;
	printf("peek %ld\n", ptrace(PTRACE_PEEKDATA, p, &value, 0));
	SHOW(ptrace(PTRACE_POKEDATA, p, &value, 42));
	SHOW(ptrace(PTRACE_PEEKDATA, p, 8, 0));
	SHOW(ptrace(PTRACE_PEEKUSER, p, 3, 0));
	errno = 0;
	SHOW(ptrace(PTRACE_PEEKUSER, p, 100000, 0));
	do {
		ptrace(PTRACE_SYSCALL, p, 0, 0);
		status_of(p);
		ptrace(PTRACE_GETREGS, p, 0, &r);
	} while (r.orig_rax != SYS_lseek);
	struct __ptrace_syscall_info info;
	memset(&info, 0, sizeof info);
	long size = ptrace(PTRACE_GET_SYSCALL_INFO, p, sizeof info, &info);
	printf("info %ld op %d, %d\n", size, info.op, (int)info.entry.nr);
	printf("entry %llu %llu %llu, rax %lld\n", r.rdi, r.rsi, r.rdx, (long long)r.rax);
	r.rdi = -1;
	r.rsi = 0;
	SHOW(ptrace(PTRACE_SETREGS, p, 0, &r));
	ptrace(PTRACE_SYSCALL, p, 0, 0);
	status_of(p);
	memset(&info, 0, sizeof info);
	size = ptrace(PTRACE_GET_SYSCALL_INFO, p, sizeof info, &info);
	printf("info %ld op %d, %d %d\n", size, info.op, (int)info.exit.rval, info.exit.is_error);
	ptrace(PTRACE_GETREGS, p, 0, &r);
	printf("exit %lld\n", (long long)r.rax);
	ptrace(PTRACE_CONT, p, 0, 0);
	status_of(p);
	ptrace(PTRACE_GETSIGINFO, p, 0, &i);
	printf("si_signo %d si_code %d\n", i.si_signo, i.si_code);
	unsigned long long mask = 0;
	SHOW(ptrace(PTRACE_GETSIGMASK, p, 8, &mask));
	printf("mask %llx\n", mask);
	char path[64], line[256];
	snprintf(path, sizeof path, "/proc/%d/status", p);
	FILE *f = fopen(path, "r");
	while (fgets(line, sizeof line, f))
		if (!strncmp(line, "State", 5))
			fputs(line, stdout);
		else if (!strncmp(line, "TracerPid", 9))
			printf("tracer %d\n", atoi(line + 10) == getpid());
	fclose(f);
	ptrace(PTRACE_SINGLESTEP, p, 0, SIGUSR1);
	status_of(p);
	ptrace(PTRACE_GETREGS, p, 0, &r);
	printf("in the handler %d, argument %llu\n", r.rip == (unsigned long)on_usr1, r.rdi);
	ptrace(PTRACE_SINGLESTEP, p, 0, 0);
	status_of(p);
	ptrace(PTRACE_GETSIGINFO, p, 0, &i);
	printf("si_code %d\n", i.si_code);
	ptrace(PTRACE_CONT, p, 0, 0);
	status_of(p);
	SHOW(ptrace(PTRACE_CONT, p, 0, 0));
}

static void sets(void)
{
	printf("-- register sets\n");
	pid_t p = child(traced);
	status_of(p);
	struct user_regs_struct r;
	struct user_fpregs_struct fp;
	char state[8192];
	struct iovec v = {&r, sizeof r};
	SHOW(ptrace(PTRACE_GETREGSET, p, NT_PRSTATUS, &v));
	printf("size %zu\n", v.iov_len);
	v.iov_base = state; v.iov_len = 16;
	SHOW(ptrace(PTRACE_GETREGSET, p, NT_PRSTATUS, &v));
	printf("size %zu\n", v.iov_len);
	v.iov_len = 15;
	SHOW(ptrace(PTRACE_GETREGSET, p, NT_PRSTATUS, &v));
	SHOW(ptrace(PTRACE_GETREGSET, p, 12345, &v));
	v.iov_len = sizeof state;
	SHOW(ptrace(PTRACE_GETREGSET, p, NT_X86_XSTATE, &v));
	printf("xcr0 has x87 and SSE %d\n", (*(long *)(state + 464) & 3) == 3);
	SHOW(ptrace(PTRACE_SETREGSET, p, NT_X86_XSTATE, &v));
	SHOW(ptrace(PTRACE_GETFPREGS, p, 0, &fp));
	printf("mxcsr %x\n", fp.mxcsr);
	fp.mxcsr = 0x1fa0;
	fp.xmm_space[4] = 77;
	SHOW(ptrace(PTRACE_SETFPREGS, p, 0, &fp));
	memset(&fp, 0, sizeof fp);
	ptrace(PTRACE_GETFPREGS, p, 0, &fp);
	printf("mxcsr %x xmm1 %d\n", fp.mxcsr, fp.xmm_space[4]);
	size_t dr = offsetof(struct user, u_debugreg);
	SHOW(ptrace(PTRACE_POKEUSER, p, dr, &value));
	SHOW(ptrace(PTRACE_POKEUSER, p, dr + 8, -1L));
	SHOW(ptrace(PTRACE_POKEUSER, p, dr + 32, 0));
	SHOW(ptrace(PTRACE_POKEUSER, p, dr + 56, 0xb0001));
	SHOW(ptrace(PTRACE_CONT, p, 0, 0));
	status_of(p);
	SHOW(ptrace(PTRACE_CONT, p, 0, SIGUSR1));
	status_of(p);
	siginfo_t i;
	if (ptrace(PTRACE_GETSIGINFO, p, 0, &i) == 0)
		printf("si_code %d\n", i.si_code);
	printf("dr6 %lx\n", ptrace(PTRACE_PEEKUSER, p, dr + 48, 0) & 0xf);
	SHOW(ptrace(PTRACE_KILL, p, 0, 0));
	status_of(p);
}

static void forks(void)
{
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	if (fork() == 0)
		_exit(5);
	if (vfork() == 0)
		_exit(6);
	int s;
	while (wait(&s) > 0)
		;
	execl("/proc/self/exe", "tracer", "exit", NULL);
}

static void events(void)
{
	printf("-- events\n");
	pid_t p = child(forks), q = 0;
	status_of(p);
	ptrace(PTRACE_SETOPTIONS, p, 0, PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEVFORKDONE | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT);
	ptrace(PTRACE_CONT, p, 0, 0);
	for (int s = status_of(p); WIFSTOPPED(s); s = status_of(p)) {
		unsigned long message = 0;
		int event = s >> 16, pass = 0;
		ptrace(PTRACE_GETEVENTMSG, p, 0, &message);
		if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK) {
			q = message;
			for (int c = status_of(q); WIFSTOPPED(c); c = status_of(q))
				ptrace(PTRACE_CONT, q, 0, 0);
		} else if (event == PTRACE_EVENT_EXEC)
			printf("former ID %d\n", (pid_t)message == p);
		else if (event == PTRACE_EVENT_EXIT)
			printf("status %lx\n", message);
		else if (!event)
			pass = WSTOPSIG(s);
		ptrace(PTRACE_CONT, p, 0, pass);
	}
}

static void waits(void)
{
	signal(SIGUSR1, on_usr1);
	for (;;)
		pause();
}

static void seizes(void)
{
	printf("-- seize\n");
	pid_t p = child(waits);
	SHOW(ptrace(PTRACE_SEIZE, p, 1, 0));
	SHOW(ptrace(PTRACE_SEIZE, p, 0, PTRACE_O_TRACESYSGOOD));
	SHOW(ptrace(PTRACE_SEIZE, p, 0, 0));
	SHOW(ptrace(PTRACE_CONT, p, 0, 0));
	SHOW(ptrace(PTRACE_INTERRUPT, p, 0, 0));
	status_of(p);
	SHOW(ptrace(PTRACE_LISTEN, p, 0, 0));
	SHOW(ptrace(PTRACE_CONT, p, 0, 0));
	SHOW(ptrace(PTRACE_INTERRUPT, p, 0, 0));
	status_of(p);
	ptrace(PTRACE_CONT, p, 0, 0);
	kill(p, SIGSTOP);
	status_of(p);
	ptrace(PTRACE_CONT, p, 0, SIGSTOP);
	status_of(p);
	SHOW(ptrace(PTRACE_LISTEN, p, 0, 0));
	kill(p, SIGCONT);
	status_of(p);
	ptrace(PTRACE_CONT, p, 0, 0);
	status_of(p);
	ptrace(PTRACE_CONT, p, 0, 0);
	kill(p, SIGUSR1);
	status_of(p);
	SHOW(ptrace(PTRACE_DETACH, p, 0, SIGKILL));
	status_of(p);
}

static void attaches(void)
{
	printf("-- attach\n");
	pid_t p = child(waits);
	SHOW(ptrace(PTRACE_ATTACH, p, 0, 0));
	status_of(p);
	SHOW(ptrace(PTRACE_LISTEN, p, 0, 0));
	SHOW(ptrace(PTRACE_INTERRUPT, p, 0, 0));
	ptrace(PTRACE_CONT, p, 0, 0);
	kill(p, SIGTSTP);
	status_of(p);
	ptrace(PTRACE_CONT, p, 0, SIGSTOP);
	status_of(p);
	siginfo_t i;
	SHOW(ptrace(PTRACE_GETSIGINFO, p, 0, &i));
	SHOW(ptrace(PTRACE_DETACH, p, 0, 0));
	int s;
	printf("wait %d\n", waitpid(p, &s, WUNTRACED | WNOHANG) == 0);
	kill(p, SIGKILL);
	status_of(p);
	SHOW(ptrace(PTRACE_ATTACH, p, 0, 0));
	SHOW(ptrace(PTRACE_ATTACH, getpid(), 0, 0));
	SHOW(ptrace(99, p, 0, 0));
}

static pid_t leader;
static void *thread(void *arg)
{
	syscall(SYS_exit, 3);
	return arg;
}
static void threads(void)
{
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise(SIGSTOP);
	pthread_t t;
	pthread_create(&t, 0, thread, 0);
	pthread_join(t, 0);
	_exit(4);
}

static void clones(void)
{
	printf("-- threads\n");
	leader = child(threads);
	status_of(leader);
	ptrace(PTRACE_SETOPTIONS, leader, 0, PTRACE_O_TRACECLONE);
	ptrace(PTRACE_CONT, leader, 0, 0);
	status_of(leader);
	unsigned long id = 0;
	SHOW(ptrace(PTRACE_GETEVENTMSG, leader, 0, &id));
	status_of(id);
	ptrace(PTRACE_CONT, id, 0, 0);
	status_of(id);
	ptrace(PTRACE_CONT, leader, 0, 0);
	status_of(leader);
}

static void text(void)
{
	printf("-- memory\n");
	pid_t p = child(traced);
	status_of(p);
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/mem", p);
	int fd = open(path, O_RDWR);
	unsigned char old[8], trap = 0xcc;
	printf("read %zd\n", pread(fd, old, 8, (long)on_usr1));
	printf("same %d\n", !memcmp(old, (void *)on_usr1, 8));
	printf("write %zd\n", pwrite(fd, &trap, 1, (long)on_usr1));
	printf("read %zd\n", pread(fd, old, 8, 8));
	struct iovec l = {&trap, 1}, r = {(void *)on_usr1, 1};
	SHOW(process_vm_writev(p, &l, 1, &r, 1, 0));
	SHOW(process_vm_readv(p, &l, 1, &r, 1, 0));
	printf("trap %x\n", trap);
	ptrace(PTRACE_CONT, p, 0, 0);
	status_of(p);
	ptrace(PTRACE_CONT, p, 0, SIGUSR1);
	status_of(p);
	siginfo_t i;
	ptrace(PTRACE_GETSIGINFO, p, 0, &i);
	printf("si_code %d\n", i.si_code);
	struct user_regs_struct u;
	ptrace(PTRACE_GETREGS, p, 0, &u);
	printf("behind the breakpoint %d, call %lld\n", u.rip == (unsigned long)on_usr1 + 1, (long long)u.orig_rax);
	kill(p, SIGKILL);
	status_of(p);
}

static void sleeps(void)
{
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	signal(SIGUSR1, on_usr1);
	raise(SIGSTOP);
	int p[2];
	char c;
	pipe(p);
	_exit(read(p[0], &c, 1) == -1 && errno == EINTR ? 7 : 8);
}

static void interrupts(void)
{
	printf("-- interrupted call\n");
	pid_t p = child(sleeps);
	status_of(p);
	struct user_regs_struct u;
	ptrace(PTRACE_SETOPTIONS, p, 0, PTRACE_O_TRACESYSGOOD);
	do {
		ptrace(PTRACE_SYSCALL, p, 0, 0);
		status_of(p);
		ptrace(PTRACE_GETREGS, p, 0, &u);
	} while (u.orig_rax != SYS_read);
	ptrace(PTRACE_SYSCALL, p, 0, 0);
	kill(p, SIGUSR1);
	status_of(p);
	ptrace(PTRACE_GETREGS, p, 0, &u);
	printf("rax %lld\n", (long long)u.rax);
	ptrace(PTRACE_CONT, p, 0, 0);
	status_of(p);
	ptrace(PTRACE_GETREGS, p, 0, &u);
	printf("rax %lld call %lld\n", (long long)u.rax, (long long)u.orig_rax);
	kill(p, SIGKILL);
	status_of(p);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "exit"))
		return 9;
	setvbuf(stdout, 0, _IOLBF, 0);
	basics();
	sets();
	events();
	seizes();
	attaches();
	clones();
	text();
	interrupts();
	return 0;
}
