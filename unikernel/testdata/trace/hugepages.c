/* Memory with MADV_HUGEPAGE: operations on parts of huge pages change neither other content nor results of calls. With an
   argument, the program shows whether memory is in huge pages. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096ul
#define HUGE (2ul << 20)
#define PAGES (HUGE / PAGE)
#define COLLAPSE 25

static const char *text(long result) { return result < 0 ? strerror(errno) : "done"; }

/* Maps count huge pages at an address that is aligned to them. */
static char *map(int count, int advice)
{
	char *p = mmap(0, (count + 1) * HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *start = (char *)(((uintptr_t)p + HUGE - 1) & ~(HUGE - 1));
	if (start > p)
		munmap(p, start - p);
	munmap(start + count * HUGE, p + HUGE - start);
	if (madvise(start, count * HUGE, advice))
		printf("madvise: %s\n", strerror(errno));
	return start;
}

static uint64_t *word(char *p, unsigned long page) { return (uint64_t *)(p + page * PAGE + page % 500 * 8); }

static void fill(char *p, unsigned long first, unsigned long count, uint64_t seed)
{
	for (unsigned long i = first; i < first + count; i++)
		*word(p, i) = seed + i;
}

/* Shows how many pages have the content that fill stored, and how many are zero. */
static void show(const char *what, char *p, unsigned long first, unsigned long count, uint64_t seed)
{
	unsigned long filled = 0, zero = 0;
	for (unsigned long i = first; i < first + count; i++) {
		filled += *word(p, i) == seed + i;
		zero += *word(p, i) == 0;
	}
	printf("%s: of %lu pages %lu are filled, %lu are zero\n", what, count, filled, zero);
}

/* Runs f in a child, and shows how the child ends. */
static void child(const char *what, void (*f)(char *), char *p)
{
	int status;
	fflush(stdout);
	pid_t pid = fork();
	if (!pid) {
		f(p);
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	printf("%s: the child ends with status %x\n", what, status);
}

static void store(char *p) { *p = 1; }

static void child_fills(char *p)
{
	show("in the child", p, 0, 2 * PAGES, 5);
	fill(p, 3, 2, 9);
	fill(p, PAGES, 1, 9);
	show("after stores in the child", p, 0, 2 * PAGES, 5);
	madvise(p + HUGE, HUGE / 2, MADV_DONTNEED);
	munmap(p, HUGE);
	show("the rest in the child", p, PAGES, PAGES, 5);
}

static void parts(void)
{
	char *p = map(3, MADV_HUGEPAGE);
	fill(p, 0, 3 * PAGES, 5);
	printf("munmap: %s\n", text(munmap(p + 2 * HUGE + 7 * PAGE, PAGE)));
	show("after munmap", p, 2 * PAGES, 7, 5);
	show("after munmap", p, 2 * PAGES + 8, PAGES - 8, 5);
	child("store to a hole", store, p + 2 * HUGE + 7 * PAGE);
	printf("mprotect: %s\n", text(mprotect(p + HUGE + 9 * PAGE, 3 * PAGE, PROT_READ)));
	show("after mprotect", p, PAGES, PAGES, 5);
	child("store to a read-only page", store, p + HUGE + 9 * PAGE);
	child("store to a page next to it", store, p + HUGE + 12 * PAGE);
	printf("mprotect: %s\n", text(mprotect(p + HUGE, HUGE, PROT_NONE)));
	child("store to memory without rights", store, p + 2 * HUGE - 1);
	printf("mprotect: %s\n", text(mprotect(p + HUGE, HUGE, PROT_READ | PROT_WRITE)));
	show("after all", p, PAGES, PAGES, 5);
	printf("MADV_DONTNEED: %s\n", text(madvise(p + 100 * PAGE, 50 * PAGE, MADV_DONTNEED)));
	show("after MADV_DONTNEED", p, 0, PAGES, 5);
	printf("MADV_DONTNEED of all: %s\n", text(madvise(p, HUGE, MADV_DONTNEED)));
	show("after MADV_DONTNEED of all", p, 0, PAGES, 5);
	munmap(p, 3 * HUGE);
}

static void forks(void)
{
	char *p = map(2, MADV_HUGEPAGE);
	fill(p, 0, 2 * PAGES, 5);
	child("fork", child_fills, p);
	show("in the parent", p, 0, 2 * PAGES, 5);
	fill(p, 0, 2 * PAGES, 7);
	show("stores in the parent", p, 0, 2 * PAGES, 7);
	munmap(p, 2 * HUGE);
}

/* While a child has its own copy of one page, one instruction copies from another page to it. */
static void copies(void)
{
	char *p = map(1, MADV_HUGEPAGE), *from = p, *to = p + 100 * PAGE, c;
	long n = 8;
	int fds[2];
	fill(p, 0, PAGES, 5);
	pipe(fds);
	pid_t pid = fork();
	if (!pid) {
		*to = 2;
		write(fds[1], "", 1);
		pause();
	}
	read(fds[0], &c, 1);
	asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
	printf("one instruction: %d\n", memcmp(p, p + 100 * PAGE, 8));
	kill(pid, SIGKILL);
	waitpid(pid, 0, 0);
	munmap(p, HUGE);
}

static void moves(void)
{
	char *p = map(4, MADV_HUGEPAGE);
	fill(p, 0, 2 * PAGES, 5);
	char *q = mremap(p, HUGE, HUGE, MREMAP_MAYMOVE | MREMAP_FIXED, p + 3 * HUGE);
	printf("mremap of all: %d\n", q == p + 3 * HUGE);
	printf("first word %lu, last word %lu\n", *word(q, 0), *word(q, PAGES - 1));
	q = mremap(p + HUGE + 5 * PAGE, 20 * PAGE, 20 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p + 2 * HUGE + 8 * PAGE);
	printf("mremap of a part: %d, first word %lu\n", q == p + 2 * HUGE + 8 * PAGE, *(uint64_t *)(q + (PAGES + 5) % 500 * 8));
	show("before it", p, PAGES, 5, 5);
	show("after it", p, PAGES + 25, PAGES - 25, 5);
	munmap(p, 4 * HUGE);
}

static void calls(void)
{
	char *p = map(2, MADV_HUGEPAGE);
	static unsigned char in[2 * PAGES];
	int fds[2];
	fill(p, 0, PAGES, 5);
	printf("mincore: %s\n", text(mincore(p, HUGE, in)));
	printf("%d %d\n", in[0] & 1, in[PAGES - 1] & 1);
	printf("mlock of a part: %s\n", text(mlock(p + 3 * PAGE, 2 * PAGE)));
	printf("munlock: %s\n", text(munlock(p, HUGE)));
	pipe(fds);
	printf("write: %ld\n", (long)write(fds[1], p + HUGE - 3000, 6000));
	printf("read: %ld\n", (long)read(fds[0], p + HUGE + PAGE - 2500, 5000));
	printf("%d\n", memcmp(p + HUGE - 3000, p + HUGE + PAGE - 2500, 3000));
	struct iovec to = {p + HUGE + 20 * PAGE, 3 * PAGE}, from = {p + 17 * PAGE + 5, 3 * PAGE};
	printf("process_vm_readv: %ld\n", (long)process_vm_readv(getpid(), &to, 1, &from, 1, 0));
	printf("%d\n", memcmp(to.iov_base, from.iov_base, 3 * PAGE));
	munmap(p, 2 * HUGE);
}

static void errors(void)
{
	char *p = map(2, MADV_NOHUGEPAGE);
	fill(p, 0, 2 * PAGES, 5);
	printf("MADV_COLLAPSE after MADV_NOHUGEPAGE: %s\n", text(madvise(p, HUGE, COLLAPSE)));
	printf("MADV_COLLAPSE of a hole: %s\n", text(madvise(p + 2 * HUGE, HUGE, COLLAPSE)));
	printf("unaligned: %s\n", text(madvise(p + 1, HUGE, COLLAPSE)));
	madvise(p, 2 * HUGE, MADV_HUGEPAGE);
	printf("MADV_COLLAPSE without a whole huge page: %s\n", text(madvise(p + PAGE, PAGE, COLLAPSE)));
	munmap(p, 2 * HUGE);
	p = mmap(0, HUGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	printf("MAP_HUGETLB: %s\n", p == MAP_FAILED ? strerror(errno) : "done");
	printf("PR_GET_THP_DISABLE: %d\n", prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
	printf("PR_SET_THP_DISABLE: %s\n", text(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0)));
	printf("PR_GET_THP_DISABLE: %d\n", prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
	p = map(1, MADV_HUGEPAGE);
	fill(p, 0, PAGES, 5);
	show("without huge pages", p, 0, PAGES, 5);
	prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0);
	munmap(p, HUGE);
}

static char *together;
static volatile int finished;

/* Increments a counter in each of 60 pages, many times. */
static void *counts(void *first)
{
	for (int i = 0; i < 3000; i++)
		for (int n = 0; n < 60; n++)
			++*(volatile uint64_t *)(together + ((uintptr_t)first + n) * PAGE);
	return 0;
}

/* Drops, protects and shares other pages of the same huge page. */
static void *disturbs(void *first)
{
	char *p = together + (uintptr_t)first * PAGE;
	for (int i = 0; !finished; i++) {
		*p = 1;
		madvise(p, PAGE, MADV_DONTNEED);
		mprotect(p + PAGE, PAGE, i & 1 ? PROT_READ : PROT_READ | PROT_WRITE);
		madvise(together, HUGE, COLLAPSE);
		if (i % 16 == 0) {
			pid_t pid = fork();
			if (!pid)
				_exit(*p);
			waitpid(pid, 0, 0);
		}
	}
	return 0;
}

/* Threads store to one huge page while another thread makes it small pages again and again. No store is lost. */
static void threads(void)
{
	pthread_t t[4], d;
	together = map(1, MADV_HUGEPAGE);
	for (long i = 0; i < 4; i++)
		pthread_create(&t[i], 0, counts, (void *)(i * 64));
	pthread_create(&d, 0, disturbs, (void *)300);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], 0);
	finished = 1;
	pthread_join(d, 0);
	uint64_t sum = 0;
	for (int i = 0; i < 4; i++)
		for (int n = 0; n < 60; n++)
			sum += *(uint64_t *)(together + (i * 64 + n) * PAGE);
	printf("threads: %lu stores\n", sum);
	munmap(together, HUGE);
}

/* Returns the sum of the numbers after a name in a file. */
static long number(const char *file, const char *name)
{
	char line[300];
	long sum = 0;
	FILE *f = fopen(file, "r");
	while (fgets(line, sizeof line, f))
		if (!strncmp(line, name, strlen(name)))
			sum += atol(line + strlen(name));
	fclose(f);
	return sum;
}

static void huge(const char *what)
{
	printf("%s: %ld kB here, %ld kB in all\n", what, number("/proc/self/smaps", "AnonHugePages:"), number("/proc/meminfo", "AnonHugePages:"));
}

/* Shows what is in huge pages, on a machine with enough free memory. */
static void uses_huge(char *none)
{
	(void)none;
	char *p = map(4, MADV_HUGEPAGE);
	*(volatile char *)(p + 5 * PAGE);
	huge("after a load");
	fill(p, 0, 4 * PAGES, 5);
	huge("after stores");
	show("content", p, 0, 4 * PAGES, 5);
	munmap(p + 9 * PAGE, PAGE);
	huge("after munmap of a page");
	mprotect(p + HUGE, PAGE, PROT_READ);
	printf("after mprotect of a page: %ld kB here\n", number("/proc/self/smaps", "AnonHugePages:"));
	mprotect(p + HUGE, PAGE, PROT_READ | PROT_WRITE);
	madvise(p + 2 * HUGE, PAGE, MADV_DONTNEED);
	huge("after MADV_DONTNEED of a page");
	printf("MADV_COLLAPSE: %s\n", text(madvise(p + 2 * HUGE, HUGE, COLLAPSE)));
	huge("after MADV_COLLAPSE");
	show("content", p, 2 * PAGES, PAGES, 5);
	char *q = map(1, MADV_NORMAL);
	fill(q, 0, PAGES, 5);
	huge("without advice");
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "w");
	setvbuf(f, 0, _IONBF, 0);
	printf("an unknown policy: %s\n", text(fputs("sometimes", f)));
	fputs("always\n", f);
	fclose(f);
	q = map(1, MADV_NORMAL);
	fill(q, 0, PAGES, 5);
	huge("with the policy always");
	f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "w");
	fputs("madvise\n", f);
	fclose(f);
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	q = map(1, MADV_HUGEPAGE);
	fill(q, 0, PAGES, 5);
	huge("with PR_SET_THP_DISABLE");
}

int main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1) {
		child("huge pages", uses_huge, 0);
		long before = number("/proc/vmstat", "nr_user_pages ");
		child("huge pages", uses_huge, 0);
		long more = number("/proc/vmstat", "nr_user_pages ") - before;
		huge("at the end");
		printf("pages are left: %d\n", more > 16);
		return 0;
	}
	parts();
	forks();
	copies();
	moves();
	calls();
	errors();
	threads();
}
