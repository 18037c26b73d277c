/* /proc/locks and the locks in /proc/PID/fdinfo: kinds, owners, order, and requests that wait. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *error(long r) { return r == -1 ? strerror(errno) : "ok"; }
#define SHOW(x) do { errno = 0; long r_ = (long)(x); printf("%s: %ld, %s\n", #x, r_, error(r_)); } while (0)

static char file[100], place[60];
static int children[10], count;

/* Names the process with an ID. */
static const char *who(int pid)
{
	static char name[20];
	for (int i = 0; i < count; i++)
		if (children[i] == pid)
			return sprintf(name, "child %d", i), name;
	return pid == getpid() ? "parent" : pid == -1 ? "-1" : "other";
}

/* Copies the lines about locks of the test to a text, and returns the number of lines. The numbers of locks start at 1. */
static int list(char *to)
{
	static char text[200000];
	int fd = open("/proc/locks", O_RDONLY), n, size = 0, lines = 0, number = 0, last = -1, shown = 0;
	while ((n = read(fd, text + size, sizeof text - size - 1)) > 0)
		size += n;
	close(fd);
	text[size] = *to = 0;
	for (char *line = strtok(text, "\n"); line; line = strtok(0, "\n")) {
		int id, skip, pid, used;
		char kind[30], rest[100];
		sscanf(line, "%d:%n", &id, &skip);
		if (id != last)
			shown = strstr(line, place) != 0, number += shown;
		last = id;
		if (!shown)
			continue;
		lines++;
		char *modes[] = { "WRITE ", "READ ", "UNLCK " }, *p = 0;
		for (int i = 0; !p && i < 3; i++)
			if ((p = strstr(line + skip, modes[i])))
				p += strlen(modes[i]);
		used = p - line - skip;
		sprintf(kind, "%.*s", used, line + skip);
		pid = strtol(p, &p, 10);
		char *at = strstr(p, place);
		sprintf(rest, "%s%s", at ? " FILE" : "", at ? at + strlen(place) : p);
		to += sprintf(to, "%d:%s%s%s\n", number, kind, who(pid), rest);
	}
	return lines;
}

/* Shows the list as soon as it has a number of lines. */
static void show(const char *what, int lines)
{
	static char text[200000];
	for (int i = 0; i < 2000 && list(text) != lines; i++)
		usleep(10000);
	printf("-- %s\n%s", what, text);
}

/* Shows the lines about locks in fdinfo of a descriptor. */
static void info(int fd)
{
	char path[100], line[200];
	sprintf(path, "/proc/self/fdinfo/%d", fd);
	FILE *f = fopen(path, "r");
	while (fgets(line, sizeof line, f)) {
		char *at = strstr(line, place), pid[30];
		sprintf(pid, " %d ", getpid());
		if (!at)
			continue;
		char *p = strstr(line, pid);
		printf("%.*s %s FILE%s", (int)((p ? p : strstr(line, " -1 ")) - line), line, p ? "parent" : "-1", at + strlen(place));
	}
	fclose(f);
}

static int range(int fd, int cmd, int type, long from, long size)
{
	struct flock l = { .l_type = type, .l_start = from, .l_len = size };
	return fcntl(fd, cmd, &l);
}

/* Runs f in a child. */
static void start(void (*f)(void))
{
	fflush(stdout);
	int p = fork();
	if (p == 0) {
		alarm(60);
		for (int i = 3; i < 20; i++) /* open file descriptions of the parent */
			close(i);
		f();
		pause();
	}
	children[count++] = p;
}

static void stop(int i)
{
	kill(children[i], SIGKILL);
	waitpid(children[i], 0, 0);
}

static void shared(void) { flock(open(file, O_RDWR), LOCK_SH); }
static void exclusive(void) { flock(open(file, O_RDWR), LOCK_EX); }
static void record(void) { range(open(file, O_RDWR), F_SETLKW, F_WRLCK, 5, 10); }
static void description(void) { range(open(file, O_RDWR), F_OFD_SETLKW, F_RDLCK, 100, 0); }
static void reads(void) { open(file, O_RDONLY); }
static void writes(void) { open(file, O_WRONLY); }

/* Locks of flock(2); one that changes its mode is lost while it waits. */
static void flocks(void)
{
	int fd = open(file, O_RDWR), other = open(file, O_RDWR);
	SHOW(flock(fd, LOCK_SH));
	SHOW(flock(other, LOCK_SH));
	show("two shared locks", 2);
	info(fd);
	SHOW(flock(fd, LOCK_EX | LOCK_NB));
	show("a lock was lost", 1);
	SHOW(flock(fd, LOCK_SH));
	SHOW(flock(other, LOCK_UN));
	SHOW(flock(fd, LOCK_EX));
	show("an exclusive lock", 1);
	start(exclusive);
	show("a request", 2);
	start(shared);
	show("two requests", 3);
	stop(0);
	show("one ends", 2);
	close(fd);
	show("the other gets it", 1);
	stop(1);
	show("none", 0);
	close(other);
}

static void ranges(void)
{
	int fd = open(file, O_RDWR), other = open(file, O_RDWR);
	SHOW(range(fd, F_SETLK, F_WRLCK, 0, 10));
	SHOW(range(fd, F_SETLK, F_RDLCK, 20, 0));
	show("two ranges", 2);
	SHOW(range(fd, F_SETLK, F_WRLCK, 10, 5));
	SHOW(range(fd, F_SETLK, F_UNLCK, 3, 2));
	show("a hole", 3);
	SHOW(range(other, F_OFD_SETLK, F_WRLCK, 16, 1));
	show("a lock of a description", 4);
	info(fd);
	info(other);
	start(record);
	show("a request", 5);
	SHOW(range(other, F_OFD_SETLK, F_WRLCK, 100, 1));
	SHOW(range(fd, F_SETLK, F_UNLCK, 100, 0));
	SHOW(range(other, F_OFD_SETLK, F_WRLCK, 100, 1));
	start(description);
	show("a request of a description", 7);
	SHOW(range(fd, F_SETLK, F_UNLCK, 5, 10));
	show("one gets it", 6);
	close(other);
	show("the process has lost its locks", 2);
	for (int i = 2; i < count; i++)
		stop(i);
	show("none", 0);
	close(fd);
}

static void leases(void)
{
	int fd = open(file, O_RDONLY), first = count;
	signal(SIGIO, SIG_IGN);
	SHOW(fcntl(fd, F_SETLEASE, F_RDLCK));
	show("a read lease", 1);
	info(fd);
	start(writes);
	show("it must end", 2);
	SHOW(fcntl(fd, F_SETLEASE, F_UNLCK));
	show("it has ended", 0);
	stop(first);
	SHOW(fcntl(fd, F_SETLEASE, F_WRLCK));
	show("a write lease", 1);
	start(reads);
	show("it must become weaker", 2);
	start(writes);
	show("it must end", 3);
	close(fd);
	show("closed", 0);
	stop(first + 1), stop(first + 2);
}

int main(void)
{
	cpu_set_t one;
	struct stat s;
	setvbuf(stdout, 0, _IONBF, 0);
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof one, &one);
	strcpy(file, "/tmp/locks.XXXXXX");
	close(mkstemp(file));
	stat(file, &s);
	sprintf(place, " %02x:%02x:%lu", major(s.st_dev), minor(s.st_dev), s.st_ino);
	flocks();
	ranges();
	leases();
	unlink(file);
	SHOW(stat("/proc/locks", &s));
	printf("%o, %ld bytes\n", s.st_mode, (long)s.st_size);
	return 0;
}
