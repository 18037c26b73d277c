/* Fixed settings in /proc/sys, and whether system calls conform to them. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* get returns the text of a file, or the error. */
static const char *get(const char *path)
{
	static char text[4000];
	FILE *f = fopen(path, "r");
	if (!f)
		return strerror(errno);
	text[fread(text, 1, sizeof text - 1, f)] = 0;
	fclose(f);
	return text;
}

static void show(const char *path) { printf("%s: %s\n", path, strtok(strdup(get(path)), "\n")); }

static int option(int fd, int level, int name)
{
	int value = -1;
	socklen_t n = sizeof value;
	getsockopt(fd, level, name, &value, &n);
	return value;
}

/* buffer compares the default and the maximum of a buffer with the settings: the system doubles what a program asks for. */
static void buffer(int name, const char *initial, const char *most)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0), huge = 1 << 30;
	printf("%s: %d, ", initial, option(fd, SOL_SOCKET, name) == atoi(get(initial)));
	setsockopt(fd, SOL_SOCKET, name, &huge, sizeof huge);
	printf("%s: %d\n", most, option(fd, SOL_SOCKET, name) == 2 * atoi(get(most)));
	close(fd);
}

/* actions asks the system for each action that it lists. */
static void actions(void)
{
	static const struct { const char *name; unsigned value; } all[] = {
		{"kill_process", SECCOMP_RET_KILL_PROCESS}, {"kill_thread", SECCOMP_RET_KILL_THREAD}, {"trap", SECCOMP_RET_TRAP},
		{"errno", SECCOMP_RET_ERRNO}, {"trace", SECCOMP_RET_TRACE}, {"log", SECCOMP_RET_LOG}, {"allow", SECCOMP_RET_ALLOW},
	};
	const char *list = get("/proc/sys/kernel/seccomp/actions_avail");
	for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
		printf("%s: listed %d, available %ld\n", all[i].name, strstr(list, all[i].name) != NULL,
		       syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &all[i].value));
}

static long figure(const char *name)
{
	const char *at = strstr(get("/proc/meminfo"), name);
	return at ? atol(at + strlen(name)) : -1;
}

int main(void)
{
	show("/proc/sys/kernel/overflowuid");
	show("/proc/sys/kernel/overflowgid");
	show("/proc/sys/fs/overflowuid");
	show("/proc/sys/fs/overflowgid");
	show("/proc/sys/fs/leases-enable");
	show("/proc/sys/kernel/shm_rmid_forced");
	buffer(SO_RCVBUF, "/proc/sys/net/core/rmem_default", "/proc/sys/net/core/rmem_max");
	buffer(SO_SNDBUF, "/proc/sys/net/core/wmem_default", "/proc/sys/net/core/wmem_max");
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	printf("Unix: %d\n", option(fd, SOL_SOCKET, SO_SNDBUF) == atoi(get("/proc/sys/net/core/wmem_default")));
	fd = socket(AF_INET, SOCK_STREAM, 0);
	printf("TTL: %d\n", option(fd, IPPROTO_IP, IP_TTL) == atoi(get("/proc/sys/net/ipv4/ip_default_ttl")));
	actions();
	long total = figure("MemTotal:"), known = figure("MemFree:") + figure("Buffers:") + figure("Cached:") + figure("Slab:");
	printf("known memory: %s\n", total > 0 && known <= total ? "at most all" : "more than all");
	return 0;
}
