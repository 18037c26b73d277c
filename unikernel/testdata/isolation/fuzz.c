/* Random system calls with random and plausible arguments, from several threads and children. */
#include "isolate.h"

/* Kinds of arguments: f descriptor, p address, s path, n size, o address of a mapping, i number, g flags, r protection, t ID of a
 * process, l signal. A call without an entry gets random ones. */
static const struct { int number; const char *args; } known[] = {
	{ SYS_read, "fpn" }, { SYS_write, "fpn" }, { SYS_open, "sgi" }, { SYS_close, "f" }, { SYS_stat, "sp" }, { SYS_fstat, "fp" },
	{ SYS_poll, "pni" }, { SYS_lseek, "fni" }, { SYS_mmap, "onrgfn" }, { SYS_mprotect, "onr" }, { SYS_munmap, "on" },
	{ SYS_brk, "o" }, { SYS_rt_sigaction, "lppn" }, { SYS_rt_sigprocmask, "ippn" }, { SYS_ioctl, "fip" }, { SYS_pread64, "fpnn" },
	{ SYS_pwrite64, "fpnn" }, { SYS_readv, "fpn" }, { SYS_writev, "fpn" }, { SYS_access, "si" }, { SYS_pipe, "p" },
	{ SYS_select, "npppp" }, { SYS_mremap, "onngo" }, { SYS_msync, "oni" }, { SYS_mincore, "onp" }, { SYS_madvise, "oni" },
	{ SYS_shmget, "ini" }, { SYS_shmat, "ioi" }, { SYS_shmctl, "iip" }, { SYS_dup, "f" }, { SYS_dup2, "ff" },
	{ SYS_nanosleep, "pp" }, { SYS_setitimer, "ipp" }, { SYS_sendfile, "ffpn" }, { SYS_socket, "iii" }, { SYS_connect, "fpn" },
	{ SYS_accept, "fpp" }, { SYS_sendto, "fpnipn" }, { SYS_recvfrom, "fpnipp" }, { SYS_sendmsg, "fpi" }, { SYS_recvmsg, "fpi" },
	{ SYS_bind, "fpn" }, { SYS_listen, "fi" }, { SYS_getsockname, "fpp" }, { SYS_socketpair, "iiip" }, { SYS_setsockopt, "fiipn" },
	{ SYS_getsockopt, "fiipp" }, { SYS_clone, "gpppp" }, { SYS_fork, "" }, { SYS_execve, "spp" }, { SYS_wait4, "tpip" },
	{ SYS_kill, "tl" }, { SYS_semget, "iii" }, { SYS_semop, "ipn" }, { SYS_semctl, "iiip" }, { SYS_msgget, "ii" },
	{ SYS_msgsnd, "ipni" }, { SYS_msgrcv, "ipnii" }, { SYS_msgctl, "iip" }, { SYS_fcntl, "fii" }, { SYS_flock, "fi" },
	{ SYS_ftruncate, "fn" }, { SYS_getdents64, "fpn" }, { SYS_getcwd, "pn" }, { SYS_chdir, "s" }, { SYS_rename, "ss" },
	{ SYS_mkdir, "si" }, { SYS_rmdir, "s" }, { SYS_creat, "si" }, { SYS_link, "ss" }, { SYS_unlink, "s" }, { SYS_symlink, "ss" },
	{ SYS_readlink, "spn" }, { SYS_chmod, "si" }, { SYS_ptrace, "itop" }, { SYS_sigaltstack, "pp" }, { SYS_prctl, "iippp" },
	{ SYS_arch_prctl, "ip" }, { SYS_futex, "pgippi" }, { SYS_sched_setaffinity, "tnp" }, { SYS_epoll_ctl, "fifp" },
	{ SYS_epoll_wait, "fpni" }, { SYS_set_tid_address, "p" }, { SYS_timer_create, "ipp" }, { SYS_timer_settime, "iipp" },
	{ SYS_openat, "fsgi" }, { SYS_mkdirat, "fsi" }, { SYS_unlinkat, "fsi" }, { SYS_set_robust_list, "pn" }, { SYS_splice, "fpfpni" },
	{ SYS_tee, "ffni" }, { SYS_vmsplice, "fpni" }, { SYS_signalfd4, "fpni" }, { SYS_timerfd_settime, "fipp" }, { SYS_eventfd2, "ii" },
	{ SYS_epoll_create1, "i" }, { SYS_dup3, "ffi" }, { SYS_pipe2, "pg" }, { SYS_inotify_add_watch, "fsi" }, { SYS_prlimit64, "tipp" },
	{ SYS_process_vm_readv, "tpnpni" }, { SYS_process_vm_writev, "tpnpni" }, { SYS_seccomp, "iip" }, { SYS_memfd_create, "si" },
	{ SYS_copy_file_range, "fpfpni" }, { SYS_statx, "fsiip" }, { SYS_rseq, "pnii" }, { SYS_clone3, "pn" }, { SYS_close_range, "ffi" },
	{ SYS_pidfd_open, "ti" }, { SYS_mq_open, "sgip" }, { SYS_mq_unlink, "s" }, { SYS_mq_timedsend, "fpnip" },
	{ SYS_mq_timedreceive, "fpnpp" }, { SYS_mq_notify, "fp" }, { SYS_mq_getsetattr, "fpp" }, { 449 /* futex_waitv */, "pnipi" },
	{ SYS_rt_sigqueueinfo, "tlp" }, { SYS_rt_sigtimedwait, "pppn" }, { SYS_waitid, "itpip" }, { SYS_setxattr, "sspni" },
	{ SYS_fallocate, "finn" }, { SYS_sendmmsg, "fpni" }, { SYS_recvmmsg, "fpnip" }, { SYS_getrandom, "pni" }, { SYS_mlock, "on" },
};
enum { KNOWN = sizeof known / sizeof *known, ARENA = 64 * 4096 };

static char *arena; /* memory that calls read and write; pages of it come and go */
static int depth;

static const char *const paths[] = {
	"a", "b", "c/d", "c", "/tmp/isolate/a", ".", "..", "/", "/proc/self/mem", "/proc/self/maps", "/proc/self/fd/3", "/dev/null",
	"/dev/zero", "/dev/ptmx", "/dev/tty", "/proc/self/status", "", "/proc/self/exe", "/dev/full", "/proc/1/stat", "/dev/shm/x", "queue",
};

/* A value that an argument may have as a number. */
static u64 value(struct random *r)
{
	switch (below(r, 8)) {
	case 0: return next(r);
	case 1: return -(below(r, 16));
	case 2: return 1ull << below(r, 64);
	case 3: return (1ull << below(r, 64)) - 1;
	case 4: return below(r, 4096);
	default: return below(r, 20);
	}
}

/* An address: good ones, ends of pages, and bad ones. */
static u64 address(struct random *r)
{
	static const u64 bad[] = { 0, 1, -1, 0x8000000000000000, 0x7ffffffff000, 0x7fffffffefff, 0xffff800000000000, 0xffffffff80000000,
		0x800000000000, 0x1000, -4096 };
	u64 a = (u64)arena;
	switch (below(r, 10)) {
	case 0: return bad[below(r, sizeof bad / sizeof *bad)];
	case 1: return a + below(r, ARENA / 4096) * 4096 + 4096 - below(r, 64);
	case 2: return a + below(r, ARENA);
	case 3: return (u64)&a;
	default: return a + below(r, ARENA / 64) * 64;
	}
}

/* Fills memory with what structures contain: small numbers, descriptors, sizes, addresses. */
static void fill(struct random *r, u64 at)
{
	if (at < (u64)arena || at >= (u64)arena + ARENA - 512)
		return;
	int n = below(r, 48);
	for (int i = 0; i < n; i++) {
		u64 v = value(r);
		if (below(r, 4) == 0)
			v = address(r);
		if (below(r, 2))
			*(volatile uint32_t *)(at + i * 4) = v;
		else
			*(volatile u64 *)((at & ~7ull) + i * 8) = v;
	}
	if (below(r, 8) == 0) { /* struct sockaddr */
		*(volatile uint16_t *)at = below(r, 2) ? AF_INET : AF_UNIX;
		*(volatile uint16_t *)(at + 2) = below(r, 65536);
		*(volatile uint32_t *)(at + 4) = 0x0100007f;
	}
}

static u64 argument(struct random *r, char kind)
{
	u64 at;
	switch (kind) {
	case 'f': return below(r, 16) == 0 ? value(r) : below(r, 12) == 0 ? (u64)AT_FDCWD : below(r, 24);
	case 's':
		if (below(r, 8) == 0)
			return address(r);
		return (u64)paths[below(r, sizeof paths / sizeof *paths)];
	case 'p':
		at = address(r);
		fill(r, at);
		return at;
	case 'o': return below(r, 12) == 0 ? address(r) : (u64)arena + below(r, ARENA / 4096) * 4096;
	case 'n': return below(r, 6) == 0 ? value(r) : below(r, 3) == 0 ? 8 << below(r, 6) : below(r, 3) == 0 ? below(r, 4) * 4096 : below(r, 128);
	case 'r': return below(r, 8);
	case 'g': return below(r, 3) == 0 ? value(r) : below(r, 1 << 16) & below(r, 1 << 16);
	case 't': return below(r, 4) == 0 ? value(r) : below(r, 3) == 0 ? (u64)getpid() : below(r, 3) == 0 ? (u64)syscall(SYS_gettid) : 0;
	case 'l': return below(r, 8) == 0 ? value(r) : below(r, 65);
	}
	return below(r, 3) == 0 ? value(r) : below(r, 24);
}

static void one(struct random *r)
{
	u64 a[6];
	long number;
	const char *kinds = "";
	if (below(r, 5) == 0) {
		number = below(r, 50) == 0 ? (long)value(r) : (long)below(r, MOST_CALLS);
	} else {
		int i = below(r, KNOWN);
		number = known[i].number, kinds = known[i].args;
	}
	for (int i = 0; i < 6; i++) {
		char k = *kinds ? *kinds++ : "ipnf"[below(r, 4)];
		a[i] = argument(r, k);
	}
	switch (number) { /* they would end most processes at once */
	case SYS_exit: case SYS_exit_group: case SYS_rt_sigreturn: case SYS_kill: case SYS_tgkill: case SYS_tkill: case SYS_pause:
		if (below(r, 64))
			return;
		break;
	case SYS_seccomp: case SYS_rt_sigsuspend: case SYS_vfork:
		if (below(r, 32))
			return;
		break;
	case SYS_mmap:
		if (below(r, 16))
			a[3] &= ~(u64)MAP_FIXED;
		break;
	case SYS_clone: case SYS_fork: case SYS_clone3:
		if (depth >= 2 || below(r, 4))
			return;
		if (number == SYS_clone)
			a[0] &= ~(u64)CLONE_VM, a[1] = 0;
		if (number == SYS_clone3)
			memset(arena, 0, 88), a[0] = (u64)arena, a[1] = 88, ((u64 *)arena)[4] = SIGCHLD;
		long p = syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
		if (p == 0) {
			depth++;
			struct random own;
			sow(&own, next(r) ^ getpid());
			for (int i = 0; i < 100; i++)
				one(&own);
			_exit(0);
		}
		return;
	}
	struct progress *p = &progress[syscall(SYS_gettid) % PROGRESS];
	for (int i = 0; i < 6; i++)
		p->a[i] = a[i];
	p->number = number;
	syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	p->number = -1;
}

static void *calls(void *seed)
{
	struct random r;
	sow(&r, (u64)seed);
	for (int i = 0; i < 3000; i++)
		one(&r);
	return 0;
}

/* Changes the memory that other threads use. */
static void *changes(void *seed)
{
	struct random r;
	sow(&r, (u64)seed);
	for (;;) {
		char *at = arena + below(&r, ARENA / 4096) * 4096;
		switch (below(&r, 4)) {
		case 0: mprotect(at, 4096, below(&r, 4)); break;
		case 1: madvise(at, 4096, MADV_DONTNEED); break;
		case 2: munmap(at, 4096); /* fall through */
		default: mmap(at, 4096, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		}
		usleep(200);
		mmap(at, 4096, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	return 0;
}

static void interrupted(int n) { (void)n; }

void fuzz(u64 seed)
{
	struct random r;
	pthread_t t;
	sow(&r, seed);
	arena = mmap(0, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction a = { .sa_handler = interrupted };
	sigaction(SIGALRM, &a, 0);
	struct itimerval often = { { 0, 20000 }, { 0, 20000 } };
	setitimer(ITIMER_REAL, &often, 0);
	for (int i = below(&r, 3); i > 0; i--)
		pthread_create(&t, 0, calls, (void *)next(&r));
	if (below(&r, 3) == 0)
		pthread_create(&t, 0, changes, (void *)next(&r));
	calls((void *)next(&r));
}
