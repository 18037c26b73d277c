/* PTRACE_ATTACH and PTRACE_SEIZE of a stopped process: a request may follow without a wait (ptrace(2)). */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *error(long r) { return r == -1 ? strerror(errno) : "ok"; }
#define SHOW(x) do { errno = 0; long r_ = (long)(x); printf("%s: %s\n", #x, error(r_)); } while (0)

static void try(int request)
{
	int status;
	struct user_regs_struct r;
	siginfo_t i;
	pid_t child = fork();
	if (child == 0)
		for (;;)
			pause();
	kill(child, SIGSTOP);
	waitpid(child, &status, WUNTRACED);
	printf("stopped %d\n", WIFSTOPPED(status));
	SHOW(ptrace(request, child, 0, 0));
	SHOW(ptrace(PTRACE_GETREGS, child, 0, &r));
	SHOW(ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACESYSGOOD));
	SHOW(ptrace(PTRACE_GETSIGINFO, child, 0, &i));
	waitpid(child, &status, 0);
	printf("status %x\n", status);
	SHOW(ptrace(PTRACE_CONT, child, 0, 0));
	if (request == PTRACE_ATTACH) {
		waitpid(child, &status, 0);
		printf("status %x\n", status);
	}
	SHOW(kill(child, SIGKILL));
	waitpid(child, &status, 0);
	printf("status %x\n", status);
}

int main(void)
{
	setvbuf(stdout, 0, _IONBF, 0);
	try(PTRACE_ATTACH);
	try(PTRACE_SEIZE);
	return 0;
}
