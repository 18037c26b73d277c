/* POSIX access control lists (acl(5)) as extended attributes, and what they allow. Renames that leave whiteouts. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define ACCESS "system.posix_acl_access"
#define DEFAULT "system.posix_acl_default"

static const char *error(long r) { return r == -1 ? strerror(errno) : "ok"; }
#define SHOW(x) do { errno = 0; long r_ = (long)(x); printf("%s: %ld, %s\n", #x, r_, error(r_)); } while (0)

struct entry { uint16_t tag, perm; uint32_t id; };
struct list { uint32_t version; struct entry e[64]; };

/* Decodes a list such as "u::7,u:1000:6,g::5,m::7,o::4", and returns its size. */
static int parse(const char *text, struct list *l)
{
	int n = 0;
	l->version = 2;
	for (const char *p = text; *p; p++) {
		struct entry *e = &l->e[n++];
		int named = p[2] != ':';
		e->tag = p[0] == 'u' ? (named ? 2 : 1) : p[0] == 'g' ? (named ? 8 : 4) : p[0] == 'm' ? 0x10 : 0x20;
		e->id = named ? strtoul(p + 2, 0, 10) : -1;
		e->perm = strchr(p + 2, ':')[1] - '0';
		p = strchr(p + 2, ':') + 2;
		if (!*p)
			break;
	}
	return 4 + 8 * n;
}

static int set(const char *path, const char *name, const char *text)
{
	struct list l;
	int n = parse(text, &l);
	return setxattr(path, name, &l, n, 0);
}

/* Shows the mode and the lists of a file. */
static void get(const char *path)
{
	static const char *names[] = { ACCESS, DEFAULT };
	struct stat st;
	if (stat(path, &st)) {
		printf("%s: %s\n", path, strerror(errno));
		return;
	}
	printf("%s: %o", path, st.st_mode & 07777);
	for (int i = 0; i < 2; i++) {
		struct list l;
		errno = 0;
		int n = getxattr(path, names[i], &l, sizeof l);
		printf(" %s %d", error(n), n);
		for (int j = 0; 4 + 8 * j < n; j++)
			printf(" %x:%d:%d", l.e[j].tag, l.e[j].id, l.e[j].perm);
	}
	char b[1000];
	int n = listxattr(path, b, sizeof b);
	for (char *p = b; p < b + n; p += strlen(p) + 1)
		printf(" %s", p);
	printf("\n");
}

/* Shows what a user may do with a file: open, access(2) and execute it. */
static void may(uid_t uid, gid_t gid, gid_t group, const char *path)
{
	if (fork() == 0) {
		int groups = group != 0;
		setgroups(groups, &group);
		setresgid(gid, gid, gid);
		setresuid(uid, uid, uid);
		printf("%d:%d:%d %s:", uid, gid, group, path);
		for (int flags = O_RDONLY; flags <= O_RDWR; flags++) {
			int fd = open(path, flags);
			printf(" %s", error(fd));
			close(fd);
		}
		for (int mode = 0; mode < 8; mode++)
			printf(" %d", access(path, mode));
		struct stat st;
		if (!stat(path, &st) && S_ISREG(st.st_mode)) {
			char *args[] = { (char *)path, "ran", 0 };
			execv(path, args);
			printf(" %s", strerror(errno));
		}
		printf("\n");
		_exit(0);
	}
	wait(0);
}

static void everyone(const char *path)
{
	may(0, 0, 0, path);
	may(1000, 1000, 0, path);
	may(1001, 1001, 0, path);
	may(1002, 200, 0, path);
	may(1002, 1002, 200, path);
	may(1002, 201, 200, path);
	may(1003, 1003, 0, path);
}

static void permissions(void)
{
	static const char *lists[] = {
		"u::6,u:1000:4,g::0,m::7,o::0", "u::7,u:1000:7,u:1001:5,g::4,g:200:5,g:201:2,m::7,o::0", "u::7,u:1000:7,g::7,m::1,o::7",
		"u::7,u:1000:0,g::7,g:200:0,m::7,o::7", "u::7,u:1000:7,g::7,m::0,o::4", "u::0,u:0:7,g::7,m::7,o::1", "u::7,g::5,o::1",
	};
	for (int i = 0; i < sizeof lists / sizeof *lists; i++) {
		printf("-- %s\n", lists[i]);
		SHOW(set("f", ACCESS, lists[i]));
		get("f");
		everyone("f");
	}
	SHOW(chown("f", 1000, 200));
	everyone("f");
	SHOW(set("f", ACCESS, lists[1]));
	for (int mode = 0; mode < 01000; mode += 0123) {
		printf("-- chmod %o\n", mode);
		SHOW(chmod("f", mode));
		get("f");
		everyone("f");
	}
}

static void directories(void)
{
	mkdir("d", 0700);
	close(open("d/f", O_CREAT | O_RDWR, 0666));
	chmod("d/f", 0666);
	static const char *lists[] = { "u::7,u:1000:1,u:1001:4,g::0,g:200:5,m::7,o::0", "u::7,u:1000:7,g::1,m::3,o::1", "u::7,u:1000:0,g::5,m::7,o::5" };
	for (int i = 0; i < sizeof lists / sizeof *lists; i++) {
		printf("-- %s\n", lists[i]);
		SHOW(set("d", ACCESS, lists[i]));
		everyone("d");
		everyone("d/f");
		everyone("d/absent");
		if (fork() == 0) {
			setgroups(0, 0);
			setresgid(1000, 1000, 1000);
			setresuid(1000, 1000, 1000);
			SHOW(chdir("d"));
			SHOW(mkdir("sub", 0777));
			SHOW(rmdir("sub"));
			_exit(0);
		}
		wait(0);
	}
}

static void create(const char *umasked, mode_t mask)
{
	printf("-- %s umask %o\n", umasked, mask);
	mkdir("p", 0777);
	SHOW(set("p", DEFAULT, umasked));
	get("p");
	umask(mask);
	static const mode_t modes[] = { 0666, 0600, 0777, 0, 04755 };
	for (int i = 0; i < 5; i++) {
		close(open("p/f", O_CREAT | O_RDWR | O_EXCL, modes[i]));
		get("p/f");
		unlink("p/f");
		mkdir("p/d", modes[i]);
		get("p/d");
		rmdir("p/d");
		mknod("p/n", S_IFIFO | modes[i], 0);
		get("p/n");
		unlink("p/n");
		char name[100];
		int fd = open("p", O_TMPFILE | O_RDWR, modes[i]);
		snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
		get(name + (fd == -1) * 14);
		close(fd);
	}
	symlink("f", "p/l");
	errno = 0;
	SHOW(lgetxattr("p/l", ACCESS, 0, 0));
	umask(0);
	unlink("p/l");
	rmdir("p");
}

static void errors(void)
{
	struct list l;
	int n = parse("u::7,u:5:7,g::7,m::7,o::7", &l);
	SHOW(setxattr("f", ACCESS, &l, n, XATTR_CREATE));
	SHOW(setxattr("f", ACCESS, &l, n, XATTR_CREATE));
	SHOW(removexattr("f", ACCESS));
	SHOW(setxattr("f", ACCESS, &l, n, XATTR_REPLACE));
	SHOW(removexattr("f", ACCESS));
	SHOW(removexattr("f", ACCESS));
	get("f");
	SHOW(setxattr("f", ACCESS, &l, n - 1, 0));
	SHOW(setxattr("f", ACCESS, &l, 3, 0));
	SHOW(setxattr("f", ACCESS, &l, 0, 0));
	SHOW(setxattr("f", ACCESS, &l, 4, 0));
	SHOW(setxattr("f", ACCESS, &l, 12, 0));
	SHOW(setxattr("f", DEFAULT, &l, n, 0));
	SHOW(setxattr("f", DEFAULT, &l, 4, 0));
	SHOW(removexattr("f", DEFAULT));
	SHOW(getxattr("f", DEFAULT, 0, 0));
	SHOW(setxattr("f", "system.posix_acl_other", &l, n, 0));
	SHOW(getxattr("f", "system.posix_acl_other", 0, 0));
	l.version = 1;
	SHOW(setxattr("f", ACCESS, &l, n, 0));
	l.version = 2;
	l.e[0].perm = 8;
	SHOW(setxattr("f", ACCESS, &l, n, 0));
	SHOW(set("f", ACCESS, "u::7,u:1:7,g::7,o::7"));
	SHOW(set("f", ACCESS, "u::7,g::7,u:1:7,m::7,o::7"));
	SHOW(set("f", ACCESS, "u::7,o::7"));
	SHOW(set("f", ACCESS, "u::7,u:4294967295:7,g::7,m::7,o::7"));
	SHOW(set("f", ACCESS, "u::7,u:1:7,u:1:6,g::7,m::7,o::7"));
	get("f");
	symlink("f", "l");
	mkfifo("fifo", 0600);
	SHOW(lsetxattr("l", ACCESS, &l, 4, 0));
	SHOW(lgetxattr("l", ACCESS, &l, 4));
	SHOW(set("fifo", ACCESS, "u::7,u:1:7,g::7,m::7,o::7"));
	get("fifo");
	SHOW(getxattr("fifo", ACCESS, &l, 4));
	chmod("f", 06777);
	chown("f", 1000, 200);
	chmod("f", 06777);
	if (fork() == 0) {
		setgroups(0, 0);
		setresgid(1000, 1000, 1000);
		setresuid(1000, 1000, 1000);
		SHOW(set("f", ACCESS, "u::7,u:1:7,g::7,m::7,o::7"));
		get("f");
		SHOW(set("fifo", ACCESS, "u::7,g::7,o::7"));
		SHOW(removexattr("fifo", ACCESS));
		SHOW(set("f", DEFAULT, "u::7,g::7,o::7"));
		_exit(0);
	}
	wait(0);
	unlink("l"), unlink("fifo");
}

static void show(const char *path)
{
	struct stat st;
	if (lstat(path, &st))
		printf("%s: %s\n", path, strerror(errno));
	else
		printf("%s: mode %o, links %d, owner %d:%d, device %d:%d\n", path, st.st_mode, (int)st.st_nlink, st.st_uid, st.st_gid,
			major(st.st_rdev), minor(st.st_rdev));
}

static int rename2(const char *from, const char *to, int flags) { return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags); }

static void whiteouts(void)
{
	mkdir("w", 0777);
	if (fork() == 0) {
		setgroups(0, 0);
		setresgid(1000, 1000, 1000);
		setresuid(1000, 1000, 1000);
		close(open("w/a", O_CREAT | O_RDWR, 0600));
		SHOW(rename2("w/a", "w/b", 4));
		show("w/a"), show("w/b");
		SHOW(open("w/a", O_RDONLY));
		SHOW(rename2("w/b", "w/a", 5));
		SHOW(rename2("w/b", "w/a", 6));
		SHOW(rename2("w/b", "w/a", 8));
		SHOW(rename2("w/b", "w/a", 4));
		show("w/a"), show("w/b");
		SHOW(link("w/a", "w/c"));
		SHOW(rename2("w/a", "w/c", 4));
		show("w/a"), show("w/c");
		SHOW(mknod("w/d", S_IFCHR | 0600, 0));
		show("w/d");
		SHOW(mknod("w/e", S_IFCHR | 0600, makedev(1, 3)));
		SHOW(mknod("w/e", S_IFBLK | 0600, 0));
		SHOW(mkdir("w/dir", 0700));
		SHOW(rename2("w/dir", "w/moved", 4));
		show("w/dir"), show("w/moved");
		_exit(0);
	}
	wait(0);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		printf(" %s\n", argv[1]);
		return 0;
	}
	setvbuf(stdout, 0, _IONBF, 0);
	char dir[] = "/dev/shm/acl.XXXXXX", command[1000], self[1000] = "";
	readlink("/proc/self/exe", self, sizeof self - 1);
	if (!mkdtemp(dir) || chdir(dir))
		return 1;
	umask(0);
	chmod(dir, 0777);
	int from = open(self, O_RDONLY), to = open("f", O_CREAT | O_WRONLY, 0777), n;
	while ((n = read(from, command, sizeof command)) > 0)
		write(to, command, n);
	close(from), close(to);
	permissions();
	directories();
	create("u::7,u:1000:7,g::5,m::7,o::4", 022);
	create("u::7,u:1000:7,g::5,m::7,o::4", 0777);
	create("u::6,g::5,o::4", 077);
	create("u::7,g::7,m::4,o::7", 0);
	errors();
	whiteouts();
	return 0;
}
