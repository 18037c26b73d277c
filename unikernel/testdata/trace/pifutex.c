/* Futexes with priority inheritance, condition variables over them, and futex_waitv. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *error(long r) { return r == -1 ? strerror(errno) : "ok"; }
#define SHOW(x) do { errno = 0; long r_ = (long)(x); printf("%s: %ld %s\n", #x, r_, error(r_)); } while (0)
static long futex(uint32_t *a, int op, uint32_t v, void *t, uint32_t *b, uint32_t w) { return syscall(SYS_futex, a, op, v, t, b, w); }
static int tid(void) { return syscall(SYS_gettid); }

static struct timespec in(clockid_t c, long ms)
{
	struct timespec t;
	clock_gettime(c, &t);
	t.tv_nsec += ms * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static uint32_t a, b, c;
static void *after(void *f) { usleep(30000); ((void (*)(void))f)(); return 0; }
static void later(pthread_t *t, void (*f)(void)) { pthread_create(t, 0, after, f); }

/* Words change under the program, and no step depends on time: under load, a sleep may end late. */
static uint32_t word(uint32_t *at) { return *(volatile uint32_t *)at; }
static void until(uint32_t *at, uint32_t bits) { while (!(word(at) & bits)) usleep(1000); }

static volatile int leave; /* the owner may unlock, once there is a waiter */
static long locked, unlocked;
static void owner(void)
{
	locked = futex(&a, FUTEX_LOCK_PI, 0, 0, 0, 0);
	while (!leave)
		usleep(1000);
	until(&a, FUTEX_WAITERS);
	usleep(60000);
	unlocked = futex(&a, FUTEX_UNLOCK_PI, 0, 0, 0, 0);
}
static void dies(void) { futex(&a, FUTEX_LOCK_PI, 0, 0, 0, 0); until(&a, FUTEX_WAITERS); usleep(60000); }

/* Starts a thread, and waits until it has locked a. */
static void own(pthread_t *t, void (*f)(void))
{
	leave = 0;
	pthread_create(t, 0, (void *(*)(void *))f, 0);
	until(&a, FUTEX_TID_MASK);
}
static void joined(pthread_t t)
{
	pthread_join(t, 0);
	printf("owner locks: %ld unlocks: %ld\n", locked, unlocked);
}
static void second(void)
{
	futex(&b, FUTEX_LOCK_PI, 0, 0, 0, 0);
	printf("second waits for the first: ");
	long r = futex(&a, FUTEX_LOCK_PI, 0, 0, 0, 0);
	printf("%ld\n", r);
	futex(&a, FUTEX_UNLOCK_PI, 0, 0, 0, 0);
	futex(&b, FUTEX_UNLOCK_PI, 0, 0, 0, 0);
}
static void nothing(int n) { (void)n; }

static void locks(void)
{
	printf("-- locks\n");
	pthread_t t;
	struct timespec w;
	SHOW(futex(&a, FUTEX_LOCK_PI, 0, 0, 0, 0));
	printf("mine %d\n", a == (uint32_t)tid());
	SHOW(futex(&a, FUTEX_LOCK_PI, 0, 0, 0, 0));
	SHOW(futex(&a, FUTEX_TRYLOCK_PI, 0, 0, 0, 0));
	SHOW(futex(&a, FUTEX_UNLOCK_PI, 0, 0, 0, 0));
	printf("free %d\n", a == 0);
	SHOW(futex(&a, FUTEX_UNLOCK_PI, 0, 0, 0, 0));
	a = 0x3ffffff0;
	SHOW(futex(&a, FUTEX_LOCK_PI, 0, 0, 0, 0));
	SHOW(futex(&a, FUTEX_TRYLOCK_PI, 0, 0, 0, 0));
	a = FUTEX_OWNER_DIED;
	SHOW(futex(&a, FUTEX_LOCK_PI, 0, 0, 0, 0));
	printf("died %d mine %d\n", !!(a & FUTEX_OWNER_DIED), (a & FUTEX_TID_MASK) == (uint32_t)tid());
	a = 0;
	SHOW(futex((uint32_t *)((char *)&a + 2), FUTEX_LOCK_PI, 0, 0, 0, 0));
	SHOW(futex((uint32_t *)8, FUTEX_LOCK_PI, 0, 0, 0, 0));
	SHOW(futex(&a, FUTEX_UNLOCK_PI | FUTEX_CLOCK_REALTIME, 0, 0, 0, 0));
	SHOW(futex(&a, FUTEX_WAKE | FUTEX_CLOCK_REALTIME, 1, 0, 0, 0));
	own(&t, owner);
	SHOW(futex(&a, FUTEX_TRYLOCK_PI, 0, 0, 0, 0));
	SHOW(futex(&a, FUTEX_UNLOCK_PI, 0, 0, 0, 0));
	w = in(CLOCK_REALTIME, 10);
	SHOW(futex(&a, FUTEX_LOCK_PI, 0, &w, 0, 0));
	w = in(CLOCK_MONOTONIC, 5);
	SHOW(futex(&a, 13 /* FUTEX_LOCK_PI2 */, 0, &w, 0, 0));
	SHOW(futex(&a, FUTEX_WAKE, 1, 0, 0, 0));
	leave = 1;
	SHOW(futex(&a, FUTEX_LOCK_PI, 0, 0, 0, 0));
	joined(t);
	printf("mine %d\n", (a & FUTEX_TID_MASK) == (uint32_t)tid());
	SHOW(futex(&a, FUTEX_UNLOCK_PI, 0, 0, 0, 0));
	printf("-- an owner dies\n");
	own(&t, dies);
	SHOW(futex(&a, FUTEX_LOCK_PI, 0, 0, 0, 0));
	pthread_join(t, 0);
	printf("died %d mine %d\n", !!(a & FUTEX_OWNER_DIED), (a & FUTEX_TID_MASK) == (uint32_t)tid());
	a = b = 0;
	printf("-- deadlock\n");
	futex(&a, FUTEX_LOCK_PI, 0, 0, 0, 0);
	pthread_create(&t, 0, (void *(*)(void *))second, 0);
	until(&a, FUTEX_WAITERS);
	usleep(20000);
	long r = futex(&b, FUTEX_LOCK_PI, 0, 0, 0, 0);
	printf("%ld %s; ", r, error(r));
	futex(&a, FUTEX_UNLOCK_PI, 0, 0, 0, 0);
	pthread_join(t, 0);
	printf("-- a signal\n");
	struct sigaction s = { .sa_handler = nothing };
	sigaction(SIGALRM, &s, 0);
	own(&t, owner);
	leave = 1;
	ualarm(10000, 0);
	SHOW(futex(&a, FUTEX_LOCK_PI, 0, 0, 0, 0)); /* restarts without SA_RESTART */
	joined(t);
	futex(&a, FUTEX_UNLOCK_PI, 0, 0, 0, 0);
}

/* Condition variables over a mutex: FUTEX_WAIT_REQUEUE_PI and FUTEX_CMP_REQUEUE_PI. */
static int got;
static void *waiter(void *x)
{
	(void)x;
	long r = futex(&c, FUTEX_WAIT_REQUEUE_PI, 0, 0, &b, 0);
	if (r == 0 && (b & FUTEX_TID_MASK) == (uint32_t)tid())
		__atomic_add_fetch(&got, 1, __ATOMIC_SEQ_CST);
	futex(&b, FUTEX_UNLOCK_PI, 0, 0, 0, 0);
	return 0;
}

static void requeue(void)
{
	printf("-- requeue\n");
	pthread_t t[3];
	struct timespec w = in(CLOCK_MONOTONIC, 10);
	a = b = c = 0;
	SHOW(futex(&c, FUTEX_WAIT_REQUEUE_PI, 1, 0, &b, 0));
	SHOW(futex(&c, FUTEX_WAIT_REQUEUE_PI, 0, 0, &c, 0));
	SHOW(futex(&c, FUTEX_WAIT_REQUEUE_PI, 0, &w, &b, 0));
	SHOW(futex(&c, FUTEX_CMP_REQUEUE_PI, 1, (void *)5, &b, 1));
	SHOW(futex(&c, FUTEX_CMP_REQUEUE_PI, 2, (void *)5, &b, 0));
	SHOW(futex(&c, FUTEX_CMP_REQUEUE_PI, 1, (void *)5, &c, 0));
	SHOW(futex(&c, FUTEX_CMP_REQUEUE_PI, 1, (void *)5, &b, 0));
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], 0, waiter, 0);
	usleep(50000);
	SHOW(futex(&c, FUTEX_WAKE, 1, 0, 0, 0));
	SHOW(futex(&c, FUTEX_REQUEUE, 1, (void *)1, &a, 0));
	SHOW(futex(&c, FUTEX_CMP_REQUEUE_PI, 1, (void *)5, &a, 0)); /* another lock */
	futex(&b, FUTEX_LOCK_PI, 0, 0, 0, 0);
	SHOW(futex(&c, FUTEX_CMP_REQUEUE_PI, 1, (void *)1, &b, 0));
	printf("none has it: %d, waiters %d\n", got, !!(b & FUTEX_WAITERS));
	SHOW(futex(&b, FUTEX_UNLOCK_PI, 0, 0, 0, 0));
	usleep(50000);
	SHOW(futex(&c, FUTEX_CMP_REQUEUE_PI, 1, (void *)5, &b, 0));
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], 0);
	printf("%d had the lock, free %d\n", got, b == 0);
}

/* The same by the C library: a robust mutex with priority inheritance in shared memory. */
static void library(void)
{
	printf("-- library\n");
	struct shared { pthread_mutex_t m; int count; } *s = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t at;
	pthread_mutexattr_init(&at);
	SHOW(pthread_mutexattr_setprotocol(&at, PTHREAD_PRIO_INHERIT));
	SHOW(pthread_mutexattr_setpshared(&at, PTHREAD_PROCESS_SHARED));
	SHOW(pthread_mutexattr_setrobust(&at, PTHREAD_MUTEX_ROBUST));
	SHOW(pthread_mutex_init(&s->m, &at));
	fflush(stdout);
	for (int i = 0; i < 4; i++)
		if (fork() == 0) {
			for (int k = 0; k < 500; k++) {
				pthread_mutex_lock(&s->m);
				s->count++;
				pthread_mutex_unlock(&s->m);
			}
			_exit(0);
		}
	while (wait(0) > 0)
		;
	printf("count %d\n", s->count);
	fflush(stdout);
	if (fork() == 0) {
		pthread_mutex_lock(&s->m);
		__atomic_store_n(&s->count, -1, __ATOMIC_SEQ_CST);
		usleep(50000);
		_exit(0);
	}
	while (__atomic_load_n(&s->count, __ATOMIC_SEQ_CST) != -1) /* until the child has the mutex */
		usleep(1000);
	int r = pthread_mutex_lock(&s->m);
	printf("owner died %d\n", r == EOWNERDEAD);
	SHOW(pthread_mutex_consistent(&s->m));
	SHOW(pthread_mutex_unlock(&s->m));
	SHOW(pthread_mutex_lock(&s->m));
	SHOW(pthread_mutex_unlock(&s->m));
	wait(0);
}

struct waitv { uint64_t val, uaddr; uint32_t flags, reserved; };
static void wake_b(void) { futex(&b, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0); }

static void several(void)
{
	printf("-- waitv\n");
	pthread_t t;
	a = b = c = 0;
	struct waitv v[3] = { { 0, (uint64_t)&a, 2 | 128, 0 }, { 0, (uint64_t)&b, 2 | 128, 0 }, { 0, (uint64_t)&c, 2, 0 } };
	struct timespec w = in(CLOCK_MONOTONIC, 10), bad = { 0, -1 };
#define WAITV(...) syscall(449, __VA_ARGS__)
	SHOW(WAITV(v, 3, 0, &w, CLOCK_MONOTONIC));
	w = in(CLOCK_REALTIME, 10);
	SHOW(WAITV(v, 3, 0, &w, CLOCK_REALTIME));
	SHOW(WAITV(v, 3, 0, &w, CLOCK_BOOTTIME));
	SHOW(WAITV(v, 3, 0, &bad, CLOCK_MONOTONIC));
	SHOW(WAITV(v, 0, 0, 0, 0));
	SHOW(WAITV(v, 129, 0, 0, 0));
	SHOW(WAITV(v, 3, 1, 0, 0));
	SHOW(WAITV(0, 3, 0, 0, 0));
	SHOW(WAITV((void *)8, 3, 0, 0, 0));
	v[1].val = 7;
	SHOW(WAITV(v, 3, 0, 0, 0));
	v[1].val = 0, v[1].flags = 0;
	SHOW(WAITV(v, 3, 0, 0, 0));
	v[1].flags = 2 | 128, v[1].reserved = 1;
	SHOW(WAITV(v, 3, 0, 0, 0));
	v[1].reserved = 0, v[1].uaddr++;
	SHOW(WAITV(v, 3, 0, 0, 0));
	v[1].uaddr = 8;
	SHOW(WAITV(v, 3, 0, 0, 0));
	v[1].uaddr = (uint64_t)&b;
	later(&t, wake_b);
	SHOW(WAITV(v, 3, 0, 0, 0));
	pthread_join(t, 0);
	SHOW(futex(&a, FUTEX_WAKE_PRIVATE, 9, 0, 0, 0));
	struct sigaction s = { .sa_handler = nothing };
	sigaction(SIGALRM, &s, 0);
	ualarm(10000, 0);
	SHOW(WAITV(v, 3, 0, 0, 0));
}

int main(void)
{
	setvbuf(stdout, 0, _IOLBF, 0);
	locks();
	requeue();
	library();
	several();
	return 0;
}
