/* setns(2) with the descriptor of a process: which namespaces, whose, and the errors. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

static const char *error(long r) { return r == -1 ? strerror(errno) : "ok"; }
#define SHOW(x) do { errno = 0; long r_ = (long)(x); printf("%s: %ld, %s\n", #x, r_, error(r_)); } while (0)

static char dir[] = "/tmp/setns.XXXXXX", file[60];
static int ready[2];

/* A child with mounts of its own, in which the file exists. */
static void child(void)
{
	if (unshare(CLONE_NEWNS) || mount(0, "/", 0, MS_REC | MS_PRIVATE, 0) || mount("none", dir, "tmpfs", 0, 0))
		_exit(1);
	close(open(file, O_CREAT | O_WRONLY, 0600));
	write(ready[1], "", 1);
	pause();
}

int main(void)
{
	char c;
	int p, fd, own, mounts, status;
	setvbuf(stdout, 0, _IONBF, 0);
	mkdtemp(dir);
	sprintf(file, "%s/file", dir);
	pipe(ready);
	mounts = open("/proc/self/ns/mnt", O_RDONLY);
	if ((p = fork()) == 0)
		child();
	read(ready[0], &c, 1);
	fd = syscall(SYS_pidfd_open, p, 0);
	own = syscall(SYS_pidfd_open, getpid(), 0);
	SHOW(access(file, F_OK));
	SHOW(setns(fd, 0));
	SHOW(setns(fd, CLONE_VM));
	SHOW(setns(fd, CLONE_NEWNS | CLONE_FS));
	SHOW(setns(fd, CLONE_NEWUSER));
	SHOW(setns(fd, CLONE_NEWNS | CLONE_NEWUSER));
	SHOW(access(file, F_OK));
	SHOW(setns(fd, CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWCGROUP | CLONE_NEWPID | CLONE_NEWTIME));
	SHOW(access(file, F_OK));
	SHOW(setns(fd, CLONE_NEWNS | CLONE_NEWUTS));
	SHOW(access(file, F_OK));
	SHOW(setns(mounts, 0));
	SHOW(access(file, F_OK));
	SHOW(setns(fd, CLONE_NEWNS));
	SHOW(access(file, F_OK));
	SHOW(setns(own, CLONE_NEWNS));
	SHOW(access(file, F_OK));
	SHOW(setns(mounts, CLONE_NEWNS));
	if (fork() == 0) {
		setgid(1000);
		setuid(1000);
		SHOW(setns(fd, CLONE_NEWUTS));
		SHOW(setns(fd, 0));
		SHOW(setns(fd, CLONE_NEWUSER));
		own = syscall(SYS_pidfd_open, getpid(), 0);
		SHOW(setns(own, CLONE_NEWUTS));
		_exit(0);
	}
	wait(&status);
	kill(p, SIGKILL);
	waitpid(p, &status, 0);
	SHOW(setns(fd, CLONE_NEWNS));
	SHOW(setns(fd, 0));
	SHOW(setns(ready[0], CLONE_NEWNS));
	SHOW(setns(99, CLONE_NEWNS));
	rmdir(dir);
	return 0;
}
