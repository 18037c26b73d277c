/* A program with four threads that wait until a debugger sets go. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

volatile int go, sum;
static pthread_barrier_t started;

static void *work(void *arg)
{
	pthread_barrier_wait(&started);
	while (!go) usleep(1000);
	__sync_fetch_and_add(&sum, (int)(long)arg);
	return 0;
}

int main(void)
{
	pthread_t t[4];
	pthread_barrier_init(&started, 0, 5);
	for (long i = 0; i < 4; i++)
		pthread_create(t + i, 0, work, (void *)(i + 1));
	pthread_barrier_wait(&started);
	puts("ready");
	fflush(stdout);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], 0);
	printf("sum %d\n", sum);
	return sum;
}
