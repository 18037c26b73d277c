/* A process that only loads, one byte in each 2 MiB, has no memory except page tables. When they have used up the memory
   of the machine, this process is killed, and the other one goes on. */
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define GIB (1ul << 30)
#define HUGE (2ul << 20)
#define FRESH (8ul << 20)

static void loads(void)
{
	for (;;) {
		char *p = mmap(0, GIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED)
			_exit(1);
		for (unsigned long i = 0; i < GIB; i += HUGE)
			*(volatile char *)(p + i);
	}
}

/* Uses memory that it does not have yet. */
static int uses(void)
{
	char *p = mmap(0, FRESH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return 0;
	for (unsigned long i = 0; i < FRESH; i += 4096)
		p[i] = 1;
	return munmap(p, FRESH) == 0;
}

int main(void)
{
	int status = 0, all = 1;
	pid_t pid = fork();
	if (!pid)
		loads();
	while (waitpid(pid, &status, WNOHANG) == 0) {
		all &= uses();
		usleep(1000);
	}
	printf("killed: %d\n", WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	printf("the other process has its memory: %d\n", all && uses());
	return 0;
}
