/*
 * A supervisor runs hostile programs as an unprivileged user, and meanwhile a server whose client checks each reply. At the
 * end all pages of the machine that programs used are free again: of each kind, exactly as many are in use as before,
 * of page tables at most REMOVED more, and of the memory of processes at most OWN more.
 *
 *     isolate fuzz SEED SECONDS    processes that make random calls
 *     isolate hostile [quick]      the programs of hostile.c
 *
 * It prints lines that begin with "FAILED" for what must not happen.
 */
#include "isolate.h"
#include <ftw.h>
#include <dirent.h>
#include <grp.h>
#include <mqueue.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

void limit(int resource, u64 to)
{
	struct rlimit r = { to, to };
	setrlimit(resource, &r);
}

/* A figure of a file of /proc. */
static long figure(const char *path, const char *name)
{
	char line[256];
	long value = -1;
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f))
		if (!strncmp(line, name, strlen(name)) && strchr(" :", line[strlen(name)]))
			value = atol(line + strlen(name) + 1);
	if (f)
		fclose(f);
	return value;
}

static long heap(void) { return figure("/proc/meminfo", "Slab"); }

/* The physical pages in use for ring 3. Each page is of one kind. */
enum { MEMORY, FILES, TABLES, THREADS, KINDS };

/* Pages that the supervisor, the server and its client may touch for the first time during the test: of their stacks and data. */
enum { OWN = 8 };
/* Removed page tables that the kernel may still keep for an idle CPU: 16 for each of these three processes (kernel/user, Space.flush). */
enum { REMOVED = 3 * 16 };
static const char *const kinds[KINDS] = { "memory of processes", "files", "page tables", "registers of threads" };
struct pages { long of[KINDS]; };

/* Counts the pages, from one reading of the file. */
static struct pages pages(void)
{
	static const char *const names[] = { "nr_user_pages", "nr_file_pages", "nr_page_table_pages", "nr_thread_pages" };
	struct pages p = { { 0 } };
	char text[2048] = "";
	int f = open("/proc/vmstat", O_RDONLY);
	read(f, text, sizeof text - 1);
	close(f);
	for (int k = 0; k < KINDS; k++) {
		char *at = strstr(text, names[k]);
		p.of[k] = at ? atol(at + strlen(names[k])) : -1;
	}
	p.of[MEMORY] -= p.of[FILES] + p.of[TABLES] + p.of[THREADS];
	return p;
}

/* Counts the pages once they are those wanted, or have not changed for a second. */
static struct pages settled(const struct pages *wanted)
{
	struct pages p = pages();
	for (int same = 0; same < 20 && (!wanted || memcmp(&p, wanted, sizeof p)); same++) {
		usleep(50000);
		struct pages next = pages();
		if (memcmp(&p, &next, sizeof p))
			same = 0;
		p = next;
	}
	return p;
}

/* Reads each page of this program's file. A fuzzer that maps /proc/self/exe may do so at any time, and the page cache keeps the pages. */
static void readProgram(void)
{
	int f = open("/proc/self/exe", O_RDONLY);
	struct stat st;
	if (f < 0 || fstat(f, &st)) {
		printf("FAILED: /proc/self/exe: %s\n", strerror(errno));
		return;
	}
	volatile char *p = mmap(0, st.st_size, PROT_READ, MAP_SHARED, f, 0);
	for (long at = 0; at < st.st_size; at += 4096)
		(void)p[at];
	munmap((void *)p, st.st_size);
	close(f);
}

static const char home[] = "/tmp/isolate";

static int removed(const char *path, const struct stat *st, int flag, struct FTW *w)
{
	(void)st, (void)flag, (void)w;
	return remove(path), 0;
}

/* Returns the number of processes: of the user, or all. It kills them if asked to. */
static int count(int all, int sig)
{
	int n = 0;
	DIR *d = opendir("/proc");
	for (struct dirent *e; d && (e = readdir(d));) {
		struct stat st;
		char path[300];
		sprintf(path, "/proc/%s", e->d_name);
		if (atoi(e->d_name) <= 0 || stat(path, &st) || (!all && st.st_uid != USER))
			continue;
		n++;
		if (sig)
			kill(atoi(e->d_name), sig);
	}
	closedir(d);
	return n;
}

/* Removes the user's objects of System V. The INFO commands return the highest index in use. */
static void removeObjects(void)
{
	char info[256];
	struct shmid_ds m;
	struct semid_ds s;
	struct msqid_ds q;
	for (int i = shmctl(0, SHM_INFO, (void *)info), id; i >= 0; i--)
		if ((id = shmctl(i, SHM_STAT, &m)) >= 0 && m.shm_perm.uid == USER)
			shmctl(id, IPC_RMID, 0);
	for (int i = semctl(0, 0, SEM_INFO, info), id; i >= 0; i--)
		if ((id = semctl(i, 0, SEM_STAT, &s)) >= 0 && s.sem_perm.uid == USER)
			semctl(id, 0, IPC_RMID);
	for (int i = msgctl(0, MSG_INFO, (void *)info), id; i >= 0; i--)
		if ((id = msgctl(i, MSG_STAT, &q)) >= 0 && q.msg_perm.uid == USER)
			msgctl(id, IPC_RMID, 0);
}

/* Ends all processes of the user, and removes what the user has created. */
static void clean(void)
{
	double end = now() + 60;
	do {
		pid_t p = fork();
		if (p == 0) {
			setresuid(USER, USER, USER);
			kill(-1, SIGKILL);
			_exit(0);
		}
		waitpid(p, 0, 0);
		while (waitpid(-1, 0, WNOHANG) > 0)
			;
	} while (count(0, SIGKILL) > 0 && now() < end);
	if (count(0, 0) > 0)
		printf("FAILED: %d processes survive SIGKILL\n", count(0, 0));
	unlink("/dev/shm/x");
	static const char *const queues[] = { "/a", "/b", "/c", "/queue" };
	for (int i = 0; i < 4; i++)
		mq_unlink(queues[i]);
	nftw(home, removed, 16, FTW_DEPTH | FTW_PHYS);
	mkdir(home, 0777);
	chmod(home, 0777);
	removeObjects();
}

/* The server and its client. The client's counts are in shared memory. */
static struct { long replies, wrong; double longest; volatile int stop; } *served;

static u64 processes = 256;
struct progress *progress;

/* Shows the calls in progress. */
static void show(void)
{
	for (int i = 0; i < PROGRESS; i++) {
		struct progress *p = &progress[i];
		if (p->number >= 0)
			printf("in call %ld (%lx, %lx, %lx, %lx, %lx, %lx)\n", p->number, p->a[0], p->a[1], p->a[2], p->a[3], p->a[4], p->a[5]);
	}
}

/* Becomes an unprivileged user with limits, in a folder of its own. */
static void descend(void)
{
	munmap(served, 4096); /* calls with addresses beside it would write to it */
	int null = open("/dev/null", O_RDWR);
	dup2(null, 0), dup2(null, 1), dup2(null, 2);
	for (int i = 3; i < 64; i++)
		close(i);
	if (chdir(home))
		_exit(99);
	setsid();
	limit(RLIMIT_NPROC, processes);
	limit(RLIMIT_NOFILE, 64);
	limit(RLIMIT_FSIZE, 1 << 20);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_AS, 192 << 20);
	setgroups(0, 0);
	setresgid(USER, USER, USER);
	setresuid(USER, USER, USER);
}

int confined(const char *name, void (*f)(u64), u64 argument, int milliseconds)
{
	int status = 0, shown = 0;
	for (int i = 0; i < PROGRESS; i++)
		progress[i].number = -1;
	pid_t p = fork();
	if (p == 0) {
		descend();
		f(argument);
		_exit(0);
	}
	if (p < 0) {
		printf("FAILED: %s: fork: %s\n", name, strerror(errno));
		return -1;
	}
	double end = now() + milliseconds / 1e3;
	pid_t done;
	while ((done = waitpid(p, &status, WNOHANG)) == 0 && now() < end)
		usleep(2000);
	if (done == 0) {
		kill(p, SIGKILL);
		end = now() + 60;
		while ((done = waitpid(p, &status, WNOHANG)) == 0 && now() < end) {
			usleep(2000);
			if (now() > end - 50 && !shown++) {
				printf("%s %lu has not died of SIGKILL yet\n", name, argument);
				show();
			}
		}
		if (done == 0)
			printf("FAILED: %s %lu: it does not die of SIGKILL\n", name, argument);
	}
	clean();
	return status;
}

static void serve(void)
{
	int s[2];
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s))
		exit(1);
	served = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (fork() == 0) {
		char b[64];
		ssize_t n;
		close(s[0]);
		while ((n = read(s[1], b, sizeof b)) > 0) {
			for (int i = 0; i < n; i++)
				b[i] ^= 0x5a;
			if (write(s[1], b, n) != n)
				break;
		}
		_exit(0);
	}
	if (fork() == 0) {
		close(s[1]);
		for (unsigned k = 0; !served->stop; k++) {
			char out[32], in[32];
			double began = now();
			for (int i = 0; i < 32; i++)
				out[i] = k * 7 + i;
			if (write(s[0], out, 32) != 32 || recv(s[0], in, 32, MSG_WAITALL) != 32)
				served->wrong++;
			for (int i = 0; i < 32; i++)
				if ((char)(in[i] ^ 0x5a) != out[i]) {
					served->wrong++;
					break;
				}
			served->replies++;
			if (now() - began > served->longest)
				served->longest = now() - began;
			usleep(10000);
		}
		_exit(0);
	}
	close(s[0]), close(s[1]);
}

static int quick;

static void hostile(void)
{
	static const long skipped[] = { SYS_exit, SYS_exit_group, SYS_clone, SYS_fork, SYS_vfork, SYS_clone3, SYS_rt_sigreturn };
	int now_ = now() * 1000; /* a quick run takes some of the calls */
	for (int i = 0; i < MOST_CALLS; i++) {
		int skip = 0;
		for (unsigned k = 0; k < sizeof skipped / sizeof *skipped; k++)
			skip |= skipped[k] == i;
		if (!skip && (!quick || i % 8 == now_ % 8))
			confined("pointers", pointers, i, quick ? 50 : 3000);
	}
	for (int i = 0; i < (quick ? 20 : 2000); i++)
		confined("frames", frames, i, 2000);
	for (int i = 0; i < INSTRUCTIONS; i++)
		confined("instructions", instructions, i, quick ? 200 : 2000);
	int s = confined("code", code, 0, quick ? 1000 : 20000);
	if (s != 0 && !WIFSIGNALED(s))
		printf("FAILED: self-modifying code: status %x\n", s);
	confined("unmapped", unmapped, 0, quick ? 500 : 20000);
	processes = 12000;
	s = confined("crowd", crowd, quick ? 1000 : 10000, 600000);
	if (s != 0)
		printf("FAILED: threads: status %x\n", s);
	processes = 256;
	confined("bomb", bomb, 0, quick ? 500 : 10000);
	confined("memory", memory, 0, 30000);
	if (!quick)
		confined("all memory", memory, 1, 60000);
}

/* Runs a function in a process of its own, which leaves no memory behind in this one. It returns when the process has ended. */
static void apart(void (*f)(void))
{
	pid_t p = fork();
	if (p == 0) {
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		f();
		_exit(0);
	}
	int status = -1;
	while (waitpid(p, &status, 0) != p && errno == EINTR)
		;
	if (p < 0 || status != 0) {
		printf("FAILED: the process that runs the programs: status %x\n", status);
		show();
	}
}

static u64 seed;
static double seconds;

static void fuzzers(void)
{
	double end = now() + seconds;
	long rounds = 0;
	for (; now() < end; rounds++)
		confined("fuzz", fuzz, ++seed, 1500);
	printf("%ld rounds, seeds to %lu\n", rounds, seed);
}

static void warmUp(void)
{
	confined("warm up", fuzz, 0, 1000);
	confined("warm up", instructions, 0, 1000);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, 0, _IONBF, 0);
	if (argc < 2)
		return 2;
	progress = mmap(0, sizeof *progress * PROGRESS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* calls with addresses beside it do not write to it */
	serve();
	int fuzzing = !strcmp(argv[1], "fuzz");
	quick = argc > 2 && !strcmp(argv[2], "quick");
	if (fuzzing)
		seed = strtoull(argv[2], 0, 10), seconds = atof(argv[3]);
	readProgram();
	apart(clean);
	settled(0), count(1, 0), heap(); /* this process has written to all of its pages that it will write to */
	apart(warmUp);
	int running = count(1, 0);
	long heapBefore = heap();
	struct pages before = settled(0);
	apart(fuzzing ? fuzzers : hostile);
	readProgram(); /* clean pages of files are dropped when memory runs out, and page tables become smaller */
	struct pages after = settled(&before);
	int left = count(1, 0);
	served->stop = 1;
	fprintf(stderr, "%ld replies, the longest after %.3f s; heap %ld kB, then %ld kB; processes %d, then %d\n", served->replies,
		served->longest, heapBefore, heap(), running, left);
	for (int k = 0; k < KINDS; k++) {
		fprintf(stderr, "pages, %s: %ld, then %ld\n", kinds[k], before.of[k], after.of[k]);
		long change = after.of[k] - before.of[k];
		if (k == TABLES ? change > REMOVED : k == MEMORY ? labs(change) > OWN : change != 0)
			printf("FAILED: pages, %s: %ld before, %ld after\n", kinds[k], before.of[k], after.of[k]);
	}
	if (left != running)
		printf("FAILED: processes: %d before, %d after\n", running, left);
	if (served->wrong || served->replies < 10)
		printf("FAILED: %ld wrong replies of %ld\n", served->wrong, served->replies);
	while (wait(0) > 0)
		;
	printf("isolated\n");
	return 0;
}
