/* Extended attributes of class "trusted" (xattr(7)), which only root may use. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char *error(long r) { return r == -1 ? strerror(errno) : "ok"; }
#define SHOW(x) do { errno = 0; long r_ = (long)(x); printf("%s: %ld, %s\n", #x, r_, error(r_)); } while (0)

static char b[1000];

/* Shows the trusted attributes that a file lists. */
static void names(const char *path)
{
	int n = llistxattr(path, b, sizeof b);
	printf("%s:", path);
	for (char *p = b; p < b + n; p += strlen(p) + 1)
		if (!strncmp(p, "trusted.", 8))
			printf(" %s", p);
	printf("\n");
}

static void all(int fd)
{
	SHOW(setxattr("f", "trusted.a", "value", 5, 0));
	SHOW(setxattr("f", "trusted.a", "value", 5, XATTR_CREATE));
	SHOW(setxattr("f", "trusted.b", "value", 5, XATTR_REPLACE));
	SHOW(getxattr("f", "trusted.a", b, sizeof b));
	SHOW(getxattr("f", "trusted.b", b, sizeof b));
	SHOW(setxattr("f", "trusted.", "value", 5, 0));
	SHOW(getxattr("f", "trusted.", b, sizeof b));
	SHOW(setxattr("f", "trusted", "value", 5, 0));
	SHOW(lsetxattr("link", "trusted.l", "v", 1, 0));
	SHOW(lsetxattr("fifo", "trusted.p", "v", 1, 0));
	SHOW(lgetxattr("link", "trusted.l", b, sizeof b));
	SHOW(fsetxattr(fd, "trusted.s", "v", 1, 0));
	SHOW(fgetxattr(fd, "trusted.s", b, sizeof b));
	names("f"), names("link"), names("fifo"), names("dir");
	SHOW(setxattr("dir", "trusted.d", "v", 1, 0));
	names("dir");
}

int main(void)
{
	setvbuf(stdout, 0, _IONBF, 0);
	char dir[] = "/dev/shm/xattr.XXXXXX";
	int s = socket(AF_INET, SOCK_STREAM, 0);
	if (!mkdtemp(dir) || chdir(dir))
		return 1;
	close(open("f", O_CREAT | O_RDWR, 0600));
	symlink("f", "link");
	mkfifo("fifo", 0600);
	mkdir("dir", 0755);
	chmod(dir, 0755);
	all(s);
	if (fork() == 0) {
		printf("-- another user\n");
		chown("f", 1000, 1000);
		setresgid(1000, 1000, 1000);
		setresuid(1000, 1000, 1000);
		all(s);
		SHOW(removexattr("f", "trusted.a"));
		_exit(0);
	}
	wait(0);
	printf("-- root\n");
	names("f");
	SHOW(removexattr("f", "trusted.a"));
	SHOW(removexattr("f", "trusted.a"));
	names("f");
	unlink("f"), unlink("link"), unlink("fifo"), rmdir("dir"), rmdir(dir);
	return 0;
}
