/* Limits of the pages of all pipes of a user (pipe(7)): pipe-user-pages-soft, 16384 pages by default. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MANY = 1100, OTHER = 54321 };
static int ends[MANY][2];

static const char *error(long r) { return r == -1 ? strerror(errno) : "ok"; }
#define SHOW(x) do { errno = 0; long r_ = (long)(x); printf("%s: %ld, %s\n", #x, r_, error(r_)); } while (0)

static int size(int i) { return fcntl(ends[i][0], F_GETPIPE_SZ); }

static void end(int i)
{
	close(ends[i][0]);
	close(ends[i][1]);
}

/* Opens pipes until one has another capacity, and returns their number. */
static int until_small(void)
{
	for (int i = 0; i < MANY; i++)
		if (pipe(ends[i]) || size(i) != 65536)
			return i;
	return MANY;
}

static void user(void)
{
	int n = until_small();
	printf("%d pipes, then %d bytes\n", n, size(n));
	SHOW(fcntl(ends[n][0], F_SETPIPE_SZ, 65536));
	SHOW(fcntl(ends[n][0], F_SETPIPE_SZ, 4096));
	SHOW(fcntl(ends[n][0], F_SETPIPE_SZ, 8192));
	end(n);
	end(0);
	SHOW(pipe(ends[0]));
	SHOW(size(0));
	end(0);
	end(1);
	SHOW(mkfifo("/tmp/pipequota", 0600));
	ends[0][0] = open("/tmp/pipequota", O_RDWR);
	SHOW(size(0));
	ends[1][0] = open("/tmp/pipequota", O_RDWR);
	SHOW(size(1));
	close(ends[0][0]);
	close(ends[1][0]);
	unlink("/tmp/pipequota");
	SHOW(pipe(ends[0]));
	SHOW(size(0));
	SHOW(fcntl(ends[0][0], F_SETPIPE_SZ, 131072));
	SHOW(fcntl(ends[0][0], F_SETPIPE_SZ, 4096));
	SHOW(fcntl(ends[0][0], F_SETPIPE_SZ, 131072));
	for (int i = 0; i < n; i++)
		end(i);
	SHOW(until_small() == n);
}

int main(void)
{
	struct rlimit l = { 4096, 4096 };
	setvbuf(stdout, 0, _IONBF, 0);
	unlink("/tmp/pipequota");
	setrlimit(RLIMIT_NOFILE, &l);
	printf("root: %d pipes\n", until_small());
	for (int i = 0; i < MANY; i++)
		end(i);
	if (setresuid(OTHER, OTHER, OTHER))
		return 1;
	user();
	return 0;
}
