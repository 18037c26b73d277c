// Calls of Linux 6.3 and later that the selftests of Linux use: the lines of /proc/PID/smaps_rollup, PROCMAP_QUERY
// (include/uapi/linux/fs.h), F_DUPFD_QUERY and F_CREATED_QUERY.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096UL

static const char *said(long r) { return r < 0 ? strerrorname_np(errno) : "done"; }

// sums prints the names of the lines of smaps_rollup, and returns the value of one of them.
static long sums(const char *name, int print) {
	char line[256];
	long value = -1;
	FILE *f = fopen("/proc/self/smaps_rollup", "r");
	while (fgets(line, sizeof line, f)) {
		char *colon = strchr(line, ':');
		if (strstr(line, "[rollup]")) {
			if (print)
				printf("%s at column %d\n", strchr(line, ' ') + 1, (int)(strstr(line, "[rollup]") - line));
			continue;
		}
		if (print)
			printf("%.*s %zu\n", (int)(colon - line), line, strlen(line));
		if (!strncmp(line, name, colon - line))
			value = atol(colon + 1);
	}
	fclose(f);
	return value;
}

static void rollup(void) {
	sums("", 1);
	long anonymous = sums("Pss_Anon", 0), memory = sums("Pss_Shmem", 0), file = sums("Pss_File", 0), all = sums("Pss", 0);
	printf("sum %d\n", labs(all - anonymous - memory - file) < 8);
	memset(mmap(0, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, 64 * PAGE);
	long more = sums("Pss_Anon", 0) - anonymous;
	printf("private memory %d\n", more >= 256 && more < 512);
	memset(mmap(0, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), 1, 64 * PAGE);
	int fd = memfd_create("x", 0);
	ftruncate(fd, 64 * PAGE);
	memset(mmap(0, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), 1, 64 * PAGE);
	printf("shared memory %d\n", sums("Pss_Shmem", 0) > memory);
	close(fd);

	char path[64], b[64];
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	siginfo_t info;
	waitid(P_PID, child, &info, WEXITED | WNOWAIT);
	sprintf(path, "/proc/%d/smaps_rollup", child);
	fd = open(path, O_RDONLY);
	printf("of a zombie %s\n", said(fd < 0 ? fd : read(fd, b, sizeof b)));
	close(fd);
	waitpid(child, 0, 0);
}

struct query {
	uint64_t size, queryFlags, queryAddr;
	uint64_t start, end, flags, pageSize, offset, inode;
	uint32_t major, minor, nameSize, idSize;
	uint64_t name, id;
};

#define QUERY _IOWR('f', 17, struct query)
enum { readable = 1, writable = 2, executable = 4, shared = 8, next = 16, fileBacked = 32 };

static int maps;
static char name[PAGE];
static unsigned char id[64];

// query asks for a region with its name and its build ID.
static struct query query(void *at, uint64_t flags, long *result) {
	struct query q = {
	    .size = sizeof q, .queryFlags = flags, .queryAddr = (uint64_t)at, .nameSize = sizeof name, .idSize = sizeof id, .name = (uint64_t)name, .id = (uint64_t)id};
	strcpy(name, "-");
	*result = ioctl(maps, QUERY, &q);
	return q;
}

// ask prints the answer to a query, relative to base.
static void ask(const char *what, char *at, uint64_t flags, char *base) {
	long r;
	struct query q = query(at, flags, &r);
	printf("%s: %s", what, said(r));
	if (r == 0)
		printf(", pages %ld to %ld, flags %lx, page %lu, offset %lx, %s %u, ID %u, file %d", ((long)q.start - (long)base) / 4096,
		    ((long)q.end - (long)base) / 4096, q.flags, q.pageSize, q.offset, name, q.nameSize, q.idSize, q.inode != 0);
	printf("\n");
}

static void regions(void) {
	char *b = mmap(0, 16 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	munmap(b, 16 * PAGE);
	int fd = memfd_create("a b", 0);
	ftruncate(fd, 8 * PAGE);
	const int fixed = MAP_FIXED_NOREPLACE, memory = MAP_ANONYMOUS | MAP_PRIVATE | fixed;
	mmap(b + 2 * PAGE, PAGE, PROT_READ, memory, -1, 0);
	mmap(b + 3 * PAGE, PAGE, PROT_READ | PROT_WRITE, memory, -1, 0);
	mmap(b + 5 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | fixed, fd, 3 * PAGE);
	mmap(b + 8 * PAGE, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | fixed, fd, PAGE);
	mmap(b + 10 * PAGE, PAGE, PROT_NONE, memory, -1, 0);
	ask("none", b, 0, b);
	ask("the next", b, next, b);
	ask("readable", b + 2 * PAGE + 1, readable, b);
	ask("not writable", b + 2 * PAGE, writable, b);
	ask("the next writable", b + 2 * PAGE, writable | next, b);
	ask("the next of a file", b, fileBacked | next, b);
	ask("not of a file", b + 3 * PAGE, fileBacked, b);
	ask("shared", b + 6 * PAGE, shared | readable, b);
	ask("the next executable", b, executable | next, b);
	ask("executable and writable", b + 5 * PAGE, executable | writable, b);
	ask("no access", b + 10 * PAGE, 0, b);
	ask("the end of a region", b + 4 * PAGE, 0, b);
	ask("zero", 0, 0, b);
	ask("vsyscall", (char *)0xffffffffff600000UL, 0, b);
	ask("vsyscall or later", (char *)0xffffffffff600000UL, next, b);
	munmap(b + 2 * PAGE, 14 * PAGE);
	close(fd);
}

// own asks about the program, its stack and its heap.
static void own(void) {
	long r;
	char path[PAGE] = "", *heap = malloc(16);
	struct stat st;
	struct query q = query(own, executable | fileBacked, &r);
	path[readlink("/proc/self/exe", path, sizeof path - 1)] = 0;
	stat(path, &st);
	printf("program %ld %d %d %lx %lx\n", r, !strcmp(name, path), q.nameSize == strlen(path) + 1, q.flags, q.offset);
	printf("its file %d %d %d %d\n", q.inode == st.st_ino, q.major == major(st.st_dev), q.minor == minor(st.st_dev), q.idSize);
	for (unsigned i = 0; i < q.idSize; i++)
		printf("%02x", id[i]);
	q = query(heap, 0, &r);
	printf("\nheap %ld %s %u\n", r, name, q.nameSize);
	q = query(&r, 0, &r);
	printf("stack %ld %s %u %u\n", r, name, q.nameSize, q.idSize);
	free(heap);
}

static void attempt(const char *what, struct query q, int fd) { printf("%s: %s\n", what, said(ioctl(fd, QUERY, &q))); }

static void errors(void) {
	const struct query ok = {.size = sizeof ok, .queryAddr = (uint64_t)errors};
	struct query q = ok;
	attempt("without buffers", q, maps);
	q.size = 24;
	attempt("small", q, maps);
	q.size = 23;
	attempt("too small", q, maps);
	q.size = 4097;
	attempt("too large", q, maps);
	struct {
		struct query q;
		uint64_t rest[2];
	} large = {ok};
	large.q.size = sizeof large;
	printf("larger: %s\n", said(ioctl(maps, QUERY, &large)));
	large.rest[1] = 1;
	printf("larger, not zero: %s\n", said(ioctl(maps, QUERY, &large)));
	q = ok, q.queryFlags = 64;
	attempt("flag", q, maps);
	q = ok, q.nameSize = 5;
	attempt("size without name", q, maps);
	q = ok, q.name = (uint64_t)name;
	attempt("name without size", q, maps);
	q = ok, q.idSize = 5;
	attempt("size without ID", q, maps);
	q = ok, q.id = (uint64_t)id;
	attempt("ID without size", q, maps);
	q = ok, q.idSize = 19, q.id = (uint64_t)id;
	attempt("short ID", q, maps);
	q = ok, q.nameSize = 3, q.name = (uint64_t)name;
	attempt("short name", q, maps);
	q.queryAddr = (uint64_t)&q;
	attempt("short name of the stack", q, maps);
	q = ok, q.nameSize = sizeof name, q.name = 8;
	attempt("bad name", q, maps);
	q = ok, q.idSize = 20, q.id = 8;
	attempt("bad ID", q, maps);
	printf("bad address: %s\n", said(ioctl(maps, QUERY, 8)));
	attempt("closed", ok, 99);
	int fd = open("/proc/self/smaps", O_RDONLY);
	attempt("smaps", ok, fd);
	close(fd);
	fd = open("/proc/self/maps", O_PATH);
	attempt("path", ok, fd);
	close(fd);
	fd = open("/proc/thread-self/maps", O_RDONLY);
	attempt("thread", ok, fd);
	close(fd);
	pid_t child = fork();
	if (child == 0)
		pause();
	char path[64];
	sprintf(path, "/proc/%d/maps", child);
	fd = open(path, O_RDONLY);
	attempt("child", ok, fd);
	kill(child, 9);
	waitpid(child, 0, 0);
	attempt("ended child", ok, fd);
	close(fd);
}

// created prints whether the open of a descriptor has created its file.
static void created(const char *what, int fd) { printf("%s: %d\n", what, fcntl(fd, 1028, 0)); }

static void files(void) {
	char dir[] = "/tmp/queries-XXXXXX", path[64], link[64];
	mkdtemp(dir);
	sprintf(path, "%s/file", dir);
	sprintf(link, "%s/link", dir);
	int first = open(path, O_CREAT | O_RDWR, 0600), second = open(path, O_CREAT | O_RDWR, 0600), copy = dup(first), pathOnly = open(path, O_PATH);
	created("new", first);
	created("existing", second);
	created("copy", copy);
	created("path", pathOnly);
	created("closed", 99);
	unlink(path);
	created("exclusive", open(path, O_CREAT | O_EXCL | O_WRONLY, 0600));
	unlink(path);
	symlink("file", link);
	created("through a link", open(link, O_CREAT | O_WRONLY, 0600));
	created("temporary", open(dir, O_TMPFILE | O_RDWR, 0600));
	created("memory", memfd_create("x", 0));
	unlink(path);
	unlink(link);
	rmdir(dir);
	printf("same file: %d %d", fcntl(first, 1027, copy), fcntl(first, 1027, second));
	printf(" %d %d", fcntl(pathOnly, 1027, pathOnly), fcntl(first, 1027, 99));
	printf(" %s\n", said(-1));
}

int main(void) {
	setvbuf(stdout, 0, _IONBF, 0);
	rollup();
	maps = open("/proc/self/maps", O_RDONLY);
	regions();
	own();
	errors();
	files();
	return 0;
}
