/* Settings in /proc/sys of System V's IPC and of the network: what may be written, and the effect. On Linux, the program changes only
   namespaces of its own. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

static const char *error(long r) { return r == -1 ? strerror(errno) : "ok"; }
#define SHOW(x) do { errno = 0; long r_ = (long)(x); printf("%s: %ld, %s\n", #x, r_, error(r_)); } while (0)
#define WORKS(x) do { errno = 0; long r_ = (long)(x); printf("%s: %s\n", #x, error(r_)); } while (0)

static char path[200];

static const char *full(const char *name)
{
	snprintf(path, sizeof path, "/proc/sys/%s", name);
	return path;
}

static int set(const char *name, const char *text)
{
	int fd = open(full(name), O_WRONLY | O_TRUNC), r = -1;
	if (fd >= 0) {
		r = write(fd, text, strlen(text));
		int e = errno;
		close(fd);
		errno = e;
	}
	return r;
}

static const char *get(const char *name)
{
	static char text[200];
	int fd = open(full(name), O_RDONLY), n = read(fd, text, sizeof text - 1);
	close(fd);
	text[n < 0 ? 0 : n] = 0;
	return text;
}

#define TRY(name, text) do { SHOW(set(name, text)); printf("%s is %s", name, get(name)); } while (0)

static void segments(void)
{
	struct shminfo i;
	int one, two;
	TRY("kernel/shmmax", "18446744073692774399");
	TRY("kernel/shmmax", "18446744073709551616");
	TRY("kernel/shmmax", "-1");
	TRY("kernel/shmmax", "8192 1");
	WORKS(one = shmget(IPC_PRIVATE, 8192, 0600));
	WORKS(shmget(IPC_PRIVATE, 8193, 0600));
	TRY("kernel/shmall", "3");
	WORKS(two = shmget(IPC_PRIVATE, 4096, 0600));
	WORKS(shmget(IPC_PRIVATE, 1, 0600));
	SHOW(shmctl(one, IPC_RMID, 0));
	TRY("kernel/shmmni", "32769");
	TRY("kernel/shmmni", "-1");
	TRY("kernel/shmmni", "1");
	WORKS(shmget(IPC_PRIVATE, 1, 0600));
	SHOW(shmctl(two, IPC_RMID, 0));
	TRY("kernel/shmmni", "0");
	WORKS(shmget(IPC_PRIVATE, 1, 0600));
	TRY("kernel/shmmni", "4096");
	shmctl(0, IPC_INFO, (void *)&i);
	printf("%lu %lu %lu %lu %lu\n", i.shmmax, i.shmmin, i.shmmni, i.shmseg, i.shmall);
}

static void semaphores(void)
{
	struct seminfo i;
	struct sembuf ops[4] = { 0 };
	int id;
	TRY("kernel/sem", "10\t20 3");
	WORKS(id = semget(IPC_PRIVATE, 10, 0600));
	WORKS(semget(IPC_PRIVATE, 11, 0600));
	for (int j = 0; j < 4; j++)
		ops[j].sem_op = 1;
	SHOW(semop(id, ops, 3));
	SHOW(semop(id, ops, 4));
	TRY("kernel/sem", "11 15");
	WORKS(semget(IPC_PRIVATE, 6, 0600));
	WORKS(semget(IPC_PRIVATE, 5, 0600));
	TRY("kernel/sem", "12 16 4 32769");
	TRY("kernel/sem", "13 x");
	TRY("kernel/sem", "x");
	TRY("kernel/sem", "14 17 5 2 9");
	WORKS(semget(IPC_PRIVATE, 1, 0600));
	TRY("kernel/sem", "15 18 6 -1");
	TRY("kernel/sem", "-1");
	WORKS(semget(IPC_PRIVATE, 1, 0600));
	TRY("kernel/sem", "16");
	semctl(0, 0, IPC_INFO, &i);
	printf("%d %d %d %d %d %d %d %d %d\n", i.semmap, i.semmni, i.semmns, i.semmnu, i.semmsl, i.semopm, i.semume, i.semvmx, i.semaem);
}

static void messages(void)
{
	struct msginfo i;
	struct msqid_ds d;
	struct { long type; char text[100]; } m = { 1 };
	int id;
	TRY("kernel/msgmnb", "20");
	TRY("kernel/msgmnb", "2147483648");
	TRY("kernel/msgmax", "-1");
	TRY("kernel/msgmax", "10");
	TRY("kernel/msgmni", "32769");
	TRY("kernel/msgmni", "1");
	WORKS(id = msgget(IPC_PRIVATE, 0600));
	WORKS(msgget(IPC_PRIVATE, 0600));
	SHOW(msgsnd(id, &m, 11, IPC_NOWAIT));
	SHOW(msgsnd(id, &m, 10, IPC_NOWAIT));
	SHOW(msgsnd(id, &m, 10, IPC_NOWAIT));
	SHOW(msgsnd(id, &m, 1, IPC_NOWAIT));
	SHOW(msgctl(id, IPC_STAT, &d));
	printf("%lu bytes, at most %lu\n", d.__msg_cbytes, d.msg_qbytes);
	msgctl(0, IPC_INFO, (void *)&i);
	printf("%d %d %d %d %d %d %d %d\n", i.msgpool, i.msgmap, i.msgmax, i.msgmnb, i.msgmni, i.msgssz, i.msgtql, i.msgseg);
	SHOW(msgctl(id, IPC_RMID, 0));
}

/* Binds n sockets to port 0, and counts those that get a port from low to high. */
static int chosen(int type, int n, int low, int high)
{
	int found = 0;
	for (int i = 0; i < n; i++) {
		struct sockaddr_in a = { .sin_family = AF_INET };
		socklen_t size = sizeof a;
		int fd = socket(AF_INET, type, 0);
		if (bind(fd, (struct sockaddr *)&a, sizeof a))
			break;
		getsockname(fd, (struct sockaddr *)&a, &size);
		found += ntohs(a.sin_port) >= low && ntohs(a.sin_port) <= high;
	}
	for (int fd = 3; fd < 100; fd++)
		close(fd);
	return found;
}

static int option(int fd, int name)
{
	int value = -1;
	socklen_t size = sizeof value;
	getsockopt(fd, IPPROTO_TCP, name, &value, &size);
	return value;
}

static void network(void)
{
	static const char *range = "net/ipv4/ip_local_port_range", *privileged = "net/ipv4/ip_unprivileged_port_start";
	int fd;
	printf("%s", get(range));
	TRY(range, "40000 40004");
	SHOW(chosen(SOCK_DGRAM, 6, 40000, 40004));
	SHOW(chosen(SOCK_STREAM, 2, 40000, 40004));
	TRY(range, "40010 40005");
	TRY(range, "0 40005");
	TRY(range, "40000 65536");
	TRY(range, "1000 2000");
	TRY(range, "500 2000");
	TRY(range, "2000");
	TRY(range, "2000 x");
	TRY(range, "1024\t65535\n");
	TRY(privileged, "1025");
	TRY(privileged, "1024");
	TRY(privileged, "80");
	TRY(range, "79 100");
	TRY(range, "80 1000");
	SHOW(chosen(SOCK_DGRAM, 20, 80, 1000));

	TRY("net/ipv4/tcp_keepalive_time", "600");
	TRY("net/ipv4/tcp_keepalive_intvl", "60\n");
	TRY("net/ipv4/tcp_keepalive_probes", "3");
	TRY("net/ipv4/tcp_keepalive_probes", "256");
	TRY("net/ipv4/tcp_fin_timeout", "30");
	TRY("net/ipv4/tcp_fin_timeout", "99999999");
	TRY("net/ipv4/tcp_syn_retries", "2");
	TRY("net/ipv4/tcp_syn_retries", "0");
	TRY("net/ipv4/tcp_syn_retries", "128");
	fd = socket(AF_INET, SOCK_STREAM, 0);
	printf("%d %d %d %d %d\n", option(fd, TCP_KEEPIDLE), option(fd, TCP_KEEPINTVL), option(fd, TCP_KEEPCNT), option(fd, TCP_LINGER2), option(fd, TCP_SYNCNT));
	SHOW(set("net/ipv4/tcp_congestion_control", "none"));
}

int main(void)
{
	struct utsname u;
	setvbuf(stdout, 0, _IONBF, 0);
	uname(&u);
	if (!strstr(u.release, "loam") && unshare(CLONE_NEWIPC | CLONE_NEWNET))
		return 1;
	segments();
	semaphores();
	messages();
	network();
	return 0;
}
