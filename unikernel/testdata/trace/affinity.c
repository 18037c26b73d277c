/* A thread runs only on the CPUs of its set. The output does not depend on the number of CPUs. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static cpu_set_t all;
static int cpus;

/* Returns the nth CPU of the machine. */
static int nth(int n)
{
	for (int i = 0, found = -1;; i++)
		if (CPU_ISSET(i, &all) && ++found == n % cpus)
			return i;
}

static int bind_to(pid_t tid, int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(tid, sizeof set, &set);
}

/* Returns how often the thread was not on a CPU, by getcpu(2) and by the vDSO or rseq, while it computes, calls and sleeps. */
static int strays(int cpu)
{
	int n = 0;
	for (int i = 0; i < 100; i++) {
		unsigned where = 99, node = 99;
		syscall(SYS_getcpu, &where, &node, 0);
		n += where != (unsigned)cpu || node != 0;
		n += sched_getcpu() != cpu;
		for (volatile int k = 0; k < 1000; k++)
			;
		if (i % 25 == 0)
			nanosleep(&(struct timespec){0, 1000000}, 0);
		if (i % 50 == 0)
			sched_yield();
	}
	return n;
}

static atomic_int stop;

/* Computes until the end of the test. */
static void *compute(void *arg)
{
	while (!stop)
		;
	return arg;
}

static void *follow(void *arg)
{
	long sum = 0;
	for (int i = 0; i < 4; i++) {
		bind_to(0, nth(i + (long)arg));
		sum += strays(nth(i + (long)arg));
	}
	return (void *)sum;
}

static atomic_int tid, target = -1, answer = -1;

/* Reports whether it is on the CPU to which the first thread has bound it. */
static void *bound_by_other(void *arg)
{
	tid = syscall(SYS_gettid);
	while (target < 0)
		sched_yield();
	answer = strays(target);
	return arg;
}

int main(void)
{
	sched_getaffinity(0, sizeof all, &all);
	cpus = CPU_COUNT(&all);
	pthread_t busy[2], followers[4], other;
	for (int i = 0; i < 2; i++)
		pthread_create(&busy[i], 0, compute, 0);

	for (int i = 0; i < 4; i++) {
		printf("bind: %d\n", bind_to(0, nth(i)));
		cpu_set_t set;
		sched_getaffinity(0, sizeof set, &set);
		printf("%d CPUs, the right one %d, %d strays\n", CPU_COUNT(&set), CPU_ISSET(nth(i), &set), strays(nth(i)));
	}
	fflush(stdout);
	if (fork() == 0)
		_exit(strays(nth(3)) != 0);
	int status;
	wait(&status);
	printf("a child inherits the set: %d\n", status);

	for (long i = 0; i < 4; i++)
		pthread_create(&followers[i], 0, follow, (void *)i);
	for (int i = 0; i < 4; i++) {
		void *n;
		pthread_join(followers[i], &n);
		printf("a thread that changes CPUs: %ld strays\n", (long)n);
	}
	pthread_create(&other, 0, bound_by_other, 0);
	while (tid == 0)
		sched_yield();
	printf("bind another: %d\n", bind_to(tid, nth(2)));
	nanosleep(&(struct timespec){0, 100000000}, 0);
	target = nth(2);
	pthread_join(other, 0);
	printf("%d strays\n", answer);
	stop = 1;
	for (int i = 0; i < 2; i++)
		pthread_join(busy[i], 0);
	printf("unbind: %d\n", sched_setaffinity(0, sizeof all, &all));
	cpu_set_t none;
	CPU_ZERO(&none);
	CPU_SET(1000, &none);
	if (sched_setaffinity(0, sizeof none, &none))
		printf("no CPU: %s\n", strerror(errno));
}
