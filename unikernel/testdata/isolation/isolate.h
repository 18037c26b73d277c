/* Common parts of the programs that try to harm the machine: see main.c. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef uint64_t u64;

enum { USER = 1000, MOST_CALLS = 470 };

/* A generator of random numbers (xorshift). Each thread has its own. */
struct random { u64 state; };
static inline u64 next(struct random *r)
{
	u64 x = r->state;
	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return r->state = x;
}
static inline u64 below(struct random *r, u64 n) { return next(r) % n; }
static inline void sow(struct random *r, u64 seed) { r->state = seed * 0x9e3779b97f4a7c15 + 0x1234567; next(r); }

/* The call that each thread makes, in shared memory. */
enum { PROGRESS = 64 };
extern struct progress { volatile long number; volatile u64 a[6]; } *progress;

double now(void);
void limit(int resource, u64 to);
/* Runs f in a process of an unprivileged user, kills it after so many milliseconds, and every process that it has left. */
int confined(const char *name, void (*f)(u64), u64 argument, int milliseconds);

void fuzz(u64 seed);          /* fuzz.c */
void pointers(u64 number);    /* hostile.c */
void frames(u64 seed);
void instructions(u64 which);
void code(u64);
void unmapped(u64);
void crowd(u64 threads);
void bomb(u64);
void memory(u64);
enum { INSTRUCTIONS = 60 };
