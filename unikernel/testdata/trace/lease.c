/* Leases of files (fcntl(2), F_SETLEASE): who gets one, who breaks it, the signal, and the waits. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *error(long r) { return r == -1 ? strerror(errno) : "ok"; }
#define SHOW(x) do { errno = 0; long r_ = (long)(x); printf("%s: %ld, %s\n", #x, r_, error(r_)); } while (0)
/* Shows whether a call that returns a descriptor succeeds, and closes the descriptor. */
#define OPENS(x) do { errno = 0; int fd_ = (x); printf("%s: %s\n", #x, error(fd_)); if (fd_ >= 0) close(fd_); } while (0)

static const char *file;
static sigset_t set;

/* Shows the signal that arrives, or that none does. */
static void arrives(int seconds)
{
	siginfo_t i;
	struct timespec most = { seconds, 50000000 };
	int n = sigtimedwait(&set, &i, &most);
	if (n < 0)
		printf("no signal\n");
	else
		printf("signal %d, code %x, band %lx, fd %d\n", n == SIGIO ? -1 : n - SIGRTMIN, i.si_code, n == SIGIO ? 0 : i.si_band, n == SIGIO ? 0 : i.si_fd);
}

/* Runs f in a child, which ends with its errno. */
static int start(int (*f)(void))
{
	fflush(stdout);
	int p = fork();
	if (p == 0) {
		alarm(60);
		_exit(f() == -1 ? errno : 0);
	}
	return p;
}

static void ends(int p)
{
	int s;
	waitpid(p, &s, 0);
	printf("the child: %s\n", WIFEXITED(s) ? strerror(WEXITSTATUS(s)) : "killed");
}

static int reads(void) { return open(file, O_RDONLY); }
static int writes(void) { return open(file, O_WRONLY); }
static int truncates(void) { return truncate(file, 3); }
static void handler(int s) { (void)s; }
static int interrupted(void)
{
	struct sigaction a = { .sa_handler = handler };
	sigaction(SIGALRM, &a, 0);
	ualarm(200000, 0);
	return open(file, O_WRONLY);
}

/* Opens the file; a signal whose handler restarts calls arrives meanwhile. */
static int restarted(void)
{
	struct sigaction a = { .sa_handler = handler, .sa_flags = SA_RESTART };
	sigaction(SIGALRM, &a, 0);
	ualarm(100000, 0);
	return open(file, O_WRONLY);
}

/* Calls that change the file without opening it, and opens with a read lease and a write lease. */
static void harmless(void)
{
	int fd = open(file, O_RDONLY), child;
	char other[100];
	puts("-- other calls");
	snprintf(other, sizeof other, "%s.other", file);
	SHOW(fcntl(fd, F_SETLEASE, F_WRLCK));
	fcntl(fd, F_SETSIG, SIGRTMIN + 1);
	SHOW(chmod(file, 0640));
	SHOW(link(file, other));
	SHOW(rename(other, file));
	SHOW(unlink(other));
	SHOW(access(file, R_OK));
	SHOW(chown(file, 0, 0));
	arrives(0);
	SHOW(fcntl(fd, F_GETLEASE) == F_WRLCK);
	OPENS(open(file, O_RDONLY | O_CREAT | O_EXCL | O_NONBLOCK));
	OPENS(open(file, O_RDONLY | O_DIRECTORY | O_NONBLOCK));
	arrives(0);
	SHOW(fcntl(fd, F_SETLEASE, F_RDLCK));
	OPENS(open(file, O_RDONLY | O_TRUNC | O_NONBLOCK));
	arrives(0);
	SHOW(lseek(fd, 0, SEEK_END));
	SHOW(fcntl(fd, F_GETLEASE) == F_RDLCK);
	OPENS(open(file, O_RDONLY | O_CREAT | O_NONBLOCK, 0600));
	SHOW(fcntl(fd, F_SETLEASE, F_UNLCK));
	SHOW(fcntl(fd, F_SETLEASE, F_RDLCK));
	fcntl(fd, F_SETSIG, SIGRTMIN + 1);
	child = start(restarted);
	arrives(20);
	usleep(300000);
	SHOW(waitpid(child, 0, WNOHANG));
	SHOW(fcntl(fd, F_SETLEASE, F_UNLCK));
	ends(child);
	close(fd);
}

static void requests(void)
{
	int fd = open(file, O_RDONLY), w = open(file, O_WRONLY), p[2], d = open("/", O_RDONLY), path = open(file, O_PATH);
	puts("-- requests");
	pipe(p);
	SHOW(fcntl(fd, F_GETLEASE) == F_UNLCK);
	SHOW(fcntl(fd, F_SETLEASE, 77));
	SHOW(fcntl(p[0], F_SETLEASE, F_RDLCK));
	SHOW(fcntl(p[0], F_GETLEASE) == F_UNLCK);
	SHOW(fcntl(d, F_SETLEASE, F_RDLCK));
	SHOW(fcntl(path, F_SETLEASE, F_RDLCK));
	SHOW(fcntl(1000, F_SETLEASE, F_RDLCK));
	SHOW(fcntl(fd, F_SETLEASE, F_UNLCK));
	SHOW(fcntl(fd, F_SETLEASE, F_RDLCK));
	SHOW(fcntl(w, F_SETLEASE, F_RDLCK));
	SHOW(fcntl(w, F_SETLEASE, F_WRLCK));
	close(w);
	SHOW(fcntl(fd, F_SETLEASE, F_RDLCK));
	SHOW(fcntl(fd, F_GETLEASE) == F_RDLCK);
	SHOW(fcntl(fd, F_GETOWN) == getpid());
	OPENS(open(file, O_RDONLY));
	SHOW(fcntl(fd, F_SETLEASE, F_WRLCK));
	SHOW(fcntl(fd, F_GETLEASE) == F_WRLCK);
	SHOW(fcntl(fd, F_SETLEASE, F_RDLCK));
	w = open(file, O_RDONLY);
	SHOW(fcntl(fd, F_SETLEASE, F_WRLCK));
	SHOW(fcntl(w, F_SETLEASE, F_RDLCK));
	SHOW(fcntl(w, F_SETLEASE, F_WRLCK));
	SHOW(fcntl(w, F_SETLEASE, F_UNLCK));
	close(w);
	w = dup(fd);
	SHOW(fcntl(w, F_GETLEASE) == F_RDLCK);
	close(w);
	SHOW(fcntl(fd, F_SETLEASE, F_UNLCK));
	close(fd);
	close(p[0]), close(p[1]), close(d), close(path);
}

static void breaks(void)
{
	int fd = open(file, O_RDONLY), child;
	puts("-- a read lease");
	fcntl(fd, F_SETLEASE, F_RDLCK);
	fcntl(fd, F_SETSIG, SIGRTMIN + 1);
	OPENS(open(file, O_RDONLY | O_NONBLOCK));
	OPENS(open(file, O_PATH));
	arrives(0);
	OPENS(open(file, O_WRONLY | O_NONBLOCK));
	arrives(1);
	SHOW(fcntl(fd, F_GETLEASE) == F_UNLCK);
	OPENS(open(file, O_RDWR | O_NONBLOCK));
	arrives(0);
	SHOW(fcntl(fd, F_SETLEASE, F_UNLCK));
	OPENS(open(file, O_RDWR | O_NONBLOCK));
	SHOW(fcntl(fd, F_GETOWN));
	SHOW(fcntl(fd, F_GETSIG));
	SHOW(fcntl(fd, F_SETLEASE, F_RDLCK));
	child = start(writes);
	arrives(20);
	SHOW(waitpid(child, 0, WNOHANG));
	SHOW(fcntl(fd, F_SETLEASE, F_UNLCK));
	ends(child);
	SHOW(fcntl(fd, F_SETLEASE, F_RDLCK));
	child = start(truncates);
	arrives(20);
	SHOW(lseek(fd, 0, SEEK_END));
	SHOW(fcntl(fd, F_SETLEASE, F_UNLCK));
	ends(child);
	SHOW(lseek(fd, 0, SEEK_END));
	SHOW(fcntl(fd, F_SETLEASE, F_RDLCK));
	ends(start(interrupted));
	arrives(20);
	close(fd);
	OPENS(open(file, O_RDWR | O_NONBLOCK));

	puts("-- a write lease");
	fd = open(file, O_RDWR);
	SHOW(fcntl(fd, F_SETLEASE, F_WRLCK));
	child = start(reads);
	arrives(20);
	SHOW(fcntl(fd, F_GETLEASE) == F_RDLCK);
	OPENS(open(file, O_RDONLY | O_NONBLOCK));
	arrives(0);
	SHOW(fcntl(fd, F_SETLEASE, F_RDLCK));
	SHOW(fcntl(fd, F_SETLEASE, F_UNLCK));
	ends(child);
	close(fd);
	fd = open(file, O_RDONLY);
	SHOW(fcntl(fd, F_SETLEASE, F_WRLCK));
	child = start(reads);
	arrives(20);
	SHOW(fcntl(fd, F_SETLEASE, F_RDLCK));
	ends(child);
	SHOW(fcntl(fd, F_GETLEASE) == F_RDLCK);
	SHOW(fcntl(fd, F_SETLEASE, F_WRLCK));
	child = start(writes);
	arrives(20);
	SHOW(fcntl(fd, F_SETLEASE, F_RDLCK));
	SHOW(fcntl(fd, F_SETLEASE, F_UNLCK));
	ends(child);
	SHOW(fcntl(fd, F_SETLEASE, F_WRLCK));
	OPENS(open(file, O_WRONLY | O_NONBLOCK));
	arrives(20);
	SHOW(fcntl(fd, F_SETLEASE, F_RDLCK));
	close(fd);
}

/* A lease while writers or readers wait, and after such a process has ended. */
static void waiters(void)
{
	int fd = open(file, O_RDONLY), child;
	puts("-- waiters");
	SHOW(fcntl(fd, F_SETLEASE, F_WRLCK));
	fcntl(fd, F_SETSIG, SIGRTMIN + 1);
	OPENS(open(file, O_WRONLY | O_NONBLOCK));
	arrives(20);
	child = start(writes);
	while (waitpid(child, 0, WNOHANG) == 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0) /* no signal shows that the child waits */
		usleep(10000);
	SHOW(fcntl(fd, F_SETLEASE, F_WRLCK));
	SHOW(fcntl(fd, F_SETLEASE, F_RDLCK));
	kill(child, SIGKILL);
	ends(child);
	SHOW(fcntl(fd, F_SETLEASE, F_RDLCK));
	SHOW(fcntl(fd, F_SETLEASE, F_UNLCK));
	SHOW(fcntl(fd, F_SETLEASE, F_WRLCK));
	fcntl(fd, F_SETSIG, SIGRTMIN + 1);
	child = start(writes);
	arrives(20);
	kill(child, SIGKILL);
	ends(child);
	SHOW(fcntl(fd, F_SETLEASE, F_RDLCK));
	SHOW(fcntl(fd, F_SETLEASE, F_UNLCK));
	SHOW(fcntl(fd, F_SETLEASE, F_WRLCK));
	fcntl(fd, F_SETSIG, SIGRTMIN + 1);
	child = start(reads);
	arrives(20);
	usleep(100000);
	SHOW(fcntl(fd, F_SETLEASE, F_WRLCK));
	SHOW(fcntl(fd, F_SETLEASE, F_RDLCK));
	ends(child);
	close(fd);
}

static void users(void)
{
	int fd = open(file, O_RDONLY), d = open("/", O_RDONLY);
	puts("-- users");
	chmod(file, 0666);
	if (setresuid(1000, 1000, 1000))
		exit(1);
	SHOW(fcntl(fd, F_SETLEASE, F_RDLCK));
	SHOW(fcntl(fd, F_GETLEASE) == F_UNLCK);
	SHOW(fcntl(fd, F_SETLEASE, 77));
	SHOW(fcntl(fd, F_SETLEASE, F_UNLCK));
	SHOW(fcntl(d, F_SETLEASE, F_RDLCK));
}

int main(void)
{
	char name[] = "/tmp/leaseXXXXXX";
	file = name;
	setvbuf(stdout, 0, _IONBF, 0);
	close(mkstemp(name));
	truncate(file, 10);
	sigemptyset(&set);
	sigaddset(&set, SIGIO);
	sigaddset(&set, SIGRTMIN + 1);
	sigprocmask(SIG_BLOCK, &set, 0);
	requests();
	breaks();
	harmless();
	waiters();
	users();
	unlink(name);
	return 0;
}
