/* linkat(2) with AT_EMPTY_PATH: a descriptor gets a name only with CAP_DAC_READ_SEARCH. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *error(long r) { return r == -1 ? strerror(errno) : "ok"; }
#define SHOW(x) do { errno = 0; long r_ = (long)(x); printf("%s: %ld, %s\n", #x, r_, error(r_)); } while (0)

int main(void)
{
	char dir[] = "/tmp/linkempty.XXXXXX";
	int fd, nameless;
	setvbuf(stdout, 0, _IONBF, 0);
	if (!mkdtemp(dir) || chdir(dir) || chmod(".", 0777))
		return 1;
	fd = open("file", O_CREAT | O_RDWR, 0666);
	nameless = open(".", O_TMPFILE | O_RDWR, 0666);
	SHOW(linkat(fd, "", AT_FDCWD, "one", 0));
	SHOW(linkat(fd, "", AT_FDCWD, "one", 4));
	SHOW(linkat(fd, "", AT_FDCWD, "one", AT_EMPTY_PATH));
	SHOW(linkat(nameless, "", AT_FDCWD, "two", AT_EMPTY_PATH));
	nameless = open(".", O_TMPFILE | O_RDWR, 0666);
	SHOW(setresuid(1000, 0, 0));
	SHOW(seteuid(1000));
	SHOW(linkat(fd, "", AT_FDCWD, "three", AT_EMPTY_PATH));
	SHOW(linkat(nameless, "", AT_FDCWD, "three", AT_EMPTY_PATH));
	SHOW(access("three", F_OK));
	SHOW(seteuid(0));
	unlink("file"), unlink("one"), unlink("two"), rmdir(dir);
	return 0;
}
