// mseal(2): its arguments, and the calls that fail for sealed memory.
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#define PAGE 4096L

static char *base;

static void show(const char *what, long r) {
	printf("%s: %s\n", what, r == -1 ? strerrorname_np(errno) : "done");
}

static long seal(void *p, long size, long flags) { return syscall(462, p, size, flags); }

static char *map(int pages, int prot, int kind) {
	return mmap(0, pages * PAGE, prot, kind | MAP_ANONYMOUS, -1, 0);
}

static void arguments(void) {
	char *p = map(4, PROT_READ, MAP_PRIVATE);
	munmap(p + PAGE, PAGE);
	show("flags", seal(p, PAGE, 1));
	show("address", seal(p + 1, PAGE, 0));
	show("overflow", seal(p, -PAGE, 0));
	show("too long", seal(p, -1, 0));
	show("nothing", seal(p, 0, 0));
	show("nothing in a hole", seal(p + PAGE, 0, 0));
	show("nothing above the memory of programs", seal((void *)(1L << 60), 0, 0));
	show("hole", seal(p, 3 * PAGE, 0));
	show("not sealed after an error", munmap(p, PAGE));
	show("part of a page", seal(p + 2 * PAGE, 1, 0));
	show("again", seal(p + 2 * PAGE, PAGE, 0));
	show("sealed", munmap(p + 2 * PAGE, PAGE));
	show("its neighbour", munmap(p + 3 * PAGE, PAGE));
}

// changes tries the calls on three pages, of which the middle one is sealed.
static void changes(int prot, int kind) {
	char *p = map(3, PROT_READ | PROT_WRITE, kind), *q = map(1, PROT_READ, MAP_PRIVATE);
	memset(p, 7, 3 * PAGE);
	mprotect(p, 3 * PAGE, prot);
	show("mseal", seal(p + PAGE, PAGE, 0));
	show("munmap", munmap(p, 3 * PAGE));
	show("munmap of a page", munmap(p + PAGE, PAGE));
	show("mprotect", mprotect(p, 3 * PAGE, PROT_READ | PROT_WRITE));
	show("mprotect without a change", mprotect(p + PAGE, PAGE, prot));
	show("mmap", mmap(p, 3 * PAGE, PROT_READ, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0);
	show("mremap to it", mremap(q, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p + PAGE) == MAP_FAILED ? -1 : 0);
	show("mremap of it", mremap(p + PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED ? -1 : 0);
	show("mremap without a change", mremap(p + PAGE, PAGE, PAGE, 0) == MAP_FAILED ? -1 : 0);
	show("mremap that removes it", mremap(p, 2 * PAGE, PAGE, 0) == MAP_FAILED ? -1 : 0);
	show("mremap that moves and removes it", mremap(p, 3 * PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, q) == MAP_FAILED ? -1 : 0);
	show("mlock", mlock(p + PAGE, PAGE));
	show("munlock", munlock(p + PAGE, PAGE));
	static const int advice[] = {MADV_NORMAL, MADV_DONTFORK, MADV_DOFORK, MADV_WIPEONFORK, MADV_DONTDUMP, MADV_FREE, MADV_DONTNEED, MADV_DONTNEED_LOCKED, MADV_REMOVE};
	for (unsigned i = 0; i < sizeof advice / sizeof *advice; i++) {
		printf("advice %d, ", advice[i]);
		show("madvise", madvise(p + PAGE, PAGE, advice[i]));
	}
	printf("content %d %d %d\n", p[0], p[PAGE], p[2 * PAGE]);
	base = p;
}

static void child(void) {
	int status;
	fflush(stdout);
	pid_t c = fork();
	if (c == 0) {
		show("munmap in a child", munmap(base + PAGE, PAGE));
		fflush(stdout);
		_exit(0);
	}
	waitpid(c, &status, 0);
	printf("status %d\n", status);
}

static void flags(void) {
	char line[256], want[32];
	FILE *f = fopen("/proc/self/smaps", "r");
	int here = 0;
	sprintf(want, "%lx-", (long)base + PAGE);
	while (fgets(line, sizeof line, f)) {
		if (!strncmp(line, want, strlen(want)))
			here = 1;
		if (here && !strncmp(line, "VmFlags:", 8)) {
			printf("flag sl %d\n", strstr(line, " sl") != 0);
			break;
		}
	}
	fclose(f);
}

// file gives advice for a sealed private mapping of a file.
static void file(void) {
	int fd = memfd_create("file", 0);
	ftruncate(fd, PAGE);
	char *p = mmap(0, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	show("mseal of a file", seal(p, PAGE, 0));
	show("MADV_DONTNEED", madvise(p, PAGE, MADV_DONTNEED));
	show("MADV_DONTFORK", madvise(p, PAGE, MADV_DONTFORK));
	show("MADV_REMOVE", madvise(p, PAGE, MADV_REMOVE));
	show("MADV_FREE", madvise(p, PAGE, MADV_FREE));
	show("munmap", munmap(p, PAGE));
	close(fd);
}

static void heap(void) {
	char *end = sbrk(0);
	end = sbrk((char *)(((long)end + PAGE - 1) & -PAGE) - end) == (void *)-1 ? 0 : sbrk(4 * PAGE);
	show("mseal of the heap", seal(end, 4 * PAGE, 0));
	sbrk(-2 * PAGE);
	printf("heap after sbrk %ld\n", (char *)sbrk(0) - end);

}

int main(void) {
	arguments();
	changes(PROT_READ, MAP_PRIVATE);
	child();
	flags();
	changes(PROT_READ | PROT_WRITE, MAP_PRIVATE);
	changes(PROT_READ, MAP_SHARED);
	file();
	heap();
	return 0;
}
