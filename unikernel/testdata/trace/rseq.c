/* Restartable sequences, as allocators use them: counters for each CPU, aborts by signals, and errors. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *error(long r) { return r == -1 ? strerror(errno) : "ok"; }
#define SHOW(x) do { errno = 0; long r_ = (long)(x); printf("%s: %s\n", #x, error(r_)); } while (0)
#define CALL(...) syscall(SYS_rseq, __VA_ARGS__)

static struct rseq *mine(void) { return (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset); }

enum { THREADS = 6, TIMES = 20000, CPUS = 256 };
static struct { long count; char pad[56]; } counters[CPUS];

/* Adds 1 to the counter of a CPU. It returns 0 if the thread was moved or interrupted before the store. */
static int add(long *counter, uint32_t cpu)
{
	struct rseq *r = mine();
	__asm__ goto(
		".pushsection __rseq_cs, \"aw\"\n"
		".balign 32\n"
		"3: .long 0, 0\n"
		".quad 1f, 2f - 1f, 4f\n"
		".popsection\n"
		"leaq 3b(%%rip), %%rax\n"
		"movq %%rax, 8(%[r])\n"
		"1: cmpl %[cpu], 4(%[r])\n"
		"jnz %l[aborted]\n"
		"movq (%[counter]), %%rax\n"
		"addq $1, %%rax\n"
		"movq %%rax, (%[counter])\n"
		"2:\n"
		".pushsection __rseq_failure, \"ax\"\n"
		".byte 0x0f, 0xb9, 0x3d\n"
		".long %c[signature]\n"
		"4: jmp %l[aborted]\n"
		".popsection\n"
		:
		: [r] "r"(r), [cpu] "r"(cpu), [counter] "r"(counter), [signature] "i"(RSEQ_SIG)
		: "rax", "memory", "cc"
		: aborted);
	return 1;
aborted:
	return 0;
}

static volatile int over;
static void *adder(void *x)
{
	(void)x;
	for (int i = 0; i < TIMES; i++) {
		uint32_t cpu;
		do
			cpu = mine()->cpu_id_start;
		while (!add(&counters[cpu].count, cpu));
	}
	return 0;
}

/* Spins in a critical section until it is aborted. */
static void spin(void)
{
	__asm__ goto(
		".pushsection __rseq_cs, \"aw\"\n"
		".balign 32\n"
		"3: .long 0, 0\n"
		".quad 1f, 2f - 1f, 4f\n"
		".popsection\n"
		"leaq 3b(%%rip), %%rax\n"
		"movq %%rax, 8(%[r])\n"
		"1: pause\n"
		"jmp 1b\n"
		"2:\n"
		".pushsection __rseq_failure, \"ax\"\n"
		".byte 0x0f, 0xb9, 0x3d\n"
		".long %c[signature]\n"
		"4: jmp %l[aborted]\n"
		".popsection\n"
		:
		: [r] "r"(mine()), [signature] "i"(RSEQ_SIG)
		: "rax", "memory"
		: aborted);
aborted:
	return;
}

static volatile int signals;
static void handler(int n) { (void)n; signals++; }

static void child(const char *what, void (*f)(void))
{
	int s;
	fflush(stdout);
	if (fork() == 0) {
		f();
		_exit(0);
	}
	wait(&s);
	printf("%s: %s %d\n", what, WIFSIGNALED(s) ? "signal" : "exit", WIFSIGNALED(s) ? WTERMSIG(s) : WEXITSTATUS(s));
}

static struct rseq_cs section __attribute__((aligned(32)));
static void point(void *to)
{
	mine()->rseq_cs = (uint64_t)to;
	for (int i = 0; i < 50; i++)
		raise(SIGUSR1);
}
static void nowhere(void) { point((void *)8); }
static void outside(void) { section = (struct rseq_cs){ .start_ip = 0x1000, .post_commit_offset = 16, .abort_ip = 0x1008 }; point(&section); }
static void version(void) { section = (struct rseq_cs){ .version = 1, .abort_ip = (uint64_t)spin }; point(&section); }
static void signature(void) { section = (struct rseq_cs){ .abort_ip = (uint64_t)spin }; point(&section); }
static void kernel(void) { point((void *)0xffff800000000000); }
static void spins(void)
{
	struct itimerval i = { { 0, 0 }, { 0, 20000 } };
	setitimer(ITIMER_REAL, &i, 0);
	spin();
	_exit(42);
}
static void registered(void) { _exit(mine()->cpu_id < CPUS ? 7 : 8); }

static struct rseq other __attribute__((aligned(32))), third __attribute__((aligned(32)));
static void *errors(void *x)
{
	(void)x;
	SHOW(CALL(mine(), 32, RSEQ_FLAG_UNREGISTER, RSEQ_SIG + 1));
	SHOW(CALL(mine(), 32, 0, RSEQ_SIG));
	SHOW(CALL(mine(), 32, 0, RSEQ_SIG + 1));
	SHOW(CALL(&other, 32, 0, RSEQ_SIG));
	SHOW(CALL(mine(), 31, RSEQ_FLAG_UNREGISTER, RSEQ_SIG));
	SHOW(CALL(mine(), 32, 2, RSEQ_SIG));
	SHOW(CALL(mine(), 32, RSEQ_FLAG_UNREGISTER, RSEQ_SIG));
	printf("id %d\n", (int)mine()->cpu_id);
	SHOW(CALL(mine(), 32, RSEQ_FLAG_UNREGISTER, RSEQ_SIG));
	SHOW(CALL((char *)&other + 1, 32, 0, RSEQ_SIG));
	SHOW(CALL(&other, 16, 0, RSEQ_SIG));
	SHOW(CALL((void *)0xffff800000000000, 32, 0, RSEQ_SIG));
	other.cpu_id = third.cpu_id = -1;
	SHOW(CALL(&other, 32, 0, 77));
	printf("here %d\n", other.cpu_id < CPUS && other.cpu_id_start == other.cpu_id);
	SHOW(CALL(&third, 32, 0, 77));
	SHOW(CALL(&other, 32, RSEQ_FLAG_UNREGISTER, 77));
	return 0;
}

int main(void)
{
	pthread_t t[THREADS];
	printf("size %u feature %d align %lu\n", __rseq_size, getauxval(27) == 0 || getauxval(27) >= 20, getauxval(28) ? getauxval(28) : 32);
	printf("registered %d\n", mine()->cpu_id < CPUS);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], 0, adder, 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], 0);
	long sum = 0;
	for (int i = 0; i < CPUS; i++)
		sum += counters[i].count;
	printf("sum %ld\n", sum);
	signal(SIGUSR1, handler);
	struct sigaction a = { .sa_handler = handler };
	sigaction(SIGALRM, &a, 0);
	child("spins", spins);
	child("registered", registered);
	child("nowhere", nowhere);
	child("outside", outside);
	child("version", version);
	child("signature", signature);
	child("kernel", kernel);
	pthread_create(&t[0], 0, errors, 0);
	pthread_join(t[0], 0);
	return 0;
}
