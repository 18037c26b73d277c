// Differences that the selftests of Linux found: the vsyscall page, also entered by
// a handler or with the trap flag, system call numbers with high bits, a wake of zero waiters,
// far returns, /proc/PID/fdinfo, files of /proc that are read again, smaps of the vsyscall page,
// files without a name that are open with O_PATH, and handlers that change segments.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define VSYSCALL 0xffffffffff600000UL

static void vsyscalls(void) {
	int (*vgettimeofday)(struct timeval *, void *) = (void *)VSYSCALL;
	long (*vtime)(long *) = (void *)(VSYSCALL + 0x400);
	int (*vgetcpu)(unsigned *, unsigned *, void *) = (void *)(VSYSCALL + 0x800);
	struct timeval tv = {0};
	long t = 0, before = time(0);
	unsigned cpu = 99, node = 99;
	int r = vgettimeofday(&tv, 0);
	printf("gettimeofday %d %d\n", r, tv.tv_sec >= before);
	printf("time %d\n", vtime(&t) == t && t >= before);
	r = vgetcpu(&cpu, &node, 0);
	printf("getcpu %d %d\n", r, cpu < 64 && node == 0);
}

// enter is the handler of a signal that continues in the vsyscall page, with a return address on the stack.
static void enter(int n, siginfo_t *info, void *context) {
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
	r[REG_RSP] -= 8;
	*(greg_t *)r[REG_RSP] = r[REG_RIP];
	r[REG_RDI] = 0;
	r[REG_RIP] = VSYSCALL + 0x400;
}

static volatile int inPage; // number of debug exceptions in the vsyscall page

static void count(int n, siginfo_t *info, void *context) {
	inPage += (unsigned long)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] >= VSYSCALL;
}

static void entered(void) {
	struct sigaction a = {.sa_sigaction = enter, .sa_flags = SA_SIGINFO};
	long before = time(0), r = SYS_kill, process = getpid();
	sigaction(SIGUSR2, &a, 0);
	asm volatile("syscall" : "+a"(r), "+D"(process) : "S"(SIGUSR2) : "rcx", "r11", "memory");
	printf("entered by a handler %d\n", r >= before);

	long (*vtime)(long *) = (void *)(VSYSCALL + 0x400);
	a.sa_sigaction = count;
	sigaction(SIGTRAP, &a, 0);
	asm volatile("pushfq; orl $0x100, (%%rsp); popfq" ::: "cc", "memory");
	r = vtime(0);
	asm volatile("pushfq; andl $~0x100, (%%rsp); popfq" ::: "cc", "memory");
	printf("with the trap flag %d %d\n", r >= before, inPage);
}

static long raw(unsigned long number, long a) {
	long r;
	asm volatile("syscall" : "=a"(r) : "a"(number), "D"(a) : "rcx", "r11", "memory");
	return r;
}

static int ends[2];

static void alarmed(int n) { write(ends[1], "x", 1); }

// interrupted reads from a pipe until a handler with SA_RESTART writes to it. It returns the result of read.
static long interrupted(void) {
	struct sigaction a = {.sa_handler = alarmed, .sa_flags = SA_RESTART};
	char b[8];
	long r = 1UL << 32 | SYS_read;
	pipe(ends);
	sigaction(SIGALRM, &a, 0);
	ualarm(100000, 0);
	asm volatile("syscall" : "+a"(r) : "D"((long)ends[0]), "S"(b), "d"(sizeof b) : "rcx", "r11", "memory");
	return r;
}

static void numbers(void) {
	printf("number with high bits %d\n", raw(0xabcdef0000000000UL | SYS_getpid, 0) == getpid());
	printf("close %ld\n", raw(1UL << 32 | SYS_close, -1));
	printf("too large %ld\n", raw(0x80000000UL | SYS_getpid, 0));
	printf("restarted %ld\n", interrupted());
	printf("registrations %ld\n", syscall(SYS_membarrier, 64, 0, 0) ?: syscall(SYS_membarrier, 1 << 9, 0, 0));
}

// A handler of SIGUSR1 continues at returned, with other segments and a stack pointer that no memory can have.
asm(".pushsection .text\nreturned: mov %ss, %ecx\nint3\n.popsection");
extern char returned[];

static const unsigned long noStack = 0x8badf00d5aadc0deUL;
static unsigned short newCS, newSS;
static int strict, onlyCS, faults;
static greg_t saved[NGREG], seen[NGREG];
static siginfo_t cause;

static void leave(int n, siginfo_t *info, void *context) {
	ucontext_t *u = context;
	greg_t *r = u->uc_mcontext.gregs;
	unsigned short *segments = (void *)&r[REG_CSGSFS];
	memcpy(saved, r, sizeof saved);
	segments[0] = newCS;
	segments[3] = newSS;
	if (!strict)
		u->uc_flags &= ~4UL;
	r[REG_RIP] = (greg_t)returned;
	r[REG_RSP] = noStack;
}

static void comeBack(int n, siginfo_t *info, void *context) {
	greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
	cause = *info;
	memcpy(seen, r, sizeof seen);
	if (onlyCS && faults++ == 0) { // the kernel then repairs SS
		*(unsigned short *)&r[REG_CSGSFS] = 0x33;
		r[REG_RIP] = saved[REG_RIP], r[REG_RSP] = saved[REG_RSP];
	} else
		memcpy(r, saved, sizeof saved);
}

static void segments(void) {
	static char stack[1 << 16];
	static const unsigned short tries[][3] = {{0x33, 0x2b, 1}, {0x30, 0x28, 1}, {0x33, 0x47, 1}, {0x33, 0x33, 1}, {0x33, 0, 1}, {0x33, 0x13, 1}, {0x33, 0xffff, 1},
	    {0x33, 0x63, 1}, {0x33, 0x47, 0}, {0x33, 0, 0}, {0x33, 0x33, 0}, {0x47, 0x2b, 1}, {0, 0x2b, 1}, {0x2b, 0x2b, 1}, {0x13, 0x2b, 1}, {0xffff, 0x2b, 1}, {0x47, 0x47, 1}};
	stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack}, none = {.ss_flags = SS_DISABLE};
	struct sigaction first = {.sa_sigaction = leave, .sa_flags = SA_SIGINFO}, second = {.sa_sigaction = comeBack, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	struct sigaction standard = {.sa_handler = SIG_DFL};
	sigaltstack(&alternate, 0);
	sigaction(SIGUSR1, &first, 0);
	sigaction(SIGTRAP, &second, 0);
	sigaction(SIGSEGV, &second, 0);
	for (int i = 0; i < sizeof tries / sizeof tries[0]; i++) {
		newCS = tries[i][0], newSS = tries[i][1], strict = tries[i][2];
		raise(SIGUSR1);
		unsigned short *now = (void *)&seen[REG_CSGSFS];
		printf("segments %x %x: signal %d %d, exception %lld %llx, %lld bytes on, stack %d, segments %x %x\n", newCS, newSS, cause.si_signo, cause.si_code,
		    seen[REG_TRAPNO], seen[REG_ERR], seen[REG_RIP] - (greg_t)returned, seen[REG_RSP] == noStack, now[0], now[3]);
	}
	newCS = newSS = 0, strict = onlyCS = 1;
	raise(SIGUSR1);
	printf("only CS repaired: %d faults\n", faults);
	sigaction(SIGTRAP, &standard, 0);
	sigaction(SIGSEGV, &standard, 0);
	sigaltstack(&none, 0);
}

static volatile int word;

static void *waiter(void *unused) {
	while (word == 0)
		syscall(SYS_futex, &word, FUTEX_WAIT, 0, 0, 0, 0);
	return 0;
}

static void wakes(void) {
	pthread_t t;
	pthread_create(&t, 0, waiter, 0);
	while (syscall(SYS_futex, &word, FUTEX_WAKE, 0, 0, 0, 0) != 1) // wakes one waiter, because it counts after the wake
		usleep(100);
	word = 1;
	while (syscall(SYS_futex, &word, FUTEX_WAKE, 0, 0, 0, 0) == 1)
		;
	pthread_join(t, 0);
	printf("woken\n");
}

// fault makes an access that faults, in a child, and prints the end of the child. On a processor, LRET executes the code at
// its target; under emulation, it may fault.
static void fault(const char *name, void (*f)(void), int other) {
	int status;
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		alarm(20);
		f();
		_exit(0);
	}
	waitpid(child, &status, 0);
	int s = WTERMSIG(status);
	printf("%s %d\n", name, s == other ? SIGSEGV : s);
}

static void execute(void) { ((void (*)(void))(VSYSCALL + 0x10))(); }
static void load(void) { *(volatile char *)VSYSCALL; }
static void bad(void) { ((int (*)(void *, void *))VSYSCALL)((void *)8, 0); }
static void farReturn(void) { asm volatile("pushq $0x33; leaq 1f(%%rip), %%rax; pushq %%rax; lretq; 1: ud2" ::: "rax"); }
static void noSelector(void) { asm volatile("pushq $0x43; leaq 1f(%%rip), %%rax; pushq %%rax; lretq; 1: ud2" ::: "rax"); }

// info prints the lines of a descriptor's fdinfo after the first four, up to the ID of a counter and the position of a file.
static void info(int fd) {
	char path[64], line[256];
	sprintf(path, "/proc/self/fdinfo/%d", fd);
	FILE *f = fopen(path, "r");
	for (int i = 0; fgets(line, sizeof line, f); i++) {
		char *end = strstr(line, "  pos:") ?: strstr(line, "eventfd-id:");
		if (i >= 4)
			printf("%.*s\n", (int)((end ? end : strchr(line, '\n')) - line), line);
	}
	fclose(f);
	close(fd);
}

// watches prints the lines about the watches of an inotify instance, up to file handles.
static void watches(void) {
	char path[64], line[512];
	struct stat st;
	int fd = inotify_init1(0), wd;
	unsigned long ino, device;
	unsigned mask;
	inotify_add_watch(fd, "/tmp", IN_CREATE | IN_ONESHOT | IN_EXCL_UNLINK | IN_ONLYDIR);
	inotify_add_watch(fd, "/proc", IN_ALL_EVENTS);
	inotify_add_watch(fd, "/dev/null", IN_MODIFY);
	inotify_add_watch(fd, "/tmp", IN_DELETE | IN_MASK_ADD);
	inotify_rm_watch(fd, 2);
	sprintf(path, "/proc/self/fdinfo/%d", fd);
	FILE *f = fopen(path, "r");
	while (fgets(line, sizeof line, f)) {
		if (sscanf(line, "inotify wd:%x ino:%lx sdev:%lx mask:%x ignored_mask:0 ", &wd, &ino, &device, &mask) != 4)
			continue;
		stat(wd == 1 ? "/tmp" : "/dev/null", &st);
		printf("watch %d %d %d %x\n", wd, ino == st.st_ino, device == (major(st.st_dev) << 20 | minor(st.st_dev)), mask);
	}
	fclose(f);
	close(fd);
}

// again reads files of /proc once more without opening them again.
static void again(void) {
	char one[64], two[64];
	double first, second;
	int up = open("/proc/uptime", O_RDONLY), text = open("/proc/meminfo", O_RDONLY);
	one[pread(up, one, sizeof one - 1, 0)] = 0;
	first = atof(one);
	do { // a file whose content never changes ends the test by its time limit
		usleep(1000);
		lseek(up, 0, SEEK_SET);
		two[read(up, two, sizeof two - 1)] = 0;
		second = atof(two);
	} while (second <= first);
	printf("uptime %d\n", second > first);
	read(text, one, 12);
	read(text, two, 4);
	printf("meminfo %.8s %d\n", one, two[0] == ' ' || (two[0] >= '0' && two[0] <= '9'));
	close(up);
	close(text);
}

// regions prints the names of the lines of smaps for the last region, which is the vsyscall page.
static void regions(void) {
	char line[512], names[2048] = "";
	FILE *f = fopen("/proc/self/smaps", "r");
	while (fgets(line, sizeof line, f)) {
		if (strstr(line, "[vsyscall]"))
			strcpy(names, line);
		else if (*names && strncmp(line, "ProtectionKey", 13))
			strcat(names, line);
	}
	fclose(f);
	printf("%s", names);
}

static void descriptors(void) {
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	int counter = eventfd(11, EFD_SEMAPHORE), e = epoll_create1(0), timer = timerfd_create(CLOCK_MONOTONIC, 0);
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = 0x1234};
	struct itimerspec set1 = {.it_interval = {5, 6}};
	epoll_ctl(e, EPOLL_CTL_ADD, counter, &event);
	timerfd_settime(timer, TFD_TIMER_ABSTIME, &set1, 0);
	info(e);
	info(counter);
	info(timer);
	info(signalfd(-1, &set, 0));
}

static void pathOnly(void) {
	char name[] = "/tmp/selftests-XXXXXX", path[64], b[8] = "";
	int fd = mkstemp(name);
	write(fd, "kept", 4);
	int p = open(name, O_PATH);
	close(fd);
	unlink(name);
	sprintf(path, "/proc/self/fd/%d", p);
	fd = open(path, O_RDONLY);
	printf("file without a name %zd %s\n", read(fd, b, sizeof b), b);
}

// own opens the fdinfo of a descriptor, or its name, as that descriptor, and reads it by each way.
static void own(void) {
	char path[64], b[4096];
	int fd = open("/dev/null", O_RDONLY), other = open("/dev/null", O_RDONLY);
	sprintf(path, "/proc/self/fdinfo/%d", fd);
	int info = open(path, O_RDONLY);
	dup2(info, fd);
	printf("own fdinfo %d", pread(fd, b, sizeof b, 0) > 20);
	printf(" %d", read(fd, b, sizeof b) > 20);
	sprintf(path, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(path, b, sizeof b);
	printf(" %d\n", n > 14 && !memcmp(b, "/proc/", 6));
	sprintf(path, "/proc/self/fd/%d", other);
	int name = open(path, O_PATH | O_NOFOLLOW);
	dup2(name, other);
	printf("own name %d\n", readlink(path, b, sizeof b) > 10);
	close(info);
	close(name);
	close(fd);
	close(other);
}

int main(void) {
	own();
	descriptors();
	watches();
	again();
	regions();
	pathOnly();
	vsyscalls();
	entered();
	segments();
	numbers();
	wakes();
	fault("execute", execute, 0);
	fault("load", load, 0);
	fault("bad pointer", bad, 0);
	fault("far return", farReturn, SIGILL);
	fault("no selector", noSelector, 0);
	return 0;
}
