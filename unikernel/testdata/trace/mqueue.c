/* POSIX message queues. The output does not depend on IDs. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *error(long r) { return r == -1 ? strerror(errno) : "ok"; }
#define SHOW(x) do { errno = 0; long r_ = (long)(x); printf("%s: %s\n", #x, error(r_)); } while (0)

static char name[64];

static mqd_t queue(int flags, long messages, long size)
{
	struct mq_attr a = { .mq_maxmsg = messages, .mq_msgsize = size };
	return mq_open(name, flags, 0640, &a);
}

static void state(mqd_t q)
{
	struct mq_attr a;
	memset(&a, 0xff, sizeof a);
	int r = mq_getattr(q, &a);
	printf("attributes %d: flags %lo most %ld size %ld now %ld\n", r, a.mq_flags, a.mq_maxmsg, a.mq_msgsize, a.mq_curmsgs);
}

static struct timespec in(long ms)
{
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_nsec += ms % 1000 * 1000000;
	t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static void receive(mqd_t q)
{
	char b[100];
	unsigned priority = 99;
	ssize_t n = mq_receive(q, b, sizeof b, &priority);
	if (n < 0)
		printf("receive: %s\n", strerror(errno));
	else
		printf("received %zd %.*s priority %u\n", n, (int)n, b, priority);
}

static void names(void)
{
	printf("-- names\n");
	SHOW(mq_open("x", O_RDONLY));
	SHOW(mq_open("/", O_RDONLY));
	SHOW(mq_open("/a/b", O_RDWR | O_CREAT, 0600, 0));
	SHOW(mq_open("/..", O_RDWR | O_CREAT, 0600, 0));
	SHOW(mq_open(name, O_RDONLY));
	SHOW(mq_unlink(name));
	SHOW(mq_unlink("/a/b"));
	char longer[300] = "/";
	memset(longer + 1, 'x', 256);
	longer[257] = 0;
	SHOW(mq_open(longer, O_RDWR | O_CREAT, 0600, 0));
	SHOW(queue(O_RDWR | O_CREAT, 0, 10));
	SHOW(queue(O_RDWR | O_CREAT, 10, 0));
	SHOW(queue(O_RDWR | O_CREAT, 65537, 10));
	SHOW(queue(O_RDWR | O_CREAT, 1, 16777217));
	mqd_t q = queue(O_RDWR | O_CREAT | O_EXCL, 3, 10), r;
	SHOW(queue(O_RDWR | O_CREAT | O_EXCL, 3, 10));
	SHOW(r = queue(O_RDWR | O_CREAT, 5, 50));
	state(r);
	struct stat st;
	fstat(q, &st);
	printf("mode %o size %ld links %ld descriptor flags %d\n", st.st_mode, (long)st.st_size, (long)st.st_nlink, fcntl(q, F_GETFD));
	SHOW(mq_unlink(name));
	fstat(q, &st);
	printf("links %ld\n", (long)st.st_nlink);
	SHOW(mq_open(name, O_RDONLY));
	SHOW(mq_send(q, "still", 5, 0));
	receive(r);
	SHOW(mq_close(q));
	SHOW(mq_close(r));
	SHOW(mq_close(q));
	q = mq_open(name, O_RDWR | O_CREAT, 0600, 0);
	state(q);
	mq_close(q);
	mq_unlink(name);
}

static void messages(void)
{
	printf("-- messages\n");
	mqd_t q = queue(O_RDWR | O_CREAT | O_NONBLOCK, 3, 10), r = mq_open(name, O_RDONLY), w = mq_open(name, O_WRONLY);
	state(q);
	state(r);
	receive(q);
	char b[10];
	SHOW(mq_send(q, "12345678901", 11, 0));
	SHOW(mq_send(q, "", 0, 0));
	SHOW(mq_receive(q, b, 9, 0));
	SHOW(mq_receive(w, b, 10, 0));
	SHOW(mq_send(r, "x", 1, 0));
	SHOW(mq_send(q, "x", 1, 32768));
	SHOW(mq_send(0, "x", 1, 0));
	SHOW(mq_send(q, "high", 4, 32767));
	SHOW(mq_send(q, "low", 3, 1));
	SHOW(mq_send(q, "more", 4, 1));
	state(q);
	struct pollfd p[2] = { { q, POLLIN | POLLOUT, 0 }, { w, POLLIN | POLLOUT, 0 } };
	printf("poll %d: %x %x\n", poll(p, 2, 0), p[0].revents, p[1].revents);
	char line[100] = "";
	lseek(q, 0, SEEK_SET);
	read(q, line, sizeof line - 1);
	printf("%s", line);
	SHOW(write(q, "x", 1));
	for (int i = 0; i < 4; i++)
		receive(q);
	printf("poll %d: %x\n", poll(p, 2, 0), p[0].revents);
	SHOW(mq_send(q, "one", 3, 5));
	SHOW(mq_send(q, "two", 3, 7));
	SHOW(mq_send(q, "three", 5, 5));
	printf("poll %d: %x\n", poll(p, 2, 0), p[0].revents);
	for (int i = 0; i < 3; i++)
		receive(q);
	struct mq_attr a = { .mq_flags = O_NONBLOCK, .mq_maxmsg = 77 }, old;
	SHOW(mq_setattr(r, &a, &old));
	printf("old flags %lo\n", old.mq_flags);
	state(r);
	receive(r);
	a.mq_flags = O_APPEND;
	SHOW(mq_setattr(r, &a, 0));
	SHOW(syscall(SYS_mq_timedsend, q, (char *)8, 1, 0, 0));
	SHOW(syscall(SYS_mq_timedsend, q, "x", 1, 0, (void *)8));
	mq_close(q), mq_close(r), mq_close(w);
	mq_unlink(name);
}

static void nothing(int n) { (void)n; }

static void waits(void)
{
	printf("-- waits\n");
	mqd_t q = queue(O_RDWR | O_CREAT, 1, 10);
	char b[10];
	struct timespec t = in(50), past = in(-1000), bad = { 0, 1000000000 };
	SHOW(mq_timedreceive(q, b, 10, 0, &t));
	SHOW(mq_timedreceive(q, b, 10, 0, &past));
	SHOW(mq_timedreceive(q, b, 10, 0, &bad));
	SHOW(mq_send(q, "a", 1, 0));
	t = in(50);
	SHOW(mq_timedsend(q, "b", 1, 0, &t));
	SHOW(mq_timedsend(q, "b", 1, 0, &bad));
	struct sigaction a = { .sa_handler = nothing };
	sigaction(SIGALRM, &a, 0);
	ualarm(50000, 0);
	SHOW(mq_send(q, "c", 1, 0));
	fflush(stdout);
	if (fork() == 0) {
		usleep(50000);
		char c[10];
		mq_receive(q, c, 10, 0);
		_exit(0);
	}
	SHOW(mq_send(q, "d", 1, 3));
	receive(q);
	if (fork() == 0) {
		usleep(50000);
		mq_send(q, "child", 5, 9);
		_exit(0);
	}
	a.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &a, 0);
	ualarm(20000, 0);
	char c[10];
	unsigned p;
	ssize_t n = mq_receive(q, c, 10, &p);
	printf("%zd %.5s %u\n", n, c, p);
	while (wait(0) > 0)
		;
	mq_close(q);
	mq_unlink(name);
}

static volatile int handled;
static void notified(int n, siginfo_t *i, void *x)
{
	(void)x;
	handled = 1;
	printf("signal %d code %d value %d sender %d uid %d\n", n, i->si_code, i->si_value.sival_int, i->si_pid == getppid() || i->si_pid == getpid(),
		i->si_uid == getuid());
}
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static int threads;
static void in_thread(union sigval v)
{
	pthread_mutex_lock(&lock);
	printf("thread with %d\n", v.sival_int);
	threads++;
	pthread_cond_signal(&arrived);
	pthread_mutex_unlock(&lock);
}

static void notification(void)
{
	printf("-- notification\n");
	mqd_t q = queue(O_RDWR | O_CREAT, 3, 10);
	struct sigaction a = { .sa_sigaction = notified, .sa_flags = SA_SIGINFO };
	sigaction(SIGUSR1, &a, 0);
	struct sigevent e = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 42 };
	SHOW(mq_notify(q, &e));
	SHOW(mq_notify(q, &e));
	fflush(stdout);
	if (fork() == 0) {
		SHOW(mq_notify(q, &e));
		fflush(stdout);
		_exit(0);
	}
	wait(0);
	SHOW(mq_send(q, "1", 1, 0));
	printf("handled %d\n", handled);
	handled = 0;
	SHOW(mq_send(q, "2", 1, 0));
	SHOW(mq_notify(q, &e)); /* the queue is not empty */
	SHOW(mq_send(q, "3", 1, 0));
	printf("handled %d\n", handled);
	for (int i = 0; i < 3; i++)
		receive(q);
	char line[100] = "";
	lseek(q, 0, SEEK_SET);
	read(q, line, 47);
	printf("%s\n", line);
	SHOW(mq_notify(q, 0));
	SHOW(mq_send(q, "4", 1, 0));
	receive(q);
	printf("handled %d\n", handled);
	e.sigev_signo = 65;
	SHOW(mq_notify(q, &e));
	e.sigev_notify = 99;
	SHOW(mq_notify(q, &e));
	e.sigev_notify = SIGEV_NONE;
	SHOW(mq_notify(q, &e));
	SHOW(mq_send(q, "5", 1, 0));
	receive(q);
	e.sigev_notify = SIGEV_THREAD;
	e.sigev_notify_function = in_thread;
	e.sigev_notify_attributes = 0;
	SHOW(mq_notify(q, &e));
	pthread_mutex_lock(&lock); /* the thread prints after this one */
	SHOW(mq_send(q, "6", 1, 0));
	while (!threads)
		pthread_cond_wait(&arrived, &lock);
	pthread_mutex_unlock(&lock);
	receive(q);
	e.sigev_notify = SIGEV_SIGNAL, e.sigev_signo = SIGUSR1;
	SHOW(mq_notify(q, &e));
	mqd_t r = mq_open(name, O_RDONLY);
	mq_close(r); /* any descriptor of the queue ends the request */
	SHOW(mq_send(q, "7", 1, 0));
	printf("handled %d\n", handled);
	mq_close(q);
	mq_unlink(name);
}

static void limits(void)
{
	printf("-- limits\n");
	static const char *const files[] = { "queues_max", "msg_max", "msgsize_max", "msg_default", "msgsize_default" };
	for (int i = 0; i < 5; i++) {
		char path[100], line[40] = "";
		sprintf(path, "/proc/sys/fs/mqueue/%s", files[i]);
		FILE *f = fopen(path, "r");
		fgets(line, sizeof line, f);
		printf("%s %s", files[i], line);
		fclose(f);
	}
	struct rlimit r;
	getrlimit(RLIMIT_MSGQUEUE, &r);
	printf("limit %lu\n", r.rlim_cur);
	fflush(stdout);
	if (fork() == 0) {
		setresgid(4711, 4711, 4711);
		setresuid(4711, 4711, 4711);
		SHOW(queue(O_RDWR | O_CREAT, 11, 10));
		SHOW(queue(O_RDWR | O_CREAT, 10, 8193));
		r.rlim_cur = 2 * (10 + 96) + 2 * 10;
		r.rlim_cur = 2 * (10 + 48 + 48);
		setrlimit(RLIMIT_MSGQUEUE, &r);
		mqd_t q;
		SHOW(queue(O_RDWR | O_CREAT, 3, 10));
		SHOW(q = queue(O_RDWR | O_CREAT, 2, 10));
		SHOW(mq_open("/loam-test-second", O_RDWR | O_CREAT, 0600, 0));
		SHOW(mq_unlink(name));
		SHOW(queue(O_RDWR | O_CREAT, 1, 1));
		SHOW(mq_close(q));
		SHOW(q = queue(O_RDWR | O_CREAT, 1, 1));
		mq_close(q);
		fflush(stdout);
		_exit(0);
	}
	wait(0);
	fflush(stdout);
	mq_unlink(name);
	mqd_t q = queue(O_RDWR | O_CREAT, 2, 10);
	if (fork() == 0) {
		setresgid(4711, 4711, 4711);
		setresuid(4711, 4711, 4711);
		SHOW(mq_open(name, O_RDONLY));
		SHOW(mq_unlink(name));
		SHOW(mq_send(q, "inherited", 9, 0));
		fflush(stdout);
		_exit(0);
	}
	wait(0);
	receive(q);
	mq_close(q);
	mq_unlink(name);
}

int main(void)
{
	sprintf(name, "/loam-test-%d", getpid());
	umask(022);
	names();
	messages();
	waits();
	notification();
	limits();
	return 0;
}
