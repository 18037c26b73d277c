// Pidfds of the senders and peers of Unix sockets: SO_PASSPIDFD, SCM_PIDFD and SO_PEERPIDFD (Linux 6.5).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { passPIDFD = 76, peerPIDFD = 77, scmPIDFD = 4 };

static const char *said(long r) { return r < 0 ? strerrorname_np(errno) : "done"; }

// processOf returns the process of a pidfd, from its fdinfo.
static int processOf(int fd) {
	char path[64], line[128];
	int pid = 0;
	sprintf(path, "/proc/self/fdinfo/%d", fd);
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f))
		sscanf(line, "Pid: %d", &pid);
	if (f)
		fclose(f);
	return pid;
}

static const char *whose(int fd) {
	int pid = processOf(fd);
	return pid == getpid() ? "own" : pid > 0 ? "other" : pid < 0 ? "ended" : "none";
}

static void option(const char *what, int s, int name) {
	int v = -7;
	socklen_t n = sizeof v;
	int r = getsockopt(s, SOL_SOCKET, name, &v, &n);
	printf("%s: %s", what, said(r));
	if (r == 0 && name == peerPIDFD) {
		printf(" %s, flags %d, size %d", whose(v), fcntl(v, F_GETFD), n);
		close(v);
	} else if (r == 0)
		printf(" %d", v);
	printf("\n");
}

static void set(const char *what, int s, int name, int value, socklen_t size) {
	printf("%s: %s\n", what, said(setsockopt(s, SOL_SOCKET, name, &value, size)));
}

// receive prints the control messages of a received message.
static void receive(const char *what, int s, size_t room, int flags) {
	char b[8], c[256] = {0};
	struct iovec v = {b, sizeof b};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = room ? c : 0, .msg_controllen = room};
	ssize_t n = recvmsg(s, &m, flags);
	printf("%s: %zd, flags %x, size %zu", what, n, m.msg_flags, m.msg_controllen);
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&m); h; h = CMSG_NXTHDR(&m, h)) {
		int fd = *(int *)CMSG_DATA(h);
		printf(", type %d of %zu", h->cmsg_type, (size_t)h->cmsg_len);
		if (h->cmsg_type == scmPIDFD && fd < 0)
			printf(" error %d", -fd);
		else if (h->cmsg_type == scmPIDFD)
			printf(" %s, flags %d", whose(fd), fcntl(fd, F_GETFD));
		if (h->cmsg_type != SCM_CREDENTIALS)
			close(fd);
	}
	printf("\n");
}

// sendControl sends a byte with a control message.
static void sendControl(int s, int type, const void *data, size_t size) {
	char b = 'x', c[64] = {0};
	struct iovec v = {&b, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = c, .msg_controllen = CMSG_SPACE(size)};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = type;
	h->cmsg_len = CMSG_LEN(size);
	memcpy(CMSG_DATA(h), data, size);
	if (sendmsg(s, &m, 0) < 0)
		printf("send: %s\n", said(-1));
}

static void claim(int s, pid_t pid) {
	struct ucred u = {pid, getuid(), getgid()};
	sendControl(s, SCM_CREDENTIALS, &u, sizeof u);
}

// rooms receives messages into buffers of different sizes.
static void rooms(int in, int out) {
	const int zero = 0;
	write(out, "a", 1), receive("room", in, 200, 0);
	write(out, "a", 1), receive("peek", in, 200, MSG_PEEK), receive("no room", in, 0, 0);
	write(out, "a", 1), receive("for the header", in, 16, 0);
	write(out, "a", 1), receive("for a part", in, 19, 0);
	write(out, "a", 1), receive("exactly", in, 20, 0);
	sendControl(out, SCM_RIGHTS, &zero, 4), receive("with a descriptor", in, 200, MSG_CMSG_CLOEXEC);
	sendControl(out, SCM_RIGHTS, &zero, 4), receive("only the descriptor", in, 24, 0);
	set("SO_PASSCRED", in, SO_PASSCRED, 1, 4);
	sendControl(out, SCM_RIGHTS, &zero, 4), receive("all", in, 200, 0);
	write(out, "a", 1), receive("only the credentials", in, 32, 0);
	write(out, "a", 1), receive("and a part", in, 50, 0);
	set("SO_PASSCRED", in, SO_PASSCRED, 0, 4);
	write(out, "a", 1);
	char b[8];
	int next = dup(0), n = read(in, b, sizeof b);
	close(next);
	printf("read: %d, the next descriptor is the same: %d\n", n, dup(0) == next);
	close(next);
	struct rlimit old, none;
	getrlimit(RLIMIT_NOFILE, &old);
	none = (struct rlimit){next, old.rlim_max};
	setrlimit(RLIMIT_NOFILE, &none);
	write(out, "a", 1), receive("no descriptor free", in, 200, 0);
	option("peer without a descriptor", in, peerPIDFD);
	setrlimit(RLIMIT_NOFILE, &old);
}

// senders receives messages of other processes.
static void senders(int in, int out) {
	const int zero = 0;
	pid_t child = fork();
	if (child == 0) {
		write(out, "c", 1);
		pause();
	}
	receive("child", in, 200, 0);
	claim(out, child), receive("in the name of the child", in, 200, 0);
	kill(child, SIGKILL), waitpid(child, 0, 0);
	child = fork();
	if (child == 0) {
		write(out, "c", 1);
		_exit(0);
	}
	waitpid(child, 0, 0);
	receive("ended child", in, 200, 0);
	write(out, "a", 1);
	child = fork();
	if (child == 0) {
		write(out, "bbbbbbb", 7);
		_exit(0);
	}
	waitpid(child, 0, 0);
	receive("first of two senders", in, 200, MSG_WAITALL), receive("second", in, 200, 0);
	claim(out, getpid()), receive("in the own name", in, 200, 0);
	sendControl(out, scmPIDFD, &zero, 4);
}

static void pairs(int type) {
	int p[2];
	printf("type %d\n", type);
	socketpair(AF_UNIX, type, 0, p);
	option("default", p[0], passPIDFD);
	option("peer", p[0], peerPIDFD);
	set("set", p[0], passPIDFD, 5, 4);
	option("then", p[0], passPIDFD);
	option("SO_PASSCRED", p[0], SO_PASSCRED);
	set("short", p[0], passPIDFD, 1, 2);
	set("SO_PEERPIDFD", p[0], peerPIDFD, 1, 4);
	rooms(p[0], p[1]);
	senders(p[0], p[1]);
	close(p[1]);
	if (type != SOCK_DGRAM)
		receive("end", p[0], 200, 0);
	close(p[0]);
}

static void others(void) {
	int s = socket(AF_UNIX, SOCK_STREAM, 0), d = socket(AF_UNIX, SOCK_DGRAM, 0), t = socket(AF_INET, SOCK_STREAM, 0), u = socket(AF_INET, SOCK_DGRAM, 0);
	option("unconnected", s, peerPIDFD);
	option("datagrams", d, peerPIDFD);
	option("TCP", t, peerPIDFD);
	option("UDP", u, peerPIDFD);
	close(s), close(d), close(t), close(u);
}

// connections uses the pidfd of a client that has ended, and of the server.
static void connections(void) {
	struct sockaddr_un a = {AF_UNIX, "\0passpidfd"};
	int l = socket(AF_UNIX, SOCK_STREAM, 0), v = -1, w = -1;
	socklen_t size = 4;
	bind(l, (void *)&a, sizeof a);
	option("bound", l, peerPIDFD);
	listen(l, 5);
	option("listener", l, peerPIDFD);
	set("set", l, passPIDFD, 1, 4);
	pid_t child = fork();
	if (child == 0) {
		int c = socket(AF_UNIX, SOCK_STREAM, 0);
		connect(c, (void *)&a, sizeof a);
		getsockopt(c, SOL_SOCKET, peerPIDFD, &v, &size);
		printf("the server is the parent: %d\n", processOf(v) == getppid());
		write(c, "z", 1);
		_exit(0);
	}
	int c = accept(l, 0, 0);
	getsockopt(c, SOL_SOCKET, peerPIDFD, &v, &size);
	struct pollfd p = {v, POLLIN};
	int r = poll(&p, 1, 10000);
	getsockopt(c, SOL_SOCKET, peerPIDFD, &w, &size);
	printf("end: %d %x, another descriptor %d\n", r, p.revents, v != w);
	close(w);
	siginfo_t info = {0};
	r = waitid(P_PIDFD, v, &info, WEXITED);
	printf("waitid: %s, of the child %d\n", said(r), info.si_pid == child);
	printf("signal: %s\n", said(syscall(SYS_pidfd_send_signal, v, 0, 0, 0)));
	option("option of the connection", c, passPIDFD);
	option("ended client", c, peerPIDFD);
	receive("from the client", c, 200, 0);
	size = 2;
	r = getsockopt(c, SOL_SOCKET, peerPIDFD, &w, &size);
	printf("short: %s, size %d\n", said(r), size);
	int next = dup(0);
	close(next);
	size = 4;
	r = getsockopt(c, SOL_SOCKET, peerPIDFD, (void *)8, &size);
	printf("bad address: %s, the next descriptor is the same: %d\n", said(r), dup(0) == next);
}

int main(void) {
	setvbuf(stdout, 0, _IONBF, 0);
	pairs(SOCK_STREAM);
	pairs(SOCK_DGRAM);
	pairs(SOCK_SEQPACKET);
	others();
	connections();
	return 0;
}
