/* Hostile programs, each for one kind of harm. A program that the kernel kills has lost. */
#include "isolate.h"
#include <ucontext.h>

static void interrupted(int n) { (void)n; }

/* A signal every few milliseconds ends waits. */
static void often(void)
{
	struct sigaction a = { .sa_handler = interrupted };
	sigaction(SIGALRM, &a, 0);
	struct itimerval i = { { 0, 3000 }, { 0, 3000 } };
	setitimer(ITIMER_REAL, &i, 0);
}

/* Each address that cannot be accessed, in each argument of one call. */
void pointers(u64 number)
{
	char *m = mmap(0, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mprotect(m + 4096, 4096, PROT_READ);
	munmap(m + 2 * 4096, 4096);
	u64 bad[] = { 0, 8, -1, -8, 0x8000000000000000, 0x800000000000, 0x7fffffffeff8, 0x7ffffffff000, 0xffff800000000000,
		0xffffffff80000000, 0xfffffffffffff000, (u64)m + 4096, (u64)m + 2 * 4096, (u64)m + 2 * 4096 - 4, (u64)m + 4096 - 4, (u64)m + 1 };
	const u64 plausible[] = { 0, 1, 3, 8, 64, 4096, (u64)m, (u64)m + 2048 };
	struct random r;
	sow(&r, number);
	int p[2];
	pipe(p);
	open("a", O_RDWR | O_CREAT, 0600);
	socket(AF_INET, SOCK_STREAM, 0);
	socket(AF_UNIX, SOCK_DGRAM, 0);
	often();
	for (int at = 0; at < 6; at++)
		for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
			for (int k = 0; k < 4; k++) {
				u64 a[6];
				for (int j = 0; j < 6; j++)
					a[j] = plausible[below(&r, 8)];
				a[0] = k < 2 ? below(&r, 8) : a[0];
				a[at] = bad[i];
				syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
			}
}

/* Frames of sigreturn that a program has forged. */
void frames(u64 seed)
{
	static struct { struct ucontext_t c; char info[128]; char vectors[4096] __attribute__((aligned(64))); } f;
	static char stack[65536];
	struct random r;
	sow(&r, seed);
	if (below(&r, 2)) {
		u64 *w = (u64 *)&f;
		for (unsigned i = 0; i < sizeof f / 8; i++)
			w[i] = below(&r, 3) ? next(&r) : 0;
	}
	greg_t *g = f.c.uc_mcontext.gregs;
	static void *const targets[] = { 0, (void *)0x8000000000000000, (void *)0x800000000000, (void *)0x7ffffffffffe, (void *)-2 };
	g[REG_RIP] = below(&r, 2) ? (greg_t)_exit : (greg_t)targets[below(&r, 5)];
	g[REG_RSP] = below(&r, 2) ? (greg_t)stack + 32768 : (greg_t)next(&r);
	g[REG_EFL] = below(&r, 2) ? -1 : (greg_t)next(&r); /* IOPL, NT, VM, AC, TF, and bits that must be 0 */
	static const u64 selectors[] = { 0, 0x08, 0x10, 0x18, 0x20, 0x2b, 0x33, 0x3b, 0xffff, 0x0007, 0x28 };
	u64 s = 0;
	for (int i = 0; i < 4; i++)
		s |= selectors[below(&r, 11)] << (16 * i);
	g[REG_CSGSFS] = s;
	switch (below(&r, 5)) {
	case 0: f.c.uc_mcontext.fpregs = 0; break;
	case 1: f.c.uc_mcontext.fpregs = (void *)(f.vectors + below(&r, 64)); break;
	case 2: f.c.uc_mcontext.fpregs = (void *)next(&r); break;
	default: f.c.uc_mcontext.fpregs = (void *)f.vectors;
	}
	if (below(&r, 2)) { /* the marks of a frame with the extended state */
		*(uint32_t *)(f.vectors + 464) = 0x46505853;
		*(uint32_t *)(f.vectors + 468) = below(&r, 2) ? 832 + 4 : next(&r);
		*(u64 *)(f.vectors + 472) = below(&r, 2) ? 7 : next(&r);
		*(uint32_t *)(f.vectors + 480) = below(&r, 2) ? 832 : next(&r);
		*(u64 *)(f.vectors + 512) = next(&r);
		*(u64 *)(f.vectors + 520) = below(&r, 2) ? 0x8000000000000007 : next(&r);
		*(uint32_t *)(f.vectors + 24) = next(&r); /* MXCSR */
	}
	__asm__ volatile("mov %0, %%rsp; mov $15, %%eax; syscall; ud2" : : "r"(&f) : "memory");
}

/* Executes bytes. */
static void execute(const void *bytes, int n)
{
	unsigned char *m = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(m, bytes, n);
	m[n] = 0xc3;
	((void (*)(void))m)();
}
#define CODE(...) do { static const unsigned char b_[] = { __VA_ARGS__ }; execute(b_, sizeof b_); } while (0)

static void *spin(void *flag)
{
	while (!*(volatile int *)flag)
		;
	return 0;
}

/* Instructions that ring 3 must not execute, or with addresses, selectors and flags that it must not have. */
void instructions(u64 which)
{
	struct sigaction a = { .sa_handler = interrupted, .sa_flags = SA_ONSTACK };
	int flag = 0;
	pthread_t t;
	(void)t;
	switch (which) {
	case 0: CODE(0xf4); break;                                     /* HLT */
	case 1: CODE(0xfa); break;                                     /* CLI */
	case 2: CODE(0xfb); break;                                     /* STI */
	case 3: CODE(0xe6, 0x80); break;                               /* OUT */
	case 4: CODE(0xe4, 0x60); break;                               /* IN */
	case 5: CODE(0x0f, 0x22, 0xd8); break;                         /* MOV to CR3 */
	case 6: CODE(0x0f, 0x20, 0xc0); break;                         /* MOV from CR0 */
	case 7: CODE(0x0f, 0x30); break;                               /* WRMSR */
	case 8: CODE(0x0f, 0x32); break;                               /* RDMSR */
	case 9: CODE(0x0f, 0x01, 0xf8); break;                         /* SWAPGS */
	case 10: CODE(0x48, 0x0f, 0x07); break;                        /* SYSRET */
	case 11: CODE(0x0f, 0x34); break;                              /* SYSENTER */
	case 12: CODE(0x48, 0x0f, 0x35); break;                        /* SYSEXIT */
	case 13: CODE(0x0f, 0x01, 0xd1); break;                        /* XSETBV */
	case 14: CODE(0x0f, 0x06); break;                              /* CLTS */
	case 15: CODE(0x0f, 0x08); break;                              /* INVD */
	case 16: CODE(0x0f, 0x01, 0x10); break;                        /* LGDT */
	case 17: CODE(0x0f, 0x01, 0x18); break;                        /* LIDT */
	case 18: CODE(0x0f, 0x01, 0x38); break;                        /* INVLPG */
	case 19: CODE(0x0f, 0x00, 0xd8); break;                        /* LTR */
	case 20: CODE(0x0f, 0x01, 0x00); break;                        /* SGDT */
	case 21: CODE(0x0f, 0x23, 0xf8); break;                        /* MOV to DR7 */
	case 22: CODE(0x0f, 0x33); break;                              /* RDPMC */
	case 23: CODE(0x0f, 0x01, 0xca); break;                        /* CLAC */
	case 24: CODE(0x0f, 0x0b); break;                              /* UD2 */
	case 25: CODE(0xf1); break;                                    /* INT1 */
	case 26: CODE(0xcc); break;                                    /* INT3 */
	case 27: CODE(0xcd, 0x80); break;                              /* INT 0x80 */
	case 28: CODE(0xcd, 0x08); break;                              /* INT of a double fault */
	case 29: CODE(0xcd, 0x0e); break;                              /* INT of a page fault */
	case 30: CODE(0xcd, 0x20); break;
	case 31: CODE(0xcd, 0xff); break;
	case 32: __asm__ volatile("pushq $0x10; pushq $0; pushfq; pushq $0x08; pushq $0; iretq"); break;
	case 33: __asm__ volatile("pushq $0x08; pushq $0; lretq"); break;
	case 34: __asm__ volatile("mov $0x10, %%eax; mov %%eax, %%ss" : : : "eax"); break;
	case 35: __asm__ volatile("mov $0x10, %%eax; mov %%eax, %%ds" : : : "eax"); break;
	case 36: __asm__ volatile("mov $0x2b, %%eax; mov %%eax, %%ds; mov %%eax, %%es; mov %%eax, %%fs; mov %%eax, %%gs" : : : "eax"); break;
	case 37: __asm__ volatile("pushfq; orq $0x47000, (%%rsp); popfq; pushfq; popq %%rax; syscall" : : "a"(SYS_getpid) : "rcx", "r11"); break; /* IOPL, NT, AC */
	case 38: __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq; mov $39, %%eax; syscall; nop" : : : "rax", "rcx", "r11"); break;
	case 39: ((void (*)(void))0x8000000000000000)(); break;
	case 40: ((void (*)(void))0x800000000000)(); break;
	case 41: ((void (*)(void))0xffffffff81000000)(); break;
	case 42: *(volatile int *)0x8000000000000000 = 0; break;
	case 43: *(volatile int *)0xffff800000000000 = 0; break;
	case 44: __asm__ volatile("mov %0, %%rsp; push %%rax" : : "r"(0x8000000000000000)); break;
	case 45: __asm__ volatile("mov %0, %%rsp; mov $39, %%eax; syscall; ud2" : : "r"(0x8000000000000000)); break;
	case 46: __asm__ volatile("mov %0, %%rsp; int3" : : "r"(0xffff800000000000)); break;
	case 47: /* a handler without a stack */
		sigaction(SIGUSR1, &a, 0);
		__asm__ volatile("mov %0, %%rsp; mov $62, %%eax; syscall" : : "r"(8ul), "D"(getpid()), "S"(SIGUSR1));
		break;
	case 48: syscall(SYS_arch_prctl, 0x1001, 0x8000000000000000); syscall(SYS_arch_prctl, 0x1002, 0xffff800000000000); break;
	case 49: __asm__ volatile("wrfsbase %0" : : "r"(0x8000000000000000)); break;
	case 50: __asm__ volatile("wrfsbase %0; mov $39, %%eax; syscall; ud2" : : "r"(0xffff800000000000)); break;
	case 51: __asm__ volatile("wrgsbase %0; mov $39, %%eax; syscall; ud2" : : "r"(0xffff800000000000)); break;
	case 52: { /* SYSCALL in the last page */
		unsigned char *m = mmap((void *)0x7fffffffe000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (m == MAP_FAILED)
			break;
		m[4094] = 0x0f, m[4095] = 0x05;
		__asm__ volatile("mov $39, %%eax; jmp *%0" : : "r"(m + 4094));
		break;
	}
	case 53: { /* an unmapped vector area and a denormal MXCSR */
		uint32_t m = 0xffffffff;
		__asm__ volatile("ldmxcsr %0" : : "m"(m));
		break;
	}
	case 54: __asm__ volatile("fninit; fld1; fldz; fdivrp; fldcw %0; fwait" : : "m"(*(short[]){ 0 })); break;
	case 55: __asm__ volatile("std; mov $39, %%eax; syscall" : : : "rax", "rcx", "r11"); abort();
	case 56: /* threads that never leave ring 3 */
		for (int i = 0; i < 8; i++)
			pthread_create(&t, 0, spin, &flag);
		spin(&flag);
		break;
	case 57: __asm__ volatile("xor %%eax, %%eax; xor %%edx, %%edx; div %%eax" : : : "eax", "edx"); break;
	case 58: __asm__ volatile("mov $0x3b, %%eax; lsl %%eax, %%eax; lar %%eax, %%eax; verr %%ax; str %%eax" : : : "eax"); break;
	case 59: __asm__ volatile("xorq %rsp, %rsp; pushq $0; popfq"); break;
	}
}

static volatile int stopped;
static unsigned char *self;

/* Calls the function that another thread changes. Each of its versions returns one of two numbers. */
static void *caller(void *x)
{
	(void)x;
	while (!stopped) {
		int v = ((int (*)(void))self)();
		if (v != 0x01010101 && v != 0x02020202 && v != 0x03030303)
			_exit(7);
	}
	return 0;
}

/* Code that changes itself, in one page and across two mappings of a page. */
void code(u64 x)
{
	(void)x;
	int fd = memfd_create("code", 0);
	ftruncate(fd, 4096);
	unsigned char *writable = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	self = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
	writable[3] = 0xb8, writable[8] = 0xc3; /* MOV $v, EAX; RET; the operand is aligned */
	self += 3;
	*(volatile uint32_t *)(writable + 4) = 0x01010101;
	pthread_t t;
	for (int i = 0; i < 600; i++) {
		uint32_t v = 0x01010101 * (1 + i % 3);
		if (i == 300)
			pthread_create(&t, 0, caller, 0);
		*(volatile uint32_t *)(writable + 4) = v;
		__asm__ volatile("cpuid" : : "a"(0) : "ebx", "ecx", "edx", "memory"); /* serialises */
		/* While another CPU executes the code, QEMU's emulation may execute an old version here. */
		if ((uint32_t)((int (*)(void))self)() != v && i < 300)
			_exit(8);
		if (i < 300 && i % 100 == 0 && mprotect(self - 3, 4096, PROT_NONE) == 0)
			mprotect(self - 3, 4096, PROT_READ | PROT_EXEC);
		else if (i % 10 == 0)
			sched_yield();
	}
	stopped = 1;
	_exit(0);
}

/* Memory is unmapped, protected and mapped again while calls copy from it and to it. */
static char *area;
enum { PIECE = 64 * 4096 };

static void *churn(void *x)
{
	struct random r;
	sow(&r, (u64)x);
	for (;;) {
		char *at = area + below(&r, PIECE / 4096) * 4096;
		u64 n = (1 + below(&r, 8)) * 4096;
		switch (below(&r, 3)) {
		case 0: munmap(at, n); break;
		case 1: mprotect(at, n, PROT_NONE); break;
		default: madvise(at, n, MADV_DONTNEED);
		}
		mmap(at, n, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	return 0;
}

void unmapped(u64 x)
{
	(void)x;
	pthread_t t;
	area = mmap(0, PIECE + 8 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_create(&t, 0, churn, (void *)1);
	int file = open("big", O_RDWR | O_CREAT | O_TRUNC, 0600), p[2], s[2];
	ftruncate(file, PIECE);
	pipe2(p, O_NONBLOCK);
	socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s);
	if (fork() == 0)
		pthread_create(&t, 0, churn, (void *)2);
	for (;;) {
		pread(file, area, PIECE, 0);
		pwrite(file, area, PIECE, 0);
		write(p[1], area, PIECE), read(p[0], area, PIECE);
		write(s[1], area, PIECE), read(s[0], area, PIECE);
		syscall(SYS_getrandom, area, PIECE, 0);
		syscall(SYS_mincore, area, PIECE, area);
		struct iovec { void *b; size_t n; } v = { area, PIECE }, w = { area + 4096, PIECE };
		syscall(SYS_process_vm_readv, getpid(), &v, 1, &w, 1, 0);
	}
}

/* Many threads, each of which waits. */
static int word;
static int wait_(void *x)
{
	(void)x;
	for (;;)
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
	return 0;
}

void crowd(u64 threads)
{
	const int size = 4096;
	char *stacks = mmap(0, threads * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stacks == MAP_FAILED)
		_exit(3);
	u64 made = 0;
	for (; made < threads; made++)
		if (clone(wait_, stacks + (made + 1) * size - 64, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, 0) < 0)
			break;
	_exit(made < 200 || (made < threads && errno != EAGAIN)); /* RLIMIT_NPROC */
}

/* Processes that create processes. */
void bomb(u64 x)
{
	(void)x;
	for (;;)
		fork();
}

/* All memory that the limit allows; then all that the machine has. */
void memory(u64 unlimited)
{
	for (int i = 0; i < (unlimited ? 16 : 4); i++)
		fork();
	for (u64 size = 64 << 20; size >= 4096;) {
		char *m = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (m == MAP_FAILED) {
			size /= 2;
			continue;
		}
		for (u64 i = 0; i < size; i += 4096)
			m[i] = 1;
	}
	usleep(100000);
}
