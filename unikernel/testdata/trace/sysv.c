/* System V's IPC. The output does not depend on IDs and addresses. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *error(long r) { return r == -1 ? strerror(errno) : "ok"; }
#define SHOW(x) do { errno = 0; long r_ = (long)(x); printf("%s: %s\n", #x, error(r_)); } while (0)
union semun { int val; struct semid_ds *buf; unsigned short *array; struct seminfo *info; };

/* Shows the status of a child. Output of its own would mix with its parent's. */
static void result(void)
{
	int s;
	wait(&s);
	printf("child exited with %d\n", WEXITSTATUS(s));
}

static void state(int id)
{
	struct shmid_ds d;
	if (shmctl(id, IPC_STAT, &d)) {
		printf("stat: %s\n", strerror(errno));
		return;
	}
	printf("size %zu attached %lu mode %o creator %d last %d\n", d.shm_segsz, d.shm_nattch, d.shm_perm.mode, d.shm_cpid == getpid(), d.shm_lpid == getpid());
}

static void memory(void)
{
	printf("-- memory\n");
	SHOW(shmget(IPC_PRIVATE, 0, 0600));
	SHOW(shmget(0x4c6f, 100, 0600));
	int id = shmget(0x4c6f616d, 10000, IPC_CREAT | IPC_EXCL | 0640);
	SHOW(shmget(0x4c6f616d, 10000, IPC_CREAT | IPC_EXCL | 0640));
	printf("same %d\n", shmget(0x4c6f616d, 5000, 0) == id);
	SHOW(shmget(0x4c6f616d, 20000, 0));
	state(id);
	char *a = shmat(id, 0, 0), *b = shmat(id, 0, SHM_RDONLY);
	state(id);
	strcpy(a, "text");
	printf("%s %d\n", b, a[9999]);
	fflush(stdout);
	if (fork() == 0) {
		state(id);
		strcpy(a + 5000, "of a child");
		SHOW(shmdt(a));
		state(id);
		fflush(stdout);
		_exit(0);
	}
	wait(0);
	state(id);
	printf("%s\n", b + 5000);
	SHOW(shmdt(a + 4096));
	SHOW(shmdt(a + 1));
	munmap(a + 4096, 4096);
	state(id);
	SHOW(shmdt(a));
	state(id);
	SHOW(shmdt(a));
	SHOW(shmat(id, a + 1, 0));
	printf("rounded %d\n", shmat(id, a + 1, SHM_RND) == (void *)a);
	SHOW(shmat(id, b, 0));
	SHOW(shmat(id, 0, SHM_REMAP));
	printf("replaced %d\n", shmat(id, b, SHM_REMAP) == (void *)b);
	strcpy(b, "written");
	struct shmid_ds d;
	shmctl(id, IPC_STAT, &d);
	d.shm_perm.mode = 0600;
	SHOW(shmctl(id, IPC_SET, &d));
	SHOW(shmctl(id, SHM_LOCK, 0));
	SHOW(shmctl(id, IPC_RMID, 0));
	state(id);
	SHOW(shmget(0x4c6f616d, 10000, 0));
	char *c = shmat(id, 0, 0);
	printf("%s\n", c);
	shmdt(a);
	shmdt(b);
	state(id);
	shmdt(c);
	state(id);
	SHOW(shmat(id, 0, 0));
	SHOW(shmctl(id, 99, 0));
	struct shminfo i;
	printf("info %d\n", shmctl(0, IPC_INFO, (struct shmid_ds *)&i) >= 0);
	printf("most %lx %lu %lu\n", i.shmmax, i.shmmin, i.shmmni);
}

static int semaphore(int id, int n, int change, int flags)
{
	struct sembuf b = {n, change, flags};
	return semop(id, &b, 1);
}

static void on_alarm(int n) { (void)n; }

static void values(int id)
{
	unsigned short v[3];
	semctl(id, 0, GETALL, v);
	printf("%d %d %d\n", v[0], v[1], v[2]);
}

static void semaphores(void)
{
	printf("-- semaphores\n");
	SHOW(semget(IPC_PRIVATE, 0, 0600));
	SHOW(semget(IPC_PRIVATE, 32001, 0600));
	int id = semget(IPC_PRIVATE, 3, 0600);
	values(id);
	SHOW(semctl(id, 1, SETVAL, 5));
	SHOW(semctl(id, 3, SETVAL, 5));
	SHOW(semctl(id, 1, SETVAL, -1));
	SHOW(semctl(id, 1, SETVAL, 32768));
	values(id);
	SHOW(semaphore(id, 0, -1, IPC_NOWAIT));
	SHOW(semaphore(id, 1, 0, IPC_NOWAIT));
	SHOW(semaphore(id, 3, 1, 0));
	SHOW(semaphore(id, 1, 32767, 0));
	SHOW(semaphore(id, 1, -2, SEM_UNDO));
	SHOW(semop(id, 0, 0));
	struct sembuf many[501] = {{0}};
	SHOW(semop(id, many, 501));
	struct sembuf two[2] = {{1, -1, 0}, {0, -1, IPC_NOWAIT}};
	SHOW(semop(id, two, 2));
	values(id);
	struct timespec ts = {0, 10000000};
	struct sembuf take = {0, -1, 0};
	SHOW(semtimedop(id, &take, 1, &ts));
	fflush(stdout);
	pid_t p = fork();
	if (p == 0) {
		SHOW(semaphore(id, 2, 7, SEM_UNDO));
		SHOW(semaphore(id, 1, -1, SEM_UNDO));
		values(id);
		fflush(stdout);
		_exit(semaphore(id, 0, -2, 0) ? 1 : 3);
	}
	while (semctl(id, 0, GETNCNT) != 1)
		usleep(1000);
	printf("waiting for zero %d, value %d\n", semctl(id, 0, GETZCNT), semctl(id, 0, GETVAL));
	printf("last %d\n", semctl(id, 2, GETPID) == p);
	SHOW(semaphore(id, 0, 3, 0));
	result();
	values(id);
	printf("last %d\n", semctl(id, 2, GETPID) == p);
	fflush(stdout);
	if (fork() == 0) {
		semaphore(id, 2, 7, SEM_UNDO);
		semctl(id, 2, SETVAL, 4);
		_exit(0);
	}
	wait(0);
	values(id);
	fflush(stdout);
	if (fork() == 0) {
		struct sigaction a = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
		sigaction(SIGALRM, &a, 0);
		ualarm(20000, 0);
		SHOW(semaphore(id, 0, -9, 0));
		fflush(stdout);
		_exit(0);
	}
	wait(0);
	if (fork() == 0) {
		_exit(semaphore(id, 2, 0, 0) == -1 ? errno : 0);
	}
	while (semctl(id, 2, GETZCNT) != 1)
		usleep(1000);
	struct semid_ds d;
	semctl(id, 0, IPC_STAT, &d);
	printf("count %lu mode %o operated %d\n", d.sem_nsems, d.sem_perm.mode, d.sem_otime > 0);
	SHOW(semctl(id, 0, IPC_RMID));
	result();
	SHOW(semaphore(id, 0, 1, 0));
	struct seminfo i;
	union semun u = {.info = &i};
	semctl(0, 0, IPC_INFO, u);
	printf("%d %d %d %d %d %d %d %d %d %d\n", i.semmap, i.semmni, i.semmns, i.semmnu, i.semmsl, i.semopm, i.semume, i.semusz, i.semvmx, i.semaem);
}

struct message { long type; char text[100]; };

static void queues(void)
{
	printf("-- messages\n");
	int id = msgget(IPC_PRIVATE, 0600);
	struct message m = {0, "x"}, r;
	SHOW(msgsnd(id, &m, 1, 0));
	for (int i = 1; i <= 5; i++) {
		m.type = 6 - i;
		sprintf(m.text, "message %d", i);
		msgsnd(id, &m, strlen(m.text) + 1, 0);
	}
	SHOW(msgsnd(id, &m, 8193, 0));
	struct msqid_ds d;
	msgctl(id, IPC_STAT, &d);
	printf("count %lu bytes %lu limit %lu\n", d.msg_qnum, d.__msg_cbytes, d.msg_qbytes);
	SHOW(msgrcv(id, &r, 3, 0, IPC_NOWAIT));
	printf("%zd %ld\n", msgrcv(id, &r, 3, 4, MSG_NOERROR), r.type);
	printf("%.3s\n", r.text);
	msgrcv(id, &r, 100, -3, 0);
	printf("%ld %s\n", r.type, r.text);
	msgrcv(id, &r, 100, 5, MSG_EXCEPT);
	printf("%ld %s\n", r.type, r.text);
	msgrcv(id, &r, 100, 0, 0);
	printf("%ld %s\n", r.type, r.text);
	SHOW(msgrcv(id, &r, 100, 9, IPC_NOWAIT));
	msgrcv(id, &r, 100, 0, 0);
	printf("%ld %s\n", r.type, r.text);
	fflush(stdout);
	if (fork() == 0) {
		msgrcv(id, &r, 100, 7, 0);
		printf("child has %s\n", r.text);
		fflush(stdout);
		_exit(0);
	}
	m.type = 8;
	strcpy(m.text, "eight");
	msgsnd(id, &m, 6, 0);
	m.type = 7;
	strcpy(m.text, "seven");
	msgsnd(id, &m, 6, 0);
	wait(0);
	msgctl(id, IPC_STAT, &d);
	printf("count %lu sender %d\n", d.msg_qnum, d.msg_lspid == getpid());
	d.msg_qbytes = 10;
	SHOW(msgctl(id, IPC_SET, &d));
	SHOW(msgsnd(id, &m, 6, IPC_NOWAIT));
	fflush(stdout);
	if (fork() == 0) {
		SHOW(msgsnd(id, &m, 6, 0));
		fflush(stdout);
		_exit(0);
	}
	usleep(20000);
	msgrcv(id, &r, 100, 0, 0);
	wait(0);
	if (fork() == 0) {
		_exit(msgrcv(id, &r, 100, 99, 0) == -1 ? errno : 0);
	}
	usleep(20000);
	SHOW(msgctl(id, IPC_RMID, 0));
	result();
	SHOW(msgctl(id, IPC_RMID, 0));
	struct msginfo i;
	msgctl(0, IPC_INFO, (struct msqid_ds *)&i);
	printf("%d %d %d %d %d %d %d %d\n", i.msgpool, i.msgmap, i.msgmax, i.msgmnb, i.msgmni, i.msgssz, i.msgtql, i.msgseg);
}

static void permissions(void)
{
	printf("-- permissions\n");
	int s = shmget(IPC_PRIVATE, 4096, 0640), e = semget(IPC_PRIVATE, 1, 0604), q = msgget(IPC_PRIVATE, 0600);
	fflush(stdout);
	if (fork() == 0) {
		setgid(1000);
		if (setuid(1000))
			printf("setuid: %s\n", strerror(errno));
		SHOW(shmat(s, 0, SHM_RDONLY));
		SHOW(semaphore(e, 0, 0, 0));
		SHOW(semaphore(e, 0, 1, 0));
		SHOW(msgrcv(q, 0, 0, 0, 0));
		SHOW(shmctl(s, IPC_RMID, 0));
		SHOW(semctl(e, 0, IPC_RMID));
		SHOW(msgctl(q, IPC_RMID, 0));
		fflush(stdout);
		_exit(0);
	}
	wait(0);
	SHOW(shmctl(s, IPC_RMID, 0));
	SHOW(semctl(e, 0, IPC_RMID));
	SHOW(msgctl(q, IPC_RMID, 0));
}

static void files(void)
{
	char line[300];
	const char *names[] = {"/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg"};
	for (int i = 0; i < 3; i++) {
		FILE *f = fopen(names[i], "r");
		if (f && fgets(line, sizeof line, f))
			fputs(line, stdout);
		if (f)
			fclose(f);
	}
}

int main(void)
{
	setvbuf(stdout, 0, _IOLBF, 0);
	memory();
	semaphores();
	queues();
	permissions();
	files();
	return 0;
}
