/* Core dumps (core(5)): when one is written, the status of the process, and what the file contains. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/procfs.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static char global[64] = "before";
static char *heap, *mapped, *hidden;
static int ends[2];

static void crash(void) { *(volatile int *)16 = 1; }
static void quit(void) { raise(SIGQUIT); }
static void terminate(void) { raise(SIGTERM); }

static void *wait_forever(void *unused)
{
	write(ends[1], "x", 1);
	pause();
	return unused;
}

static void crash_with_threads(void)
{
	pthread_t t;
	char b[2];
	for (int i = 0; i < 2; i++)
		pthread_create(&t, 0, wait_forever, 0);
	for (int i = 0; i < 2; i++)
		read(ends[0], b, 1);
	crash();
}

static void crash_undumpable(void) { prctl(PR_SET_DUMPABLE, 0), crash(); }
static void crash_nowhere(void) { chdir("/proc"), crash(); }
static void crash_without_stack(void)
{
	struct sigaction a = {.sa_handler = (void (*)(int))crash};
	sigaction(SIGSEGV, &a, 0);
	__asm__ volatile("mov $64, %rsp; movl $0, 16");
}

/* Runs a child with a limit of the size, and shows its status. */
static pid_t run(const char *name, void (*f)(void), rlim_t limit)
{
	unlink("core");
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		struct rlimit r = {limit, RLIM_INFINITY};
		setrlimit(RLIMIT_CORE, &r);
		strcpy(global, "global"), strcpy(heap, "heap"), strcpy(mapped, "mapped"), strcpy(hidden, "hidden");
		f();
		_exit(1);
	}
	siginfo_t i;
	waitid(P_PID, child, &i, WEXITED | WNOWAIT);
	int status;
	waitpid(child, &status, 0);
	struct stat s;
	int there = stat("core", &s) == 0;
	printf("%s: signal %d, core %d, code %d, file %d", name, WTERMSIG(status), !!WCOREDUMP(status), i.si_code, there);
	if (there)
		printf(", mode %o, links %d, limited %d", s.st_mode, (int)s.st_nlink, s.st_size < 100000);
	printf("\n");
	return child;
}

static char *core;
static size_t size;

/* Shows a string of the memory of the dumped process. */
static void show(const char *name, char *at)
{
	Elf64_Ehdr *e = (void *)core;
	Elf64_Phdr *p = (void *)(core + e->e_phoff);
	for (int i = 0; i < e->e_phnum; i++)
		if (p[i].p_type == PT_LOAD && (unsigned long)at >= p[i].p_vaddr && (unsigned long)at < p[i].p_vaddr + p[i].p_memsz) {
			unsigned long offset = (unsigned long)at - p[i].p_vaddr;
			printf("%s: flags %d, %s\n", name, p[i].p_flags, offset < p[i].p_filesz ? core + p[i].p_offset + offset : "not dumped");
			return;
		}
	printf("%s: no region\n", name);
}

static void show_file(pid_t child)
{
	int fd = open("core", O_RDONLY);
	struct stat s;
	fstat(fd, &s);
	size = s.st_size, core = mmap(0, size, PROT_READ, MAP_PRIVATE, fd, 0);
	Elf64_Ehdr *e = (void *)core;
	Elf64_Phdr *p = (void *)(core + e->e_phoff);
	printf("type %d, machine %d, first header %d\n", e->e_type, e->e_machine, p->p_type);
	for (char *at = core + p->p_offset, *end = at + p->p_filesz; at < end;) {
		Elf64_Nhdr *n = (void *)at;
		char *name = at + sizeof *n, *b = name + (n->n_namesz + 3 & ~3);
		at = b + (n->n_descsz + 3 & ~3);
		if (n->n_type == NT_FILE || n->n_type == NT_X86_XSTATE || n->n_type == NT_AUXV)
			printf("note %s %x: has content %d\n", name, n->n_type, n->n_descsz > 32);
		else if (n->n_type < 0x100 || n->n_type == NT_SIGINFO)
			printf("note %s %x: size %d\n", name, n->n_type, n->n_descsz);
		if (n->n_type == NT_PRSTATUS) {
			prstatus_t *r = (void *)b;
			long long call = r->pr_reg[15];
			if (r->pr_pid != child && (call == SYS_write || call == -1)) /* it may not have called pause(2) yet */
				call = SYS_pause;
			printf("signal %d %d, first thread %d, parent %d, group %d, fp %d, call %lld\n", r->pr_info.si_signo, r->pr_cursig, r->pr_pid == child,
			       r->pr_ppid == getpid(), r->pr_pgrp == getpgrp(), r->pr_fpvalid, call);
			if (r->pr_pid == child)
				printf("in crash: %d\n", r->pr_reg[16] >= (unsigned long)crash && r->pr_reg[16] < (unsigned long)crash + 64);
		} else if (n->n_type == NT_PRPSINFO) {
			prpsinfo_t *r = (void *)b;
			printf("name %s, same process %d, user %d\n", r->pr_fname, r->pr_pid == child, r->pr_uid == getuid());
		} else if (n->n_type == NT_SIGINFO) {
			siginfo_t *i = (void *)b;
			printf("siginfo %d %d %p\n", i->si_signo, i->si_code, i->si_addr);
		}
	}
	show("global", global), show("heap", heap), show("shared", mapped), show("hidden", hidden);
	close(fd);
}

int main(void)
{
	setvbuf(stdout, 0, _IOLBF, 0);
	char dir[] = "/tmp/coredump.XXXXXX";
	if (!mkdtemp(dir) || chdir(dir) || pipe(ends))
		return 1;
	heap = malloc(100);
	mapped = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	hidden = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(hidden, 4096, MADV_DONTDUMP);
	run("no limit of the size allows it", crash, 0);
	run("too small", crash, 4095);
	run("truncated", crash, 20000);
	run("terminated", terminate, RLIM_INFINITY);
	run("not dumpable", crash_undumpable, RLIM_INFINITY);
	run("no such file can be made", crash_nowhere, RLIM_INFINITY);
	run("quit", quit, RLIM_INFINITY);
	run("no stack for the handler", crash_without_stack, RLIM_INFINITY);
	show_file(run("crash", crash, RLIM_INFINITY));
	show_file(run("crash with threads", crash_with_threads, RLIM_INFINITY));
	unlink("core"), chdir("/"), rmdir(dir);
	return 0;
}
