/* A thread runs only on the CPUs of its set. The output does not depend on the number of CPUs. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
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

/* Reports whether Cpus_allowed_list of /proc/self/status is one CPU. */
static int listed(int cpu)
{
	char line[256];
	int n = -1;
	FILE *f = fopen("/proc/self/status", "r");
	while (fgets(line, sizeof line, f) && sscanf(line, "Cpus_allowed_list: %d\n", &n) != 1)
		;
	fclose(f);
	return n == cpu;
}

static atomic_int round_number, seen_at;

/* Stores the number of its CPU, round by round. */
static void *watched(void *arg)
{
	tid = syscall(SYS_gettid);
	while (!answer) {
		seen_at = sched_getcpu();
		round_number++;
	}
	return arg;
}

/* Moves a thread that runs in user mode to and fro. Each call returns only when the thread has left the wrong CPU. */
static void move_other(void)
{
	pthread_t other;
	int wrong = 0;
	tid = 0;
	answer = 0;
	pthread_create(&other, 0, watched, 0);
	while (tid == 0)
		sched_yield();
	for (int i = 0; i < 20; i++) {
		bind_to(tid, nth(i));
		for (int from = round_number; round_number - from < 2;) /* the round of the call may have read the old number */
			sched_yield();
		wrong += seen_at != nth(i);
	}
	answer = 1;
	pthread_join(other, 0);
	printf("a thread is moved while it runs: %d times wrong\n", wrong);
}

static atomic_int turn;

/* Passes a turn on to the other thread on the same CPU, by sched_yield(2) only. */
static void *alternate(void *arg)
{
	long mine = (long)arg;
	bind_to(0, nth(1));
	for (int i = 0; i < 30; i++) {
		while (turn != mine)
			sched_yield();
		turn = 1 - mine;
	}
	return arg;
}

/* Two threads that alternate, and computing threads on the same CPU, which are killed. */
static void share_a_cpu(void)
{
	pthread_t pair[2];
	for (long i = 0; i < 2; i++)
		pthread_create(&pair[i], 0, alternate, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(pair[i], 0);
	printf("two threads alternate\n");
	pid_t busy[4];
	for (int i = 0; i < 4; i++)
		if ((busy[i] = fork()) == 0) {
			bind_to(0, nth(1));
			for (;;)
				;
		}
	nanosleep(&(struct timespec){0, 20000000}, 0);
	for (int i = 3; i >= 0; i--) {
		int status;
		kill(busy[i], i % 2 ? SIGKILL : SIGSTOP);
		waitpid(busy[i], &status, WUNTRACED);
		printf("a process that waits for its CPU: status %#x\n", status);
	}
	for (int i = 0; i < 4; i += 2)
		kill(busy[i], SIGKILL), waitpid(busy[i], 0, 0);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		printf("after execve: %d strays, listed %d\n", strays(atoi(argv[1])), listed(atoi(argv[1])));
		return 0;
	}
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
	fflush(stdout);
	if (fork() == 0) {
		char number[12];
		sprintf(number, "%d", nth(3));
		execv("/proc/self/exe", (char *[]){argv[0], number, 0});
		_exit(1);
	}
	wait(&status);
	move_other();

	for (long i = 0; i < 4; i++)
		pthread_create(&followers[i], 0, follow, (void *)i);
	for (int i = 0; i < 4; i++) {
		void *n;
		pthread_join(followers[i], &n);
		printf("a thread that changes CPUs: %ld strays\n", (long)n);
	}
	tid = 0;
	answer = -1;
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
	fflush(stdout);
	share_a_cpu();
	printf("unbind: %d\n", sched_setaffinity(0, sizeof all, &all));
	cpu_set_t none;
	CPU_ZERO(&none);
	CPU_SET(1000, &none);
	if (sched_setaffinity(0, sizeof none, &none))
		printf("no CPU: %s\n", strerror(errno));
}
